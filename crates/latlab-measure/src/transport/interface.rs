//! The traits of transports, for sessions and measuring loops: [`Transport`] for probes, [`BurstTransport`] for
//! streams, [`ReflectorSocket`] for the reflector.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use latlab_sys::batch::ReceiveBatch;

use super::address::canonical;
use super::connection_slot::ConnectionTally;
use super::stamping::KernelStamps;
use crate::facts::{ConnectionFacts, DdsFacts, XdpFacts};
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};
use crate::wire::SocketTerms;

/// An open path to one peer. What it can carry, and how it waits, was fixed when it was opened.
pub trait Transport {
    /// Sends one message. An error is the kernel's refusal of *this* message.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Receives one whole message into `buffer` and returns its length.
    ///
    /// `None`: no message came. That may be earlier than `max_wait` (a spinning transport returns at once, an interrupted
    /// one when the signal came, a blocking one after its receive time-out), never much later; callers read the clock
    /// and call again.
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>>;

    /// When the last received message came, if a thread of the transport received it: this thread was then woken later.
    #[inline]
    fn received_at(&self) -> Option<Stamp<SenderClock>> {
        None
    }

    /// Requests the kernel's stamps of all later messages.
    ///
    /// # Errors
    /// The kernel's; `Unsupported` if it does not see the messages.
    fn request_stamps(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What the kernel stamped; `None` unless it was requested.
    #[inline]
    fn stamps(&self) -> Option<KernelStamps<'_>> {
        None
    }

    /// Counters of the path besides its messages. Not for loops: the call may need system calls and memory.
    fn report(&self) -> PathReport {
        PathReport::default()
    }
}

/// Lets a session borrow a transport.
impl<T: Transport + ?Sized> Transport for &mut T {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        (**self).send(message)
    }

    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        (**self).receive(buffer, max_wait)
    }

    fn received_at(&self) -> Option<Stamp<SenderClock>> {
        (**self).received_at()
    }

    fn request_stamps(&mut self) -> io::Result<()> {
        (**self).request_stamps()
    }

    fn stamps(&self) -> Option<KernelStamps<'_>> {
        (**self).stamps()
    }

    fn report(&self) -> PathReport {
        (**self).report()
    }
}

/// Counters of a path besides its messages, since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathReport {
    pub is_connection: bool,
    /// Errors that the socket reported about earlier datagrams (ICMP): name of the errno → count.
    pub socket_errors: BTreeMap<String, u64>,
    /// Datagrams that the kernel dropped at the socket, modulo 2^32; `None` if unknown.
    pub socket_drops: Option<u64>,
    /// The kernel's figures of the connection; `None` without a connection, or if unknown.
    pub connection: Option<ConnectionFacts>,
    /// The participant; `None` unless the path is over DDS.
    pub dds: Option<DdsFacts>,
    /// The AF_XDP socket; `None` over other transports.
    pub xdp: Option<XdpFacts>,
    /// Packets of the peer came through the network stack, since they arrived at another queue than that of the AF_XDP
    /// socket.
    pub is_at_other_queue: bool,
}

/// A path between two addresses, which a manifest names.
pub trait PathTransport: BurstTransport + Send {
    /// The two ends of the path, and its limits.
    fn path(&self) -> OpenPath;
}

/// The two ends of an open path, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct OpenPath {
    /// The address and port measured from.
    pub local: SocketAddr,
    /// The address and port measured to.
    pub peer: SocketAddr,
    /// The largest payload that leaves unfragmented, in bytes: the path MTU known so far less the IP and UDP headers.
    /// `None` if the kernel does not know it, or segments the bytes of a connection itself.
    pub unfragmented_bytes: Option<u32>,
    /// The send buffer granted to a stream, the kernel's bookkeeping included: on Linux up to twice the requested size.
    /// `None` if no size was requested.
    pub send_buffer_bytes: Option<u32>,
}

/// Packets of one size in one buffer, each beginning `stride` bytes after the one before: contiguous if that is the
/// size, overlapping if it is less.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    size: usize,
    stride: usize,
    count: usize,
}

impl<'a> Packets<'a> {
    /// All packets of `size` bytes that begin, `stride` bytes apart, and end in `bytes`.
    pub fn new(bytes: &'a [u8], size: usize, stride: usize) -> Packets<'a> {
        let count = bytes.len().checked_sub(size).map_or(0, |rest| 1 + rest / stride.max(1));
        Packets { bytes, size, stride, count }
    }

    /// [`Packets::new`] with a known `count`: the division would take as long as all other work for a packet.
    #[inline]
    pub fn counted(bytes: &'a [u8], size: usize, stride: usize, count: usize) -> Packets<'a> {
        debug_assert_eq!(count, Packets::new(bytes, size, stride).count);
        Packets { bytes, size, stride, count }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of each packet, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size
    }

    /// The distance between the beginnings of two packets, in bytes.
    #[inline]
    pub(crate) fn stride_bytes(&self) -> usize {
        self.stride
    }

    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, size, stride) = (self.bytes, self.size, self.stride);
        (0..self.count).map(move |number| &bytes[number * stride..number * stride + size])
    }
}

