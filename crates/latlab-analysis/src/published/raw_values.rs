//! The sample that published figures are checked against: every value with what a mistake can confuse it with.

use thiserror::Error;

use super::digits::{DOUBLED_END, FinerDigits, ScaledNumbers, UnfitNumber, ValueScale, is_fitting};
use crate::analysis::metric_sample::MetricSample;
use crate::analysis::source::{ProbeSource, RowVisitor, value_at, visit_rows};
use crate::diagnostics::{Explain, Failure};
use crate::facts::{LogFacts, LoggedProbe, LoggedValue, RowNumbers};
use crate::metric::Metric;
use crate::plan::defaults::NUMBERS_MAX;
use crate::plan::{Kind, Schedule};
use crate::probe::{Fate, Phase};
use crate::recording::manifest::Manifest;
use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn};
use crate::sample::INFINITE;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, grouped};

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
    /// The values of answered probes in the order of the log, those of the warm-up first. Round trips are whole ones. They are
    /// below 2^62 ticks on either side of 0, also less their dwell.
    pub values: Vec<i64>,
    /// How many of `values` are of the warm-up, which correct figures leave out.
    pub warmup: usize,
    /// The number of each value's packet, if it is known.
    pub ids: Option<Vec<u64>>,
    /// How many ticks a number of 1 is beside the values, in the unit that these have in the log.
    pub id_ticks: i64,
    /// The dwell of the reflector in each value, if it is known.
    pub dwell: Option<Vec<i64>>,
    /// Whether the dwell is to be subtracted, as in RFC 2681's successors and in NTP's delay.
    pub less_dwell: bool,
    /// Probes of the measuring phase without an answer, as far as the data state them.
    pub lost: u64,
    pub warmup_lost: u64,
    /// Whether the data state every loss.
    pub knows_losses: bool,
    /// Numbers of packets without a row, between the first and the last.
    pub missing_ids: u64,
    /// Whether the published figures are of round trips or of halves.
    pub halving: Halving,
    /// The interval of the sleeps, if the values are latencies of wake-ups.
    pub sleep: Option<Nanos>,
    /// What the integers of `values` and `dwell` count.
    pub scale: ValueScale,
    /// Whether the raw data have digits that the scale has not.
    pub finer: FinerDigits,
}

impl PublishedData {
    /// Values without anything else known about them.
    pub fn of_values(values: Vec<i64>, scale: ValueScale) -> PublishedData {
        PublishedData {
            values,
            warmup: 0,
            ids: None,
            id_ticks: 1,
            dwell: None,
            less_dwell: false,
            lost: 0,
            warmup_lost: 0,
            knows_losses: false,
            missing_ids: 0,
            halving: Halving::Unknown,
            sleep: None,
            scale,
            finer: FinerDigits::Absent,
        }
    }

    /// Finite `numbers`, each times `unit`, with the `ids` of their packets; without a unit they are taken as they are.
    ///
    /// # Errors
    /// The first number that is too large.
    pub fn of_numbers(
        numbers: &[f64],
        unit: Option<TimeUnit>,
        ids: Option<Vec<u64>>,
    ) -> Result<PublishedData, UnfitNumber> {
        let id_max = ids.as_ref().and_then(|ids| ids.iter().max()).copied();
        let ScaledNumbers { values, scale, finer, one } = ScaledNumbers::of(numbers, unit, id_max)?;
        Ok(PublishedData { ids, id_ticks: one, finer, ..PublishedData::of_values(values, scale) })
    }

