//! The events of a run, as the hot loop records them: eight 64-bit words each, one cache line.
//!
//! The loop records what happened and when; which answer was late or a duplicate is decided after the run, when events
//! are joined into rows. Layout of the words: docs/recording.md, section 8.

use crate::facts::{Execution, IntervalCounts, PrintedNumber, StreamEnd, StreamInterval};
use crate::plan::Via;
use crate::probe::{ExecutionFate, Phase, Seq};
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};

pub(super) const EVENT_WORDS: usize = 8;
/// Bytes of an event in the spool.
pub(super) const EVENT_BYTES: usize = EVENT_WORDS * 8;

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpoolEvent {
    /// The kernel accepted a probe.
    Sent {
        seq: Seq,
        phase: Phase,
        /// When it was due; `None` in a closed loop.
        due: Option<Stamp<SenderClock>>,
        /// The clock just before the call.
        sent: Stamp<SenderClock>,
        /// The CPU of the call.
        cpu: Option<u16>,
    },
    /// The kernel refused a probe.
    SendFailed {
        seq: Seq,
        phase: Phase,
        /// When it was due; `None` in a closed loop.
        due: Option<Stamp<SenderClock>>,
        /// The clock just before the call.
        tried: Stamp<SenderClock>,
        /// The errno of the call.
        errno: i32,
    },
    /// A due probe was not sent: the backlog was above its limit.
    NotSent { seq: Seq, phase: Phase, due: Stamp<SenderClock> },
    /// A valid answer arrived: the first one, a late one or a duplicate.
    Arrived {
        /// The probe that it answers.
        seq: Seq,
        /// The clock just after the receive call.
        received: Stamp<SenderClock>,
        reflector_received: Option<Stamp<ReflectorClock>>,
        reflector_sent: Option<Stamp<ReflectorClock>>,
        /// The kernel's receive stamp, on the sender's clock.
        rx_software: Option<Stamp<SenderClock>>,
        /// The reflector's kernel receive stamp.
        reflector_rx_software: Option<Stamp<ReflectorClock>>,
        /// The CPU of the receive call.
        cpu: Option<u16>,
        /// The CPU of the reflector's call.
        reflector_cpu: Option<u16>,
    },
    /// Events were dropped because the ring was full.
    Gap {
        /// When the first one was dropped.
        since: Stamp<SenderClock>,
        events: u64,
    },
    /// The kernel's stamps of a probe that left, or of its answer.
    Stamped(ProbeStamps),
    /// A closed loop stopped waiting for an answer.
    TimedOut {
        /// The probe without an answer.
        seq: Seq,
        waited: Nanos,
    },
    Woke {
        /// The slot, from 0; each thread counts its own.
        seq: Seq,
        phase: Phase,
        due: Stamp<SenderClock>,
        /// The clock just after the call.
        woke: Stamp<SenderClock>,
        /// The CPU to which the thread is pinned, else the one that it woke on.
        cpu: Option<u16>,
        /// The call that it slept in.
        via: Via,
    },
    /// A command was executed.
    Executed(Execution),
    /// That execution printed a number.
    Printed(PrintedNumber),
    /// Counts of one end of a stream in one interval.
    Interval(StreamInterval),
}

/// Stamps that become known after a probe has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeStamps {
    pub seq: Seq,
    /// When the kernel gave it to the queueing discipline.
    pub tx_sched: Option<Stamp<SenderClock>>,
    /// When the driver was about to give it to the device.
    pub tx_software: Option<Stamp<SenderClock>>,
    /// From the reflector's send stamp to the stamp of its driver.
    pub reflector_tx_lag: Option<Nanos>,
}

/// A word without a stamp: an instant 292 years before the origin of the clock.
const NONE: i64 = i64::MIN;
/// Counts of a run, and nanoseconds of a wait, are smaller: 2^48 probes, 78 hours.
const COUNT_MAX: u64 = 1 << 48;
/// Packets of an interval are fewer: 10 million a second for two hours.
const PACKETS_MAX: u64 = 1 << 36;
/// Stamps are nearer to the origin of the clock: 146 years.
const STAMP_MAX: u64 = 1 << 62;
/// Sixteen bits without a CPU.
const NO_CPU: u16 = u16::MAX;
/// Kinds of an interval's words.
const OFFERED: u64 = 8;
const COUNTED: u64 = 9;
/// Kind of an execution; 10 is a checksum.
const EXECUTED: u64 = 11;
const PRINTED: u64 = 12;
const STAMPED: u64 = 13;
/// 32 and 48 bits without a value: 4 billion drops in 100 ms, 78 hours of CPU time.
const NO_DROPS: u32 = u32::MAX;
const NO_CPU_TIME: u64 = (1 << 48) - 1;

