//! The formats of `latlab export` that have figures of whole runs: bins, HdrHistogram, numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use super::exported_runs::{Export, ExportBreak, ExportedRun};
use super::output_file::OutputTarget;
use crate::analysis::comparison::{ObservedRun, RunFigure, levels_of_run, parse_estimand};
use crate::analysis::{Estimand, MetricSample, Statistic, Summary, SummaryOptions, summarise};
use crate::diagnostics::{Explain, Failure};
use crate::experiment::observe;
use crate::formats::export::hlog::{HlogError, HlogRun, HlogWriter};
use crate::metric::Metric;
use crate::plan::{Factors, Kind, heading_order};
use crate::platform::parallel_map;
use crate::recording::{Column, ColumnSpec, ColumnType, Recording, UniformBatch, WordColumn};
use crate::sample::INFINITE;
use crate::units::human::{TimeUnit, counted, general};

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
    let is_choice = without.takes_metric && Metric::VALUES.contains(&metric);
    let again = is_choice.then(|| format!("import the log again with `--metric {}`; ", metric.name()));
    Err(Failure::request(format!("`{}` has no {}", without.path.display(), metric.title()))
        .because(absence(without, metric, &known.join(", ")))
        .hint(again.unwrap_or_default() + "`--metric` names one that all runs have"))
}

/// Why `run` has no `metric` but those that are `known`.
fn absence(run: &ExportedRun, metric: Metric, known: &str) -> String {
    match (run.is_imported, run.kind) {
        (false, _) => format!("a run of this kind, protocol and schedule has {known}"),
        (true, Kind::Values) => format!("this log was imported as values of {known}"),
        (true, Kind::Ping) if metric == Metric::Ipdv => format!(
            "lost packets of this log have no row, so that which others were sent one after the other is unknown: it has {known}"
        ),
        (true, _) => format!("this log has {known}"),
    }
}

/// Runs without a finite value of a metric, by the reason.
#[derive(Default)]
pub(super) struct ValuelessRuns {
    unanswered: usize,
    /// The metric is not defined for any of what was.
    undefined: usize,
}

impl ValuelessRuns {
    fn add(&mut self, is_unanswered: bool) {
        *(if is_unanswered { &mut self.unanswered } else { &mut self.undefined }) += 1;
    }

    /// Counts the run of `recording` if its `sample` has no finite value.
    fn look_at(&mut self, recording: &Recording, sample: &MetricSample) -> Result<(), Failure> {
        if sample.finite() == 0 {
            let counts = counted_run(recording)?.counts;
            self.add(counts.sent > 0 && counts.unanswered() == counts.sent);
        }
        Ok(())
    }

    /// Warns of them. `what` is what became of them: `left out: `.
    pub(super) fn warn(&self, export: &Export<'_>, what: &str, metric: Metric) {
        let unanswered = (self.unanswered, ": nothing was answered".to_owned());
        for (runs, which) in [unanswered, (self.undefined, format!(" of {}", metric.title()))] {
            if runs > 0 {
                let text = format!("{what}{} without a finite value{which}", counted(runs, "run"));
                export.console.warning(&text, None);
            }
        }
    }
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

/// The runs that a comparison would compare.
fn compared<'a>(export: &Export<'a>) -> Vec<&'a ExportedRun> {
    let runs: Vec<&ExportedRun> = export.runs.iter().filter(|run| !run.is_excluded).collect();
    note_excluded(export, export.runs.len() - runs.len());
    runs
}

fn note_excluded(export: &Export<'_>, runs: usize) {
    if runs > 0 {
        let why = "warm-up runs, and what did not end by itself, as in a comparison";
        export.console.note(&format!("left out: {} ({why})", counted(runs, "run")));
    }
}

/// Factor and level of the condition of `run`, in the order of headings; factors without a level are left out. `none` is a
/// level where it was typed: in tags, settings and the factors of an experiment.
fn levels(run: &ExportedRun) -> Vec<(String, String)> {
    let has_level = |factor: &str, level: &str| level != "none" || is_typed(run, factor);
    let levels = levels_of_run(&run.spec, run.experiment.as_ref());
    let mut levels: Vec<(String, String)> =
        levels.into_iter().filter(|(factor, level)| has_level(factor, level)).collect();
    levels.sort_by_cached_key(|(factor, _)| (heading_order(factor), factor.clone()));
    levels
}

/// Whether the levels of `factor` are as they were typed.
fn is_typed(run: &ExportedRun, factor: &str) -> bool {
    let is_named = ["tag:", "setting:"].iter().any(|start| factor.starts_with(start));
    is_named || run.experiment.as_ref().is_some_and(|it| it.factors.contains_key(factor))
}

pub(super) fn bin_columns() -> Vec<ColumnSpec> {
    vec![
        ColumnSpec::required("metric", ColumnType::Word),
        ColumnSpec::required("unit", ColumnType::Word),
        ColumnSpec::nullable("low", ColumnType::I64),
        ColumnSpec::nullable("high", ColumnType::I64),
        ColumnSpec::required("count", ColumnType::I64),
    ]
}

