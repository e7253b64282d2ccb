//! One run as a comparison sees it: a figure for each subject, and its place among the others.

use std::collections::BTreeMap;

use crate::analysis::singletons::Singletons;
use crate::analysis::source::{ProbeSource, RowVisitor, feed};
use crate::analysis::streams::StreamAccumulator;
use crate::analysis::subject::{Estimand, Ratio, Statistic};
use crate::analysis::summary::Deadline;
use crate::analysis::tally::{Counts, RunCounts};
use crate::diagnostics::Severity;
use crate::facts::ExperimentFacts;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::sample::Sample;
use crate::stats::{Description, plain};

/// What a run says on one subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFigure {
    /// ns, or a share.
    Finite {
        /// The figure.
        value: f64,
        /// Whether enough of the run lies beyond a quantile.
        supported: bool,
    },
    /// The quantile fell among the lost.
    Lost,
    /// There was nothing to compute it from.
    Nothing,
}

impl RunFigure {
    /// The figure, where it is one.
    pub const fn value(self) -> Option<f64> {
        match self {
            RunFigure::Finite { value, .. } => Some(value),
            RunFigure::Lost | RunFigure::Nothing => None,
        }
    }
}

/// Why a run is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// It warmed its block up.
    Warmup,
    /// It failed, or its process died.
    Failed,
    /// It was interrupted, and its experiment took it again.
    Interrupted,
}

impl ExclusionReason {
    /// What became of it, after `a run that`.
    pub(super) const fn word(self) -> &'static str {
        match self {
            ExclusionReason::Warmup => "warmed up",
            ExclusionReason::Failed => "failed",
            ExclusionReason::Interrupted => "was interrupted",
        }
    }
}

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// What boot it ran in, where that is known.
    pub boot: Option<String>,
    /// What it was interleaved in: experiment and block. None where no experiment saw to that.
    pub block: Option<(String, u32)>,
    /// UTC start, RFC 3339; of equal length, so that the order of texts is the order of time.
    pub started_at: String,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRun {
    /// Its directory, or the line of a file.
    pub name: String,
    /// What was measured; none of a number that somebody else measured.
    pub kind: Option<Kind>,
    /// Where it stands.
    pub place: RunOrigin,
    /// What it can be grouped by: factor → level. Those of its experiment are as typed.
    pub levels: BTreeMap<String, String>,
    /// The factors of its experiment; none without one.
    pub factors: Option<BTreeMap<String, String>>,
    /// The number of its condition in the experiment; 0 without one.
    pub condition: u32,
    /// In the order of the subjects.
    pub figures: Vec<RunFigure>,
    /// Probes of the metrics compared that were lost, and all of them.
    pub lost: (u64, u64),
    /// Why it is not judged.
    pub left_out: Option<ExclusionReason>,
    /// The codes of fatal caveats that it raised.
    pub fatal: Vec<String>,
    /// Whether a late wake-up ended it.
    pub broke: bool,
}

impl ObservedRun {
    /// A number that somebody else measured: no place, no condition.
    pub fn bare(name: String, value: f64) -> ObservedRun {
        ObservedRun {
            name,
            kind: None,
            place: RunOrigin::default(),
            levels: BTreeMap::new(),
            factors: None,
            condition: 0,
            figures: vec![RunFigure::Finite { value, supported: true }],
            lost: (0, 0),
            left_out: None,
            fatal: Vec::new(),
            broke: false,
        }
    }

    /// The run of a recording, each of `subjects` computed in one pass over its rows. What is not judged is not read.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub fn of<S: ProbeSource>(source: &S, subjects: &[Estimand]) -> Result<ObservedRun, S::Error> {
        let manifest = source.manifest();
        let left_out = left_out(manifest);
        let (figures, lost) = match left_out {
            Some(_) => (vec![RunFigure::Nothing; subjects.len()], (0, 0)),
            None => figures(source, subjects)?,
        };
        let experiment = manifest.experiment.as_ref();
        Ok(ObservedRun {
            name: source.place(),
            kind: Some(manifest.kind),
            place: place(manifest),
            levels: levels(manifest),
            factors: experiment.map(|experiment| experiment.factors.clone()),
            condition: experiment.map_or(0, |experiment| experiment.condition),
            figures,
            lost,
            left_out,
            fatal: fatal(manifest),
            broke: manifest.run.wakeup.as_ref().is_some_and(|facts| facts.broke.is_some() || facts.cut_short),
        })
    }
}

fn fatal(manifest: &Manifest) -> Vec<String> {
    let fatal = manifest.caveats.iter().filter(|caveat| caveat.severity == Severity::Fatal);
    fatal.map(|caveat| caveat.code.clone()).collect()
}

fn left_out(manifest: &Manifest) -> Option<ExclusionReason> {
    let experiment = manifest.experiment.as_ref();
    match manifest.ending {
        _ if experiment.is_some_and(|experiment| experiment.warmup) => Some(ExclusionReason::Warmup),
        RunEnding::Failed | RunEnding::Recovered | RunEnding::Measuring => Some(ExclusionReason::Failed),
        RunEnding::Interrupted if experiment.is_some() => Some(ExclusionReason::Interrupted),
        RunEnding::Interrupted | RunEnding::Completed => None,
    }
}

fn place(manifest: &Manifest) -> RunOrigin {
    let of_experiment = |experiment: &ExperimentFacts| (experiment.experiment.clone(), experiment.block);
    let experiment = manifest.experiment.as_ref();
    let host = manifest.here.before.as_ref().and_then(|host| host.boot_id.clone());
    RunOrigin {
        boot: experiment.and_then(|experiment| experiment.boot_id.clone()).or(host),
        block: experiment.map(of_experiment),
        started_at: manifest.started_at.clone(),
    }
}

