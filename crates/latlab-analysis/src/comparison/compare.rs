//! Compares groups of runs: a row for each question and pair of groups, and for what was lost.

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::caveats::{Compared, pairs};
use super::grouping_error::GroupingError;
use super::groups::{GroupPair, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use super::request::{ComparisonOptions, ComparisonRequest, Quantity};
use super::row::{ComparedFigure, ComparisonRow, Subject, decide};
use super::verdict::{Comparison, FigureScale};
use crate::diagnostics::Caveat;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::stats::{GroupBlocks, Outline, PrecisionGoal, reached};

/// The result of a comparison of several groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparisons {
    pub groups: RunGroups,
    /// The quantities, in the order of the runs' figures.
    pub quantities: Vec<Quantity>,
    /// For each group and quantity the outline of the runs' figures; `None` if no run has a finite one.
    pub outlines: Vec<Vec<Option<Outline>>>,
    /// One row for each question and pair of groups, and added ones for the losses of a pair.
    pub rows: Vec<Comparison>,
    /// Differences along the whole distribution, if requested: intervals without verdicts, of the pairs of the questions that
    /// name a baseline.
    pub shifts: Vec<Comparison>,
    pub options: ComparisonOptions,
    /// Its caveats, in descending order of severity.
    pub caveats: Vec<Caveat>,
}

impl Comparisons {
    /// The metric whose singletons the first quantity summarises; `None` of numbers, of shares only, and
    /// if a command printed them: these have no whole values.
    pub fn distributed_metric(&self) -> Option<Metric> {
        let first = self.quantities.iter().find_map(Quantity::metric);
        first.filter(|metric| !matches!(metric, Metric::Printed(_)))
    }
}

/// Compares `groups`, whose runs hold a figure for each quantity of `request`.
///
/// A question without a baseline group or without candidates is skipped, and so is a pair of groups of which one cannot be
/// measured here.
///
/// # Errors
/// If there is only one group, or no question has a pair of groups.
pub fn compare(
    groups: RunGroups,
    request: &ComparisonRequest,
    options: &ComparisonOptions,
) -> Result<Comparisons, GroupingError> {
    groups.expect_several()?;
    let quantities = request.quantities();
    let (mut rows, mut pairs_of_baselines) = (Vec::new(), BTreeSet::new());
    let (mut unanswerable, mut is_answerable) = (None, false);
    for question in request.questions() {
        let pairs = match &question.baseline {
            None => groups.against_first(),
            Some(baseline) => groups.against(baseline).unwrap_or_else(|error| {
                unanswerable.get_or_insert(error);
                Vec::new()
            }),
        };
        is_answerable |= !pairs.is_empty();
        pairs_of_baselines.extend(pairs.iter().filter(|_| question.baseline.is_some()).copied());
        let compared = ComparedFigure::of(&groups, Subject::Asked(question.quantity), quantities);
        let row = |pair| ComparisonRow::of(&groups, pair, compared, question.equivalence, options);
        rows.extend(groups.possible(pairs).into_iter().map(row));
    }
    if let (Some(error), false) = (unanswerable, is_answerable) {
        return Err(error);
    }
    let lost = lost_by_pairs(&groups, quantities, &rows);
    // Of a share the scale is known without the figures.
    let row_of_lost = |(pair, subject)| {
        ComparisonRow::of(&groups, pair, ComparedFigure::of(&groups, subject, quantities), None, options)
    };
    rows.extend(lost.into_iter().map(row_of_lost));
    // Rows of one pair stand together, in the order of the questions.
    rows.sort_by_key(|row: &ComparisonRow| (row.comparison.candidate, row.comparison.baseline));
    decide(&mut rows, options);
    let shifts = shifts(&groups, request, pairs_of_baselines, options);
    let rows: Vec<Comparison> = rows.into_iter().map(|row| row.comparison).collect();
    let caveats = Compared { groups: &groups, quantities, rows: &rows, options }.caveats();
    let outlined = |group: &RunGroup| match group.numbers {
        Some(numbers) => vec![numbers.outline],
        None => (0..quantities.len()).map(|index| Outline::of(&mut group.values(index))).collect(),
    };
    let outlines = groups.groups.iter().map(outlined).collect();
    Ok(Comparisons {
        groups,
        quantities: quantities.to_vec(),
        outlines,
        rows,
        shifts,
        options: options.clone(),
        caveats,
    })
}

