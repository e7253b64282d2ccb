//! Caveats of a comparison: runs that were excluded, untrusted, warned of or not interleaved, confounded factors, infinite
//! figures and unequal spread.

use std::collections::{BTreeMap, BTreeSet};

use super::grouping_error::MISSING;
use super::groups::{GroupPair, RunGroup, RunGroups};
use super::numbers::line_caveats;
use super::observed_run::{ExclusionReason, ObservedRun};
use super::request::{ComparisonOptions, Quantity};
use super::verdict::{Comparison, Verdict};
use crate::analysis::caveats::without_cpus_of_ends;
use crate::analysis::effect_order;
use crate::analysis::estimand::RunFigure;
use crate::analysis::ping::{RunPlacement, UNPINNED_PLACEMENT};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::{ExcludedCondition, LoadReport};
use crate::plan::{Factors, conditions_in_words, heading_order};
use crate::stats::Look;
use crate::units::human::{self, counted};

/// The caveats of a comparison, worst first.
pub(super) fn of(
    groups: &RunGroups,
    quantities: &[Quantity],
    rows: &[Comparison],
    options: &ComparisonOptions,
) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    caveats.extend(missing_runs(&groups.missing));
    caveats.extend(looked_before(options));
    caveats.extend(untrusted_runs(groups));
    caveats.extend(line_caveats(groups));
    caveats.extend(broke_runs(groups));
    let placement = unequal_placement(groups);
    let mut warned = of_runs(groups);
    if placement.is_some() {
        // Its hint states the pins; that of a run may contradict it.
        warned.retain(|caveat| caveat.code != UNPINNED_PLACEMENT);
        warned.iter_mut().for_each(|caveat| caveat.hint = without_cpus_of_ends(&caveat.hint));
    }
    caveats.extend(placement);
    caveats.extend(warned);
    caveats.extend(lost_quantiles(rows));
    caveats.extend(unequal_spread(rows));
    caveats.extend(not_interleaved(groups, &pairs(groups, rows)));
    caveats.extend(confounded(groups));
    caveats.extend(unsupported_quantiles(groups, quantities));
    caveats.extend(groups.exclusion_caveat());
    caveats.extend(not_possible(groups));
    caveats.sort_by_key(effect_order);
    caveats
}

/// The look at an experiment that was continued after its verdicts were shown, or whose looks are declared.
fn looked_before(options: &ComparisonOptions) -> Option<Caveat> {
    let Look { number, declared, .. } = options.look;
    let confidence = human::percent(options.confidence);
    let (message, hint) = match declared {
        Some(declared) if number <= declared => (
            format!("this is look {number} of the {declared} that the file declares"),
            "a new experiment without `looks`",
        ),
        _ if number == 1 => return None,
        _ => (
            format!("this is look {number} at the experiment: runs were added after its verdicts had been shown"),
            "a new experiment, or `looks` in its file before the first run",
        ),
    };
    let effect =
        format!("each look can find a difference by chance: verdicts and intervals of this one are at {confidence}");
    Some(Caveat::new(Severity::Note, "looked-before", message, effect, hint))
}

fn runs(groups: &RunGroups) -> impl Iterator<Item = &ObservedRun> {
    groups.groups.iter().flat_map(|group| &group.runs)
}

/// The compared pairs of groups that have runs.
pub(super) fn pairs(groups: &RunGroups, rows: &[Comparison]) -> BTreeSet<GroupPair> {
    let pairs = rows.iter().map(|row| GroupPair { baseline: row.baseline, candidate: row.candidate });
    pairs.filter(|pair| groups.pair(*pair).iter().all(|group| !group.runs.is_empty())).collect()
}

fn untrusted_runs(groups: &RunGroups) -> Option<Caveat> {
    let untrusted: Vec<_> = runs(groups).filter(|run| !run.is_trustworthy()).collect();
    let mut fatal = untrusted.iter().flat_map(|run| &run.caveats).filter(|caveat| caveat.severity == Severity::Fatal);
    let first = fatal.next()?;
    let what = format!("{} with a fatal caveat compared like the others", counted(untrusted.len(), "run"));
    Some(Caveat::new(
        Severity::Warning,
        "untrusted-runs",
        with_first(what, untrusted.len(), &first.message),
        "a difference may come from what spoiled those runs",
        "see their caveats with `latlab summary`, and measure them again",
    ))
}

/// Formats what `count` runs have with the message of the first of them.
fn with_first(what: String, count: usize, message: &str) -> String {
    let of_first = if count == 1 { "" } else { ", for example" };
    format!("{what}{of_first}: {message}")
}

