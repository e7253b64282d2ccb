//! The counting end of a down-stream, which is the one that asked for it: credit out, packets in.

use super::native::NativeSession;
use crate::clock::Clock;
use crate::facts::ReflectorReport;
use crate::transport::Transport;
use crate::units::Nanos;
use crate::wire::{
    MessageType, POLL_BYTES, ProbeHeader, REPLAY_WINDOW, ReplayVerdict, ReplayWindow, StreamPoll, StreamTally,
    extend_receive_counter,
};

/// What was counted of a down-stream since its session was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DownCounts {
    /// Packets: genuine, new, as long as agreed.
    pub packets: u64,
    /// Their bytes of UDP payload.
    pub bytes: u64,
    /// The highest counter seen + 1; 0 where none was.
    pub spanned: u64,
    /// Packets counted that came after one with a higher counter.
    pub reordered: u64,
    /// Packets whose counter had been seen.
    pub seen_before: u64,
    /// Packets whose counter was older than the replay window.
    pub left_window: u64,
    /// Packets with a wrong tag.
    pub forged: u64,
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DownMessage {
    /// A packet of the stream, counted.
    Packet,
    /// How much the reflector has sent.
    Tally(StreamTally),
    /// None of this stream's, or none that counts.
    Nothing,
}

/// A down-stream in a session of its own. Pure but for [`DownStream::close`].
#[derive(Debug)]
pub struct DownStream {
    session: NativeSession,
    window: ReplayWindow,
    counts: DownCounts,
    poll: [u8; POLL_BYTES],
    polls: u64,
    /// Packets that the reflector had sent by its latest TALLY.
    told: u64,
    credit_bytes: u64,
}

impl DownStream {
    /// The down-stream that `session` was opened for; none where that is no down-stream, or has no key.
    pub fn new(session: NativeSession) -> Option<DownStream> {
        let is_one = session.terms().down && session.authenticated();
        is_one.then(|| DownStream {
            session,
            window: ReplayWindow::default(),
            counts: DownCounts::default(),
            poll: [0; POLL_BYTES],
            polls: 0,
            told: 0,
            credit_bytes: 0,
        })
    }

    /// UDP payload of each packet, in bytes.
    pub fn size_bytes(&self) -> u32 {
        self.session.terms().size_bytes
    }

    /// From one packet to the next, as the reflector grants it.
    pub fn gap(&self) -> Nanos {
        self.session.terms().interval
    }

    /// What was counted.
    pub fn counts(&self) -> DownCounts {
        self.counts
    }

    /// Packets that are not on their way any more: what arrived, and what is lost before it or before the latest TALLY.
    pub fn passed(&self) -> u64 {
        self.counts.spanned.max(self.told)
    }

    /// A fresh POLL with its number, whose credit lasts for `packets` beyond those that passed, and for no more than `most`
    /// packets since the session was opened. Zero gives no new credit.
    pub fn poll(&mut self, packets: u64, most: u64) -> (u64, &[u8]) {
        self.polls += 1;
        let packets = self.passed().saturating_add(packets).min(most);
        let credit_bytes = packets.saturating_mul(u64::from(self.size_bytes()));
        self.credit_bytes = self.credit_bytes.max(credit_bytes);
        let poll = StreamPoll {
            session: self.session.number(),
            nonce: *self.session.nonce(),
            number: self.polls,
            wants_cpu: true,
            credit_bytes: self.credit_bytes,
        };
        poll.write(&self.session.close_codes(), &mut self.poll);
        (self.polls, &self.poll)
    }

    /// What `datagram` is; a packet is counted.
    #[inline]
    pub fn hear(&mut self, datagram: &[u8]) -> DownMessage {
        match MessageType::of(datagram) {
            Ok(MessageType::Down) => self.count(datagram),
            Ok(MessageType::Tally) => {
                let Some(tally) = self.session.tally(datagram, self.polls) else { return DownMessage::Nothing };
                self.told = self.told.max(tally.packets);
                DownMessage::Tally(tally)
            }
            _ => DownMessage::Nothing,
        }
    }

    /// Ends the session, as [`NativeSession::close`] does.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        self.session.close(transport, clock)
    }

    #[inline]
    fn count(&mut self, datagram: &[u8]) -> DownMessage {
        let Ok(header) = ProbeHeader::parse(datagram, MessageType::Down) else { return DownMessage::Nothing };
        if header.session != self.session.number() || datagram.len() != self.size_bytes() as usize {
            return DownMessage::Nothing;
        }
        let newest = self.window.newest();
        let counter = extend_receive_counter(newest, REPLAY_WINDOW, header.counter_low);
        let key = self.session.keys().map(|keys| &keys.answers);
        // Without a key there is no down-stream, so a tag is always asked for.
        if key.is_none() || !header.verify(key, counter, datagram) {
            self.counts.forged += 1;
            return DownMessage::Nothing;
        }
        match self.window.mark(counter) {
            ReplayVerdict::Before => self.counts.seen_before += 1,
            ReplayVerdict::LeftWindow => self.counts.left_window += 1,
            ReplayVerdict::New => {
                self.counts.packets += 1;
                self.counts.bytes += datagram.len() as u64;
                self.counts.reordered += u64::from(counter < newest);
                self.counts.spanned = self.counts.spanned.max(counter + 1);
                return DownMessage::Packet;
            }
        }
        DownMessage::Nothing
    }
}
