//! The sending end of an up-stream: packets that the reflector counts, and what it says it has counted.

use super::native::NativeSession;
use crate::clock::Clock;
use crate::facts::ReflectorReport;
use crate::transport::Transport;
use crate::wire::{POLL_BYTES, Poll, ProbeHeader, Tally};

/// A stream in a session of its own. Pure but for [`UpStream::close`]: no socket, no clock, no allocation after `new`.
#[derive(Debug)]
pub struct UpStream {
    session: NativeSession,
    datagram: Box<[u8]>,
    poll: [u8; POLL_BYTES],
    sent: u64,
    polls: u64,
}

impl UpStream {
    /// A stream in `session`, in which nothing was sent yet; packets are as long as its terms say.
    pub fn new(session: NativeSession) -> UpStream {
        let mut datagram = vec![0; session.terms().size_bytes as usize].into_boxed_slice();
        // What no link can compress: zeros would go through a compressing one faster than users' bytes do.
        blake3::Hasher::new_keyed(&[0x6c; 32]).update(session.nonce()).finalize_xof().fill(&mut datagram);
        UpStream { session, datagram, poll: [0; POLL_BYTES], sent: 0, polls: 0 }
    }

    /// The next packet. The same one again until [`UpStream::taken`] says that it is on its way.
    #[inline]
    pub fn packet(&mut self) -> &[u8] {
        let key = self.session.keys().map(|keys| &keys.probes);
        ProbeHeader::write_data(self.session.number(), self.sent, key, &mut self.datagram);
        &self.datagram
    }

    /// The kernel took the packet: its counter is used. What it refused leaves no gap, which would look like a loss.
    #[inline]
    pub fn taken(&mut self) {
        self.sent += 1;
    }

    /// Packets that the kernel took.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// UDP payload of each packet, in bytes.
    pub fn size_bytes(&self) -> u32 {
        self.session.terms().size_bytes
    }

    /// A fresh POLL with its number.
    pub fn poll(&mut self) -> (u64, &[u8]) {
        self.polls += 1;
        let poll = Poll { session: self.session.number(), nonce: *self.session.nonce(), number: self.polls };
        poll.write(&self.session.close_codes(), &mut self.poll);
        (self.polls, &self.poll)
    }

    /// The tally in `datagram`, if it is a genuine one of this stream.
    pub fn hear(&self, datagram: &[u8]) -> Option<Tally> {
        let tally = Tally::parse(datagram).ok()?;
        let ours = tally.session == self.session.number() && tally.nonce == *self.session.nonce();
        let asked = tally.number > 0 && tally.number <= self.polls;
        (ours && asked && self.session.close_codes().verify(datagram)).then_some(tally)
    }

    /// Ends the session, as [`NativeSession::close`] does.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        self.session.close(transport, clock)
    }
}
