//! Clock reads. [clock_gettime(2)](https://man7.org/linux/man-pages/man2/clock_gettime.2.html);
//! on common architectures all of these are answered by the vDSO without entering the kernel.

#[cfg(target_os = "linux")]
use libc::{CLOCK_BOOTTIME, CLOCK_MONOTONIC_COARSE, CLOCK_TAI};
// Other systems know neither: the nearest clock they have stands in.
#[cfg(not(target_os = "linux"))]
use libc::{CLOCK_MONOTONIC as CLOCK_BOOTTIME, CLOCK_MONOTONIC as CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME as CLOCK_TAI};

#[inline]
#[allow(clippy::unnecessary_cast, reason = "both fields have 32 bits on some targets")]
fn nanos(spec: libc::timespec) -> i64 {
    spec.tv_sec as i64 * 1_000_000_000 + spec.tv_nsec as i64
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid, exclusive timespec for the whole call; the clock ids used exist on
    // every kernel we support, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut spec) };
    nanos(spec)
}

/// CLOCK_MONOTONIC in ns.
#[inline]
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_MONOTONIC in ns as of the kernel's last tick, up to 10 ms ago: CLOCK_MONOTONIC_COARSE, for a third of the cost,
/// where it matters only that time passes.
#[inline]
pub fn coarse_ns() -> i64 {
    read(CLOCK_MONOTONIC_COARSE)
}

/// CLOCK_REALTIME in ns.
pub fn realtime_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// CLOCK_BOOTTIME in ns.
pub fn boottime_ns() -> i64 {
    read(CLOCK_BOOTTIME)
}

/// CLOCK_TAI in ns; equal to CLOCK_REALTIME where nobody told the kernel the offset.
pub fn tai_ns() -> i64 {
    read(CLOCK_TAI)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_clock_is_the_same_clock() {
        let (coarse, fine) = (coarse_ns(), monotonic_ns());
        assert!(coarse <= fine && fine - coarse < 1_000_000_000, "{coarse} {fine}");
    }

    #[test]
    fn cpu_time_passes_while_working_and_a_thread_has_no_more_than_its_process() {
        // The process first: what passes between the two is its as well.
        let (process, thread) = (process_cpu_ns(), thread_cpu_ns());
        while thread_cpu_ns() - thread < 2_000_000 {
            std::hint::black_box([0_u8; 4_096]);
        }
        assert!(process_cpu_ns() - process >= 2_000_000);
        assert!(thread_cpu_ns() <= process_cpu_ns());
    }
}
