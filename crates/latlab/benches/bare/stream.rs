//! The sender of the bare stream: latlab's own system calls, socket options, buffers and clock reads of a stream, and
//! nothing else. No session and no counters in packets. [`super::bare_receiver`] counts.
//!
//! Its speed is that of these calls: the same packets are sent repeatedly. Calls, batches, strides, pins, the requested
//! buffer (4 MiB) and the one clock read per burst are those of `latlab stream local`. Both ends run in processes of
//! latlab.
//!
//! The difference between the rates of latlab and of this stream is latlab's own cost.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use latlab_sys::address::Address;
use latlab_sys::batch::{SendBatch, send_segmented};
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{datagram, socket};

use super::delivered::{Delivered, QUESTIONS, SUMS_BYTES};
use latlab::measure::baseline::bare::{Wait, open, received_bytes};
use latlab::plan::{SendMode, SenderSocketOptions, defaults};

/// The datagram that asks the receiver for its sums; packets of a stream are longer.
pub(crate) const QUESTION: [u8; 1] = [0x3f];

/// Sends packets of `size` bytes to `peer` for `span_ns`, as fast as the kernel takes them.
pub(crate) fn send(peer: SocketAddr, sending: SenderSocketOptions, size: u32, span_ns: i64) -> io::Result<Delivered> {
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
                (SendMode::Send | SendMode::Batch, None) => datagram::send(fd, &packets).map(|_| 1)?,
                (SendMode::Send | SendMode::Batch, Some(to)) => datagram::send_to(fd, &packets, to).map(|_| 1)?,
                (SendMode::Sendmmsg, _) => batch.send(fd, &packets, size, stride)?,
                (SendMode::Gso, to) => send_segmented(fd, &packets, size as u16, to.as_ref()).map(|_| per_call)?,
            } as u64;
        }
    }
    let mut sums = [0; SUMS_BYTES];
    for _ in 0..QUESTIONS {
        datagram::send_to(fd, &QUESTION, &peer.into())?;
        if received_bytes(datagram::receive(fd, &mut sums))? == Some(SUMS_BYTES) {
            return Ok(Delivered::of(sums, sent_packets));
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}