/// The bins of a run, as its summary shows them, and a last row without edges for what is infinite.
pub(super) fn bins(run: &ExportedRun, metric: Metric, valueless: &mut ValuelessRuns) -> Result<UniformBatch, Failure> {
    let recording = Recording::open(&run.path)?;
    expect_distribution(metric)?;
    let sample = MetricSample::of(&recording, metric)?;
    valueless.look_at(&recording, &sample)?;
    let bins = sample.histogram();
    let infinite = Some(sample.infinite()).filter(|infinite| *infinite > 0);
    let rows = bins.iter().map(|bin| (Some(bin.low_ns), Some(bin.high_ns), bin.count));
    let rows: Vec<_> = rows.chain(infinite.map(|infinite| (None, None, infinite))).collect();
    let columns = vec![
        Column::Words(WordColumn::All(metric.name())),
        Column::Words(WordColumn::All(metric.unit())),
        Column::Ints(rows.iter().map(|row| row.0).collect()),
        Column::Ints(rows.iter().map(|row| row.1).collect()),
        Column::Ints(rows.iter().map(|row| Some(row.2 as i64)).collect()),
    ];
    Ok(UniformBatch { rows: rows.len(), columns })
}

/// Counts and duration of a run, without the figures that take time.
fn counted_run(recording: &Recording) -> Result<Summary, Failure> {
    let judging = recording.manifest().spec.judging.clone();
    Ok(summarise(recording, &SummaryOptions { judging, intervals: false, metrics: Vec::new(), one_way: false })?)
}

/// The tag of each run: the levels in which the conditions differ, which runs of one condition share; the name of the run if all
/// are of one condition. A factor without a level is `none`, or left out where a run may have `none` as a typed level.
fn tags(runs: &[&ExportedRun]) -> Vec<String> {
    let levels: Vec<Factors> = runs.iter().map(|run| levels(run).into_iter().collect()).collect();
    let all: BTreeSet<&String> = levels.iter().flat_map(BTreeMap::keys).collect();
    let differs = |factor: &&String| levels.windows(2).any(|pair| pair[0].get(*factor) != pair[1].get(*factor));
    let mut factors: Vec<&String> = all.into_iter().filter(differs).collect();
    factors.sort_by_key(|factor| heading_order(factor));
    let tag = |(run, levels): (&&ExportedRun, &Factors)| {
        if factors.is_empty() {
            run.name.clone()
        } else {
            let level = |factor: &&String| match levels.get(*factor) {
                Some(level) => Some(format!("{factor}={level}")),
                None if runs.iter().any(|run| is_typed(run, factor)) => None,
                None => Some(format!("{factor}=none")),
            };
            let levels: Vec<String> = factors.iter().filter_map(level).collect();
            if levels.is_empty() { "none".to_owned() } else { levels.join(",") }
        }
    };
    runs.iter().zip(&levels).map(tag).collect()
}

/// A line of an interval log for each run, in the order of their begin.
pub(super) fn hlog(
    export: &Export<'_>,
    metric_name: Option<&str>,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    expect_distribution(metric)?;
    let mut runs = measured(export);
    runs.sort_by_key(|run| run.started);
    let base = runs.first().map(|run| run.started).unwrap_or_default();
    let tags = tags(&runs);
    let mut writer = HlogWriter::new(target, metric, base)?;
    let mut valueless = ValuelessRuns::default();
    for (run, tag) in runs.into_iter().zip(&tags) {
        export.expect_no_signal()?;
        let recording = Recording::open(&run.path)?;
        let Summary { counts, duration_ns: length, .. } = counted_run(&recording)?;
        let sample = MetricSample::of(&recording, metric)?;
        valueless.look_at(&recording, &sample)?;
        let is_whole = MetricSample::shows_losses(metric) && sample.finite() == counts.answered;
        let line = HlogRun {
            tag,
            run: &run.id,
            recording: &run.name,
            started: run.started,
            length: Duration::from_nanos(length.0.max(0) as u64),
            shows_losses: run.states_losses && is_whole,
        };
        writer.append(&line, sample.values()).map_err(|error| match error {
            HlogError::Refused(error) => ExportBreak::Refused(error),
            negative => Failure::request(&negative)
                .because(format!("`{}` has it, and HdrHistogram has no negative values", run.path.display()))
                .hint("`--format values --singletons` or `--histogram`")
                .into(),
        })?;
    }
    writer.finish()?;
    valueless.warn(export, "", metric);
    Ok(())
}

/// The runs that a comparison would compare, with the figures of `estimands`.
fn observed(export: &Export<'_>, estimands: &[Estimand]) -> Result<Vec<ObservedRun>, ExportBreak> {
    let paths: Vec<_> = export.runs.iter().map(|run| run.path.clone()).collect();
    let mut all = Vec::new();
    for at_once in paths.chunks(parallel_map::available()) {
        export.expect_no_signal()?;
        all.extend(observe(at_once, estimands, &|text| export.console.note(text))?);
    }
    note_excluded(export, all.iter().filter(|run| run.excluded.is_some()).count());
    Ok(all)
}

