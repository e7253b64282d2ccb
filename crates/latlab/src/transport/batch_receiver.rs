//! Room for many datagrams at a time, for a reflector that counts a stream (docs/design/0014-stream.md).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use latlab_sys::batch::ReceiveBatch;

use super::reflector::plain;

/// Datagrams, or merged buffers of them, that one call brings at most: what one burst of a stream has.
const CALL_MAX: usize = 64;
/// And at least: a merged buffer takes some 5 µs, and a system call 0.2 µs.
const CALL_MIN: usize = 4;
/// One call asks for no more bytes than this, as far as can be told: they shall still be in the cache when they are read.
const CALL_BYTES: usize = 256 << 10;
/// The longest merged buffer, and one more byte: nothing is ever cut off unseen.
const ROOM_BYTES: usize = 65_536;

/// Room for what one call brings. 4.3 MiB of address space, of which only what was filled takes memory.
#[derive(Debug)]
pub struct BatchBuffer {
    batch: ReceiveBatch,
    wanted: usize,
    came: usize,
    bytes: usize,
}

/// Datagrams of one sender that came together.
#[derive(Debug)]
pub struct SenderBatch<'a> {
    /// Their bytes, end to end.
    pub bytes: &'a mut [u8],
    /// The length of each, but for the last, which may be shorter.
    pub each_bytes: usize,
    /// Whether there are several in one buffer.
    pub merged: bool,
    /// Who sent them, an IPv4 sender in IPv4's own form.
    pub from: SocketAddr,
    /// Our address, where the socket is bound to all of them.
    pub local: Option<IpAddr>,
}

impl BatchBuffer {
    /// Room for 64 datagrams of any length.
    #[expect(clippy::new_without_default, reason = "4 MiB of address space are asked for, not defaulted")]
    pub fn new() -> BatchBuffer {
        BatchBuffer { batch: ReceiveBatch::new(CALL_MAX, ROOM_BYTES), wanted: CALL_MAX, came: 0, bytes: 0 }
    }

    /// Takes what is there from `socket`; where nothing is, waits for the first as long as the socket was told to, or not
    /// at all if it `spins`. Says how many buffers came.
    ///
    /// # Errors
    /// The kernel's, `WouldBlock` among them.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>, spins: bool) -> io::Result<usize> {
        let wanted = self.wanted();
        (self.came, self.bytes) = (0, 0);
        self.came = match spins {
            true => self.batch.receive_now(socket, wanted),
            false => self.batch.receive(socket, wanted),
        }?;
        Ok(self.came)
    }

    /// How many of the size that came last are asked for at a time.
    fn wanted(&mut self) -> usize {
        if self.came > 0 {
            self.wanted = (CALL_BYTES * self.came / self.bytes.max(1)).clamp(CALL_MIN, CALL_MAX);
        }
        self.wanted
    }

    /// Buffer `index` of those that came; none where there are no more, or it came from no IP address.
    #[inline]
    pub fn together(&mut self, index: usize) -> Option<SenderBatch<'_>> {
        let arrived = self.batch.arrived(index)?;
        self.bytes += arrived.bytes.len();
        let from = plain(arrived.peer.to_socket_addr()?);
        // A datagram may be empty, and a piece must not be.
        let each_bytes = arrived.segment.unwrap_or(arrived.bytes.len()).max(1);
        let merged = arrived.segment.is_some();
        Some(SenderBatch { bytes: arrived.bytes, each_bytes, merged, from, local: arrived.local })
    }
}