    /// The values of a recording that are `stated`.
    ///
    /// # Errors
    /// If the rows cannot be read, or have more values than a check takes.
    pub fn of_source<S: ProbeSource>(
        source: &S,
        stated: &StatedValues,
    ) -> Result<PublishedData, SampleError<S::Error>> {
        let unreadable = SampleError::Unreadable;
        let mut rows = SampleRows::default();
        match source.manifest().kind {
            Kind::Values => {
                expect_count(&MetricSample::of_values(source).map_err(unreadable)?)?;
                let visited = source.visit_values(&mut |batch| {
                    (0..batch.rows).for_each(|row| {
                        rows.value(&LoggedValue {
                            seq: value_at(&batch.seq, row).and_then(|seq| u64::try_from(seq).ok()),
                            value_ns: value_at(&batch.value_ns, row),
                            count: value_at(&batch.count, row).map_or(0, |count| count as u64),
                        });
                    });
                });
                visited.map_err(SampleError::Unreadable)?;
            }
            _ if stated.is_round_trip() || stated.metric == Metric::WakeupLatency => {
                visit_rows(source, &mut [&mut rows]).map_err(unreadable)?;
            }
            _ => {
                let sample = MetricSample::of(source, stated.metric).map_err(unreadable)?;
                expect_count(&sample)?;
                sample.values().for_each(|(value, count)| {
                    let value_ns = Some(value).filter(|value| *value != INFINITE);
                    rows.value(&LoggedValue { seq: None, value_ns, count });
                });
            }
        }
        Ok(rows.sample(stated)?)
    }

    /// Answered probes of the measuring phase.
    pub fn answered(&self) -> u64 {
        self.values.len().saturating_sub(self.warmup) as u64
    }

    /// Whether the values are so small that their doubles are ones that a check takes.
    pub(super) fn can_double(&self) -> bool {
        self.values.iter().all(|value| value.unsigned_abs() < DOUBLED_END as u64)
    }

    /// Whether ids are known, and fit beside the values.
    pub(super) fn has_fitting_ids(&self) -> bool {
        let largest = self.ids.as_ref().map(|ids| ids.iter().max().copied().unwrap_or(0));
        let ticks = largest.and_then(|id| i64::try_from(id).ok()?.checked_mul(self.id_ticks));
        ticks.is_some_and(is_fitting)
    }
}

/// What values are, as the user, their log or their recording states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedValues {
    pub metric: Metric,
    /// Whether the published figures are of half round trips.
    pub is_halved: bool,
    /// The interval of the sleeps, if the values are latencies of wake-ups.
    pub sleep: Option<Nanos>,
    /// Whether their rows have numbers besides their places in the log.
    pub is_numbered: bool,
    /// Probes that are lost according to the totals of the log, and have no row.
    pub lost_without_row: u64,
    /// Whether every loss is stated.
    pub knows_losses: bool,
    /// Numbers without a row, between the first and the last, apart from those of the probes of a log.
    pub missing_ids: u64,
    /// Whether they have digits below a nanosecond.
    pub finer: FinerDigits,
    /// The unit in which the log has them.
    pub unit: TimeUnit,
}

/// The tool that a log of one number on each line has, whose rows have no numbers of their own.
const PLAIN_NUMBERS: &str = "numbers";
/// The tools, by the names that logs and recordings have of them, whose values may have any number of decimals. The others
/// write whole nanoseconds or coarser steps.
const ANY_DECIMALS: [&str; 4] = ["csv", PLAIN_NUMBERS, "perftest", "RTI Perftest"];

/// What is known of the digits below a nanosecond of values that `tool` wrote. `found` is whether the import saw some.
fn finer_digits(tool: &str, found: Option<bool>) -> FinerDigits {
    match found {
        Some(true) => FinerDigits::BelowNanosecond,
        None if ANY_DECIMALS.contains(&tool) => FinerDigits::Unknown,
        Some(false) | None => FinerDigits::Absent,
    }
}

/// The unit in which `tool` writes its values; `stated` is that of this log.
fn unit_of_values(tool: &str, stated: Option<TimeUnit>, resolution_ns: Option<Nanos>) -> TimeUnit {
    match (stated, tool) {
        (Some(unit), _) => unit,
        (None, "ping") => TimeUnit::Millis,
        (None, "perftest" | "RTI Perftest") => TimeUnit::Micros,
        // Its histograms are a format of their own.
        (None, tool) if tool.starts_with("cyclictest") && resolution_ns != Some(Nanos(1)) => TimeUnit::Micros,
        (None, _) => TimeUnit::Nanos,
    }
}

