//! One run as an observation of a comparison: a figure for each estimand, its levels, and its block.

use std::collections::BTreeMap;

use crate::available::AvailableFigures;
use crate::caveats::Run;
use crate::counts::{Counts, RunCounts, ratio_of};
use crate::diagnostics::{Caveat, Severity};
use crate::estimand::{Estimand, Ratio, RunFigure, Statistic};
use crate::facts::{ExperimentFacts, LoadReport};
use crate::host_samples::HostAccumulators;
use crate::metric::Metric;
use crate::metric_sample::MetricSample;
use crate::ping::RunPlacement;
use crate::plan::{Factors, Kind, RunSpec, defaults};
use crate::recording::manifest::{Manifest, RunEnding};
use crate::sample::Sample;
use crate::singletons::{Singletons, sample};
use crate::source::{ProbeSource, RowVisitor, visit_rows};
use crate::stats::{DescribeOptions, Description, plain};
use crate::stream::StreamAccumulator;
use crate::summarise::{caveats_of_stream, findings_of_probes};
use crate::units::Nanos;
use crate::wakeup::WakeupAccumulator;

crate::worded! {
    /// Why a run is excluded from comparisons, as it stands after `a run that`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ExclusionReason: word {
        /// It is a warm-up run of its block.
        Warmup = "warmed up",
        /// It failed, or its process was killed.
        Failed = "failed",
        /// It was interrupted, and its experiment repeated it.
        Interrupted = "was interrupted",
    }
}

impl ExclusionReason {
    /// Why the run of `manifest` is excluded; `None` if it is compared.
    pub fn of(manifest: &Manifest) -> Option<ExclusionReason> {
        let experiment = manifest.experiment.as_ref();
        match manifest.ending {
            _ if experiment.is_some_and(|experiment| experiment.warmup) => Some(ExclusionReason::Warmup),
            RunEnding::Failed | RunEnding::Recovered | RunEnding::Measuring => Some(ExclusionReason::Failed),
            RunEnding::Interrupted if experiment.is_some() => Some(ExclusionReason::Interrupted),
            RunEnding::Interrupted | RunEnding::Completed => None,
        }
    }
}

/// Where and when a run was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// Id of the boot, if known.
    pub boot: Option<String>,
    /// Experiment and block in which it was randomised; `None` without an experiment.
    pub block: Option<(String, u32)>,
    /// The round of the block; `None` if the order had none.
    pub round: Option<u32>,
    /// UTC start, RFC 3339, of fixed length: text order is order of time. Empty if it is unknown, as of a log without times.
    pub started_at: String,
}

/// The losses of a run; all 0 of wake-ups and of numbers from a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLosses {
    /// Probes or packets that were sent.
    pub sent: u64,
    /// Probes that were not answered in time, or packets that did not arrive.
    pub unanswered: u64,
    /// Of these, probes that were answered too late.
    pub late: u64,
    /// Whether they are unknown: a log of another tool may state answers only.
    pub unknown: bool,
}

impl RunLosses {
    /// Those of `counts` in a run of `spec`.
    pub(super) fn of(counts: &Counts, spec: &RunSpec) -> RunLosses {
        let unknown = !spec.knows_losses();
        RunLosses { sent: counts.sent, unanswered: counts.unanswered(), late: counts.late, unknown }
    }

    /// Whether something was sent, and nothing was answered.
    pub const fn is_total(&self) -> bool {
        self.sent > 0 && self.unanswered == self.sent
    }

    /// The share of `count` in what was sent; nothing if it is unknown, or nothing was sent.
    pub(super) fn share(&self, count: u64) -> RunFigure {
        RunFigure::of((self.sent > 0 && !self.unknown).then(|| count as f64 / self.sent as f64))
    }
}

