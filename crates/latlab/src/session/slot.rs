//! A place for a session, and what it counts: every datagram is judged here once its session is found.

use std::net::SocketAddr;

use super::counters::DropReason;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{
    Codes, Nonce, ProbeHeader, REPLAY_WINDOW, Reflection, ReplayVerdict, ReplayWindow, Report, SessionKeys, StreamPoll,
    StreamTally, StreamTerms, Terms, Train, extend_receive_counter,
};

/// Without a tag nothing shows that a counter was extended rightly: one so far ahead is rather one from long ago.
const KEYLESS_JUMP_MAX: u64 = 1 << 31;
/// A stream that was silent for so long is over or has broken off, whatever its session says: nobody needs batches for it.
const STREAM_SILENT: Nanos = Nanos::from_secs(10);

/// What the receiving end says of itself, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverState {
    /// Datagrams that its socket has dropped for want of room since it was made, modulo 2^32.
    pub socket_drops: Option<u64>,
    /// Buffers of several datagrams have come from that socket, and the kernel counts those.
    pub drops_merged: bool,
    /// CPU time of its thread.
    pub thread_cpu: Option<Nanos>,
}

/// Where a slot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Holds a session.
    Open,
    /// Held one (or none yet); its report can still be asked for until the slot is used again.
    Closed,
}

/// What a session's stream brought; what it was dropped for stands in its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCounts {
    packets: u64,
    bytes: u64,
    reordered: u64,
    /// The number of the last POLL that was answered.
    polled: u64,
}

const NO_TERMS: Terms = Terms {
    size_bytes: 0,
    interval: Nanos::ZERO,
    duration: Nanos::ZERO,
    idle: Nanos::ZERO,
    stream: StreamTerms::NONE,
    down: false,
};

/// A place for a session, and the session in it.
#[derive(Debug)]
pub(super) struct SessionSlot {
    pub(super) state: SlotState,
    pub(super) session: u16,
    pub(super) address: SocketAddr,
    pub(super) keys: Option<SessionKeys>,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    pub(super) counts: Report,
    pub(super) stream: StreamCounts,
    at_opening: ReceiverState,
    ends_at: Stamp<ReflectorClock>,
    pub(super) last_probe: Stamp<ReflectorClock>,
    window: ReplayWindow,
}

impl SessionSlot {
    pub(super) fn new(index: u16) -> SessionSlot {
        let never = Stamp::from_nanos(i64::MIN);
        SessionSlot {
            state: SlotState::Closed,
            session: index,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            keys: None,
            nonce: [0; 16],
            reflector_nonce: [0; 16],
            terms: NO_TERMS,
            counts: Report::default(),
            stream: StreamCounts::default(),
            at_opening: ReceiverState::default(),
            ends_at: never,
            last_probe: never,
            window: ReplayWindow::default(),
        }
    }

    /// The codes of CLOSE and REPORT.
    pub(super) fn close_codes(&self) -> Codes {
        self.keys.as_ref().map_or(Codes::None, |keys| keys.close.clone())
    }

    /// Ends the session, when its socket has dropped `drops` in all; says whether it was still open. The report tells what
    /// was dropped until the first CLOSE, so that a repeated one gets the same.
    pub(super) fn close(&mut self, drops: Option<u64>) -> bool {
        let was_open = self.state == SlotState::Open;
        self.state = SlotState::Closed;
        if self.counts.socket_drops.is_none() {
            let ends = self.at_opening.socket_drops.zip(drops);
            // The kernel counts with 32 bits: so far apart, the difference is right across its overflow.
            self.counts.socket_drops = ends.map(|(then, now)| u64::from((now as u32).wrapping_sub(then as u32)));
        }
        was_open
    }

    /// Puts a new session into this place, under `number`.
    pub(super) fn begin(&mut self, number: u16, new: NewSession, keys: Option<SessionKeys>) {
        self.state = SlotState::Open;
        self.session = number;
        self.keys = keys;
        self.address = new.address;
        self.nonce = new.nonce;
        self.reflector_nonce = new.reflector_nonce;
        self.terms = new.terms;
        self.counts = Report { session: number, nonce: new.nonce, ..Report::default() };
        self.stream = StreamCounts::default();
        self.at_opening = new.receiver;
        self.ends_at = new.at + new.terms.duration;
        self.last_probe = new.at;
        self.window.clear();
    }

    /// Whether there is a stream in this place.
    pub(super) fn streams(&self) -> bool {
        self.state == SlotState::Open && self.terms.stream != StreamTerms::NONE
    }

    /// What the session in this place needs of the socket now.
    pub(super) fn needs(&self, now: Stamp<ReflectorClock>) -> StreamTerms {
        match self.state {
            SlotState::Closed => StreamTerms::NONE,
            SlotState::Open => {
                let batched = self.terms.stream.batched && now - self.last_probe <= STREAM_SILENT;
                StreamTerms { batched, unchecked: self.terms.stream.unchecked }
            }
        }
    }

    #[inline]
    pub(super) fn is_over(&self, now: Stamp<ReflectorClock>) -> bool {
        now > self.ends_at || now - self.last_probe > self.terms.idle
    }

