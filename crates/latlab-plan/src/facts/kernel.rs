//! The kernel of a host: how it was started and schedules, the rights of processes, memory, and counters since boot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::processor::{ByCpu, CpuTicks};

/// The command line of the kernel, and how it schedules. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    /// As passed by the boot loader.
    pub command_line: Option<String>,
    /// `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`, or `none`, from the version string of the kernel.
    pub preemption: Option<String>,
    /// CPUs on which the scheduler runs pinned threads only (isolcpus); empty: none.
    pub isolated_cpus: Option<String>,
    /// CPUs without a periodic tick while they run a single thread (nohz_full); empty: none.
    pub tickless_cpus: Option<String>,
    pub rt_period_us: Option<i64>,
    /// CPU time per period that the fair server (Linux 6.12) reserves for normal threads of CPU 0; 0: disabled.
    pub fair_share_runtime_ns: Option<u64>,
    /// The period of the fair server.
    pub fair_share_period_ns: Option<u64>,
}

/// How the kernel interrupts a real-time thread that never sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealTimePause {
    /// Before Linux 6.12 such threads are stopped at the end of each period, even if no other thread waits
    /// ([sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)).
    Throttling { pause_us: i64, period_us: i64 },
    /// Since Linux 6.12 a deadline server runs the normal threads that wait ([LWN](https://lwn.net/Articles/934415/)).
    FairShare {
        /// Greatest length of the pause.
        pause_us: i64,
        period_us: i64,
        /// Both are the defaults of the kernel, because debugfs, which has them, cannot be read.
        assumed: bool,
    },
}

impl RealTimePause {
    /// `50 ms every second`.
    pub fn in_words(&self) -> String {
        let (RealTimePause::Throttling { pause_us, period_us } | RealTimePause::FairShare { pause_us, period_us, .. }) =
            *self;
        let every = if period_us == 1_000_000 { "second".to_owned() } else { format!("{period_us} µs") };
        format!("{} ms every {every}", pause_us as f64 / 1e3)
    }
}

crate::worded! {
    /// A capability ([capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html)), with its bit in the masks
    /// of the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Capability: name {
        /// CAP_NET_BIND_SERVICE: ports below 1024.
        NetBindService[10] = "cap_net_bind_service",
        /// CAP_NET_ADMIN: interfaces, addresses, busy polling.
        NetAdmin[12] = "cap_net_admin",
        /// CAP_NET_RAW: binding to interfaces, AF_XDP sockets.
        NetRaw[13] = "cap_net_raw",
        /// CAP_IPC_LOCK: locking memory beyond the limit.
        IpcLock[14] = "cap_ipc_lock",
        SysAdmin[21] = "cap_sys_admin",
        /// CAP_SYS_NICE: real-time priorities, affinity of other processes.
        SysNice[23] = "cap_sys_nice",
        /// CAP_BPF: loading programs for AF_XDP.
        Bpf[39] = "cap_bpf",
    }
}

impl Capability {
    /// The command that grants `lacking` to the file of latlab, which runs with the mask `effective`. setcap(8) replaces the
    /// capabilities of the file, so the command also names those of the mask that latlab uses.
    pub fn grant(lacking: &[Capability], effective: u64) -> String {
        let is_named = |one: &Capability| lacking.contains(one) || effective >> *one as u32 & 1 == 1;
        let names: Vec<&str> = Capability::ALL.into_iter().filter(is_named).map(Capability::name).collect();
        format!("sudo setcap {}+ep $(command -v latlab)", names.join(","))
    }
}

/// The capabilities and resource limits of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// The effective set, as a mask.
    pub capabilities: u64,
    /// RLIMIT_MEMLOCK; `None`: unlimited.
    pub memory_lock_bytes: Option<u64>,
    /// RLIMIT_RTPRIO: the highest real-time priority without CAP_SYS_NICE; `None`: unlimited.
    pub real_time_priority: Option<u64>,
}

impl Rights {
    pub const fn has(&self, capability: Capability) -> bool {
        self.capabilities >> capability as u32 & 1 == 1
    }