/// One run as an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRun {
    /// Its directory, or file and line of a number.
    pub name: String,
    /// The kind of the run; `None` for a number from a file.
    pub kind: Option<Kind>,
    /// The figures that it can have; `None` for a number from a file.
    pub available: Option<AvailableFigures>,
    /// Where and when it was made.
    pub origin: RunOrigin,
    /// Every factor → level that it can be grouped by; levels of its experiment are as typed.
    pub levels: BTreeMap<String, String>,
    /// The levels of its factors as recorded; `None` for a number from a file.
    pub spec: Option<RunSpec>,
    /// The factors of its experiment, if it is of one.
    pub factors: Option<BTreeMap<String, String>>,
    /// The number of its condition in the experiment, from 1; 0 without an experiment.
    pub condition: u32,
    pub figures: Vec<RunFigure>,
    /// The same if each unanswered probe counts as answered after the time-out, or after the largest delay if that is
    /// longer; `None` if that changes none.
    pub figures_with_losses: Option<Vec<RunFigure>>,
    /// Of each figure the step of the clock that took its values, if it is seen; else 0.
    pub clock_steps: Vec<f64>,
    pub losses: RunLosses,
    /// Why it is excluded, if it is.
    pub excluded: Option<ExclusionReason>,
    /// Its caveats as its summary has them, but for those of single figures.
    pub caveats: Vec<Caveat>,
    /// Where its ends were, if both were on one host and their CPUs are known.
    pub placement: Option<RunPlacement>,
    /// Its loads as they were reached.
    pub loads: Vec<LoadReport>,
    /// Whether `--break` ended it early: its own, or that of a concurrent run.
    pub broke: bool,
}

impl ObservedRun {
    /// A number from a file, of unknown origin.
    pub fn bare(name: String, value: f64) -> ObservedRun {
        ObservedRun {
            name,
            kind: None,
            available: None,
            origin: RunOrigin::default(),
            levels: BTreeMap::new(),
            spec: None,
            factors: None,
            condition: 0,
            figures: vec![RunFigure::Finite { value, supported: true }],
            figures_with_losses: None,
            clock_steps: vec![0.0],
            losses: RunLosses::default(),
            excluded: None,
            caveats: Vec::new(),
            placement: None,
            loads: Vec::new(),
            broke: false,
        }
    }

    /// The run of a recording, with each of `estimands` computed in one pass over its rows. An excluded run is not read.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn of<S: ProbeSource>(source: &S, estimands: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let manifest = source.manifest();
        let run = ObservedRun::unread(source.location(), manifest, estimands);
        if run.excluded.is_some() {
            return Ok(run);
        }
        let available = Some(AvailableFigures::of_recorded(source, manifest.spec.judging.deadline_ns)?);
        let run = ObservedRun { available, ..run };
        match manifest.kind {
            Kind::Stream => run.with_stream(source, estimands),
            Kind::Values => run.with_values(source, estimands),
            Kind::Ping | Kind::Wakeup | Kind::Command => run.with_probes(source, estimands),
        }
    }

    /// What the manifest says of it, without figures.
    fn unread(name: String, manifest: &Manifest, estimands: &[Estimand]) -> ObservedRun {
        let experiment = manifest.experiment.as_ref();
        ObservedRun {
            name,
            kind: Some(manifest.kind),
            available: Some(AvailableFigures::of(&manifest.spec, manifest.spec.judging.deadline_ns)),
            origin: origin(manifest),
            levels: levels_of_run(&manifest.spec, experiment),
            spec: Some(manifest.spec.clone()),
            factors: experiment.map(|experiment| experiment.factors.clone()),
            condition: experiment.map_or(0, |experiment| experiment.condition),
            figures: vec![RunFigure::Nothing; estimands.len()],
            figures_with_losses: None,
            clock_steps: vec![0.0; estimands.len()],
            losses: RunLosses::default(),
            excluded: ExclusionReason::of(manifest),
            caveats: manifest.caveats.clone(),
            placement: None,
            loads: manifest.loads.clone(),
            broke: manifest.run.wakeup.as_ref().is_some_and(|facts| facts.broke.is_some() || facts.cut_short),
        }
    }

    /// The step of the clock of several `runs`, which none of them contradicts, for the figure at `index`; 0 without a run.
    pub(crate) fn clock_step(runs: &[ObservedRun], index: usize) -> f64 {
        let steps = runs.iter().filter_map(|run| run.clock_steps.get(index)).copied();
        steps.reduce(f64::min).unwrap_or(0.0)
    }

    /// Whether it has no fatal caveat.
    pub fn is_trustworthy(&self) -> bool {
        self.caveats.iter().all(|caveat| caveat.severity < Severity::Fatal)
    }
}

