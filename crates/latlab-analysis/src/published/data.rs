//! The sample that published figures are checked against: every value with what a mistake can confuse it with.

use crate::metric::Metric;
use crate::metric_sample::MetricSample;
use crate::plan::Kind;
use crate::plan::defaults::NUMBERS_MAX;
use crate::probe::{Fate, Phase};
use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn};
use crate::sample::INFINITE;
use crate::source::{ProbeSource, RowVisitor, value_at, visit_rows};
use crate::units::human::TimeUnit;

/// Whether published figures are of round trips or of their halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// The values are round trips, and so are the published figures.
    Whole,
    /// The values are round trips, and the published figures are of their halves.
    Halved,
    /// It is not known whether the values are round trips or halves.
    Unknown,
    /// The values are not round trips.
    NotRoundTrip,
}

/// A sample with all that the published figures may have been computed from.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedData {
    /// The values of answered probes in the order of the log, those of the warm-up first. Round trips are whole ones.
    pub values: Vec<f64>,
    /// Whether the values are in ns; else they are numbers without a unit.
    pub is_timed: bool,
    /// How many of `values` are of the warm-up, which correct figures leave out.
    pub warmup: usize,
    /// The number of each value's packet, if it is known.
    pub ids: Option<Vec<u64>>,
    /// What a number of 1 is beside the values: the unit that these have in the log.
    pub id_unit: f64,
    /// The dwell of the reflector in each value, if it is known.
    pub dwell: Option<Vec<f64>>,
    /// Whether the dwell is to be subtracted.
    pub less_dwell: bool,
    /// Probes of the measuring phase without an answer, as far as the data state them.
    pub lost: u64,
    pub warmup_lost: u64,
    /// Whether the data state every loss.
    pub knows_losses: bool,
    /// Numbers of packets without a row, between the first and the last.
    pub missing_ids: u64,
    pub halving: Halving,
    /// Whether the log has digits below a nanosecond, which the values have not.
    pub is_rounded: bool,
}

impl PublishedData {
    /// Values without anything else known about them.
    pub fn of_values(values: impl IntoIterator<Item = f64>, is_timed: bool) -> PublishedData {
        PublishedData {
            values: values.into_iter().collect(),
            is_timed,
            warmup: 0,
            ids: None,
            id_unit: 1.0,
            dwell: None,
            less_dwell: false,
            lost: 0,
            warmup_lost: 0,
            knows_losses: false,
            missing_ids: 0,
            halving: Halving::Unknown,
            is_rounded: false,
        }
    }

    /// The values of `metric` of a recording. The user may state that the published figures are of halves. `None` if there are
    /// more values than a check takes.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn of_recording<S: ProbeSource>(
        source: &S,
        metric: Metric,
        is_halved: bool,
    ) -> Result<Option<PublishedData>, S::Error> {
        let is_round_trip = matches!(metric, Metric::RoundTripDelay | Metric::RoundTripDelayLessDwell);
        let rows = SampleRows::of(source, metric, is_round_trip)?;
        if rows.answered > NUMBERS_MAX as u64 {
            return Ok(None);
        }
        let manifest = source.manifest();
        let (import, facts) = (manifest.spec.import(), manifest.run.import.as_ref());
        let is_halved = is_halved || import.is_some_and(|import| import.halves_doubled);
        // What another tool calls a delay may be a round trip or its half.
        let halving = match metric {
            Metric::Delay if !is_halved => Halving::Unknown,
            _ if is_halved && (is_round_trip || metric == Metric::Delay) => Halving::Halved,
            _ if is_round_trip => Halving::Whole,
            _ => Halving::NotRoundTrip,
        };
        let unit = facts.and_then(|facts| facts.value_unit.as_ref()).or(import.and_then(|import| import.unit.as_ref()));
        let knows_losses = manifest.spec.knows_losses();
        let is_numbered = import.is_none_or(|import| import.format != PLAIN_NUMBERS);
        let is_complete = |count: usize| count > 0 && count == rows.values.len();
        let (has_ids, has_dwell) = (is_complete(rows.ids.len()), is_complete(rows.dwell.len()));
        Ok(Some(PublishedData {
            warmup: rows.warmup,
            ids: Some(rows.ids).filter(|_| has_ids && is_numbered),
            id_unit: unit.and_then(|word| TimeUnit::from_word(word)).map_or(1.0, TimeUnit::nanos),
            dwell: Some(rows.dwell).filter(|_| has_dwell && is_round_trip),
            less_dwell: metric == Metric::RoundTripDelayLessDwell,
            lost: rows.lost.saturating_add(facts.map_or(0, |facts| facts.lost_without_row)),
            warmup_lost: rows.warmup_lost,
            knows_losses,
            // Where every loss is stated, gaps add nothing.
            missing_ids: if knows_losses { 0 } else { facts.map_or(0, |facts| facts.missing_ids) },
            halving,
            is_rounded: facts.is_some_and(|facts| facts.finer_digits == Some(true)),
            ..PublishedData::of_values(rows.values, true)
        }))
    }

    /// Answered probes of the measuring phase.
    pub const fn answered(&self) -> u64 {
        (self.values.len() - self.warmup) as u64
    }
}

