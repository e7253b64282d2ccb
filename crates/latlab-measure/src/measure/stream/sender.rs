//! The sending loop of a stream: sends due packets, and POLLs, which the receiver answers with TALLYs. Armed, it does
//! not allocate; its system calls only send, receive, wait, read the clock and, over TCP, query unacknowledged bytes.

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

/// The shortest sleep. A stream with shorter gaps sends several packets at a time: a sleep and a wake-up cost microseconds,
/// perhaps on the CPU of the probes.
const QUANTUM: Nanos = Nanos::from_micros(50);
/// The interval of receive calls while the loop does not wait; a call without a result takes 0.2 µs.
const RECEIVE_INTERVAL: Nanos = Nanos::from_micros(250);
/// A measured stream must end within 2 s of the last answer of its target. The silence is noticed at the latest when the
/// next POLL is due, before which two sends may each have waited for a nap; 0.25 s are left to close the recording.
const _: () = assert!(
    defaults::STREAM_PATIENCE.0 + defaults::STREAM_POLL_AGAIN.0 + 2 * defaults::NAP.0 <= Nanos::from_millis(1_750).0
);
/// Longer than every message to a sender; a longer datagram is truncated and then ignored.
const BUFFER_BYTES: usize = 256;

#[derive(Debug)]
pub enum StreamError {
    Socket(io::Error),
    /// Packets cannot be sent in the requested mode.
    SendMode(SendModeError),
    /// The receiver does not answer.
    Silent {
        /// The time without an answer.
        span: Nanos,
    },
}

/// The time-outs for a receiver that does not answer.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// The stream ends after this time without a TALLY.
    silence_max: Nanos,
    /// No packets are sent after this time without a TALLY, so that a POLL reaches an overloaded receiver.
    holds_after: Nanos,
    /// The time to wait for the TALLY that covers all sent packets.
    settles_within: Nanos,
}

impl Patience {
    /// Of a load, whose end the measurement awaits.
    const LOAD: Patience = Patience {
        silence_max: defaults::STREAM_SILENCE_MAX,
        holds_after: defaults::STREAM_SILENCE_MAX,
        settles_within: Nanos::from_secs(1),
    };
    /// Of a measured stream over a connection, which limits its sender by itself. A POLL is queued behind all bytes that the
    /// kernel took: on a slow path that takes seconds, which do not count as silence while the connection makes progress. A
    /// segment that is lost repeatedly is sent again after 0.2, 0.4, 0.8 and 1.6 s without progress; so is an answer.
    const CONNECTED: Patience = Patience {
        silence_max: defaults::STREAM_SILENCE_MAX,
        holds_after: defaults::STREAM_SETTLES_CONNECTED,
        settles_within: defaults::STREAM_SETTLES_CONNECTED,
    };
    /// Of a measured stream of datagrams.
    const MEASURED: Patience = Patience {
        silence_max: defaults::STREAM_PATIENCE,
        holds_after: Nanos(defaults::STREAM_PATIENCE.0 / 2),
        settles_within: defaults::STREAM_PATIENCE,
    };

    /// The time-outs while the stream is `awaiting`.
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
            // Packets are held back as early as for `OneOfSeveral`, since the queue is full by then.
            Awaiting::UnknownQueue => Patience { silence_max: deep, settles_within: deep, ..divided },
        }
    }
}

/// The answer that a stream awaits after a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaiting {
    /// An answer, with the whole time-out.
    Answer,
    /// The answer to one of several POLLs that share the time-out.
    OneOfSeveral,
    /// An answer that is delayed by a queue of unknown depth.
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
    next_receive: Stamp<SenderClock>,
    whole_patience: Patience,
    patience: Patience,
    stalls: StallDetector,
    /// The constructor of its meters.
    meter: fn(Stamp<SenderClock>) -> StreamMeter,
}

