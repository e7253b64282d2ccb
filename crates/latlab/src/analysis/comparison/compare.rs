//! The comparison itself: from groups of runs to verdicts.

use super::agenda::ComparisonRequest;
use super::answer::Comparison;
use super::caveats;
use super::group::{GroupingError, RunGroup, RunGroups};
use super::row::{ComparisonRow, decide};
use super::wishes::{ComparisonOptions, Quantity, Question};
use crate::diagnostics::Caveat;
use crate::stats::Outline;

/// All rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparisons {
    /// The groups that were compared.
    pub groups: RunGroups,
    /// What was compared, in the order of the runs' figures.
    pub quantities: Vec<Quantity>,
    /// For each group the outline of its runs' figures, in the order of the quantities; none where no run has a finite one.
    pub outlines: Vec<Vec<Option<Outline>>>,
    /// The rows.
    pub rows: Vec<Comparison>,
    /// Differences along the whole distribution, where they were asked for: intervals without verdicts.
    pub shifts: Vec<Comparison>,
    /// How it was asked.
    pub wishes: ComparisonOptions,
    /// What to know before believing it.
    pub caveats: Vec<Caveat>,
}

/// Answers what stands on `agenda` about `groups`, whose runs hold a figure for each of its quantities.
///
/// A question whose baseline, or all of whose candidates, could not be measured is passed over.
///
/// # Errors
/// Where there is only one group, or where that leaves nothing to answer.
pub fn compare(
    groups: RunGroups,
    agenda: &ComparisonRequest,
    wishes: &ComparisonOptions,
) -> Result<Comparisons, GroupingError> {
    groups.expect_several()?;
    let quantities = agenda.quantities();
    let mut rows = Vec::new();
    let mut unanswerable = None;
    for question in agenda.questions() {
        let pairs = match &question.baseline {
            None => groups.against_first(),
            Some(baseline) => groups.against(baseline).unwrap_or_else(|error| {
                unanswerable.get_or_insert(error);
                Vec::new()
            }),
        };
        rows.extend(pairs.into_iter().map(|pair| ComparisonRow::of(&groups, quantities, question, pair, wishes)));
    }
    if let (Some(error), true) = (unanswerable, rows.is_empty()) {
        return Err(error);
    }
    // rows of one pair stand together, in the order in which they were asked for
    rows.sort_by_key(|row: &ComparisonRow| (row.comparison.candidate, row.comparison.baseline));
    decide(&mut rows, wishes);
    let mut shifted = Vec::new();
    for (baseline, candidate) in groups.against_first() {
        for place in agenda.shifts() {
            let question = Question { subject: *place, ..Question::default() };
            shifted.push(ComparisonRow::of(&groups, quantities, &question, (baseline, candidate), wishes).comparison);
        }
    }
    let rows: Vec<Comparison> = rows.into_iter().map(|row| row.comparison).collect();
    let caveats = caveats::of(&groups, quantities, &rows);
    let outlined =
        |group: &RunGroup| (0..quantities.len()).map(|place| Outline::of(&mut group.values(place))).collect();
    let outlines = groups.groups.iter().map(outlined).collect();
    Ok(Comparisons {
        groups,
        quantities: quantities.to_vec(),
        outlines,
        rows,
        shifts: shifted,
        wishes: wishes.clone(),
        caveats,
    })
}

impl Comparisons {
    /// Whether all groups that were compared took turns by chance, inside of blocks.
    pub fn is_interleaved(&self) -> bool {
        caveats::pairs(&self.groups, &self.rows).into_iter().all(|pair| self.groups.are_interleaved(pair))
    }
}
