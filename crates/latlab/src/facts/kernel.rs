//! How a kernel was started and how it schedules.

use serde::{Deserialize, Serialize};

use super::HostFacts;

/// From this version on the fair server does what real-time throttling did before.
const FAIR_SERVER: (u32, u32) = (6, 12);

/// How the kernel takes a CPU from a real-time thread that never sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealTimePause {
    /// Before Linux 6.12 such threads are stopped at the end of each period, whether anybody waits or not
    /// ([sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)).
    Throttling {
        /// For so long …
        pause_us: i64,
        /// … in each.
        period_us: i64,
    },
    /// Since then a deadline server runs the normal threads that wait ([LWN](https://lwn.net/Articles/934415/)).
    FairShare {
        /// For so long at most …
        pause_us: i64,
        /// … in each.
        period_us: i64,
        /// Both are the kernel's defaults: debugfs, which tells them, cannot be read.
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

impl HostFacts {
    /// Major and minor number of its Linux.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel.as_deref()?.strip_prefix("Linux ")?;
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }

    /// How its kernel takes a CPU from a real-time thread that never sleeps; none where it does not, or nobody knows.
    pub fn real_time_pause(&self) -> Option<RealTimePause> {
        let settings = &self.kernel_settings;
        if self.kernel_version().is_some_and(|version| version >= FAIR_SERVER) {
            let told = settings.fair_share_runtime_ns.zip(settings.fair_share_period_ns);
            let (runtime_ns, period_ns) = told.unwrap_or((50_000_000, 1_000_000_000));
            let (pause_us, period_us) = (runtime_ns as i64 / 1_000, period_ns as i64 / 1_000);
            let pause = RealTimePause::FairShare { pause_us, period_us, assumed: told.is_none() };
            return (pause_us > 0).then_some(pause);
        }
        let runtime_us = self.rt_runtime_us.filter(|runtime| *runtime >= 0)?;
        let period_us = settings.rt_period_us.unwrap_or(1_000_000);
        let pause_us = period_us - runtime_us;
        (pause_us > 0).then_some(RealTimePause::Throttling { pause_us, period_us })
    }
}

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
