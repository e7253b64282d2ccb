//! The events of a run, as the hot loop writes them down: eight 64-bit words each, one cache line.
//!
//! The loop never judges. It says what happened when; rows are joined from events after the run.
//! Byte layout of the spool: docs/recording.md.

use super::interval_words;
use crate::facts::{StreamEnd, StreamInterval};
use crate::plan::Via;
use crate::probe::{Phase, Seq};
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};

/// Words in an event.
pub const EVENT_WORDS: usize = 8;
/// Bytes of an event in the spool.
pub const EVENT_BYTES: usize = EVENT_WORDS * 8;

/// Something that happened in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpoolEvent {
    /// A probe was handed to the kernel, and the kernel took it.
    Sent {
        /// Which.
        seq: Seq,
        /// Whether it counts.
        phase: Phase,
        /// When it was due; none in a closed loop.
        due: Option<Stamp<SenderClock>>,
        /// Clock read just before the call.
        sent: Stamp<SenderClock>,
        /// CPU of the call.
        cpu: Option<u16>,
    },
    /// The kernel refused a probe.
    SendFailed {
        /// Which.
        seq: Seq,
        /// Whether it would have counted.
        phase: Phase,
        /// When it was due.
        due: Option<Stamp<SenderClock>>,
        /// Clock read just before the call.
        tried: Stamp<SenderClock>,
        /// Why.
        errno: i32,
    },
    /// A due probe was given up: the backlog was past its limit.
    NotSent {
        /// Which.
        seq: Seq,
        /// Whether it would have counted.
        phase: Phase,
        /// When it was due.
        due: Stamp<SenderClock>,
    },
    /// A valid answer came: the first, a late one or a duplicate; the joiner tells.
    Arrived {
        /// Answer to which.
        seq: Seq,
        /// Clock read just after the receive call.
        received: Stamp<SenderClock>,
        /// The reflector's receive stamp, where the answer carried one.
        reflector_received: Option<Stamp<ReflectorClock>>,
        /// The reflector's send stamp.
        reflector_sent: Option<Stamp<ReflectorClock>>,
        /// Kernel receive stamp, on the sender's clock.
        rx_software: Option<Stamp<SenderClock>>,
        /// The reflector's kernel receive stamp.
        reflector_rx_software: Option<Stamp<ReflectorClock>>,
        /// CPU of the receive call.
        cpu: Option<u16>,
        /// CPU of the reflector's call.
        reflector_cpu: Option<u16>,
    },
    /// The ring was full and events were thrown away: the recording has a hole.
    Gap {
        /// When the first was thrown away.
        since: Stamp<SenderClock>,
        /// How many.
        events: u64,
    },
    /// A closed loop gave up waiting.
    TimedOut {
        /// For the answer to which.
        seq: Seq,
        /// How long it had waited.
        waited: Nanos,
    },
    /// A thread that slept runs again.
    Woke {
        /// Its slot: each thread counts its own.
        seq: Seq,
        /// Whether it counts.
        phase: Phase,
        /// When it was due.
        due: Stamp<SenderClock>,
        /// Clock read just after the call.
        woke: Stamp<SenderClock>,
        /// The CPU that it slept for, else the one that it woke on.
        cpu: Option<u16>,
        /// How it slept.
        via: Via,
    },
    /// An end of a stream tells what it saw in an interval.
    Interval(StreamInterval),
}

/// "No stamp" in a word: an instant 292 years before the clock's origin, which none ever shows.
const NONE: i64 = i64::MIN;
/// "No CPU" in sixteen bits.
const NO_CPU: u16 = u16::MAX;

impl SpoolEvent {
    /// The event as words: `[kind | phase << 8 | cpu << 16 | reflector_cpu << 32, seq, …]`.
    #[inline]
    pub fn to_words(self) -> [u64; EVENT_WORDS] {
        match self {
            SpoolEvent::Sent { seq, phase, due, sent, cpu } => {
                [head(1, phase, cpu, None), seq.0, word(due), word(Some(sent)), 0, 0, 0, 0]
            }
            SpoolEvent::SendFailed { seq, phase, due, tried, errno } => {
                [head(2, phase, None, None), seq.0, word(due), word(Some(tried)), errno as u32 as u64, 0, 0, 0]
            }
            SpoolEvent::NotSent { seq, phase, due } => {
                [head(3, phase, None, None), seq.0, word(Some(due)), 0, 0, 0, 0, 0]
            }
            SpoolEvent::Arrived {
                seq,
                received,
                reflector_received,
                reflector_sent,
                rx_software,
                reflector_rx_software,
                cpu,
                reflector_cpu,
            } => [
                head(4, Phase::Measure, cpu, reflector_cpu),
                seq.0,
                word(Some(received)),
                word(reflector_received),
                word(reflector_sent),
                word(rx_software),
                word(reflector_rx_software),
                0,
            ],
            SpoolEvent::Gap { since, events } => {
                [head(5, Phase::Measure, None, None), 0, word(Some(since)), events, 0, 0, 0, 0]
            }
            SpoolEvent::TimedOut { seq, waited } => {
                [head(6, Phase::Measure, None, None), seq.0, waited.0 as u64, 0, 0, 0, 0, 0]
            }
            SpoolEvent::Woke { seq, phase, due, woke, cpu, via } => {
                [head(7, phase, cpu, None), seq.0, word(Some(due)), word(Some(woke)), via as u64, 0, 0, 0]
            }
            SpoolEvent::Interval(interval) => interval_words::to_words(interval),
        }
    }

