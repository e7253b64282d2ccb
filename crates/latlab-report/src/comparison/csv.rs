//! Rendering of comparisons as CSV, from their rows in the JSON document.

use serde_json::Value;

use super::json;
use crate::analysis::comparison::Comparisons;
use crate::units::human::csv_field;

const COLUMNS: &str = "metric,statistic,unit,baseline,candidate,baseline_runs,candidate_runs,blocks,baseline_value,\
                       candidate_value,difference,difference_low,difference_high,relative,relative_low,relative_high,\
                       confidence,verdict,p_value,adjusted_p_value,margin,equivalence_p_value,\
                       adjusted_equivalence_p_value,reason";

/// Renders CSV with a header line and a final newline; rows along the distribution have an empty verdict.
pub fn render(comparisons: &Comparisons) -> String {
    let confidence = Value::from(comparisons.options.confidence);
    let line = |row: Value| {
        let cells =
            COLUMNS.split(',').map(|column| cell(if column == "confidence" { &confidence } else { of(&row, column) }));
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    let lines: String = json::rows(comparisons).into_iter().flatten().map(line).collect();
    format!("{COLUMNS}\n{lines}")
}

/// The value of a column: `difference_low` is the key `low` of the key `difference`.
fn of<'a>(row: &'a Value, column: &str) -> &'a Value {
    match column.rsplit_once('_') {
        Some((effect @ ("difference" | "relative"), end)) => &row[effect][end],
        _ if matches!(column, "difference" | "relative") => &row[column]["value"],
        _ => &row[column],
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => csv_field(text),
        value => value.as_f64().map(|number| number.to_string()).unwrap_or_default(),
    }
}
