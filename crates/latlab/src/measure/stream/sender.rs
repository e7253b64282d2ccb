//! The loop of a stream: packets leave when due, POLLs ask what arrived, TALLYs say it. Once armed it makes no system
//! call but send, receive, clock and the transport's wait, and allocates nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::meter::{MeterPoint, Sent, StreamMeter};
use super::token_schedule::{Due, TokenSchedule};
use crate::clock::Clock;
use crate::plan::defaults;
use crate::session::UpStream;
use crate::transport::{BurstTransport, ConnectionBytes, SendModeError};
use crate::units::{Nanos, SenderClock, Stamp};

/// The shortest sleep. A stream that is due more often sends a few packets each time: a sleep and a wake-up cost some
/// microseconds themselves, and the probe's CPU may be the one that pays them.
const QUANTUM: Nanos = Nanos::from_micros(50);
/// Where it waits for nothing, the loop looks this often for a TALLY: a receive call that finds nothing takes 0.2 µs.
const LOOK_EVERY: Nanos = Nanos::from_micros(250);
/// A target that falls silent ends a measured stream within 2 s of its last answer: that is noticed at the latest when the
/// next POLL is due, two sends may each have slept for a nap on the way there, and a quarter of a second is left to close
/// the recording.
const _: () = assert!(
    defaults::STREAM_PATIENCE.0 + defaults::STREAM_POLL_AGAIN.0 + 2 * defaults::NAP.0 <= Nanos::from_millis(1_750).0
);
/// The longest datagram that is meant for us; of a longer one only the beginning is read, and it is none.
const BUFFER_BYTES: usize = 256;

/// Why a stream cannot go on.
#[derive(Debug)]
pub enum StreamError {
    /// The socket broke.
    Socket(io::Error),
    /// Packets cannot leave in the way that was asked for.
    SendMode(SendModeError),
    /// Nobody says what arrived.
    Silent {
        /// For so long.
        span: Nanos,
    },
}

/// How long a silent receiver is waited for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// The stream ends after this time without a count …
    silence_max: Nanos,
    /// … and holds its packets back when that lasts so long: a POLL shall get through to a receiver that is swamped.
    holds_after: Nanos,
    /// So long it waits for the tally of all that it has sent.
    settles_within: Nanos,
}

impl Patience {
    /// Of a load: whatever it is a load of waits until it is settled.
    const LOAD: Patience = Patience {
        silence_max: defaults::STREAM_SILENCE_MAX,
        holds_after: defaults::STREAM_SILENCE_MAX,
        settles_within: Nanos::from_secs(1),
    };
    /// Of a connection: it holds its sender back by itself. A POLL stands behind all that its kernel has taken: on a slow path
    /// that takes seconds, and does not count as silence as long as the connection comes nearer to it. A segment that is lost again and
    /// again is sent again after 0.2, 0.4, 0.8 and 1.6 s, in which nothing moves; so is an answer.
    const CONNECTED: Patience = Patience {
        silence_max: defaults::STREAM_SILENCE_MAX,
        holds_after: defaults::STREAM_SETTLES_CONNECTED,
        settles_within: defaults::STREAM_SETTLES_CONNECTED,
    };
    /// Of what is measured.
    const MEASURED: Patience = Patience {
        silence_max: defaults::STREAM_PATIENCE,
        holds_after: Nanos(defaults::STREAM_PATIENCE.0 / 2),
        settles_within: defaults::STREAM_PATIENCE,
    };

    /// What of it is for `awaiting`.
    fn of(self, awaiting: Awaiting) -> Patience {
        let share = |span: Nanos| Nanos(span.0 / i64::from(defaults::SEARCH_SILENT_QUESTIONS));
        let divided = Patience {
            silence_max: share(self.silence_max),
            holds_after: share(self.holds_after),
            settles_within: share(self.settles_within),
        };
        let deep = self.silence_max.max(defaults::SEARCH_PATIENCE_WITHOUT_PACE);
        match awaiting {
            Awaiting::Answer => self,
            Awaiting::OneOfSeveral => divided,
            // Packets are held back as soon: what is in the queue by then is enough.
            Awaiting::UnknownQueue => Patience { silence_max: deep, settles_within: deep, ..divided },
        }
    }
}

