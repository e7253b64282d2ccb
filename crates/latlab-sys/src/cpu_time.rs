//! CPU time that threads and processes have used, in ns.
#![allow(clippy::useless_conversion, reason = "the fields of the C library's times have 32 bits on some targets")]

use std::io;

use crate::done;

fn read(clock: libc::clockid_t) -> io::Result<i64> {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid, exclusive timespec for the whole call.
    done(unsafe { libc::clock_gettime(clock, &mut spec) })?;
    Ok(seconds_to_ns(spec.tv_sec) + i64::from(spec.tv_nsec))
}

/// Whole seconds in ns. The width of the C library's field differs between targets.
fn seconds_to_ns(whole: impl Into<i64>) -> i64 {
    whole.into() * 1_000_000_000
}

/// CPU time of the calling thread.
/// [clock_gettime(2)](https://man7.org/linux/man-pages/man2/clock_gettime.2.html)
pub fn of_this_thread() -> io::Result<i64> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the calling process, all its threads.
pub fn of_this_process() -> io::Result<i64> {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of process `pid`, all its threads; an error after it has ended.
/// [clock_getcpuclockid(3)](https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html)
pub fn of_process(pid: u32) -> io::Result<i64> {
    /// PID_MAX_LIMIT in linux/threads.h. Numbers from 2²⁸ on do not fit into a clock id, and pid 0 means the caller.
    const LARGEST: u32 = 1 << 22;
    if pid == 0 || pid > LARGEST {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the C library writes one clock id through the pointer, which is valid for the whole call.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) } {
        0 => read(clock),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// CPU time of ended children that were waited for, including that of their own ended children; resolution 1 µs.
/// [getrusage(2)](https://man7.org/linux/man-pages/man2/getrusage.2.html)
pub fn of_ended_children() -> io::Result<i64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage through the pointer, which is valid for the whole call.
    done(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) })?;
    // SAFETY: `usage` was initialised with zeros, and every bit pattern is a valid rusage.
    let usage = unsafe { usage.assume_init() };
    Ok([usage.ru_utime, usage.ru_stime]
        .map(|time| seconds_to_ns(time.tv_sec) + i64::from(time.tv_usec) * 1_000)
        .iter()
        .sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes until the calling thread has used `span_ns` more CPU time.
    fn work(span_ns: i64) {
        let end = of_this_thread().expect("a clock") + span_ns;
        while of_this_thread().expect("a clock") < end {}
    }

    #[test]
    fn work_is_counted_for_thread_process_and_pid() {
        let before = (of_this_process().expect("a clock"), of_process(std::process::id()).expect("a clock"));
        work(2_000_000);
        assert!(of_this_process().expect("a clock") - before.0 >= 2_000_000);
        assert!(of_process(std::process::id()).expect("a clock") - before.1 >= 2_000_000);
    }

    #[test]
    fn an_ended_child_is_counted_and_an_unknown_pid_is_an_error() {
        let before = of_ended_children().expect("usage");
        let status =
            std::process::Command::new("sh").args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]).status();
        assert!(status.is_ok_and(|status| status.success()));
        assert!(of_ended_children().expect("usage") > before);
        for unknown in [0, (1 << 22) + 1, 1 << 30] {
            assert_eq!(of_process(unknown).expect_err("no such process").raw_os_error(), Some(libc::ESRCH));
        }
    }
}