/// The statistic of each run as a number, one on each line.
pub(super) fn values(
    export: &Export<'_>,
    metric_name: Option<&str>,
    statistic: &str,
    unit: TimeUnit,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    // A ratio is of the run and has no metric.
    let estimand = parse_estimand(Some(metric.name()), statistic).map_err(|error| error.explain())?;
    let is_time = matches!(estimand, Estimand::Statistic(metric, _) if metric.is_time());
    expect_unit(is_time, unit)?;
    let (mut infinite, mut missing) = (0, 0);
    for run in observed(export, &[estimand])?.iter().filter(|run| run.excluded.is_none()) {
        match run.figures.first() {
            Some(RunFigure::Finite { value, .. }) => {
                let scale = if is_time { unit.nanos() } else { 1.0 };
                writeln!(target, "{}", general(value / scale, DIGITS))?;
            }
            Some(RunFigure::Infinite) => infinite += 1,
            _ => missing += 1,
        }
    }
    warn_left_out(export, infinite, "run", " whose statistic is infinite");
    warn_left_out(export, missing, "run", " without data for the statistic");
    Ok(())
}

pub(super) fn warn_left_out(export: &Export<'_>, count: usize, noun: &str, why: &str) {
    if count > 0 {
        export.console.warning(&format!("left out: {}{why}", counted(count, noun)), None);
    }
}

/// Mean and sample standard deviation of the finite singletons of each run, a line for each.
pub(super) fn jitter(
    export: &Export<'_>,
    metric_name: Option<&str>,
    unit: TimeUnit,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    let scale = if metric.is_time() { unit.nanos() } else { 1.0 };
    let figures = [Statistic::Mean, Statistic::Stddev].map(|of| Estimand::Statistic(metric, of));
    let mut missing = 0;
    for run in observed(export, &figures)?.iter().filter(|run| run.excluded.is_none()) {
        let [RunFigure::Finite { value: mean, .. }, RunFigure::Finite { value: stdev, .. }] = run.figures[..] else {
            missing += 1;
            continue;
        };
        writeln!(target, "mean {}\nstdev {}", general(mean / scale, DIGITS), general(stdev / scale, DIGITS))?;
    }
    warn_left_out(export, missing, "run", " without data for the statistic");
    Ok(())
}

/// Each finite singleton of the runs that a comparison would compare as a number, one on each line.
pub(super) fn singletons(
    export: &Export<'_>,
    metric_name: Option<&str>,
    unit: TimeUnit,
    target: &mut OutputTarget<'_>,
) -> Result<(), ExportBreak> {
    let metric = metric(export, metric_name)?;
    expect_distribution(metric)?;
    expect_unit(metric.is_time(), unit)?;
    let (mut lost, mut lines, mut valueless) = (0, 0_u64, ValuelessRuns::default());
    for run in compared(export) {
        export.expect_no_signal()?;
        let recording = Recording::open(&run.path)?;
        let sample = MetricSample::of(&recording, metric)?;
        valueless.look_at(&recording, &sample)?;
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
    valueless.warn(export, "", metric);
    if lost > 0 {
        export.console.note(&format!("left out: {}, which were lost or late", counted(lost, "infinite value")));
    }
    Ok(())
}

/// Lines that are written between two looks for a signal.
const LINES_AT_ONCE: u64 = 10_000;

/// Refuses numbers that a command printed where bins or times are written, which are whole.
fn expect_distribution(metric: Metric) -> Result<(), Failure> {
    if !matches!(metric, Metric::Printed(_)) {
        return Ok(());
    }
    Err(Failure::request(format!("`{}` cannot be written in this form", metric.name()))
        .because("a command printed its numbers, which may have fractions")
        .hint("`--table printed` has each number, `--format values` statistics of runs"))
}

/// Refuses another unit for what is not a time.
fn expect_unit(is_time: bool, unit: TimeUnit) -> Result<(), Failure> {
    if is_time || unit == TimeUnit::Nanos {
        return Ok(());
    }
    Err(Failure::request("`--unit` needs a metric of time")
        .because("rates and other numbers have a unit of their own, and ratios have none")
        .hint("leave it out"))
}

/// `ns` in `unit`, exactly.
fn decimal(ns: i64, unit: TimeUnit) -> String {
    let scale = unit.nanos() as u64;
    let digits = scale.ilog10() as usize;
    if digits == 0 {
        return ns.to_string();
    }
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:0digits$}", ns / scale, ns % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_exact_in_every_unit() {
        for (ns, unit, expected) in [
            (45_120, TimeUnit::Nanos, "45120"),
            (45_120, TimeUnit::Micros, "45.120"),
            (-7, TimeUnit::Micros, "-0.007"),
            (9_007_199_254_740_993, TimeUnit::Seconds, "9007199.254740993"),
        ] {
            assert_eq!(decimal(ns, unit), expected);
        }
    }
}