fn origin(manifest: &Manifest) -> RunOrigin {
    let of_experiment = |experiment: &ExperimentFacts| (experiment.experiment.clone(), experiment.block);
    let experiment = manifest.experiment.as_ref();
    let host = manifest.here.before.as_ref().and_then(|host| host.boot_id.clone());
    RunOrigin {
        boot: experiment.and_then(|experiment| experiment.boot_id.clone()).or(host),
        block: experiment.map(of_experiment),
        round: experiment.and_then(|experiment| experiment.round),
        started_at: if manifest.has_start() { manifest.started_at.clone() } else { String::new() },
    }
}

/// Every factor with its level: those of its `spec`, replaced by those of the `experiment` as typed.
pub fn levels_of_run(spec: &RunSpec, experiment: Option<&ExperimentFacts>) -> Factors {
    let mut levels = spec.levels();
    levels.extend(experiment.iter().flat_map(|experiment| experiment.factors.clone()));
    levels
}

impl ObservedRun {
    /// With the figures of probes or wake-ups, in one pass over the rows.
    fn with_probes<S: ProbeSource>(self, source: &S, estimands: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let (spec, kind) = (&source.manifest().spec, source.manifest().kind);
        let mut metrics: Vec<Metric> = Vec::new();
        for estimand in estimands {
            if let Estimand::Statistic(metric, _) = estimand
                && spec.metrics().contains(metric)
                && !metrics.contains(metric)
            {
                metrics.push(*metric);
            }
        }
        let mut samples: Vec<Singletons> =
            metrics.iter().map(|metric| Singletons::of(*metric, source.manifest())).collect();
        let mut counts = RunCounts::new(spec.judging.deadline_ns, spec.schedule().interval());
        let mut visitors: Vec<&mut dyn RowVisitor> =
            samples.iter_mut().map(|each| each as &mut dyn RowVisitor).collect();
        visitors.push(&mut counts);
        let mut wakeups = spec.wakeup().map(WakeupAccumulator::of);
        visitors.extend(wakeups.as_mut().map(|wakeups| wakeups as &mut dyn RowVisitor));
        visit_rows(source, &mut visitors)?;
        counts.add_lost(source.manifest().lost_without_row());
        let of_sample =
            |sample: Sample| described_of(sample.metric, &MetricSample::of_main(sample, source.manifest()), estimands);
        let mut described: Vec<Description> = samples.into_iter().map(|one| of_sample(one.sample())).collect();
        for (place, metric) in metrics.iter().enumerate().filter(|(_, metric)| matches!(metric, Metric::Printed(_))) {
            described[place] = of_sample(sample(source, *metric)?);
        }
        let deadline = counts.deadline(spec.judging.deadline_ns);
        let figure = |estimand: &Estimand, of: &dyn Fn(Statistic, &Description) -> RunFigure| match estimand {
            Estimand::Ratio(Ratio::Loss) if !spec.knows_losses() => RunFigure::Nothing,
            // A timer loses nothing: the only ratio of wake-ups is that of the deadline.
            Estimand::Ratio(ratio) if kind == Kind::Wakeup && *ratio != Ratio::DeadlineMiss => RunFigure::Nothing,
            Estimand::Ratio(ratio) => RunFigure::of(ratio_of(*ratio, &counts.counts, deadline)),
            Estimand::Statistic(metric, statistic) => {
                let index = metrics.iter().position(|other| other == metric);
                index.map_or(RunFigure::Nothing, |index| of(*statistic, &described[index]))
            }
        };
        let timeout = spec.ping().map_or(Nanos::ZERO, |ping| ping.timeout_ns);
        let of = if kind == Kind::Command { Statistic::figure_of_executions } else { Statistic::figure };
        let plain = |estimand| figure(estimand, &of);
        let with_losses =
            |estimand| figure(estimand, &|statistic, described| statistic.figure_with_losses(described, timeout));
        let losses = if kind == Kind::Wakeup { RunLosses::default() } else { RunLosses::of(&counts.counts, spec) };
        let figures: Vec<RunFigure> = estimands.iter().map(plain).collect();
        let figures_with_losses: Vec<RunFigure> = estimands.iter().map(with_losses).collect();
        let of_metric = |metric| metrics.iter().position(|other| *other == metric).map(|index| &described[index]);
        let clock_steps = clock_steps(estimands, of_metric);
        let (caveats, placement) = findings_of_probes(source, &counts, wakeups)?;
        let figures_with_losses =
            Some(figures_with_losses).filter(|counted| kind != Kind::Command && *counted != figures);
        Ok(ObservedRun { figures_with_losses, figures, clock_steps, losses, caveats, placement, ..self })
    }

