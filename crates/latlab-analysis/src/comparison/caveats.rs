//! Caveats of a comparison: runs that were excluded, warned of or not interleaved, confounded factors, infinite figures and
//! unequal spread.

use std::collections::{BTreeMap, BTreeSet};

use super::grouping_error::MISSING;
use super::groups::{GroupPair, RunGroup, RunGroups};
use super::numbers::line_caveats;
use super::observed_run::{ExclusionReason, ObservedRun};
use super::request::{ComparisonOptions, Quantity};
use super::verdict::{Comparison, Verdict};
use crate::caveats::{Rule, Topic, raised};
use crate::diagnostics::Severity::{Note, Warning};
use crate::diagnostics::{Caveat, Severity};
use crate::estimand::RunFigure;
use crate::facts::ExcludedCondition;
use crate::ping::RunPlacement;
use crate::plan::{Factors, Kind, conditions_in_words, heading_order};
use crate::stats::Look;
use crate::units::human::{self, counted};

/// What is known of a comparison when its caveats are raised.
pub(crate) struct Compared<'a> {
    pub(super) groups: &'a RunGroups,
    pub(super) quantities: &'a [Quantity],
    pub(super) rows: &'a [Comparison],
    pub(super) options: &'a ComparisonOptions,
}

impl Topic for Compared<'static> {
    type Of<'a> = Compared<'a>;
}

/// From this ratio of standard deviations on, skew of the wider group may look like a difference.
const SPREAD_RATIO: f64 = 4.0;

