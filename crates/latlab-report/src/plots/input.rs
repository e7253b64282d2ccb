//! What is plotted: conditions with the distributions of their runs, and their comparison; and what captions say of them:
//! the sample, its size and losses, and the convention, in plain words.

use std::collections::BTreeMap;

use crate::analysis::comparison::Comparisons;
use crate::analysis::distribution::RunDistribution;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::recipe::{Pictures, Recipe};
use crate::units::human::{counted, grouped};

/// The data of all figures.
#[derive(Clone, Debug)]
pub struct PlotInput<'a> {
    /// The conditions; the first is the baseline.
    pub conditions: Vec<PlotCondition>,
    pub comparisons: Option<&'a Comparisons>,
    /// That of the experiment.
    pub recipe: Option<&'static Recipe>,
}

#[derive(Clone, Debug)]
pub struct PlotCondition {
    /// Its name in words, as in the tables.
    pub name: String,
    /// Factor → level, of the factors that a figure may show.
    pub levels: BTreeMap<String, String>,
    /// Its runs, without excluded ones.
    pub runs: Vec<RunDistribution>,
}

impl PlotInput<'_> {
    pub(super) fn runs(&self) -> impl Iterator<Item = &RunDistribution> {
        self.conditions.iter().flat_map(|condition| &condition.runs)
    }

    pub(super) fn pictures(&self) -> &'static Pictures {
        static NONE: Pictures = Pictures { order: Vec::new(), levels: BTreeMap::new(), prediction: None };
        self.recipe.map_or(&NONE, |recipe| &recipe.pictures)
    }

    /// The run, if it is the only one.
    pub(super) fn only_run(&self) -> Option<&RunDistribution> {
        let mut runs = self.runs();
        runs.next().filter(|_| runs.next().is_none())
    }
}

/// How delays of `metric` are counted.
pub(super) fn convention(metric: Metric) -> &'static str {
    match metric {
        Metric::WakeupLatency => "Latencies count from the due time until the thread ran.",
        Metric::ElapsedTime => "Times count from the spawn to the end that the kernel reported.",
        Metric::Delay => "A log states these delays, and not of what.",
        _ => "Round trips are not halved.",
    }
}

/// `50,000 probes, 12 of them lost.`
pub(super) fn probes<'a>(runs: impl Iterator<Item = &'a RunDistribution>, metric: Metric) -> String {
    let (mut n, mut lost) = (0_u64, 0_u64);
    let mut known = true;
    runs.for_each(|run| {
        (n, lost) = (n.saturating_add(run.n), lost.saturating_add(run.lost));
        known &= run.knows_losses;
    });
    let lost = match (lost, metric) {
        (0, Metric::WakeupLatency | Metric::ElapsedTime) => String::new(),
        (0, _) if !known => String::new(),
        (0, _) => ", without a loss".into(),
        (lost, _) => format!(", {} of them {}", grouped(lost), infinite(metric)),
    };
    format!("{}{lost}.", counted(n as usize, thing(metric)))
}

/// What a thing without a delay of `metric` is: `lost or late`.
pub(super) fn infinite(metric: Metric) -> &'static str {
    Kind::of_metric(metric).infinite()
}

/// What has a delay of `metric`.
pub(super) fn thing(metric: Metric) -> &'static str {
    match metric {
        Metric::WakeupLatency => "wake-up",
        Metric::ElapsedTime => "execution",
        Metric::Delay => "value",
        _ => "probe",
    }
}

pub(super) fn of_run(run: &RunDistribution) -> String {
    format!("{} {}", probes(std::iter::once(run), run.metric), convention(run.metric))
}

/// The caption of several runs: what was measured in the conditions that are shown or named, and how many others with
/// measured probes there are.
pub(super) fn of_conditions(input: &PlotInput, shown: &[&PlotCondition], metric: Metric) -> String {
    let runs = || shown.iter().flat_map(|condition| &condition.runs);
    let is_measured = |condition: &&PlotCondition| condition.runs.iter().any(|run| run.n > 0);
    let rest = left_out(input.conditions.iter().filter(is_measured).count() - shown.len(), "condition");
    format!("{}: {} {}{rest}", counted(runs().count(), "run"), probes(runs(), metric), convention(metric))
}

/// ` 3 conditions are not shown.`; nothing if none is left out.
pub(super) fn left_out(count: usize, thing: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" 1 {thing} is not shown."),
        _ => format!(" {} are not shown.", counted(count, thing)),
    }
}
