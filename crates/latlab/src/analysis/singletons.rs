//! Rows to singletons: the definition of every metric, in code. In words: docs/metrics.md.

use super::source::{ProbeSource, RowVisitor, at, feed, full, measured, plain};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};

/// The sample of `metric`: measured probes only, in the order of sending. May be empty.
pub fn sample<S: ProbeSource>(source: &S, metric: Metric) -> Result<Sample, S::Error> {
    let mut singletons = Singletons::of(metric, source.manifest().rows);
    feed(source, &mut [&mut singletons])?;
    Ok(singletons.sample())
}

/// The singletons of one metric, as far as seen.
pub(super) struct Singletons {
    metric: Metric,
    values: Vec<i64>,
    /// The last answered probe and its round trip, for differences of neighbours.
    last_answered: Option<(i64, i64)>,
}

impl Singletons {
    /// None yet, with room for `rows`.
    pub(super) fn of(metric: Metric, rows: Option<u64>) -> Singletons {
        // the manifest is only a hint: a damaged one must not ask for all memory
        let room = rows.unwrap_or(0).min(1 << 28) as usize;
        Singletons { metric, values: Vec::with_capacity(room), last_answered: None }
    }

    /// The sample of everything seen.
    pub(super) fn sample(mut self) -> Sample {
        if self.metric == Metric::Pdv
            && let Some(minimum) = self.values.iter().copied().min().filter(|value| *value != INFINITE)
        {
            for value in self.values.iter_mut().filter(|value| **value != INFINITE) {
                *value = value.saturating_sub(minimum);
            }
        }
        Sample::new(self.metric, self.values)
    }

    /// Whole columns at once, where nothing is missing: the usual case, and ten times as fast as row by row.
    fn gather_plain(&mut self, batch: &ProbeBatch) -> bool {
        let (later, earlier) = match self.metric {
            Metric::RoundTripDelay | Metric::Pdv => (&batch.received_ns, &batch.sent_ns),
            Metric::ResponseTime | Metric::WakeupLatency => (&batch.received_ns, &batch.due_ns),
            Metric::SendSlip => (&batch.sent_ns, &batch.due_ns),
            Metric::ReflectorDwell => (&batch.reflector_sent_ns, &batch.reflector_received_ns),
            Metric::RoundTripDelayLessDwell | Metric::Ipdv | Metric::OfferedRate | Metric::DeliveredRate => {
                return false;
            }
        };
        match (plain(batch), full(batch, later), full(batch, earlier)) {
            (true, Some(later), Some(earlier)) => {
                subtract(later, earlier, &mut self.values);
                true
            }
            _ => false,
        }
    }

    /// The singleton of one row; none where the metric is not defined for it.
    fn singleton(&mut self, batch: &ProbeBatch, row: usize, fate: Fate) -> Option<i64> {
        let span = |later: Option<i64>, earlier: Option<i64>| Some(later?.saturating_sub(earlier?));
        let round_trip = || span(at(&batch.received_ns, row), at(&batch.sent_ns, row));
        let dwell = || span(at(&batch.reflector_sent_ns, row), at(&batch.reflector_received_ns, row));
        let due = || at(&batch.due_ns, row);
        match (self.metric, fate) {
            (Metric::RoundTripDelay | Metric::Pdv, Fate::Answered) => round_trip(),
            (Metric::RoundTripDelay | Metric::Pdv, Fate::Late | Fate::Lost) => Some(INFINITE),
            (Metric::RoundTripDelayLessDwell, Fate::Answered) => Some(round_trip()?.saturating_sub(dwell()?)),
            (Metric::RoundTripDelayLessDwell, Fate::Late | Fate::Lost) => Some(INFINITE),
            (Metric::ResponseTime | Metric::WakeupLatency, Fate::Answered) => span(at(&batch.received_ns, row), due()),
            (Metric::ResponseTime, _) => due().map(|_| INFINITE),
            (Metric::SendSlip, fate) if fate.was_sent() => span(at(&batch.sent_ns, row), due()),
            (Metric::ReflectorDwell, Fate::Answered | Fate::Late) => dwell(),
            (Metric::Ipdv, Fate::Answered) => self.change(at(&batch.seq, row)?, round_trip()?),
            _ => None,
        }
    }

    /// Round trip minus that of the probe just before; none where that one was not answered (RFC 3393:
    /// undefined for a pair of which either packet is lost).
    fn change(&mut self, seq: i64, round_trip: i64) -> Option<i64> {
        let last = self.last_answered.replace((seq, round_trip));
        last.filter(|(last_seq, _)| last_seq + 1 == seq).map(|(_, last)| round_trip.saturating_sub(last))
    }
}

/// Adds each of `later` less its `earlier` to `spans`. Subtracting without a look at each sign goes several at a time; that
/// none overflowed is seen from all of them together.
fn subtract(later: &[i64], earlier: &[i64], spans: &mut Vec<i64>) {
    let before = spans.len();
    spans.extend(later.iter().zip(earlier).map(|(later, earlier)| later.wrapping_sub(*earlier)));
    let pairs = later.iter().zip(earlier);
    // a difference overflowed where its sign is neither that of the one nor fits the other's
    let signs = pairs
        .zip(&spans[before..])
        .fold(0, |signs, ((later, earlier), span)| signs | ((later ^ earlier) & (later ^ span)));
    if signs < 0 {
        spans.truncate(before);
        spans.extend(later.iter().zip(earlier).map(|(later, earlier)| later.saturating_sub(*earlier)));
    }
}

