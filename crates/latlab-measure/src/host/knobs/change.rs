//! The changes of knobs that a setting requires on this host. Finds and reads the knobs, and does not set them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use latlab_sys::address::AddressFamily;
use latlab_sys::errno::explain;
use latlab_sys::ethtool;
use rustix::io::Errno;

use super::journal::JournalRecord;
use super::knob::{Knob, on_or_off};
use super::netns_identity::{NetnsIdentity, canonical_name};
use crate::facts::{Restoration, SettingFacts};
use crate::host::error::KnobError;
use crate::host::namespaces::{NetnsInterface, PathInterfaces, within};
use crate::host::root::{HostRoot, parse_cpu_list};
use crate::plan::{IdleStates, Setting, SettingSpec, Side};

const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
const CPUS: &str = "sys/devices/system/cpu";
/// RFC 8200, section 5.
const IPV6_LEAST_BYTES: u32 = 1_280;

/// One knob that is to be changed, or was changed.
#[derive(Debug)]
pub(super) struct KnobChange {
    pub(super) setting: String,
    /// The end of the path.
    pub(super) at: Side,
    pub(super) knob: Knob,
    /// Where it is changed; `None` for the namespace of the calling thread.
    pub(super) namespace: Option<Arc<File>>,
    pub(super) identity: NetnsIdentity,
    pub(super) before: String,
    pub(super) wanted: String,
    /// `None` until it is changed.
    pub(super) read_back: Option<String>,
    /// The file to hold open until the value is restored.
    pub(super) held: Option<File>,
    pub(super) ended: Option<Restoration>,
}

impl KnobChange {
    /// Whether the knob had the wanted value before; false for knobs that end with their process, which are always set.
    pub(super) fn is_already_there(&self) -> bool {
        self.before == self.wanted && !self.knob.ends_with_its_process()
    }

    /// Whether the value would outlive this process.
    pub(super) fn outlives_process(&self) -> bool {
        let in_a_lab = self.knob.is_of_interface() && self.namespace.is_some();
        !in_a_lab && !self.knob.ends_with_its_process()
    }

    /// The entry for the journal; `None` if the value ends with this process or was there before.
    pub(super) fn entry(&self) -> Option<JournalRecord> {
        (self.outlives_process() && !self.is_already_there()).then(|| self.as_entry())
    }

    pub(super) fn as_entry(&self) -> JournalRecord {
        JournalRecord {
            setting: self.setting.clone(),
            knob: self.knob.clone(),
            at: self.identity.clone(),
            before: self.before.clone(),
            ours: self.read_back.clone().unwrap_or_else(|| self.wanted.clone()),
        }
    }

    /// Whether `entry` is about the same knob.
    pub(super) fn overlaps(&self, entry: &JournalRecord) -> bool {
        entry.knob.overlaps(&self.knob) && entry.at.shares_namespace(&self.identity)
    }

    pub(super) fn refused(&self, source: io::Error) -> KnobError {
        KnobError::Refused { setting: self.setting.clone(), place: self.knob.to_string(), source }
    }

    pub(super) fn facts(&self, root: &HostRoot) -> SettingFacts {
        SettingFacts {
            setting: self.setting.clone(),
            at: self.at.word().into(),
            place: self.knob.to_string(),
            places: 1,
            root: root.elsewhere().map(|path| path.display().to_string()),
            before: self.before.clone(),
            set: self.wanted.clone(),
            read_back: self.read_back.clone(),
            ended: self.ended.clone(),
        }
    }
}

/// Finds the changes that one setting needs.
struct Search<'a> {
    spec: &'a SettingSpec,
    path: &'a PathInterfaces,
    root: &'a HostRoot,
}

