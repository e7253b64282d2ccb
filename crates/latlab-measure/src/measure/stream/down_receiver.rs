//! The receiving loop of a down-stream: grants credit to the reflector, and counts the packets that arrive. It makes no
//! system call but send, receive, clock and the wait of the transport, and does not allocate.

use std::sync::atomic::{AtomicBool, Ordering};

use super::down_credit::StreamCredit;
use super::sender::StreamError;
use crate::clock::Clock;
use crate::plan::defaults;
use crate::session::{DownCounts, DownMessage, DownStream};
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::StreamTally;

/// The longest time for which the next packet of a slow stream is awaited.
const GAP_MAX: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3);
/// The time for which packets in flight are awaited after the last TALLY.
const LINGER: Nanos = Nanos::from_millis(50);
/// One byte more than the longest UDP payload.
const BUFFER_BYTES: usize = 65_508;

/// The counts of both ends at a TALLY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TallyPoint {
    /// When it was received, on this end's clock.
    pub at: Stamp<SenderClock>,
    /// The counts of this end then.
    pub counts: DownCounts,
    /// The sent packets and bytes of the reflector, in the fields for counted ones.
    pub tally: StreamTally,
}

#[derive(Debug)]
pub struct DownReceiver<T, C> {
    transport: T,
    clock: C,
    down: DownStream,
    buffer: Box<[u8]>,
    credit: StreamCredit,
    /// When the last TALLY was received, or the stream began.
    answered_at: Stamp<SenderClock>,
    last: Option<TallyPoint>,
    limit: Option<Limit>,
    /// When the first and the latest packet of the slice were received.
    came: Option<(Stamp<SenderClock>, Stamp<SenderClock>)>,
    /// Whether a packet was received since the last reading of the clock.
    is_new: bool,
}

/// The end of the credit of a slice.
#[derive(Clone, Copy, Debug)]
struct Limit {
    until: Stamp<SenderClock>,
    /// Packets since the begin of the session.
    packets: u64,
}

impl<T: Transport, C: Clock> DownReceiver<T, C> {
    /// Arms `down`. The reflector sends nothing before the first credit.
    pub fn new(transport: T, clock: C, down: DownStream) -> DownReceiver<T, C> {
        let now = clock.now();
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let credit = StreamCredit::new(now, down.gap());
        let (last, limit, came) = (None, None, None);
        DownReceiver { transport, clock, down, buffer, credit, answered_at: now, last, limit, came, is_new: false }
    }

    /// Begins a slice of length `span` at `now`, before which the reflector has sent `sent` packets. Returns the limit of
    /// its credit: the packets of the slice at its pace. `has_pace`: that pace was requested, and is not only a limit.
    pub fn begin(&mut self, now: Stamp<SenderClock>, span: Nanos, sent: u64, has_pace: bool) -> u64 {
        let paced = (span.0.max(0) as f64 / self.down.gap().0.max(1) as f64).round().max(1.0) as u64;
        self.limit = Some(Limit { until: now + span, packets: sent.saturating_add(paced) });
        (self.came, self.is_new, self.answered_at) = (None, false, now);
        self.credit.begin(now, span, has_pace);
        paced
    }

    /// When the first and the latest packet of the slice were received, with the resolution of one receive call; `None`
    /// without packets.
    pub fn came(&self) -> Option<(Stamp<SenderClock>, Stamp<SenderClock>)> {
        self.came
    }

    /// The time of this end's clock.
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// The gap between packets that the reflector grants.
    pub fn gap(&self) -> Nanos {
        self.down.gap()
    }

    /// The counts of this end so far.
    pub fn counts(&self) -> DownCounts {
        self.down.counts()
    }

    /// The counts of both ends at the latest TALLY.
    pub fn last(&self) -> Option<&TallyPoint> {
        self.last.as_ref()
    }

