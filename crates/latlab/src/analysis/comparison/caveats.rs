//! Caveats of a comparison: runs that were excluded, untrusted or not interleaved, confounded factors, lost probes.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{GroupPair, RunGroup, RunGroups};
use super::observed_run::{ExclusionReason, ObservedRun};
use super::request::Quantity;
use super::verdict::{Comparison, UndecidedReason};
use crate::analysis::estimand::RunFigure;
use crate::diagnostics::{Caveat, Severity};
use crate::plan::Kind;
use crate::units::human;

/// The caveats of a comparison, worst first.
pub(super) fn of(groups: &RunGroups, quantities: &[Quantity], rows: &[Comparison]) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    caveats.extend(untrusted_runs(groups));
    caveats.extend(broke_runs(groups));
    caveats.extend(lost_quantiles(rows));
    caveats.extend(not_interleaved(groups, &pairs(groups, rows)));
    caveats.extend(confounded(groups));
    caveats.extend(unsupported_quantiles(groups, quantities));
    caveats.extend(lost_probes(groups, quantities));
    caveats.extend(groups.exclusion_caveat());
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

fn runs(groups: &RunGroups) -> impl Iterator<Item = &ObservedRun> {
    groups.groups.iter().flat_map(|group| &group.runs)
}

/// The compared pairs of groups that have runs.
pub(super) fn pairs(groups: &RunGroups, rows: &[Comparison]) -> BTreeSet<GroupPair> {
    let pairs = rows.iter().map(|row| GroupPair { baseline: row.baseline, candidate: row.candidate });
    pairs.filter(|pair| groups.pair(*pair).iter().all(|group| !group.runs.is_empty())).collect()
}

/// The count with its noun: `1 run`, `3 runs`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn untrusted_runs(groups: &RunGroups) -> Option<Caveat> {
    let untrusted: Vec<_> = runs(groups).filter(|run| !run.fatal.is_empty()).collect();
    let codes: BTreeSet<&String> = untrusted.iter().flat_map(|run| &run.fatal).collect();
    let codes = codes.into_iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
    (!untrusted.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "untrusted-runs",
            format!(
                "{} carried a fatal caveat ({codes}) and were judged with the others",
                counted(untrusted.len(), "run")
            ),
            "a difference may be what spoilt those runs",
            "look at them with `latlab summary`, and measure them again",
        )
    })
}

fn broke_runs(groups: &RunGroups) -> Option<Caveat> {
    let broke = runs(groups).filter(|run| run.broke && run.excluded.is_none()).count();
    (broke > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "broke-runs",
            format!("{} ended at a late wake-up (`--break`)", counted(broke, "run")),
            "how long each lasted was chosen by its own tail, which a comparison takes for a property of the condition",
            "measure without `--break`",
        )
    })
}

fn lost_quantiles(rows: &[Comparison]) -> Option<Caveat> {
    let mut worst: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        if let Some(UndecidedReason::Lost { baseline, candidate }) = row.undecided {
            let most = worst.entry(row.quantity.statistic_name()).or_default();
            *most = (*most).max(baseline + candidate);
        }
    }
    let lost: Vec<_> = worst.iter().map(|(name, count)| format!("{name} in {}", counted(*count, "run"))).collect();
    (!lost.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "lost-quantile",
            format!("quantiles fell among the lost: {}", lost.join(", ")),
            "what is infinite has no mean, so that those rows are undecided",
            "compare `--statistic loss_ratio`, or a lower quantile",
        )
    })
}

/// Runs of an experiment are randomised within blocks. The start times of other runs show whether these were interleaved.
fn not_interleaved(groups: &RunGroups, pairs: &BTreeSet<GroupPair>) -> Option<Caveat> {
    let pairs: Vec<_> =
        pairs.iter().filter(|pair| !groups.are_interleaved(**pair)).map(|pair| groups.pair(*pair)).collect();
    pairs.first()?;
    let mut runs = pairs.iter().flatten().flat_map(|group| &group.runs);
    let block_pair = pairs.iter().find(|pair| pair.iter().flat_map(|group| &group.runs).all(in_block));
    if let Some(pair) = block_pair {
        let [baseline, candidate] = pair.map(|group| &group.name);
        return Some(Caveat::new(
            Severity::Warning,
            "not-interleaved",
            format!("no block has runs of both `{baseline}` and `{candidate}`: they were compared as if of one block"),
            "whatever differed between their blocks (another boot, day or experiment) looks like a difference, or hides one",
            "let one `latlab run` measure both, in turn, in random order and in blocks",
        ));
    }
    let started = runs.any(|run| !run.origin.started_at.is_empty());
    let in_turn = pairs.iter().all(|[baseline, candidate]| do_alternate(baseline, candidate));
    let (severity, message) = match (started, in_turn) {
        (false, _) => (Severity::Warning, "nobody knows in what order the numbers were measured".to_owned()),
        (true, false) => {
            (Severity::Warning, "the groups were measured one after the other, not interleaved".to_owned())
        }
        (true, true) => {
            let message = "the groups took turns, but in no random order and without blocks";
            (Severity::Note, message.to_owned())
        }
    };
    let effect = "what drifted meanwhile (heat, background work, the clock rate) looks like a difference, or hides one";
    let hint = "let `latlab run` take the runs in turn, in random order and in blocks";
    Some(Caveat::new(severity, "not-interleaved", message, effect, hint))
}

fn in_block(run: &ObservedRun) -> bool {
    run.origin.block.is_some()
}

