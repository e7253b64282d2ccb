//! Memory for the datagrams that one system call of a reflector receives (docs/design/0014-stream.md).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use latlab_sys::batch::ReceiveBatch;

use super::address::canonical;

/// The most buffers that one call receives, each one datagram or several merged ones: the burst of a stream.
const CALL_MAX: usize = 64;
/// The fewest that one call asks for: a merged buffer takes some 5 µs, a system call 0.2 µs.
const CALL_MIN: usize = 4;
/// The bytes that one call asks for at most, estimated from the call before: they should still be in the cache when
/// they are read.
const CALL_BYTES: usize = 256 << 10;
/// The longest merged buffer plus one byte, so that truncation is always seen.
const BUFFER_BYTES: usize = 65_536;

/// Memory for what one call receives: 4.3 MiB of address space, of which only filled pages are resident.
#[derive(Debug)]
pub struct BatchBuffer {
    batch: ReceiveBatch,
    wanted: usize,
    received: usize,
    bytes: usize,
}

/// Datagrams of one sender that were received in one buffer.
#[derive(Debug)]
pub struct SenderBatch<'a> {
    /// The datagrams, contiguous.
    pub bytes: &'a mut [u8],
    /// The length of each datagram; the last one may be shorter.
    pub each_bytes: usize,
    /// Whether the kernel merged several datagrams.
    pub merged: bool,
    /// The sender, an IPv4 sender in IPv4 form.
    pub from: SocketAddr,
    /// The local address that they were sent to, if the socket is bound to all of them.
    pub local: Option<IpAddr>,
}

impl BatchBuffer {
    /// Memory for 64 datagrams of any length.
    #[expect(clippy::new_without_default, reason = "4 MiB of address space should be visible where it is taken")]
    pub fn new() -> BatchBuffer {
        BatchBuffer { batch: ReceiveBatch::new(CALL_MAX, BUFFER_BYTES), wanted: CALL_MAX, received: 0, bytes: 0 }
    }

    /// Receives what is there and returns the number of buffers. If there is nothing it waits for the socket's receive
    /// time-out, or not at all if `spins`.
    ///
    /// # Errors
    /// The kernel's, `WouldBlock` among them.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>, spins: bool) -> io::Result<usize> {
        let wanted = self.wanted();
        (self.received, self.bytes) = (0, 0);
        self.received = match spins {
            true => self.batch.receive_now(socket, wanted),
            false => self.batch.receive(socket, wanted),
        }?;
        Ok(self.received)
    }

    /// How many buffers to ask for, by the size of those received last.
    fn wanted(&mut self) -> usize {
        if self.received > 0 {
            self.wanted = (CALL_BYTES * self.received / self.bytes.max(1)).clamp(CALL_MIN, CALL_MAX);
        }
        self.wanted
    }

    /// Buffer `index` of those received; `None` beyond the last one, or if its sender has no IP address.
    #[inline]
    pub fn get(&mut self, index: usize) -> Option<SenderBatch<'_>> {
        let arrived = self.batch.arrived(index)?;
        self.bytes += arrived.bytes.len();
        let from = canonical(arrived.peer.to_socket_addr()?);
        // A datagram may be empty, and the length of a chunk must not be 0.
        let each_bytes = arrived.segment.unwrap_or(arrived.bytes.len()).max(1);
        let merged = arrived.segment.is_some();
        Some(SenderBatch { bytes: arrived.bytes, each_bytes, merged, from, local: arrived.local })
    }
}
