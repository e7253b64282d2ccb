//! Computes the summary of one run from its recording, so that it is the same right after the run and years later.

use std::collections::BTreeMap;

use super::caveats::Run;
use super::counts::{Ratios, RunCounts, SendErrors, ShareIntervals};
use super::executions;
use super::host_samples::HostAccumulators;
use super::metric_sample::MetricSample;
use super::one_way::one_way;
use super::ping::{Placed, Placements, RunPlacement, SpinStalls, WatchedSlots, Windows, watched_slots};
use super::singletons::{Singletons, is_on_schedule, sample};
use super::source::{ProbeSource, RowVisitor, visit_rows};
use super::stream::{self, StreamAccumulator};
use super::summary::{AnalysisError, Summary, SummaryOptions};
use super::wakeup::WakeupAccumulator;
use crate::diagnostics::Caveat;
use crate::facts::{Instrument, XdpEnds};
use crate::metric::Metric;
use crate::plan::{Kind, defaults};
use crate::recording::manifest::Manifest;
use crate::stats::{DescribeOptions, Description, describe};
use crate::units::Nanos;

pub fn summarise<S: ProbeSource>(source: &S, options: &SummaryOptions) -> Result<Summary, AnalysisError<S::Error>> {
    expect_quantiles(&options.judging.quantiles)?;
    match source.manifest().kind {
        Kind::Stream => Ok(of_stream(source, options)?),
        Kind::Values => Ok(of_values(source, options)?),
        Kind::Ping | Kind::Wakeup | Kind::Command => of_probes(source, options),
    }
}

/// Refuses quantiles that a damaged manifest may have.
fn expect_quantiles<E: std::error::Error>(quantiles: &[f64]) -> Result<(), AnalysisError<E>> {
    let (outside, count) = (quantiles.iter().copied().find(|q| !(0.0..=1.0).contains(q)), quantiles.len());
    if outside.is_some() || count > defaults::SUMMARY_QUANTILES_MAX {
        Err(AnalysisError::Quantiles { outside, count })
    } else {
        Ok(())
    }
}

/// The summary of a run of probes, or of wake-ups or executions, whose rows are visited as probes.
fn of_probes<S: ProbeSource>(source: &S, options: &SummaryOptions) -> Result<Summary, AnalysisError<S::Error>> {
    let manifest = source.manifest();
    let describing = describe_options(options);
    let mut counts = RunCounts::new(options.judging.deadline_ns, manifest.spec.schedule().interval());
    let mut main = Singletons::of(manifest.metric(), manifest);
    let mut windows = options.judging.window_ns.map(|length| Windows::of(length, &describing));
    let mut wakeups = manifest.spec.wakeup().map(WakeupAccumulator::of);
    let mut visitors: Vec<&mut dyn RowVisitor> = vec![&mut counts, &mut main];
    visitors.extend(wakeups.as_mut().map(|wakeups| wakeups as &mut dyn RowVisitor));
    visitors.extend(windows.as_mut().map(|windows| windows as &mut dyn RowVisitor));
    visit_rows(source, &mut visitors)?;

    counts.add_lost(manifest.lost_without_row());
    let main = MetricSample::of_main(main.sample(), manifest);
    let mut summary = Summary { window_ns: options.judging.window_ns, ..of_manifest(source, &counts) };
    let mut intervals = share_intervals(manifest, options);
    // One sample at a time: each takes 80 MB at ten million probes.
    describe_main(&main, options, &describing, &mut intervals, &mut summary);
    describe_others(source, options, &describing, &mut intervals, &mut summary.metrics)?;
    if options.one_way && manifest.kind == Kind::Ping {
        summary.one_way = one_way(source, &describing)?;
    }
    summary.windows = match windows.map(Windows::finish) {
        Some(None) => {
            let (duration, window) = (counts.duration(), options.judging.window_ns.unwrap_or_default());
            return Err(AnalysisError::TooManyWindows { duration, window });
        }
        windows => windows.flatten().unwrap_or_default(),
    };
    summary.deadline = counts.deadline(options.judging.deadline_ns);
    summary.ratios = known_ratios(manifest, Ratios::of(&counts.counts, summary.deadline, &intervals));

    summary.executions = executions::figures(source)?;
    let hosts = host_samples(source)?;
    let described = summary.metrics.get(&manifest.metric());
    summary.wakeups = wakeups
        .zip(manifest.spec.wakeup())
        .map(|(wakeups, spec)| wakeups.finish(manifest, spec, described, &describing));
    let found = RowFindings::of(source, &counts)?;
    summary.caveats = Run {
        described,
        lost: intervals.lost(),
        wakeups: summary.wakeups.as_ref(),
        ..found.run(manifest, &hosts, &counts)
    }
    .caveats();
    Ok(summary)
}

