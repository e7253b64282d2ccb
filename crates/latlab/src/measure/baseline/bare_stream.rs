//! The bare stream: latlab's own system calls, socket options, buffers and clock reads of a stream, and nothing else. No
//! session, no counters in packets, no window; what arrives is added up.
//!
//! It is as fast as these calls are: packets are written once and sent again and again, and of what arrives only the
//! lengths are read. Calls, batches, strides, pins, merging (UDP_GRO), buffers (4 MiB asked for), the receiver's connected
//! socket and the one clock read per burst or per receive call are those of `latlab stream local`; both ends run in
//! processes of latlab's, started alike.
//!
//! What latlab carries less than this is latlab's own cost; what neither carries is the system's.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use latlab_sys::address::Address;
use latlab_sys::batch::{ReceiveBatch, SendBatch, send_segmented};
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{datagram, socket};
use serde::Serialize;

use super::bare::{Wait, came, open};
use crate::plan::{SendMode, SenderSocketOptions, defaults};

/// What asks the receiver for its sums: no stream has packets so short.
const QUESTION: [u8; 1] = [0x3f];
/// The sums, big endian: bytes, and the span between the first and the last call that brought some.
const SUMS_BYTES: usize = 16;
/// The receiver is asked so often, each time for as long as its nap.
const QUESTIONS: usize = 20;
/// As latlab's own receiver: one call asks for as many buffers as have so many bytes together.
const CALL_BYTES: usize = 256 << 10;
/// The longest merged buffer, and one more byte.
const ROOM_BYTES: usize = 65_536;

/// What was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delivered {
    /// Packets that the kernel took.
    pub sent_packets: u64,
    /// Bytes of UDP payload that arrived after the first call that brought some.
    pub delivered_bytes: u64,
    /// From that call to the last.
    pub span_ns: i64,
    /// Bits of UDP payload a second.
    pub delivered_bps: f64,
}

/// The receiver's socket; port 0: the kernel's choice.
///
/// # Errors
/// What the kernel refuses.
pub fn bind(local: SocketAddr, wait: Wait) -> io::Result<OwnedFd> {
    let opened = open(local, wait)?;
    socket::set_merging(opened.as_fd(), true)?;
    socket::bind(opened.as_fd(), local)?;
    Ok(opened)
}

/// How many buffers the receiver asks for at a time, where packets of `size` bytes leave as `sending` says.
pub fn buffers_per_call(sending: SenderSocketOptions, size: u32) -> usize {
    let merged = if sending.mode == SendMode::Gso { sending.packets_per_call(size) } else { 1 };
    (CALL_BYTES / (usize::from(merged) * size as usize)).clamp(4, 64)
}

/// Sends packets of `size` bytes to `peer` for `span_ns`, as fast as they are taken.
///
/// # Errors
/// The socket broke, or the receiver does not say what arrived.
pub fn send(peer: SocketAddr, sending: SenderSocketOptions, size: u32, span_ns: i64) -> io::Result<Delivered> {
    let opened = open(peer, Wait::Block)?;
    let fd = opened.as_fd();
    socket::set_send_buffer(fd, defaults::STREAM_BUFFER_BYTES)?;
    let to = (!sending.connect).then(|| Address::from(peer));
    match &to {
        None => socket::connect(fd, peer)?,
        Some(_) => socket::bind(fd, SocketAddr::new(peer.ip(), 0))?,
    }
    let (per_call, size) = (usize::from(sending.packets_per_call(size)), size as usize);
    let stride = if sending.mode == SendMode::Gso { size } else { size.min(2_048) };
    let packets = vec![0x5a; (per_call - 1) * stride + size];
    let mut batch = SendBatch::new(per_call, to);
    let end = monotonic_ns() + span_ns;
    let mut sent_packets = 0;
    while monotonic_ns() < end {
        for _ in 0..usize::from(sending.burst_packets(size as u32)) / per_call {
            sent_packets += match (sending.mode, &to) {
                (SendMode::Send, None) => datagram::send(fd, &packets).map(|_| 1)?,
                (SendMode::Send, Some(to)) => datagram::send_to(fd, &packets, to).map(|_| 1)?,
                (SendMode::Sendmmsg, _) => batch.send(fd, &packets, size, stride)?,
                (SendMode::Gso, to) => send_segmented(fd, &packets, size as u16, to.as_ref()).map(|_| per_call)?,
            } as u64;
        }
    }
    let mut sums = [0; SUMS_BYTES];
    for _ in 0..QUESTIONS {
        datagram::send_to(fd, &QUESTION, &peer.into())?;
        if came(datagram::receive(fd, &mut sums))? == Some(SUMS_BYTES) {
            let both = u128::from_be_bytes(sums);
            let (delivered_bytes, span_ns) = ((both >> 64) as u64, both as i64);
            let delivered_bps = delivered_bytes as f64 * 8e9 / span_ns.max(1) as f64;
            return Ok(Delivered { sent_packets, delivered_bytes, span_ns, delivered_bps });
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Adds up what arrives, `wanted` buffers a call, and says so when asked, until `stop` is set.
///
/// # Errors
/// The socket broke.
pub fn count(receiver: &OwnedFd, wait: Wait, wanted: usize, stop: &AtomicBool) -> io::Result<()> {
    let fd = receiver.as_fd();
    let mut batch = ReceiveBatch::new(64, ROOM_BYTES);
    let (mut first, mut last, mut bytes) = (None, 0, 0);
    loop {
        let received = match wait {
            Wait::Spin => batch.receive_now(fd, wanted),
            Wait::Block | Wait::BusyPoll => batch.receive(fd, wanted),
        };
        let now = monotonic_ns();
        let Some(buffers) = came(received)? else {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            continue;
        };
        if let Some(peer) = batch.arrived(0).filter(|_| first.is_none()).and_then(|one| one.peer.to_socket_addr()) {
            // As a reflector of one run does.
            socket::connect(fd, peer)?;
        }
        let before = bytes;
        for arrived in (0..buffers).map_while(|index| batch.arrived(index).map(|one| (one.bytes.len(), *one.peer))) {
            match arrived {
                (1, peer) => {
                    let both = (u128::from(bytes) << 64) + (last - first.unwrap_or(last)) as u128;
                    datagram::send_to(fd, &both.to_be_bytes(), &peer)?;
                }
                (length, _) if first.is_some() => bytes += length as u64,
                _ => {}
            }
        }
        // What the first call brought came before the span began.
        if before != bytes || first.is_none() {
            first.get_or_insert(now);
            last = now;
        }
    }
}
