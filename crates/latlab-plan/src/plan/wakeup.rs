//! A wake-up run: how its threads sleep, how often, and on which CPUs.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

crate::worded! {
    /// The call in which a thread sleeps, in the order of their numbers in a spool (docs/recording.md).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Via: word {
        /// clock_nanosleep(2), until an absolute time by default.
        ClockNanosleep = "clock_nanosleep",
        /// nanosleep(2), for an interval.
        Nanosleep = "nanosleep",
        /// select(2) without descriptors, with a time-out in microseconds.
        Select = "select",
        /// poll(2) without descriptors, with a time-out in milliseconds.
        Poll = "poll",
        /// epoll_wait(2) without descriptors, with a time-out in milliseconds.
        Epoll = "epoll",
        /// read(2) of a timerfd.
        Timerfd = "timerfd",
        /// futex(2) with a time-out.
        Futex = "futex",
        /// sigwaitinfo(2) for the signal of a POSIX timer.
        Signal = "signal",
        /// None: the clock is read in a loop.
        Spin = "spin",
    }
}

impl Via {
    pub fn from_word(word: &str) -> Option<Via> {
        Via::ALL.into_iter().find(|via| via.word() == word)
    }

    /// Whether its time-out has the slack of fs/select.c, which is a share of the time-out.
    pub const fn is_stretched(self) -> bool {
        matches!(self, Via::Select | Via::Poll | Via::Epoll)
    }

    /// Whether its timer has the timer slack of the thread: those of timerfd_settime(2) and timer_settime(2) do not.
    pub const fn has_slack(self) -> bool {
        !matches!(self, Via::Timerfd | Via::Signal | Via::Spin)
    }

    /// The resolution of its time-out, which is rounded up to the next multiple.
    pub const fn grain(self) -> Nanos {
        match self {
            Via::Select => Nanos::from_micros(1),
            Via::Poll | Via::Epoll => Nanos::from_millis(1),
            _ => Nanos(1),
        }
    }
}

/// The CPUs on which threads sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeupCpus {
    /// One thread that is not pinned.
    Anywhere,
    /// A thread on each of these, ascending.
    These(Vec<u16>),
    /// A thread on each CPU that the process may use; settled before the run.
    All,
}

impl WakeupCpus {
    pub fn known(&self) -> &[u16] {
        match self {
            WakeupCpus::These(cpus) => cpus,
            WakeupCpus::Anywhere | WakeupCpus::All => &[],
        }
    }
}

/// The parameters of a wake-up run: one call, one interval, one set of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WakeupSpec {
    /// The call in which threads sleep.
    pub via: Via,
    /// Interval of the due times.
    pub interval_ns: Nanos,
    /// Whether threads sleep for an interval, instead of until the next slot of the schedule.
    pub relative: bool,
    pub cpus: WakeupCpus,
    /// The run ends at the first measured wake-up later than this.
    pub break_ns: Option<Nanos>,
}

/// Wake-ups measured during the probes of a run, on the CPUs of its sender (docs/design/0015-with-wakeup.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrentWakeups {
    /// Interval of the due times.
    pub interval_ns: Nanos,
    /// A wake-up later than this is late; `None`: later than the 99th percentile of all.
    pub late_ns: Option<Nanos>,
    /// That of the sender, or all if it is not pinned; settled before the run.
    pub cpus: WakeupCpus,
}

impl ConcurrentWakeups {
    /// The run of wake-ups with these parameters.
    pub fn spec(&self) -> WakeupSpec {
        WakeupSpec {
            via: Via::ClockNanosleep,
            interval_ns: self.interval_ns,
            relative: false,
            cpus: self.cpus.clone(),
            break_ns: None,
        }
    }
}