/// Every factor with its level: the condition's, and over them those of the experiment, as typed.
fn levels(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut levels = manifest.condition.levels();
    levels.extend(manifest.experiment.iter().flat_map(|experiment| experiment.factors.clone()));
    levels
}

/// Of how many probes how many were lost.
type Losses = (u64, u64);

/// One pass over the rows, whatever is asked of them.
fn figures<S: ProbeSource>(source: &S, subjects: &[Estimand]) -> Result<(Vec<RunFigure>, Losses), S::Error> {
    if source.manifest().kind == Kind::Stream {
        return figures_of_stream(source, subjects);
    }
    let (spec, kind) = (&source.manifest().spec, source.manifest().kind);
    let mut metrics: Vec<Metric> = Vec::new();
    for subject in subjects {
        if let Estimand::Statistic(metric, _) = subject
            && kind.metrics().contains(metric)
            && !metrics.contains(metric)
        {
            metrics.push(*metric);
        }
    }
    let mut samples: Vec<Singletons> =
        metrics.iter().map(|metric| Singletons::of(*metric, source.manifest().rows)).collect();
    let mut tally = RunCounts::new(spec.judging.deadline_ns, spec.schedule().interval());
    let mut gatherers: Vec<&mut dyn RowVisitor> = samples.iter_mut().map(|each| each as &mut dyn RowVisitor).collect();
    if subjects.iter().any(|subject| matches!(subject, Estimand::Ratio(_))) {
        gatherers.push(&mut tally);
    }
    feed(source, &mut gatherers)?;
    let figures: Vec<Description> = samples.into_iter().map(|sample| described(&sample.sample(), subjects)).collect();
    let deadline = spec.judging.deadline_ns.map(|deadline_ns| Deadline {
        deadline_ns,
        missed: tally.missed,
        due: tally.counts.due(),
    });
    let of = |subject: &Estimand| match subject {
        // a timer loses nothing: a share of 0 would be an answer to a question that nobody can ask of it
        Estimand::Ratio(ratio) if kind == Kind::Wakeup && *ratio != Ratio::DeadlineMiss => RunFigure::Nothing,
        Estimand::Ratio(ratio) => share(*ratio, &tally.counts, deadline),
        Estimand::Statistic(metric, statistic) => {
            let place = metrics.iter().position(|other| other == metric);
            place.map_or(RunFigure::Nothing, |place| figure(*statistic, &figures[place]))
        }
    };
    let lost = figures.first().map_or((0, 0), |first| (first.lost, first.n));
    Ok((subjects.iter().map(of).collect(), lost))
}

/// The same of a stream: its intervals are read once.
fn figures_of_stream<S: ProbeSource>(source: &S, subjects: &[Estimand]) -> Result<(Vec<RunFigure>, Losses), S::Error> {
    let course = StreamAccumulator::of(source)?;
    let counts = course.counts();
    let of = |subject: &Estimand| match subject {
        Estimand::Ratio(ratio) => share(*ratio, &counts, None),
        Estimand::Statistic(metric, statistic) if metric.is_rate() => {
            figure(*statistic, &described(&course.sample(*metric, source.manifest()), subjects))
        }
        Estimand::Statistic(..) => RunFigure::Nothing,
    };
    Ok((subjects.iter().map(of).collect(), (counts.lost, counts.sent)))
}

/// What of `sample` the subjects ask for.
fn described(sample: &Sample, subjects: &[Estimand]) -> Description {
    let own = || {
        subjects.iter().filter_map(|subject| match subject {
            Estimand::Statistic(metric, statistic) if *metric == sample.metric => Some(*statistic),
            _ => None,
        })
    };
    let quantile = |statistic| if let Statistic::Quantile(q) = statistic { Some(q) } else { None };
    let quantiles: Vec<f64> = own().filter_map(quantile).collect();
    plain(sample, &quantiles, own().any(|statistic| statistic == Statistic::Stddev))
}

fn figure(statistic: Statistic, described: &Description) -> RunFigure {
    let known =
        |value: Option<f64>| value.map_or(RunFigure::Nothing, |value| RunFigure::Finite { value, supported: true });
    match statistic {
        Statistic::Min => known(described.min.map(|min| min as f64)),
        Statistic::Max => known(described.max.map(|max| max as f64)),
        Statistic::Mean => known(described.mean),
        Statistic::Stddev => known(described.stddev),
        Statistic::Quantile(q) => match described.quantiles.iter().find(|quantile| quantile.q == q) {
            Some(quantile) if quantile.lost => RunFigure::Lost,
            Some(quantile) => match quantile.value {
                Some(value) => RunFigure::Finite { value, supported: quantile.supported },
                None => RunFigure::Nothing,
            },
            None => RunFigure::Nothing,
        },
    }
}

fn share(ratio: Ratio, counts: &Counts, deadline: Option<Deadline>) -> RunFigure {
    let arrived = counts.answered + counts.late;
    let (part, whole) = match ratio {
        Ratio::Loss => (counts.unanswered(), counts.sent),
        Ratio::Late => (counts.late, counts.sent),
        Ratio::Reordered => (counts.reordered, arrived),
        Ratio::Duplicate => (counts.duplicates, arrived),
        Ratio::DeadlineMiss => deadline.map_or((0, 0), |deadline| (deadline.missed, deadline.due)),
    };
    match whole {
        0 => RunFigure::Nothing,
        _ => RunFigure::Finite { value: part as f64 / whole as f64, supported: true },
    }
}
