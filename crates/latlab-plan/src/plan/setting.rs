//! Settings of a host for the time of a run: `--set KNOB[:DEV][@WHERE]=VALUE`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::human::typed_cpus;

/// A knob and its value. Numbers are in the units of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "knob", content = "value")]
pub enum Setting {
    /// The frequency governor of every CPU.
    Governor(String),
    /// The longest exit latency of idle states that the kernel may choose, in µs (PM QoS).
    CpuDmaLatency(u32),
    /// Which idle states of CPUs are disabled.
    IdleStates(IdleStates),
    /// Timer slack of a thread, by which the kernel may delay its timers to coalesce them, in ns.
    TimerSlack(u64),
    /// The CPUs that serve each interrupt.
    IrqAffinity(Vec<IrqCpus>),
    /// CPU time of real-time threads in each period, in µs; −1: unlimited.
    RtRuntime(i64),
    /// How long the kernel polls a driver before a reader sleeps, in µs.
    BusyPoll(u32),
    /// Interrupt coalescing of an interface: parameter and value of `ethtool -C`.
    Coalesce(Vec<(String, u32)>),
    /// Offloads of an interface: feature of `ethtool -K`, and whether it is on.
    Offload(Vec<(String, bool)>),
    /// The maximum transmission unit of an interface, in bytes.
    Mtu(u32),
    /// The largest buffer of a socket, in both directions, in bytes.
    SocketBuffer(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleStates {
    /// Those with a longer exit latency, in µs. 0 leaves polling only.
    MaxUs(u32),
    /// Those with these names, such as `C6`.
    Off(Vec<String>),
}

/// The CPUs that serve an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqCpus {
    /// Number of the interrupt in `/proc/interrupts`.
    pub irq: u32,
    pub cpus: Vec<u16>,
}

/// The names of all knobs, in the order of docs/conditions.md.
pub const KNOBS: [&str; 11] = [
    "governor",
    "cpu-dma-latency",
    "idle-states",
    "timer-slack",
    "irq-affinity",
    "rt-runtime",
    "busy-poll",
    "coalesce",
    "offload",
    "mtu",
    "socket-buffer",
];

impl Setting {
    /// The name of its knob.
    pub const fn knob(&self) -> &'static str {
        match self {
            Setting::Governor(_) => "governor",
            Setting::CpuDmaLatency(_) => "cpu-dma-latency",
            Setting::IdleStates(_) => "idle-states",
            Setting::TimerSlack(_) => "timer-slack",
            Setting::IrqAffinity(_) => "irq-affinity",
            Setting::RtRuntime(_) => "rt-runtime",
            Setting::BusyPoll(_) => "busy-poll",
            Setting::Coalesce(_) => "coalesce",
            Setting::Offload(_) => "offload",
            Setting::Mtu(_) => "mtu",
            Setting::SocketBuffer(_) => "socket-buffer",
        }
    }

    pub const fn is_of_an_interface(&self) -> bool {
        matches!(self, Setting::Coalesce(_) | Setting::Offload(_) | Setting::Mtu(_))
    }

    /// Whether it applies to each end separately even if both are on one host: to an interface in `lab`, or to the thread
    /// that measures or reflects.
    pub(crate) const fn is_of_an_end(&self) -> bool {
        self.is_of_an_interface() || matches!(self, Setting::TimerSlack(_))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Governor(name) => out.write_str(name),
            Setting::CpuDmaLatency(us) | Setting::BusyPoll(us) => write!(out, "{us}us"),
            Setting::IdleStates(IdleStates::MaxUs(us)) => write!(out, "max-us:{us}"),
            Setting::IdleStates(IdleStates::Off(names)) => write!(out, "off:{}", names.join(",")),
            Setting::TimerSlack(ns) => write!(out, "{ns}ns"),
            Setting::IrqAffinity(irqs) => out.write_str(&joined(irqs, |one| format!("{}:{}", one.irq, one.cpu_list()))),
            Setting::RtRuntime(-1) => out.write_str("-1"),
            Setting::RtRuntime(us) => write!(out, "{us}us"),
            Setting::Coalesce(values) => out.write_str(&joined(values, |(name, value)| format!("{name}:{value}"))),
            Setting::Offload(features) => {
                out.write_str(&joined(features, |(name, on)| format!("{name}:{}", if *on { "on" } else { "off" })))
            }
            Setting::Mtu(bytes) | Setting::SocketBuffer(bytes) => write!(out, "{bytes}"),
        }
    }
}

fn joined<T>(parts: &[T], text: impl Fn(&T) -> String) -> String {
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

impl IrqCpus {
    /// The CPUs in the format of the kernel: `0-2,6`.
    pub fn cpu_list(&self) -> String {
        typed_cpus(&self.cpus)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingSpec {
    /// The knob and its value.
    pub setting: Setting,
    /// The interface; `None`: that of the measured path.
    pub interface: Option<String>,
    /// The end, as typed; `None`: this host, which is both ends of `local` and `lab`.
    pub side: Option<Side>,
}

impl SettingSpec {
    /// Knob, interface and end as typed before the `=`: `mtu:eth1@peer`.
    pub fn place(&self) -> String {
        let interface = self.interface.as_ref().map(|name| format!(":{name}")).unwrap_or_default();
        let side = self.side.map(|side| format!("@{side}")).unwrap_or_default();
        format!("{}{interface}{side}", self.setting.knob())
    }

    /// The ends that it applies to, with both ends on one host (`local`, `lab`) or on separate hosts.
    pub fn ends(&self, one_host: bool) -> Side {
        match self.side {
            None if one_host => Side::Both,
            None => Side::Local,
            Some(_) if one_host && !self.setting.is_of_an_end() => Side::Both,
            Some(side) => side,
        }
    }
}

impl fmt::Display for SettingSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.place(), self.setting)
    }
}

crate::worded! {
    /// An end of the path, or both: `@local`, `@peer`, `@both`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Side: word {
        /// The end that sends probes.
        Local = "local",
        /// The end that reflects them.
        Peer = "peer",
        Both = "both",
    }
}

impl Side {
    pub fn from_word(word: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.word() == word)
    }

    /// Whether it includes this end.
    pub const fn is_local(self) -> bool {
        matches!(self, Side::Local | Side::Both)
    }

    /// Whether it includes the far end.
    pub const fn is_peer(self) -> bool {
        matches!(self, Side::Peer | Side::Both)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_have_the_format_of_the_kernel() {
        for (cpus, text) in [(vec![0], "0"), (vec![0, 1], "0-1"), (vec![0, 1, 2, 6], "0-2,6"), (vec![1, 3], "1,3")] {
            assert_eq!(IrqCpus { irq: 1, cpus }.cpu_list(), text);
        }
    }

    #[test]
    fn a_setting_of_the_host_applies_to_both_ends_on_it() {
        let spec = |setting, side| SettingSpec { setting, interface: None, side };
        let rt = || Setting::RtRuntime(-1);
        for (spec, one_host, ends) in [
            (spec(rt(), None), true, Side::Both),
            (spec(rt(), Some(Side::Peer)), true, Side::Both),
            (spec(rt(), None), false, Side::Local),
            (spec(rt(), Some(Side::Peer)), false, Side::Peer),
            (spec(Setting::Mtu(1_500), None), true, Side::Both),
            (spec(Setting::Mtu(1_500), Some(Side::Peer)), true, Side::Peer),
            (spec(Setting::TimerSlack(1), Some(Side::Local)), true, Side::Local),
        ] {
            assert_eq!(spec.ends(one_host), ends, "{spec} {one_host}");
        }
    }
}
