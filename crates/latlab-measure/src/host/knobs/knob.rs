//! One knob of a host: a value that can be read and set.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use latlab_sys::address::AddressFamily;
use latlab_sys::ethtool::{self, Coalesce};
use serde::{Deserialize, Serialize};

use crate::host::root::HostRoot;

/// A knob. A journal consists of these, so none has a path: a forged journal cannot direct a recovery to another file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Knob {
    /// The governor of one frequency domain.
    Governor {
        policy: u32,
    },
    /// Whether an idle state of a CPU is disabled: `0` or `1`.
    IdleState {
        cpu: u16,
        state: u16,
    },
    /// The CPUs that serve an interrupt.
    IrqAffinity {
        irq: u32,
    },
    RtRuntime,
    /// `net.core.busy_poll`, for poll(2), in µs.
    BusyPoll,
    /// `net.core.busy_read`, for reads, in µs.
    BusyRead,
    /// `net.core.rmem_max`, in bytes.
    ReceiveBufferMax,
    /// `net.core.wmem_max`, in bytes.
    SendBufferMax,
    /// Parameters of an interface's interrupt coalescing: `rx-usecs:8 rx-frames:0`.
    Coalesce {
        interface: String,
        parameters: Vec<String>,
    },
    /// Requested features of an interface: `tx-checksum-ip-generic:on`.
    Offload {
        interface: String,
        /// Which features, by the kernel's names.
        features: Vec<String>,
    },
    /// An interface's largest packet, in bytes.
    Mtu {
        interface: String,
    },
    /// The wake-up latency that this process requests, in µs, as long as it holds the file open
    /// ([pm_qos_interface](https://docs.kernel.org/power/pm_qos_interface.html)).
    CpuDmaLatency,
    /// The timer slack of the calling thread and of the threads and processes that it starts, in ns
    /// ([PR_SET_TIMERSLACK(2const)](https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html)).
    TimerSlack,
}

impl Knob {
    /// Its file, without the leading slash; `None` if it has none.
    pub(super) fn file(&self) -> Option<String> {
        Some(match self {
            Knob::Governor { policy } => format!("sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor"),
            Knob::IdleState { cpu, state } => format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable"),
            Knob::IrqAffinity { irq } => format!("proc/irq/{irq}/smp_affinity_list"),
            Knob::RtRuntime => "proc/sys/kernel/sched_rt_runtime_us".into(),
            Knob::BusyPoll => "proc/sys/net/core/busy_poll".into(),
            Knob::BusyRead => "proc/sys/net/core/busy_read".into(),
            Knob::ReceiveBufferMax => "proc/sys/net/core/rmem_max".into(),
            Knob::SendBufferMax => "proc/sys/net/core/wmem_max".into(),
            Knob::CpuDmaLatency => "dev/cpu_dma_latency".into(),
            Knob::Coalesce { .. } | Knob::Offload { .. } | Knob::Mtu { .. } | Knob::TimerSlack => return None,
        })
    }

    /// Whether the kernel resets it when the process ends, however it ends.
    pub(super) const fn ends_with_its_process(&self) -> bool {
        matches!(self, Knob::CpuDmaLatency | Knob::TimerSlack)
    }

    /// Whether it belongs to a network namespace: its interface does, or its file has the value of the reader's namespace.
    pub(super) const fn is_of_namespace(&self) -> bool {
        self.is_of_interface()
            || matches!(self, Knob::BusyPoll | Knob::BusyRead | Knob::ReceiveBufferMax | Knob::SendBufferMax)
    }

    /// Whether it vanishes with its network namespace.
    pub(super) const fn is_of_interface(&self) -> bool {
        matches!(self, Knob::Coalesce { .. } | Knob::Offload { .. } | Knob::Mtu { .. })
    }

    pub(super) fn interface(&self) -> Option<&str> {
        match self {
            Knob::Coalesce { interface, .. } | Knob::Offload { interface, .. } | Knob::Mtu { interface } => {
                Some(interface)
            }
            _ => None,
        }
    }

