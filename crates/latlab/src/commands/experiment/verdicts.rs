//! The comparison that an experiment ends with: what its file asks, of the runs that its journal counts.

use std::path::{Path, PathBuf};

use super::Asked;
use super::cells::ConditionCells;
use super::contrasts::ask_as_its_file;
use super::runs;
use crate::analysis::comparison::{ComparisonOptions, ComparisonRequest, Comparisons, RunGroups, compare};
use crate::cli::resolve::ExperimentJob;
use crate::commands::stored_runs::observe;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::plan::{Contrast, Factors, defaults};
use crate::report::Style;
use crate::report::comparison::{self, ComparisonShowing, ComparisonView};

/// Compares the runs of the experiment in `directory` as its file asks; none where only one condition has any.
pub(super) fn of(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
    (cells, console): (Option<&ConditionCells>, &Console),
) -> Result<Option<Comparisons>, Failure> {
    let mut measured: Vec<&Factors> = runs::judged(standing).map(|(run, _)| &run.key.factors).collect();
    measured.sort_unstable();
    measured.dedup();
    if measured.len() < 2 {
        return Ok(None);
    }
    let conditions = conditions(standing, &asked.job);
    // A question about conditions that were not measured is none, and hides no other.
    let is_asked = |contrast: &&Contrast| has_a_pair(contrast, &conditions, &measured);
    let contrasts: Vec<Contrast> = asked.job.experiment.contrasts.iter().filter(is_asked).cloned().collect();
    let mut agenda = ComparisonRequest::default();
    ask_as_its_file(&mut agenda, &contrasts, None)?;
    let subjects = agenda.estimands();
    let paths: Vec<PathBuf> = runs::judged(standing).map(|(_, name)| directory.join("runs").join(name)).collect();
    let observed = observe(&paths, &subjects, console)?;
    let mut groups = RunGroups::of_conditions(&conditions, observed);
    if let Some(cells) = cells {
        cells.name(&mut groups);
    }
    Ok(Some(compare(groups, &agenda, &ComparisonOptions::at(defaults::CONFIDENCE))?))
}

/// The conditions in the order of the file. One that was given up, or never was possible here, is among them only where
/// others are compared with it: its rows are undecided then, and none stands in for it.
fn conditions(standing: &ExperimentState, job: &ExperimentJob) -> Vec<Factors> {
    let contrasts = &job.experiment.contrasts;
    let all = || job.experiment.conditions.iter().map(|condition| &condition.factors);
    let is_in = |baseline: &Factors, factors: &Factors| {
        !baseline.is_empty() && baseline.iter().all(|(factor, value)| factors.get(factor) == Some(value))
    };
    let is_named = |factors: &Factors| contrasts.iter().any(|contrast| is_in(&contrast.baseline, factors));
    let is_first = |factors: &Factors| {
        all().next() == Some(factors) && contrasts.iter().any(|contrast| contrast.baseline.is_empty())
    };
    let kept = all().filter(|factors| !standing.is_dropped(factors) || is_named(factors) || is_first(factors));
    let impossible = job.impossible.iter().map(|row| &row.factors).filter(|factors| is_named(factors));
    kept.chain(impossible).cloned().collect()
}

/// Whether a condition was measured that `contrast` compares with another of the file.
fn has_a_pair(Contrast { baseline, .. }: &Contrast, conditions: &[Factors], measured: &[&Factors]) -> bool {
    let is_other = |factors: &Factors| baseline.iter().any(|(factor, value)| factors.get(factor) != Some(value));
    let counterpart = |factors: &Factors| factors.clone().into_iter().chain(baseline.clone()).collect::<Factors>();
    let has_one = |factors: &Factors| {
        let counterpart = counterpart(factors);
        conditions.contains(&counterpart) || measured.contains(&&counterpart)
    };
    baseline.is_empty() || measured.iter().any(|factors| is_other(factors) && has_one(factors))
}

/// The comparison as text.
pub(super) fn text(comparisons: &Comparisons, style: Style) -> String {
    comparison::text(&ComparisonView::of(comparisons, &[], ComparisonShowing { explain: false }), style)
}
