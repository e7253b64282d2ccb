//! The methods of sleeping, each until an instant or for a time span.

use std::hint::spin_loop;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use latlab_sys::sleep::{self, SignalTimer};

use crate::clock::{Clock, Monotonic};
use crate::units::{Nanos, SenderClock, Stamp};

/// A method of sleeping. A signal ends a sleep early with the error `Interrupted`.
pub trait Sleeper {
    /// Sleeps until `due`; returns at once if `due` is past. By default for the span until then: some calls take no instant.
    #[inline]
    fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
        self.span(due - Monotonic.now())
    }
    /// Sleeps for `span` from now on.
    fn span(&mut self, span: Nanos) -> io::Result<()>;
}

/// `span` in units of `unit`, rounded up, since a shorter sleep would end too early.
#[inline]
fn rounded_up(span: Nanos, unit: Nanos) -> i64 {
    (span.0.max(0) + unit.0 - 1) / unit.0
}

/// Milliseconds, as poll and epoll take them.
#[inline]
fn millis(span: Nanos) -> i32 {
    i32::try_from(rounded_up(span, Nanos::from_millis(1))).unwrap_or(i32::MAX)
}

/// clock_nanosleep(2).
#[derive(Debug)]
pub struct ClockNanosleep;

impl Sleeper for ClockNanosleep {
    #[inline]
    fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
        sleep::clock_nanosleep_until(due.as_nanos())
    }
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::clock_nanosleep_for(span.0)
    }
}

/// nanosleep(2).
#[derive(Debug)]
pub struct Nanosleep;

impl Sleeper for Nanosleep {
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::nanosleep(span.0)
    }
}

/// select(2) without descriptors.
#[derive(Debug)]
pub struct SelectSleep;

impl Sleeper for SelectSleep {
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::select_nothing(rounded_up(span, Nanos::from_micros(1)))
    }
}

/// poll(2) without descriptors.
#[derive(Debug)]
pub struct PollSleep;

impl Sleeper for PollSleep {
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::poll_nothing(millis(span))
    }
}

/// epoll_wait(2) without descriptors.
#[derive(Debug)]
pub struct EpollSleep(OwnedFd);

impl EpollSleep {
    /// An epoll instance without descriptors.
    pub fn new() -> io::Result<EpollSleep> {
        sleep::epoll().map(EpollSleep)
    }
}

impl Sleeper for EpollSleep {
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::epoll_nothing(self.0.as_fd(), millis(span))
    }
}

/// A timer that is set for an instant or a span, and then awaited.
pub(crate) trait OneShot {
    /// Sets the timer and waits for it. `nanos` is an instant of CLOCK_MONOTONIC if `absolute`, else a span.
    fn sleep(&self, nanos: i64, absolute: bool) -> io::Result<()>;
}

impl<T: OneShot> Sleeper for T {
    #[inline]
    fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
        self.sleep(due.as_nanos(), true)
    }
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        self.sleep(span.0, false)
    }
}

/// timerfd_settime(2) and read(2).
#[derive(Debug)]
pub struct Timerfd(OwnedFd);

impl Timerfd {
    pub fn new() -> io::Result<Timerfd> {
        sleep::timerfd().map(Timerfd)
    }
}

impl OneShot for Timerfd {
    #[inline]
    fn sleep(&self, nanos: i64, absolute: bool) -> io::Result<()> {
        sleep::arm_timerfd(self.0.as_fd(), nanos, absolute)?;
        sleep::read_timerfd(self.0.as_fd())
    }
}

/// A POSIX timer whose signal the thread awaits (timer_settime(2), sigwaitinfo(2)).
#[derive(Debug)]
pub struct SignalSleep(SignalTimer);

impl SignalSleep {
    /// A timer of the calling thread; only this thread may use it.
    pub fn new() -> io::Result<SignalSleep> {
        SignalTimer::new().map(SignalSleep)
    }
}

impl OneShot for SignalSleep {
    #[inline]
    fn sleep(&self, nanos: i64, absolute: bool) -> io::Result<()> {
        self.0.arm(nanos, absolute)?;
        self.0.wait()
    }
}

/// futex(2) on a word that is never woken.
#[derive(Debug)]
pub struct FutexSleep;

impl Sleeper for FutexSleep {
    #[inline]
    fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
        sleep::futex_until(due.as_nanos())
    }
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        sleep::futex_for(span.0)
    }
}

/// Reads the clock until the instant, which shows the cost of the instrument. Since no signal ends that, it reads the flag
/// that ends the run.
#[derive(Debug)]
pub struct SpinWait<'a>(pub &'a AtomicBool);

impl Sleeper for SpinWait<'_> {
    #[inline]
    fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
        while Monotonic.now() < due {
            if self.0.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spin_loop();
        }
        Ok(())
    }
    #[inline]
    fn span(&mut self, span: Nanos) -> io::Result<()> {
        self.until(Monotonic.now() + span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_up_and_never_negative() {
        for (ns, expected) in [(-5, 0), (0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2), (i64::MAX / 2, i32::MAX)] {
            assert_eq!(millis(Nanos(ns)), expected, "{ns}");
        }
        assert_eq!(rounded_up(Nanos(1_001), Nanos::from_micros(1)), 2);
    }
}