/// The changes that `spec` needs, with the values before.
pub(super) fn find_changes(
    spec: &SettingSpec,
    path: &PathInterfaces,
    root: &HostRoot,
) -> Result<Vec<KnobChange>, KnobError> {
    let search = Search { spec, path, root };
    match &spec.setting {
        Setting::Governor(name) => search.governors(name),
        Setting::CpuDmaLatency(us) => search.of_host([(Knob::CpuDmaLatency, us.to_string())]),
        Setting::IdleStates(limit) => search.idle_states(limit),
        Setting::TimerSlack(ns) => {
            let change = search.change(spec.ends(path.one_host), Knob::TimerSlack, None, ns.to_string());
            change.map(|change| vec![change])
        }
        Setting::IrqAffinity(irqs) => {
            search.require_online(irqs.iter().flat_map(|irq| &irq.cpus))?;
            search.of_host(irqs.iter().map(|one| (Knob::IrqAffinity { irq: one.irq }, one.cpu_list())))
        }
        Setting::RtRuntime(us) => search.of_host([(Knob::RtRuntime, us.to_string())]),
        Setting::BusyPoll(us) => search.of_host([Knob::BusyPoll, Knob::BusyRead].map(|knob| (knob, us.to_string()))),
        Setting::SocketBuffer(bytes) => {
            search.of_host([Knob::ReceiveBufferMax, Knob::SendBufferMax].map(|knob| (knob, bytes.to_string())))
        }
        Setting::Coalesce(values) => search.of_interfaces(|interface| {
            let parameters = values.iter().map(|(name, _)| name.clone()).collect();
            let wanted: Vec<String> = values.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            Ok(vec![(Knob::Coalesce { interface: interface.interface.clone(), parameters }, wanted.join(" "))])
        }),
        Setting::Offload(features) => search.of_interfaces(|interface| search.offloads(interface, features)),
        Setting::Mtu(bytes) => search.of_interfaces(|interface| {
            search.require_ipv6_mtu(*bytes, interface)?;
            Ok(vec![(Knob::Mtu { interface: interface.interface.clone() }, bytes.to_string())])
        }),
    }
}

