//! The bare loop on a schedule: a datagram whenever one is due, with latlab's own system calls, socket options and clock
//! reads of `latlab ping -i T`, and nothing else.
//!
//! A thread that sleeps between two probes finds its CPU idle and its caches cold: the difference from the closed bare loop
//! is the cost of sleeping, and the difference between latlab and this loop is latlab's own cost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::clock::monotonic_ns;
use latlab_sys::{datagram, readiness};

use latlab::measure::baseline::bare::{Wait, received_bytes};

/// How long the last answers are awaited.
const LINGER_NS: i64 = 1_000_000_000;
/// Each datagram begins with the time at which it was sent, which its answer returns.
const STAMP_BYTES: usize = 8;

/// Sends `count` datagrams of `size` bytes, at least 8, one every `interval_ns`. Returns the round-trip times in ns of
/// those that were answered.
pub(crate) fn ping(sender: &OwnedFd, size: usize, wait: Wait, count: usize, interval_ns: i64) -> io::Result<Vec<u32>> {
    let mut probe = vec![0x5a; size.max(STAMP_BYTES)];
    let mut answers =
        Answers { fd: sender.as_fd(), wait, buffer: vec![0; probe.len() + 1], round_trips_ns: Vec::new() };
    // Written before the loop, so that the loop causes no page faults.
    answers.round_trips_ns.resize(count, u32::MAX);
    answers.round_trips_ns.clear();
    let mut due = monotonic_ns();
    for _ in 0..count {
        due += interval_ns;
        answers.receive_until(due)?;
        let sent = monotonic_ns();
        probe[..STAMP_BYTES].copy_from_slice(&sent.to_ne_bytes());
        datagram::send(answers.fd, &probe)?;
        // As latlab, one receive call without a wait after each probe.
        answers.receive(0)?;
    }
    let end = monotonic_ns() + LINGER_NS;
    while answers.round_trips_ns.len() < count && monotonic_ns() < end {
        answers.receive(LINGER_NS)?;
    }
    Ok(answers.round_trips_ns)
}

/// The receiving half of the loop.
struct Answers<'a> {
    fd: BorrowedFd<'a>,
    wait: Wait,
    buffer: Vec<u8>,
    round_trips_ns: Vec<u32>,
}

impl Answers<'_> {
    fn receive_until(&mut self, due: i64) -> io::Result<()> {
        loop {
            let now = monotonic_ns();
            if now >= due {
                return Ok(());
            }
            self.receive(due - now)?;
        }
    }

    /// Receives one answer, waiting about `patience_ns`.
    #[inline]
    fn receive(&mut self, patience_ns: i64) -> io::Result<()> {
        let sleeps = patience_ns > 0 && self.wait != Wait::Spin;
        if sleeps && !readiness::readable_within(self.fd, patience_ns)? {
            return Ok(());
        }
        if received_bytes(datagram::receive_now(self.fd, &mut self.buffer))?.is_none() {
            return Ok(());
        }
        let now = monotonic_ns();
        let sent = self.buffer.first_chunk().map_or(now, |stamp| i64::from_ne_bytes(*stamp));
        self.round_trips_ns.push(u32::try_from(now - sent).unwrap_or(u32::MAX));
        Ok(())
    }
}
