//! Clock reads. [clock_gettime(2)](https://man7.org/linux/man-pages/man2/clock_gettime.2.html);
//! on common architectures all of these are answered by the vDSO without entering the kernel.

#[cfg(target_os = "linux")]
use libc::{CLOCK_BOOTTIME, CLOCK_TAI};
// Other systems know neither: the nearest clock they have stands in.
#[cfg(not(target_os = "linux"))]
use libc::{CLOCK_MONOTONIC as CLOCK_BOOTTIME, CLOCK_REALTIME as CLOCK_TAI};

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

/// Resolution of CLOCK_MONOTONIC in ns.
/// [clock_getres(2)](https://man7.org/linux/man-pages/man2/clock_getres.2.html)
pub fn monotonic_resolution_ns() -> i64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut spec) };
    nanos(spec)
}