/// Whether the runs of two groups alternate in time: twice or more, and at least half as often as in a random order.
fn do_alternate(baseline: &RunGroup, candidate: &RunGroup) -> bool {
    let starts = |group: &RunGroup, is_baseline: bool| -> Vec<_> {
        group.runs.iter().map(|run| (run.origin.started_at.clone(), is_baseline)).collect()
    };
    let mut order = starts(baseline, true);
    order.extend(starts(candidate, false));
    order.sort();
    let turns = order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as f64;
    let (n, m) = (baseline.runs.len() as f64, candidate.runs.len() as f64);
    turns >= (n * m / (n + m)).max(2.0)
}

/// The groups differ in factors that are not compared: a difference may come from these.
fn confounded(groups: &RunGroups) -> Option<Caveat> {
    // The factors of an experiment are varied on purpose.
    if runs(groups).all(|run| run.factors.is_some()) {
        return None;
    }
    let levels = |group: &RunGroup| {
        let mut levels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (factor, level) in group.runs.iter().flat_map(|run| &run.levels) {
            levels.entry(factor.clone()).or_default().insert(level.clone());
        }
        levels
    };
    let levels_of_groups: Vec<_> = groups.groups.iter().filter(|group| !group.runs.is_empty()).map(levels).collect();
    let compared: BTreeSet<&String> = groups.groups.iter().flat_map(|group| group.levels.keys()).collect();
    let factors: BTreeSet<&String> = levels_of_groups.iter().flat_map(BTreeMap::keys).collect();
    let mut differing: Vec<&str> = factors
        .into_iter()
        .filter(|factor| {
            !compared.contains(factor)
                && levels_of_groups.windows(2).any(|pair| pair[0].get(*factor) != pair[1].get(*factor))
        })
        .map(String::as_str)
        .collect();
    // A sender over TCP is always connected.
    if compared.iter().any(|factor| *factor == "transport") || differing.contains(&"transport") {
        differing.retain(|factor| *factor != "connect");
    }
    // Groups that the user named probably differ in what their names say.
    let (severity, effect) = match compared.is_empty() {
        true => (Severity::Note, "a difference may come from each of these, if more than one"),
        false => (Severity::Warning, "a difference may come from that instead"),
    };
    let is_expected = compared.is_empty() && differing.len() < 2;
    (!differing.is_empty() && !is_expected).then(|| {
        Caveat::new(
            severity,
            "confounded",
            format!("the groups differ in {}", differing.join(", ")),
            effect,
            "compare runs that have everything else in common",
        )
    })
}

fn unsupported_quantiles(groups: &RunGroups, quantities: &[Quantity]) -> Option<Caveat> {
    let is_unsupported =
        |figure: Option<&RunFigure>| matches!(figure, Some(RunFigure::Finite { supported: false, .. }));
    let count = |index: usize| runs(groups).filter(|run| is_unsupported(run.figures.get(index))).count();
    let unsupported: Vec<_> = quantities
        .iter()
        .enumerate()
        .filter(|(index, _)| count(*index) > 0)
        .map(|(index, quantity)| format!("{} in {}", quantity.statistic_name(), counted(count(index), "run")))
        .collect();
    (!unsupported.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "unsupported-comparison",
            format!("fewer than 10 effective observations lay beyond a quantile: {}", unsupported.join(", ")),
            "runs were judged by its point value: it scatters more, and verdicts need more runs",
            "longer runs, or compare a lower quantile",
        )
    })
}

/// Means are over the answered probes and do not show the losses.
fn lost_probes(groups: &RunGroups, quantities: &[Quantity]) -> Option<Caveat> {
    if quantities.iter().any(Quantity::is_share) {
        return None;
    }
    let of = |group: &RunGroup| {
        let sum = |part: fn(&ObservedRun) -> u64| group.runs.iter().map(part).sum::<u64>();
        let (lost, all) = (sum(|run| run.lost), sum(|run| run.n));
        (lost > 0).then(|| format!("{} of {}", human::percent(lost as f64 / all as f64), group.name))
    };
    let losses: Vec<_> = groups.groups.iter().filter_map(of).collect();
    let of_streams = runs(groups).any(|run| run.kind == Some(Kind::Stream));
    let (noun, effect) = match of_streams {
        true => ("packets", "what was delivered is less than what was offered, by that share"),
        false => ("probes", "means are over those that were answered"),
    };
    (!losses.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "lost-probes",
            format!("{noun} were lost: {}", losses.join(", ")),
            effect,
            "compare the losses too: `--statistic loss_ratio`",
        )
    })
}

impl RunGroups {
    /// The caveat of excluded runs, if there are any.
    pub fn exclusion_caveat(&self) -> Option<Caveat> {
        let word = |(reason, count): (&ExclusionReason, &usize)| match (reason, count) {
            (ExclusionReason::Interrupted, 2..) => format!("{count} runs that were interrupted"),
            _ => format!("{} that {}", counted(*count, "run"), reason.word()),
        };
        let mut excluded: Vec<_> = self.excluded.iter().map(word).collect();
        let empty: Vec<_> = self.without_runs().map(|name| format!("`{name}`")).collect();
        if !empty.is_empty() {
            excluded.push(format!("nothing is left of {}", empty.join(", ")));
        }
        let severity = if empty.is_empty() { Severity::Note } else { Severity::Warning };
        (!excluded.is_empty()).then(|| {
            Caveat::new(
                severity,
                "runs-left-out",
                format!("not judged: {}", excluded.join(", ")),
                "figures are of the other runs only",
                "they are kept; `latlab summary` shows them",
            )
        })
    }
}
