//! JSON document `latlab.compare/1`, with the schema docs/schemas/compare-1.json. Numbers are finite or null.

use serde::Serialize;

use crate::analysis::comparison::{
    Comparison, ComparisonMethod, ComparisonOptions, Comparisons, Effect, FigureScale, Look, Quantity, QuestionScope,
};
use crate::analysis::{ChangeGateResult, GateReason};
use crate::diagnostics::Caveat;
use crate::report::json::pretty;
use crate::stats::Outline;

/// Additional keys of the document in `latlab run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Companions {
    /// Value of the key `experiment`.
    pub experiment: Option<serde_json::Value>,
    /// Value of the key `runs`.
    pub runs: Option<serde_json::Value>,
}

/// Renders the document with a final newline.
pub fn render(comparisons: &Comparisons, gates: &[ChangeGateResult], companions: Companions) -> String {
    let name = |place: usize| comparisons.groups.groups[place].name.as_str();
    let rows = comparisons.rows.iter().map(|row| document(row, comparisons, true)).collect();
    let shifts: Vec<_> = comparisons.shifts.iter().map(|row| document(row, comparisons, false)).collect();
    let gates: Vec<_> = gates
        .iter()
        .map(|gated| {
            let row = gated.row.map(|row| &comparisons.rows[row]);
            let change = row.and_then(Comparison::judged_change);
            GateDocument {
                gate: &gated.gate,
                metric: gated.quantity.metric_name(),
                statistic: gated.quantity.statistic_name(),
                baseline: row.map(|row| name(row.baseline)),
                candidate: row.map(|row| name(row.candidate)),
                value: finite(change.map(|change| change.value)),
                low: finite(change.and_then(|change| change.interval.low)),
                high: finite(change.and_then(|change| change.interval.high)),
                state: gated.state.word(),
                reason: gated.reason.map(GateReason::code),
            }
        })
        .collect();
    pretty(&CompareDocument {
        schema: "latlab.compare/1",
        baseline: comparisons.rows.first().map(|row| name(row.baseline)),
        factor: comparisons.groups.factor.as_deref(),
        over: match comparisons.options.scope {
            QuestionScope::Blocks => "blocks",
            QuestionScope::Boots => "boots",
        },
        interleaved: comparisons.is_interleaved(),
        look: look(&comparisons.options),
        groups: groups(comparisons),
        comparisons: rows,
        shifts,
        gates,
        experiment: companions.experiment,
        runs: companions.runs,
        caveats: &comparisons.caveats,
    })
}

#[derive(Serialize)]
struct CompareDocument<'a> {
    schema: &'static str,
    baseline: Option<&'a str>,
    factor: Option<&'a str>,
    over: &'static str,
    interleaved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<LookDocument>,
    groups: Vec<GroupDocument<'a>>,
    comparisons: Vec<ComparisonDocument<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shifts: Vec<ComparisonDocument<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<GateDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<serde_json::Value>,
    caveats: &'a [Caveat],
}

#[derive(Serialize)]
struct LookDocument {
    number: u32,
    declared: Option<u32>,
    confidence: f64,
}

/// The look at the experiment, unless it is the first of an open number.
fn look(options: &ComparisonOptions) -> Option<LookDocument> {
    let Look { number, declared, .. } = options.look;
    (options.look != Look::FIRST).then_some(LookDocument { number, declared, confidence: options.confidence })
}

/// A group with the figures of the first compared quantity; `figures` has those of all quantities.
#[derive(Serialize)]
struct GroupDocument<'a> {
    name: &'a str,
    runs: usize,
    effective_n: Option<f64>,
    #[serde(flatten)]
    first: FiguresDocument,
    figures: Vec<FiguresDocument>,
}

#[derive(Clone, Serialize)]
struct FiguresDocument {
    metric: &'static str,
    statistic: String,
    unit: Option<&'static str>,
    n: u64,
    min: Option<f64>,
    max: Option<f64>,
    median: Option<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
}

#[derive(Serialize)]
struct ComparisonDocument<'a> {
    metric: &'static str,
    statistic: String,
    unit: Option<&'static str>,
    baseline: &'a str,
    candidate: &'a str,
    baseline_value: Option<f64>,
    candidate_value: Option<f64>,
    difference: Option<EffectDocument>,
    relative: Option<EffectDocument>,
    margin: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    reason: Option<&'static str>,
    p_value: Option<f64>,
    adjusted_p_value: Option<f64>,
    equivalence_p_value: Option<f64>,
    adjusted_equivalence_p_value: Option<f64>,
    method: &'static str,
    scale: &'static str,
    runs_needed: Option<u32>,
    baseline_runs: usize,
    candidate_runs: usize,
    baseline_infinite: usize,
    candidate_infinite: usize,
    baseline_unanswered: usize,
    candidate_unanswered: usize,
    spread_ratio: Option<f64>,
    added: bool,
    blocks: usize,
    boots: usize,
    exchanges: u64,
    exact: bool,
}

