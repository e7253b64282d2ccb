//! The content of a comparison report, rounded and formatted as text.

use std::collections::{BTreeMap, BTreeSet};

use super::words;
use crate::analysis::comparison::{
    Comparison, Comparisons, Evidence, FigureScale, GateRow, GateState, GateUndecidedReason, Quantity, QuestionScope,
    RunGroup, Verdict,
};
use crate::report::summary_view::numbered;
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
    /// Caveats numbered from 1, most severe first.
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
    pub fn of(comparisons: &Comparisons, gates: &[GateRow], showing: ComparisonShowing) -> ComparisonView {
        let names = several_metrics(&comparisons.rows);
        let rows = |rows: &[Comparison], judged: bool| {
            let mut pairs: Vec<PairView> = Vec::new();
            let mut explained = None;
            for row in rows {
                let [baseline, candidate] =
                    [row.baseline, row.candidate].map(|place| comparisons.groups.groups[place].name.clone());
                let mut change = ChangeView::of(row, names, judged, showing.explain);
                let pair = (row.baseline, row.candidate, row.undecided);
                // A reason that concerns the whole pair is shown in its first row only.
                if explained == Some(pair) && row.undecided.is_some_and(|why| why.runs_needed().is_none()) {
                    change.reason = None;
                }
                explained = Some(pair);
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
            caveats: numbered(&comparisons.caveats),
        }
    }
}

impl ChangeView {
    fn of(row: &Comparison, with_metric: bool, judged: bool, explain: bool) -> ChangeView {
        let typical = row.centres.map_or(0.0, |(baseline, _)| baseline);
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
    let mut titles: Vec<_> = comparisons.rows.iter().map(|row| row.quantity.metric_title()).collect();
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
    let sizes: BTreeSet<usize> = groups.iter().map(|group| group.values().sum()).collect();
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
    let tested = comparisons.rows.iter().filter(|row| row.p_value.is_some()).count();
    if tested == 0 {
        return Vec::new();
    }
    let over = match comparisons.options.scope {
        QuestionScope::Blocks => "exchange of runs inside of blocks, for these blocks",
        QuestionScope::Boots => "exchange of signs, over boots",
    };
    let family = if tested > 1 { format!(", Holm over {tested} comparisons") } else { String::new() };
    let more = if showing.explain { "" } else { "; `--explain` tells more" };
    let mut notes: Vec<String> = figures(comparisons).into_iter().collect();
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
    Some(format!("figures: {means}"))
}

fn explanation(row: &Comparison) -> String {
    let scale = match row.scale {
        FigureScale::Logarithmic => "by logarithms: figures are geometric means, a change is a factor",
        FigureScale::Linear => "as they are: figures are means, a change is a difference",
    };
    let (baseline, candidate) = row.evidence.runs;
    let test = match (row.evidence.permutations, row.evidence.exact) {
        (0, _) => "no test".to_owned(),
        (count, true) => format!("all {} exchanges", human::grouped(count)),
        (count, false) => format!("{} exchanges, drawn", human::grouped(count)),
    };
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let Evidence { blocks, strata, boots, .. } = row.evidence;
    let strata = if strata == blocks { String::new() } else { format!(", {strata} strata with the other factors") };
    let boots = if boots > 0 { format!(", {}", counted(boots, "boot")) } else { String::new() };
    let raw = format!("p {} before Holm", words::p_value(row.p_value));
    let margin = row.p_equivalent.map(|p| format!(", p {} of a difference beyond the margin", words::p_value(Some(p))));
    format!(
        "{baseline} and {candidate} runs in {}{strata}{boots}; {test}; {raw}{}; compared {scale}",
        counted(blocks, "common block"),
        margin.unwrap_or_default()
    )
}

fn gate(gated: &GateRow, comparisons: &Comparisons) -> String {
    let row = &comparisons.rows[gated.row];
    let name = &comparisons.groups.groups[row.candidate].name;
    let word = match gated.state {
        GateState::Kept => "kept",
        GateState::Broken => "broken",
        GateState::Undecided => "undecided",
    };
    let change = words::judged_change(row);
    let why = if gated.reason == Some(GateUndecidedReason::ZeroBaseline) {
        ": no change is a share of a baseline of 0"
    } else {
        ""
    };
    format!("gate `{}` {word} by `{name}`: {change}{why}", gated.gate)
}
