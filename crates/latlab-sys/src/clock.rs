//! Clocks: reading them, and the synchronisation of CLOCK_REALTIME.
//! [clock_gettime(2)](https://man7.org/linux/man-pages/man2/clock_gettime.2.html) is answered by the vDSO on common
//! architectures, without entering the kernel, except for CPU time.

use std::io;

#[inline]
#[allow(clippy::unnecessary_cast, reason = "both fields have 32 bits on some targets")]
fn nanos(spec: libc::timespec) -> i64 {
    spec.tv_sec as i64 * 1_000_000_000 + spec.tv_nsec as i64
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid, exclusive timespec for the whole call. The clock ids in use exist on every supported
    // kernel, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut spec) };
    nanos(spec)
}

/// CLOCK_MONOTONIC in ns.
#[inline]
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_MONOTONIC_COARSE in ns: CLOCK_MONOTONIC at the last tick of the kernel, up to 10 ms ago, for a third of the cost.
#[inline]
pub fn coarse_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// CLOCK_REALTIME in ns.
pub fn realtime_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// CLOCK_BOOTTIME in ns.
pub fn boottime_ns() -> i64 {
    read(libc::CLOCK_BOOTTIME)
}

/// CLOCK_TAI in ns; equal to CLOCK_REALTIME if the offset in the kernel was never set.
pub fn tai_ns() -> i64 {
    read(libc::CLOCK_TAI)
}

/// CPU time that the calling thread has used, in ns: CLOCK_THREAD_CPUTIME_ID, a system call.
#[inline]
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that all threads of this process have used, in ns: CLOCK_PROCESS_CPUTIME_ID, a system call.
pub fn process_cpu_ns() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Resolution of CLOCK_MONOTONIC in ns.
/// [clock_getres(2)](https://man7.org/linux/man-pages/man2/clock_getres.2.html)
pub fn monotonic_resolution_ns() -> i64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut spec) };
    nanos(spec)
}

/// The state of the synchronisation of CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a process synchronises the clock (STA_UNSYNC is not set).
    pub synchronised: bool,
    /// The estimated error in µs, set by that process.
    pub estimated_error_us: i64,
    /// The largest possible error in µs; grows by 500 µs a second until it is set again.
    pub maximum_error_us: i64,
    /// The frequency correction, in units of 2⁻¹⁶ parts per million.
    pub frequency_scaled_ppm: i64,
    /// TAI − UTC in s; 0 if it was never set.
    pub tai_offset_s: i32,
    /// The status bits (STA_…).
    pub status: i32,
}

/// Reads the state of the synchronisation. [adjtimex(2)](https://man7.org/linux/man-pages/man2/adjtimex.2.html)
#[allow(clippy::unnecessary_cast, reason = "the fields have 32 bits on some targets")]
pub fn discipline() -> io::Result<Discipline> {
    // SAFETY: a timex is plain numbers, for which zero bytes are valid. No bit is set in `modes`: nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid, exclusive timex for the whole call.
    let clock_state = unsafe { libc::adjtimex(&raw mut state) };
    crate::done(clock_state)?;
    Ok(Discipline {
        // TIME_ERROR is also returned for other reasons than an unsynchronised clock: only the status bit is specific.
        synchronised: state.status & libc::STA_UNSYNC == 0,
        estimated_error_us: state.esterror as i64,
        maximum_error_us: state.maxerror as i64,
        frequency_scaled_ppm: state.freq as i64,
        tai_offset_s: state.tai,
        status: state.status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_clock_has_the_origin_of_the_monotonic_clock() {
        let (coarse, fine) = (coarse_ns(), monotonic_ns());
        assert!(coarse <= fine && fine - coarse < 1_000_000_000, "{coarse} {fine}");
    }

    #[test]
    fn cpu_time_grows_with_work_and_a_thread_has_no_more_than_its_process() {
        // The process is read first, so that CPU time between both readings is part of its difference.
        let (process, thread) = (process_cpu_ns(), thread_cpu_ns());
        while thread_cpu_ns() - thread < 2_000_000 {
            std::hint::black_box([0_u8; 4_096]);
        }
        assert!(process_cpu_ns() - process >= 2_000_000);
        assert!(thread_cpu_ns() <= process_cpu_ns());
    }
}
