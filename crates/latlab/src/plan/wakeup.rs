//! What a wake-up run does: how its threads ask to be woken, how often and on which CPUs.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How a thread asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// clock_nanosleep(2), absolute unless told otherwise, as the next that can.
    ClockNanosleep,
    /// nanosleep(2), which knows spans only.
    Nanosleep,
    /// select(2) on nothing: a span in microseconds.
    Select,
    /// poll(2) on nothing: a span in milliseconds.
    Poll,
    /// epoll_wait(2) on nothing: a span in milliseconds.
    Epoll,
    /// A timerfd that is read.
    Timerfd,
    /// A futex that nobody wakes.
    Futex,
    /// A POSIX timer whose signal is awaited.
    Signal,
    /// No sleep at all: the clock is read until it is time.
    Spin,
}

impl Via {
    /// Every way, in the order of the documents and of their numbers in a spool (docs/recording.md).
    pub const ALL: [Via; 9] = [
        Via::ClockNanosleep,
        Via::Nanosleep,
        Via::Select,
        Via::Poll,
        Via::Epoll,
        Via::Timerfd,
        Via::Futex,
        Via::Signal,
        Via::Spin,
    ];

    /// The word on the command line and in recordings.
    pub const fn word(self) -> &'static str {
        match self {
            Via::ClockNanosleep => "clock_nanosleep",
            Via::Nanosleep => "nanosleep",
            Via::Select => "select",
            Via::Poll => "poll",
            Via::Epoll => "epoll",
            Via::Timerfd => "timerfd",
            Via::Futex => "futex",
            Via::Signal => "signal",
            Via::Spin => "spin",
        }
    }

    /// The way of that word.
    pub fn from_word(word: &str) -> Option<Via> {
        Via::ALL.into_iter().find(|via| via.word() == word)
    }

    /// Whether its time-out is handled by fs/select.c, which stretches it by a share of itself.
    pub const fn is_stretched(self) -> bool {
        matches!(self, Via::Select | Via::Poll | Via::Epoll)
    }

    /// Whether the kernel lets its timer be late by the thread's slack: those of timerfd_settime(2) and timer_settime(2)
    /// are set without any.
    pub const fn has_slack(self) -> bool {
        !matches!(self, Via::Timerfd | Via::Signal | Via::Spin)
    }

    /// The grain of its time-out: a span is rounded up to the next multiple.
    pub const fn grain(self) -> Nanos {
        match self {
            Via::Select => Nanos::from_micros(1),
            Via::Poll | Via::Epoll => Nanos::from_millis(1),
            _ => Nanos(1),
        }
    }
}

/// On which CPUs threads sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeupCpus {
    /// One thread, where the system puts it.
    Anywhere,
    /// A thread on each of these, ascending.
    These(Vec<u16>),
    /// A thread on each CPU that the process may use; settled to those before the run.
    All,
}

impl WakeupCpus {
    /// The CPUs, where they are known.
    pub fn known(&self) -> &[u16] {
        match self {
            WakeupCpus::These(cpus) => cpus,
            WakeupCpus::Anywhere | WakeupCpus::All => &[],
        }
    }
}

/// A wake-up run: one way of sleeping, one interval, one set of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WakeupSpec {
    /// How a thread asks to be woken.
    pub via: Via,
    /// From one due time to the next.
    pub interval_ns: Nanos,
    /// Ask for an interval from now on each time, and not for the next slot of the schedule.
    pub relative: bool,
    /// Where.
    pub cpus: WakeupCpus,
    /// Stop at the first measured wake-up later than this.
    pub break_ns: Option<Nanos>,
}

/// Wake-ups measured beside the probes of a run, on the CPUs of its sender (docs/design/0015-with-wakeup.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrentWakeups {
    /// From one due time to the next.
    pub interval_ns: Nanos,
    /// A wake-up later than this is late; none: later than the 99th percentile of all.
    pub late_ns: Option<Nanos>,
    /// Where: the sender's CPU, else all; settled before the run.
    pub cpus: WakeupCpus,
}

impl ConcurrentWakeups {
    /// How its threads sleep.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_leads_back_to_its_way() {
        for via in Via::ALL {
            assert_eq!(Via::from_word(via.word()), Some(via));
            assert_eq!(serde_json::to_value(via).expect("serialises"), via.word());
        }
        assert_eq!(Via::from_word("sleep"), None);
    }
}