/// Caveats that the comparison raises itself, from all runs together.
const OWN: [&str; 5] = ["few-observations", "lost", "late", "broke", "cut-short"];

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

/// Runs whose ends were placed otherwise than those of other runs, though not all by pins.
fn unequal_placement(groups: &RunGroups) -> Option<Caveat> {
    let placements: Vec<&RunPlacement> = runs(groups).filter_map(|run| run.placement.as_ref()).collect();
    // Without any run that is not pinned, the placement is a condition that was chosen.
    let is_chosen = placements.iter().all(|placement| placement.is_pinned);
    let words: BTreeSet<&str> = placements.iter().map(|placement| placement.words).collect();
    if is_chosen || words.len() < 2 {
        return None;
    }
    let is_placed =
        |run: &ObservedRun, words: &str| run.placement.as_ref().is_some_and(|placement| placement.words == words);
    let of_each = words.iter().map(|words| {
        let runs = share_of_runs(groups, &count_runs(groups, |run| is_placed(run, words)));
        format!("{words} in {runs}")
    });
    // Runs that spin cannot share a CPU, wherever the others were.
    let spins = placements.iter().any(|placement| placement.spins);
    let pins = words.iter().filter_map(|words| {
        let fit = placements.iter().filter(|placement| !(spins && placement.is_shared));
        let mut same = fit.filter(|placement| placement.words == *words);
        Some(format!("{} ({words})", same.find_map(|placement| placement.pins.as_ref())?))
    });
    let pins = pins.reduce(|all, one| format!("{all}, or {one}"));
    Some(Caveat::new(
        Severity::Warning,
        "unequal-placement",
        format!("both ends were {}", of_each.collect::<Vec<_>>().join("; ")),
        "a difference may come from the CPUs, which the scheduler chooses anew for each run without pins",
        format!("the same pins for all runs: {}", pins.as_deref().unwrap_or("`--cpu` and `--peer-cpu`")),
    ))
}

/// The warnings of runs, each once with the number of runs that carry it; those first whose share differs most between
/// two groups.
fn of_runs(groups: &RunGroups) -> Vec<Caveat> {
    let is_warning = |caveat: &&Caveat| caveat.severity == Severity::Warning && !OWN.contains(&caveat.code.as_str());
    let codes: BTreeSet<&str> =
        runs(groups).flat_map(|run| &run.caveats).filter(is_warning).map(|caveat| caveat.code.as_str()).collect();
    let mut counts: Vec<WarnedRuns> = codes.into_iter().map(|code| WarnedRuns::of(groups, code)).collect();
    counts.sort_by(|one, other| other.imbalance().total_cmp(&one.imbalance()));
    counts.into_iter().filter_map(|warned| warned.caveat(groups)).collect()
}

/// The runs that carry a caveat as a warning.
struct WarnedRuns<'a> {
    code: &'a str,
    counts: Vec<CountedRuns<'a>>,
    /// As the first of them has it.
    first: Option<&'a Caveat>,
    loads: Vec<&'a LoadReport>,
}

impl<'a> WarnedRuns<'a> {
    fn of(groups: &'a RunGroups, code: &'a str) -> WarnedRuns<'a> {
        // A code that is a note in one run may be a warning in another.
        let is_it = |caveat: &&Caveat| caveat.code == code && caveat.severity >= Severity::Warning;
        let carries = |run: &&ObservedRun| run.caveats.iter().any(|caveat| is_it(&caveat));
        let carriers = || runs(groups).filter(carries);
        WarnedRuns {
            code,
            counts: count_runs(groups, |run| carries(&run)),
            first: carriers().flat_map(|run| &run.caveats).find(is_it),
            loads: carriers().flat_map(|run| &run.loads).collect(),
        }
    }

    fn imbalance(&self) -> f64 {
        imbalance(&self.counts)
    }

    fn caveat(self, groups: &RunGroups) -> Option<Caveat> {
        let first = self.first?;
        let some = share_of_runs(groups, &self.counts);
        let message = match self.reached().filter(|_| self.code == "load-unreached") {
            Some(reached) => format!("{some}: {reached}"),
            None => with_first(some, self.counts.iter().map(|group| group.counted).sum(), &first.message),
        };
        let effect = match self.imbalance() > 0.0 {
            true => format!("this differs between the groups, and may cause the difference; {}", first.effect),
            false => first.effect.clone(),
        };
        Some(Caveat { message, effect, ..first.clone() })
    }

    /// `load not reached, 63.8 % of 80 % on average`; `None` unless all loads are of one kind and have figures.
    fn reached(&self) -> Option<String> {
        let unit = &self.loads.first()?.unit;
        if self.loads.iter().any(|load| load.unit != *unit) {
            return None;
        }
        let mean = |of: fn(&LoadReport) -> Option<f64>| {
            let each: Option<Vec<f64>> = self.loads.iter().map(|load| of(load)).collect();
            each.map(|each| human::load_figure(unit, each.iter().sum::<f64>() / each.len() as f64))
        };
        let (achieved, offered) = (mean(|load| load.achieved)?, mean(|load| load.offered)?);
        Some(format!("load not reached, {achieved} of {offered} on average"))
    }
}

