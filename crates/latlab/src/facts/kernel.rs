//! How a kernel was started and how it schedules.

use serde::{Deserialize, Serialize};

/// What the command line and the switches say. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    /// What the boot loader passed.
    pub command_line: Option<String>,
    /// `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`, or `none`, as the kernel's version says.
    pub preemption: Option<String>,
    /// CPUs that the scheduler leaves to those who pin themselves there; empty: none.
    pub isolated_cpus: Option<String>,
    /// CPUs without a periodic tick while they run one thread; empty: none.
    pub tickless_cpus: Option<String>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Option<i64>,
    /// What the fair server (Linux 6.12) gives to normal threads of CPU 0 in each period when real-time ones
    /// would take it all; 0: switched off.
    pub fair_share_runtime_ns: Option<u64>,
    /// Its period.
    pub fair_share_period_ns: Option<u64>,
}