    /// Whether both set the same value, or have a feature or parameter in common.
    pub(super) fn overlaps(&self, other: &Knob) -> bool {
        let share = |some: &[String], others: &[String]| some.iter().any(|name| others.contains(name));
        match (self, other) {
            (Knob::Coalesce { interface, parameters }, Knob::Coalesce { interface: other, parameters: others }) => {
                interface == other && share(parameters, others)
            }
            (Knob::Offload { interface, features }, Knob::Offload { interface: other, features: others }) => {
                interface == other && share(features, others)
            }
            _ => self == other,
        }
    }

    pub(super) fn read(&self, root: &HostRoot) -> io::Result<String> {
        match self {
            Knob::Coalesce { interface, parameters } => {
                let mut current = ethtool::coalesce(any_socket()?.as_fd(), interface)?;
                Ok(listed(parameters, |name| field(&mut current, name).map(|value| value.to_string()))?)
            }
            Knob::Offload { interface, features } => {
                let current = ethtool::features(any_socket()?.as_fd(), interface)?;
                let state = |name: &str| {
                    let feature = current.iter().find(|feature| feature.name == name)?;
                    Some(on_or_off(feature.requested).to_owned())
                };
                Ok(listed(features, state)?)
            }
            Knob::Mtu { interface } => Ok(ethtool::mtu_bytes(any_socket()?.as_fd(), interface)?.to_string()),
            Knob::TimerSlack => Ok(rustix::thread::current_timer_slack()?.to_string()),
            Knob::CpuDmaLatency => {
                let bytes = root.bytes(&self.file().unwrap_or_default())?;
                let number = bytes.first_chunk::<4>().ok_or(io::ErrorKind::InvalidData)?;
                Ok(i32::from_ne_bytes(*number).to_string())
            }
            _ => root.line(&self.file().unwrap_or_default()),
        }
    }

    /// Sets the value. A returned file must be held open as long as the value is needed.
    pub(super) fn set(&self, root: &HostRoot, value: &str) -> io::Result<Option<File>> {
        match self {
            Knob::Coalesce { interface, .. } => {
                let socket = any_socket()?;
                let mut wanted = ethtool::coalesce(socket.as_fd(), interface)?;
                for (name, value) in pairs(value) {
                    let place = field(&mut wanted, name).ok_or(io::ErrorKind::InvalidInput)?;
                    *place = value.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
                }
                ethtool::set_coalesce(socket.as_fd(), interface, wanted)?;
            }
            Knob::Offload { interface, .. } => {
                let wanted: Vec<(&str, bool)> = pairs(value).map(|(name, state)| (name, state == "on")).collect();
                ethtool::set_features(any_socket()?.as_fd(), interface, &wanted)?;
            }
            Knob::Mtu { interface } => {
                ethtool::set_mtu_bytes(any_socket()?.as_fd(), interface, number(value)?)?;
            }
            Knob::TimerSlack => {
                let slack_ns: u64 = number(value)?;
                rustix::thread::set_current_timer_slack(NonZeroU64::new(slack_ns))?;
            }
            Knob::CpuDmaLatency => {
                let path = root.path(&self.file().unwrap_or_default());
                let mut file = OpenOptions::new().write(true).open(path)?;
                file.write_all(&number::<i32>(value)?.to_ne_bytes())?;
                return Ok(Some(file));
            }
            _ => root.write(&self.file().unwrap_or_default(), value)?,
        }
        Ok(None)
    }

    /// Whether `found`, read back, fulfils `wanted`. Of several requested wake-up latencies the shortest holds, so a shorter
    /// one fulfils a request too.
    pub(super) fn agrees(&self, wanted: &str, found: &str) -> bool {
        match self {
            Knob::CpuDmaLatency => {
                found.parse::<i32>().is_ok_and(|found| wanted.parse().is_ok_and(|wanted: i32| found <= wanted))
            }
            _ => wanted == found,
        }
    }

    /// Whether the value is in force; a feature can be requested without being switched.
    pub(super) fn is_in_force(&self, wanted: &str) -> io::Result<bool> {
        let Knob::Offload { interface, features } = self else { return Ok(true) };
        let current = ethtool::features(any_socket()?.as_fd(), interface)?;
        let active = current.iter().filter(|feature| features.contains(&feature.name)).any(|feature| feature.active);
        // Features of a group exclude each other (checksums per IP version, or for all protocols): one is enough.
        Ok(active == pairs(wanted).any(|(_, state)| state == "on"))
    }
}

