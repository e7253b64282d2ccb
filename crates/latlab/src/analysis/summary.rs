//! The summary of one run: counts, statistics of every metric, caveats. The same whether it comes right
//! after the run or years later, since both read the recording.

use std::collections::BTreeMap;

use thiserror::Error;

use super::caveats;
use super::coincidence::{Coincidence, coincidence};
use super::fail_if::FailIf;
use super::host_course::HostAccumulator;
use super::ratios::{Ratios, ShareIntervals};
use super::singletons::{Singletons, sample};
use super::source::{ProbeSource, RowVisitor, feed};
use super::stream_summary::summarise_stream;
use super::streams::StreamFigures;
use super::tally::{Counts, Refusals, RunCounts};
use super::wakeups::{WakeupAccumulator, Wakeups};
use super::window::{MOST_WINDOWS, Window, Windows};
use crate::diagnostics::{Caveat, Explain, Failure, Severity};
use crate::facts::{Instrument, LoadReport};
use crate::metric::Metric;
use crate::plan::{Condition, Kind, RunSpec, Side, StopWhen, SummaryDefaults, defaults};
use crate::recording::manifest::{Manifest, RunEnding};
use crate::stats::{Bucket, DescribeOptions, Description, describe, histogram};
use crate::units::{Nanos, human};

/// What a summary shall hold.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryOptions {
    /// Quantiles, windows and deadline.
    pub judging: SummaryDefaults,
    /// Whether to compute intervals, which cost more than everything else.
    pub intervals: bool,
    /// The metrics to describe, where they have data; the round trip is always described.
    pub metrics: Vec<Metric>,
}

impl SummaryOptions {
    /// What the run itself asked for, every metric, with intervals.
    pub fn of(spec: &RunSpec) -> SummaryOptions {
        SummaryOptions { judging: spec.judging.clone(), intervals: true, metrics: spec.kind().metrics().to_vec() }
    }

    /// Adds what judging `condition` needs.
    pub fn include(&mut self, condition: &FailIf) {
        if let Some(metric) = condition.metric().filter(|metric| !self.metrics.contains(metric)) {
            self.metrics.push(metric);
        }
        if let Some(q) = condition.quantile().filter(|q| !self.judging.quantiles.contains(q)) {
            self.judging.quantiles.push(q);
            self.judging.quantiles.sort_by(f64::total_cmp);
        }
    }
}

/// How many probes missed the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The deadline, from the due time on; in a closed loop from sending on.
    pub deadline_ns: Nanos,
    /// Missed it, unanswered and unsent ones included.
    pub missed: u64,
    /// All due probes.
    pub due: u64,
}

/// One run, summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The run's id.
    pub run: String,
    /// Where the recording lies.
    pub recording: String,
    /// What kind of rows.
    pub kind: Kind,
    /// UTC start, RFC 3339.
    pub started_at: String,
    /// Its factors.
    pub condition: Condition,
    /// The address measured to, where one was reached.
    pub peer_address: Option<String>,
    /// When it was to end.
    pub stop: StopWhen,
    /// How it ended.
    pub ending: RunEnding,
    /// Whether probes carried a tag.
    pub authenticated: bool,
    /// What became of the measured probes.
    pub counts: Counts,
    /// From the first measured probe to the last answer or send.
    pub duration_ns: Nanos,
    /// Time that a closed loop waited for answers that did not come in time, after the warm-up.
    pub timed_out_ns: Nanos,
    /// Time that a closed loop paused after refused sends, after the warm-up.
    pub refused_pause_ns: Nanos,
    /// Datagrams that were no valid answer: reason → count.
    pub strays: BTreeMap<String, u64>,
    /// What the network said of measured probes (ICMP): name of the errno → count.
    pub socket_errors: BTreeMap<String, u64>,
    /// Shares.
    pub ratios: Ratios,
    /// Statistics of each metric that has data.
    pub metrics: BTreeMap<Metric, Description>,
    /// The round trips, for drawing.
    pub histogram: Vec<Bucket>,
    /// What wake-ups say beyond their latency; none of a run of something else.
    pub wakeups: Option<Wakeups>,
    /// What a stream came to; none of a run of something else.
    pub stream: Option<StreamFigures>,
    /// Slow probes beside late wake-ups; none without wake-ups beside the probes.
    pub coincidence: Option<Coincidence>,
    /// The deadline, if one was given.
    pub deadline: Option<Deadline>,
    /// How long a window is, if any were asked for.
    pub window_ns: Option<Nanos>,
    /// The windows, in order.
    pub windows: Vec<Window>,
    /// What its loads reached.
    pub loads: Vec<LoadReport>,
    /// The floor.
    pub instrument: Instrument,
    /// What to know before believing any of it, worst first.
    pub caveats: Vec<Caveat>,
}

