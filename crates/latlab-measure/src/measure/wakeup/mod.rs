//! Wake-up latency: threads that sleep until an instant and then read the clock, in a run of wake-ups or during a ping.

mod run;
mod sleeper;
mod timer_threads;
mod wakeup_loop;

pub(super) use run::WakeupRun;
pub use sleeper::{
    ClockNanosleep, EpollSleep, FutexSleep, Nanosleep, PollSleep, SelectSleep, SignalSleep, Sleeper, SpinWait, Timerfd,
};
pub(super) use timer_threads::{TimerThread, measure_wakeups_during, thread_cpus};
pub use wakeup_loop::{SleepingThread, run_slice};
