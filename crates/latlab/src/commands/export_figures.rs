//! The formats of `latlab export` that have figures of whole runs: bins, HdrHistogram, numbers, Go benchmarks, Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use super::exported_runs::{Export, ExportBreak, ExportedRun};
use super::output_file::OutputTarget;
use crate::analysis::comparison::{ObservedRun, RunFigure, levels_of_run, parse_estimand};
use crate::analysis::{Estimand, MetricSample, Ratio, Statistic, Summary, SummaryOptions, summarise};
use crate::cli::args::ExportUnit;
use crate::diagnostics::Failure;
use crate::experiment::observe;
use crate::formats::export::benchstat::{self, BenchmarkLine};
use crate::formats::export::hlog::{HlogError, HlogRun, HlogWriter};
use crate::formats::export::prometheus::{self, PrometheusSeries};
use crate::formats::export::{ExportBatch, ExportColumn, ExportType, ExportValues};
use crate::metric::Metric;
use crate::plan::{Condition, Kind, heading_order};
use crate::platform::parallel_map;
use crate::probe::Fate;
use crate::recording::Recording;
use crate::sample::INFINITE;
use crate::units::human::{counted, general};

/// Significant digits of figures: all that two `f64` of different sources agree on.
const DIGITS: usize = 15;

/// The metric of this name, else the main one of the kind.
///
/// # Errors
/// If it is unknown, or a run can never have it.
pub(super) fn metric(export: &Export<'_>, typed: Option<&str>) -> Result<Metric, Failure> {
    let main = export.runs[0].available.main();
    let metric = match typed.map(|typed| parse_estimand(Some(typed), "mean")).transpose()? {
        Some(Estimand::Statistic(metric, _)) => metric,
        _ => main,
    };
    let has_it = |run: &ExportedRun| run.available.metrics().any(|known| known == metric);
    let Some(without) = export.runs.iter().find(|run| !has_it(run)) else { return Ok(metric) };
    let known: Vec<String> = without.available.metrics().map(|metric| format!("`{}`", metric.name())).collect();
    Err(Failure::request(format!("`{}` has no {}", without.path.display(), metric.title()))
        .because(format!("a run of this kind, protocol and schedule has {}", known.join(", ")))
        .hint("`--metric` names one of these"))
}

/// The runs that are not warm-up runs of an experiment, which are in no figure.
fn measured<'a>(export: &Export<'a>) -> Vec<&'a ExportedRun> {
    let runs: Vec<&ExportedRun> = export.runs.iter().filter(|run| !run.is_warmup()).collect();
    let left_out = export.runs.len() - runs.len();
    if left_out > 0 {
        export.console.note(&format!("left out: {} of experiments", counted(left_out, "warm-up run")));
    }
    runs
}

/// Factor and level of the condition of `run`, in the order of headings; factors without a level are left out. `none` is a
/// level where it was typed: in tags, settings and the factors of an experiment.
fn levels(run: &ExportedRun) -> Vec<(String, String)> {
    let is_of_experiment = |factor: &str| run.experiment.as_ref().is_some_and(|it| it.factors.contains_key(factor));
    let is_typed = |factor: &str| ["tag:", "setting:"].iter().any(|start| factor.starts_with(start));
    let has_level = |factor: &str, level: &str| level != "none" || is_typed(factor) || is_of_experiment(factor);
    let levels = levels_of_run(&run.condition, run.experiment.as_ref());
    let mut levels: Vec<(String, String)> =
        levels.into_iter().filter(|(factor, level)| has_level(factor, level)).collect();
    levels.sort_by_cached_key(|(factor, _)| (heading_order(factor), factor.clone()));
    levels
}

/// The columns of bins.
pub(super) fn bin_columns() -> Vec<ExportColumn> {
    let text = |name| ExportColumn { nullable: false, ..ExportColumn::nullable(name, ExportType::Text) };
    let edge = |name| ExportColumn::nullable(name, ExportType::I64);
    let count = ExportColumn { nullable: false, ..edge("count") };
    vec![text("metric"), text("unit"), edge("low"), edge("high"), count]
}

