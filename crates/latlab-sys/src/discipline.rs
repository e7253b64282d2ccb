//! How the kernel keeps CLOCK_REALTIME in step with other clocks.

use std::io;

/// What the kernel knows about the error of CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether somebody keeps the clock in step (not STA_UNSYNC).
    pub synchronised: bool,
    /// The estimated error in µs, as the one who keeps it says.
    pub estimated_error_us: i64,
    /// The largest possible error in µs; grows by 500 µs a second until it is said anew.
    pub maximum_error_us: i64,
    /// By how much the clock is made faster, in units of 2⁻¹⁶ parts per million.
    pub frequency_scaled_ppm: i64,
    /// TAI − UTC in s; 0 where nobody said it.
    pub tai_offset_s: i32,
    /// The status bits (STA_…).
    pub status: i32,
}

/// Reads it; changes nothing. [adjtimex(2)](https://man7.org/linux/man-pages/man2/adjtimex.2.html)
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_cast, reason = "the fields have 32 bits on some targets")]
pub fn read() -> io::Result<Discipline> {
    // SAFETY: a timex is plain numbers, for which zero bytes are valid; no bit in `modes`: nothing is set.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid, exclusive timex for the whole call.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    crate::done(answer)?;
    Ok(Discipline {
        // TIME_ERROR is answered as well where the clock is merely suspect: the bit says which.
        synchronised: state.status & libc::STA_UNSYNC == 0,
        estimated_error_us: state.esterror as i64,
        maximum_error_us: state.maxerror as i64,
        frequency_scaled_ppm: state.freq as i64,
        tai_offset_s: state.tai,
        status: state.status,
    })
}

/// Other systems: `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub fn read() -> io::Result<Discipline> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_kernel_tells_without_any_right() {
        let state = super::read().expect("reading needs no right");
        assert!(state.maximum_error_us >= 0);
        assert_eq!(state.synchronised, state.status & libc::STA_UNSYNC == 0);
    }
}
