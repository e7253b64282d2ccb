//! Singletons of recorded probes: one table defines every metric of a probe. Definitions in words: docs/metrics.md.

use super::executions;
use super::source::{ProbeSource, RowVisitor, for_each_measured, is_all_answered, value_at, values_of_all, visit_rows};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};

/// How the row of a probe gives the singleton of a metric.
#[derive(Clone, Copy)]
struct Definition {
    /// The singleton, or the delay that it is derived from.
    span: Span,
    /// A span to subtract from it.
    less: Option<Span>,
    finite: &'static [Fate],
    infinite: &'static [Fate],
    /// Whether it needs a due time, and so exists on a schedule only.
    on_schedule: bool,
    derived: Derived,
}

/// How singletons follow from the spans of their rows.
#[derive(Clone, Copy, PartialEq)]
enum Derived {
    Unchanged,
    /// The span less the least of the sample.
    LessMinimum,
    /// The span less that of the probe before.
    Change,
}

/// The time from one stamp of a row to a later one.
#[derive(Clone, Copy)]
struct Span {
    from: StampColumn,
    to: StampColumn,
}

/// A column of instants.
#[derive(Clone, Copy)]
pub(super) struct StampColumn {
    pub(super) column: ProbeColumn,
    pub(super) of: fn(&ProbeBatch) -> &IntColumn,
}

const DUE: StampColumn = StampColumn { column: ProbeColumn::DueNs, of: |batch| &batch.due_ns };
const SENT: StampColumn = StampColumn { column: ProbeColumn::SentNs, of: |batch| &batch.sent_ns };
const RECEIVED: StampColumn = StampColumn { column: ProbeColumn::ReceivedNs, of: |batch| &batch.received_ns };
const REFLECTOR_RECEIVED: StampColumn =
    StampColumn { column: ProbeColumn::ReflectorReceivedNs, of: |batch| &batch.reflector_received_ns };
const REFLECTOR_SENT: StampColumn =
    StampColumn { column: ProbeColumn::ReflectorSentNs, of: |batch| &batch.reflector_sent_ns };

const KERNEL: StampColumn =
    StampColumn { column: ProbeColumn::ReflectorTxSoftwareNs, of: |batch| &batch.reflector_tx_software_ns };

const DWELL: Span = Span { from: REFLECTOR_RECEIVED, to: REFLECTOR_SENT };

const ROUND_TRIP: Definition = Definition {
    span: Span { from: SENT, to: RECEIVED },
    less: None,
    finite: &[Fate::Answered],
    infinite: &[Fate::Late, Fate::Lost],
    on_schedule: false,
    derived: Derived::Unchanged,
};

/// The definition of `metric`; `None` if its singletons are no probe's: analysis/stream/figures.rs.
const fn definition(metric: Metric) -> Option<Definition> {
    Some(match metric {
        Metric::RoundTripDelay | Metric::ElapsedTime => ROUND_TRIP,
        // Of executions that stand as probes: see `source`.
        Metric::UserTime => Definition { span: DWELL, ..ROUND_TRIP },
        Metric::SystemTime => Definition { span: Span { to: KERNEL, ..DWELL }, ..ROUND_TRIP },
        Metric::RoundTripDelayLessDwell => Definition { less: Some(DWELL), ..ROUND_TRIP },
        Metric::Pdv => Definition { derived: Derived::LessMinimum, ..ROUND_TRIP },
        // Undefined for a pair of which either packet is lost (RFC 3393).
        Metric::Ipdv => Definition { derived: Derived::Change, infinite: &[], ..ROUND_TRIP },
        Metric::ResponseTime => Definition {
            span: Span { from: DUE, to: RECEIVED },
            infinite: &[Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent],
            on_schedule: true,
            ..ROUND_TRIP
        },
        Metric::WakeupLatency => {
            Definition { span: Span { from: DUE, to: RECEIVED }, infinite: &[], on_schedule: true, ..ROUND_TRIP }
        }
        Metric::SendSlip => Definition {
            span: Span { from: DUE, to: SENT },
            finite: &[Fate::Answered, Fate::Late, Fate::Lost],
            infinite: &[],
            on_schedule: true,
            ..ROUND_TRIP
        },
        Metric::ReflectorDwell => {
            Definition { span: DWELL, finite: &[Fate::Answered, Fate::Late], infinite: &[], ..ROUND_TRIP }
        }
        Metric::OfferedRate | Metric::DeliveredRate | Metric::Delay | Metric::Printed(_) => return None,
        // Those need the relation of two clocks: analysis/one_way.rs.
        Metric::ForwardDelay | Metric::BackwardDelay => return None,
    })
}

/// Whether `metric` exists on a schedule only.
pub(super) fn is_on_schedule(metric: Metric) -> bool {
    definition(metric).is_some_and(|definition| definition.on_schedule)
}