impl<T: BurstTransport, C: Clock> StreamSender<T, C> {
    /// Arms `up` as a load.
    pub fn new(transport: T, clock: C, up: UpStream) -> StreamSender<T, C> {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let (next_receive, meter) = (clock.now(), StreamMeter::new as fn(_) -> _);
        let (whole_patience, patience) = (Patience::LOAD, Patience::LOAD);
        let stalls = StallDetector::new(next_receive);
        StreamSender { transport, clock, up, buffer, refused: 0, next_receive, whole_patience, patience, stalls, meter }
    }

    /// Arms `up` as a measured stream over a connection.
    pub fn connected(transport: T, clock: C, up: UpStream) -> StreamSender<T, C> {
        let stream = StreamSender::new(transport, clock, up);
        StreamSender { meter: StreamMeter::over_a_connection, ..stream.waiting(Patience::CONNECTED) }
    }

    /// Arms `up` as a measured stream of datagrams: without checksums if so requested, and with shorter time-outs.
    ///
    /// # Errors
    /// Checksums cannot be disabled for the socket.
    pub fn measured(transport: T, clock: C, up: UpStream) -> Result<StreamSender<T, C>, StreamError> {
        let mut stream = StreamSender::new(transport, clock, up).waiting(Patience::MEASURED);
        stream.transport.set_checksums(false).map_err(StreamError::Socket)?;
        Ok(stream)
    }

    fn waiting(self, patience: Patience) -> StreamSender<T, C> {
        StreamSender { whole_patience: patience, patience, ..self }
    }

    /// Sets the time-outs to those of `awaiting`.
    pub(crate) fn wait_as(&mut self, awaiting: Awaiting) {
        self.patience = self.whole_patience.of(awaiting);
    }

    /// The time of the sender's clock.
    #[inline]
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// A meter for a part of the stream that begins now.
    pub fn meter(&self) -> StreamMeter {
        (self.meter)(self.clock.now())
    }

    /// The number of packets that the kernel took, and of sends that it refused because a buffer was full.
    pub fn sent_and_refused(&self) -> (u64, u64) {
        (self.up.sent(), self.refused)
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Sends on `schedule` and updates `meter`, until `until` or `stop`. A further call with the same arguments continues
    /// without a gap.
    ///
    /// # Errors
    /// The socket failed or refuses this mode of sending, or the receiver did not answer in time.
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
                    let all_sent = self.burst(schedule, packets)?;
                    if (behind && schedule.sleeps()) || !all_sent { QUANTUM } else { Nanos::ZERO }
                }
            };
            let patience = patience.min(poll_in).min(until - now);
            if patience > Nanos::ZERO || now >= self.next_receive {
                self.next_receive = now + RECEIVE_INTERVAL;
                self.receive(meter, patience)?;
            }
        }
        Ok(())
    }

    /// Waits for the TALLY that covers all packets that were sent.
    ///
    /// # Errors
    /// The socket failed, or no such TALLY arrived within `settles_within` of the time-outs.
    pub fn settle(&mut self, meter: &mut StreamMeter) -> Result<MeterPoint, StreamError> {
        self.settle_unless(&AtomicBool::new(false), meter)
    }

    /// As [`StreamSender::settle`]; after `stop` with the time-out of a datagram stream at most.
    ///
    /// # Errors
    /// As of [`StreamSender::settle`].
    pub(crate) fn settle_unless(
        &mut self,
        stop: &AtomicBool,
        meter: &mut StreamMeter,
    ) -> Result<MeterPoint, StreamError> {
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
            self.receive(meter, poll_in)?;
            if let Some(point) = meter.last().filter(|point| point.sent.at >= begin && point.sent.packets == sent) {
                return Ok(*point);
            }
        }
    }

    /// Sends POLLs only, until the receiver answers one, or until `until` or `stop`.
    ///
    /// # Errors
    /// The socket failed, or the receiver did not answer in time.
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
            self.receive(meter, poll_in.min(until - now))?;
        }
        Ok(())
    }

    /// Closes the session and returns the transport, with checksums enabled.
    pub fn close(self) -> T {
        let StreamSender { mut transport, clock, up, .. } = self;
        // If this fails, CLOSE is sent without a checksum, as the packets before.
        let _ = transport.set_checksums(true);
        // The last TALLY has the content of the report.
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
                Err(error) if is_queue_full(&error) => {
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

    /// Sends a POLL if one is due; returns the time until the next one.
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
                // As if lost: repeated after 25 ms.
                Err(error) if is_queue_full(&error) => self.refused += 1,
                Err(error) => return Err(StreamError::Socket(error)),
            }
            meter.asked(number, sent);
            if let Some(carried) = self.transport.progress() {
                self.stalls.asked(carried);
            }
        }
        Ok(meter.poll_in(now))
    }

    /// The time without an answer, and over a connection without progress towards one.
    fn silent_for(&mut self, meter: &StreamMeter, now: Stamp<SenderClock>) -> Nanos {
        let span = meter.silent_for(now);
        match self.transport.progress() {
            Some(carried) => span.min(now - self.stalls.moved(carried, now)),
            None => span,
        }
    }

    /// Receives one datagram, waiting about `patience`.
    #[inline]
    fn receive(&mut self, meter: &mut StreamMeter, patience: Nanos) -> Result<(), StreamError> {
        let received = self.transport.receive(&mut self.buffer, patience).map_err(StreamError::Socket)?;
        let tally = received.and_then(|bytes| self.up.decode_tally(self.buffer.get(..bytes)?));
        if let Some(tally) = tally {
            meter.answered(tally, self.clock.now());
            self.stalls.answered();
        }
        Ok(())
    }
}