impl SpoolEvent {
    /// The event as words: `[kind | phase << 8 | cpu << 16 | reflector_cpu << 32, seq, …]`.
    #[inline]
    pub(super) fn to_words(self) -> [u64; EVENT_WORDS] {
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
            SpoolEvent::Stamped(ProbeStamps { seq, tx_sched, tx_software, reflector_tx_lag }) => {
                let lag = reflector_tx_lag.map_or(NONE, |lag| lag.0) as u64;
                [head(STAMPED, Phase::Measure, None, None), seq.0, word(tx_sched), word(tx_software), lag, 0, 0, 0]
            }
            SpoolEvent::TimedOut { seq, waited } => {
                [head(6, Phase::Measure, None, None), seq.0, waited.0 as u64, 0, 0, 0, 0, 0]
            }
            SpoolEvent::Woke { seq, phase, due, woke, cpu, via } => {
                [head(7, phase, cpu, None), seq.0, word(Some(due)), word(Some(woke)), via as u64, 0, 0, 0]
            }
            SpoolEvent::Executed(execution) => execution_to_words(execution),
            SpoolEvent::Printed(PrintedNumber { seq, metric, bits }) => {
                [head(PRINTED, Phase::Measure, Some(metric), None), seq.0, bits, 0, 0, 0, 0, 0]
            }
            SpoolEvent::Interval(interval) => interval_to_words(interval),
        }
    }

    /// The instant of the event on the sender's clock; `None` for a time-out, which is a span, for stamps, and for the intervals of a
    /// receiver, which are on another clock.
    #[inline]
    pub(super) fn at(self) -> Option<Stamp<SenderClock>> {
        match self {
            SpoolEvent::Sent { sent: at, .. }
            | SpoolEvent::SendFailed { tried: at, .. }
            | SpoolEvent::NotSent { due: at, .. }
            | SpoolEvent::Arrived { received: at, .. }
            | SpoolEvent::Gap { since: at, .. }
            | SpoolEvent::Woke { woke: at, .. }
            | SpoolEvent::Executed(Execution { ended: at, .. }) => Some(at),
            SpoolEvent::Interval(interval) if interval.end() == StreamEnd::Sender => {
                Some(Stamp::from_nanos(interval.end_ns))
            }
            SpoolEvent::Interval(_) | SpoolEvent::Printed(_) | SpoolEvent::Stamped(_) | SpoolEvent::TimedOut { .. } => {
                None
            }
        }
    }

    /// The event in `words`; `None` if they hold no event (a hole that a power cut left in a spool), or values that no run
    /// reaches: sums and differences of all others do not overflow.
    pub(super) fn from_words(words: [u64; EVENT_WORDS]) -> Option<SpoolEvent> {
        let [head, seq, a, b, c, d, e, _] = words;
        let seq = Seq(Some(seq).filter(|seq| head & 0xff >= OFFERED || *seq < COUNT_MAX)?);
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
            5 => SpoolEvent::Gap { since: stamp(a)?, events: Some(b).filter(|events| *events < COUNT_MAX)? },
            6 => SpoolEvent::TimedOut { seq, waited: Nanos(Some(a).filter(|waited| *waited < COUNT_MAX)? as i64) },
            7 => SpoolEvent::Woke { seq, phase, due: stamp(a)?, woke: stamp(b)?, cpu, via: *Via::ALL.get(c as usize)? },
            STAMPED => SpoolEvent::Stamped(ProbeStamps {
                seq: Seq(Some(seq.0).filter(|seq| *seq < COUNT_MAX)?),
                tx_sched: stamp(a),
                tx_software: stamp(b),
                reflector_tx_lag: Some(c as i64).filter(|lag| (0..1 << 32).contains(lag)).map(Nanos),
            }),
            EXECUTED => SpoolEvent::Executed(execution_from_words(words)?),
            PRINTED => {
                let seq = Seq(Some(seq.0).filter(|seq| *seq < COUNT_MAX)?);
                SpoolEvent::Printed(PrintedNumber { seq, metric: (head >> 16) as u16, bits: a })
            }
            _ => return interval_from_words(words).map(SpoolEvent::Interval),
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
    Some(word as i64).filter(|nanos| nanos.unsigned_abs() < STAMP_MAX).map(Stamp::from_nanos)
}

#[inline]
fn cpu_of(bits: u64) -> Option<u16> {
    Some(bits as u16).filter(|cpu| *cpu != NO_CPU)
}

