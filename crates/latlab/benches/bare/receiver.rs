//! The receivers of the bare stream: ways of taking packets from the kernel, with latlab's own socket options, buffers and
//! clock reads, and nothing else. No session, no window: they add up the lengths of packets.
//!
//! The way of latlab's own receiver is [`ReceiveMode::Pause`]. The others are those of common programs: the benches compare
//! latlab with the fastest.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::Address;
use latlab_sys::batch::ReceiveBatch;
use latlab_sys::clock::monotonic_ns;
use latlab_sys::{datagram, readiness, sleep, socket};
use serde::{Deserialize, Serialize};

use super::delivered::Sums;
use super::stream::QUESTION;
use latlab::measure::baseline::bare::{Wait, open, received_bytes};
use latlab::plan::{SendMode, SenderSocketOptions, defaults};

/// How the receiver of a bare stream waits for packets and takes them from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReceiveMode {
    /// As a reflector: recvmmsg(2), and a pause after a call that emptied the socket.
    Pause,
    /// recvmmsg(2), which sleeps until the next packet.
    Recvmmsg,
    /// ppoll(2), then recvmmsg(2).
    Ppoll,
    /// One call for each packet (recvfrom(2)), which sleeps until it is there.
    Recvfrom,
}

impl ReceiveMode {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            ReceiveMode::Pause => "pause",
            ReceiveMode::Recvmmsg => "recvmmsg",
            ReceiveMode::Ppoll => "ppoll",
            ReceiveMode::Recvfrom => "recvfrom",
        }
    }
}

/// The receiver of a bare stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BareReceiver {
    /// How it waits and receives.
    pub(crate) mode: ReceiveMode,
    /// Whether the kernel may merge packets (UDP_GRO).
    pub(crate) merges: bool,
    /// The most buffers that one call of recvmmsg(2) receives.
    pub(crate) buffers_per_call: u16,
}

impl BareReceiver {
    /// The bytes that one call receives at most, as latlab's own receiver does.
    const CALL_BYTES: u32 = 256 << 10;

    /// A receiver of packets of `size_bytes` that are sent as `sending` says.
    pub(crate) fn new(mode: ReceiveMode, merges: bool, sending: SenderSocketOptions, size_bytes: u32) -> BareReceiver {
        let is_merged = merges && sending.mode == SendMode::Gso;
        let merged = if is_merged { sending.packets_per_call(size_bytes) } else { 1 };
        let fitting = Self::CALL_BYTES / (u32::from(merged) * size_bytes.max(1));
        BareReceiver { mode, merges, buffers_per_call: fitting.clamp(4, 64) as u16 }
    }
}

/// One byte more than the longest merged datagram.
const BUFFER_BYTES: usize = 65_536;

/// The socket. With port 0 the kernel chooses one.
pub(crate) fn bind(local: SocketAddr, wait: Wait, receiver: BareReceiver) -> io::Result<OwnedFd> {
    let opened = open(local, wait)?;
    socket::set_merging(opened.as_fd(), receiver.merges)?;
    socket::bind(opened.as_fd(), local)?;
    Ok(opened)
}

/// The packets of one receive call.
#[derive(Default)]
struct Received {
    buffers: usize,
    bytes: u64,
    /// The sender of the last one.
    from: Option<SocketAddr>,
    /// The last one asks for the sums.
    asks: bool,
}

impl Received {
    fn add(&mut self, length: usize, from: &Address) {
        (self.buffers, self.asks) = (self.buffers + 1, length == QUESTION.len());
        self.bytes += if self.asks { 0 } else { length as u64 };
        self.from = from.to_socket_addr();
    }
}

struct Packets {
    batch: ReceiveBatch,
    one: Vec<u8>,
    from: Address,
}

impl Packets {
    /// Makes the one receive call, or two, of `mode`.
    fn receive(&mut self, fd: BorrowedFd<'_>, wait: Wait, receiver: BareReceiver) -> io::Result<Received> {
        let (wanted, spins) = (usize::from(receiver.buffers_per_call), wait == Wait::Spin);
        let mut received = Received::default();
        let came = match receiver.mode {
            ReceiveMode::Recvfrom if spins => datagram::receive_from_now(fd, &mut self.one, &mut self.from),
            ReceiveMode::Recvfrom => datagram::receive_from(fd, &mut self.one, &mut self.from),
            ReceiveMode::Ppoll if !readiness::readable_within(fd, defaults::NAP.0)? => return Ok(received),
            ReceiveMode::Pause | ReceiveMode::Recvmmsg if !spins => self.batch.receive(fd, wanted),
            _ => self.batch.receive_now(fd, wanted),
        };
        match (received_bytes(came)?, receiver.mode) {
            (Some(length), ReceiveMode::Recvfrom) => received.add(length, &self.from),
            (Some(buffers), _) => (0..buffers).for_each(|index| {
                if let Some(arrived) = self.batch.arrived(index) {
                    received.add(arrived.bytes.len(), arrived.peer);
                }
            }),
            (None, _) => {}
        }
        Ok(received)
    }
}

/// Adds up received bytes, and answers requests for the sums.
pub(crate) fn count(socket: &OwnedFd, wait: Wait, receiver: BareReceiver) -> io::Result<()> {
    let fd = socket.as_fd();
    let batch = ReceiveBatch::new(64, BUFFER_BYTES);
    let mut packets = Packets { batch, one: vec![0; BUFFER_BYTES], from: Address::empty() };
    let (mut sums, mut is_connected, mut queued) = (Sums::default(), false, 0);
    let pauses = receiver.mode == ReceiveMode::Pause && wait == Wait::Block;
    loop {
        let received = packets.receive(fd, wait, receiver)?;
        let now = monotonic_ns();
        let Some(peer) = received.from else { continue };
        if !is_connected {
            // As the reflector of a single run does.
            socket::connect(fd, peer)?;
            is_connected = true;
        }
        if received.bytes > 0 {
            sums.add(now, received.bytes);
        }
        if received.asks {
            datagram::send_to(fd, &sums.to_bytes(), &peer.into())?;
        }
        queued += received.buffers;
        if pauses && received.buffers < usize::from(receiver.buffers_per_call) {
            if queued > 1 {
                let _ = sleep::clock_nanosleep_for(defaults::STREAM_RECEIVE_PAUSE.0);
            }
            queued = 0;
        }
    }
}