/// The format of a log of one number on each line, whose rows have no numbers of their own.
const PLAIN_NUMBERS: &str = "numbers";

/// Collects the rows of a recording, in which the warm-up comes first. Values beyond the most that a check takes are counted
/// and not kept.
#[derive(Debug, Default)]
struct SampleRows {
    values: Vec<f64>,
    /// How many of the values are of the warm-up.
    warmup: usize,
    /// Of the values that have one.
    ids: Vec<u64>,
    dwell: Vec<f64>,
    /// Answered probes, kept or not.
    answered: u64,
    lost: u64,
    warmup_lost: u64,
}

impl SampleRows {
    fn of<S: ProbeSource>(source: &S, metric: Metric, is_round_trip: bool) -> Result<SampleRows, S::Error> {
        let mut rows = SampleRows::default();
        if source.manifest().kind == Kind::Values {
            source.visit_values(&mut |batch| {
                for row in 0..batch.rows {
                    let count = value_at(&batch.count, row).map_or(0, |count| count as u64);
                    let seq = value_at(&batch.seq, row).filter(|_| count == 1);
                    rows.take(value_at(&batch.value_ns, row), count, seq);
                }
            })?;
        } else if is_round_trip || metric == Metric::WakeupLatency {
            visit_rows(source, &mut [&mut rows])?;
        } else {
            for (value, count) in MetricSample::of(source, metric)?.values() {
                rows.take(Some(value).filter(|value| *value != INFINITE), count, None);
            }
        }
        Ok(rows)
    }

    /// Takes a value with its count; without a value it is lost.
    fn take(&mut self, value: Option<i64>, count: u64, id: Option<i64>) {
        match value {
            None => self.lost = self.lost.saturating_add(count),
            Some(value) => self.answered(Phase::Measure, value, count, id, None),
        }
    }

    fn answered(&mut self, phase: Phase, value: i64, count: u64, id: Option<i64>, dwell: Option<i64>) {
        self.answered = self.answered.saturating_add(count);
        if self.answered <= NUMBERS_MAX as u64 {
            self.warmup += usize::from(phase == Phase::Warmup);
            self.values.extend(std::iter::repeat_n(value as f64, count as usize));
            self.ids.extend(id.and_then(|id| u64::try_from(id).ok()));
            self.dwell.extend(dwell.map(|dwell| dwell as f64));
        }
    }
}

