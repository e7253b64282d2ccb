//! The system calls by which a thread sleeps, one function each. Instants and spans are ns of CLOCK_MONOTONIC; a span of
//! zero or less still makes the call.
//!
//! Each can be interrupted by a signal (EINTR); see [`interrupt`].

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use crate::done;

/// `nanos` as a timespec; negative values become 0.
#[inline]
fn timespec(nanos: i64) -> libc::timespec {
    let nanos = nanos.max(0);
    libc::timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ }
}

/// The result of a call that returns 0 or an error number.
#[inline]
fn done_or_errno(errno: libc::c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Sleeps until `due_ns`: [clock_nanosleep(2)](https://man7.org/linux/man-pages/man2/clock_nanosleep.2.html) with
/// TIMER_ABSTIME.
#[inline]
pub fn clock_nanosleep_until(due_ns: i64) -> io::Result<()> {
    clock_nanosleep(libc::TIMER_ABSTIME, &timespec(due_ns))
}

/// Sleeps for `span_ns`: the same call without TIMER_ABSTIME.
#[inline]
pub fn clock_nanosleep_for(span_ns: i64) -> io::Result<()> {
    clock_nanosleep(0, &timespec(span_ns))
}

/// By number, since libc's function is a cancellation point: it writes to the thread's control block between the return
/// from the kernel and the clock reading.
#[inline]
fn clock_nanosleep(flags: libc::c_int, time: &libc::timespec) -> io::Result<()> {
    let no_remainder = std::ptr::null_mut::<libc::timespec>();
    // SAFETY: `time` is only read, and no remaining time is written.
    done(unsafe { libc::syscall(libc::SYS_clock_nanosleep, libc::CLOCK_MONOTONIC, flags, time, no_remainder) }
        as libc::c_int)
}

/// Sleeps for `span_ns`: [nanosleep(2)](https://man7.org/linux/man-pages/man2/nanosleep.2.html).
#[inline]
pub fn nanosleep(span_ns: i64) -> io::Result<()> {
    let span = timespec(span_ns);
    // SAFETY: `span` is only read, and no remaining time is written.
    done(unsafe { libc::nanosleep(&span, std::ptr::null_mut()) })
}

/// Sleeps for `span_us` microseconds: [select(2)](https://man7.org/linux/man-pages/man2/select.2.html) on nothing.
#[inline]
pub fn select_nothing(span_us: i64) -> io::Result<()> {
    let span_us = span_us.max(0);
    let mut span = libc::timeval { tv_sec: (span_us / 1_000_000) as _, tv_usec: (span_us % 1_000_000) as _ };
    let none = std::ptr::null_mut;
    // SAFETY: no set of descriptors is given, and `span`, which the kernel may write to, is exclusive.
    done(unsafe { libc::select(0, none(), none(), none(), &mut span) })
}

/// Sleeps for `span_ms` milliseconds: [poll(2)](https://man7.org/linux/man-pages/man2/poll.2.html) on nothing.
#[inline]
pub fn poll_nothing(span_ms: i32) -> io::Result<()> {
    // SAFETY: there are no entries, so none are read or written.
    done(unsafe { libc::poll(std::ptr::null_mut(), 0, span_ms.max(0)) })
}

/// An [epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html) that watches nothing.
pub fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: takes a flag and returns a descriptor or −1.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Sleeps for `span_ms` milliseconds: epoll_wait on `epoll`, which watches nothing.
#[inline]
pub fn epoll_nothing(epoll: BorrowedFd<'_>, span_ms: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: `event` is one exclusive entry, as the count says.
    done(unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, span_ms.max(0)) })
}

/// A timer that is read as a file: [timerfd_create(2)](https://man7.org/linux/man-pages/man2/timerfd_create.2.html).
pub fn timerfd() -> io::Result<OwnedFd> {
    // SAFETY: takes a clock and a flag and returns a descriptor or −1.
    owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })
}

