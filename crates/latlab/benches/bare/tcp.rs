//! The bare loop over TCP: a round trip with latlab's own system calls, socket options and clock reads over one
//! connection, and nothing else. No session, no transport trait, no parsing of lengths, no recording; only the
//! round-trip times are kept.
//!
//! The difference between latlab's round trips and those of this loop is latlab's own cost.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::AddressFamily;
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{connection, datagram, readiness, socket};

use latlab::measure::baseline::bare::{Wait, received_bytes};
use latlab::plan::defaults;

/// The length that latlab puts before each message.
const HEAD_BYTES: usize = 2;
/// The time after which a missing answer is an error.
const GIVE_UP_NS: i64 = 1_000_000_000;

fn set_options(fd: BorrowedFd<'_>, wait: Wait) -> io::Result<()> {
    socket::set_receive_timeout(fd, defaults::NAP.0)?;
    socket::set_send_timeout(fd, defaults::NAP.0)?;
    rustix::net::sockopt::set_tcp_nodelay(fd, true)?;
    if wait == Wait::BusyPoll {
        socket::set_busy_poll(fd, defaults::BUSY_POLL_US)?;
    }
    Ok(())
}

/// The sender's socket.
pub(crate) fn connect(peer: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = connection::tcp(AddressFamily::of(&peer))?;
    set_options(opened.as_fd(), wait)?;
    socket::connect(opened.as_fd(), peer)?;
    Ok(opened)
}

/// The reflector's listener. With port 0 the kernel chooses one (`latlab_sys::socket::local_address`).
pub(crate) fn bind(local: SocketAddr) -> io::Result<OwnedFd> {
    let opened = connection::tcp_listener(AddressFamily::of(&local))?;
    socket::bind(opened.as_fd(), local)?;
    rustix::net::listen(&opened, 1)?;
    Ok(opened)
}

/// Sends `count` messages of `size` bytes, each after the answer to the one before. Returns the round-trip times in ns.
pub(crate) fn ping(sender: &OwnedFd, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
    let fd = sender.as_fd();
    let probe = vec![0x5a; HEAD_BYTES + size];
    let mut answer = vec![0; HEAD_BYTES + size];
    // Written before the loop, so that the loop causes no page faults.
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
            // As in latlab, the clock is read after every attempt, for the time-out.
            let now = monotonic_ns();
            match received_bytes(received)? {
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

/// Returns every message of `size` bytes of one connection, until the connection ends.
pub(crate) fn reflect(listener: &OwnedFd, size: usize, wait: Wait) -> io::Result<()> {
    let accepted = accept(listener)?;
    let fd = accepted.as_fd();
    set_options(fd, wait)?;
    let mut buffer = vec![0; HEAD_BYTES + size];
    let mut held = 0;
    loop {
        let received = match wait {
            Wait::Spin => datagram::receive_now(fd, &mut buffer[held..]),
            Wait::Block | Wait::BusyPoll => datagram::receive(fd, &mut buffer[held..]),
        };
        match received_bytes(received)? {
            Some(0) => return Ok(()),
            Some(bytes) => held += bytes,
            None => {}
        }
        if held == buffer.len() {
            // For the two stamps of every answer.
            black_box(monotonic_ns());
            black_box(monotonic_ns());
            connection::send_now(fd, &buffer)?;
            held = 0;
        }
    }
}

fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    while !readiness::readable_within(listener.as_fd(), defaults::NAP.0)? {}
    connection::accept(listener.as_fd()).map(|(accepted, _)| accepted)
}