/// Beside the caveats of [`missing_runs`], of lines, and of single runs.
pub(crate) const RULES: &[Rule<Compared<'_>>] = &[
    Rule {
        code: "confounded",
        // The groups differ in factors that are not compared.
        raise: |compared| {
            let (differing, is_by_factors) = differing_factors(compared.groups)?;
            let names = human::few(&differing);
            // Groups that the user named probably differ in what their names say, if that is one factor.
            match is_by_factors {
                true => Some((Warning, format!("the groups also differ in {names}"))),
                false if differing.len() > 1 => Some((Note, format!("the groups differ in {names}"))),
                false => None,
            }
        },
        effect: "the change may come from that",
        hint: |_| "compare runs that are equal in everything else".into(),
    },
    Rule {
        code: "broke",
        raise: |compared| {
            let broke = runs(compared.groups).filter(|run| run.broke && run.excluded.is_none()).count();
            (broke > 0).then(|| (Warning, format!("{} ended at a late wake-up (`--break`)", counted(broke, "run"))))
        },
        effect: "their length depends on their own latest wake-up, which biases the comparison",
        hint: |_| "measure without `--break`".into(),
    },
    Rule {
        code: "unpinned-placement",
        // The ends of some runs were placed otherwise than those of others, though not all by pins.
        raise: |compared| {
            let placements = || runs(compared.groups).filter_map(|run| run.placement.as_ref());
            // Without any run that is not pinned, the placement is a condition that was chosen.
            let is_chosen = placements().all(|placement| placement.is_pinned);
            let words: BTreeSet<&str> = placements().map(|placement| placement.words).collect();
            let of_each = |words: &&str| {
                let is_it = |placement: &RunPlacement| placement.words == *words;
                let counts = count_runs(compared.groups, |run| run.placement.as_ref().is_some_and(is_it));
                format!("{words} in {}", share_of_runs(compared.groups, &counts))
            };
            let of_each: Vec<_> = words.iter().map(of_each).collect();
            (!is_chosen && words.len() > 1).then(|| (Warning, format!("both ends were {}", of_each.join("; "))))
        },
        effect: "a difference may come from the CPUs, which the scheduler chooses anew for each run without pins",
        hint: |_| "the same `--cpu` and `--peer-cpu` for all runs".into(),
    },
    Rule {
        code: "lost",
        raise: |compared| {
            let mut worst: BTreeMap<String, usize> = BTreeMap::new();
            for row in compared.rows {
                let (baseline, candidate) = row.evidence.infinite;
                if baseline + candidate > 0 {
                    let most = worst.entry(row.quantity.statistic_name()).or_default();
                    *most = (*most).max(baseline + candidate);
                }
            }
            let lost: Vec<_> =
                worst.iter().map(|(name, count)| format!("{name} in {}", counted(*count, "run"))).collect();
            let kind = runs(compared.groups).find_map(|run| run.kind).unwrap_or(Kind::Ping);
            let (rows, infinite) = (kind.rows(), kind.infinite());
            let message =
                || format!("statistics are infinite, since too many {rows} count as {infinite}: {}", lost.join(", "));
            (!lost.is_empty()).then(|| (Warning, message()))
        },
        effect: "such rows have no interval; if some runs are finite, they compare ranks instead of values",
        hint: |_| "see the row `loss_ratio`, or compare a lower quantile".into(),
    },
    Rule {
        code: "few-observations",
        raise: |compared| {
            let is_weak =
                |figure: Option<&RunFigure>| matches!(figure, Some(RunFigure::Finite { supported: false, .. }));
            let count = |index: usize| runs(compared.groups).filter(|run| is_weak(run.figures.get(index))).count();
            let weak: Vec<_> = compared.quantities.iter().zip((0..).map(count)).filter(|(_, runs)| *runs > 0).collect();
            let words = |(quantity, runs): &(&Quantity, usize)| {
                format!("{} in {}", quantity.statistic_name(), counted(*runs, "run"))
            };
            let named: Vec<String> = weak.iter().map(words).collect();
            let message =
                || format!("fewer than 10 effective observations lay beyond a quantile: {}", named.join(", "));
            (!named.is_empty()).then(|| (Warning, message()))
        },
        effect: "its value in each run was compared: it varies more, and verdicts need more runs",
        hint: |_| "longer runs, or compare a quantile nearer to the median".into(),
    },
    Rule {
        code: "not-interleaved",
        raise: |compared| {
            let pairs = pairs_apart(compared);
            let is_in_blocks = |pair: &&[&RunGroup; 2]| pair.iter().flat_map(|group| &group.runs).all(in_block);
            let [baseline, candidate] = pairs.iter().find(is_in_blocks)?.map(|group| group.words());
            let message =
                format!("no block has runs of both `{baseline}` and `{candidate}`: all runs were compared as one");
            Some((Warning, message))
        },
        effect: "what differed between their blocks (boot, day, experiment) looks like a difference, or hides one",
        hint: |_| "measure both in one `latlab run`".into(),
    },
    Rule {
        code: "not-interleaved",
        // The start times show whether runs that are not of an experiment were interleaved.
        raise: |compared| {
            let pairs = pairs_apart(compared);
            let of = |pair: &[&RunGroup; 2], is_it: fn(&ObservedRun) -> bool| {
                pair.iter().flat_map(|group| &group.runs).all(is_it)
            };
            let has_start = |run: &ObservedRun| !run.origin.started_at.is_empty();
            let in_order: Vec<_> = pairs.iter().filter(|pair| of(pair, has_start)).collect();
            if pairs.is_empty() || pairs.iter().any(|pair| of(pair, in_block)) {
                return None;
            }
            Some(match in_order.iter().all(|[baseline, candidate]| do_alternate(baseline, candidate)) {
                false => (Warning, "the groups were measured one after the other, not interleaved".into()),
                true if in_order.len() == pairs.len() => {
                    (Note, "the groups alternated, but not in random order and not in blocks".into())
                }
                true => (Note, "the order in which the groups were measured is not known".into()),
            })
        },
        effect: "a drift (heat, background work, the clock rate) looks like a difference, or hides one",
        hint: |_| "`latlab run` measures the groups in random order and in blocks".into(),
    },
    Rule {
        code: "unequal-spread",
        // Differences between groups of unequal spread, which skew of the wider one may feign (docs/statistics.md).
        raise: |compared| {
            let is_claim =
                |row: &&Comparison| matches!(row.verdict, Verdict::Higher | Verdict::Lower | Verdict::Equivalent);
            let ratio = |row: &Comparison| row.evidence.spread_ratio.filter(|ratio| *ratio >= SPREAD_RATIO);
            let mut unequal: Vec<(String, f64)> = Vec::new();
            for (row, ratio) in compared.rows.iter().filter(is_claim).filter_map(|row| Some((row, ratio(row)?))) {
                let name = row.quantity.statistic_name();
                match unequal.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, largest)) => *largest = largest.max(ratio),
                    None => unequal.push((name, ratio)),
                }
            }
            let times = |ratio: f64| {
                if ratio.is_finite() {
                    format!("{} times", human::significant(ratio))
                } else {
                    "infinitely (all runs of one group are equal)".into()
                }
            };
            let named: Vec<_> = unequal.iter().map(|(name, ratio)| format!("{name} {}", times(*ratio))).collect();
            let message = || format!("the runs of one group vary more than those of the other: {}", named.join(", "));
            (!named.is_empty()).then(|| (Note, message()))
        },
        effect: "if they are also skewed, up to 12 % of equal groups are reported as different at 95 % confidence",
        hint: |_| "more runs of that group, or remove the cause of its outliers".into(),
    },
    Rule {
        code: "looked-before",
        raise: |compared| {
            let Look { number, declared, .. } = compared.options.look;
            let confidence = human::percent(compared.options.confidence);
            let look = match declared {
                Some(declared) if number <= declared => {
                    format!("this is look {number} of {declared} planned ones")
                }
                _ if number == 1 => return None,
                _ => format!(
                    "this is look {number} at the experiment: runs were added after its verdicts had been shown"
                ),
            };
            Some((Note, format!("{look}; its verdicts and intervals are at {confidence}")))
        },
        effect: "each look can find a difference by chance, so that verdicts and intervals have a stricter level",
        hint: |_| "a new experiment, or `looks` in its file before the first run".into(),
    },
    Rule {
        code: NOT_POSSIBLE,
        raise: |compared| {
            let words = impossible_words(&compared.groups.impossible, &compared.groups.possible_conditions())?;
            Some((Note, format!("not possible here: {words}")))
        },
        effect: "no row is about these conditions",
        hint: |_| "measure on a host that can, or leave their levels out".into(),
    },
];

