//! What shall be set on a host for the time of a run: `--set KNOB[:DEV][@WHERE]=VALUE`, settled.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Side;

/// A knob and the value it shall have. Numbers are in the kernel's own units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "knob", content = "value")]
pub enum Setting {
    /// The frequency governor of every CPU.
    Governor(String),
    /// The longest wake-up of an idle CPU that the kernel may choose, in µs (PM QoS).
    CpuDmaLatency(u32),
    /// Which idle states are switched off.
    IdleStates(IdleStates),
    /// How late the kernel may let a thread's timers be, to fire several at once, in ns.
    TimerSlack(u64),
    /// Which CPUs serve which interrupt.
    IrqAffinity(Vec<IrqCpus>),
    /// How long real-time threads may run in each period, in µs; −1: no limit.
    RtRuntime(i64),
    /// How long the kernel polls a driver before it lets a reader sleep, in µs.
    BusyPoll(u32),
    /// How an interface gathers packets before it interrupts: parameter and value, as `ethtool -C` has them.
    Coalesce(Vec<(String, u32)>),
    /// Which work an interface does for the kernel: feature and whether it is on, as `ethtool -K` has them.
    Offload(Vec<(String, bool)>),
    /// The largest packet that an interface sends, in bytes.
    Mtu(u32),
    /// The largest socket buffer that anybody may ask for, both directions, in bytes.
    SocketBuffer(u32),
}

/// Idle states to be switched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleStates {
    /// Those that take longer to leave than this, in µs. 0 leaves polling only.
    MaxUs(u32),
    /// Those of these names, such as `C6`.
    Off(Vec<String>),
}

/// An interrupt and the CPUs that serve it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqCpus {
    /// Its number in `/proc/interrupts`.
    pub irq: u32,
    /// Ascending, each once.
    pub cpus: Vec<u16>,
}

/// The knobs, in the order of the documents.
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
    /// The knob's name.
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

    /// Whether it is about an interface.
    pub const fn is_of_an_interface(&self) -> bool {
        matches!(self, Setting::Coalesce(_) | Setting::Offload(_) | Setting::Mtu(_))
    }

    /// Whether each end of the path has one of its own even where both are on one host: an interface in `lab`, or
    /// the thread that measures or reflects.
    pub const fn is_of_an_end(&self) -> bool {
        self.is_of_an_interface() || matches!(self, Setting::TimerSlack(_))
    }
}

/// The value, as it can be typed.
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
    /// The CPUs as the kernel writes them: `0-2,6`.
    pub fn cpu_list(&self) -> String {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for cpu in &self.cpus {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
                _ => ranges.push((*cpu, *cpu)),
            }
        }
        joined(&ranges, |(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
    }
}

/// One `--set`, settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingSpec {
    /// The knob and its value.
    pub setting: Setting,
    /// The interface that was named; none: that of the measured path.
    pub interface: Option<String>,
    /// At which end, as typed; none: this host, which on `local` and `lab` is both ends.
    pub side: Option<Side>,
}

impl SettingSpec {
    /// What is set where, as it can be typed before the `=`: `mtu:eth1@peer`.
    pub fn place(&self) -> String {
        let interface = self.interface.as_ref().map(|name| format!(":{name}")).unwrap_or_default();
        let side = self.side.map(|side| format!("@{side}")).unwrap_or_default();
        format!("{}{interface}{side}", self.setting.knob())
    }

    /// The ends that it is about, on one host (`local`, `lab`) or on hosts of their own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_the_kernels() {
        for (cpus, text) in [(vec![0], "0"), (vec![0, 1], "0-1"), (vec![0, 1, 2, 6], "0-2,6"), (vec![1, 3], "1,3")] {
            assert_eq!(IrqCpus { irq: 1, cpus }.cpu_list(), text);
        }
    }

    #[test]
    fn on_one_host_only_what_ends_have_of_their_own_has_a_side() {
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
