//! What is known about a host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A host at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Why a field above is null: field → reason.
    pub unknown: BTreeMap<String, String>,
}
