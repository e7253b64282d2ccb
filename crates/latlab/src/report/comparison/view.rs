//! The content of a comparison report, rounded and formatted as text.

use std::collections::{BTreeMap, BTreeSet};

use super::words;
use crate::analysis::comparison::{
    Comparison, ComparisonMethod, Comparisons, Evidence, FigureScale, Quantity, QuestionScope, RunGroup, Verdict,
};
use crate::analysis::{ChangeGateResult, GateReason};
use crate::report::summary_view::caveat_views;
use crate::report::view::CaveatView;
use crate::units::human::{self, ABSENT};

/// Options of a comparison report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonShowing {
    /// True to explain the method of each verdict.
    pub explain: bool,
}

/// Content of a comparison report.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonView {
    /// One-line description of the comparison.
    pub heading: String,
    /// Rows of each pair of groups.
    pub pairs: Vec<PairView>,
    /// Differences along the distribution for each pair.
    pub shifts: Vec<PairView>,
    /// Gates with their results.
    pub gates: Vec<String>,
    /// Notes on the methods.
    pub footnotes: Vec<String>,
    /// Caveats caveat_views from 1, most severe first.
    pub caveats: Vec<CaveatView>,
}

/// A baseline and a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairView {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Compared statistics.
    pub rows: Vec<ChangeView>,
}

/// Comparison of one statistic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeView {
    /// Name of the statistic, such as `p99`.
    pub label: String,
    /// Figure of the baseline.
    pub baseline: String,
    /// Figure of the candidate.
    pub candidate: String,
    /// Difference with its confidence interval.
    pub change: String,
    /// Verdict; empty if none is given.
    pub verdict: String,
    /// Adjusted p value of the verdict; empty without a verdict.
    pub p: String,
    /// Reason for an undecided verdict.
    pub reason: Option<String>,
    /// Method of the verdict.
    pub explanation: Option<String>,
}

impl ComparisonView {
    /// Builds the view of comparisons and gates.
    pub fn of(comparisons: &Comparisons, gates: &[ChangeGateResult], showing: ComparisonShowing) -> ComparisonView {
        let names = several_metrics(&comparisons.rows);
        let rows = |rows: &[Comparison], judged: bool| {
            let mut pairs: Vec<PairView> = Vec::new();
            let mut explained = BTreeSet::new();
            for row in rows {
                let [baseline, candidate] =
                    [row.baseline, row.candidate].map(|place| comparisons.groups.groups[place].name.clone());
                let mut change = ChangeView::of(row, names, judged, showing.explain);
                // A reason that several rows of a pair have is shown in the first only, unless it has a number of its own.
                let is_general = row.undecided.is_some_and(|why| why.runs_needed().is_none());
                if is_general && !explained.insert((row.baseline, row.candidate, change.reason.clone())) {
                    change.reason = None;
                }
                match pairs.last_mut().filter(|pair| pair.baseline == baseline && pair.candidate == candidate) {
                    Some(pair) => pair.rows.push(change),
                    None => pairs.push(PairView { baseline, candidate, rows: vec![change] }),
                }
            }
            pairs
        };
        ComparisonView {
            heading: heading(comparisons),
            pairs: rows(&comparisons.rows, true),
            shifts: rows(&comparisons.shifts, false),
            gates: gates.iter().map(|gated| gate(gated, comparisons)).collect(),
            footnotes: footnotes(comparisons, showing),
            caveats: caveat_views(&comparisons.caveats),
        }
    }
}

impl ChangeView {
    fn of(row: &Comparison, with_metric: bool, judged: bool, explain: bool) -> ChangeView {
        let typical =
            row.centres.map_or(0.0, |(baseline, candidate)| if baseline.is_finite() { baseline } else { candidate });
        let figure = |value: Option<f64>| match value {
            Some(value) => words::figure(row.quantity, value, typical),
            None => ABSENT.into(),
        };
        let label = match with_metric && (row.quantity.is_time() || row.quantity.is_rate()) {
            true => format!("{} {}", row.quantity.metric_name(), row.quantity.label()),
            false => row.quantity.label(),
        };
        ChangeView {
            label,
            baseline: figure(row.centres.map(|centres| centres.0)),
            candidate: figure(row.centres.map(|centres| centres.1)),
            change: words::change(row),
            verdict: if judged { row.verdict.word().into() } else { String::new() },
            p: if judged { words::p_value(row.deciding_p_value()) } else { String::new() },
            reason: words::reason(row).filter(|_| judged),
            explanation: (explain && judged).then(|| explanation(row)),
        }
    }
}

fn several_metrics(rows: &[Comparison]) -> bool {
    let of_metric = |row: &&Comparison| row.quantity.is_time() || row.quantity.is_rate();
    let mut times = rows.iter().filter(of_metric).map(|row| row.quantity.metric_name());
    let first = times.next();
    times.any(|name| Some(name) != first)
}

