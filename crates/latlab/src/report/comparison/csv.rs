//! Comparisons as comma-separated values with every digit, for papers and spreadsheets (RFC 4180).

use crate::analysis::comparison::{Comparison, Comparisons};
use crate::stats::Interval;

const COLUMNS: &str = "metric,statistic,unit,baseline,candidate,baseline_runs,candidate_runs,blocks,baseline_value,\
                       candidate_value,difference,difference_low,difference_high,relative,relative_low,relative_high,\
                       confidence,verdict,p_value,adjusted_p_value,runs_needed,margin,equivalence_p_value,\
                       adjusted_equivalence_p_value,reason";

/// The rows under a heading, and those along the distribution with an empty verdict; ends in a newline.
pub fn render(comparisons: &Comparisons) -> String {
    let judged = comparisons.rows.iter().map(|row| line(row, comparisons, true));
    let shifts = comparisons.shifts.iter().map(|row| line(row, comparisons, false));
    let lines: String = judged.chain(shifts).collect();
    format!("{COLUMNS}\n{lines}")
}

fn line(row: &Comparison, comparisons: &Comparisons, judged: bool) -> String {
    let name = |place: usize| text(&comparisons.groups.groups[place].name);
    let number =
        |value: Option<f64>| value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default();
    let ends =
        |interval: Option<Interval>| [interval.and_then(|it| it.low), interval.and_then(|it| it.high)].map(number);
    let [low, high] = ends(row.difference.map(|effect| effect.interval));
    let [relative_low, relative_high] = ends(row.relative.map(|effect| effect.interval));
    let verdict = if judged { row.verdict.word() } else { "" };
    let cells = [
        row.quantity.metric_name().into(),
        row.quantity.statistic_name(),
        row.quantity.unit().unwrap_or_default().into(),
        name(row.baseline),
        name(row.candidate),
        row.rests.runs.0.to_string(),
        row.rests.runs.1.to_string(),
        row.rests.blocks.to_string(),
        number(row.centres.map(|centres| centres.0)),
        number(row.centres.map(|centres| centres.1)),
        number(row.difference.map(|effect| effect.value)),
        low,
        high,
        number(row.relative.map(|effect| effect.value)),
        relative_low,
        relative_high,
        comparisons.wishes.confidence.to_string(),
        verdict.into(),
        number(row.p_value),
        number(row.adjusted_p_value),
        row.undecided.and_then(|why| why.runs_needed()).map(|count| count.to_string()).unwrap_or_default(),
        number(row.margin),
        number(row.p_equivalent),
        number(row.adjusted_p_equivalent),
        row.undecided.filter(|_| judged).map(|why| why.code()).unwrap_or_default().into(),
    ];
    cells.join(",") + "\n"
}

/// Quoted where it must be.
fn text(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