/// For what a stream waits that asks how much arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    /// For an answer, as long as anybody does.
    Answer,
    /// For the answer to one of the questions in a row that share that time.
    OneOfSeveral,
    /// For an answer from behind a queue of unknown depth.
    UnknownQueue,
}

/// The sending end of a stream, armed.
#[derive(Debug)]
pub struct StreamSender<T, C> {
    transport: T,
    clock: C,
    up: UpStream,
    buffer: Box<[u8]>,
    refused: u64,
    next_look: Stamp<SenderClock>,
    /// For an answer.
    patience_in_all: Patience,
    patience: Patience,
    under_way: StallDetector,
    /// How it is followed.
    meter: fn(Stamp<SenderClock>) -> StreamMeter,
}

impl<T: BurstTransport, C: Clock> StreamSender<T, C> {
    /// Arms `up` as a load.
    pub fn new(transport: T, clock: C, up: UpStream) -> StreamSender<T, C> {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let (next_look, meter) = (clock.now(), StreamMeter::new as fn(_) -> _);
        let (patience_in_all, patience) = (Patience::LOAD, Patience::LOAD);
        let under_way = StallDetector::new(next_look);
        StreamSender {
            transport,
            clock,
            up,
            buffer,
            refused: 0,
            next_look,
            patience_in_all,
            patience,
            under_way,
            meter,
        }
    }

    /// Arms `up` as what is measured over a connection.
    pub fn connected(transport: T, clock: C, up: UpStream) -> StreamSender<T, C> {
        let stream = StreamSender::new(transport, clock, up);
        StreamSender { meter: StreamMeter::over_a_connection, ..stream.waiting(Patience::CONNECTED) }
    }

    /// Arms `up` as what is measured: it leaves without checksums where that was asked for, and ends sooner without a
    /// receiver that counts.
    ///
    /// # Errors
    /// The socket does not leave out checksums.
    pub fn measured(transport: T, clock: C, up: UpStream) -> Result<StreamSender<T, C>, StreamError> {
        let mut stream = StreamSender::new(transport, clock, up).waiting(Patience::MEASURED);
        stream.transport.set_checksums(false).map_err(StreamError::Socket)?;
        Ok(stream)
    }

    fn waiting(self, patience: Patience) -> StreamSender<T, C> {
        StreamSender { patience_in_all: patience, patience, ..self }
    }