/// `[kind | phase << 8 | fate << 16 | code << 24 | major faults << 32, seq, started, ended, user, system, …]`
fn execution_to_words(execution: Execution) -> [u64; EVENT_WORDS] {
    let Execution { seq, phase, started, ended, user, system, fate, code, .. } = execution;
    let phase = u64::from(phase == Phase::Measure);
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let head = EXECUTED | phase << 8 | (fate as u64) << 16 | u64::from(code) << 24;
    let memory = pair(execution.resident_kib, execution.minor_faults);
    let switches = pair(execution.voluntary_switches, execution.involuntary_switches);
    let head = head | u64::from(execution.major_faults) << 32;
    [head, seq.0, word(Some(started)), word(Some(ended)), user.0 as u64, system.0 as u64, memory, switches]
}

fn execution_from_words(words: [u64; EVENT_WORDS]) -> Option<Execution> {
    let [head, seq, started, ended, user, system, memory, switches] = words;
    let cpu_time = |ns: u64| (ns < STAMP_MAX).then_some(Nanos(ns as i64));
    Some(Execution {
        seq: Seq(Some(seq).filter(|seq| *seq < COUNT_MAX)?),
        phase: if head >> 8 & 1 == 1 { Phase::Measure } else { Phase::Warmup },
        started: stamp(started)?,
        ended: stamp(ended)?,
        user: cpu_time(user)?,
        system: cpu_time(system)?,
        resident_kib: memory as u32,
        minor_faults: (memory >> 32) as u32,
        voluntary_switches: switches as u32,
        involuntary_switches: (switches >> 32) as u32,
        major_faults: (head >> 32) as u32,
        fate: *ExecutionFate::ALL.get(usize::from((head >> 16) as u8))?,
        code: (head >> 24) as u8,
    })
}

/// `[kind | phase << 8, flow | CPU time << 16, start, end, …]`
fn interval_to_words(interval: StreamInterval) -> [u64; EVENT_WORDS] {
    let StreamInterval { flow, phase, start_ns, end_ns, cpu, seen } = interval;
    let phase = u64::from(phase == Phase::Measure) << 8;
    let cpu = cpu.map_or(NO_CPU_TIME, |cpu| (cpu.0.max(0) as u64).min(NO_CPU_TIME - 1));
    let flow_and_cpu = u64::from(flow) | cpu << 16;
    let (start, end) = (start_ns as u64, end_ns as u64);
    match seen {
        IntervalCounts::Offered { packets, refused, skipped } => {
            [OFFERED | phase, flow_and_cpu, start, end, packets, refused, skipped, 0]
        }
        IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, socket_drops } => {
            let order = u64::from(reordered) | u64::from(duplicates) << 32;
            let dropped = u64::from(outside_window) | u64::from(socket_drops.unwrap_or(NO_DROPS)) << 32;
            [COUNTED | phase, flow_and_cpu, start, end, polled, delivered, order, dropped]
        }
    }
}