/// The sample of `metric`: measured probes only, in the order of sending. May be empty.
pub fn sample<S: ProbeSource>(source: &S, metric: Metric) -> Result<Sample, S::Error> {
    if let Metric::Printed(printed) = metric {
        return executions::printed(source, printed);
    }
    let mut singletons = Singletons::of(metric, source.manifest());
    visit_rows(source, &mut [&mut singletons])?;
    Ok(singletons.sample())
}

/// The singletons of one metric, row by row.
pub(super) struct Singletons {
    metric: Metric,
    definition: Option<Definition>,
    values: Vec<i64>,
    /// Sequence number and span of the last answered probe, for [`Derived::Change`].
    last: Option<(i64, i64)>,
}

impl Singletons {
    /// No singletons yet of the run of `manifest`, with capacity for its rows. It never has any of a change if probes without a row
    /// were lost: which of the others were sent one after the other is unknown.
    pub(super) fn of(metric: Metric, manifest: &Manifest) -> Singletons {
        // The manifest is only a hint: a damaged one must not make this allocate all memory.
        let capacity = manifest.rows.unwrap_or(0).min(1 << 28) as usize;
        let mut values = Vec::new();
        // A damaged manifest may announce more rows than memory has: then the vector grows with the rows that there are.
        let _ = values.try_reserve_exact(capacity);
        let has_pairs = manifest.lost_without_row() == 0;
        let definition = definition(metric).filter(|definition| has_pairs || definition.derived != Derived::Change);
        Singletons { metric, definition, values, last: None }
    }

    pub(super) fn sample(mut self) -> Sample {
        let is_less_minimum = self.definition.is_some_and(|definition| definition.derived == Derived::LessMinimum);
        if is_less_minimum && let Some(minimum) = self.values.iter().copied().min().filter(|value| *value != INFINITE) {
            for value in self.values.iter_mut().filter(|value| **value != INFINITE) {
                *value = value.saturating_sub(minimum);
            }
        }
        Sample::new(self.metric, self.values)
    }

    /// Whole columns at once if no value is missing: the usual case, and ten times as fast as row by row.
    fn visit_columns(&mut self, batch: &ProbeBatch, definition: &Definition) -> bool {
        if definition.less.is_some() || definition.derived == Derived::Change || !is_all_answered(batch) {
            return false;
        }
        let Span { from, to } = definition.span;
        match (values_of_all(batch, (to.of)(batch)), values_of_all(batch, (from.of)(batch))) {
            (Some(later), Some(earlier)) => {
                subtract(later, earlier, &mut self.values);
                true
            }
            _ => false,
        }
    }

    /// The singleton of one row; `None` if the metric is not defined for it.
    fn singleton(&mut self, batch: &ProbeBatch, row: usize, fate: Fate, definition: &Definition) -> Option<i64> {
        if !definition.finite.contains(&fate) {
            let has_stamps = !definition.on_schedule || value_at(&batch.due_ns, row).is_some();
            return (definition.infinite.contains(&fate) && has_stamps).then_some(INFINITE);
        }
        let mut span = definition.span.at(batch, row)?;
        if let Some(less) = definition.less {
            span = span.saturating_sub(less.at(batch, row)?);
        }
        match definition.derived {
            Derived::Unchanged | Derived::LessMinimum => Some(span),
            Derived::Change => self.change(value_at(&batch.seq, row)?, span),
        }
    }

    /// `span` less that of the probe before; `None` if that one was not answered.
    fn change(&mut self, seq: i64, span: i64) -> Option<i64> {
        let last = self.last.replace((seq, span));
        last.filter(|(last_seq, _)| last_seq + 1 == seq).map(|(_, last)| span.saturating_sub(last))
    }
}

impl Span {
    fn at(self, batch: &ProbeBatch, row: usize) -> Option<i64> {
        Some(value_at((self.to.of)(batch), row)?.saturating_sub(value_at((self.from.of)(batch), row)?))
    }

    fn columns(self) -> [ProbeColumn; 2] {
        [self.from.column, self.to.column]
    }
}

/// Appends each of `later` less its `earlier` to `spans`. Wrapping subtraction without a branch is vectorised; the
/// signs of all differences together show whether one overflowed, and only then are they saturated.
fn subtract(later: &[i64], earlier: &[i64], spans: &mut Vec<i64>) {
    let before = spans.len();
    spans.extend(later.iter().zip(earlier).map(|(later, earlier)| later.wrapping_sub(*earlier)));
    let pairs = later.iter().zip(earlier);
    // A difference overflowed if the signs of its operands differ and its own is not that of `later`.
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
        let Some(definition) = &self.definition else { return Vec::new() };
        let mut columns = definition.span.columns().to_vec();
        columns.extend(definition.less.into_iter().flat_map(Span::columns));
        columns.extend((definition.derived == Derived::Change).then_some(ProbeColumn::Seq));
        columns
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        let Some(definition) = self.definition else { return };
        if !self.visit_columns(batch, &definition) {
            for_each_measured(batch, |row, fate| {
                if let Some(value) = self.singleton(batch, row, fate, &definition) {
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
    use crate::in_memory::{EVERY_MS, InMemory, but, closed, scheduled};
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