#[derive(Serialize)]
struct EffectDocument {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    confidence: f64,
}

#[derive(Serialize)]
struct GateDocument<'a> {
    gate: &'a str,
    metric: &'static str,
    statistic: String,
    baseline: Option<&'a str>,
    candidate: Option<&'a str>,
    /// The change that was judged and its interval: a share of the baseline, of ratios a difference.
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    state: &'static str,
    reason: Option<&'static str>,
}

fn groups(comparisons: &Comparisons) -> Vec<GroupDocument<'_>> {
    let each = comparisons.groups.groups.iter().zip(&comparisons.outlines);
    each.filter_map(|(group, outlines)| {
        let own = comparisons.quantities.iter().zip(outlines);
        let figures: Vec<FiguresDocument> = own.map(|(quantity, outline)| figures(quantity, *outline)).collect();
        let first = figures.first()?.clone();
        let effective_n = group.numbers.map(|numbers| numbers.effective_n);
        let runs = group.numbers.map_or(group.runs.len(), |numbers| numbers.lines as usize);
        Some(GroupDocument { name: &group.name, runs, effective_n, first, figures })
    })
    .collect()
}

fn figures(quantity: &Quantity, outline: Option<Outline>) -> FiguresDocument {
    let of = |figure: fn(&Outline) -> f64| finite(outline.as_ref().map(figure));
    FiguresDocument {
        metric: quantity.metric_name(),
        statistic: quantity.statistic_name(),
        unit: quantity.unit(),
        n: outline.map_or(0, |outline| outline.n),
        min: of(|outline| outline.min),
        max: of(|outline| outline.max),
        median: of(|outline| outline.median),
        mean: of(|outline| outline.mean),
        // A single run has no standard deviation.
        stddev: of(|outline| outline.stddev).filter(|_| outline.is_some_and(|outline| outline.n > 1)),
    }
}

fn document<'a>(row: &Comparison, comparisons: &'a Comparisons, judged: bool) -> ComparisonDocument<'a> {
    let name = |place: usize| comparisons.groups.groups[place].name.as_str();
    let confidence = comparisons.options.confidence;
    let effect = |effect: Effect| {
        let (low, high) = (finite(effect.interval.low), finite(effect.interval.high));
        effect.value.is_finite().then_some(EffectDocument { value: effect.value, low, high, confidence })
    };
    ComparisonDocument {
        metric: row.quantity.metric_name(),
        statistic: row.quantity.statistic_name(),
        unit: row.quantity.unit(),
        baseline: name(row.baseline),
        candidate: name(row.candidate),
        baseline_value: finite(row.centres.map(|centres| centres.0)),
        candidate_value: finite(row.centres.map(|centres| centres.1)),
        difference: row.difference.and_then(effect),
        relative: row.relative.and_then(effect),
        margin: row.margin,
        verdict: judged.then(|| row.verdict.word()),
        reason: row.undecided.filter(|_| judged).map(|why| why.code()),
        p_value: row.p_value,
        adjusted_p_value: row.adjusted_p_value,
        equivalence_p_value: row.p_equivalent,
        adjusted_equivalence_p_value: row.adjusted_p_equivalent,
        method: match (row.method, comparisons.options.scope) {
            (ComparisonMethod::None, _) => "none",
            (ComparisonMethod::Separated, _) => "all infinite or unanswered against none",
            (ComparisonMethod::Shift, QuestionScope::Blocks) => "exchange of runs and Welch's t inside of blocks",
            (ComparisonMethod::Shift, QuestionScope::Boots) => "exchange of signs and paired t over boots",
            (ComparisonMethod::Placements, QuestionScope::Blocks) => {
                "exchange and Brunner-Munzel of placements inside of blocks"
            }
            (ComparisonMethod::Placements, QuestionScope::Boots) => {
                "exchange of signs and paired t of placements over boots"
            }
        },
        scale: match row.scale {
            FigureScale::Logarithmic => "logarithmic",
            FigureScale::Linear => "linear",
        },
        runs_needed: row.undecided.and_then(|why| why.runs_needed()),
        baseline_runs: row.evidence.runs.0,
        candidate_runs: row.evidence.runs.1,
        baseline_infinite: row.evidence.infinite.0,
        candidate_infinite: row.evidence.infinite.1,
        baseline_unanswered: row.evidence.unanswered.0,
        candidate_unanswered: row.evidence.unanswered.1,
        spread_ratio: finite(row.evidence.spread_ratio),
        added: row.added,
        blocks: row.evidence.blocks,
        boots: row.evidence.boots,
        exchanges: row.evidence.permutations,
        exact: row.evidence.exact,
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}
