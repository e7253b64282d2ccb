//! The loop of a stream: packets leave when due, POLLs ask what arrived, TALLYs say it. Once armed it makes no system
//! call but send, receive, clock and the transport's wait, and allocates nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::stream_meter::{Point, Sent, StreamMeter};
use super::token_schedule::{Due, TokenSchedule};
use crate::clock::Clock;
use crate::plan::defaults;
use crate::session::UpStream;
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};

/// The shortest sleep. A stream that is due more often sends a few packets each time: a sleep and a wake-up cost some
/// microseconds themselves, and the probe's CPU may be the one that pays them.
const QUANTUM: Nanos = Nanos::from_micros(50);
/// How long a stream waits for the tally of all that it has sent.
const SETTLES_WITHIN: Nanos = Nanos::from_secs(1);
/// The longest datagram that is meant for us; of a longer one only the beginning is read, and it is none.
const BUFFER_BYTES: usize = 256;

/// Why a stream cannot go on.
#[derive(Debug)]
pub enum StreamError {
    /// The socket broke.
    Socket(io::Error),
    /// Nobody says what arrived.
    Silent {
        /// For so long.
        span: Nanos,
    },
}

/// The sending end of a stream, armed.
#[derive(Debug)]
pub struct Stream<T, C> {
    transport: T,
    clock: C,
    up: UpStream,
    buffer: Box<[u8]>,
    refused: u64,
}

impl<T: Transport, C: Clock> Stream<T, C> {
    /// Arms `up`.
    pub fn new(transport: T, clock: C, up: UpStream) -> Stream<T, C> {
        Stream { transport, clock, up, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), refused: 0 }
    }

    /// Now.
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// Packets that the kernel took, and packets that it refused for want of room.
    pub fn sent_and_refused(&self) -> (u64, u64) {
        (self.up.sent(), self.refused)
    }

    /// Sends on `schedule` and follows what arrives with `meter`, until `until` or `stop`.
    ///
    /// # Errors
    /// The socket broke, or nobody counted for 5 s.
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
                Due::In(span) => span.max(QUANTUM),
                Due::Now { packets, behind } => {
                    let all_left = self.burst(schedule, packets)?;
                    if behind || !all_left { QUANTUM } else { Nanos::ZERO }
                }
            };
            self.hear(meter, patience.min(poll_in).min(until - now))?;
        }
        Ok(())
    }

    /// Waits until the reflector has told what arrived of all that was sent before.
    ///
    /// # Errors
    /// The socket broke, or no tally came within a second.
    pub fn settle(&mut self, meter: &mut StreamMeter) -> Result<Point, StreamError> {
        let begin = self.clock.now();
        let sent = self.up.sent();
        loop {
            let now = self.clock.now();
            if now - begin >= SETTLES_WITHIN {
                return Err(StreamError::Silent { span: SETTLES_WITHIN });
            }
            let poll_in = self.poll(meter, now)?;
            self.hear(meter, poll_in)?;
            if let Some(point) = meter.last().filter(|point| point.sent.at >= begin && point.sent.packets == sent) {
                return Ok(*point);
            }
        }
    }

    /// Ends the session; the transport comes back.
    pub fn close(self) -> T {
        let Stream { mut transport, clock, up, .. } = self;
        // What it would say is known from the last tally.
        let _ = up.close(&mut transport, &clock);
        transport
    }

    /// Sends up to `packets` packets; whether the kernel had room for all of them.
    #[inline]
    fn burst(&mut self, schedule: &mut TokenSchedule, packets: u64) -> Result<bool, StreamError> {
        for _ in 0..packets {
            match self.transport.send(self.up.packet()) {
                Ok(()) => {
                    self.up.taken();
                    schedule.take();
                }
                Err(error) if lacks_room(&error) => {
                    self.refused += 1;
                    return Ok(false);
                }
                Err(error) => return Err(StreamError::Socket(error)),
            }
        }
        Ok(true)
    }

    /// Sends a POLL where one is due, and says how long until the next.
    #[inline]
    fn poll(&mut self, meter: &mut StreamMeter, now: Stamp<SenderClock>) -> Result<Nanos, StreamError> {
        if meter.poll_in(now) <= Nanos::ZERO {
            let span = meter.silent_for(now);
            if span >= defaults::STREAM_SILENCE_MAX {
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
        }
        Ok(meter.poll_in(now))
    }

    /// Takes one datagram, waiting about `patience`.
    #[inline]
    fn hear(&mut self, meter: &mut StreamMeter, patience: Nanos) -> Result<(), StreamError> {
        let received = self.transport.receive(&mut self.buffer, patience).map_err(StreamError::Socket)?;
        let heard = received.and_then(|bytes| self.up.hear(self.buffer.get(..bytes)?));
        if let Some(tally) = heard {
            meter.heard(tally, self.clock.now());
        }
        Ok(())
    }
}

/// Whether a send failed because a queue of this host is full: the path is at its limit, and later there is room.
fn lacks_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || Errno::from_io_error(error) == Some(Errno::NOBUFS)
}
