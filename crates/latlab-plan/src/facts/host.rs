//! The facts of a host, and the findings of `latlab doctor` about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clock::ClockFacts;
use super::kernel::{CgroupFacts, CounterFacts, KernelFacts, MemoryFacts, RealTimePause, Rights};
use super::network::NetworkFacts;
use super::processor::{Activity, HeatFacts, ProcessorFacts};

/// The version from which the fair server replaces real-time throttling.
const FAIR_SERVER: (u32, u32) = (6, 12);

/// A host at one moment. Fields that recordings of earlier versions lack are null or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    pub kernel: Option<String>,
    pub architecture: Option<String>,
    /// The model name of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs online, as the kernel lists them: `0-3,6`.
    pub cpus_online: Option<String>,
    /// Frequency governors in use, each once.
    pub governors: Option<Vec<String>>,
    pub clocksource: Option<String>,
    /// `kernel.sched_rt_runtime_us`; −1: no throttling.
    pub rt_runtime_us: Option<i64>,
    /// The timer slack of the process that read the facts; its threads inherit it.
    pub timer_slack_ns: Option<u64>,
    /// The hypervisor, or `none`.
    pub virtualisation: Option<String>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    pub memory_bytes: Option<u64>,
    pub boot_id: Option<String>,
    /// CPU time stolen by the hypervisor since boot, all CPUs, in clock ticks.
    pub steal_ticks: Option<u64>,
    /// How the kernel was started and how it schedules.
    pub kernel_settings: KernelFacts,
    pub processor: ProcessorFacts,
    pub counters: CounterFacts,
    pub memory: MemoryFacts,
    pub cgroup: CgroupFacts,
    /// Interface of the path, and limits of sockets.
    pub network: NetworkFacts,
    pub clock: ClockFacts,
    pub heat: HeatFacts,
    /// Privileges of the process that read the facts.
    pub rights: Option<Rights>,
    /// When reading began, on CLOCK_MONOTONIC of that host.
    pub monotonic_ns: Option<i64>,
    pub reading_ns: Option<u64>,
    /// Why a field is null: field, as `network.interface.ring` → reason.
    pub unknown: BTreeMap<String, String>,
}

impl HostFacts {
    /// The CPUs that its control group may use, else those online, as the kernel lists them.
    pub fn usable_cpus(&self) -> Option<&str> {
        self.cgroup.cpus.as_deref().or(self.cpus_online.as_deref())
    }

    /// Whether the kernel's list of CPUs names one only: `3`, but neither `0-3` nor `0,2`.
    pub fn has_one_cpu(&self) -> bool {
        self.usable_cpus().is_some_and(|list| !list.contains(['-', ',']))
    }

    /// Major and minor version of its Linux.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel.as_deref()?.strip_prefix("Linux ")?;
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }

    /// How its kernel interrupts a real-time thread that never sleeps; `None` if it does not, or if that is unknown.
    pub fn real_time_pause(&self) -> Option<RealTimePause> {
        let settings = &self.kernel_settings;
        if self.kernel_version().is_some_and(|version| version >= FAIR_SERVER) {
            let configured = settings.fair_share_runtime_ns.zip(settings.fair_share_period_ns);
            let (runtime_ns, period_ns) = configured.unwrap_or((50_000_000, 1_000_000_000));
            let (pause_us, period_us) = (runtime_ns as i64 / 1_000, period_ns as i64 / 1_000);
            let pause = RealTimePause::FairShare { pause_us, period_us, assumed: configured.is_none() };
            return (pause_us > 0).then_some(pause);
        }
        let runtime_us = self.rt_runtime_us.filter(|runtime| *runtime >= 0)?;
        let period_us = settings.rt_period_us.unwrap_or(1_000_000);
        let pause_us = period_us - runtime_us;
        (pause_us > 0).then_some(RealTimePause::Throttling { pause_us, period_us })
    }

    /// CPU activity between `earlier` and `self`; `None` if it is unknown in either.
    pub fn activity_since(&self, earlier: &HostFacts) -> Option<Activity> {
        Some(self.counters.cpu_ticks.as_ref()?.since(earlier.counters.cpu_ticks.as_ref()?))
    }
}

/// The effect of a finding on a measurement, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// The measurement cannot succeed on this host, or its figures would be wrong.
    Blocker,
    /// The figures will be worse or vary more than necessary.
    Warning,
    Note,
    Fine,
}

/// One result of a check of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub code: String,
    /// Its effect on a measurement.
    pub severity: FindingSeverity,
    pub message: String,
    /// The command or option that fixes it; `None` if there is nothing to fix, or no way to.
    pub fix: Option<String>,
}

impl Finding {
    pub fn new(severity: FindingSeverity, code: &str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity, message: message.into(), fix: Some(fix.into()) }
    }

    /// A note without a fix.
    pub fn note(code: &str, message: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity: FindingSeverity::Note, message: message.into(), fix: None }
    }

    /// A check without a problem.
    pub fn fine(code: &str, message: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity: FindingSeverity::Fine, message: message.into(), fix: None }
    }
}