/// Values that are all multiples of this were not rounded to a nanosecond.
const COARSE_NS: i64 = 1_000;

impl StatedValues {
    /// What a log states of its values. `states_losses` is whether logs of its format state losses, which the log itself may
    /// know better.
    pub fn of_log(facts: &LogFacts, states_losses: bool) -> StatedValues {
        let metric = facts.metric.unwrap_or(Metric::RoundTripDelay);
        StatedValues {
            metric,
            is_halved: facts.halves_doubled,
            sleep: facts.interval_ns.filter(|_| metric == Metric::WakeupLatency),
            is_numbered: facts.tool != PLAIN_NUMBERS,
            lost_without_row: facts.lost,
            knows_losses: facts.states_losses.unwrap_or(states_losses),
            missing_ids: facts.missing_ids,
            finer: match facts.metric {
                Some(_) => finer_digits(&facts.tool, facts.finer_digits),
                // Spans between instants.
                None => FinerDigits::Absent,
            },
            unit: unit_of_values(&facts.tool, facts.value_unit, facts.resolution_ns),
        }
    }

    /// What a recording with this `manifest` states of its values of `metric`. Of an imported log it is what the log states.
    pub fn of_recording(manifest: &Manifest, metric: Metric) -> StatedValues {
        let import = manifest.spec.import();
        let facts = manifest.run.import.as_ref();
        let interval = match (import, manifest.spec.schedule()) {
            (Some(import), _) => import.interval_ns,
            (None, Schedule::Periodic { interval_ns }) => Some(interval_ns),
            _ => None,
        };
        StatedValues {
            metric,
            is_halved: import.is_some_and(|import| import.halves_doubled),
            sleep: interval.filter(|_| metric == Metric::WakeupLatency),
            is_numbered: import.is_none_or(|import| import.format != PLAIN_NUMBERS),
            lost_without_row: facts.map_or(0, |facts| facts.lost_without_row),
            knows_losses: manifest.spec.knows_losses(),
            missing_ids: facts.map_or(0, |facts| facts.missing_ids),
            finer: match import.filter(|_| manifest.kind == Kind::Values) {
                Some(import) => finer_digits(&import.format, facts.and_then(|facts| facts.finer_digits)),
                None => FinerDigits::Absent,
            },
            unit: import.map_or(TimeUnit::Nanos, |import| {
                let word = facts.and_then(|facts| facts.value_unit.as_ref());
                // Of a CSV file it is the typed one in recordings that do not state it.
                let typed = import.unit.as_ref().filter(|_| import.format == "csv");
                let stated = word.or(typed).and_then(|word| TimeUnit::from_word(word));
                unit_of_values(&import.format, stated, import.resolution_ns)
            }),
        }
    }

    /// The same with what the user states: whether the published figures are of halves, and the interval of the sleeps.
    #[must_use]
    pub fn with(self, is_halved: bool, sleep: Option<Nanos>) -> StatedValues {
        StatedValues { is_halved: self.is_halved || is_halved, sleep: sleep.or(self.sleep), ..self }
    }

    /// Whether they are round trips.
    pub(super) const fn is_round_trip(&self) -> bool {
        matches!(self.metric, Metric::RoundTripDelay | Metric::RoundTripDelayLessDwell)
    }

    /// Whether the published figures are of round trips or of halves. What another tool calls a delay may be either, unless
    /// it is that of a sleep.
    pub const fn halving(&self) -> Halving {
        match self.metric {
            _ if self.is_round_trip() && self.is_halved => Halving::Halved,
            _ if self.is_round_trip() => Halving::Whole,
            Metric::Delay if self.is_halved => Halving::Halved,
            Metric::Delay if self.sleep.is_none() => Halving::Unknown,
            _ => Halving::NotRoundTrip,
        }
    }
}

