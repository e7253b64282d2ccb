//! Streams at the sender of the session: packets that the reflector counts ([`UpStream`]), and packets that the
//! reflector sends within the credit that this end grants ([`DownStream`]).

use super::codec::NativeSession;
use crate::clock::Clock;
use crate::facts::ReflectorReport;
use crate::plan::{SendMode, SenderSocketOptions};
use crate::transport::{Packets, Transport};
use crate::units::Nanos;
use crate::wire::{
    MessageType, POLL_BYTES, ProbeHeader, REPLAY_WINDOW, ReplayVerdict, ReplayWindow, StreamTally,
    extend_receive_counter,
};

/// The longest distance between the beginnings of two packets of a batch; longer packets overlap, so that the padding of
/// one contains the headers of the next ones. 64 packets of 32 kB then take 160 KiB and stay in the cache from which the
/// kernel copies.
const STRIDE_BYTES_MAX: usize = 2_048;

/// The packets begin at this offset in a cache line. Otherwise the heap decides, in steps of 16 bytes, and two runs or builds
/// differ by chance: with GSO and 1,472 B the rate at offsets 16, 32 and 48 is 1.02 times the rate at 0 (medians of 36 paired
/// runs over loopback, Intel Xeon; offset 64 and other pages: as 0).
const OFFSET_IN_LINE: usize = 32;
const CACHE_LINE_BYTES: usize = 64;

/// An up-stream in a session of its own. Pure but for [`UpStream::close`]: no socket, no clock, no allocation after
/// `new`.
#[derive(Debug)]
pub struct UpStream {
    session: NativeSession,
    options: SenderSocketOptions,
    stride: usize,
    packets_per_call: u16,
    buffer: PacketBuffer,
    poll: [u8; POLL_BYTES],
    sent: u64,
}

impl UpStream {
    /// A stream in `session`, in which nothing was sent yet. Packets have the size of its terms and leave one by one.
    pub fn new(session: NativeSession) -> UpStream {
        UpStream::with_options(session, SenderSocketOptions::PLAIN)
    }

    /// [`UpStream::new`] with packets that leave as `options` say.
    pub fn with_options(session: NativeSession, options: SenderSocketOptions) -> UpStream {
        let size_bytes = session.terms().size_bytes;
        let packets_per_call = options.packets_per_call(size_bytes);
        let size = size_bytes as usize;
        let stride = match options.mode {
            // The kernel segments a contiguous buffer.
            SendMode::Gso => size,
            SendMode::Send | SendMode::Sendmmsg | SendMode::Batch => size.min(STRIDE_BYTES_MAX),
        };
        let mut packets = PacketBuffer::new((usize::from(packets_per_call) - 1) * stride + size);
        let buffer = packets.bytes();
        // Incompressible: zeros would be faster than users' bytes on a link that compresses.
        blake3::Hasher::new_keyed(&[0x6c; 32]).update(session.nonce()).finalize_xof().fill(buffer);
        for at in (0..usize::from(packets_per_call)).map(|number| number * stride) {
            let key = session.keys().map(|keys| &keys.probes);
            ProbeHeader::write_data(session.number(), 0, key, &mut buffer[at..at + size]);
        }
        UpStream { session, options, stride, packets_per_call, buffer: packets, poll: [0; POLL_BYTES], sent: 0 }
    }

    /// The next `wanted` packets, or as many as one call takes; the same ones again until [`UpStream::advance`].
    #[inline]
    pub fn packets(&mut self, wanted: u64) -> Packets<'_> {
        let count = wanted.min(u64::from(self.packets_per_call)) as usize;
        let size = self.size_bytes() as usize;
        let buffer = self.buffer.bytes();
        // The headers are in the buffer already: without a key only the counters change.
        match self.session.keys() {
            None if count == 1 => ProbeHeader::renumber_data(self.sent, None, buffer),
            None => {
                // A range of known length saves two comparisons per packet.
                for (number, header) in (0..count).zip(buffer.chunks_exact_mut(self.stride)) {
                    ProbeHeader::renumber_data(self.sent + number as u64, None, header);
                }
            }
            Some(keys) => {
                for (counter, at) in (self.sent..).zip((0..count).map(|number| number * self.stride)) {
                    ProbeHeader::renumber_data(counter, Some(&keys.probes), &mut buffer[at..at + size]);
                }
            }
        }
        let bytes = count.checked_sub(1).map_or(0, |others| others * self.stride + size);
        Packets::counted(&buffer[..bytes], size, self.stride, count)
    }

    /// The kernel took the first `packets` of [`UpStream::packets`]: their counters are used. Refused packets use no
    /// counter, since a gap would look like a loss.
    #[inline]
    pub fn advance(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// Packets taken by the kernel.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// UDP payload of each packet, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> u32 {
        self.session.terms().size_bytes
    }

    pub fn options(&self) -> SenderSocketOptions {
        self.options
    }

    pub fn poll(&mut self) -> (u64, &[u8]) {
        let number = self.session.write_poll(0, &mut self.poll);
        (number, &self.poll)
    }

    /// The TALLY in `datagram`, if it is a genuine one of this stream.
    pub fn decode_tally(&self, datagram: &[u8]) -> Option<StreamTally> {
        self.session.decode_tally(datagram)
    }

    /// Ends the session, as [`NativeSession::close`] does.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        self.session.close(transport, clock)
    }
}

