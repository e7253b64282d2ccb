//! The system calls that latlab needs: one safe function each, with its manual page or kernel source linked; and the
//! processor's prefetch instructions.
//!
//! This crate and the test allocator are the only places with `unsafe` (ARCHITECTURE.md, invariant 8).
//! On systems other than Linux the same names exist and return `Unsupported`.

pub mod clock;
pub mod errno;
pub mod ethtool;
pub mod prefetch;

#[cfg(target_os = "linux")]
pub mod address;
#[cfg(target_os = "linux")]
pub mod batch;
#[cfg(target_os = "linux")]
pub mod bpf;
#[cfg(target_os = "linux")]
pub mod connection;
#[cfg(target_os = "linux")]
pub mod cpu_time;
#[cfg(target_os = "linux")]
pub mod datagram;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod readiness;
#[cfg(target_os = "linux")]
pub mod scheduler;
#[cfg(target_os = "linux")]
pub mod sleep;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod xdp;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{address, batch, connection, cpu_time, datagram, process, readiness, scheduler, sleep, socket};

/// The result of a call that returns −1 and sets `errno` on failure.
#[cfg(target_os = "linux")]
fn done(answer: libc::c_int) -> std::io::Result<()> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// The result of a call that returns a length, or −1 and sets `errno`.
#[cfg(target_os = "linux")]
#[inline]
fn length(answer: impl TryInto<usize>) -> std::io::Result<usize> {
    answer.try_into().map_err(|_| std::io::Error::last_os_error())
}