/// Formats as `round trip delay by load: 10 runs × 3 blocks each, interleaved, 95 % intervals`.
fn heading(comparisons: &Comparisons) -> String {
    let asked = comparisons.rows.iter().filter(|row| !row.added);
    let mut titles: Vec<_> = asked.map(|row| row.quantity.metric_title()).collect();
    titles.dedup();
    let title = if titles.windows(2).all(|pair| pair[0] == pair[1]) { titles.first().copied() } else { None };
    let what = title.unwrap_or("several metrics");
    let by = comparisons.groups.factor.as_ref().map(|factor| format!(" by {factor}")).unwrap_or_default();
    let interleaved = comparisons.is_interleaved();
    let design = design(comparisons, interleaved);
    let turns = if interleaved { ", interleaved" } else { "" };
    format!("{what}{by}: {design}{turns}, {} intervals", words::confidence(comparisons.options.confidence))
}

/// Formats as `10 runs × 3 blocks each` for a balanced design, else with the counts common to all groups.
fn design(comparisons: &Comparisons, interleaved: bool) -> String {
    let noun = if comparisons.quantities.contains(&Quantity::Value) { "value" } else { "run" };
    let in_blocks = |group: &RunGroup| {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        group.runs.iter().for_each(|run| *counts.entry(run.origin.block.clone()).or_default() += 1);
        counts
    };
    let groups: Vec<_> =
        comparisons.groups.groups.iter().filter(|group| !group.runs.is_empty()).map(in_blocks).collect();
    let blocks = groups.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>().len();
    let blocks = if interleaved { blocks } else { 1 };
    let counts: BTreeSet<usize> = groups.iter().flat_map(BTreeMap::values).copied().collect();
    let size = |group: &RunGroup| group.numbers.map_or(group.runs.len(), |numbers| numbers.lines as usize);
    let with_runs = comparisons.groups.groups.iter().filter(|group| !group.runs.is_empty());
    let sizes: BTreeSet<usize> = with_runs.map(size).collect();
    let count = |count: usize| human::grouped(count as u64);
    let plural = |number: usize| format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" });
    let [least, most] = [sizes.first(), sizes.last()].map(|size| size.copied().unwrap_or(0));
    let is_full = counts.len() == 1 && groups.iter().all(|group| group.len() == blocks);
    let size = if least == most { plural(most) } else { format!("{} to {}", count(least), plural(most)) };
    match blocks {
        0 | 1 => format!("{size} each"),
        _ if is_full => format!("{} × {blocks} blocks each", plural(most / blocks)),
        _ => format!("{size} each in {blocks} blocks"),
    }
}

fn footnotes(comparisons: &Comparisons, showing: ComparisonShowing) -> Vec<String> {
    let mut notes: Vec<String> = reached_loads(comparisons).into_iter().collect();
    let tested = |row: &&Comparison| row.p_value.is_some();
    if !comparisons.rows.iter().any(|row| tested(&row)) {
        return notes;
    }
    let over = match comparisons.options.scope {
        QuestionScope::Blocks => "permutation test and Welch's t within blocks (the larger), for these blocks",
        QuestionScope::Boots => "sign permutation test and paired t (the larger), over boots",
    };
    let of_family = |added: bool| comparisons.rows.iter().filter(|row| row.added == added).filter(tested).count();
    let family = match (of_family(false), of_family(true)) {
        (asked, 0 | 1) if asked > 1 => format!(", Holm over {asked} comparisons"),
        (asked, losses) if losses > 1 => format!(", Holm over {asked} comparisons, and apart over {losses} of losses"),
        _ => String::new(),
    };
    let more = if showing.explain { "" } else { "; details: `--explain`" };
    notes.extend(figures(comparisons));
    notes.push(format!("p values: {over}{family}{more}"));
    let equivalent = comparisons.rows.iter().filter(|row| row.verdict == Verdict::Equivalent);
    let mut margins: Vec<String> = equivalent.filter_map(|row| row.margin).map(human::percent).collect();
    margins.dedup();
    if !margins.is_empty() {
        notes.push(format!(
            "equivalent: the difference is proven to lie within {}; its p is that of a larger one",
            margins.join(" and ")
        ));
    }
    notes
}

/// Formats `loads reached: cpu=80% 63.8 % in cpu; …`: the mean over the runs of each group, where loads have figures.
fn reached_loads(comparisons: &Comparisons) -> Option<String> {
    let mut reached = Vec::new();
    for group in &comparisons.groups.groups {
        let loads = || group.runs.iter().flat_map(|run| &run.loads);
        let names: BTreeSet<&str> = loads().map(|load| load.load.as_str()).collect();
        for name in names {
            let own = || loads().filter(|load| load.load == name);
            let figures: Vec<f64> = own().filter_map(|load| load.achieved).collect();
            if let (Some(first), false) = (own().next(), figures.is_empty()) {
                let mean = figures.iter().sum::<f64>() / figures.len() as f64;
                reached.push(format!("`{name}` {} in {}", human::load_figure(&first.unit, mean), group.name));
            }
        }
    }
    (!reached.is_empty()).then(|| format!("loads reached: {}", reached.join("; ")))
}