/// A transport that takes many packets at a time.
pub trait BurstTransport: Transport {
    /// Sends `packets` in order and returns how many the kernel took: at least one. The most that one call takes was
    /// fixed when the transport was opened.
    ///
    /// # Errors
    /// The kernel's refusal of the first packet.
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        send_each(self, packets)
    }

    /// Whether datagrams have a checksum from now on. If not, they leave as was fixed when the transport was opened,
    /// which may be with one.
    ///
    /// # Errors
    /// The kernel's.
    fn set_checksums(&mut self, on: bool) -> io::Result<()> {
        _ = on;
        Ok(())
    }

    /// The progress of a connection; `None` for datagrams.
    fn progress(&self) -> Option<ConnectionBytes> {
        None
    }
}

/// Bytes of a connection since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionBytes {
    /// Bytes accepted for sending, framing included.
    pub sent_bytes: u64,
    /// Of these, bytes acknowledged by the peer's kernel.
    pub acknowledged_bytes: u64,
}

impl<T: BurstTransport + ?Sized> BurstTransport for &mut T {
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        (**self).burst(packets)
    }

    fn set_checksums(&mut self, on: bool) -> io::Result<()> {
        (**self).set_checksums(on)
    }

    fn progress(&self) -> Option<ConnectionBytes> {
        (**self).progress()
    }
}

/// One send call for each packet, until one is refused.
#[inline]
pub(super) fn send_each(transport: &mut (impl Transport + ?Sized), packets: Packets<'_>) -> io::Result<usize> {
    for (taken, packet) in packets.iter().enumerate() {
        match transport.send(packet) {
            Err(error) if taken == 0 => return Err(error),
            // The next call begins with the refused packet and returns its error.
            Err(_) => return Ok(taken),
            Ok(()) => {}
        }
    }
    Ok(packets.count())
}

/// The socket of a reflector, as its loop uses it.
pub trait ReflectorSocket {
    /// Receives one datagram into `buffer`: its length and its sender, an IPv4 sender in IPv4 form. `None` if no datagram
    /// came for about 100 ms (a spinning socket: at once), or a signal did.
    ///
    /// # Errors
    /// The kernel's; the loop counts them and ends after a hundred in a row.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>>;

    /// [`ReflectorSocket::receive`] with a shorter wait, after which the loop has to send.
    ///
    /// # Errors
    /// As [`ReflectorSocket::receive`].
    fn receive_within(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        _ = max_wait;
        self.receive(buffer)
    }

    /// Receives many datagrams at a time into `buffer` and returns the number of buffers that came, 0 where
    /// [`ReflectorSocket::receive`] returns `None`. If it `may_pause` it may sleep before that, so that more are there.
    ///
    /// # Errors
    /// As [`ReflectorSocket::receive`].
    fn receive_batch(&mut self, buffer: &mut BatchBuffer, may_pause: bool) -> io::Result<usize> {
        _ = (buffer, may_pause);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends `datagram` to the sender of its request, from the address that the request was sent to. It never waits.
    ///
    /// # Errors
    /// The kernel's, `WouldBlock` if the send buffer is full; the loop counts them.
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()>;

    /// [`ReflectorSocket::reply`] to an address that is not proved, which takes no room from other replies.
    ///
    /// # Errors
    /// As [`ReflectorSocket::reply`].
    fn reply_cookie(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.reply(datagram, to)
    }

    /// The local address that the last datagram was sent to; `None` if the socket is bound to one address.
    fn last_destination(&self) -> Option<IpAddr> {
        None
    }

    /// Makes the next replies leave from `local`; `merged`: the datagrams that they answer came in one buffer.
    fn set_reply_source(&mut self, local: Option<IpAddr>, merged: bool) {
        _ = (local, merged);
    }

    /// `peer` holds the only session that can be granted while it lasts.
    fn dedicate_to(&mut self, peer: SocketAddr) {
        _ = peer;
    }

    /// What the kernel stamped; `None` unless [`SocketTerms::stamped`] is configured.
    #[inline]
    fn stamps(&self) -> Option<KernelStamps<'_>> {
        None
    }

    /// The terms that the socket can fulfil; others are not granted.
    fn supported_terms(&self) -> SocketTerms {
        SocketTerms::NONE
    }