/// The code of the caveat that names conditions which cannot be measured here.
pub const NOT_POSSIBLE: &str = "not-possible";

impl Compared<'_> {
    /// The caveats of the comparison and of its runs, worst first.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let own = raised(RULES, self);
        let mut caveats: Vec<Caveat> = missing_runs(&self.groups.missing).into_iter().collect();
        caveats.extend(line_caveats(self.groups));
        // Its hint states the pins, which differ from run to run.
        let is_repeated = |caveat: &Caveat| own.iter().any(|own| own.code == caveat.code);
        caveats.extend(of_runs(self.groups).into_iter().filter(|caveat| !is_repeated(caveat)));
        caveats.extend(self.groups.exclusion_caveat());
        caveats.extend(own);
        caveats.sort_by_key(Caveat::worst_first);
        caveats
    }
}

/// The compared pairs of groups that have runs.
pub(super) fn pairs(groups: &RunGroups, rows: &[Comparison]) -> BTreeSet<GroupPair> {
    let pairs = rows.iter().map(|row| GroupPair { baseline: row.baseline, candidate: row.candidate });
    pairs.filter(|pair| groups.pair(*pair).iter().all(|group| !group.runs.is_empty())).collect()
}

fn runs(groups: &RunGroups) -> impl Iterator<Item = &ObservedRun> {
    groups.groups.iter().flat_map(|group| &group.runs)
}

/// The runs of a group, and how many of them have something.
struct CountedRuns<'a> {
    group: &'a RunGroup,
    counted: usize,
    all: usize,
}

impl CountedRuns<'_> {
    fn share(&self) -> f64 {
        self.counted as f64 / self.all as f64
    }
}

/// Counts the runs of each group with runs for which `has` is true.
fn count_runs<'a>(groups: &'a RunGroups, has: impl Fn(&ObservedRun) -> bool) -> Vec<CountedRuns<'a>> {
    let with_runs = groups.groups.iter().filter(|group| !group.runs.is_empty());
    let count = |group: &'a RunGroup| CountedRuns {
        group,
        counted: group.runs.iter().filter(|run| has(run)).count(),
        all: group.runs.len(),
    };
    with_runs.map(count).collect()
}

