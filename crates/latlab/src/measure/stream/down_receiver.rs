//! The loop of a down-stream: the far end sends within the credit that this end gives; this end counts. It makes no system
//! call but send, receive, clock and the transport's wait, and allocates nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use super::down_credit::StreamCredit;
use super::sender::StreamError;
use crate::clock::Clock;
use crate::plan::defaults;
use crate::session::{DownCounts, DownMessage, DownStream};
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::StreamTally;

/// The next packet of a slow stream is waited for no longer than this.
const APART_MAX: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3);
/// After that TALLY, what is still under way is waited for as long as this.
const LINGERS: Nanos = Nanos::from_millis(50);
/// One more byte than the longest datagram.
const BUFFER_BYTES: usize = 65_508;

/// Both ends at one TALLY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TallyPoint {
    /// When it came, on this end's clock.
    pub at: Stamp<SenderClock>,
    /// What had arrived by then.
    pub counts: DownCounts,
    /// What the reflector had sent when it was asked: packets and bytes in the places of those counted.
    pub tally: StreamTally,
}

/// The counting end of a down-stream, armed.
#[derive(Debug)]
pub struct DownReceiver<T, C> {
    transport: T,
    clock: C,
    down: DownStream,
    buffer: Box<[u8]>,
    credit: StreamCredit,
    /// When a TALLY came last, or the stream began.
    heard_at: Stamp<SenderClock>,
    last: Option<TallyPoint>,
    limit: Option<Limit>,
    /// When the first packet of the slice came, and the latest one.
    came: Option<(Stamp<SenderClock>, Stamp<SenderClock>)>,
    /// A packet came after the last look at the clock.
    is_new: bool,
}

/// Where the credit of a slice ends.
#[derive(Clone, Copy, Debug)]
struct Limit {
    until: Stamp<SenderClock>,
    /// Packets since the session was opened.
    packets: u64,
}

impl<T: Transport, C: Clock> DownReceiver<T, C> {
    /// Arms `down`: nothing is sent before the first credit.
    pub fn new(transport: T, clock: C, down: DownStream) -> DownReceiver<T, C> {
        let now = clock.now();
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let credit = StreamCredit::new(now, down.gap());
        let (last, limit, came) = (None, None, None);
        DownReceiver { transport, clock, down, buffer, credit, heard_at: now, last, limit, came, is_new: false }
    }

    /// A slice begins at `now` and lasts for `span`. The reflector has sent `sent` packets before it, and is given credit for
    /// no more than what its pace makes of the slice, which is returned; `has_pace`: that pace was asked for, and is not a limit
    /// only.
    pub fn begin(&mut self, now: Stamp<SenderClock>, span: Nanos, sent: u64, has_pace: bool) -> u64 {
        let paced = (span.0.max(0) as f64 / self.down.gap().0.max(1) as f64).round().max(1.0) as u64;
        self.limit = Some(Limit { until: now + span, packets: sent.saturating_add(paced) });
        (self.came, self.is_new, self.heard_at) = (None, false, now);
        self.credit.begin(now, span, has_pace);
        paced
    }

    /// When the first packet of the slice came and the latest one, to within one look at the socket; none: none came.
    pub fn came(&self) -> Option<(Stamp<SenderClock>, Stamp<SenderClock>)> {
        self.came
    }

    /// Now.
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// What carries it.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// From one packet to the next, as the reflector grants it.
    pub fn gap(&self) -> Nanos {
        self.down.gap()
    }

    /// What arrived so far.
    pub fn counts(&self) -> DownCounts {
        self.down.counts()
    }

    /// Both ends at the latest TALLY.
    pub fn last(&self) -> Option<&TallyPoint> {
        self.last.as_ref()
    }