    /// With the figures of values of an imported log.
    fn with_values<S: ProbeSource>(self, source: &S, estimands: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let manifest = source.manifest();
        let sample = MetricSample::of_values(source)?;
        let (counts, deadline) = (sample.counts(), sample.deadline(manifest.spec.judging.deadline_ns));
        let main = manifest.metric();
        let described = described_of(main, &sample, estimands);
        let figure = |estimand: &Estimand| match estimand {
            Estimand::Ratio(Ratio::Loss) if !manifest.spec.knows_losses() => RunFigure::Nothing,
            Estimand::Ratio(ratio) => RunFigure::of(ratio_of(*ratio, &counts, deadline)),
            Estimand::Statistic(metric, statistic) if *metric == main => statistic.figure(&described),
            Estimand::Statistic(..) => RunFigure::Nothing,
        };
        Ok(ObservedRun {
            figures: estimands.iter().map(figure).collect(),
            clock_steps: clock_steps(estimands, |metric| Some(&described).filter(|_| metric == main)),
            losses: RunLosses::of(&counts, &manifest.spec),
            caveats: Run::of(manifest, &HostAccumulators::new()).caveats(),
            ..self
        })
    }

    /// With the figures of a stream, whose intervals are read once. A rate counts what arrived, so that losses do not improve it.
    fn with_stream<S: ProbeSource>(self, source: &S, estimands: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let intervals = StreamAccumulator::of(source)?;
        let (counts, spec) = (intervals.counts_or_all_lost(), &source.manifest().spec);
        let figure = |estimand: &Estimand| match estimand {
            Estimand::Ratio(Ratio::Loss) if !spec.knows_losses() => RunFigure::Nothing,
            Estimand::Ratio(ratio) => RunFigure::of(ratio_of(*ratio, &counts, None)),
            Estimand::Statistic(metric, statistic) if metric.is_rate() => {
                statistic
                    .figure(&intervals.described(*metric, source.manifest(), &|sample| described(sample, estimands)))
            }
            Estimand::Statistic(..) => RunFigure::Nothing,
        };
        Ok(ObservedRun {
            figures: estimands.iter().map(figure).collect(),
            losses: RunLosses::of(&counts, spec),
            caveats: caveats_of_stream(source, &intervals)?,
            ..self
        })
    }
}

/// Of each of `estimands` the step of the clock, if its metric is `described`.
fn clock_steps<'a>(estimands: &[Estimand], described: impl Fn(Metric) -> Option<&'a Description>) -> Vec<f64> {
    let step = |estimand: &Estimand| match estimand {
        Estimand::Statistic(metric, _) => described(*metric).map_or(0.0, |own| own.step),
        Estimand::Ratio(_) => 0.0,
    };
    estimands.iter().map(step).collect()
}

/// The statistics of `sample` of `metric` that `estimands` need.
fn described_of(metric: Metric, sample: &MetricSample, estimands: &[Estimand]) -> Description {
    match sample.ordered() {
        Some(ordered) => described(ordered, estimands),
        None => sample.describe(&DescribeOptions {
            quantiles: statistics_of(metric, estimands).filter_map(Statistic::quantile).collect(),
            confidence: defaults::CONFIDENCE,
            intervals: false,
        }),
    }
}

/// The statistics of `sample` that `estimands` need.
fn described(sample: &Sample, estimands: &[Estimand]) -> Description {
    let own = || statistics_of(sample.metric, estimands);
    let quantiles: Vec<f64> = own().filter_map(Statistic::quantile).collect();
    plain(sample, &quantiles, own().any(|statistic| statistic == Statistic::Stddev))
}

/// The statistics of `metric` among `estimands`.
fn statistics_of(metric: Metric, estimands: &[Estimand]) -> impl Iterator<Item = Statistic> + '_ {
    estimands.iter().filter_map(move |estimand| match estimand {
        Estimand::Statistic(of, statistic) if *of == metric => Some(*statistic),
        _ => None,
    })
}