fn broke_runs(groups: &RunGroups) -> Option<Caveat> {
    let broke = runs(groups).filter(|run| run.broke && run.excluded.is_none()).count();
    (broke > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "broke-runs",
            format!("{} ended at a late wake-up (`--break`)", counted(broke, "run")),
            "their length depends on their own latest wake-up, which biases the comparison",
            "measure without `--break`",
        )
    })
}

fn lost_quantiles(rows: &[Comparison]) -> Option<Caveat> {
    let mut worst: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let (baseline, candidate) = row.evidence.infinite;
        if baseline + candidate > 0 {
            let most = worst.entry(row.quantity.statistic_name()).or_default();
            *most = (*most).max(baseline + candidate);
        }
    }
    let lost: Vec<_> = worst.iter().map(|(name, count)| format!("{name} in {}", counted(*count, "run"))).collect();
    (!lost.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "lost-quantile",
            format!("figures are infinite, since too many probes had no answer: {}", lost.join(", ")),
            "such rows have no interval; if some runs are finite, they compare ranks instead of figures",
            "see the row `loss_ratio`, or compare a lower quantile",
        )
    })
}

/// From this ratio of standard deviations on, skew of the wider group may look like a difference.
const SPREAD_RATIO: f64 = 4.0;

/// Differences between groups of unequal spread, which skew of the wider one may feign (docs/statistics.md).
fn unequal_spread(rows: &[Comparison]) -> Option<Caveat> {
    let is_claim = |row: &&Comparison| matches!(row.verdict, Verdict::Higher | Verdict::Lower | Verdict::Equivalent);
    let ratio = |row: &Comparison| row.evidence.spread_ratio.filter(|ratio| *ratio >= SPREAD_RATIO);
    let mut unequal: Vec<(String, f64)> = Vec::new();
    for (row, ratio) in rows.iter().filter(is_claim).filter_map(|row| Some((row, ratio(row)?))) {
        let name = row.quantity.statistic_name();
        match unequal.iter_mut().find(|(other, _)| *other == name) {
            Some((_, largest)) => *largest = largest.max(ratio),
            None => unequal.push((name, ratio)),
        }
    }
    let times = |ratio: f64| match ratio.is_finite() {
        true => format!("{} times", human::significant(ratio)),
        false => "infinitely (all runs of one group are equal)".into(),
    };
    let named: Vec<_> = unequal.iter().map(|(name, ratio)| format!("{name} {}", times(*ratio))).collect();
    (!named.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "unequal-spread",
            format!("the runs of one group vary more than those of the other: {}", named.join(", ")),
            "if they are also skewed, up to 12 % of equal groups are reported as different at 95 % confidence",
            "more runs of that group, or remove the cause of its outliers",
        )
    })
}

