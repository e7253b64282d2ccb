//! One run as an observation of a comparison: a figure for each estimand, its levels, and its block.

use std::collections::BTreeMap;

use crate::analysis::counts::{RunCounts, ratio_of};
use crate::analysis::estimand::{Estimand, Ratio, RunFigure, Statistic};
use crate::analysis::singletons::Singletons;
use crate::analysis::source::{ProbeSource, RowVisitor, visit_rows};
use crate::analysis::stream::StreamAccumulator;
use crate::diagnostics::Severity;
use crate::facts::ExperimentFacts;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::sample::Sample;
use crate::stats::{Description, plain};

/// Why a run is excluded from comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// It is a warm-up run of its block.
    Warmup,
    /// It failed, or its process died.
    Failed,
    /// It was interrupted, and its experiment repeated it.
    Interrupted,
}

impl ExclusionReason {
    /// The reason, after `a run that`.
    pub(super) const fn word(self) -> &'static str {
        match self {
            ExclusionReason::Warmup => "warmed up",
            ExclusionReason::Failed => "failed",
            ExclusionReason::Interrupted => "was interrupted",
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
    /// UTC start, RFC 3339, of fixed length: text order is order of time.
    pub started_at: String,
}

/// One run as an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRun {
    /// Its directory, or file and line of a number.
    pub name: String,
    /// The kind of the run; `None` for a number from a file.
    pub kind: Option<Kind>,
    /// Where and when it was made.
    pub origin: RunOrigin,
    /// Every factor → level that it can be grouped by; levels of its experiment are as typed.
    pub levels: BTreeMap<String, String>,
    /// The factors of its experiment, if it is of one.
    pub factors: Option<BTreeMap<String, String>>,
    /// The number of its condition in the experiment, from 1; 0 without an experiment.
    pub condition: u32,
    /// One for each estimand.
    pub figures: Vec<RunFigure>,
    /// Lost probes or packets.
    pub lost: u64,
    /// Number of all probes or packets, the lost ones included.
    pub n: u64,
    /// Why it is excluded, if it is.
    pub excluded: Option<ExclusionReason>,
    /// The codes of its fatal caveats.
    pub fatal: Vec<String>,
    /// Whether `--break` ended it early: its own, or that of a concurrent run.
    pub broke: bool,
}

impl ObservedRun {
    /// A number from a file, of unknown origin.
    pub fn bare(name: String, value: f64) -> ObservedRun {
        ObservedRun {
            name,
            kind: None,
            origin: RunOrigin::default(),
            levels: BTreeMap::new(),
            factors: None,
            condition: 0,
            figures: vec![RunFigure::Finite { value, supported: true }],
            lost: 0,
            n: 0,
            excluded: None,
            fatal: Vec::new(),
            broke: false,
        }
    }

    /// The run of a recording, with each of `estimands` computed in one pass over its rows. An excluded run is not read.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn of<S: ProbeSource>(source: &S, estimands: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let manifest = source.manifest();
        let excluded = exclusion(manifest);
        let Figures { figures, lost, n } = match (excluded, manifest.kind) {
            (Some(_), _) => Figures { figures: vec![RunFigure::Nothing; estimands.len()], lost: 0, n: 0 },
            (None, Kind::Stream) => Figures::of_stream(source, estimands)?,
            (None, Kind::Ping | Kind::Wakeup) => Figures::of_probes(source, estimands)?,
        };
        let experiment = manifest.experiment.as_ref();
        Ok(ObservedRun {
            name: source.location(),
            kind: Some(manifest.kind),
            origin: origin(manifest),
            levels: levels(manifest),
            factors: experiment.map(|experiment| experiment.factors.clone()),
            condition: experiment.map_or(0, |experiment| experiment.condition),
            figures,
            lost,
            n,
            excluded,
            fatal: fatal(manifest),
            broke: manifest.run.wakeup.as_ref().is_some_and(|facts| facts.broke.is_some() || facts.cut_short),
        })
    }
}

fn fatal(manifest: &Manifest) -> Vec<String> {
    let fatal = manifest.caveats.iter().filter(|caveat| caveat.severity == Severity::Fatal);
    fatal.map(|caveat| caveat.code.clone()).collect()
}

fn exclusion(manifest: &Manifest) -> Option<ExclusionReason> {
    let experiment = manifest.experiment.as_ref();
    match manifest.ending {
        _ if experiment.is_some_and(|experiment| experiment.warmup) => Some(ExclusionReason::Warmup),
        RunEnding::Failed | RunEnding::Recovered | RunEnding::Measuring => Some(ExclusionReason::Failed),
        RunEnding::Interrupted if experiment.is_some() => Some(ExclusionReason::Interrupted),
        RunEnding::Interrupted | RunEnding::Completed => None,
    }
}