fn interval_from_words(words: [u64; EVENT_WORDS]) -> Option<StreamInterval> {
    let [head, flow_and_cpu, start, end, a, b, c, d] = words;
    // Of a receiver the third count is two.
    let is_sound = a < PACKETS_MAX && b < PACKETS_MAX && (head & 0xff != OFFERED || c < PACKETS_MAX);
    let is_sound = is_sound && [start, end].iter().all(|at| (*at as i64).unsigned_abs() < STAMP_MAX);
    let seen = match head & 0xff {
        OFFERED => IntervalCounts::Offered { packets: a, refused: b, skipped: c },
        COUNTED => IntervalCounts::Counted {
            polled: a,
            delivered: b,
            reordered: c as u32,
            duplicates: (c >> 32) as u32,
            outside_window: d as u32,
            socket_drops: Some((d >> 32) as u32).filter(|drops| *drops != NO_DROPS),
        },
        _ => return None,
    };
    let cpu = Some(flow_and_cpu >> 16).filter(|cpu| *cpu != NO_CPU_TIME);
    is_sound.then(|| StreamInterval {
        flow: flow_and_cpu as u16,
        phase: if head >> 8 & 1 == 1 { Phase::Measure } else { Phase::Warmup },
        start_ns: start as i64,
        end_ns: end as i64,
        cpu: cpu.map(|cpu| Nanos(cpu as i64)),
        seen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_back_from_its_words() {
        let at = Stamp::from_nanos(17);
        let events = [
            SpoolEvent::Sent { seq: Seq(0), phase: Phase::Warmup, due: None, sent: Stamp::from_nanos(0), cpu: Some(0) },
            SpoolEvent::Sent { seq: Seq(COUNT_MAX - 1), phase: Phase::Measure, due: Some(at), sent: at, cpu: None },
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
            SpoolEvent::Executed(EXECUTION),
            SpoolEvent::Printed(PrintedNumber { seq: Seq(COUNT_MAX - 1), metric: 7, bits: (-0.5_f64).to_bits() }),
            SpoolEvent::Stamped(ProbeStamps {
                seq: Seq(COUNT_MAX - 1),
                tx_sched: Some(at),
                tx_software: None,
                reflector_tx_lag: Some(Nanos((1 << 32) - 1)),
            }),
        ];
        for event in events {
            assert_eq!(SpoolEvent::from_words(event.to_words()), Some(event));
        }
        assert_eq!(SpoolEvent::from_words([0; EVENT_WORDS]), None);
    }

    const EXECUTION: Execution = Execution {
        seq: Seq(COUNT_MAX - 1),
        phase: Phase::Measure,
        started: Stamp::from_nanos(-5),
        ended: Stamp::from_nanos(1 << 61),
        user: Nanos(1 << 61),
        system: Nanos(0),
        resident_kib: u32::MAX,
        voluntary_switches: 7,
        involuntary_switches: u32::MAX,
        minor_faults: 5,
        major_faults: u32::MAX,
        fate: ExecutionFate::TimedOut,
        code: 255,
    };

    #[test]
    fn values_that_no_run_reaches_are_no_event() {
        let (far, many) = (i64::MAX as u64, u64::MAX);
        for words in [
            [1, many, 5, 5, 0, 0, 0, 0],
            [1, 5, 5, far, 0, 0, 0, 0],
            [4, COUNT_MAX, 5, 5, 5, 5, 5, 0],
            [5, 0, 5, COUNT_MAX, 0, 0, 0, 0],
            [6, 5, COUNT_MAX, 0, 0, 0, 0, 0],
            [OFFERED, 0, 1, 2, PACKETS_MAX, 0, 0, 0],
            [OFFERED, 0, 1, 2, 0, 0, many, 0],
            [COUNTED, 0, 1, 2, 0, many, 0, 0],
            [OFFERED, 0, 1, 2, 0, PACKETS_MAX, 0, 0],
            [OFFERED, 0, 1, 2, 0, 0, PACKETS_MAX, 0],
            [COUNTED, 0, far, 2, 0, 0, 0, 0],
            [EXECUTED, COUNT_MAX, 1, 2, 0, 0, 0, 0],
            [PRINTED, COUNT_MAX, 0, 0, 0, 0, 0, 0],
            [STAMPED, COUNT_MAX, 0, 0, 0, 0, 0, 0],
            [EXECUTED, 0, 1, far, 0, 0, 0, 0],
            [EXECUTED, 0, 1, 2, STAMP_MAX, 0, 0, 0],
            [EXECUTED | 3 << 16, 0, 1, 2, 0, 0, 0, 0],
            [COUNTED, 0, STAMP_MAX, 2, 0, 0, 0, 0],
            [COUNTED, 0, 1, STAMP_MAX, 0, 0, 0, 0],
        ] {
            assert_eq!(SpoolEvent::from_words(words), None, "{words:?}");
        }
        assert!(SpoolEvent::from_words([COUNTED, 0, 1, 2, 0, 0, many, many]).is_some(), "all bits of pairs are used");
    }

    #[test]
    fn every_interval_is_read_back_from_its_words() {
        let offered = StreamInterval {
            flow: 7,
            phase: Phase::Measure,
            start_ns: -5,
            end_ns: 95_000_000,
            cpu: Some(Nanos(90_000_000)),
            seen: IntervalCounts::Offered { packets: PACKETS_MAX - 1, refused: 3, skipped: 1 << 35 },
        };
        let seen = |socket_drops| IntervalCounts::Counted {
            polled: 1 << 35,
            delivered: 12,
            reordered: u32::MAX,
            duplicates: 5,
            outside_window: 6,
            socket_drops,
        };
        let counted = StreamInterval { flow: u16::MAX, phase: Phase::Warmup, cpu: None, seen: seen(None), ..offered };
        let dropping = StreamInterval { cpu: Some(Nanos(0)), seen: seen(Some(0)), ..counted };
        for interval in [offered, counted, dropping] {
            let event = SpoolEvent::Interval(interval);
            assert_eq!(SpoolEvent::from_words(event.to_words()), Some(event));
        }
    }
}