impl Search<'_> {
    fn absent(&self, cause: impl Into<String>, hint: impl Into<String>) -> KnobError {
        KnobError::Absent { setting: self.spec.to_string(), cause: cause.into(), hint: hint.into() }
    }

    fn change(
        &self,
        at: Side,
        knob: Knob,
        namespace: Option<Arc<File>>,
        wanted: String,
    ) -> Result<KnobChange, KnobError> {
        let read = within(namespace.as_ref(), || Ok((knob.read(self.root)?, NetnsIdentity::read(&knob)?)));
        let (before, identity) = read.map_err(|error| self.unreadable(&knob, error))?;
        let setting = self.spec.to_string();
        let (read_back, held, ended) = (None, None, None);
        Ok(KnobChange { setting, at, knob, namespace, identity, before, wanted, read_back, held, ended })
    }

    fn unreadable(&self, knob: &Knob, source: io::Error) -> KnobError {
        let missing = source.kind() == io::ErrorKind::NotFound
            || matches!(Errno::from_io_error(&source), Some(Errno::NODEV | Errno::OPNOTSUPP));
        if missing {
            self.absent(
                format!("this host does not have `{knob}`: {}", explain(&source)),
                "leave this setting out; nothing was changed",
            )
        } else {
            KnobError::Refused { setting: self.spec.to_string(), place: knob.to_string(), source }
        }
    }

    /// Changes of knobs of which the host has exactly one.
    fn of_host(&self, wanted: impl IntoIterator<Item = (Knob, String)>) -> Result<Vec<KnobChange>, KnobError> {
        let namespace = &self.path.host_namespace;
        wanted.into_iter().map(|(knob, value)| self.change(Side::Local, knob, namespace.clone(), value)).collect()
    }

    fn of_interfaces(
        &self,
        knobs: impl Fn(&NetnsInterface) -> Result<Vec<(Knob, String)>, KnobError>,
    ) -> Result<Vec<KnobChange>, KnobError> {
        let mut changes = Vec::new();
        for (side, found) in self.path.of_ends(self.spec.ends(self.path.one_host)) {
            let name = self.spec.interface.clone().unwrap_or(found.interface);
            // An interface can have alternative names; journals have the canonical one.
            let interface = within(found.namespace.as_ref(), || canonical_name(&name)).unwrap_or(name);
            let interface = NetnsInterface { interface, namespace: found.namespace };
            for (knob, wanted) in knobs(&interface)? {
                changes.push(self.change(side, knob, interface.namespace.clone(), wanted)?);
            }
        }
        if changes.is_empty() {
            let knob = self.spec.setting.knob();
            return Err(self.absent(
                "the interface of the path is not known",
                format!("name it: `{knob}:eth0={}`", self.spec.setting),
            ));
        }
        Ok(changes)
    }

    fn governors(&self, wanted: &str) -> Result<Vec<KnobChange>, KnobError> {
        let mut changes = Vec::new();
        for policy in numbered(self.root.names(POLICIES), "policy") {
            let offered = self.root.text(&format!("{POLICIES}/policy{policy}/scaling_available_governors"));
            if let Some(offered) = offered.ok().filter(|offered| !offered.split(' ').any(|name| name == wanted)) {
                return Err(self.absent(
                    format!("`policy{policy}` offers `{offered}`"),
                    "choose one of these; a module may bring more (`modprobe cpufreq_performance`)",
                ));
            }
            changes.push(self.change(Side::Local, Knob::Governor { policy }, None, wanted.to_owned())?);
        }
        if changes.is_empty() {
            return Err(self.absent(
                "the kernel does not set frequencies here",
                "a virtual machine's host sets them; leave this setting out",
            ));
        }
        Ok(changes)
    }

    fn idle_states(&self, limit: &IdleStates) -> Result<Vec<KnobChange>, KnobError> {
        let mut changes = Vec::new();
        let mut names = Vec::new();
        for cpu in numbered::<u16>(self.root.names(CPUS), "cpu") {
            let directory = format!("{CPUS}/cpu{cpu}/cpuidle");
            for state in numbered::<u16>(self.root.names(&directory), "state") {
                let of_state = |file: &str| self.root.line(&format!("{directory}/state{state}/{file}"));
                let knob = Knob::IdleState { cpu, state };
                let name = of_state("name").map_err(|error| self.unreadable(&knob, error))?;
                let off = match limit {
                    IdleStates::Off(wanted) => wanted.contains(&name),
                    IdleStates::MaxUs(longest) => {
                        let latency = of_state("latency").map_err(|error| self.unreadable(&knob, error))?;
                        latency.parse::<u32>().is_ok_and(|us| us > *longest)
                    }
                };
                names.push(name);
                if off {
                    changes.push(self.change(Side::Local, knob, None, "1".into())?);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Err(self.absent("the kernel manages no idle states here", "leave this setting out"));
        }
        match limit {
            IdleStates::Off(wanted) => match wanted.iter().find(|name| !names.contains(*name)) {
                Some(name) => {
                    Err(self.absent(format!("no CPU has a state `{name}`"), format!("there are {}", names.join(", "))))
                }
                None => Ok(changes),
            },
            IdleStates::MaxUs(_) => Ok(changes),
        }
    }

    /// Refuses CPUs that are offline, which the kernel would ignore.
    fn require_online<'a>(&self, mut wanted: impl Iterator<Item = &'a u16>) -> Result<(), KnobError> {
        let Ok(list) = self.root.text("sys/devices/system/cpu/online") else { return Ok(()) };
        let Some(online) = parse_cpu_list(&list) else { return Ok(()) };
        match wanted.find(|cpu| !online.contains(cpu)) {
            Some(cpu) => Err(self.absent(format!("there is no CPU {cpu}"), format!("the CPUs online are {list}"))),
            None => Ok(()),
        }
    }

    /// One knob for each word of `wanted`, with the features of the word that can be changed here.
    fn offloads(
        &self,
        interface: &NetnsInterface,
        wanted: &[(String, bool)],
    ) -> Result<Vec<(Knob, String)>, KnobError> {
        let asked = within(interface.namespace.as_ref(), || {
            ethtool::features(latlab_sys::socket::udp(AddressFamily::Ipv4)?.as_fd(), &interface.interface)
        });
        let knob = |features| Knob::Offload { interface: interface.interface.clone(), features };
        let known = asked.map_err(|error| self.unreadable(&knob(Vec::new()), error))?;
        let mut knobs = Vec::new();
        for (word, on) in wanted {
            let group = known.iter().filter(|feature| is_in_group(&feature.name, word));
            let (free, fixed): (Vec<_>, Vec<_>) = group.partition(|feature| feature.changeable);
            let stuck = !*on && fixed.iter().any(|feature| feature.active);
            if free.is_empty() || stuck {
                let cause = match (free.is_empty() && fixed.is_empty(), &interface.interface) {
                    (true, _) => format!("this kernel has no feature `{word}`"),
                    (false, name) => format!("the driver of `{name}` does not let `{word}` be changed"),
                };
                return Err(
                    self.absent(cause, format!("`ethtool -k {}` shows what can be changed", interface.interface))
                );
            }
            let names: Vec<String> = free.iter().map(|feature| feature.name.clone()).collect();
            let values: Vec<String> = names.iter().map(|name| format!("{name}:{}", on_or_off(*on))).collect();
            knobs.push((knob(names), values.join(" ")));
        }
        Ok(knobs)
    }

    /// Refuses an MTU below that of IPv6 if addresses would be lost, or if the run needs them.
    ///
    /// Below 1280 bytes Linux removes IPv6 from an interface, with addresses, routes and settings, which do not return with
    /// the old MTU, so that the change could not be undone. If IPv6 is disabled for the interface alone (`disable_ipv6`) the
    /// kernel forgets that too, and adds addresses when the old MTU is restored, so this is refused as well.
    fn require_ipv6_mtu(&self, bytes: u32, interface: &NetnsInterface) -> Result<(), KnobError> {
        let name = &interface.interface;
        match (&interface.namespace, self.path.over_ipv6) {
            _ if bytes >= IPV6_LEAST_BYTES => Ok(()),
            (Some(_), true) => Err(self.absent(
                format!("an interface below {IPV6_LEAST_BYTES} bytes has no IPv6, and this path is IPv6"),
                "measure over IPv4 (`-4`), or set 1280 or more",
            )),
            (None, _) if has_ipv6(interface) => Err(self.absent(
                format!(
                    "below {IPV6_LEAST_BYTES} bytes the kernel takes IPv6 off `{name}`: its addresses and routes \
                     would be lost for good"
                ),
                "set 1280 or more; `latlab ping lab -4` has interfaces of its own, which can be smaller",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether the kernel has settings of IPv6 for the interface, with or without addresses.
fn has_ipv6(interface: &NetnsInterface) -> bool {
    let settings = format!("proc/sys/net/ipv6/conf/{}", interface.interface);
    within(interface.namespace.as_ref(), || Ok(!HostRoot::live().names(&settings).is_empty())).unwrap_or(true)
}

/// Whether the feature is one of those that `ethtool -K` calls `word`.
fn is_in_group(feature: &str, word: &str) -> bool {
    match word {
        "tx-checksum" => feature.starts_with("tx-checksum-"),
        "sg" => feature.starts_with("tx-scatter-gather"),
        "tso" => feature.starts_with("tx-tcp") && feature.ends_with("-segmentation"),
        "gso" => feature == "tx-generic-segmentation",
        "gro" => feature == "rx-gro",
        "lro" => feature == "rx-lro",
        other => feature == other,
    }
}

/// The numbers after `prefix` in `names`, ascending.
fn numbered<T: std::str::FromStr + Ord>(names: Vec<String>, prefix: &str) -> Vec<T> {
    let mut numbers: Vec<T> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_that_would_remove_ipv6_is_refused() {
        let spec = SettingSpec { setting: Setting::Mtu(1_279), interface: None, side: None };
        let root = HostRoot::live();
        let refused = |bytes, interface: &NetnsInterface, path: &PathInterfaces| {
            Search { spec: &spec, path, root: &root }.require_ipv6_mtu(bytes, interface).is_err()
        };
        let at = |name: &str| NetnsInterface { interface: name.into(), namespace: None };
        let loopback = PathInterfaces::loopback();
        // A name without settings of IPv6 represents an interface without it.
        for (bytes, name, expected) in [(1_280, "lo", false), (1_279, "lo", has_ipv6(&at("lo"))), (68, "none", false)] {
            assert_eq!(refused(bytes, &at(name), &loopback), expected, "{bytes} {name}");
        }
        let namespace = Some(Arc::new(File::open("/proc/self/ns/net").expect("Linux")));
        let in_a_lab = NetnsInterface { interface: "lab0".into(), namespace };
        for over_ipv6 in [true, false] {
            let path = PathInterfaces { over_ipv6, ..PathInterfaces::loopback() };
            assert_eq!(refused(1_279, &in_a_lab, &path), over_ipv6);
        }
    }
}