/// Whether a send failed because a queue of this host is full; a later send may succeed.
pub(super) fn is_queue_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || Errno::from_io_error(error) == Some(Errno::NOBUFS)
}

/// The progress of a connection towards the first unanswered POLL.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallDetector {
    /// The end of that POLL, in bytes of the connection.
    asked_bytes: Option<u64>,
    /// Bytes that the peer has acknowledged, up to that POLL, and when that last increased.
    carried_bytes: u64,
    moved_at: Stamp<SenderClock>,
}

impl StallDetector {
    pub(super) fn new(now: Stamp<SenderClock>) -> StallDetector {
        StallDetector { asked_bytes: None, carried_bytes: 0, moved_at: now }
    }

    /// A POLL was sent; `carried` includes it.
    pub(super) fn asked(&mut self, carried: ConnectionBytes) {
        self.asked_bytes.get_or_insert(carried.sent_bytes);
    }

    /// All POLLs up to now are answered.
    pub(super) fn answered(&mut self) {
        self.asked_bytes = None;
    }

    /// When the connection last made progress towards that POLL, with `carried` read at `now`. Progress beyond it shows
    /// that the kernel of the peer runs, not that its reflector does.
    pub(super) fn moved(&mut self, carried: ConnectionBytes, now: Stamp<SenderClock>) -> Stamp<SenderClock> {
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
    fn only_progress_towards_the_unanswered_poll_counts() {
        let at = Stamp::from_nanos;
        let carried = |sent_bytes, acknowledged_bytes| ConnectionBytes { sent_bytes, acknowledged_bytes };
        let mut detector = StallDetector::new(at(0));
        detector.asked(carried(1_000, 0));
        for (now, acknowledged_bytes, moved) in
            [(1, 0, 0), (2, 400, 2), (3, 400, 2), (4, 1_000, 4), (5, 1_500, 4), (9, 9_000, 4)]
        {
            assert_eq!(detector.moved(carried(10_000, acknowledged_bytes), at(now)), at(moved), "{now}");
            // A further POLL has no effect: the first unanswered one counts.
            detector.asked(carried(10_000, acknowledged_bytes));
        }
        detector.answered();
        detector.asked(carried(10_000, 9_000));
        assert_eq!(detector.moved(carried(10_000, 9_500), at(10)), at(10));
    }
}