    /// Judges a probe of this session, and counts it.
    #[inline]
    pub(super) fn judge(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<Reflection, DropReason> {
        let counter = self.admit(header, datagram, received)?;
        self.counts.answered += 1;
        let key = self.keys.as_ref().map(|keys| keys.answers);
        Ok(Reflection { session: self.session, counter, key, received, kernel_received: None })
    }

    /// Judges a packet of this session's stream, and counts it.
    #[inline]
    pub(super) fn count(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<(), DropReason> {
        let newest = self.window.newest();
        let counter = self.admit(header, datagram, received)?;
        self.stream.packets += 1;
        self.stream.bytes += datagram.len() as u64;
        self.stream.reordered += u64::from(counter < newest);
        Ok(())
    }

    /// Counts a train of this session's stream: packets as long as agreed, genuine, in order, all of them newer than any
    /// before. Where it says that they are not, nothing has happened, and each is to be judged for itself.
    #[inline]
    pub(super) fn count_train(&mut self, train: Train<'_>, received: Stamp<ReflectorClock>) -> bool {
        let newest = self.window.newest();
        let first = extend_receive_counter(newest, REPLAY_WINDOW, train.counter_low());
        let keys = self.keys.as_ref();
        let believable = keys.is_some() || first.saturating_sub(newest) < KEYLESS_JUMP_MAX;
        let fits = train.each_bytes() == self.terms.size_bytes as usize && first > newest && believable;
        if !fits || !train.verify(keys.map(|keys| &keys.probes), first) {
            return false;
        }
        let packets = train.packets();
        self.window.mark_newer(first, first + (packets - 1));
        self.stream.packets += packets;
        self.stream.bytes += packets * train.each_bytes() as u64;
        self.last_probe = received;
        true
    }

    /// Answers `poll`: what was counted so far, and how the `receiver` stands; none where it was answered before.
    pub(super) fn tally(
        &mut self,
        poll: &StreamPoll,
        received: Stamp<ReflectorClock>,
        receiver: ReceiverState,
    ) -> Option<StreamTally> {
        if poll.number <= self.stream.polled {
            return None;
        }
        self.stream.polled = poll.number;
        self.last_probe = received;
        let (stream, counts) = (self.stream, self.counts);
        let any = stream.packets + counts.answered > 0;
        let cpu = receiver.thread_cpu.zip(self.at_opening.thread_cpu).filter(|_| poll.wants_cpu);
        Some(StreamTally {
            session: self.session,
            nonce: self.nonce,
            number: poll.number,
            at: received,
            packets: stream.packets,
            bytes: stream.bytes,
            spanned: if any { self.window.newest().saturating_add(1) } else { 0 },
            reordered: stream.reordered,
            seen_before: counts.seen_before,
            left_window: counts.left_window,
            forged: counts.forged,
            wrong_size: counts.wrong_size,
            socket_drops: receiver.socket_drops,
            drops_merged: receiver.drops_merged,
            cpu: cpu.map(|(now, then)| now - then),
        })
    }

    /// The counter of a datagram that is as long as agreed, genuine and new, which keeps the session alive.
    #[inline]
    fn admit(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<u64, DropReason> {
        if datagram.len() != self.terms.size_bytes as usize {
            self.counts.wrong_size += 1;
            return Err(DropReason::WrongSize);
        }
        let counter = extend_receive_counter(self.window.newest(), REPLAY_WINDOW, header.counter_low);
        let keys = self.keys.as_ref();
        let believable = keys.is_some() || counter.saturating_sub(self.window.newest()) < KEYLESS_JUMP_MAX;
        if !believable || !header.verify(keys.map(|keys| &keys.probes), counter, datagram) {
            return Err(self.reject(header, counter, datagram));
        }
        match self.window.mark(counter) {
            ReplayVerdict::New => {}
            ReplayVerdict::Before => {
                self.counts.seen_before += 1;
                return Err(DropReason::SeenBefore);
            }
            ReplayVerdict::LeftWindow => {
                self.counts.left_window += 1;
                return Err(DropReason::LeftWindow);
            }
        }
        self.last_probe = received;
        Ok(counter)
    }

    /// Tells a datagram that is older than the window, which the extension took for one of the next 2^32, from a
    /// forged one.
    #[cold]
    fn reject(&mut self, header: ProbeHeader, counter: u64, datagram: &[u8]) -> DropReason {
        let key = self.keys.as_ref().map(|keys| &keys.probes);
        let genuine = counter.checked_sub(1 << 32).is_some_and(|older| header.verify(key, older, datagram));
        if genuine {
            self.counts.left_window += 1;
            DropReason::LeftWindow
        } else {
            self.counts.forged += 1;
            DropReason::Tag
        }
    }
}

/// What a new session is made of.
pub(super) struct NewSession {
    pub(super) address: SocketAddr,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    /// When it begins.
    pub(super) at: Stamp<ReflectorClock>,
    /// How the receiver stood then.
    pub(super) receiver: ReceiverState,
}