/// Bytes that begin at [`OFFSET_IN_LINE`].
#[derive(Debug)]
struct PacketBuffer {
    memory: Box<[u8]>,
    start: usize,
}

impl PacketBuffer {
    fn new(bytes: usize) -> PacketBuffer {
        let memory = vec![0; CACHE_LINE_BYTES + OFFSET_IN_LINE + bytes].into_boxed_slice();
        let start = memory.as_ptr().align_offset(CACHE_LINE_BYTES) + OFFSET_IN_LINE;
        PacketBuffer { memory, start }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

/// Counts of a down-stream since its session was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DownCounts {
    /// Packets that are genuine, new and of the agreed size.
    pub packets: u64,
    /// Their bytes of UDP payload.
    pub bytes: u64,
    /// The highest counter received + 1; 0 if none was.
    pub spanned: u64,
    /// Packets received after one with a higher counter.
    pub reordered: u64,
    /// Packets whose counter had been received before.
    pub seen_before: u64,
    /// Packets whose counter was below the replay window.
    pub left_window: u64,
    /// Packets with a wrong tag.
    pub forged: u64,
}

/// The meaning of a datagram for a down-stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DownMessage {
    Packet,
    /// The reflector's count of sent packets.
    Tally(StreamTally),
    /// Not of this stream, or a packet that does not count.
    Other,
}

/// The receiving end of a down-stream in a session of its own. Pure but for [`DownStream::close`].
#[derive(Debug)]
pub struct DownStream {
    session: NativeSession,
    window: ReplayWindow,
    counts: DownCounts,
    poll: [u8; POLL_BYTES],
    /// Packets that the reflector had sent by its latest TALLY.
    sent: u64,
    credit_bytes: u64,
}

impl DownStream {
    /// The down-stream that `session` was opened for; `None` if its terms contain none, or it has no key.
    pub fn new(session: NativeSession) -> Option<DownStream> {
        let is_down = session.terms().down && session.authenticated();
        is_down.then(|| DownStream {
            session,
            window: ReplayWindow::default(),
            counts: DownCounts::default(),
            poll: [0; POLL_BYTES],
            sent: 0,
            credit_bytes: 0,
        })
    }

    /// UDP payload of each packet, in bytes.
    pub fn size_bytes(&self) -> u32 {
        self.session.terms().size_bytes
    }

    /// The interval between packets that the reflector granted.
    pub fn gap(&self) -> Nanos {
        self.session.terms().interval
    }

    pub fn counts(&self) -> DownCounts {
        self.counts
    }

    /// Packets that are no longer in flight: received, or lost before a received one or the latest TALLY.
    pub fn passed(&self) -> u64 {
        self.counts.spanned.max(self.sent)
    }

    /// A new POLL and its number. Its credit covers `packets` beyond those that passed, and at most `most` packets since
    /// the session was opened. Zero packets give no new credit.
    pub fn poll(&mut self, packets: u64, most: u64) -> (u64, &[u8]) {
        let packets = self.passed().saturating_add(packets).min(most);
        let credit_bytes = packets.saturating_mul(u64::from(self.size_bytes()));
        self.credit_bytes = self.credit_bytes.max(credit_bytes);
        let number = self.session.write_poll(self.credit_bytes, &mut self.poll);
        (number, &self.poll)
    }

    /// Decodes `datagram`, and counts it if it is a packet.
    #[inline]
    pub fn decode(&mut self, datagram: &[u8]) -> DownMessage {
        match MessageType::of(datagram) {
            Ok(MessageType::Down) => self.count(datagram),
            Ok(MessageType::Tally) => {
                let Some(tally) = self.session.decode_tally(datagram) else { return DownMessage::Other };
                self.sent = self.sent.max(tally.packets);
                DownMessage::Tally(tally)
            }
            _ => DownMessage::Other,
        }
    }

    /// Ends the session, as [`NativeSession::close`] does.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        self.session.close(transport, clock)
    }

    #[inline]
    fn count(&mut self, datagram: &[u8]) -> DownMessage {
        let Ok(header) = ProbeHeader::parse(datagram, MessageType::Down) else { return DownMessage::Other };
        if header.session != self.session.number() || datagram.len() != self.size_bytes() as usize {
            return DownMessage::Other;
        }
        let newest = self.window.newest();
        let counter = extend_receive_counter(newest, REPLAY_WINDOW, header.counter_low);
        let key = self.session.keys().map(|keys| &keys.answers);
        // A down-stream has a key, so a tag is always required.
        if key.is_none() || !header.verify(key, counter, datagram) {
            self.counts.forged += 1;
            return DownMessage::Other;
        }
        match self.window.mark(counter) {
            ReplayVerdict::Duplicate => self.counts.seen_before += 1,
            ReplayVerdict::BelowWindow => self.counts.left_window += 1,
            ReplayVerdict::New => {
                self.counts.packets += 1;
                self.counts.bytes += datagram.len() as u64;
                self.counts.reordered += u64::from(counter < newest);
                self.counts.spanned = self.counts.spanned.max(counter + 1);
                return DownMessage::Packet;
            }
        }
        DownMessage::Other
    }
}