    /// Gives credit and counts, until `until` or `stop`, or until a TALLY comes at `row` or later. It can be called again and
    /// again.
    ///
    /// # Errors
    /// The socket broke, or the reflector was silent for 1.5 s.
    pub fn run(
        &mut self,
        row: Stamp<SenderClock>,
        until: Stamp<SenderClock>,
        stop: &AtomicBool,
    ) -> Result<(), StreamError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.look();
            if now >= until || self.last.is_some_and(|last| last.at >= row) {
                break;
            }
            self.patience(now)?;
            let passed = self.down.passed();
            let mut due_in = self.credit.due_in(now, passed);
            if due_in <= Nanos::ZERO {
                let left = self.limit.map_or(until, |limit| limit.until) - now;
                let packets = self.credit.give(now, passed, self.down.counts().packets, left);
                self.ask(packets)?;
                due_in = self.credit.due_in(now, passed);
            }
            self.hear(due_in.min(until - now))?;
        }
        Ok(())
    }

    /// Before a slice: the same as [`DownReceiver::settle`], for a reflector that was not asked for a while.
    ///
    /// # Errors
    /// The same.
    pub fn ready(&mut self) -> Result<TallyPoint, StreamError> {
        self.heard_at = self.clock.now();
        self.settle()
    }

    /// Gives no credit any more and waits until the reflector has reported what it sent, and that has arrived or is lost. The
    /// tally is the first that covers all of it.
    ///
    /// # Errors
    /// The socket broke, or no TALLY came for 1.5 s (silence goes on where it has begun), or none for 5 s that said all is sent.
    pub fn settle(&mut self) -> Result<TallyPoint, StreamError> {
        let begin = self.clock.now();
        let (mut next_poll, mut known) = (begin, None);
        let mut first: Option<TallyPoint> = self.last;
        // The next packet may be due so late.
        let apart = self.down.gap().min(APART_MAX);
        loop {
            let now = self.look();
            match known {
                Some((at, point)) if now - at >= LINGERS => {
                    return Ok(TallyPoint { counts: self.down.counts(), ..point });
                }
                // Who goes on without credit is never done.
                None if now - begin >= defaults::STREAM_SILENCE_MAX => {
                    return Err(StreamError::Silent { span: now - begin });
                }
                Some(_) => {}
                None => self.patience(now)?,
            }
            if now >= next_poll {
                self.ask(0)?;
                next_poll = now + defaults::STREAM_POLL_AGAIN;
            }
            self.hear(next_poll - now)?;
            // Two TALLYs that say the same: the credit is used up or stale, and nothing is sent any more.
            match (first, self.last) {
                (Some(one), Some(other)) if one.tally.packets == other.tally.packets => {
                    let is_over = one.tally.number < other.tally.number && other.tally.at - one.tally.at >= apart;
                    known = known.or(is_over.then_some((now, one)));
                }
                (_, other) => first = other,
            }
        }
    }

    /// Ends the session; the transport comes back.
    pub fn close(self) -> T {
        let DownReceiver { mut transport, clock, down, .. } = self;
        // What it would say is known from the last tally.
        let _ = down.close(&mut transport, &clock);
        transport
    }

    /// Reads the clock, which is also when what came before it came.
    #[inline]
    fn look(&mut self) -> Stamp<SenderClock> {
        let now = self.clock.now();
        if std::mem::take(&mut self.is_new) {
            self.came = Some((self.came.map_or(now, |(first, _)| first), now));
        }
        now
    }

    fn patience(&self, now: Stamp<SenderClock>) -> Result<(), StreamError> {
        let span = now - self.heard_at;
        if span < defaults::STREAM_PATIENCE { Ok(()) } else { Err(StreamError::Silent { span }) }
    }

    /// Asks how much was sent, with credit for `packets` more.
    fn ask(&mut self, packets: u64) -> Result<(), StreamError> {
        let most = self.limit.map_or(u64::MAX, |limit| limit.packets);
        let (_, datagram) = self.down.poll(packets, most);
        match self.transport.send(datagram) {
            Err(error) if !super::sender::lacks_room(&error) => Err(StreamError::Socket(error)),
            // As good as lost: the next one comes soon.
            _ => Ok(()),
        }
    }

    /// Takes one datagram, waiting about `patience`.
    #[inline]
    fn hear(&mut self, patience: Nanos) -> Result<(), StreamError> {
        let received = self.transport.receive(&mut self.buffer, patience).map_err(StreamError::Socket)?;
        let Some(datagram) = received.and_then(|bytes| self.buffer.get(..bytes)) else { return Ok(()) };
        match self.down.decode(datagram) {
            DownMessage::Packet => self.is_new = true,
            DownMessage::Tally(tally) => {
                let at = self.clock.now();
                self.heard_at = at;
                if self.last.is_none_or(|last| last.tally.number < tally.number) {
                    self.last = Some(TallyPoint { at, counts: self.down.counts(), tally });
                }
            }
            DownMessage::Other => {}
        }
        Ok(())
    }
}