impl Summary {
    /// Whether a fatal caveat says that the figures must not be trusted (exit code 4).
    pub fn is_trustworthy(&self) -> bool {
        self.caveats.iter().all(|caveat| caveat.severity != Severity::Fatal)
    }
}

/// Why there is no summary.
#[derive(Debug, Error)]
pub enum AnalysisError<E: std::error::Error + 'static> {
    /// The rows cannot be read.
    #[error(transparent)]
    Source(#[from] E),
    /// The windows are too short for this run.
    #[error("cannot cut {} into windows of `{}`", human::span(*.duration), human::span(*.window))]
    TooManyWindows {
        /// The run's length.
        duration: Nanos,
        /// The window asked for.
        window: Nanos,
    },
}

impl<E: Explain + 'static> Explain for AnalysisError<E> {
    fn explain(&self) -> Failure {
        match self {
            AnalysisError::Source(error) => error.explain(),
            AnalysisError::TooManyWindows { duration, .. } => {
                let enough = Nanos((duration.0 / 100_000 + 1) * 1_000);
                Failure::request(self)
                    .because(format!("more than {} windows", human::grouped(MOST_WINDOWS as u64)))
                    .hint(format!("`--window {}` gives a hundred", human::typed_span(enough)))
            }
        }
    }
}

/// Summarises a recording.
pub fn summarise<S: ProbeSource>(source: &S, wishes: &SummaryOptions) -> Result<Summary, AnalysisError<S::Error>> {
    let manifest = source.manifest();
    if manifest.kind == Kind::Stream {
        return Ok(summarise_stream(source, wishes)?);
    }
    let describing = describing(manifest, wishes);
    let mut tally = RunCounts::new(wishes.judging.deadline_ns, manifest.spec.schedule().interval());
    let mut round_trips = Singletons::of(manifest.kind.metric(), manifest.rows);
    let mut windows = wishes.judging.window_ns.map(|length| Windows::of(length, &describing));
    let mut wakeups = manifest.spec.wakeup().map(|spec| (spec, WakeupAccumulator::of(spec)));
    let mut gatherers: Vec<&mut dyn RowVisitor> = vec![&mut tally, &mut round_trips];
    gatherers.extend(wakeups.as_mut().map(|(_, course)| course as &mut dyn RowVisitor));
    gatherers.extend(windows.as_mut().map(|windows| windows as &mut dyn RowVisitor));
    feed(source, &mut gatherers)?;

    let round_trips = round_trips.sample();
    let mut metrics = BTreeMap::new();
    let histogram = histogram(&round_trips);
    let round_trip = describe(&round_trips, &describing);
    let mut intervals = ShareIntervals::wished(wishes, manifest);
    intervals.gather(&round_trips);
    drop(round_trips); // one sample at a time: each is 80 MB at ten million probes
    if wishes.metrics.contains(&Metric::Pdv) && round_trip.min.is_some() {
        metrics.insert(Metric::Pdv, less_minimum(&round_trip));
    }
    metrics.insert(manifest.kind.metric(), round_trip);
    describe_others(source, wishes, &describing, &mut metrics, &mut intervals)?;
    let coincidence = coincidence(source, wishes.judging.deadline_ns, &describing)?;

    let windows = match windows.map(Windows::finish) {
        Some(None) => Err(too_many_windows(&tally, wishes)),
        windows => Ok(windows.flatten().unwrap_or_default()),
    }?;
    let mut refusals = Refusals::default();
    if tally.counts.send_failed > 0 {
        feed(source, &mut [&mut refusals])?;
    }
    let mut hosts = BTreeMap::new();
    source.visit_hosts(&mut |side, sample| HostAccumulator::gather(&mut hosts, side, sample))?;
    let described = metrics.get(&manifest.kind.metric());
    let finish = |(spec, course): (_, WakeupAccumulator)| {
        course.finish((manifest, spec), hosts.get(&Side::Local), described, &describing)
    };
    let wakeups = wakeups.map(finish);
    let caveats =
        caveats::derive(manifest, (&tally, &refusals), &metrics, (&hosts, wakeups.as_ref(), coincidence.as_ref()));
    let figures =
        SummaryFigures { metrics, histogram, windows, wakeups, coincidence, stream: None, intervals, caveats };
    Ok(assemble(source, &tally, wishes, figures))
}

