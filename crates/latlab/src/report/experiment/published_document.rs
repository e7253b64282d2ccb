//! Published figures and measured ones as the value of a key of `latlab.compare/1`. Schema: docs/schemas/compare-1.json.

use serde_json::{Value, json};

use super::published::{Measured, PublishedRowView, PublishedView};
use crate::analysis::experiment::ColumnFigure;
use crate::stats::MeanDifference;

/// The document's part about a publication.
pub fn document(view: &PublishedView) -> Value {
    json!({
        "heading": view.heading,
        "unit": view.unit,
        "columns": view.columns,
        "rows": view.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &PublishedRowView) -> Value {
    let or_null = |figures: &[Option<f64>]| if figures.is_empty() { Value::Null } else { json!(figures) };
    let (measured, reason) = match &row.measured {
        Some(
            Measured::Runs { figures, runs, probes: n, lost }
            | Measured::OverRuns { figures, runs, packets: n, lost, .. },
        ) => {
            let figures: Vec<Value> = figures.iter().map(figure).collect();
            (json!({ "runs": runs, "n": n, "lost": lost, "figures": figures }), Value::Null)
        }
        Some(Measured::Nothing(reason)) => (Value::Null, json!(reason)),
        None => (Value::Null, Value::Null),
    };
    json!({
        "label": row.label,
        "published": or_null(&row.published),
        "raw_data": or_null(&row.recomputed),
        "measured": measured,
        "reason": reason,
        "against_first": against_first(row),
    })
}

/// What Student's t says about the difference to the first row; null of publications that were not tested so.
fn against_first(row: &PublishedRowView) -> Value {
    let measured = match &row.measured {
        Some(Measured::OverRuns { against_first, .. }) => *against_first,
        _ => None,
    };
    let difference = |difference: Option<MeanDifference>| match difference {
        None => Value::Null,
        Some(MeanDifference::NotProven) => json!({ "proven": false, "percent": null, "margin_percent": null }),
        Some(MeanDifference::Proven { percent, margin_percent }) => {
            json!({ "proven": true, "percent": percent, "margin_percent": margin_percent })
        }
    };
    match (row.against_first, measured) {
        (None, None) => Value::Null,
        (published, measured) => json!({ "published": difference(published), "measured": difference(measured) }),
    }
}

fn figure(figure: &ColumnFigure) -> Value {
    let told = |value: Option<f64>, at_least: Option<f64>, reason: Option<&str>| json!({ "value": value, "at_least": at_least, "supported": reason != Some("not-supported"), "reason": reason });
    match figure {
        ColumnFigure::Known(value) => told(Some(*value), None, None),
        ColumnFigure::AtLeast(bound) => told(None, Some(*bound), Some("not-supported")),
        ColumnFigure::NotSupported => told(None, None, Some("not-supported")),
        ColumnFigure::Lost => told(None, None, Some("lost")),
        ColumnFigure::Nothing => told(None, None, Some("no-figure")),
    }
}