/// Values that a check does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnfitSample {
    #[error("cannot check more than {} values", grouped(NUMBERS_MAX as u64))]
    TooMany {
        /// How many there are at least.
        count: u64,
    },
    /// One of them, or its dwell, is too large.
    #[error("cannot check delays of 146 years or more")]
    TooLarge {
        /// The number of its packet, if it is known.
        id: Option<u64>,
    },
}

impl Explain for UnfitSample {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        match self {
            UnfitSample::TooMany { count } => failure
                .because(format!(
                    "there are {} or more, and all of them are kept in memory and sorted",
                    grouped(*count)
                ))
                .hint("check a part of the log; `latlab summary` has figures of all of it"),
            UnfitSample::TooLarge { id } => {
                let which = id.map_or_else(|| "that of one value".to_owned(), |id| format!("that of packet {id}"));
                failure
                    .because(format!("{which}, or its dwell, exceeds 2^62 ns"))
                    .hint("check its instants: both ends of a span must be of one clock")
            }
        }
    }
}

/// Why the values of a recording cannot be checked.
#[derive(Debug, Error)]
pub enum SampleError<E> {
    /// Its rows cannot be read.
    #[error(transparent)]
    Unreadable(E),
    /// It has values that a check does not take.
    #[error(transparent)]
    Unfit(UnfitSample),
}

impl<E> From<UnfitSample> for SampleError<E> {
    fn from(error: UnfitSample) -> SampleError<E> {
        SampleError::Unfit(error)
    }
}

impl<E: Explain + 'static> Explain for SampleError<E> {
    fn explain(&self) -> Failure {
        match self {
            SampleError::Unreadable(error) => error.explain(),
            SampleError::Unfit(error) => error.explain(),
        }
    }
}

/// Expects as many finite values as a check takes, before the counts are expanded.
fn expect_count(sample: &MetricSample) -> Result<(), UnfitSample> {
    let finite = sample.values().filter(|(value, _)| *value != INFINITE);
    expect_at_most_max(finite.fold(0, |sum, (_, count)| sum.saturating_add(count)))
}

const fn expect_at_most_max(count: u64) -> Result<(), UnfitSample> {
    if count > NUMBERS_MAX as u64 { Err(UnfitSample::TooMany { count }) } else { Ok(()) }
}

/// Answered probes in which packet number or dwell may be missing.
#[derive(Debug, Default)]
struct AnsweredValues {
    values: Vec<i64>,
    ids: Vec<u64>,
    dwell: Vec<i64>,
}

impl AnsweredValues {
    fn and(mut self, other: AnsweredValues) -> AnsweredValues {
        self.values.extend(other.values);
        self.ids.extend(other.ids);
        self.dwell.extend(other.dwell);
        self
    }
}

/// An answered probe, or several equal ones.
struct AnsweredRow {
    value: i64,
    id: Option<u64>,
    dwell: Option<i64>,
    count: u64,
}

/// Collects the rows of a log or of a recording. Values beyond the most that a check takes are counted and not kept.
#[derive(Debug, Default)]
pub struct SampleRows {
    warmup: AnsweredValues,
    measured: AnsweredValues,
    /// Answered probes, kept or not.
    answered: u64,
    /// The first value that is too large.
    too_large: Option<UnfitSample>,
    lost: u64,
    warmup_lost: u64,
    /// Those of probes of a log, as its recording has them.
    numbers: RowNumbers,
}

