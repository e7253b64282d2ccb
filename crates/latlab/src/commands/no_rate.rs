//! Why a search found no rate to hold.

use crate::analysis::Summary;
use crate::diagnostics::Failure;
use crate::units::human::grouped;

/// The failure of a command whose searches found no rate; none where that is not why nothing was measured.
pub(super) fn failure(summaries: &[Summary], target: &str) -> Option<Failure> {
    let searches = || summaries.iter().filter_map(|summary| summary.stream.as_ref()?.beside.search.as_ref());
    let searched = searches().next().is_some() && searches().all(|search| search.found_pps.is_none());
    let trials: usize = searches().map(|search| search.trials).sum();
    let (what, cause, hint) = match searches().all(|search| search.late_at_least.is_some()) {
        true => (
            "is carried in time",
            "and at the least rate no packet was lost, but they came late",
            "choose a smaller `--size`, or give it longer trials (`-d 5m`)",
        ),
        false => (
            "loses as little as asked",
            "each of which lost too much or did not suffice",
            "allow more loss (`--search 1%`) or give it more time (`-d 5m`)",
        ),
    };
    searched.then(|| {
        Failure::world(format!("no rate to `{target}` {what}"))
            .because(format!("{} trials, {cause}", grouped(trials as u64)))
            .hint(hint)
    })
}
