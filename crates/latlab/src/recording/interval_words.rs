//! Intervals of a stream as the words of an event. Layout: docs/recording.md, section 6.

use super::event::EVENT_WORDS;
use crate::facts::{IntervalCounts, StreamInterval};
use crate::probe::Phase;
use crate::units::Nanos;

/// Kinds of event.
const OFFERED: u64 = 8;
const COUNTED: u64 = 9;
/// "Not known" in 32 and in 48 bits: 4 billion drops in 100 ms, 78 hours of CPU time.
const NO_DROPS: u32 = u32::MAX;
const NO_CPU_TIME: u64 = (1 << 48) - 1;

/// `[kind | phase << 8, flow | CPU time << 16, start, end, …]`
pub(super) fn to_words(interval: StreamInterval) -> [u64; EVENT_WORDS] {
    let StreamInterval { flow, phase, start_ns, end_ns, cpu, seen } = interval;
    let phase = u64::from(phase == Phase::Measure) << 8;
    let cpu = cpu.map_or(NO_CPU_TIME, |cpu| (cpu.0.max(0) as u64).min(NO_CPU_TIME - 1));
    let whose = u64::from(flow) | cpu << 16;
    let (start, end) = (start_ns as u64, end_ns as u64);
    match seen {
        IntervalCounts::Offered { packets, refused, skipped } => {
            [OFFERED | phase, whose, start, end, packets, refused, skipped, 0]
        }
        IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, socket_drops } => {
            let order = u64::from(reordered) | u64::from(duplicates) << 32;
            let dropped = u64::from(outside_window) | u64::from(socket_drops.unwrap_or(NO_DROPS)) << 32;
            [COUNTED | phase, whose, start, end, polled, delivered, order, dropped]
        }
    }
}

/// The interval in `words`; none where they hold none.
pub(super) fn from_words(words: [u64; EVENT_WORDS]) -> Option<StreamInterval> {
    let [head, whose, start, end, a, b, c, d] = words;
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
    let cpu = Some(whose >> 16).filter(|cpu| *cpu != NO_CPU_TIME);
    Some(StreamInterval {
        flow: whose as u16,
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
    fn every_interval_survives_its_words() {
        let offered = StreamInterval {
            flow: 7,
            phase: Phase::Measure,
            start_ns: -5,
            end_ns: 95_000_000,
            cpu: Some(Nanos(90_000_000)),
            seen: IntervalCounts::Offered { packets: u64::MAX, refused: 3, skipped: 1 << 40 },
        };
        let seen = |socket_drops| IntervalCounts::Counted {
            polled: 1 << 50,
            delivered: 12,
            reordered: u32::MAX,
            duplicates: 5,
            outside_window: 6,
            socket_drops,
        };
        let counted = StreamInterval { flow: u16::MAX, phase: Phase::Warmup, cpu: None, seen: seen(None), ..offered };
        let dropping = StreamInterval { cpu: Some(Nanos(0)), seen: seen(Some(0)), ..counted };
        for interval in [offered, counted, dropping] {
            assert_eq!(from_words(to_words(interval)), Some(interval));
        }
        assert_eq!(from_words([7, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