fn origin(manifest: &Manifest) -> RunOrigin {
    let of_experiment = |experiment: &ExperimentFacts| (experiment.experiment.clone(), experiment.block);
    let experiment = manifest.experiment.as_ref();
    let host = manifest.here.before.as_ref().and_then(|host| host.boot_id.clone());
    RunOrigin {
        boot: experiment.and_then(|experiment| experiment.boot_id.clone()).or(host),
        block: experiment.map(of_experiment),
        started_at: manifest.started_at.clone(),
    }
}

/// Every factor with its level: those of the condition, replaced by those of the experiment as typed.
fn levels(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut levels = manifest.condition.levels();
    levels.extend(manifest.experiment.iter().flat_map(|experiment| experiment.factors.clone()));
    levels
}

/// The figures of a run, and the loss behind them.
struct Figures {
    figures: Vec<RunFigure>,
    lost: u64,
    n: u64,
}

impl Figures {
    /// Those of a run of probes or wake-ups, in one pass over the rows.
    fn of_probes<S: ProbeSource>(source: &S, estimands: &[Estimand]) -> Result<Figures, S::Error> {
        let (spec, kind) = (&source.manifest().spec, source.manifest().kind);
        let mut metrics: Vec<Metric> = Vec::new();
        for estimand in estimands {
            if let Estimand::Statistic(metric, _) = estimand
                && kind.metrics().contains(metric)
                && !metrics.contains(metric)
            {
                metrics.push(*metric);
            }
        }
        let mut samples: Vec<Singletons> =
            metrics.iter().map(|metric| Singletons::of(*metric, source.manifest().rows)).collect();
        let mut counts = RunCounts::new(spec.judging.deadline_ns, spec.schedule().interval());
        let mut visitors: Vec<&mut dyn RowVisitor> =
            samples.iter_mut().map(|each| each as &mut dyn RowVisitor).collect();
        if estimands.iter().any(|estimand| matches!(estimand, Estimand::Ratio(_))) {
            visitors.push(&mut counts);
        }
        visit_rows(source, &mut visitors)?;
        let described: Vec<Description> =
            samples.into_iter().map(|sample| described(&sample.sample(), estimands)).collect();
        let deadline = counts.deadline(spec.judging.deadline_ns);
        let figure = |estimand: &Estimand| match estimand {
            // A timer loses nothing: the only ratio of wake-ups is that of the deadline.
            Estimand::Ratio(ratio) if kind == Kind::Wakeup && *ratio != Ratio::DeadlineMiss => RunFigure::Nothing,
            Estimand::Ratio(ratio) => RunFigure::of(ratio_of(*ratio, &counts.counts, deadline)),
            Estimand::Statistic(metric, statistic) => {
                let index = metrics.iter().position(|other| other == metric);
                index.map_or(RunFigure::Nothing, |index| statistic.figure(&described[index]))
            }
        };
        let (lost, n) = described.first().map_or((0, 0), |first| (first.lost, first.n));
        Ok(Figures { figures: estimands.iter().map(figure).collect(), lost, n })
    }

    /// Those of a stream, whose intervals are read once.
    fn of_stream<S: ProbeSource>(source: &S, estimands: &[Estimand]) -> Result<Figures, S::Error> {
        let intervals = StreamAccumulator::of(source)?;
        let counts = intervals.counts();
        let figure = |estimand: &Estimand| match estimand {
            Estimand::Ratio(ratio) => RunFigure::of(ratio_of(*ratio, &counts, None)),
            Estimand::Statistic(metric, statistic) if metric.is_rate() => {
                statistic.figure(&described(&intervals.sample(*metric, source.manifest()), estimands))
            }
            Estimand::Statistic(..) => RunFigure::Nothing,
        };
        Ok(Figures { figures: estimands.iter().map(figure).collect(), lost: counts.lost, n: counts.sent })
    }
}

/// The statistics of `sample` that `estimands` need.
fn described(sample: &Sample, estimands: &[Estimand]) -> Description {
    let own = || {
        estimands.iter().filter_map(|estimand| match estimand {
            Estimand::Statistic(metric, statistic) if *metric == sample.metric => Some(*statistic),
            _ => None,
        })
    };
    let quantiles: Vec<f64> = own().filter_map(Statistic::quantile).collect();
    plain(sample, &quantiles, own().any(|statistic| statistic == Statistic::Stddev))
}