/// Arms `timer` to expire once: at `nanos` with `absolute` (TFD_TIMER_ABSTIME), else after `nanos`. Zero would disarm it
/// and becomes 1 ns.
#[inline]
pub fn arm_timerfd(timer: BorrowedFd<'_>, nanos: i64, absolute: bool) -> io::Result<()> {
    let once = libc::itimerspec { it_interval: timespec(0), it_value: timespec(nanos.max(1)) };
    let flags = if absolute { libc::TFD_TIMER_ABSTIME } else { 0 };
    // SAFETY: `once` is only read; the old value is not requested.
    done(unsafe { libc::timerfd_settime(timer.as_raw_fd(), flags, &once, std::ptr::null_mut()) })
}

/// Sleeps until `timer` has expired.
#[inline]
pub fn read_timerfd(timer: BorrowedFd<'_>) -> io::Result<()> {
    let mut expirations = 0_u64;
    // SAFETY: the kernel writes eight bytes into `expirations`, which has eight.
    let read = unsafe { libc::read(timer.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>()) };
    if read < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sleeps until `due_ns` on a futex that is never woken:
/// [futex(2)](https://man7.org/linux/man-pages/man2/futex.2.html), FUTEX_WAIT_BITSET, whose time-out is an instant.
#[inline]
pub fn futex_until(due_ns: i64) -> io::Result<()> {
    futex_wait(libc::FUTEX_WAIT_BITSET, timespec(due_ns))
}

/// Sleeps for `span_ns` on a futex that is never woken: FUTEX_WAIT, whose time-out is a span.
#[inline]
pub fn futex_for(span_ns: i64) -> io::Result<()> {
    futex_wait(libc::FUTEX_WAIT, timespec(span_ns))
}

#[inline]
fn futex_wait(operation: libc::c_int, time: libc::timespec) -> io::Result<()> {
    let word = AtomicU32::new(0);
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    const ANY_BIT: u32 = u32::MAX;
    let unused = std::ptr::null::<u32>();
    // SAFETY: `word` outlives the call and is only compared with 0; `time` is only read; FUTEX_WAIT ignores the last
    // two arguments and FUTEX_WAIT_BITSET the first of them.
    let answer =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0_u32, &raw const time, unused, ANY_BIT) };
    match answer {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The expected end.
            error if error.raw_os_error() == Some(libc::ETIMEDOUT) => Ok(()),
            error => Err(error),
        },
    }
}

/// A timer that signals the thread that made it: [timer_create(2)](https://man7.org/linux/man-pages/man2/timer_create.2.html)
/// with SIGEV_THREAD_ID. The signal (SIGRTMIN) is blocked in that thread, so that only a wait takes it.
#[derive(Debug)]
pub struct SignalTimer {
    timer: libc::timer_t,
    signal: libc::c_int,
}

// SAFETY: a timer_t is a number or a pointer that only the C library reads; any thread may use and delete it.
unsafe impl Send for SignalTimer {}

impl SignalTimer {
    /// A timer for the calling thread.
    pub fn new() -> io::Result<SignalTimer> {
        let signal = libc::SIGRTMIN();
        let mask = only(signal);
        // SAFETY: `mask` is an initialised signal set; the old one is not requested.
        done_or_errno(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &mask, std::ptr::null_mut()) })?;
        // SAFETY: zero is a valid sigevent: SIGEV_SIGNAL, signal 0.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = current_thread();
        let mut timer = std::ptr::null_mut();
        // SAFETY: `event` is only read, `timer` is exclusive.
        done(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) })?;
        Ok(SignalTimer { timer, signal })
    }

    /// Arms it to expire once: at `nanos` with `absolute` (TIMER_ABSTIME), else after `nanos`. Zero would disarm it and
    /// becomes 1 ns.
    #[inline]
    pub fn arm(&self, nanos: i64, absolute: bool) -> io::Result<()> {
        let once = libc::itimerspec { it_interval: timespec(0), it_value: timespec(nanos.max(1)) };
        let flags = if absolute { libc::TIMER_ABSTIME } else { 0 };
        // SAFETY: the timer lives as long as `self`; `once` is only read; the old value is not requested.
        done(unsafe { libc::timer_settime(self.timer, flags, &once, std::ptr::null_mut()) })
    }

    /// Sleeps until its signal is pending:
    /// [sigwaitinfo(2)](https://man7.org/linux/man-pages/man2/sigwaitinfo.2.html), the kernel's rt_sigtimedwait.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        let mask = only(self.signal);
        // SAFETY: `mask` is an initialised signal set; the signal's details are not requested; no time-out is given.
        done(unsafe { libc::sigwaitinfo(&mask, std::ptr::null_mut()) }.min(0))
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: made by timer_create and not deleted before.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// The set of `signal` alone.
#[inline]
fn only(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before sigaddset reads it; both only write to it.
    unsafe {
        let mut set = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        set.assume_init()
    }
}