    /// From now on a silent receiver is given up as is due where one is `awaiting` that.
    pub fn wait_as(&mut self, awaiting: Awaiting) {
        self.patience = self.patience_in_all.of(awaiting);
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// What follows a stretch of it that begins now.
    pub fn meter(&self) -> StreamMeter {
        (self.meter)(self.clock.now())
    }

    /// Packets that the kernel took, and how often it refused one because a buffer was full.
    pub fn sent_and_refused(&self) -> (u64, u64) {
        (self.up.sent(), self.refused)
    }

    /// What carries it.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Sends on `schedule` and follows what arrives with `meter`, until `until` or `stop`. It can be called again and
    /// again with the same two: nothing is waited for in between.
    ///
    /// # Errors
    /// The socket broke or refuses this way of sending, or no count came in time.
    pub fn run(
        &mut self,
        schedule: &mut TokenSchedule,
        meter: &mut StreamMeter,
        until: Stamp<SenderClock>,
        stop: &AtomicBool,
    ) -> Result<(), StreamError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if now >= until {
                break;
            }
            let poll_in = self.poll(meter, now)?;
            let patience = match schedule.due(now) {
                Due::In(span) if schedule.sleeps() => span.max(QUANTUM),
                Due::In(_) => Nanos::ZERO,
                Due::Now { .. } if meter.silent_for(now) >= self.patience.holds_after => QUANTUM,
                Due::Now { packets, behind } => {
                    let all_left = self.burst(schedule, packets)?;
                    if (behind && schedule.sleeps()) || !all_left { QUANTUM } else { Nanos::ZERO }
                }
            };
            let patience = patience.min(poll_in).min(until - now);
            if patience > Nanos::ZERO || now >= self.next_look {
                self.next_look = now + LOOK_EVERY;
                self.hear(meter, patience)?;
            }
        }
        Ok(())
    }

    /// Waits until the reflector has reported what arrived of all that was sent before.
    ///
    /// # Errors
    /// The socket broke, or no tally came in time: 1 s for a load, else the limit after which a stream without counts ends.
    pub fn settle(&mut self, meter: &mut StreamMeter) -> Result<MeterPoint, StreamError> {
        self.settle_unless(&AtomicBool::new(false), meter)
    }

    /// The same, but who says `stop` waits no longer than for a silent receiver.
    ///
    /// # Errors
    /// As of [`StreamSender::settle`].
    pub fn settle_unless(&mut self, stop: &AtomicBool, meter: &mut StreamMeter) -> Result<MeterPoint, StreamError> {
        let begin = self.clock.now();
        let sent = self.up.sent();
        loop {
            let now = self.clock.now();
            let settles_within = self.patience.settles_within;
            let is_over = stop.load(Ordering::Relaxed);
            let within = if is_over { settles_within.min(defaults::STREAM_PATIENCE) } else { settles_within };
            if now - begin >= within {
                return Err(StreamError::Silent { span: now - begin });
            }
            let poll_in = self.poll(meter, now)?;
            self.hear(meter, poll_in)?;
            if let Some(point) = meter.last().filter(|point| point.sent.at >= begin && point.sent.packets == sent) {
                return Ok(*point);
            }
        }
    }

    /// Asks what has arrived, and waits for an answer until then, or until `stop`; nothing else is sent.
    ///
    /// # Errors
    /// The socket broke, or no count came in time.
    pub fn ask(
        &mut self,
        meter: &mut StreamMeter,
        until: Stamp<SenderClock>,
        stop: &AtomicBool,
    ) -> Result<(), StreamError> {
        let known = meter.last().map(|point| point.tally.number);
        while meter.last().map(|point| point.tally.number) == known && !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if now >= until {
                break;
            }
            let poll_in = self.poll(meter, now)?;
            self.hear(meter, poll_in.min(until - now))?;
        }
        Ok(())
    }

    /// Ends the session; the transport comes back, and protects what it sends.
    pub fn close(self) -> T {
        let StreamSender { mut transport, clock, up, .. } = self;
        // Where a checksum cannot be had back the CLOSE goes without it, as everything before.
        let _ = transport.set_checksums(true);
        // What it would say is known from the last tally.
        let _ = up.close(&mut transport, &clock);
        transport
    }

    /// Sends up to `packets` packets; `true` if the kernel took all of them.
    #[inline]
    fn burst(&mut self, schedule: &mut TokenSchedule, packets: u64) -> Result<bool, StreamError> {
        let mut left = packets;
        while left > 0 {
            match self.transport.burst(self.up.packets(left)) {
                Ok(taken) => {
                    let taken = taken as u64;
                    self.up.advance(taken);
                    schedule.take(taken);
                    left = left.saturating_sub(taken.max(1));
                }
                Err(error) if lacks_room(&error) => {
                    self.refused += 1;
                    return Ok(false);
                }
                Err(error) => return Err(self.refusal(error)),
            }
        }
        Ok(true)
    }

    #[cold]
    fn refusal(&self, error: io::Error) -> StreamError {
        match SendModeError::of(&error, self.up.options(), self.up.size_bytes()) {
            Some(error) => StreamError::SendMode(error),
            None => StreamError::Socket(error),
        }
    }

    /// Sends a POLL where one is due, and says how long until the next.
    #[inline]
    fn poll(&mut self, meter: &mut StreamMeter, now: Stamp<SenderClock>) -> Result<Nanos, StreamError> {
        if meter.poll_in(now) <= Nanos::ZERO {
            let span = self.silent_for(meter, now);
            if span >= self.patience.silence_max {
                return Err(StreamError::Silent { span });
            }
            let sent = Sent { at: now, packets: self.up.sent() };
            let (number, datagram) = self.up.poll();
            match self.transport.send(datagram) {
                Ok(()) => {}
                // As good as lost: asked again after 25 ms.
                Err(error) if lacks_room(&error) => self.refused += 1,
                Err(error) => return Err(StreamError::Socket(error)),
            }
            meter.asked(number, sent);
            if let Some(carried) = self.transport.progress() {
                self.under_way.asked(carried);
            }
        }
        Ok(meter.poll_in(now))
    }

    /// How long no count has come and no connection has moved towards the next count.
    fn silent_for(&mut self, meter: &StreamMeter, now: Stamp<SenderClock>) -> Nanos {
        let span = meter.silent_for(now);
        match self.transport.progress() {
            Some(carried) => span.min(now - self.under_way.moved(carried, now)),
            None => span,
        }
    }

    /// Takes one datagram, waiting about `patience`.
    #[inline]
    fn hear(&mut self, meter: &mut StreamMeter, patience: Nanos) -> Result<(), StreamError> {
        let received = self.transport.receive(&mut self.buffer, patience).map_err(StreamError::Socket)?;
        let heard = received.and_then(|bytes| self.up.decode_tally(self.buffer.get(..bytes)?));
        if let Some(tally) = heard {
            meter.answered(tally, self.clock.now());
            self.under_way.answered();
        }
        Ok(())
    }
}