/// The differences along the distribution: of `pairs_of_baselines`, the pairs of the questions that name a baseline, or against
/// the first group if there are none.
fn shifts(
    groups: &RunGroups,
    request: &ComparisonRequest,
    pairs_of_baselines: BTreeSet<GroupPair>,
    options: &ComparisonOptions,
) -> Vec<Comparison> {
    let mut pairs =
        if pairs_of_baselines.is_empty() { groups.against_first() } else { pairs_of_baselines.into_iter().collect() };
    pairs.sort_by_key(|pair| (pair.candidate, pair.baseline));
    let compared = |quantity: &usize| ComparedFigure::of(groups, Subject::Asked(*quantity), request.quantities());
    let compared: Vec<ComparedFigure> = request.shifts().iter().map(compared).collect();
    let row = |pair, compared: &ComparedFigure| ComparisonRow::of(groups, pair, *compared, None, options).comparison;
    let of_pair = |pair| compared.iter().map(move |compared| row(pair, compared));
    groups.possible(pairs).into_iter().flat_map(of_pair).collect()
}

/// The losses, and the late answers among them, of each pair that has some and no row of its own about them.
fn lost_by_pairs(groups: &RunGroups, quantities: &[Quantity], rows: &[ComparisonRow]) -> Vec<(GroupPair, Subject)> {
    let mut asked: BTreeMap<GroupPair, Vec<Quantity>> = BTreeMap::new();
    for ComparisonRow { comparison: row, .. } in rows {
        let pair = GroupPair { baseline: row.baseline, candidate: row.candidate };
        asked.entry(pair).or_default().push(row.quantity);
    }
    let lost = |(pair, asked): (GroupPair, Vec<Quantity>)| {
        let runs = || groups.pair(pair).into_iter().flat_map(|group| &group.runs);
        let is_lossy = |subject: &Subject| match subject {
            // A failure of an execution is one, whether by a time-out or not.
            Subject::Late => runs().any(|run| run.losses.late > 0 && run.kind != Some(Kind::Command)),
            _ => runs().any(|run| run.losses.unanswered > 0) && !runs().any(|run| run.losses.unknown),
        };
        let is_asked = |subject: Subject| asked.contains(&subject.quantity(quantities));
        let subjects = [Subject::Loss, Subject::Late].into_iter().filter(is_lossy).filter(|it| !is_asked(*it));
        subjects.map(|subject| (pair, subject)).collect::<Vec<_>>()
    };
    asked.into_iter().flat_map(lost).collect()
}

impl Comparisons {
    /// Whether the runs of all compared groups were randomised within blocks.
    pub fn is_interleaved(&self) -> bool {
        pairs(&self.groups, &self.rows).into_iter().all(|pair| self.groups.are_interleaved(pair))
    }
}

/// Whether the interval of every difference from the first group, or of the mean of a single group, has at most this
/// half-width, as a share of the value: 0.03 for ±3 %. Uses the figure at `index` of each run, and its variance only.
/// Groups with a run without that figure are not precise.
pub(crate) fn is_precise(groups: &[RunGroup], index: usize, half_width: f64, options: &ComparisonOptions) -> bool {
    let value = |run: &ObservedRun| run.figures.get(index).and_then(|figure| figure.value());
    let runs = || groups.iter().flat_map(|group| &group.runs);
    if runs().any(|run| value(run).is_none()) {
        return false;
    }
    let scale = FigureScale::of(runs().filter_map(value), false);
    let baseline: Vec<f64> = groups.iter().take(1).flat_map(|group| &group.runs).filter_map(value).collect();
    let size = (baseline.iter().sum::<f64>() / baseline.len().max(1) as f64).abs();
    let mut blocks: Vec<_> = runs().map(|run| &run.origin.block).collect();
    blocks.sort();
    blocks.dedup();
    let of_group = |group: &RunGroup| -> GroupBlocks {
        let of_block = |block: &&Option<(String, u32)>| {
            let own = group.runs.iter().filter(|run| run.origin.block == **block);
            own.filter_map(value).map(|value| scale.place(value)).collect()
        };
        blocks.iter().map(of_block).collect()
    };
    let values: Vec<GroupBlocks> = groups.iter().map(of_group).collect();
    let goal = PrecisionGoal {
        half_width: scale.half_width(half_width, size),
        confidence: options.confidence,
        draws: options.draws,
    };
    reached(&values, goal, &mut Pcg64Mcg::seed_from_u64(options.seed))
}