impl RowVisitor for SampleRows {
    fn columns(&self) -> Vec<ProbeColumn> {
        let stamps = [ProbeColumn::SentNs, ProbeColumn::ReceivedNs];
        let dwell = [ProbeColumn::ReflectorReceivedNs, ProbeColumn::ReflectorSentNs];
        [&[ProbeColumn::Seq], &stamps[..], &dwell[..]].concat()
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        let span =
            |from: &IntColumn, to: &IntColumn, row| Some(value_at(to, row)?.saturating_sub(value_at(from, row)?));
        for row in 0..batch.rows {
            let phase = batch.phase.get(row);
            match (batch.fate.get(row), phase) {
                (Fate::Answered, _) => {
                    let Some(value) = span(&batch.sent_ns, &batch.received_ns, row) else { continue };
                    let dwell = span(&batch.reflector_received_ns, &batch.reflector_sent_ns, row);
                    self.answered(phase, value, 1, value_at(&batch.seq, row), dwell);
                }
                (Fate::Late | Fate::Lost, Phase::Measure) => self.lost += 1,
                (Fate::Late | Fate::Lost, Phase::Warmup) => self.warmup_lost += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ImportFacts, LoggedValue};
    use crate::in_memory::{EVERY_MS, InMemory, but, logged, scheduled};
    use crate::plan::Work;

    fn recorded(source: &InMemory, metric: Metric) -> PublishedData {
        PublishedData::of_recording(source, metric, false).expect("in memory").expect("few values")
    }

    fn value(seq: u64, value_ns: Option<i64>, count: u64) -> LoggedValue {
        LoggedValue { seq: Some(seq), value_ns, count }
    }

    #[test]
    fn the_recording_of_a_log_says_what_its_values_are() {
        let values = vec![value(3, Some(500), 1), value(4, None, 1), value(7, Some(400), 1)];
        let facts = ImportFacts { lost_without_row: 2, missing_ids: 2, ..ImportFacts::default() };
        for (metric, halves_doubled, unit, halving, id_unit) in [
            (Metric::RoundTripDelay, true, None, Halving::Halved, 1.0),
            (Metric::WakeupLatency, false, None, Halving::NotRoundTrip, 1.0),
            (Metric::Delay, false, Some("s"), Halving::Unknown, 1e9),
            (Metric::RoundTripDelay, false, Some("ms"), Halving::Whole, 1e6),
        ] {
            let mut source = logged(values.clone(), true);
            if let Work::Import(spec) = &mut source.manifest.spec.work {
                (spec.format, spec.metric, spec.unit) = ("csv".into(), Some(metric), None);
                (spec.halves_doubled, spec.states_losses) = (halves_doubled, false);
            }
            source.manifest.run.import = Some(ImportFacts { value_unit: unit.map(Into::into), ..facts.clone() });
            let data = recorded(&source, metric);
            assert_eq!(
                (data.halving, data.id_unit, data.lost, data.missing_ids),
                (halving, id_unit, 3, 2),
                "{metric:?}"
            );
            assert_eq!((data.values, data.ids), (vec![500.0, 400.0], Some(vec![3, 7])));
            assert!(!data.knows_losses);
        }
        let counted = recorded(&logged(vec![value(0, Some(5), 1), value(1, Some(6), 2)], false), Metric::Delay);
        assert_eq!((counted.ids, counted.values), (None, vec![5.0, 6.0, 6.0]), "a count has no number");
        let many = logged(vec![value(0, Some(5), 100_000_000_000)], false);
        assert_eq!(PublishedData::of_recording(&many, Metric::Delay, false).expect("in memory"), None);
    }

    #[test]
    fn a_recording_gives_answered_values_with_numbers_dwell_and_losses() {
        let mut rows = vec![
            scheduled(0, 0, 1, 900),
            scheduled(1, 1_000, 1, 50),
            but(scheduled(2, 2_000, 1, 0), Fate::Lost),
            but(scheduled(3, 3_000, 1, 2_000_000), Fate::Late),
            scheduled(4, 4_000, 1, 40),
            but(scheduled(5, 5_000, 1, 0), Fate::NotSent),
            but(scheduled(6, 6_000, 1, 0), Fate::Lost),
            but(scheduled(7, 7_000, 1, 2_000_000), Fate::Late),
        ];
        [0, 6, 7].iter().for_each(|row: &usize| rows[*row].phase = Phase::Warmup);
        let source = InMemory::of(EVERY_MS, rows);
        let data = recorded(&source, Metric::RoundTripDelay);
        assert_eq!((data.values.as_slice(), data.warmup), (&[900_000.0, 50_000.0, 40_000.0][..], 1));
        assert_eq!((data.ids, data.dwell), (Some(vec![0, 1, 4]), Some(vec![2_000.0; 3])));
        assert_eq!((data.lost, data.warmup_lost, data.knows_losses), (2, 2, true));
        assert_eq!((data.less_dwell, data.halving), (false, Halving::Whole));
        let response = recorded(&source, Metric::ResponseTime);
        assert_eq!((response.values.as_slice(), response.lost), (&[51_000.0, 41_000.0][..], 3));
        assert_eq!((response.ids, response.halving), (None, Halving::NotRoundTrip));
    }
}