    /// Configures the socket for the terms of the open sessions. With `batched` terms the loop calls
    /// [`ReflectorSocket::receive_batch`] from then on.
    fn configure(&mut self, terms: SocketTerms) {
        _ = terms;
    }

    /// The counters of the socket. Read when a session begins and ends, and ten times a second during a stream.
    fn report(&self) -> SocketReport {
        SocketReport::default()
    }

    /// Whether a program in the network driver can answer probes.
    fn answers_in_driver(&self) -> bool {
        false
    }

    /// Makes the program answer these sessions and no others. A session that it answers already goes on. Called after each
    /// message of set-up or end.
    fn offer(&mut self, sessions: &mut dyn Iterator<Item = DriverSession>) {
        _ = sessions;
    }

    /// Calls `visit` with each session that the program has answered, and what it has counted there.
    fn read_driver(&self, visit: &mut dyn FnMut(u16, DriverCounts)) {
        _ = visit;
    }

    /// The threads that receive for the socket, if these should answer too: [`ReflectorSocket::receive`] then does not
    /// wait.
    fn receiving_threads(&self) -> Option<Box<dyn ReceivingThreads>> {
        None
    }

    /// Whether a library receives in threads of its own: their CPU time is not that of the thread that calls.
    fn is_of_library(&self) -> bool {
        false
    }

    /// Whether [`ReflectorSocket::next_closed`] or [`ReflectorSocket::close_idle`] has work. Called before every receive
    /// call.
    fn has_connection_work(&self) -> bool {
        false
    }

    /// The peer of a connection that was closed; each is returned once.
    fn next_closed(&mut self) -> Option<SocketAddr> {
        None
    }

    /// Closes connections that have no session or make no progress.
    fn close_idle(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        _ = has_session;
    }
}

/// A session whose probes are answered in the network driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverSession {
    pub session: u16,
    pub peer: SocketAddr,
    /// The length of each probe.
    pub size_bytes: u32,
    pub ends_at: Stamp<ReflectorClock>,
    /// It ends after this time without a probe.
    pub idle: Nanos,
    /// When the newest authentic message came.
    pub newest_at: Stamp<ReflectorClock>,
}

/// What was counted in a session in the network driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCounts {
    pub answered: u64,
    /// Probes dropped: their counter had come before.
    pub seen_before: u64,
    /// Probes dropped: their counter is below the replay window of the driver.
    pub left_window: u64,
    /// When the newest probe came.
    pub newest_at: Stamp<ReflectorClock>,
}

pub trait ReceivingThreads {
    /// Calls `work` at once, and then each time that messages came, in the thread that received them, for about `span`.
    fn run_within(&self, span: Nanos, work: &mut (dyn FnMut() + Send));
}

/// Counters of a reflector's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketReport {
    /// Datagrams that the kernel dropped because the receive buffer was full, since the socket was made, modulo 2^32;
    /// `None` if unknown.
    pub drops: Option<u64>,
    /// Merged buffers came: then `drops` counts buffers.
    pub drops_merged: bool,
    /// Counts of connections; `None` if the socket has none.
    pub connections: Option<ConnectionTally>,
    /// Samples over DDS whose writer is not a sender; `None` over other transports.
    pub ignored_samples: Option<u64>,
}

/// The most buffers that one call receives, each one datagram or several merged ones: the burst of a stream.
const CALL_MAX: usize = 64;
/// The fewest that one call asks for: a merged buffer takes some 5 µs, a system call 0.2 µs.
const CALL_MIN: usize = 4;
/// The bytes that one call asks for at most, estimated from the call before: they should still be in the cache when
/// they are read.
const CALL_BYTES: usize = 256 << 10;
/// The longest merged buffer plus one byte, so that truncation is always seen.
const BUFFER_BYTES: usize = 65_536;
/// What the kernel's bookkeeping adds to a buffer in the receive buffer, at most.
const BOOKKEEPING_BYTES: usize = 1_024;
/// A pause must not fill more than this part of the receive buffer.
const PAUSE_FILLS: usize = 4;

/// Memory for what one call receives: 4.3 MiB of address space, of which only filled pages are resident.
#[derive(Debug)]
pub struct BatchBuffer {
    batch: ReceiveBatch,
    wanted: usize,
    received: usize,
    bytes: usize,
    /// Buffers and their bytes since the socket was last empty.
    queued: usize,
    queued_bytes: usize,
}