/// Whether a send failed because a queue of this host is full: the path is at its limit, and a later send may succeed.
pub(crate) fn lacks_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || Errno::from_io_error(error) == Some(Errno::NOBUFS)
}

/// What is known of the way of a question through a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallDetector {
    /// The first question that is not answered ends there, in bytes of the connection.
    asked_bytes: Option<u64>,
    /// So far the connection has come on the way to it, and when it last came further.
    carried_bytes: u64,
    moved_at: Stamp<SenderClock>,
}

impl StallDetector {
    /// Nothing was asked yet.
    pub(crate) fn new(now: Stamp<SenderClock>) -> StallDetector {
        StallDetector { asked_bytes: None, carried_bytes: 0, moved_at: now }
    }

    /// A question was handed over.
    pub(crate) fn asked(&mut self, carried: ConnectionBytes) {
        self.asked_bytes.get_or_insert(carried.sent_bytes);
    }

    /// Questions up to now are answered: the next one is the first that is not.
    pub(crate) fn answered(&mut self) {
        self.asked_bytes = None;
    }

    /// When the connection last came nearer to the question, `carried` being known `now`. What it carries beyond that
    /// shows that the other end's kernel is alive, not that its reflector counts.
    pub(crate) fn moved(&mut self, carried: ConnectionBytes, now: Stamp<SenderClock>) -> Stamp<SenderClock> {
        let nearer = carried.acknowledged_bytes.min(self.asked_bytes.unwrap_or(u64::MAX));
        if nearer > self.carried_bytes {
            (self.carried_bytes, self.moved_at) = (nearer, now);
        }
        self.moved_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_towards_the_question_is_no_silence_and_what_moves_beyond_it_is() {
        let at = Stamp::from_nanos;
        let carried = |sent_bytes, acknowledged_bytes| ConnectionBytes { sent_bytes, acknowledged_bytes };
        let mut way = StallDetector::new(at(0));
        way.asked(carried(1_000, 0));
        for (now, acknowledged_bytes, moved) in
            [(1, 0, 0), (2, 400, 2), (3, 400, 2), (4, 1_000, 4), (5, 1_500, 4), (9, 9_000, 4)]
        {
            assert_eq!(way.moved(carried(10_000, acknowledged_bytes), at(now)), at(moved), "{now}");
            // Asked again: the first question is what counts.
            way.asked(carried(10_000, acknowledged_bytes));
        }
        way.answered();
        way.asked(carried(10_000, 9_000));
        assert_eq!(way.moved(carried(10_000, 9_500), at(10)), at(10));
    }
}
