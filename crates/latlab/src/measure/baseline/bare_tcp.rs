//! The bare loop over TCP: a round trip with latlab's own system calls, socket options and clock reads over one
//! connection, and nothing else. No session, no seam, no lengths in front, no recording; the round trips alone are kept.
//!
//! What latlab takes longer than this is latlab's own cost; what both take is the system's.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use latlab_sys::address::Family;
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{connection, datagram, readiness, socket};

use super::bare::{Wait, came};
use crate::plan::defaults;

/// What latlab puts in front of each message crosses the path with it.
const HEAD_BYTES: usize = 2;
/// On loopback nothing is late for so long but by mistake.
const GIVE_UP_NS: i64 = 1_000_000_000;

fn settle(fd: BorrowedFd<'_>, wait: Wait) -> io::Result<()> {
    socket::set_receive_timeout(fd, defaults::NAP.0)?;
    socket::set_send_timeout(fd, defaults::NAP.0)?;
    connection::set_no_delay(fd)?;
    if wait == Wait::BusyPoll {
        socket::set_busy_poll(fd, defaults::BUSY_POLL_US)?;
    }
    Ok(())
}

/// The sender's socket.
///
/// # Errors
/// What the kernel refuses.
pub fn connect(peer: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = connection::tcp(Family::of(&peer))?;
    settle(opened.as_fd(), wait)?;
    socket::connect(opened.as_fd(), peer)?;
    Ok(opened)
}

/// The reflector's listener; port 0: the kernel's choice, which `latlab_sys::socket::local_address` tells.
///
/// # Errors
/// What the kernel refuses.
pub fn bind(local: SocketAddr) -> io::Result<OwnedFd> {
    let opened = connection::tcp_listener(Family::of(&local))?;
    socket::bind(opened.as_fd(), local)?;
    connection::listen(opened.as_fd(), 1)?;
    Ok(opened)
}

/// Sends `count` messages of `size` bytes, each when the answer to the last has come. The round trips in ns.
///
/// # Errors
/// The connection broke, or an answer did not come within a second.
pub fn ping(sender: &OwnedFd, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
    let fd = sender.as_fd();
    let probe = vec![0x5a; HEAD_BYTES + size];
    let mut answer = vec![0; HEAD_BYTES + size];
    // Written once before the loop, so that no page of it is touched for the first time inside.
    let mut round_trips_ns = vec![u32::MAX; count];
    for round_trip_ns in &mut round_trips_ns {
        let sent = monotonic_ns();
        datagram::send(fd, &probe)?;
        let mut held = 0;
        while held < answer.len() {
            let received = match wait {
                Wait::Spin => datagram::receive_now(fd, &mut answer[held..]),
                Wait::Block | Wait::BusyPoll => datagram::receive(fd, &mut answer[held..]),
            };
            // As in latlab: the clock is read after every attempt, since it also ends the waiting.
            let now = monotonic_ns();
            match came(received)? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(bytes) => held += bytes,
                None if now - sent > GIVE_UP_NS => return Err(io::ErrorKind::TimedOut.into()),
                None => {}
            }
            *round_trip_ns = u32::try_from(now - sent).unwrap_or(u32::MAX);
        }
    }
    Ok(round_trips_ns)
}

/// Returns everything that comes over one connection, in messages of `size` bytes, until that or `stop` ends it.
///
/// # Errors
/// The connection broke.
pub fn reflect(listener: &OwnedFd, size: usize, wait: Wait, stop: &AtomicBool) -> io::Result<()> {
    let Some(accepted) = accept(listener, stop)? else { return Ok(()) };
    let fd = accepted.as_fd();
    settle(fd, wait)?;
    let mut buffer = vec![0; HEAD_BYTES + size];
    let mut held = 0;
    loop {
        let received = match wait {
            Wait::Spin => datagram::receive_now(fd, &mut buffer[held..]),
            Wait::Block | Wait::BusyPoll => datagram::receive(fd, &mut buffer[held..]),
        };
        match came(received)? {
            Some(0) => return Ok(()),
            Some(bytes) => held += bytes,
            None if stop.load(Ordering::Relaxed) => return Ok(()),
            None => {}
        }
        if held == buffer.len() {
            // The two stamps of every answer.
            black_box(monotonic_ns());
            black_box(monotonic_ns());
            connection::send_now(fd, &buffer)?;
            held = 0;
        }
    }
}

fn accept(listener: &OwnedFd, stop: &AtomicBool) -> io::Result<Option<OwnedFd>> {
    while !stop.load(Ordering::Relaxed) {
        if readiness::readable_within(listener.as_fd(), defaults::NAP.0)? {
            return connection::accept(listener.as_fd()).map(|(accepted, _)| Some(accepted));
        }
    }
    Ok(None)
}
