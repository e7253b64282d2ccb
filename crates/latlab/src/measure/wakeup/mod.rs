//! Wake-up latency: threads that sleep until an instant and read the clock, of a run of their own or during a ping.

mod run;
mod sleeper;
mod timer_threads;
mod wakeup_loop;

pub use run::rehearse_wakeups;
pub(super) use run::{conduct_wakeups, ring_events};
pub use sleeper::{
    ClockNanosleep, EpollSleep, FutexSleep, Nanosleep, OneShot, PollSleep, SelectSleep, SignalSleep, Sleeper, SpinWait,
    Timerfd,
};
pub(super) use timer_threads::{TimerThread, sleep_during};
pub use wakeup_loop::{SleepingThread, run_slice};