    /// Grants credit and counts, until `until` or `stop`, or until a TALLY is received at `row` or later. A further call
    /// continues without a gap.
    ///
    /// # Errors
    /// The socket failed, or the reflector did not answer for 1.5 s.
    pub fn run(
        &mut self,
        row: Stamp<SenderClock>,
        until: Stamp<SenderClock>,
        stop: &AtomicBool,
    ) -> Result<(), StreamError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.read_clock();
            if now >= until || self.last.is_some_and(|last| last.at >= row) {
                break;
            }
            self.check_silence(now)?;
            let passed = self.down.passed();
            let mut due_in = self.credit.due_in(now, passed);
            if due_in <= Nanos::ZERO {
                let left = self.limit.map_or(until, |limit| limit.until) - now;
                let packets = self.credit.grant(now, passed, self.down.counts().packets, left);
                self.poll(packets)?;
                due_in = self.credit.due_in(now, passed);
            }
            self.receive(due_in.min(until - now))?;
        }
        Ok(())
    }

    /// As [`DownReceiver::settle`], before a slice, after a time without POLLs.
    ///
    /// # Errors
    /// As [`DownReceiver::settle`].
    pub fn ready(&mut self) -> Result<TallyPoint, StreamError> {
        self.answered_at = self.clock.now();
        self.settle()
    }

    /// Grants no more credit, and waits until all packets are sent and received or lost. The tally of the result is the
    /// first that covers all of them.
    ///
    /// # Errors
    /// The socket failed, or no TALLY was received for 1.5 s since the last one, or the reflector has not stopped after 5 s.
    pub fn settle(&mut self) -> Result<TallyPoint, StreamError> {
        let begin = self.clock.now();
        let (mut next_poll, mut known) = (begin, None);
        let mut first: Option<TallyPoint> = self.last;
        // The next packet may be due after this time.
        let gap = self.down.gap().min(GAP_MAX);
        loop {
            let now = self.read_clock();
            match known {
                Some((at, point)) if now - at >= LINGER => {
                    return Ok(TallyPoint { counts: self.down.counts(), ..point });
                }
                // A reflector that sends without credit never stops.
                None if now - begin >= defaults::STREAM_SILENCE_MAX => {
                    return Err(StreamError::Silent { span: now - begin });
                }
                Some(_) => {}
                None => self.check_silence(now)?,
            }
            if now >= next_poll {
                self.poll(0)?;
                next_poll = now + defaults::STREAM_POLL_AGAIN;
            }
            self.receive(next_poll - now)?;
            // Two TALLYs with the same count: the credit is used up or expired, and no more packets are sent.
            match (first, self.last) {
                (Some(one), Some(other)) if one.tally.packets == other.tally.packets => {
                    let is_over = one.tally.number < other.tally.number && other.tally.at - one.tally.at >= gap;
                    known = known.or(is_over.then_some((now, one)));
                }
                (_, other) => first = other,
            }
        }
    }

    /// Closes the session and returns the transport.
    pub fn close(self) -> T {
        let DownReceiver { mut transport, clock, down, .. } = self;
        // The last TALLY has the content of the report.
        let _ = down.close(&mut transport, &clock);
        transport
    }

    /// Reads the clock, which is also the time of packets received since the last reading.
    #[inline]
    fn read_clock(&mut self) -> Stamp<SenderClock> {
        let now = self.clock.now();
        if std::mem::take(&mut self.is_new) {
            self.came = Some((self.came.map_or(now, |(first, _)| first), now));
        }
        now
    }

    fn check_silence(&self, now: Stamp<SenderClock>) -> Result<(), StreamError> {
        let span = now - self.answered_at;
        if span < defaults::STREAM_PATIENCE { Ok(()) } else { Err(StreamError::Silent { span }) }
    }

    /// Sends a POLL with credit for `packets` more.
    fn poll(&mut self, packets: u64) -> Result<(), StreamError> {
        let most = self.limit.map_or(u64::MAX, |limit| limit.packets);
        let (_, datagram) = self.down.poll(packets, most);
        match self.transport.send(datagram) {
            Err(error) if !super::sender::is_queue_full(&error) => Err(StreamError::Socket(error)),
            // As if lost: the next one follows soon.
            _ => Ok(()),
        }
    }

    /// Receives one datagram, waiting about `patience`.
    #[inline]
    fn receive(&mut self, patience: Nanos) -> Result<(), StreamError> {
        let received = self.transport.receive(&mut self.buffer, patience).map_err(StreamError::Socket)?;
        let Some(datagram) = received.and_then(|bytes| self.buffer.get(..bytes)) else { return Ok(()) };
        match self.down.decode(datagram) {
            DownMessage::Packet => self.is_new = true,
            DownMessage::Tally(tally) => {
                let at = self.clock.now();
                self.answered_at = at;
                if self.last.is_none_or(|last| last.tally.number < tally.number) {
                    self.last = Some(TallyPoint { at, counts: self.down.counts(), tally });
                }
            }
            DownMessage::Other => {}
        }
        Ok(())
    }
}