/// Datagrams of one sender that were received in one buffer.
#[derive(Debug)]
pub struct SenderBatch<'a> {
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
        let batch = ReceiveBatch::new(CALL_MAX, BUFFER_BYTES);
        BatchBuffer { batch, wanted: CALL_MAX, received: 0, bytes: 0, queued: 0, queued_bytes: 0 }
    }

    /// Whether to pause before the next call: the last one has emptied the socket, several buffers were queued, and four
    /// times as many fit into a receive buffer of `granted_bytes`. Asked once after each call.
    pub(super) fn should_pause(&mut self, granted_bytes: u32) -> bool {
        (self.queued, self.queued_bytes) = (self.queued + self.received, self.queued_bytes + self.bytes);
        if self.received == self.wanted {
            return false;
        }
        let (queued, bytes) = (std::mem::take(&mut self.queued), std::mem::take(&mut self.queued_bytes));
        queued > 1 && PAUSE_FILLS * (bytes + BOOKKEEPING_BYTES * queued) <= granted_bytes as usize
    }

    /// Receives what is there and returns the number of buffers. If there is nothing it waits for the socket's receive
    /// time-out, or not at all if `spins`.
    ///
    /// # Errors
    /// The kernel's, `WouldBlock` among them.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>, spins: bool) -> io::Result<usize> {
        let wanted = self.wanted();
        (self.received, self.bytes) = (0, 0);
        self.received =
            if spins { self.batch.receive_now(socket, wanted) } else { self.batch.receive(socket, wanted) }?;
        Ok(self.received)
    }

    /// Takes what `put` puts, until that finds nothing more or the batch is full, and returns the number of buffers.
    ///
    /// # Errors
    /// That of `put`, if the batch is empty.
    #[inline]
    pub(super) fn fill_with(
        &mut self,
        mut put: impl FnMut(&mut ReceiveBatch, usize) -> io::Result<bool>,
    ) -> io::Result<usize> {
        self.batch.clear();
        (self.wanted, self.received, self.bytes) = (CALL_MAX, 0, 0);
        while self.received < CALL_MAX && put(&mut self.batch, self.received)? {
            self.received += 1;
        }
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

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    /// Takes `most` packets, then refuses.
    struct Limited {
        sent: Vec<Vec<u8>>,
        most: usize,
    }

    impl Transport for Limited {
        fn send(&mut self, message: &[u8]) -> io::Result<()> {
            if self.sent.len() == self.most {
                return Err(Errno::NOBUFS.into());
            }
            self.sent.push(message.to_vec());
            Ok(())
        }

        fn receive(&mut self, _: &mut [u8], _: Nanos) -> io::Result<Option<usize>> {
            Ok(None)
        }
    }

    impl BurstTransport for Limited {}

    #[test]
    fn a_pause_follows_several_buffers_that_left_the_socket_empty() {
        let mut batch = BatchBuffer::new();
        let mut pauses = |received, bytes, granted_bytes| {
            (batch.received, batch.bytes) = (received, bytes);
            batch.should_pause(granted_bytes)
        };
        assert!(!pauses(0, 0, 1 << 23), "nothing came");
        assert!(!pauses(1, 1_472, 1 << 23), "the next packet may be far away");
        assert!(pauses(2, 2 * 1_472, 1 << 23));
        assert!(!pauses(CALL_MAX, CALL_MAX * 1_472, 1 << 23), "more may be queued");
        assert!(pauses(1, 1_472, 1 << 23), "65 were queued");
        assert!(!pauses(1, 1_472, 1 << 23), "and are not counted again");
    }

    #[test]
    fn a_pause_must_not_fill_the_receive_buffer() {
        let mut batch = BatchBuffer::new();
        // Four times 40 packets with the bookkeeping of the kernel.
        let filled = 4 * 40 * (1_472 + 1_024);
        for (granted_bytes, expected) in [(filled, true), (filled - 1, false)] {
            (batch.received, batch.bytes) = (40, 40 * 1_472);
            assert_eq!(batch.should_pause(granted_bytes), expected, "{granted_bytes}");
        }
    }

    #[test]
    fn packets_are_contiguous_or_overlap() {
        let bytes: Vec<u8> = (0..12).collect();
        for (size, stride, expected) in
            [(4, 4, vec![0, 4, 8]), (6, 3, vec![0, 3, 6]), (12, 1, vec![0]), (13, 1, vec![])]
        {
            let packets = Packets::new(&bytes, size, stride);
            assert_eq!(packets.count(), expected.len());
            assert_eq!(packets.iter().map(|packet| packet[0]).collect::<Vec<_>>(), expected);
            assert!(packets.iter().all(|packet| packet.len() == size));
        }
    }

    #[test]
    fn a_burst_returns_what_was_taken_and_an_error_only_for_its_first_packet() {
        for (most, expected) in [(9, Some(3)), (2, Some(2)), (0, None)] {
            let mut limited = Limited { sent: Vec::new(), most };
            let taken = limited.burst(Packets::new(&[7; 12], 4, 4));
            assert_eq!(taken.ok(), expected, "room for {most}");
        }
    }
}