/// How to describe every sample. The seed comes from the run, so that a recording always gives the same figures.
pub(super) fn describing(manifest: &Manifest, wishes: &SummaryOptions) -> DescribeOptions {
    DescribeOptions {
        quantiles: wishes.judging.quantiles.clone(),
        confidence: defaults::CONFIDENCE,
        intervals: wishes.intervals,
        seed: u64::from_str_radix(&manifest.run_id, 16).unwrap_or(0),
    }
}

/// Describes the metrics that need a pass of their own, one after the other. On a schedule the ones that
/// need a due time are there even when nothing was measured.
fn describe_others<S: ProbeSource>(
    source: &S,
    wishes: &SummaryOptions,
    describing: &DescribeOptions,
    metrics: &mut BTreeMap<Metric, Description>,
    intervals: &mut ShareIntervals,
) -> Result<(), S::Error> {
    let scheduled = source.manifest().spec.schedule().interval().is_some();
    let kind = source.manifest().kind;
    for metric in wishes.metrics.iter().copied().filter(|metric| kind.metrics().contains(metric)) {
        let of_schedule = matches!(metric, Metric::ResponseTime | Metric::SendSlip);
        if metrics.contains_key(&metric) || metric == Metric::Pdv || (of_schedule && !scheduled) {
            continue;
        }
        let sample = sample(source, metric)?;
        intervals.gather(&sample);
        if of_schedule || sample.n() > sample.infinite {
            metrics.insert(metric, describe(&sample, describing));
        }
    }
    Ok(())
}

/// The description of `of` minus its own minimum: every statistic of place moves by it, none of spread does.
fn less_minimum(of: &Description) -> Description {
    let minimum = of.min.unwrap_or(0);
    let shift = |value: Option<f64>| value.map(|value| value - minimum as f64);
    let mut pdv = of.clone();
    pdv.min = of.min.map(|_| 0);
    pdv.max = of.max.map(|max| max.saturating_sub(minimum));
    pdv.mean = shift(of.mean);
    let intervals = pdv.quantiles.iter_mut().filter_map(|quantile| quantile.interval.as_mut());
    for interval in intervals.chain(pdv.mean_interval.as_mut()) {
        (interval.low, interval.high) = (shift(interval.low), shift(interval.high));
    }
    for quantile in &mut pdv.quantiles {
        (quantile.value, quantile.lower_bound) = (shift(quantile.value), shift(quantile.lower_bound));
    }
    pdv
}

fn too_many_windows<E: std::error::Error>(tally: &RunCounts, wishes: &SummaryOptions) -> AnalysisError<E> {
    let window = wishes.judging.window_ns.unwrap_or_default();
    AnalysisError::TooManyWindows { duration: tally.duration(), window }
}

/// What makes a summary beside its counts.
pub(super) struct SummaryFigures {
    pub(super) metrics: BTreeMap<Metric, Description>,
    pub(super) histogram: Vec<Bucket>,
    pub(super) windows: Vec<Window>,
    pub(super) wakeups: Option<Wakeups>,
    pub(super) coincidence: Option<Coincidence>,
    pub(super) stream: Option<StreamFigures>,
    pub(super) intervals: ShareIntervals,
    pub(super) caveats: Vec<Caveat>,
}

