//! From a setting to the knobs it turns on this host: found, read, and nothing changed yet.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use latlab_sys::address::Family;
use latlab_sys::errno::explain;
use latlab_sys::ethtool;
use rustix::io::Errno;

use super::cpu_list;
use super::ground::{NetnsInterface, PathInterfaces, within};
use super::knob::{Knob, on_or_off};
use super::knob_refusal::KnobError;
use super::root::HostRoot;
use super::small_mtu;
use super::whereabouts::{NetnsIdentity, name_of};
use crate::facts::Restoration;
use crate::plan::{IdleStates, Setting, SettingSpec, Side};

const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
const CPUS: &str = "sys/devices/system/cpu";

/// One knob to be turned, or turned.
#[derive(Debug)]
pub(super) struct KnobChange {
    pub(super) setting: String,
    /// At which end.
    pub(super) at: Side,
    pub(super) knob: Knob,
    /// Where it is turned; none: where the calling thread is.
    pub(super) network: Option<Arc<File>>,
    pub(super) whereabouts: NetnsIdentity,
    pub(super) before: String,
    pub(super) wanted: String,
    /// None: not turned yet.
    pub(super) read_back: Option<String>,
    /// What must be held meanwhile.
    pub(super) held: Option<File>,
    pub(super) ended: Option<Restoration>,
}

/// One setting on its way to turns.
struct Search<'a> {
    spec: &'a SettingSpec,
    ground: &'a PathInterfaces,
    root: &'a HostRoot,
}

/// The turns of `spec`, read but not turned.
pub(super) fn turns(
    spec: &SettingSpec,
    ground: &PathInterfaces,
    root: &HostRoot,
) -> Result<Vec<KnobChange>, KnobError> {
    let search = Search { spec, ground, root };
    match &spec.setting {
        Setting::Governor(name) => search.governors(name),
        Setting::CpuDmaLatency(us) => search.of_host([(Knob::CpuDmaLatency, us.to_string())]),
        Setting::IdleStates(wish) => search.idle_states(wish),
        Setting::TimerSlack(ns) => {
            search.turn(spec.ends(ground.one_host), Knob::TimerSlack, None, ns.to_string()).map(|turn| vec![turn])
        }
        Setting::IrqAffinity(irqs) => {
            search.cpus_are_online(irqs.iter().flat_map(|irq| &irq.cpus))?;
            search.of_host(irqs.iter().map(|one| (Knob::IrqAffinity { irq: one.irq }, one.cpu_list())))
        }
        Setting::RtRuntime(us) => search.of_host([(Knob::RtRuntime, us.to_string())]),
        Setting::BusyPoll(us) => search.of_host([Knob::BusyPoll, Knob::BusyRead].map(|knob| (knob, us.to_string()))),
        Setting::SocketBuffer(bytes) => {
            search.of_host([Knob::ReceiveBufferMax, Knob::SendBufferMax].map(|knob| (knob, bytes.to_string())))
        }
        Setting::Coalesce(values) => search.of_interfaces(|spot| {
            let parameters = values.iter().map(|(name, _)| name.clone()).collect();
            let wanted: Vec<String> = values.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            Ok(vec![(Knob::Coalesce { interface: spot.interface.clone(), parameters }, wanted.join(" "))])
        }),
        Setting::Offload(features) => search.of_interfaces(|spot| search.offloads(spot, features)),
        Setting::Mtu(bytes) => search.of_interfaces(|spot| {
            small_mtu::refuse(spec, *bytes, spot, ground)?;
            Ok(vec![(Knob::Mtu { interface: spot.interface.clone() }, bytes.to_string())])
        }),
    }
}

