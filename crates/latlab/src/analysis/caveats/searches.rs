//! What a search for a rate says of itself: none was found, not surely enough, not by the path, or not for long.

use crate::analysis::stages::{GoalEnd, GoalFigures, SearchFigures, StreamStages};
use crate::analysis::streams::StreamFigures;
use crate::caveat::{Caveat, Severity};
use crate::units::human::{grouped, percent, span};

/// The caveats of a search; none where there was none.
pub(super) fn derive(stream: &StreamFigures) -> Vec<Caveat> {
    let beside = &stream.beside;
    let of_search = beside.search.iter().flat_map(|search| {
        [none_found(search), undecided(search), at_ceiling(search), not_held(search, beside)].into_iter().flatten()
    });
    of_search.chain(unsent(beside)).collect()
}

/// `0 %`, `0 % and 0.5 %`
fn losses(search: &SearchFigures, is_meant: impl Fn(&GoalFigures) -> bool) -> Option<String> {
    let meant = search.goals.iter().filter(|goal| is_meant(goal)).map(|goal| percent(goal.goal.loss_ratio));
    meant.reduce(|all, one| format!("{all} and {one}"))
}

fn none_found(search: &SearchFigures) -> Option<Caveat> {
    search.found_pps.is_none().then(|| {
        let goals = losses(search, |_| true).unwrap_or_default();
        Caveat::new(
            Severity::Warning,
            "no-rate-found",
            format!("no rate was found that loses no more than {goals}, in {} trials", grouped(search.trials as u64)),
            "there is no rate to hold, and no delay beside it",
            "allow more (`--search 1%`), or look for what loses packets at every rate: `ip -s link`, `tc -s qdisc`",
        )
    })
}

fn undecided(search: &SearchFigures) -> Option<Caveat> {
    let goals = losses(search, |goal| goal.end == GoalEnd::Undecided)?;
    Some(Caveat::new(
        Severity::Warning,
        "search-undecided",
        format!("after {} the bounds for a loss of up to {goals} were not as close as asked", span(search.took)),
        "the rate lies between the bounds that are shown, if both are",
        "more time (`-d 5m`), or a goal less in `--search`",
    ))
}

/// What this end cannot send, it cannot lose.
fn at_ceiling(search: &SearchFigures) -> Option<Caveat> {
    let goals = losses(search, |goal| goal.end == GoalEnd::AtCeiling)?;
    Some(Caveat::new(
        Severity::Note,
        "search-ceiling",
        format!("for a loss of up to {goals} even the highest rate that was tried is not too much"),
        "the rate is what this end can send, or `--rate`; the path may carry more",
        "`--mode sendmmsg` or `gso`, more `--flows`, or a higher `--rate`",
    ))
}

/// The run at the found rate is longer than the trials, and meets more.
fn not_held(search: &SearchFigures, beside: &StreamStages) -> Option<Caveat> {
    let goal = search.goals.iter().find(|goal| goal.bounds.lower_pps == search.found_pps)?.goal;
    let last = beside.stages.last().filter(|stage| stage.share == Some(1.0))?;
    let lost = last.loss_ratio.filter(|lost| *lost > goal.loss_ratio)?;
    Some(Caveat::new(
        Severity::Note,
        "found-rate-lossy",
        format!("at the found rate {} were lost, and the goal is {}", percent(lost), percent(goal.loss_ratio)),
        format!(
            "most trials of {} kept to it; what comes more seldom than that is in the run",
            span(goal.final_trial_ns)
        ),
        "longer trials (`-d 5m`), or a stream at a little less with `--rate`",
    ))
}

fn unsent(beside: &StreamStages) -> Option<Caveat> {
    let unsent: u64 = beside.stages.iter().map(|stage| stage.unsent_probes).sum();
    (unsent > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "unsent-probes",
            format!("{} probes beside the stream were given up or refused by the kernel", grouped(unsent)),
            "the delays are about those that left",
            "a longer `--probe`, or a CPU that the stream leaves free (`--cpu`)",
        )
    })
}
