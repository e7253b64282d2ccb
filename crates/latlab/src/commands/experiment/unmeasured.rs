//! Why nothing was measured of a published row.

use super::Asked;
use crate::experiment::ExperimentState;
use crate::plan::Factors;
use crate::recipe::{Published, PublishedRow};

/// In words.
pub(super) fn why(standing: &ExperimentState, asked: &Asked, (published, row): (&Published, &PublishedRow)) -> String {
    let is_ours = |factors: &Factors| published.is_done_by(row, factors);
    let dropped = standing.dropped.iter().find(|(factors, _)| is_ours(factors)).map(|(_, reason)| reason);
    let impossible = asked.job.impossible.iter().find(|row| is_ours(&row.factors)).map(|row| &row.reason);
    let barred = || barred(standing, asked, row);
    if let Some(reason) = dropped.or(impossible).or_else(barred) {
        return format!("not possible here: {reason}");
    }
    let is_due = asked.job.experiment.conditions.iter().any(|condition| is_ours(&condition.factors));
    if is_due { "not measured yet" } else { "not measured at this scale" }.into()
}

/// Why no scale could measure `row`: all that this one has of one of its levels was left out.
fn barred<'a>(standing: &'a ExperimentState, asked: &'a Asked, row: &PublishedRow) -> Option<&'a String> {
    let impossible = || asked.job.impossible.iter().map(|row| (&row.factors, &row.reason));
    let left_out = || standing.dropped.iter().map(|(factors, reason)| (factors, reason)).chain(impossible());
    let is_left = |factors: &Factors| !left_out().any(|(out, _)| out == factors);
    row.factors.iter().find_map(|(factor, level)| {
        let has = |factors: &Factors| factors.get(*factor).is_some_and(|own| own == level);
        let possible = asked.job.experiment.conditions.iter().any(|one| has(&one.factors) && is_left(&one.factors));
        left_out().find(|(factors, _)| !possible && has(factors)).map(|(_, reason)| reason)
    })
}