impl SampleRows {
    /// Takes a probe of a log.
    pub fn probe(&mut self, probe: &LoggedProbe) {
        let id = Some(self.numbers.next(probe.id));
        match (probe.sent_ns, probe.received_ns) {
            (_, None) => self.lost += 1,
            (None, Some(_)) => {}
            (Some(sent), Some(received)) => {
                let stamps = probe.reflector_received_ns.zip(probe.reflector_sent_ns);
                let dwell = stamps.map(|(received, sent)| sent.saturating_sub(received));
                let value = received.saturating_sub(sent);
                self.answered(Phase::Measure, &AnsweredRow { value, id, dwell, count: 1 });
            }
        }
    }

    /// Takes a value of a log with its count; without a value it is lost.
    pub fn value(&mut self, row: &LoggedValue) {
        match row.value_ns {
            None => self.lost = self.lost.saturating_add(row.count),
            Some(value) => {
                let id = row.seq.filter(|_| row.count == 1);
                self.answered(Phase::Measure, &AnsweredRow { value, id, dwell: None, count: row.count });
            }
        }
    }

    fn answered(&mut self, phase: Phase, row: &AnsweredRow) {
        self.answered = self.answered.saturating_add(row.count);
        let less_dwell = row.value.checked_sub(row.dwell.unwrap_or(0));
        if !is_fitting(row.value) || !less_dwell.is_some_and(is_fitting) {
            self.too_large.get_or_insert(UnfitSample::TooLarge { id: row.id });
        }
        if self.expect_fit().is_err() {
            return;
        }
        let own = if phase == Phase::Warmup { &mut self.warmup } else { &mut self.measured };
        own.values.extend(std::iter::repeat_n(row.value, row.count as usize));
        own.ids.extend(row.id);
        own.dwell.extend(row.dwell);
    }

    /// Expects at most as many values as a check takes, and none that is too large.
    ///
    /// # Errors
    /// If there are more, or larger ones.
    pub const fn expect_fit(&self) -> Result<(), UnfitSample> {
        match self.too_large {
            Some(unfit) => Err(unfit),
            None => expect_at_most_max(self.answered),
        }
    }