    /// Whether the process may set this SCHED_FIFO priority.
    pub fn may_run_fifo(&self, priority: u8) -> bool {
        self.has(Capability::SysNice) || self.real_time_priority.is_none_or(|limit| u64::from(priority) <= limit)
    }

    /// Whether the process may lock memory without limit.
    pub const fn may_lock_all(&self) -> bool {
        self.has(Capability::IpcLock) || self.memory_lock_bytes.is_none()
    }
}

/// Memory and swap. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFacts {
    pub available_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// SwapTotal; 0: no swap.
    pub swap_bytes: Option<u64>,
    pub swap_free_bytes: Option<u64>,
    /// Major page faults since boot (pgmajfault).
    pub major_faults: Option<u64>,
}

/// The limits of the control group of the process that read the facts. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupFacts {
    /// CPUs whose time it gets in each period: `0.2`.
    pub cpu_quota: Option<f64>,
    /// Periods in which it had used this up and was stopped for the rest, since it was made.
    pub throttled_periods: Option<u64>,
    pub cpus: Option<String>,
    pub memory_limit_bytes: Option<u64>,
}

/// Counters since boot. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterFacts {
    pub cpu_ticks: Option<CpuTicks>,
    pub context_switches: Option<u64>,
    /// Interrupts with a count above 0, by their number or the short name that the kernel gives them.
    pub interrupts: Option<BTreeMap<String, InterruptSource>>,
    /// Soft interrupts with a count above 0: name → CPU → count.
    pub softirqs: Option<BTreeMap<String, ByCpu<u64>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptSource {
    /// The interrupt controller and the device.
    pub source: String,
    /// CPUs that may handle it; null if it cannot be moved.
    pub affinity: Option<String>,
    /// Count on each CPU with a count above 0.
    pub counts: ByCpu<u64>,
}

/// Interrupts on one CPU between two readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptUse<'a> {
    pub name: &'a str,
    pub interrupt: &'a InterruptSource,
    pub times: u64,
}

impl CounterFacts {
    /// The interrupts on `cpu` between `earlier` and `self`, the most frequent first.
    pub fn interrupts_since<'a>(&'a self, earlier: &CounterFacts, cpu: u16) -> Vec<InterruptUse<'a>> {
        let Some((now, then)) = self.interrupts.as_ref().zip(earlier.interrupts.as_ref()) else { return Vec::new() };
        let count = |interrupt: &InterruptSource| interrupt.counts.get(&cpu).copied().unwrap_or(0);
        let mut used: Vec<_> = now
            .iter()
            .map(|(name, interrupt)| InterruptUse {
                name,
                interrupt,
                // One with a count of 0 is not in the earlier reading.
                times: count(interrupt).saturating_sub(then.get(name).map_or(0, count)),
            })
            .filter(|used| used.times > 0)
            .collect();
        used.sort_by_key(|used| std::cmp::Reverse(used.times));
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(eth: u64, disk: Option<u64>) -> CounterFacts {
        let interrupt = |times| InterruptSource {
            source: "x".into(),
            affinity: None,
            counts: [(1, times), (2, 9)].into_iter().collect(),
        };
        let interrupts = [("41", Some(eth)), ("50", disk)].into_iter();
        let interrupts = interrupts.filter_map(|(name, times)| Some((name.to_owned(), interrupt(times?)))).collect();
        CounterFacts { interrupts: Some(interrupts), ..CounterFacts::default() }
    }

    #[test]
    fn interrupts_are_the_difference_of_two_readings() {
        let (before, after) = (counted(100, None), counted(107, Some(400)));
        let seen = |cpu| -> Vec<(String, u64)> {
            after.interrupts_since(&before, cpu).iter().map(|used| (used.name.to_owned(), used.times)).collect()
        };
        assert_eq!(seen(1), [("50".into(), 400), ("41".into(), 7)]);
        assert_eq!(seen(2), [("50".into(), 9)]);
        assert_eq!(seen(0), []);
    }
}
