//! What is known about a host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Activity, ClockFacts, CounterFacts, HeatFacts, KernelFacts, MemoryFacts, NetworkFacts, ProcessorFacts, Rights,
};

/// A host at one moment. Recordings of earlier versions lack some fields: they are null there, or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// `uname -s` and `-r`.
    pub kernel: Option<String>,
    /// `uname -m`.
    pub architecture: Option<String>,
    /// The CPU's own name.
    pub cpu_model: Option<String>,
    /// CPUs online, as the kernel lists them: `0-3,6`.
    pub cpus_online: Option<String>,
    /// Frequency governors in use, each once.
    pub governors: Option<Vec<String>>,
    /// The clocksource behind CLOCK_MONOTONIC.
    pub clocksource: Option<String>,
    /// `kernel.sched_rt_runtime_us`; −1: no throttling.
    pub rt_runtime_us: Option<i64>,
    /// The measuring thread's timer slack.
    pub timer_slack_ns: Option<u64>,
    /// The hypervisor, or `none`.
    pub virtualisation: Option<String>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// MemTotal.
    pub memory_bytes: Option<u64>,
    /// This boot's id.
    pub boot_id: Option<String>,
    /// CPU time stolen by the hypervisor since boot, all CPUs, in clock ticks.
    pub steal_ticks: Option<u64>,
    /// How the kernel was started and how it schedules.
    pub kernel_settings: KernelFacts,
    /// The CPUs.
    pub processor: ProcessorFacts,
    /// Counters since boot.
    pub counters: CounterFacts,
    /// Memory.
    pub memory: MemoryFacts,
    /// Interface and sockets.
    pub network: NetworkFacts,
    /// Clocks.
    pub clock: ClockFacts,
    /// Heat and power.
    pub heat: HeatFacts,
    /// What the process that asked may do.
    pub rights: Option<Rights>,
    /// When reading began, on that host's CLOCK_MONOTONIC.
    pub monotonic_ns: Option<i64>,
    /// How long reading took.
    pub reading_ns: Option<u64>,
    /// Why a field is null: field, as `network.interface.ring` → reason.
    pub unknown: BTreeMap<String, String>,
}

impl HostFacts {
    /// What the CPUs did between `earlier` and `self`; nothing where either does not know.
    pub fn activity_since(&self, earlier: &HostFacts) -> Option<Activity> {
        Some(self.counters.cpu_ticks.as_ref()?.since(earlier.counters.cpu_ticks.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_format_1_0_open_and_the_rest_is_null() {
        let old = r#"{"kernel": "Linux 6.1.0", "cpus_online": "0-1", "load_average": [0.1, 0.2, 0.3], "steal_ticks": 7,
            "architecture": null, "unknown": {"boot_id": "no such file"}}"#;
        let facts: HostFacts = serde_json::from_str(old).expect("an old recording");
        assert_eq!((facts.kernel.as_deref(), facts.steal_ticks), (Some("Linux 6.1.0"), Some(7)));
        assert_eq!(facts.processor, ProcessorFacts::default());
        assert_eq!((facts.rights, facts.network.interface.is_none()), (None, true));
    }

    #[test]
    fn facts_of_a_newer_version_open_too() {
        let newer = r#"{"kernel": "Linux 9.0", "quantum": true, "processor": {"turbo": false, "tubes": 8}}"#;
        let facts: HostFacts = serde_json::from_str(newer).expect("a newer minor");
        assert_eq!(facts.processor.turbo, Some(false));
    }
}