/// For users: the path, or the interface and its property.
impl fmt::Display for Knob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knob::Coalesce { interface, .. } => write!(out, "{interface} coalesce"),
            Knob::Offload { interface, features } => write!(out, "{interface} {}", features.join(" ")),
            Knob::Mtu { interface } => write!(out, "{interface} mtu"),
            Knob::TimerSlack => out.write_str("timer slack"),
            _ => write!(out, "/{}", self.file().unwrap_or_default()),
        }
    }
}

/// A socket for requests to drivers.
fn any_socket() -> io::Result<OwnedFd> {
    latlab_sys::socket::udp(AddressFamily::Ipv4)
}

pub(super) const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn listed(names: &[String], mut value: impl FnMut(&str) -> Option<String>) -> Result<String, io::ErrorKind> {
    let mut parts = Vec::with_capacity(names.len());
    for name in names {
        parts.push(format!("{name}:{}", value(name).ok_or(io::ErrorKind::NotFound)?));
    }
    Ok(parts.join(" "))
}

fn pairs(value: &str) -> impl Iterator<Item = (&str, &str)> {
    value.split(' ').filter_map(|part| part.rsplit_once(':'))
}

fn number<T: std::str::FromStr>(value: &str) -> io::Result<T> {
    value.parse().map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn field<'a>(coalesce: &'a mut Coalesce, name: &str) -> Option<&'a mut u32> {
    Some(match name {
        "rx-usecs" => &mut coalesce.rx_usecs,
        "rx-frames" => &mut coalesce.rx_frames,
        "rx-usecs-irq" => &mut coalesce.rx_usecs_irq,
        "rx-frames-irq" => &mut coalesce.rx_frames_irq,
        "tx-usecs" => &mut coalesce.tx_usecs,
        "tx-frames" => &mut coalesce.tx_frames,
        "tx-usecs-irq" => &mut coalesce.tx_usecs_irq,
        "tx-frames-irq" => &mut coalesce.tx_frames_irq,
        "adaptive-rx" => &mut coalesce.adaptive_rx,
        "adaptive-tx" => &mut coalesce.adaptive_tx,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_wake_up_latency_fulfils_a_request() {
        for (wanted, found, agrees) in [("10", "10", true), ("10", "0", true), ("0", "10", false), ("0", "", false)] {
            assert_eq!(Knob::CpuDmaLatency.agrees(wanted, found), agrees, "{wanted} {found}");
        }
        assert!(!Knob::RtRuntime.agrees("10", "0"));
    }

    #[test]
    fn knobs_with_a_common_feature_overlap() {
        let offload = |interface: &str, features: &[&str]| Knob::Offload {
            interface: interface.into(),
            features: features.iter().map(ToString::to_string).collect(),
        };
        let tso = ["tx-tcp-segmentation", "tx-tcp6-segmentation"];
        for (one, other, overlaps) in [
            (offload("lo", &tso), offload("lo", &tso[..1]), true),
            (offload("lo", &tso), offload("eth0", &tso), false),
            (offload("lo", &tso), offload("lo", &["rx-gro"]), false),
            (Knob::Mtu { interface: "lo".into() }, Knob::Mtu { interface: "lo".into() }, true),
            (Knob::Mtu { interface: "lo".into() }, offload("lo", &tso), false),
            (Knob::BusyPoll, Knob::BusyRead, false),
        ] {
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (overlaps, overlaps), "{one} {other}");
        }
    }

    #[test]
    fn a_knob_in_the_journal_has_no_path() {
        let offload = Knob::Offload { interface: "lo".into(), features: vec!["rx-gro".into()] };
        for knob in [Knob::RtRuntime, Knob::IdleState { cpu: 1, state: 2 }, offload] {
            let text = serde_json::to_string(&knob).expect("plain");
            assert!(!text.contains('/'), "{text}");
            assert_eq!(serde_json::from_str::<Knob>(&text).expect("its own text"), knob);
        }
    }
}