impl Search<'_> {
    fn absent(&self, cause: impl Into<String>, hint: impl Into<String>) -> KnobError {
        KnobError::Absent { setting: self.spec.to_string(), cause: cause.into(), hint: hint.into() }
    }

    fn turn(&self, at: Side, knob: Knob, network: Option<Arc<File>>, wanted: String) -> Result<KnobChange, KnobError> {
        let read = within(network.as_ref(), || Ok((knob.read(self.root)?, NetnsIdentity::of(&knob)?)));
        let (before, whereabouts) = read.map_err(|error| self.unreadable(&knob, error))?;
        let setting = self.spec.to_string();
        let (read_back, held, ended) = (None, None, None);
        Ok(KnobChange { setting, at, knob, network, whereabouts, before, wanted, read_back, held, ended })
    }

    fn unreadable(&self, knob: &Knob, source: io::Error) -> KnobError {
        let missing = source.kind() == io::ErrorKind::NotFound
            || matches!(Errno::from_io_error(&source), Some(Errno::NODEV | Errno::OPNOTSUPP));
        match missing {
            true => self.absent(
                format!("this host does not have `{knob}`: {}", explain(&source)),
                "leave this `--set` out; nothing was changed",
            ),
            false => KnobError::Refused { setting: self.spec.to_string(), place: knob.to_string(), source },
        }
    }

    /// Knobs that the host has once.
    fn of_host(&self, wanted: impl IntoIterator<Item = (Knob, String)>) -> Result<Vec<KnobChange>, KnobError> {
        let turn = |(knob, value)| self.turn(Side::Local, knob, self.ground.home.clone(), value);
        wanted.into_iter().map(turn).collect()
    }

    fn of_interfaces(
        &self,
        knobs: impl Fn(&NetnsInterface) -> Result<Vec<(Knob, String)>, KnobError>,
    ) -> Result<Vec<KnobChange>, KnobError> {
        let mut turns = Vec::new();
        for (side, spot) in self.ground.spots(self.spec.ends(self.ground.one_host)) {
            let interface = self.spec.interface.clone().unwrap_or(spot.interface);
            // An interface can have several names, and one of them is what journals know it by.
            let interface = within(spot.network.as_ref(), || name_of(&interface)).unwrap_or(interface);
            let spot = NetnsInterface { interface, ..spot };
            for (knob, wanted) in knobs(&spot)? {
                turns.push(self.turn(side, knob, spot.network.clone(), wanted)?);
            }
        }
        if turns.is_empty() {
            let knob = self.spec.setting.knob();
            return Err(self.absent(
                "the kernel does not tell through which interface the path leaves",
                format!("name it: `{knob}:eth0={}`", self.spec.setting),
            ));
        }
        Ok(turns)
    }

    fn governors(&self, wanted: &str) -> Result<Vec<KnobChange>, KnobError> {
        let mut turns = Vec::new();
        for policy in numbered(self.root.names(POLICIES), "policy") {
            let offered = self.root.text(&format!("{POLICIES}/policy{policy}/scaling_available_governors"));
            if let Some(offered) = offered.ok().filter(|offered| !offered.split(' ').any(|name| name == wanted)) {
                return Err(self.absent(
                    format!("`policy{policy}` offers `{offered}`"),
                    "choose one of these; a module may bring more (`modprobe cpufreq_performance`)",
                ));
            }
            turns.push(self.turn(Side::Local, Knob::Governor { policy }, None, wanted.to_owned())?);
        }
        if turns.is_empty() {
            return Err(self.absent(
                "the kernel does not set frequencies here",
                "a virtual machine's host sets them; leave this `--set` out",
            ));
        }
        Ok(turns)
    }

    fn idle_states(&self, wish: &IdleStates) -> Result<Vec<KnobChange>, KnobError> {
        let mut turns = Vec::new();
        let mut names = Vec::new();
        for cpu in numbered::<u16>(self.root.names(CPUS), "cpu") {
            let directory = format!("{CPUS}/cpu{cpu}/cpuidle");
            for state in numbered::<u16>(self.root.names(&directory), "state") {
                let of_state = |file: &str| self.root.line(&format!("{directory}/state{state}/{file}"));
                let knob = Knob::IdleState { cpu, state };
                let name = of_state("name").map_err(|error| self.unreadable(&knob, error))?;
                let off = match wish {
                    IdleStates::Off(wanted) => wanted.contains(&name),
                    IdleStates::MaxUs(longest) => {
                        let latency = of_state("latency").map_err(|error| self.unreadable(&knob, error))?;
                        latency.parse::<u32>().is_ok_and(|us| us > *longest)
                    }
                };
                names.push(name);
                if off {
                    turns.push(self.turn(Side::Local, knob, None, "1".into())?);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Err(self.absent("the kernel manages no idle states here", "leave this `--set` out"));
        }
        match wish {
            IdleStates::Off(wanted) => match wanted.iter().find(|name| !names.contains(*name)) {
                Some(name) => {
                    Err(self.absent(format!("no CPU has a state `{name}`"), format!("there are {}", names.join(", "))))
                }
                None => Ok(turns),
            },
            IdleStates::MaxUs(_) => Ok(turns),
        }
    }

    /// The kernel drops CPUs that are off without a word.
    fn cpus_are_online<'a>(&self, mut wanted: impl Iterator<Item = &'a u16>) -> Result<(), KnobError> {
        let Ok(list) = self.root.text("sys/devices/system/cpu/online") else { return Ok(()) };
        let Some(online) = cpu_list::parse(&list) else { return Ok(()) };
        match wanted.find(|cpu| !online.contains(cpu)) {
            Some(cpu) => Err(self.absent(format!("there is no CPU {cpu}"), format!("the CPUs online are {list}"))),
            None => Ok(()),
        }
    }

    /// One knob for each word: the features that it stands for and that can be changed here.
    fn offloads(&self, spot: &NetnsInterface, wanted: &[(String, bool)]) -> Result<Vec<(Knob, String)>, KnobError> {
        let asked = within(spot.network.as_ref(), || {
            ethtool::features(latlab_sys::socket::udp(Family::Ipv4)?.as_fd(), &spot.interface)
        });
        let knob = |features| Knob::Offload { interface: spot.interface.clone(), features };
        let known = asked.map_err(|error| self.unreadable(&knob(Vec::new()), error))?;
        let mut knobs = Vec::new();
        for (word, on) in wanted {
            let group = known.iter().filter(|feature| is_of_group(&feature.name, word));
            let (free, fixed): (Vec<_>, Vec<_>) = group.partition(|feature| feature.changeable);
            let stuck = !*on && fixed.iter().any(|feature| feature.active);
            if free.is_empty() || stuck {
                let cause = match (free.is_empty() && fixed.is_empty(), &spot.interface) {
                    (true, _) => format!("this kernel has no feature `{word}`"),
                    (false, name) => format!("the driver of `{name}` does not let `{word}` be changed"),
                };
                return Err(self.absent(cause, format!("`ethtool -k {}` shows what can be changed", spot.interface)));
            }
            let names: Vec<String> = free.iter().map(|feature| feature.name.clone()).collect();
            let values: Vec<String> = names.iter().map(|name| format!("{name}:{}", on_or_off(*on))).collect();
            knobs.push((knob(names), values.join(" ")));
        }
        Ok(knobs)
    }
}

/// Whether the feature is one of those that `ethtool -K` calls `word`.
fn is_of_group(feature: &str, word: &str) -> bool {
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

/// The numbers behind `prefix`, ascending.
fn numbered<T: std::str::FromStr + Ord>(names: Vec<String>, prefix: &str) -> Vec<T> {
    let mut numbers: Vec<T> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