/// The difference of the largest and the smallest share of a group.
fn imbalance(groups: &[CountedRuns<'_>]) -> f64 {
    let shares = || groups.iter().map(CountedRuns::share);
    shares().fold(0.0, f64::max) - shares().fold(1.0, f64::min)
}

/// Formats counts as `3 of 6 runs`, or as ``4 of 6 runs (all of `a`; 1 of 3 of `b`)`` if the shares of the groups differ.
fn share_of_runs(groups: &RunGroups, counts: &[CountedRuns<'_>]) -> String {
    let sum = |of: fn(&CountedRuns<'_>) -> usize| counts.iter().map(of).sum::<usize>();
    let (some, all) = (sum(|group| group.counted), counted(sum(|group| group.all), "run"));
    if imbalance(counts) == 0.0 {
        return format!("{some} of {all}");
    }
    let with_runs = counts.iter().filter(|group| group.counted > 0);
    let (whole, mut parts): (Vec<_>, Vec<_>) = with_runs.partition(|group| group.counted == group.all);
    let whole: Vec<&RunGroup> = whole.into_iter().map(|group| group.group).collect();
    let all_of = if counts.iter().all(|group| group.all == 1) { "" } else { "all of " };
    let mut names: Vec<String> = groups.in_words(&whole).iter().map(|name| format!("{all_of}`{name}`")).collect();
    parts.sort_by(|one, other| other.share().total_cmp(&one.share()));
    for CountedRuns { group, counted, all } in parts {
        names.extend(groups.in_words(&[*group]).iter().map(|name| format!("{counted} of {all} of `{name}`")));
    }
    format!("{some} of {all} ({})", human::few_parts(&names))
}

/// The warnings and fatal caveats of runs, each once with the number of runs that carry it; fatal ones first, and then
/// those whose share differs most between two groups.
fn of_runs(groups: &RunGroups) -> Vec<Caveat> {
    let mut found: Vec<(Severity, f64, Caveat)> = Vec::new();
    for first in runs(groups).flat_map(|run| &run.caveats) {
        let is_known = found.iter().any(|(.., caveat)| caveat.code == first.code);
        if is_known || first.severity < Warning || OWN.contains(&first.code.as_str()) {
            continue;
        }
        // A code that is a note in one run may be a warning in another.
        let is_it = |caveat: &Caveat| caveat.code == first.code && caveat.severity >= Warning;
        let counts = count_runs(groups, |run| run.caveats.iter().any(is_it));
        let imbalance = imbalance(&counts);
        let is_one = counts.iter().map(|group| group.counted).sum::<usize>() == 1;
        let of_first = if is_one { "" } else { ", for example" };
        let message = format!("{}{of_first}: {}", share_of_runs(groups, &counts), first.message);
        let effect = if imbalance > 0.0 {
            format!("this differs between the groups, and may cause the difference; {}", first.effect)
        } else {
            first.effect.clone()
        };
        found.push((first.severity, imbalance, Caveat { severity: Warning, message, effect, ..first.clone() }));
    }
    found.sort_by(|one, other| other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)));
    found.into_iter().map(|(.., caveat)| caveat).collect()
}

/// Codes that the comparison raises itself, from all runs together.
const OWN: [&str; 4] = ["few-observations", "lost", "late", "broke"];

/// The compared pairs of groups whose runs were not interleaved by an experiment.
fn pairs_apart<'a>(compared: &Compared<'a>) -> Vec<[&'a RunGroup; 2]> {
    let groups = compared.groups;
    let apart = pairs(groups, compared.rows).into_iter().filter(|pair| !groups.are_interleaved(*pair));
    apart.map(|pair| groups.pair(pair)).collect()
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

/// Factors that only one transport has, or that another one fixes: they differ because the transport does.
const OF_ONE_TRANSPORT: [&str; 5] = ["connect", "reflect", "reliability", "keyed", "history"];

/// The factors in which the groups differ though these are not compared, and whether any are compared; `None` without any.
fn differing_factors(groups: &RunGroups) -> Option<(Vec<String>, bool)> {
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
    // The tag of a compared free factor has its levels.
    let is_its_tag = |factor: &str| {
        let name = factor.strip_prefix("tag:").unwrap_or(factor);
        let own = |group: &RunGroup| group.levels.get(name).map(|level| BTreeSet::from([level.clone()]));
        let mut all = groups.groups.iter().filter(|group| !group.runs.is_empty()).zip(&levels_of_groups);
        all.all(|(group, levels)| own(group).is_some_and(|own| levels.get(factor) == Some(&own)))
    };
    let mut differing: Vec<&String> = factors
        .into_iter()
        .filter(|factor| {
            !compared.contains(factor)
                && !is_its_tag(factor)
                && levels_of_groups.windows(2).any(|pair| pair[0].get(*factor) != pair[1].get(*factor))
        })
        .collect();
    if compared.iter().chain(&differing).any(|factor| *factor == "transport") {
        differing.retain(|factor| !OF_ONE_TRANSPORT.contains(&factor.as_str()));
    }
    differing.sort_by_key(|factor| heading_order(factor));
    (!differing.is_empty()).then(|| (differing.into_iter().cloned().collect(), !compared.is_empty()))
}

/// The caveat of what is [`MISSING`]; `None` if nothing is.
pub fn missing_runs<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<Caveat> {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "missing-runs",
            format!("{MISSING}: {}", names.join(", ")),
            "the results cover the remaining runs, which may be the better ones; no gate is met",
            "restore what is missing, or measure again; remove an empty directory, which a killed start leaves",
        )
    })
}

