//! What a search for a rate says of itself: none was found, not surely enough, not by the path, or not for long.

use crate::analysis::stages::{GoalEnd, GoalFigures, SearchFigures, StreamStages};
use crate::analysis::streams::StreamFigures;
use crate::caveat::{Caveat, Severity};
use crate::facts::SearchEnding;
use crate::plan::RateSearchSpec;
use crate::units::human::{grouped, percent, span};

/// The caveats of a search; none where there was none.
pub(super) fn derive(stream: &StreamFigures) -> Vec<Caveat> {
    let beside = &stream.beside;
    let of_search = beside.search.iter().flat_map(|search| {
        let rates = [none_found(search), undecided(search), at_ceiling(search)];
        rates.into_iter().chain([not_held(search, beside), left_out(search, beside)]).flatten()
    });
    of_search.chain(not_offered(beside)).chain(unsent(beside)).collect()
}

/// `0 %`, `0 % and 0.5 %`
fn losses(search: &SearchFigures, is_meant: impl Fn(&GoalFigures) -> bool) -> Option<String> {
    let meant = search.goals.iter().filter(|goal| is_meant(goal)).map(|goal| percent(goal.goal.loss_ratio));
    meant.reduce(|all, one| format!("{all} and {one}"))
}

fn none_found(search: &SearchFigures) -> Option<Caveat> {
    let trials = || grouped(search.trials as u64);
    let (message, hint) = match search.ending {
        _ if search.found_pps.is_some() => return None,
        SearchEnding::Silent => (
            format!("the target fell silent after {} trials of the search, and no rate had been found", trials()),
            "see whether the target still runs; `--rate` limits what is tried",
        ),
        SearchEnding::CutShort if search.trials == 0 => (
            "the run ended while it searched for a rate, and no trial was kept".into(),
            "let the search end: it says beforehand how long it takes",
        ),
        SearchEnding::CutShort => (
            format!("the run ended after {} trials of the search, and no rate had been found", trials()),
            "let the search end: it says beforehand how long it takes",
        ),
        SearchEnding::Settled | SearchEnding::TimeUp => (
            format!(
                "no rate was found that loses no more than {}, in {} trials",
                losses(search, |_| true).unwrap_or_default(),
                trials()
            ),
            "allow more (`--search 1%`), or look for what loses packets at every rate: `ip -s link`, `tc -s qdisc`",
        ),
    };
    let effect = "there is no rate to hold, and no delay beside it";
    Some(Caveat::new(Severity::Warning, "no-rate-found", message, effect, hint))
}

fn undecided(search: &SearchFigures) -> Option<Caveat> {
    let goals = losses(search, |goal| goal.end == GoalEnd::Undecided)?;
    let hint = match search.ending {
        // That none was found says why, and that it was too soon.
        SearchEnding::Silent | SearchEnding::CutShort if search.found_pps.is_none() => return None,
        SearchEnding::Silent => "see whether the target still runs",
        SearchEnding::CutShort => "let the search end: it says beforehand how long it takes",
        SearchEnding::Settled | SearchEnding::TimeUp => "more time (`-d 5m`), or a goal less in `--search`",
    };
    Some(Caveat::new(
        Severity::Warning,
        "search-undecided",
        format!("after {} the bounds for a loss of up to {goals} were not as close as asked", span(search.took)),
        "the rate lies between the bounds that are shown, if both are",
        hint,
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

/// The run at the found rate is longer than the trials, and meets more. It is judged as they are.
fn not_held(search: &SearchFigures, beside: &StreamStages) -> Option<Caveat> {
    let goal = search.goals.iter().find(|goal| goal.bounds.lower_pps == search.found_pps)?.goal;
    let last = beside.stages.last().filter(|stage| stage.share == Some(1.0))?;
    let missing = last.not_carried_ratio.filter(|missing| *missing > goal.loss_ratio)?;
    let lost = percent(last.loss_ratio.unwrap_or(1.0));
    Some(Caveat::new(
        Severity::Note,
        "found-rate-lossy",
        format!(
            "at the found rate {} was not carried ({lost} were lost), and the goal is {}",
            percent(missing),
            percent(goal.loss_ratio)
        ),
        format!(
            "most trials of {} kept to it; what comes more seldom than that is in the run",
            span(goal.final_trial_ns)
        ),
        "longer trials (`-d 5m`), or a stream at a little less with `--rate`",
    ))
}

/// Of the last stage, which is the run, `rate-unreached` tells it.
fn not_offered(beside: &StreamStages) -> Option<Caveat> {
    let short = beside.stages.iter().filter(|stage| stage.is_short && stage.share.is_some_and(|share| share < 1.0));
    let words = short.filter_map(|stage| {
        let (share, asked, sent) = (stage.share?, stage.asked_pps?, stage.offered_pps?);
        Some(format!("{} of {} packets/s at {}", grouped(sent as u64), grouped(asked as u64), percent(share)))
    });
    let words = words.reduce(|all, one| format!("{all}, {one}"))?;
    Some(Caveat::new(
        Severity::Warning,
        "stage-unreached",
        format!("stages sent less than their share of the found rate: {words}"),
        "the delays in them are those of the rate that was sent",
        "leave the sender a CPU (`--cpu`), or see what kept it from its own",
    ))
}

/// Where there are probes there are stages, unless trials took the time for them.
fn left_out(search: &SearchFigures, beside: &StreamStages) -> Option<Caveat> {
    let last = beside.stages.last().filter(|stage| stage.share == Some(1.0) && stage.round_trip.is_some())?;
    let is_missing = |share: &&f64| beside.stages.iter().all(|stage| stage.share != Some(**share));
    let shares = RateSearchSpec::SHARES.iter().filter(is_missing).map(|share| percent(*share));
    let shares = shares.reduce(|all, one| format!("{all}, {one}"))?;
    Some(Caveat::new(
        Severity::Warning,
        "stages-left-out",
        format!(
            "trials took {} of {}, and the stages at {shares} were left out",
            span(search.took),
            span(search.within)
        ),
        match last.is_short {
            true => "no delay is known there, and the run itself was held up",
            false => "no delay is known there",
        },
        "something kept this host from measuring in time: see what else runs on it, or give it more time with `-d`",
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