/// The calling thread's id. [gettid(2)](https://man7.org/linux/man-pages/man2/gettid.2.html)
pub fn current_thread() -> i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Enables [`interrupt`]: gives SIGURG a handler that does nothing. A process without urgent TCP bytes has no other use for
/// SIGURG, and it is not queued.
/// [sigaction(2)](https://man7.org/linux/man-pages/man2/sigaction.2.html)
pub fn allow_interrupts() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zero is a valid sigaction: no flags, so that calls are not restarted, and no blocked signals.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as libc::sighandler_t;
    // SAFETY: `action` is only read, and its handler touches nothing.
    done(unsafe { libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut()) })
}

/// Interrupts a sleep of thread `thread` of this process, which returns EINTR. Requires [`allow_interrupts`].
/// [tgkill(2)](https://man7.org/linux/man-pages/man2/tgkill.2.html)
pub fn interrupt(thread: i32) -> io::Result<()> {
    // SAFETY: takes three numbers; a thread that has ended is an error.
    done(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) } as libc::c_int)
}

/// The niceness of the calling thread, −20 to 19. [getpriority(2)](https://man7.org/linux/man-pages/man2/getpriority.2.html)
pub fn niceness() -> i32 {
    const CALLING_THREAD: libc::id_t = 0;
    // SAFETY: takes two numbers and returns one; the calling thread exists.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, CALLING_THREAD) }
}

fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    done(descriptor)?;
    // SAFETY: the call has just made this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::clock::monotonic_ns;

    const SPAN: i64 = 3_000_000;

    /// Asserts that the call does not return before the span is over. How late it returns is what latlab measures.
    fn expect_full_span(name: &str, sleep: impl FnOnce(i64) -> io::Result<()>) {
        let due = monotonic_ns() + SPAN;
        sleep(due).expect(name);
        assert!(monotonic_ns() >= due, "{name} returned early");
    }

    #[test]
    fn each_call_sleeps_for_the_full_span() {
        let span = |due: i64| due - monotonic_ns();
        let (epoll, timer) = (epoll().expect("made"), timerfd().expect("made"));
        let signal = SignalTimer::new().expect("made");
        expect_full_span("clock_nanosleep", clock_nanosleep_until);
        expect_full_span("clock_nanosleep relative", |due| clock_nanosleep_for(span(due)));
        expect_full_span("nanosleep", |due| nanosleep(span(due)));
        expect_full_span("select", |due| select_nothing(span(due) / 1_000 + 1));
        expect_full_span("poll", |due| poll_nothing((span(due) / 1_000_000 + 1) as i32));
        expect_full_span("epoll", |due| epoll_nothing(epoll.as_fd(), (span(due) / 1_000_000 + 1) as i32));
        expect_full_span("futex", futex_until);
        expect_full_span("futex relative", |due| futex_for(span(due)));
        for absolute in [true, false] {
            let nanos = |due| if absolute { due } else { span(due) };
            expect_full_span("timerfd", |due| {
                arm_timerfd(timer.as_fd(), nanos(due), absolute)?;
                read_timerfd(timer.as_fd())
            });
            expect_full_span("signal", |due| {
                signal.arm(nanos(due), absolute)?;
                signal.wait()
            });
        }
    }

    #[test]
    fn a_sleep_can_be_interrupted() {
        allow_interrupts().expect("a handler");
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(current_thread()).expect("the receiver exists");
            clock_nanosleep_for(60_000_000_000)
        });
        let thread = receiver.recv().expect("a thread id");
        // The thread may not sleep yet at the first signal.
        while !sleeper.is_finished() {
            interrupt(thread).expect("the thread exists");
            std::thread::yield_now();
        }
        let error = sleeper.join().expect("no panic").expect_err("interrupted");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
