//! The sending end of an up-stream: packets that the reflector counts, and what it says it has counted.

use super::native::NativeSession;
use crate::clock::Clock;
use crate::facts::ReflectorReport;
use crate::plan::{SendMode, SenderSocketOptions};
use crate::transport::Transport;
use crate::transport::burst::Packets;
use crate::wire::{POLL_BYTES, ProbeHeader, StreamPoll, StreamTally};

/// Packets of a batch begin so far apart at most, and overlap where they are longer: the padding of one holds the heads
/// of the next ones. 64 packets of 32 kB then lie in 160 KiB, which stay in the cache from which the kernel copies.
const STRIDE_BYTES_MAX: usize = 2_048;

/// A stream in a session of its own. Pure but for [`UpStream::close`]: no socket, no clock, no allocation after `new`.
#[derive(Debug)]
pub struct UpStream {
    session: NativeSession,
    sending: SenderSocketOptions,
    /// From the head of one packet to the next.
    stride: usize,
    packets_per_call: u16,
    buffer: Box<[u8]>,
    poll: [u8; POLL_BYTES],
    sent: u64,
    polls: u64,
}

impl UpStream {
    /// A stream in `session`, in which nothing was sent yet; packets are as long as its terms say and leave one by one.
    pub fn new(session: NativeSession) -> UpStream {
        UpStream::sent_by(session, SenderSocketOptions::PLAIN)
    }

    /// The same, whose packets leave as `sending` says.
    pub fn sent_by(session: NativeSession, sending: SenderSocketOptions) -> UpStream {
        let size_bytes = session.terms().size_bytes;
        let packets_per_call = sending.packets_per_call(size_bytes);
        let size = size_bytes as usize;
        let stride = match sending.mode {
            // What the kernel cuts lies end to end.
            SendMode::Gso => size,
            SendMode::Send | SendMode::Sendmmsg => size.min(STRIDE_BYTES_MAX),
        };
        let mut buffer = vec![0; (usize::from(packets_per_call) - 1) * stride + size].into_boxed_slice();
        // What no link can compress: zeros would go through a compressing one faster than users' bytes do.
        blake3::Hasher::new_keyed(&[0x6c; 32]).update(session.nonce()).finalize_xof().fill(&mut buffer);
        for at in (0..usize::from(packets_per_call)).map(|number| number * stride) {
            let key = session.keys().map(|keys| &keys.probes);
            ProbeHeader::write_data(session.number(), 0, key, &mut buffer[at..at + size]);
        }
        UpStream { session, sending, stride, packets_per_call, buffer, poll: [0; POLL_BYTES], sent: 0, polls: 0 }
    }

    /// The next packets, `wanted` of them or as many as one call takes. The same ones again until [`UpStream::taken`] says
    /// which are on their way.
    #[inline]
    pub fn packets(&mut self, wanted: u64) -> Packets<'_> {
        let count = wanted.min(u64::from(self.packets_per_call)) as usize;
        let size = self.size_bytes() as usize;
        // Their heads lie there since the beginning: without a key only the numbers change.
        match self.session.keys() {
            None if count == 1 => ProbeHeader::renumber_data(self.sent, None, &mut self.buffer),
            None => {
                // Counted by a range of known length: two comparisons less for each.
                for (number, head) in (0..count).zip(self.buffer.chunks_exact_mut(self.stride)) {
                    ProbeHeader::renumber_data(self.sent + number as u64, None, head);
                }
            }
            Some(keys) => {
                for (counter, at) in (self.sent..).zip((0..count).map(|number| number * self.stride)) {
                    ProbeHeader::renumber_data(counter, Some(&keys.probes), &mut self.buffer[at..at + size]);
                }
            }
        }
        let bytes = count.checked_sub(1).map_or(0, |others| others * self.stride + size);
        Packets::counted(&self.buffer[..bytes], size, self.stride, count)
    }

    /// The kernel took `packets` of them: their counters are used. What it refused leaves no gap, which would look like a
    /// loss.
    #[inline]
    pub fn taken(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// Packets that the kernel took.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// UDP payload of each packet, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> u32 {
        self.session.terms().size_bytes
    }

    /// How its packets leave.
    pub fn sending(&self) -> SenderSocketOptions {
        self.sending
    }

    /// A fresh POLL with its number.
    pub fn poll(&mut self) -> (u64, &[u8]) {
        self.polls += 1;
        let poll = StreamPoll {
            session: self.session.number(),
            nonce: *self.session.nonce(),
            number: self.polls,
            wants_cpu: true,
            credit_bytes: 0,
        };
        poll.write(&self.session.close_codes(), &mut self.poll);
        (self.polls, &self.poll)
    }

    /// The tally in `datagram`, if it is a genuine one of this stream.
    pub fn hear(&self, datagram: &[u8]) -> Option<StreamTally> {
        self.session.tally(datagram, self.polls)
    }

    /// Ends the session, as [`NativeSession::close`] does.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        self.session.close(transport, clock)
    }
}
