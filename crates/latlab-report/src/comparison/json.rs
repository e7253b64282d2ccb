//! JSON document `latlab.compare/1`, with the schema docs/schemas/compare-1.json. Numbers are finite or null.

use serde_json::{Value, json};

use crate::analysis::comparison::{
    Comparison, ComparisonMethod, Comparisons, Effect, FigureScale, Look, Quantity, QuestionScope, RunGroup,
};
use crate::analysis::{ChangeGateResult, GateReason};
use crate::json::statistics::{pretty, without_nulls};
use crate::stats::Outline;

/// Additional keys of the document in `latlab run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Companions {
    /// Value of the key `experiment`.
    pub experiment: Option<Value>,
    /// Value of the key `runs`.
    pub runs: Option<Value>,
}

/// Renders the document with a final newline.
pub fn render(comparisons: &Comparisons, gates: &[ChangeGateResult], companions: Companions) -> String {
    let options = &comparisons.options;
    let [rows, shifts] = rows(comparisons);
    let gates: Vec<Value> = gates.iter().map(|gated| gate(gated, comparisons)).collect();
    // The first look of an open number is not mentioned.
    let look = (options.look != Look::FIRST).then(|| {
        json!({ "number": options.look.number, "declared": options.look.declared, "confidence": options.confidence })
    });
    let document = json!({
        "schema": "latlab.compare/1",
        "baseline": comparisons.rows.first().map(|row| name(comparisons, row.baseline)),
        "factor": comparisons.groups.factor,
        "over": match options.scope {
            QuestionScope::Blocks => "blocks",
            QuestionScope::Boots => "boots",
        },
        "interleaved": comparisons.is_interleaved(),
        "look": look,
        "groups": groups(comparisons),
        "comparisons": rows,
        "shifts": Some(shifts).filter(|shifts| !shifts.is_empty()),
        "gates": Some(gates).filter(|gates| !gates.is_empty()),
        "experiment": companions.experiment,
        "runs": companions.runs,
        "caveats": comparisons.caveats,
    });
    pretty(&without_nulls(document, &["look", "shifts", "gates", "experiment", "runs"]))
}

/// The comparisons, and the differences along the distribution, which have no verdict.
pub(super) fn rows(comparisons: &Comparisons) -> [Vec<Value>; 2] {
    [(&comparisons.rows, true), (&comparisons.shifts, false)]
        .map(|(rows, judged)| rows.iter().map(|row| document(row, comparisons, judged)).collect())
}

fn name(comparisons: &Comparisons, group: usize) -> &str {
    &comparisons.groups.groups[group].name
}

/// The groups with the figures of the first compared quantity; the key `figures` has those of all quantities.
fn groups(comparisons: &Comparisons) -> Vec<Value> {
    let each = comparisons.groups.groups.iter().zip(&comparisons.outlines);
    let document = |(group, outlines): (&RunGroup, &Vec<Option<Outline>>)| {
        let own = comparisons.quantities.iter().zip(outlines);
        let figures: Vec<Value> = own.map(|(quantity, outline)| figures(quantity, *outline)).collect();
        let mut document = json!({
            "name": group.name,
            "runs": group.numbers.map_or(group.runs.len(), |numbers| numbers.observations() as usize),
        });
        let members = document.as_object_mut()?;
        members.extend(figures.first()?.as_object()?.clone());
        members.insert("figures".into(), figures.into());
        Some(document)
    };
    each.filter_map(document).collect()
}

fn figures(quantity: &Quantity, outline: Option<Outline>) -> Value {
    json!({
        "metric": quantity.metric_name(),
        "statistic": quantity.statistic_name(),
        "unit": quantity.unit(),
        "n": outline.map_or(0, |outline| outline.n),
        "min": outline.map(|outline| outline.min),
        "max": outline.map(|outline| outline.max),
        "median": outline.map(|outline| outline.median),
        "mean": outline.map(|outline| outline.mean),
        // A single run has no standard deviation.
        "stddev": outline.filter(|outline| outline.n > 1).map(|outline| outline.stddev),
    })
}