/// What the rows of a run of probes or wake-ups say besides their figures.
#[derive(Default)]
struct RowFindings {
    errors: SendErrors,
    stalls: Option<SpinStalls>,
    placed: Option<Placed>,
    watched: Option<WatchedSlots>,
}

impl RowFindings {
    fn of<S: ProbeSource>(source: &S, counts: &RunCounts) -> Result<RowFindings, S::Error> {
        let manifest = source.manifest();
        if manifest.spec.import().is_some() {
            return Ok(RowFindings::default());
        }
        let mut errors = (counts.counts.send_failed > 0).then(SendErrors::default);
        let (mut placements, mut stalls) = (Placements::of(manifest), SpinStalls::of(manifest));
        let mut visitors: Vec<&mut dyn RowVisitor> = Vec::new();
        visitors.extend(errors.as_mut().map(|errors| errors as &mut dyn RowVisitor));
        visitors.extend(placements.as_mut().map(|placements| placements as &mut dyn RowVisitor));
        visitors.extend(stalls.as_mut().map(|stalls| stalls as &mut dyn RowVisitor));
        if !visitors.is_empty() {
            visit_rows(source, &mut visitors)?;
        }
        let placed = placements.and_then(Placements::finish);
        Ok(RowFindings { errors: errors.unwrap_or_default(), stalls, placed, watched: watched_slots(source)? })
    }

    fn run<'a>(&'a self, manifest: &'a Manifest, hosts: &'a HostAccumulators, counts: &'a RunCounts) -> Run<'a> {
        Run {
            counts: Some(counts).filter(|_| manifest.spec.import().is_none() && manifest.kind != Kind::Command),
            errors: Some(&self.errors),
            stalls: self.stalls.as_ref(),
            placed: self.placed.as_ref(),
            watched: self.watched,
            ..Run::of(manifest, hosts)
        }
    }
}

/// The placement of a run of probes or wake-ups, and the caveats that its summary has, but for those of single figures.
pub(super) fn findings_of_probes<S: ProbeSource>(
    source: &S,
    counts: &RunCounts,
    wakeups: Option<WakeupAccumulator>,
) -> Result<(Vec<Caveat>, Option<RunPlacement>), S::Error> {
    let manifest = source.manifest();
    let hosts = host_samples(source)?;
    let found = RowFindings::of(source, counts)?;
    let describing = describe_options(&without_intervals(manifest));
    let wakeups =
        wakeups.zip(manifest.spec.wakeup()).map(|(wakeups, spec)| wakeups.finish(manifest, spec, None, &describing));
    let run = Run { wakeups: wakeups.as_ref(), ..found.run(manifest, &hosts, counts) };
    let placement = found.placed.as_ref().and_then(Placed::placement).or_else(|| RunPlacement::of_pins(manifest));
    Ok((run.caveats(), placement))
}

/// The caveats that the summary of a stream has, but for those of single figures.
pub(super) fn caveats_of_stream<S: ProbeSource>(
    source: &S,
    intervals: &StreamAccumulator,
) -> Result<Vec<Caveat>, S::Error> {
    let manifest = source.manifest();
    let figures = stream::figures(source, intervals, &describe_options(&without_intervals(manifest)))?;
    Ok(Run { stream: Some(&figures), ..Run::of(manifest, &host_samples(source)?) }.caveats())
}