/// The bins of a run, as its summary shows them, and a last row without edges for what is infinite.
pub(super) fn bins(run: &ExportedRun, metric: Metric) -> Result<ExportBatch, Failure> {
    let sample = MetricSample::of(&Recording::open(&run.path)?, metric)?;
    let bins = sample.histogram();
    let mut low: Vec<i64> = bins.iter().map(|bin| bin.low_ns).collect();
    let mut high: Vec<i64> = bins.iter().map(|bin| bin.high_ns).collect();
    let mut counts: Vec<i64> = bins.iter().map(|bin| bin.count as i64).collect();
    let mut present = vec![true; bins.len()];
    if sample.infinite() > 0 {
        low.push(0);
        high.push(0);
        present.push(false);
        counts.push(sample.infinite() as i64);
    }
    let rows = counts.len();
    let edges = |values| ExportValues::Ints { values, present: Some(present.clone()) };
    let columns = vec![
        ExportValues::Word(metric.name()),
        ExportValues::Word(metric.unit()),
        edges(low),
        edges(high),
        ExportValues::Ints { values: counts, present: None },
    ];
    Ok(ExportBatch { rows, columns })
}

/// Counts and duration of a run, without the figures that take time.
fn counted_run(recording: &Recording) -> Result<Summary, Failure> {
    let judging = recording.manifest().spec.judging.clone();
    Ok(summarise(recording, &SummaryOptions { judging, intervals: false, metrics: Vec::new() })?)
}

/// A line of an interval log for each run, in the order of their begin.
pub(super) fn hlog(
    export: &Export<'_>,
    metric_name: Option<&str>,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    let mut runs = measured(export);
    runs.sort_by_key(|run| run.started);
    let base = runs.first().map(|run| run.started).unwrap_or_default();
    let labels = Condition::labels(&runs.iter().map(|run| &run.condition).collect::<Vec<_>>());
    let mut writer = HlogWriter::new(target, metric, base)?;
    for (run, label) in runs.into_iter().zip(labels) {
        export.expect_no_signal()?;
        let recording = Recording::open(&run.path)?;
        let length = counted_run(&recording)?.duration_ns;
        let line = HlogRun {
            tag: if label.is_empty() { &run.name } else { &label },
            run: &run.id,
            recording: &run.name,
            started: run.started,
            length: Duration::from_nanos(length.0.max(0) as u64),
            states_losses: run.states_losses,
        };
        writer.append(&line, MetricSample::of(&recording, metric)?.values()).map_err(|error| match error {
            HlogError::Refused(error) => ExportBreak::Refused(error),
            negative => Failure::request(&negative)
                .because(format!("`{}` has it, and HdrHistogram has no negative values", run.path.display()))
                .hint("`--format prometheus`, `--format values --singletons` or `--histogram`")
                .into(),
        })?;
    }
    Ok(writer.finish()?)
}

/// The runs that a comparison would compare, with the figures of `estimands`.
fn observed(export: &Export<'_>, estimands: &[Estimand]) -> Result<Vec<ObservedRun>, ExportBreak> {
    let paths: Vec<_> = export.runs.iter().map(|run| run.path.clone()).collect();
    let mut all = Vec::new();
    for at_once in paths.chunks(parallel_map::available()) {
        export.expect_no_signal()?;
        all.extend(observe(at_once, estimands, &|text| export.console.note(text))?);
    }
    let left_out = all.iter().filter(|run| run.excluded.is_some()).count();
    if left_out > 0 {
        let why = "warm-up runs, and what did not end by itself, as in a comparison";
        export.console.note(&format!("left out: {} ({why})", counted(left_out, "run")));
    }
    Ok(all)
}

