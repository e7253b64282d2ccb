//! The system calls that latlab needs: one safe function each, with its manual page or kernel source linked; and the
//! processor's prefetch instructions.
//!
//! This crate and the test allocator are the only places with `unsafe` (ARCHITECTURE.md, invariant 8).
//! It compiles on Linux only.

#![allow(unsafe_code, reason = "system calls")]

pub mod address;
pub mod batch;
pub mod bpf;
pub mod clock;
pub mod connection;
mod control;
pub mod cpu_time;
pub mod datagram;
pub mod errno;
pub mod ethtool;
pub mod prefetch;
pub mod process;
pub mod readiness;
pub mod scheduler;
pub mod sleep;
pub mod socket;
pub mod spawn;
pub mod stamps;
pub mod xdp;

/// The result of a call that returns −1 and sets `errno` on failure.
fn done(answer: libc::c_int) -> std::io::Result<()> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// The result of a call that returns a length, or −1 and sets `errno`.
#[inline]
fn length(answer: impl TryInto<usize>) -> std::io::Result<usize> {
    answer.try_into().map_err(|_| std::io::Error::last_os_error())
}