/// Names the conditions `impossible` here once for each cause, beside the `possible` ones: `governor=ondemand` (the
/// kernel does not set frequencies); `None` if there are none.
pub fn impossible_words(impossible: &[ExcludedCondition], possible: &[&Factors]) -> Option<String> {
    // A reason begins with what was attempted, which differs between levels.
    let cause_of = |one: &ExcludedCondition| one.reason.split_once(": ").map_or(&*one.reason, |it| it.1).to_owned();
    let mut causes: Vec<String> = impossible.iter().map(cause_of).collect();
    causes.sort();
    causes.dedup();
    let of_cause = |cause: &String| {
        let own: Vec<&ExcludedCondition> = impossible.iter().filter(|one| cause_of(one) == *cause).collect();
        let is_one = own.iter().all(|one| one.reason == own[0].reason);
        let reason = if is_one { &own[0].reason } else { cause };
        let factors: Vec<&Factors> = own.iter().map(|one| &one.factors).collect();
        let all = [factors.as_slice(), possible].concat();
        let names: Vec<_> = conditions_in_words(&factors, &all).iter().map(|name| format!("`{name}`")).collect();
        format!("{} ({reason})", names.join(", "))
    };
    let words: Vec<String> = causes.iter().map(of_cause).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

impl RunGroups {
    /// The caveat of excluded runs, if there are any.
    pub fn exclusion_caveat(&self) -> Option<Caveat> {
        let word = |(reason, count): (&ExclusionReason, &usize)| match (reason, count) {
            (ExclusionReason::Interrupted, 2..) => format!("{count} runs that were interrupted"),
            _ => format!("{} that {}", counted(*count, "run"), reason.word()),
        };
        let mut excluded: Vec<_> = self.excluded.iter().map(word).collect();
        let empty: Vec<_> = self.words_without_runs().into_iter().map(|name| format!("`{name}`")).collect();
        if !empty.is_empty() {
            excluded.push(format!("no run is left of {}", human::few(&empty)));
        }
        let severity = if empty.is_empty() { Severity::Note } else { Severity::Warning };
        let hint = if self.excluded.is_empty() {
            "measure it: a comparison needs runs of each group"
        } else {
            "the recordings are kept; `latlab summary` shows them"
        };
        (!excluded.is_empty()).then(|| {
            Caveat::new(
                severity,
                "runs-left-out",
                format!("not compared: {}", excluded.join(", ")),
                "results cover the other runs only",
                hint,
            )
        })
    }
}