/// The statistic of each run as a number, one on each line.
pub(super) fn values(
    export: &Export<'_>,
    metric_name: Option<&str>,
    statistic: &str,
    unit: ExportUnit,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    // A ratio is of the run and has no metric.
    let estimand = parse_estimand(Some(metric.name()), statistic)?;
    let is_time = matches!(estimand, Estimand::Statistic(metric, _) if !metric.is_rate());
    expect_unit(is_time, unit)?;
    let (mut infinite, mut missing) = (0, 0);
    for run in observed(export, &[estimand])?.iter().filter(|run| run.excluded.is_none()) {
        match run.figures.first() {
            Some(RunFigure::Finite { value, .. }) => {
                let scale = if is_time { 10_f64.powi(unit.decimals() as i32) } else { 1.0 };
                writeln!(target, "{}", general(value / scale, DIGITS))?;
            }
            Some(RunFigure::Infinite) => infinite += 1,
            _ => missing += 1,
        }
    }
    let without = [(infinite, "whose figure is infinite: probes were lost"), (missing, "without data for the figure")];
    for (count, why) in without.into_iter().filter(|(count, _)| *count > 0) {
        export.console.warning(&format!("left out: {} {why}", counted(count, "run")), None);
    }
    Ok(())
}

/// Each finite singleton as a number, one on each line.
pub(super) fn singletons(
    export: &Export<'_>,
    metric_name: Option<&str>,
    unit: ExportUnit,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    expect_unit(!metric.is_rate(), unit)?;
    let (mut lost, mut lines) = (0, 0_u64);
    for run in measured(export) {
        export.expect_no_signal()?;
        let sample = MetricSample::of(&Recording::open(&run.path)?, metric)?;
        lost += sample.infinite() as usize;
        let finite = sample.values().filter(|(value, _)| *value != INFINITE);
        for value in finite.flat_map(|(value, count)| (0..count).map(move |_| value)) {
            writeln!(target, "{}", decimal(value, unit))?;
            lines += 1;
            if lines.is_multiple_of(LINES_AT_ONCE) {
                export.expect_no_signal()?;
            }
        }
    }
    if lost > 0 {
        export.console.note(&format!("left out: {}, which were lost or late", counted(lost, "infinite value")));
    }
    Ok(())
}

/// Lines that are written between two looks for a signal.
const LINES_AT_ONCE: u64 = 10_000;

/// Refuses another unit for what is not a time.
fn expect_unit(is_time: bool, unit: ExportUnit) -> Result<(), Failure> {
    if is_time || unit == ExportUnit::default() {
        return Ok(());
    }
    Err(Failure::request("`--unit` needs a metric of time")
        .because("rates are in bits a second, and ratios have no unit")
        .hint("leave it out"))
}

/// `ns` in `unit`, exactly.
fn decimal(ns: i64, unit: ExportUnit) -> String {
    let digits = unit.decimals() as usize;
    if digits == 0 {
        return ns.to_string();
    }
    let scale = 10_u64.pow(unit.decimals());
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:0digits$}", ns / scale, ns % scale)
}

/// The unit of the share of lost probes.
const LOSS_RATIO: &str = "loss-ratio";

/// The figures of `metric` in a line of a Go benchmark with their units, the mean first.
fn benchmark_figures(metric: Metric) -> Vec<(Statistic, String)> {
    if metric.is_rate() {
        return vec![(Statistic::Mean, "bit/s".into()), (Statistic::Quantile(0.5), "p50-bit/s".into())];
    }
    let figures = [
        (Statistic::Mean, "ns/op"),
        (Statistic::Quantile(0.5), "p50-ns"),
        (Statistic::Quantile(0.9), "p90-ns"),
        (Statistic::Quantile(0.99), "p99-ns"),
        (Statistic::Quantile(0.999), "p99.9-ns"),
        (Statistic::Max, "max-ns"),
    ];
    figures.map(|(statistic, unit)| (statistic, unit.to_owned())).into()
}