fn document(row: &Comparison, comparisons: &Comparisons, judged: bool) -> Value {
    let effect = |effect: Effect| {
        effect.value.is_finite().then(|| {
            json!({
                "value": effect.value,
                "low": effect.interval.low,
                "high": effect.interval.high,
                "confidence": comparisons.options.confidence,
            })
        })
    };
    let document = json!({
        "metric": row.quantity.metric_name(),
        "statistic": row.quantity.statistic_name(),
        "unit": row.quantity.unit(),
        "baseline": name(comparisons, row.baseline),
        "candidate": name(comparisons, row.candidate),
        "baseline_value": row.centres.map(|centres| centres.0),
        "candidate_value": row.centres.map(|centres| centres.1),
        "difference": row.difference.and_then(effect),
        "relative": row.relative.and_then(effect),
        "margin": row.margin,
        "verdict": judged.then(|| row.verdict.word()),
        "reason": row.undecided.filter(|_| judged).map(|why| why.code()),
        "p_value": row.p_value,
        "adjusted_p_value": row.adjusted_p_value,
        "equivalence_p_value": row.p_equivalent,
        "adjusted_equivalence_p_value": row.adjusted_p_equivalent,
        "method": method(row.method, comparisons.options.scope, row.evidence.by_round),
        "scale": match row.scale {
            FigureScale::Logarithmic => "logarithmic",
            FigureScale::Linear => "linear",
        },
        "baseline_runs": row.evidence.runs.0,
        "candidate_runs": row.evidence.runs.1,
        "baseline_infinite": row.evidence.infinite.0,
        "candidate_infinite": row.evidence.infinite.1,
        "baseline_unanswered": row.evidence.unanswered.0,
        "candidate_unanswered": row.evidence.unanswered.1,
        "spread_ratio": row.evidence.spread_ratio,
        "added": row.added,
        "blocks": row.evidence.blocks,
        "boots": row.evidence.boots,
        "exchanges": row.evidence.permutations,
        "exact": row.evidence.exact,
    });
    without_nulls(document, &["verdict"])
}

const fn method(method: ComparisonMethod, scope: QuestionScope, by_round: bool) -> &'static str {
    match (method, scope) {
        (ComparisonMethod::None, _) => "none",
        (ComparisonMethod::Separated, _) => "all infinite or unanswered against none",
        (ComparisonMethod::Shift, QuestionScope::Blocks) if by_round => {
            "exchange of runs and paired t inside of rounds"
        }
        (ComparisonMethod::Shift, QuestionScope::Blocks) => "exchange of runs and Welch's t inside of blocks",
        (ComparisonMethod::Shift, QuestionScope::Boots) => "exchange of signs and paired t over boots",
        (ComparisonMethod::Placements, QuestionScope::Blocks) => {
            "exchange and Brunner-Munzel of placements inside of blocks"
        }
        (ComparisonMethod::Placements, QuestionScope::Boots) => {
            "exchange of signs and paired t of placements over boots"
        }
    }
}

/// A gate with the change that was judged and its interval: a share of the baseline, of ratios a difference.
fn gate(gated: &ChangeGateResult, comparisons: &Comparisons) -> Value {
    let row = gated.row.map(|row| &comparisons.rows[row]);
    let change = row.and_then(Comparison::judged_change);
    json!({
        "gate": gated.gate,
        "metric": gated.quantity.metric_name(),
        "statistic": gated.quantity.statistic_name(),
        "baseline": row.map(|row| name(comparisons, row.baseline)),
        "candidate": row.map(|row| name(comparisons, row.candidate)),
        "value": change.map(|change| change.value),
        "low": change.and_then(|change| change.interval.low),
        "high": change.and_then(|change| change.interval.high),
        "state": gated.state.word(),
        "reason": gated.reason.map(GateReason::code),
    })
}
