//! The bare loop: a round trip with latlab's own system calls, socket options and clock reads, and nothing else. No
//! session, no transport trait, no recording; only the round-trip times are kept.
//!
//! The difference between latlab's round trips and those of this loop is latlab's own cost.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use latlab_sys::address::{Address, AddressFamily};
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{datagram, socket};

use crate::plan::{WaitMode, defaults};

/// The time after which a missing answer is an error; on loopback no datagram is lost.
const GIVE_UP_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Block,
    /// A blocking receive call that polls the driver first.
    BusyPoll,
    Spin,
}

impl From<WaitMode> for Wait {
    fn from(mode: WaitMode) -> Wait {
        match mode {
            WaitMode::Block => Wait::Block,
            WaitMode::BusyPoll => Wait::BusyPoll,
            WaitMode::Spin => Wait::Spin,
        }
    }
}

pub fn open(address: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = socket::udp(AddressFamily::of(&address))?;
    let fd = opened.as_fd();
    socket::set_receive_timeout(fd, defaults::NAP.0)?;
    socket::set_send_timeout(fd, defaults::NAP.0)?;
    if wait == Wait::BusyPoll {
        socket::set_busy_poll(fd, defaults::BUSY_POLL_US)?;
    }
    socket::set_receive_buffer(fd, defaults::RECEIVE_BUFFER_BYTES)?;
    Ok(opened)
}

/// The sender's socket.
///
/// # Errors
/// The kernel refused.
pub fn connect(peer: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = open(peer, wait)?;
    socket::connect(opened.as_fd(), peer)?;
    Ok(opened)
}

/// The reflector's socket. With port 0 the kernel chooses one (`latlab_sys::socket::local_address`).
///
/// # Errors
/// The kernel refused.
pub fn bind(local: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = open(local, wait)?;
    socket::bind(opened.as_fd(), local)?;
    Ok(opened)
}

/// Sends `count` datagrams of `size` bytes, each after the answer to the one before. Returns the round-trip times in ns.
///
/// # Errors
/// The socket failed, or an answer did not arrive within a second.
pub fn ping(sender: &OwnedFd, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
    let fd = sender.as_fd();
    let probe = vec![0x5a; size];
    let mut answer = vec![0; size + 1];
    // Written before the loop, so that the loop causes no page faults.
    let mut round_trips_ns = vec![u32::MAX; count];
    for round_trip_ns in &mut round_trips_ns {
        let sent = monotonic_ns();
        datagram::send(fd, &probe)?;
        loop {
            let received = match wait {
                Wait::Spin => datagram::receive_now(fd, &mut answer),
                Wait::Block | Wait::BusyPoll => datagram::receive(fd, &mut answer),
            };
            // As in latlab, the clock is read after every attempt, for the time-out.
            let now = monotonic_ns();
            if received_bytes(received)?.is_some() {
                *round_trip_ns = u32::try_from(now - sent).unwrap_or(u32::MAX);
                break;
            }
            if now - sent > GIVE_UP_NS {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    Ok(round_trips_ns)
}

/// Returns every datagram to its sender until `stop` is set, which is read when no datagram arrives.
///
/// # Errors
/// The socket failed.
pub fn reflect(reflector: &OwnedFd, wait: Wait, stop: &AtomicBool) -> io::Result<()> {
    let fd = reflector.as_fd();
    let mut buffer = vec![0; defaults::SIZE_MAX_BYTES as usize];
    let mut peer = Address::empty();
    loop {
        let received = match wait {
            Wait::Spin => datagram::receive_from_now(fd, &mut buffer, &mut peer),
            Wait::Block | Wait::BusyPoll => datagram::receive_from(fd, &mut buffer, &mut peer),
        };
        match received_bytes(received)? {
            Some(bytes) => {
                // For the two stamps of every answer.
                black_box(monotonic_ns());
                black_box(monotonic_ns());
                datagram::send_to(fd, &buffer[..bytes], &peer)?;
            }
            None if stop.load(Ordering::Relaxed) => return Ok(()),
            None => {}
        }
    }
}

/// The received bytes; `None` if nothing was received.
pub fn received_bytes(received: io::Result<usize>) -> io::Result<Option<usize>> {
    match received {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
