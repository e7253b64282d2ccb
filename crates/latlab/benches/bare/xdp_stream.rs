//! The bare stream past the network stack: latlab's own calls, rings and clock reads of a stream between AF_XDP sockets. No
//! session, no checksums, no parsing. The same packet is sent repeatedly. The receiver copies it out of its frame, as a receive call does.

use std::io;

use latlab_sys::clock::monotonic_ns;
use latlab_sys::sleep;
use latlab_sys::xdp::{Received, XdpSocket};

use super::delivered::{Delivered, QUESTIONS, SUMS_BYTES, Sums};
use super::xdp::{BareXdp, copy_out, exchange_addresses, free_frame, kick_all, receive, send};
use latlab::measure::baseline::bare::Wait;
use latlab::plan::{SenderSocketOptions, defaults};

/// Where checksum and payload of a UDP packet begin.
const CHECKSUM: usize = 40;
const PAYLOAD: usize = 42;
/// Packets between two clock reads of the receiver, as in `latlab stream`.
const BATCH: u32 = 64;

impl BareXdp {
    /// Sends packets with `size` bytes of payload for `span_ns`, as fast as the kernel takes them, in turns and in bursts as
    /// `sending` says.
    pub(crate) fn stream(&mut self, size: usize, sending: SenderSocketOptions, span_ns: i64) -> io::Result<Delivered> {
        let BareXdp::Sender(sender) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let [packet, question] = [size, SUMS_BYTES].map(|bytes| sender.packet_of(&vec![0x5a; bytes]));
        let socket = sender.socket_mut();
        let [per_call, burst] = [sending.packets_per_call(size as u32), sending.burst_packets(size as u32)];
        let (end, mut sent_packets) = (monotonic_ns() + span_ns, 0);
        while monotonic_ns() < end {
            for _ in 0..burst / per_call {
                let frames = std::iter::from_fn(|| queue(socket, &packet));
                sent_packets += frames.take(per_call.into()).count() as u64;
                kick_all(socket)?;
            }
        }
        for _ in 0..QUESTIONS {
            _ = queue(socket, &question);
            kick_all(socket)?;
            if let Some(answer) = receive(socket, Wait::Block)? {
                let sums = socket.packet(&answer).get(PAYLOAD..).and_then(|bytes| bytes.first_chunk());
                let sums = *sums.ok_or(io::ErrorKind::InvalidData)?;
                return Ok(Delivered::of(sums, sent_packets));
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Adds up received bytes, and answers packets that ask for the sums. Pauses when it has emptied the ring of several
    /// packets.
    pub(crate) fn count(&mut self, wait: Wait) -> io::Result<()> {
        let BareXdp::Reflector(reflector) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let socket = reflector.socket_mut();
        socket.give_all();
        let (mut sums, mut queued, mut buffer) = (Sums::default(), 0, Vec::new());
        loop {
            let mut next = socket.receive();
            if next.is_none() && wait == Wait::Block && std::mem::take(&mut queued) > 1 {
                let _ = sleep::clock_nanosleep_for(defaults::STREAM_RECEIVE_PAUSE.0);
            }
            next = next.map_or_else(|| receive(socket, wait), |packet| Ok(Some(packet)))?;
            let (mut bytes, mut packets, mut asks) = (0, 0, None);
            while let Some(packet) = next {
                let payload_bytes = socket.packet(&packet).len().saturating_sub(PAYLOAD);
                packets += 1;
                // What follows the packet that asks is the next batch.
                next = if packets < BATCH && payload_bytes != SUMS_BYTES { socket.receive() } else { None };
                if payload_bytes == SUMS_BYTES {
                    asks = Some(packet);
                } else {
                    bytes += payload_bytes as u64;
                    copy_out(socket.packet(&packet), &mut buffer);
                    socket.give_back(packet.into_frame());
                }
            }
            queued += packets;
            if bytes > 0 {
                sums.add(monotonic_ns(), bytes);
            }
            if let Some(packet) = asks {
                answer(socket, &packet, sums)?;
                socket.give_back(packet.into_frame());
            }
        }
    }
}

/// Puts `packet` into the ring; `None` without a free frame.
fn queue(socket: &mut XdpSocket, packet: &[u8]) -> Option<()> {
    let mut frame = socket.free_frame()?;
    socket.bytes_mut(&mut frame)[..packet.len()].copy_from_slice(packet);
    socket.transmit(frame, packet.len());
    Some(())
}

/// Returns the packet that asks for them with the sums, without a checksum.
fn answer(socket: &mut XdpSocket, asks: &Received, sums: Sums) -> io::Result<()> {
    let mut frame = free_frame(socket)?;
    let bytes = socket.copy_packet(asks, &mut frame);
    let packet = &mut socket.bytes_mut(&mut frame)[..bytes];
    exchange_addresses(packet);
    packet[CHECKSUM..PAYLOAD].fill(0);
    packet[PAYLOAD..].copy_from_slice(&sums.to_bytes());
    send(socket, frame, bytes)
}