/// Names the kind of mean, which may differ from the arithmetic mean of publications.
fn figures(comparisons: &Comparisons) -> Option<String> {
    let scales: BTreeSet<bool> = comparisons.rows.iter().map(|row| row.scale == FigureScale::Logarithmic).collect();
    let of = if comparisons.quantities.contains(&Quantity::Value) { "the values" } else { "the runs" };
    let means = match (scales.contains(&true), scales.contains(&false)) {
        (true, false) => format!("geometric means of {of}"),
        (false, true) => format!("means of {of}"),
        (true, true) => format!("geometric means of {of}; of shares, and where one is not above 0, means"),
        (false, false) => return None,
    };
    let reads_losses =
        comparisons.rows.iter().any(|row| row.evidence.reads_losses && row.method == ComparisonMethod::Shift);
    let losses = if reads_losses { "; intervals also count each lost probe as its time-out" } else { "" };
    Some(format!("figures: {means}{losses}"))
}

fn explanation(row: &Comparison) -> String {
    let scale = match row.scale {
        FigureScale::Logarithmic => "by logarithms: figures are geometric means, a change is a factor",
        FigureScale::Linear => "as they are: figures are means, a change is a difference",
    };
    let (baseline, candidate) = row.evidence.runs;
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let Evidence { blocks, strata, boots, .. } = row.evidence;
    let strata = if strata == blocks { String::new() } else { format!(", {strata} strata with the other factors") };
    let boots = if boots > 0 { format!(", {}", counted(boots, "boot")) } else { String::new() };
    let exchanges = match (row.evidence.permutations, row.evidence.exact) {
        (count, true) => format!("all {} permutations", human::grouped(count)),
        (count, false) => format!("{} random permutations", human::grouped(count)),
    };
    let raw = format!("p {} before Holm", words::p_value(row.p_value));
    let margin = row.p_equivalent.map(|p| format!(", p {} of a difference beyond the margin", words::p_value(Some(p))));
    let margin = margin.unwrap_or_default();
    let test = match row.method {
        ComparisonMethod::None => "no test".to_owned(),
        ComparisonMethod::Separated => {
            "no test: all runs of one group are infinite or unanswered, none of the other".into()
        }
        ComparisonMethod::Placements => format!("{exchanges} of ranks, and Brunner and Munzel's t; {raw}"),
        ComparisonMethod::Shift => format!("{exchanges}, and Welch's t; {raw}{margin}; compared {scale}"),
    };
    let noun = match row.quantity {
        Quantity::Value if row.evidence.of_means => "lines or means of consecutive lines",
        Quantity::Value => "lines",
        Quantity::Of(_) => "runs",
    };
    format!("{baseline} and {candidate} {noun} in {}{strata}{boots}; {test}", counted(blocks, "common block"))
}

/// Says what a gate lacks, of the first that applies.
fn nothing_to_judge(gated: &ChangeGateResult, comparisons: &Comparisons) -> &'static str {
    match gated.row.map(|row| comparisons.rows[row].evidence) {
        None => ": nothing was compared in it",
        Some(Evidence { runs: (0, _), .. }) => ": the baseline has no run",
        Some(Evidence { runs: (_, 0), .. }) => ": it has no run",
        Some(Evidence { runs, unanswered, .. }) if unanswered.0 == runs.0 => ": no run of the baseline got an answer",
        Some(_) => ": some runs have nothing to compute it from",
    }
}

fn gate(gated: &ChangeGateResult, comparisons: &Comparisons) -> String {
    let word = gated.state.in_text();
    let why = match gated.reason {
        Some(GateReason::ZeroBaseline) => ": the baseline is 0, so that a change is not a share of it",
        Some(GateReason::Unanswered) => ": no run of it got an answer",
        Some(GateReason::Infinite) => ": it is infinite, and the baseline is not",
        Some(GateReason::NothingToJudge) => nothing_to_judge(gated, comparisons),
        Some(GateReason::MissingRuns) => ": recordings or files of the experiment are gone, damaged or edited",
        Some(GateReason::Losses) => ": lost probes make the change uncertain",
        Some(GateReason::BothSides | GateReason::Untested | GateReason::Unsupported) | None => "",
    };
    let Some(row) = gated.row.map(|row| &comparisons.rows[row]) else {
        return format!("gate `{}` {word}{why}", gated.gate);
    };
    let name = &comparisons.groups.groups[row.candidate].name;
    format!("gate `{}` {word} for `{name}`: {}{why}", gated.gate, words::judged_change(row))
}