fn without_intervals(manifest: &Manifest) -> SummaryOptions {
    SummaryOptions { intervals: false, ..SummaryOptions::of(&manifest.spec) }
}

/// The summary of a stream, whose intervals are read once.
fn of_stream<S: ProbeSource>(source: &S, options: &SummaryOptions) -> Result<Summary, S::Error> {
    let manifest = source.manifest();
    let describing = describe_options(options);
    let intervals = StreamAccumulator::of(source)?;
    let figures = stream::figures(source, &intervals, &describing)?;
    let counts = RunCounts::of_counts(intervals.counts(), figures.total.duration());
    let alike = |sample: &_| describe(sample, &describing);
    let described = |metric| (metric, intervals.described(metric, manifest, &alike));
    // The log of a receiver alone has no rate of its sender.
    let has_sender = manifest.spec.import().is_none() || !figures.total.is_of_receiver_alone();
    let known = Metric::STREAM.into_iter().filter(|metric| has_sender || *metric != Metric::OfferedRate);
    let metrics: BTreeMap<Metric, Description> = known.map(described).collect();
    let hosts = host_samples(source)?;
    let delivered = metrics.get(&Metric::DeliveredRate);
    let caveats = Run { described: delivered, stream: Some(&figures), ..Run::of(manifest, &hosts) }.caveats();
    Ok(Summary {
        // Windows and deadlines of answers are refused when a stream is requested; here they are ignored.
        ratios: known_ratios(manifest, Ratios::of(&counts.counts, None, &ShareIntervals::default())),
        metrics,
        stream: Some(figures),
        caveats,
        ..of_manifest(source, &counts)
    })
}

/// `ratios` without those that a log of another tool does not have.
fn known_ratios(manifest: &Manifest, ratios: Ratios) -> Ratios {
    match manifest.spec.import() {
        Some(import) => Ratios {
            loss: ratios.loss.filter(|_| import.states_losses),
            loss_interval: ratios.loss_interval.filter(|_| import.states_losses),
            late: None,
            reordered: None,
            duplicate: None,
            ..ratios
        },
        None => ratios,
    }
}

/// The summary of values of an imported log.
fn of_values<S: ProbeSource>(source: &S, options: &SummaryOptions) -> Result<Summary, S::Error> {
    let manifest = source.manifest();
    let sample = MetricSample::of_values(source)?;
    let counts = RunCounts::of_counts(sample.counts(), Nanos::ZERO);
    let described = sample.describe(&describe_options(options));
    let deadline = sample.deadline(options.judging.deadline_ns);
    let mut intervals = share_intervals(manifest, options);
    sample.ordered().into_iter().for_each(|sample| intervals.take(sample));
    let hosts = HostAccumulators::new();
    let caveats = Run { described: Some(&described), lost: intervals.lost(), ..Run::of(manifest, &hosts) }.caveats();
    Ok(Summary {
        ratios: known_ratios(manifest, Ratios::of(&counts.counts, deadline, &intervals)),
        histogram: sample.histogram(),
        metrics: BTreeMap::from([(manifest.metric(), described)]),
        deadline,
        caveats,
        ..of_manifest(source, &counts)
    })
}

/// A summary of what the manifest and the counts say, without figures.
fn of_manifest<S: ProbeSource>(source: &S, counts: &RunCounts) -> Summary {
    let manifest = source.manifest();
    Summary {
        run: manifest.run_id.clone(),
        recording: source.location(),
        kind: manifest.kind,
        metric: manifest.metric(),
        is_imported: manifest.spec.import().is_some(),
        knows_losses: manifest.spec.knows_losses(),
        started_at: manifest.started_at.clone(),
        spec: manifest.spec.clone(),
        experiment: manifest.experiment.clone(),
        peer_address: manifest.run.peer_address.clone(),
        ending: manifest.ending,
        counts: counts.counts,
        duration_ns: counts.duration(),
        timed_out_ns: manifest.run.timed_out_ns,
        refused_pause_ns: manifest.run.refused_pause_ns,
        discovery_ns: manifest.run.dds.as_ref().map(|dds| dds.discovery_ns),
        xdp: XdpEnds { sender: manifest.run.xdp.clone(), reflector: manifest.run.xdp_reflector.clone() },
        strays: manifest.run.strays.clone(),
        socket_errors: manifest.run.socket_errors.clone(),
        ratios: Ratios::default(),
        metrics: BTreeMap::new(),
        histogram: Vec::new(),
        wakeups: None,
        executions: None,
        stream: None,
        extremes: None,
        one_way: None,
        deadline: None,
        window_ns: None,
        windows: Vec::new(),
        loads: manifest.loads.clone(),
        instrument: instrument(manifest),
        caveats: Vec::new(),
        gates: Vec::new(),
    }
}