    /// The sample of these rows, whose values are `stated`. Ids and dwell are known if every value has one.
    ///
    /// # Errors
    /// If there are more values than a check takes, or one is too large.
    pub fn sample(self, stated: &StatedValues) -> Result<PublishedData, UnfitSample> {
        self.expect_fit()?;
        let SampleRows { warmup, measured, lost, warmup_lost, numbers, .. } = self;
        let first = warmup.values.len();
        let all = warmup.and(measured);
        let is_complete = |count: usize| count > 0 && count == all.values.len();
        let (has_ids, has_dwell) = (is_complete(all.ids.len()), is_complete(all.dwell.len()));
        let is_coarse = || all.values.iter().all(|value| value % COARSE_NS == 0);
        Ok(PublishedData {
            warmup: first,
            ids: Some(all.ids).filter(|_| has_ids && stated.is_numbered),
            id_ticks: stated.unit.nanos() as i64,
            dwell: Some(all.dwell).filter(|_| has_dwell && stated.is_round_trip()),
            less_dwell: stated.metric == Metric::RoundTripDelayLessDwell,
            // Sums with it fit.
            lost: lost.saturating_add(stated.lost_without_row).min(i64::MAX as u64),
            warmup_lost,
            knows_losses: stated.knows_losses,
            // Where every loss is stated, gaps add nothing.
            missing_ids: if stated.knows_losses { 0 } else { numbers.missing.saturating_add(stated.missing_ids) },
            halving: stated.halving(),
            sleep: stated.sleep,
            finer: if stated.finer == FinerDigits::Unknown && is_coarse() { FinerDigits::Absent } else { stated.finer },
            ..PublishedData::of_values(all.values, ValueScale::NANOS)
        })
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
                    let id = value_at(&batch.seq, row).and_then(|seq| u64::try_from(seq).ok());
                    let dwell = span(&batch.reflector_received_ns, &batch.reflector_sent_ns, row);
                    self.answered(phase, &AnsweredRow { value, id, dwell, count: 1 });
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
    use crate::analysis::in_memory::{EVERY_MS, InMemory, but, logged, scheduled};
    use crate::facts::ImportFacts;
    use crate::plan::Work;

    fn recorded(source: &InMemory, metric: Metric) -> PublishedData {
        PublishedData::of_source(source, &StatedValues::of_recording(&source.manifest, metric)).expect("in memory")
    }

    fn value(seq: Option<u64>, value_ns: Option<i64>, count: u64) -> LoggedValue {
        LoggedValue { seq, value_ns, count }
    }

    /// The recording of values of a log that states `facts`.
    fn imported(values: &[LoggedValue], facts: &LogFacts) -> InMemory {
        let is_ordered = values.iter().all(|row| row.seq.is_some() && row.count == 1);
        let mut source = logged(values.to_vec(), is_ordered);
        if let Work::Import(spec) = &mut source.manifest.spec.work {
            (spec.format, spec.metric) = (facts.tool.clone(), facts.metric);
            (spec.halves_doubled, spec.interval_ns) = (facts.halves_doubled, facts.interval_ns);
            spec.states_losses = facts.states_losses.unwrap_or(false);
        }
        source.manifest.run.import = Some(ImportFacts {
            lost_without_row: facts.lost,
            missing_ids: facts.missing_ids,
            value_unit: facts.value_unit.map(|unit| unit.word().into()),
            finer_digits: facts.finer_digits,
            ..ImportFacts::default()
        });
        source
    }

    fn direct(values: &[LoggedValue], facts: &LogFacts) -> PublishedData {
        let mut rows = SampleRows::default();
        values.iter().for_each(|row| rows.value(row));
        rows.sample(&StatedValues::of_log(facts, false)).expect("few values")
    }

    #[test]
    fn a_log_and_its_recording_give_the_same_sample() {
        let values = [value(Some(3), Some(500), 1), value(Some(4), None, 1), value(Some(7), Some(400), 1)];
        let second = Nanos::from_secs(1);
        for (metric, halving, sleep) in [
            (Metric::RoundTripDelay, Halving::Halved, None),
            (Metric::WakeupLatency, Halving::NotRoundTrip, Some(second)),
            (Metric::Delay, Halving::Unknown, None),
        ] {
            let facts = LogFacts {
                metric: Some(metric),
                halves_doubled: metric == Metric::RoundTripDelay,
                interval_ns: Some(second),
                lost: 2,
                ..LogFacts::of("csv")
            };
            let data = direct(&values, &facts);
            assert_eq!(recorded(&imported(&values, &facts), metric), data);
            assert_eq!((data.halving, data.sleep, data.lost), (halving, sleep, 3), "{metric:?}");
            assert_eq!((data.values, data.ids), (vec![500, 400], Some(vec![3, 7])));
        }
    }

    #[test]
    fn ids_are_known_if_each_value_has_one() {
        let facts = LogFacts { metric: Some(Metric::Delay), ..LogFacts::of("csv") };
        let row = value(Some(0), Some(5), 1);
        for other in [value(None, Some(6), 1), value(Some(1), Some(6), 2), value(None, Some(6), 2)] {
            let values = [row, other];
            let data = direct(&values, &facts);
            assert_eq!((data.ids.clone(), data.values.len() as u64), (None, 1 + other.count));
            assert_eq!(recorded(&imported(&values, &facts), Metric::Delay), data);
        }
        let plain = LogFacts { metric: Some(Metric::Delay), ..LogFacts::of("numbers") };
        let (own, recorded) = (direct(&[row], &plain), recorded(&imported(&[row], &plain), Metric::Delay));
        assert_eq!((own.ids, recorded.ids), (None, None), "its rows are not numbered");
    }

    #[test]
    fn ids_count_in_the_unit_of_the_values() {
        let values = [value(Some(0), Some(500_000), 1), value(Some(1), Some(400_000), 1)];
        for (tool, stated, resolution_ns, ticks) in [
            ("csv", Some(TimeUnit::Millis), None, 1_000_000),
            ("csv", Some(TimeUnit::Seconds), None, 1_000_000_000),
            ("csv", None, None, 1),
            ("ping", None, Some(Nanos(1_000)), 1_000_000),
            ("cyclictest", None, Some(Nanos(1_000)), 1_000),
            ("cyclictest", None, Some(Nanos(1)), 1),
            ("fio", None, None, 1),
        ] {
            let metric = Some(Metric::RoundTripDelay);
            let facts = LogFacts { metric, value_unit: stated, resolution_ns, ..LogFacts::of(tool) };
            let mut source = imported(&values, &facts);
            if let Work::Import(spec) = &mut source.manifest.spec.work {
                (spec.resolution_ns, spec.unit) = (resolution_ns, None);
            }
            let data = direct(&values, &facts);
            assert_eq!(recorded(&source, Metric::RoundTripDelay), data, "{tool} {stated:?}");
            assert_eq!(data.id_ticks, ticks, "{tool} {stated:?}");
        }
    }

    #[test]
    fn values_have_finer_digits_if_the_import_saw_some_or_may_have_overlooked_them() {
        use FinerDigits::{Absent, BelowNanosecond, Unknown};
        for (tool, found, value_ns, finer) in [
            ("csv", Some(true), 281_000, BelowNanosecond),
            ("csv", Some(false), 281_412, Absent),
            ("csv", None, 281_412, Unknown),
            ("csv", None, 281_000, Absent),
            ("ping", None, 281_000, Absent),
            ("fio", None, 281_412, Absent),
        ] {
            let values = [value(Some(0), Some(value_ns), 1), value(Some(1), Some(282_000), 1)];
            let facts = LogFacts { metric: Some(Metric::Delay), finer_digits: found, ..LogFacts::of(tool) };
            let data = direct(&values, &facts);
            assert_eq!(data.finer, finer, "{tool} {found:?}");
            assert_eq!(recorded(&imported(&values, &facts), Metric::Delay), data);
        }
    }

    #[test]
    fn losses_are_known_if_the_log_or_its_format_states_them() {
        let values = [value(Some(0), Some(5), 1), value(Some(3), Some(6), 1)];
        for (states_losses, is_known, missing) in [(None, false, 2), (Some(false), false, 2), (Some(true), true, 0)] {
            let facts = LogFacts {
                metric: Some(Metric::Delay),
                missing_ids: 2,
                states_losses,
                ..LogFacts::of("hdr-histogram")
            };
            let data = direct(&values, &facts);
            assert_eq!((data.knows_losses, data.missing_ids), (is_known, missing), "{states_losses:?}");
            assert_eq!(recorded(&imported(&values, &facts), Metric::Delay), data);
            assert_eq!(StatedValues::of_log(&facts, true).knows_losses, states_losses != Some(false));
        }
        let own = recorded(&InMemory::of(EVERY_MS, vec![scheduled(0, 0, 1, 900)]), Metric::RoundTripDelay);
        assert!(own.knows_losses, "a recording of latlab states them");
    }

    #[test]
    fn what_the_user_states_goes_before_the_log() {
        let delay = StatedValues::of_log(&LogFacts { metric: Some(Metric::Delay), ..LogFacts::of("csv") }, false);
        let sleep = Some(Nanos::from_secs(1));
        assert_eq!(delay.with(true, None).halving(), Halving::Halved);
        assert_eq!(
            (delay.with(false, sleep).halving(), delay.with(false, sleep).sleep),
            (Halving::NotRoundTrip, sleep)
        );
        let probes = StatedValues::of_log(&LogFacts::of("det-bypass"), false);
        assert_eq!((probes.halving(), probes.with(true, None).halving()), (Halving::Whole, Halving::Halved));
    }

    #[test]
    fn probes_of_a_log_are_numbered_as_in_its_recording() {
        let probe = |id, received_ns| LoggedProbe {
            id: Some(id),
            sent_ns: Some(1_000),
            received_ns,
            reflector_received_ns: Some(50),
            reflector_sent_ns: Some(80),
            ..LoggedProbe::default()
        };
        let mut rows = SampleRows::default();
        [probe(5, Some(900)), probe(5, None), probe(7, Some(4_000))].iter().for_each(|probe| rows.probe(probe));
        let data = rows.sample(&StatedValues::of_log(&LogFacts::of("det-bypass"), false)).expect("few values");
        assert_eq!((data.values, data.lost, data.dwell), (vec![-100, 3_000], 1, Some(vec![30, 30])));
        assert_eq!((data.ids, data.less_dwell, data.missing_ids), (Some(vec![5, 8]), false, 1));
    }

    #[test]
    fn counts_beyond_the_limit_are_refused_before_they_are_expanded() {
        let facts = LogFacts { metric: Some(Metric::WakeupLatency), ..LogFacts::of("cyclictest") };
        for counts in [vec![100_000_000_000], vec![u64::MAX, 5], vec![1, NUMBERS_MAX as u64]] {
            let values: Vec<LoggedValue> = counts.iter().map(|count| value(None, Some(5), *count)).collect();
            let mut rows = SampleRows::default();
            values.iter().for_each(|row| rows.value(row));
            let error = rows.sample(&StatedValues::of_log(&facts, false)).expect_err("too many").explain();
            assert_eq!((error.exit_code, error.hint.is_some()), (2, true), "{error:?}");
            // The column of counts has 63 bits.
            if counts.iter().all(|count| *count < 1 << 62) {
                let source = imported(&values, &facts);
                let stated = StatedValues::of_recording(&source.manifest, Metric::WakeupLatency);
                let error = PublishedData::of_source(&source, &stated).expect_err("too many").to_string();
                assert_eq!(error, "cannot check more than 100,000,000 values");
            }
        }
        let lost = direct(&[value(None, None, 100_000_000_000), value(None, Some(5), 2)], &facts);
        assert_eq!((lost.values, lost.lost), (vec![5, 5], 100_000_000_000));
    }

    #[test]
    fn spans_that_do_not_fit_are_refused_with_the_packet() {
        let end = (1 << 62) - 1;
        let probe = |sent, received, dwell| LoggedProbe {
            id: Some(7),
            sent_ns: Some(sent),
            received_ns: Some(received),
            reflector_received_ns: Some(0),
            reflector_sent_ns: Some(dwell),
            ..LoggedProbe::default()
        };
        let read = |probe: LoggedProbe| {
            let mut rows = SampleRows::default();
            rows.probe(&probe);
            rows.sample(&StatedValues::of_log(&LogFacts::of("det-bypass"), false))
        };
        assert_eq!(read(probe(0, end, 0)).map(|data| data.values), Ok(vec![end]));
        for unfit in [probe(-end, end, 0), probe(end, -end, 0), probe(0, end, -end), probe(-2, end, 0)] {
            let error = read(unfit).expect_err("2^62 ns").explain();
            assert!(error.cause.is_some_and(|cause| cause.contains("packet 7")) && error.exit_code == 2);
        }
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
        assert_eq!((data.values.as_slice(), data.warmup), (&[900_000, 50_000, 40_000][..], 1));
        assert_eq!((data.ids, data.dwell), (Some(vec![0, 1, 4]), Some(vec![2_000; 3])));
        assert_eq!((data.lost, data.warmup_lost), (2, 2));
        assert_eq!((data.less_dwell, data.sleep, data.halving), (false, None, Halving::Whole));
        let response = recorded(&source, Metric::ResponseTime);
        assert_eq!((response.values.as_slice(), response.lost), (&[51_000, 41_000][..], 3));
        assert_eq!((response.ids, response.halving), (None, Halving::NotRoundTrip));
    }
}