pub(super) fn assemble<S: ProbeSource>(
    source: &S,
    tally: &RunCounts,
    wishes: &SummaryOptions,
    figures: SummaryFigures,
) -> Summary {
    let manifest = source.manifest();
    let deadline = wishes.judging.deadline_ns.map(|deadline_ns| Deadline {
        deadline_ns,
        missed: tally.missed,
        due: tally.counts.due(),
    });
    Summary {
        run: manifest.run_id.clone(),
        recording: source.place(),
        kind: manifest.kind,
        started_at: manifest.started_at.clone(),
        condition: manifest.condition.clone(),
        peer_address: manifest.run.peer_address.clone(),
        stop: manifest.spec.stop,
        ending: manifest.ending,
        authenticated: manifest.spec.authenticated,
        counts: tally.counts,
        duration_ns: tally.duration(),
        timed_out_ns: manifest.run.timed_out_ns,
        refused_pause_ns: manifest.run.refused_pause_ns,
        strays: manifest.run.strays.clone(),
        socket_errors: manifest.run.socket_errors.clone(),
        ratios: Ratios::of(&tally.counts, deadline, &figures.intervals),
        metrics: figures.metrics,
        histogram: figures.histogram,
        wakeups: figures.wakeups,
        stream: figures.stream,
        coincidence: figures.coincidence,
        deadline,
        window_ns: wishes.judging.window_ns,
        windows: figures.windows,
        loads: manifest.loads.clone(),
        instrument: manifest.instrument.clone(),
        caveats: figures.caveats,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{EVERY_MS, InMemory, but, closed};
    use crate::plan::Schedule;
    use crate::probe::Fate;

    fn summary(source: &InMemory) -> Summary {
        summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for")
    }

    #[test]
    fn a_closed_loop_has_the_metrics_that_need_no_schedule() {
        let summary = summary(&InMemory::of(Schedule::Closed, (0..20).map(|seq| closed(seq, 0, 40)).collect()));
        let metrics: Vec<_> = summary.metrics.keys().map(|metric| metric.name()).collect();
        assert_eq!(metrics, ["round_trip_delay", "round_trip_delay_less_dwell", "reflector_dwell", "pdv", "ipdv"]);
        assert_eq!(summary.run, "7f3a00112233aabb");
        assert!(summary.is_trustworthy() && !summary.histogram.is_empty());
    }

    #[test]
    fn a_run_of_nothing_still_has_its_main_metrics() {
        for (schedule, expected) in [
            (Schedule::Closed, vec![Metric::RoundTripDelay]),
            (EVERY_MS, vec![Metric::RoundTripDelay, Metric::SendSlip, Metric::ResponseTime]),
        ] {
            let summary = summary(&InMemory::of(schedule, Vec::new()));
            assert_eq!(summary.metrics.keys().copied().collect::<Vec<_>>(), expected);
            assert!(summary.metrics.values().all(|described| described.n == 0 && described.mean.is_none()));
            assert_eq!((summary.counts, summary.ratios), (Counts::default(), Ratios::default()));
        }
    }

    #[test]
    fn delay_variation_is_the_round_trip_moved_by_its_minimum() {
        let rows = (0..400).map(|seq| closed(seq, seq as i64 * 90, 40 + (seq as i64 * 31) % 17));
        let rows: Vec<_> = rows.map(|row| if row.seq.0 == 7 { but(row, Fate::Lost) } else { row }).collect();
        let source = InMemory::of(Schedule::Closed, rows);
        let moved = summary(&source).metrics[&Metric::Pdv].clone();
        let wishes = describing(&source.manifest, &SummaryOptions::of(&source.manifest.spec));
        let computed = describe(&sample(&source, Metric::Pdv).expect("rows in memory"), &wishes);
        assert_eq!(
            (moved.n, moved.lost, moved.min, moved.max),
            (computed.n, computed.lost, computed.min, computed.max)
        );
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-6,
            (a, b) => a == b,
        };
        assert!(close(moved.mean, computed.mean) && close(moved.stddev, computed.stddev));
        for (moved, computed) in moved.quantiles.iter().zip(&computed.quantiles) {
            assert!(close(moved.value, computed.value) && moved.lost == computed.lost, "{moved:?} {computed:?}");
        }
    }

    #[test]
    fn a_condition_adds_its_metric_and_its_quantile() {
        let source = InMemory::of(Schedule::Closed, vec![closed(0, 0, 40)]);
        let mut wishes = SummaryOptions { metrics: Vec::new(), ..SummaryOptions::of(&source.manifest.spec) };
        wishes.include(&FailIf::parse("ipdv p95 > 1us").expect("a condition"));
        assert_eq!(wishes.metrics, [Metric::Ipdv]);
        assert_eq!(wishes.judging.quantiles, [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999]);
    }
}