/// Runs of an experiment are randomised within blocks. The start times of other runs show whether these were interleaved.
fn not_interleaved(groups: &RunGroups, pairs: &BTreeSet<GroupPair>) -> Option<Caveat> {
    let pairs: Vec<_> =
        pairs.iter().filter(|pair| !groups.are_interleaved(**pair)).map(|pair| groups.pair(*pair)).collect();
    pairs.first()?;
    let block_pair = pairs.iter().find(|pair| pair.iter().flat_map(|group| &group.runs).all(in_block));
    if let Some(pair) = block_pair {
        let [baseline, candidate] = pair.map(|group| group.words());
        return Some(Caveat::new(
            Severity::Warning,
            "not-interleaved",
            format!("no block has runs of both `{baseline}` and `{candidate}`: all runs were compared as one block"),
            "what differed between their blocks (boot, day, experiment) looks like a difference, or hides one",
            "measure both in one `latlab run`",
        ));
    }
    let has_start = |run: &ObservedRun| !run.origin.started_at.is_empty();
    let is_in_order = |pair: &&[&RunGroup; 2]| pair.iter().flat_map(|group| &group.runs).all(has_start);
    let in_order: Vec<_> = pairs.iter().filter(is_in_order).collect();
    let (code, severity, message) = if !in_order.iter().all(|[baseline, candidate]| do_alternate(baseline, candidate)) {
        ("not-interleaved", Severity::Warning, "the groups were measured one after the other, not interleaved")
    } else if in_order.len() == pairs.len() {
        ("not-interleaved", Severity::Note, "the groups alternated, but not in random order and not in blocks")
    } else {
        ("order-unknown", Severity::Note, "the order in which the groups were measured is not known")
    };
    let effect = "a drift (heat, background work, the clock rate) looks like a difference, or hides one";
    let hint = "`latlab run` measures the groups in random order and in blocks";
    Some(Caveat::new(severity, code, message, effect, hint))
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
    let names: Vec<String> = differing.iter().map(|factor| (*factor).clone()).collect();
    // Groups that the user named probably differ in what their names say.
    let (severity, message) = match compared.is_empty() {
        true => (Severity::Note, format!("the groups differ in {}", human::few(&names))),
        false => (Severity::Warning, format!("the groups also differ in {}", human::few(&names))),
    };
    let effect = if names.len() == 1 { "the change may come from that" } else { "the change may come from these" };
    let is_expected = compared.is_empty() && differing.len() < 2;
    (!differing.is_empty() && !is_expected)
        .then(|| Caveat::new(severity, "confounded", message, effect, "compare runs that are equal in everything else"))
}

fn unsupported_quantiles(groups: &RunGroups, quantities: &[Quantity]) -> Option<Caveat> {
    let is_unsupported =
        |figure: Option<&RunFigure>| matches!(figure, Some(RunFigure::Finite { supported: false, .. }));
    let count = |index: usize| runs(groups).filter(|run| is_unsupported(run.figures.get(index))).count();
    let mut unsupported: Vec<_> = quantities.iter().zip((0..).map(count)).filter(|(_, runs)| *runs > 0).collect();
    let q = |quantity: &Quantity| quantity.quantile().unwrap_or(0.5);
    unsupported.sort_by(|(one, _), (other, _)| q(one).total_cmp(&q(other)));
    let words =
        |(quantity, runs): &(&Quantity, usize)| format!("{} in {}", quantity.statistic_name(), counted(*runs, "run"));
    let named: Vec<String> = unsupported.iter().map(words).collect();
    let is_any = |is_it: fn(f64) -> bool| unsupported.iter().any(|(quantity, _)| is_it(q(quantity)));
    let hint = match (is_any(|q| q < 0.5), is_any(|q| q > 0.5)) {
        (true, true) => "longer runs, or compare quantiles nearer to the median",
        (true, false) => "longer runs, or compare a higher quantile",
        (false, true) => "longer runs, or compare a lower quantile",
        (false, false) => "longer runs",
    };
    (!named.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "unsupported-comparison",
            format!("fewer than 10 effective observations lay beyond a quantile: {}", named.join(", ")),
            "its value in each run was compared: it varies more, and verdicts need more runs",
            hint,
        )
    })
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

/// The code of the caveat that names conditions which cannot be measured here.
pub const NOT_POSSIBLE: &str = "not-possible";

fn not_possible(groups: &RunGroups) -> Option<Caveat> {
    let words = impossible_words(&groups.impossible, &groups.possible_conditions())?;
    let words = format!("not possible here: {words}");
    let (effect, hint) = ("no row is about these conditions", "measure on a host that can, or leave their levels out");
    Some(Caveat::new(Severity::Note, NOT_POSSIBLE, words, effect, hint))
}

/// Names the conditions `impossible` here once for each cause, beside the `possible` ones: `governor=ondemand` (the
/// kernel does not set frequencies); `None` if there are none.
pub fn impossible_words(impossible: &[ExcludedCondition], possible: &[&Factors]) -> Option<String> {
    let all: Vec<&Factors> = impossible.iter().map(|one| &one.factors).chain(possible.iter().copied()).collect();
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
        let hint = match self.excluded.is_empty() {
            true => "measure it: a comparison needs runs of each group",
            false => "the recordings are kept; `latlab summary` shows them",
        };
        (!excluded.is_empty()).then(|| {
            Caveat::new(
                severity,
                "runs-left-out",
                format!("not compared: {}", excluded.join(", ")),
                "figures cover the other runs only",
                hint,
            )
        })
    }
}