    /// The instant on the sender's clock that the event speaks of; none for a time-out, which is a span, and for what a
    /// receiver tells.
    #[inline]
    pub fn at(self) -> Option<Stamp<SenderClock>> {
        match self {
            SpoolEvent::Sent { sent: at, .. }
            | SpoolEvent::SendFailed { tried: at, .. }
            | SpoolEvent::NotSent { due: at, .. }
            | SpoolEvent::Arrived { received: at, .. }
            | SpoolEvent::Gap { since: at, .. }
            | SpoolEvent::Woke { woke: at, .. } => Some(at),
            // The receiver's is on another clock.
            SpoolEvent::Interval(interval) if interval.end() == StreamEnd::Sender => {
                Some(Stamp::from_nanos(interval.end_ns))
            }
            SpoolEvent::Interval(_) | SpoolEvent::TimedOut { .. } => None,
        }
    }

    /// The event in `words`; none where they hold no event (a hole in a torn spool).
    pub fn from_words(words: [u64; EVENT_WORDS]) -> Option<SpoolEvent> {
        let [head, seq, a, b, c, d, e, _] = words;
        let seq = Seq(seq);
        let phase = if head >> 8 & 1 == 1 { Phase::Measure } else { Phase::Warmup };
        let cpu = cpu_of(head >> 16);
        Some(match head & 0xff {
            1 => SpoolEvent::Sent { seq, phase, due: stamp(a), sent: stamp(b)?, cpu },
            2 => SpoolEvent::SendFailed { seq, phase, due: stamp(a), tried: stamp(b)?, errno: c as u32 as i32 },
            3 => SpoolEvent::NotSent { seq, phase, due: stamp(a)? },
            4 => SpoolEvent::Arrived {
                seq,
                received: stamp(a)?,
                reflector_received: stamp(b),
                reflector_sent: stamp(c),
                rx_software: stamp(d),
                reflector_rx_software: stamp(e),
                cpu,
                reflector_cpu: cpu_of(head >> 32),
            },
            5 => SpoolEvent::Gap { since: stamp(a)?, events: b },
            6 => SpoolEvent::TimedOut { seq, waited: Nanos(a as i64) },
            7 => SpoolEvent::Woke { seq, phase, due: stamp(a)?, woke: stamp(b)?, cpu, via: *Via::ALL.get(c as usize)? },
            _ => return interval_words::from_words(words).map(SpoolEvent::Interval),
        })
    }
}

#[inline]
fn head(kind: u64, phase: Phase, cpu: Option<u16>, reflector_cpu: Option<u16>) -> u64 {
    let phase = u64::from(phase == Phase::Measure);
    kind | phase << 8 | u64::from(cpu.unwrap_or(NO_CPU)) << 16 | u64::from(reflector_cpu.unwrap_or(NO_CPU)) << 32
}

#[inline]
fn word<C>(stamp: Option<Stamp<C>>) -> u64 {
    stamp.map_or(NONE, Stamp::as_nanos) as u64
}

#[inline]
fn stamp<C>(word: u64) -> Option<Stamp<C>> {
    Some(word as i64).filter(|nanos| *nanos != NONE).map(Stamp::from_nanos)
}

#[inline]
fn cpu_of(bits: u64) -> Option<u16> {
    Some(bits as u16).filter(|cpu| *cpu != NO_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_its_words() {
        let at = Stamp::from_nanos(17);
        let events = [
            SpoolEvent::Sent { seq: Seq(0), phase: Phase::Warmup, due: None, sent: Stamp::from_nanos(0), cpu: Some(0) },
            SpoolEvent::Sent { seq: Seq(u64::MAX), phase: Phase::Measure, due: Some(at), sent: at, cpu: None },
            SpoolEvent::SendFailed { seq: Seq(1), phase: Phase::Measure, due: None, tried: at, errno: 101 },
            SpoolEvent::NotSent { seq: Seq(2), phase: Phase::Warmup, due: at },
            SpoolEvent::Arrived {
                seq: Seq(3),
                received: at,
                reflector_received: Some(Stamp::from_nanos(-5)),
                reflector_sent: None,
                rx_software: None,
                reflector_rx_software: Some(Stamp::from_nanos(9)),
                cpu: Some(7),
                reflector_cpu: Some(65_534),
            },
            SpoolEvent::Gap { since: at, events: 12 },
            SpoolEvent::TimedOut { seq: Seq(4), waited: Nanos(1_000_000_000) },
            SpoolEvent::Woke { seq: Seq(5), phase: Phase::Warmup, due: at, woke: at, cpu: Some(1), via: Via::Spin },
            SpoolEvent::Woke {
                seq: Seq(6),
                phase: Phase::Measure,
                due: at,
                woke: at,
                cpu: None,
                via: Via::ClockNanosleep,
            },
        ];
        for event in events {
            assert_eq!(SpoolEvent::from_words(event.to_words()), Some(event));
        }
        assert_eq!(SpoolEvent::from_words([0; EVENT_WORDS]), None);
    }
}