impl RowVisitor for Singletons {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{DueNs, ReceivedNs, ReflectorReceivedNs, ReflectorSentNs, SentNs, Seq};
        match self.metric {
            Metric::RoundTripDelay | Metric::Pdv => vec![SentNs, ReceivedNs],
            Metric::RoundTripDelayLessDwell => vec![SentNs, ReceivedNs, ReflectorReceivedNs, ReflectorSentNs],
            Metric::ReflectorDwell => vec![ReflectorReceivedNs, ReflectorSentNs],
            Metric::SendSlip => vec![DueNs, SentNs],
            Metric::ResponseTime | Metric::WakeupLatency => vec![DueNs, ReceivedNs],
            Metric::Ipdv => vec![Seq, SentNs, ReceivedNs],
            // No probe has one: analysis/streams.rs.
            Metric::OfferedRate | Metric::DeliveredRate => Vec::new(),
        }
    }

    fn gather(&mut self, batch: &ProbeBatch) {
        if !self.gather_plain(batch) {
            measured(batch, |row, fate| {
                if let Some(value) = self.singleton(batch, row, fate) {
                    self.values.push(value);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_subtracted_as_their_values_would_be() {
        let values = [0, 1, -1, 5_000_000_000, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1];
        for later in values {
            for earlier in values {
                let mut spans = vec![9];
                subtract(&[7, later], &[4, earlier], &mut spans);
                assert_eq!(spans, [9, 3, later.saturating_sub(earlier)], "{later} {earlier}");
            }
        }
    }
    use crate::analysis::in_memory::{EVERY_MS, InMemory, but, closed, scheduled};
    use crate::plan::Schedule;
    use crate::probe::{Phase, ProbeRecord};

    /// Two warm-up probes, then one of every fate between answered ones.
    fn rows() -> Vec<ProbeRecord> {
        let mut rows = vec![
            scheduled(0, 0, 900, 900),
            scheduled(1, 1_000, 900, 900),
            scheduled(2, 2_000, 1, 50),
            scheduled(3, 3_000, 2, 40),
            but(scheduled(4, 4_000, 3, 0), Fate::Lost),
            scheduled(5, 5_000, 4, 45),
            but(scheduled(6, 6_000, 0, 0), Fate::NotSent),
            but(scheduled(7, 7_000, 0, 0), Fate::SendFailed),
            but(scheduled(8, 8_000, 60, 1_500_000), Fate::Late),
            scheduled(9, 9_000, 5, 70),
            scheduled(10, 10_000, 6, 60),
        ];
        rows[0].phase = Phase::Warmup;
        rows[1].phase = Phase::Warmup;
        rows
    }

    fn micros(metric: Metric, source: &InMemory) -> Vec<Option<i64>> {
        let sample = sample(source, metric).expect("rows in memory");
        assert_eq!(sample.infinite as usize, sample.singletons.iter().filter(|value| **value == INFINITE).count());
        sample.singletons.into_iter().map(|value| (value != INFINITE).then_some(value / 1_000)).collect()
    }

    #[test]
    fn each_metric_is_over_its_own_probes_whatever_the_batches() {
        let table: &[(Metric, &[Option<i64>])] = &[
            (Metric::RoundTripDelay, &[Some(50), Some(40), None, Some(45), None, Some(70), Some(60)]),
            (Metric::RoundTripDelayLessDwell, &[Some(48), Some(38), None, Some(43), None, Some(68), Some(58)]),
            (Metric::ReflectorDwell, &[Some(2); 6]),
            (Metric::SendSlip, &[Some(1), Some(2), Some(3), Some(4), Some(60), Some(5), Some(6)]),
            (Metric::ResponseTime, &[Some(51), Some(42), None, Some(49), None, None, None, Some(75), Some(66)]),
            (Metric::Pdv, &[Some(10), Some(0), None, Some(5), None, Some(30), Some(20)]),
            (Metric::Ipdv, &[Some(-10), Some(-10)]),
        ];
        for batch in [1, 2, 3, 100] {
            let source = InMemory { batch, ..InMemory::of(EVERY_MS, rows()) };
            for (metric, expected) in table {
                assert_eq!(&micros(*metric, &source), expected, "{metric:?} in batches of {batch}");
            }
        }
    }

    #[test]
    fn whole_columns_give_what_single_rows_give() {
        let rows: Vec<_> = (0..100).map(|seq| scheduled(seq, seq as i64 * 10, 1, (seq as i64 * 7) % 13)).collect();
        let mut rough = rows.clone();
        rough.push(but(scheduled(100, 1_000, 0, 0), Fate::Lost));
        for metric in Metric::PING {
            let plain = micros(metric, &InMemory { batch: 100, ..InMemory::of(EVERY_MS, rows.clone()) });
            let mixed = micros(metric, &InMemory { batch: 101, ..InMemory::of(EVERY_MS, rough.clone()) });
            assert_eq!(plain, mixed[..plain.len()], "{metric:?}");
        }
    }

    #[test]
    fn a_closed_loop_has_neither_response_time_nor_slip() {
        let source = InMemory::of(Schedule::Closed, vec![closed(0, 0, 40), but(closed(1, 50, 0), Fate::Lost)]);
        assert_eq!(micros(Metric::RoundTripDelay, &source), [Some(40), None]);
        assert!(micros(Metric::ResponseTime, &source).is_empty());
        assert!(micros(Metric::SendSlip, &source).is_empty());
    }

    #[test]
    fn an_echo_without_stamps_has_no_dwell() {
        let mut row = closed(0, 0, 40);
        (row.reflector_received, row.reflector_sent) = (None, None);
        let source = InMemory::of(Schedule::Closed, vec![row, but(closed(1, 50, 0), Fate::Lost)]);
        assert!(micros(Metric::ReflectorDwell, &source).is_empty());
        assert_eq!(micros(Metric::RoundTripDelayLessDwell, &source), [None]);
    }
}