/// The cost of the instrument. Earlier versions recorded a bare loop also for runs in other conditions.
fn instrument(manifest: &Manifest) -> Instrument {
    let mut instrument = manifest.instrument.clone();
    let conditions = manifest.spec.bare_conditions();
    instrument.bare_loop = instrument.bare_loop.filter(|bare| conditions.as_ref() == Ok(&bare.conditions));
    instrument
}

/// How to describe every sample.
fn describe_options(options: &SummaryOptions) -> DescribeOptions {
    DescribeOptions {
        quantiles: options.judging.quantiles.clone(),
        confidence: defaults::CONFIDENCE,
        intervals: options.intervals,
    }
}

/// The intervals of ratios that `options` ask for.
fn share_intervals(manifest: &Manifest, options: &SummaryOptions) -> ShareIntervals {
    if !options.intervals {
        return ShareIntervals::default();
    }
    let main = manifest.metric();
    let waited = match (manifest.kind, manifest.spec.schedule().interval()) {
        (Kind::Ping, Some(_)) => Metric::ResponseTime,
        _ => main,
    };
    ShareIntervals::of(main, options.judging.deadline_ns, waited)
}

/// Describes the main metric, and from it delay variation.
fn describe_main(
    sample: &MetricSample,
    options: &SummaryOptions,
    describing: &DescribeOptions,
    intervals: &mut ShareIntervals,
    summary: &mut Summary,
) {
    summary.histogram = sample.histogram();
    let described = sample.describe(describing);
    sample.ordered().into_iter().for_each(|sample| intervals.take(sample));
    if options.metrics.contains(&Metric::Pdv) && described.n > 0 && summary.kind != Kind::Command {
        summary.metrics.insert(Metric::Pdv, less_minimum(&described));
    }
    summary.metrics.insert(summary.metric, described);
}

/// Describes the metrics that need a pass of their own, one after the other. On a schedule, those that need a due time
/// are described even if nothing was measured; others that are infinite throughout, only if no probe was answered.
fn describe_others<S: ProbeSource>(
    source: &S,
    options: &SummaryOptions,
    describing: &DescribeOptions,
    intervals: &mut ShareIntervals,
    metrics: &mut BTreeMap<Metric, Description>,
) -> Result<(), S::Error> {
    let has_schedule = source.manifest().spec.schedule().interval().is_some();
    let kind = source.manifest().kind;
    let is_all_unanswered = metrics.get(&kind.metric()).is_some_and(|main| main.n == main.lost);
    let known = source.manifest().spec.metrics();
    let is_asked = |metric: &Metric| matches!(metric, Metric::Printed(_)) || options.metrics.contains(metric);
    for metric in known.into_iter().filter(is_asked) {
        let on_schedule = is_on_schedule(metric);
        if metrics.contains_key(&metric) || metric == Metric::Pdv || (on_schedule && !has_schedule) {
            continue;
        }
        let sample = sample(source, metric)?;
        intervals.take(&sample);
        let is_unanswered = sample.n() == sample.infinite;
        if on_schedule || !is_unanswered || (sample.n() > 0 && is_all_unanswered) {
            metrics.insert(metric, describe(&sample, describing));
        }
    }
    Ok(())
}

/// The description of `of` minus its own minimum: statistics of location move by it, those of scale stay.
fn less_minimum(of: &Description) -> Description {
    let minimum = of.min.unwrap_or(0.0);
    of.clone().relocated(|figure| figure - minimum)
}