/// A line of a Go benchmark for each run that a comparison would compare.
pub(super) fn benchstat(
    export: &Export<'_>,
    metric_name: Option<&str>,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    let figures = benchmark_figures(metric);
    let mut estimands: Vec<Estimand> = figures.iter().map(|(one, _)| Estimand::Statistic(metric, *one)).collect();
    let mut units: Vec<String> = figures.into_iter().map(|(_, unit)| unit).collect();
    if export.kind.has_target() {
        estimands.push(Estimand::Ratio(Ratio::Loss));
        units.push(LOSS_RATIO.into());
    }
    benchstat::write_header(target, metric)?;
    let (mut unanswered, mut infinite) = (0, vec![0; units.len()]);
    for (run, observed) in export.runs.iter().zip(observed(export, &estimands)?) {
        export.expect_no_signal()?;
        if observed.excluded.is_some() {
            continue;
        }
        // A result of the format has at least one value, and the first is the mean over what was answered.
        if observed.figures.first().and_then(|mean| mean.value()).is_none() {
            unanswered += 1;
            continue;
        }
        let mut values = Vec::new();
        for (place, (figure, unit)) in observed.figures.iter().zip(&units).enumerate() {
            match figure {
                RunFigure::Finite { value, .. } if unit != LOSS_RATIO || run.states_losses => {
                    values.push((*value, unit.clone()));
                }
                RunFigure::Infinite => infinite[place] += 1,
                RunFigure::Finite { .. } | RunFigure::Nothing => {}
            }
        }
        let iterations = observed.losses.sent.saturating_sub(observed.losses.unanswered).max(1);
        benchstat::write_line(target, &BenchmarkLine { metric, levels: &levels(run), iterations, values: &values })?;
    }
    if unanswered > 0 {
        let text = format!("left out: {} without a finite value: nothing was answered", counted(unanswered, "run"));
        export.console.warning(&text, None);
    }
    for (unit, runs) in units.iter().zip(infinite).filter(|(_, runs)| *runs > 0) {
        let text = format!("left out: {unit} of {}, which is infinite: probes were lost", counted(runs, "run"));
        export.console.warning(&text, None);
    }
    Ok(())
}

/// The series of each condition.
pub(super) fn prometheus(
    export: &Export<'_>,
    metric_name: Option<&str>,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    let mut places: BTreeMap<Vec<(String, String)>, usize> = BTreeMap::new();
    let mut series: Vec<PrometheusSeries> = Vec::new();
    let mut without_losses: BTreeSet<usize> = BTreeSet::new();
    for run in measured(export) {
        export.expect_no_signal()?;
        let recording = Recording::open(&run.path)?;
        let labels = levels(run);
        let place = *places.entry(labels.clone()).or_insert(series.len());
        if place == series.len() {
            series.push(PrometheusSeries::of(labels));
        }
        let own = &mut series[place];
        own.add(metric, MetricSample::of(&recording, metric)?.values());
        let began = run.is_start_known.then_some(run.started.as_secs_f64());
        own.started = [own.started, began].into_iter().flatten().reduce(f64::max);
        if !run.states_losses {
            without_losses.insert(place);
        } else if matches!(run.kind, Kind::Ping | Kind::Values) {
            for (fate, probes) in fates(run, &recording)? {
                *own.fates.entry(fate).or_default() += probes;
            }
        }
    }
    // Counters of some of its runs would be read as those of all.
    without_losses.into_iter().for_each(|place| series[place].fates.clear());
    export.expect_no_signal()?;
    Ok(prometheus::write(target, metric, &series)?)
}

/// Measured probes by fate. A log of another tool has answered and lost ones only.
fn fates(run: &ExportedRun, recording: &Recording) -> Result<Vec<(&'static str, u64)>, Failure> {
    let counts = counted_run(recording)?.counts;
    let known: &[Fate] = if run.is_imported { &[Fate::Answered, Fate::Lost] } else { &Fate::ALL };
    let counted = |fate: &Fate| {
        let probes = match fate {
            Fate::Answered => counts.answered,
            Fate::Late => counts.late,
            Fate::Lost => counts.lost,
            Fate::SendFailed => counts.send_failed,
            Fate::NotSent => counts.not_sent,
        };
        (fate.word(), probes)
    };
    Ok(known.iter().map(counted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_exact_in_every_unit() {
        for (ns, unit, expected) in [
            (45_120, ExportUnit::Ns, "45120"),
            (45_120, ExportUnit::Us, "45.120"),
            (-7, ExportUnit::Us, "-0.007"),
            (9_007_199_254_740_993, ExportUnit::S, "9007199.254740993"),
        ] {
            assert_eq!(decimal(ns, unit), expected);
        }
    }
}