fn host_samples<S: ProbeSource>(source: &S) -> Result<HostAccumulators, S::Error> {
    let mut hosts = HostAccumulators::new();
    source.visit_host_samples(&mut |side, sample| hosts.entry(side).or_default().take(sample))?;
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueGates;
    use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed};
    use crate::probe::Fate;

    fn summary(source: &InMemory) -> Summary {
        summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for")
    }

    #[test]
    fn a_closed_loop_has_no_metric_of_a_schedule() {
        let summary = summary(&InMemory::of(CLOSED, (0..20).map(|seq| closed(seq, 0, 40)).collect()));
        let metrics: Vec<_> = summary.metrics.keys().map(|metric| metric.name()).collect();
        assert_eq!(metrics, ["round_trip_delay", "round_trip_delay_less_dwell", "reflector_dwell", "pdv", "ipdv"]);
        assert_eq!(summary.run, "7f3a00112233aabb");
        assert!(summary.is_trustworthy() && !summary.histogram.is_empty());
    }

    #[test]
    fn a_run_without_rows_has_its_main_metrics() {
        for (schedule, expected) in [
            (CLOSED, vec![Metric::RoundTripDelay]),
            (EVERY_MS, vec![Metric::RoundTripDelay, Metric::SendSlip, Metric::ResponseTime]),
        ] {
            let summary = summary(&InMemory::of(schedule, Vec::new()));
            assert_eq!(summary.metrics.keys().copied().collect::<Vec<_>>(), expected);
            assert!(summary.metrics.values().all(|described| described.n == 0 && described.mean.is_none()));
            assert_eq!((summary.counts.due(), summary.ratios), (0, Ratios::default()));
        }
    }

    #[test]
    fn delay_variation_is_the_round_trip_less_its_minimum() {
        let rows = (0..400).map(|seq| closed(seq, seq as i64 * 90, 40 + (seq as i64 * 31) % 17));
        let rows: Vec<_> = rows.map(|row| if row.seq.0 == 7 { but(row, Fate::Lost) } else { row }).collect();
        let source = InMemory::of(CLOSED, rows);
        let moved = summary(&source).metrics[&Metric::Pdv].clone();
        let options = describe_options(&SummaryOptions::of(&source.manifest.spec));
        let computed = describe(&sample(&source, Metric::Pdv).expect("rows in memory"), &options);
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
    fn metrics_of_a_run_without_an_answer_are_infinite() {
        let rows = (0..20).map(|seq| but(closed(seq, 0, 40), Fate::Lost)).collect();
        let summary = summary(&InMemory::of(CLOSED, rows));
        for metric in [Metric::RoundTripDelay, Metric::RoundTripDelayLessDwell, Metric::Pdv] {
            let described = &summary.metrics[&metric];
            assert_eq!((described.n, described.lost, described.mean), (20, 20, None), "{metric:?}");
            assert!(described.quantiles.iter().all(|quantile| quantile.lost && quantile.value.is_none()), "{metric:?}");
        }
        // Without stamps of the reflector some probes are answered, and the delay less dwell is unknown, not infinite.
        let mut rows: Vec<_> = (0..20).map(|seq| closed(seq, 0, 40)).collect();
        rows.iter_mut().for_each(|row| (row.reflector_received, row.reflector_sent) = (None, None));
        rows[3] = but(rows[3].clone(), Fate::Lost);
        let summary = super::tests::summary(&InMemory::of(CLOSED, rows));
        assert!(!summary.metrics.contains_key(&Metric::RoundTripDelayLessDwell));
    }

    #[test]
    fn a_gate_adds_its_metric_and_its_quantile() {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 40)]);
        let mut options = SummaryOptions { metrics: Vec::new(), ..SummaryOptions::of(&source.manifest.spec) };
        ValueGates::parse(&["ipdv p95 <= 1us".into()], false).expect("a gate").include(&mut options);
        assert_eq!(options.metrics, [Metric::Ipdv]);
        assert_eq!(options.judging.quantiles, [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999]);
    }
}
