//! Published figures and measured ones as the value of a key of `latlab.compare/1`. Schema: docs/schemas/compare-1.json.

use serde_json::{Value, json};

use super::beside::{BesideRow, BesideView, Measured};
use crate::analysis::ColumnFigure;

/// The document's part about a publication.
pub fn document(view: &BesideView) -> Value {
    json!({
        "heading": view.heading,
        "unit": view.unit,
        "columns": view.columns,
        "rows": view.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &BesideRow) -> Value {
    let or_null = |figures: &[Option<f64>]| if figures.is_empty() { Value::Null } else { json!(figures) };
    let (measured, reason) = match &row.measured {
        Some(Measured::Runs { figures, runs, probes, lost }) => {
            let figures: Vec<Value> = figures.iter().map(figure).collect();
            (json!({ "runs": runs, "n": probes, "lost": lost, "figures": figures }), Value::Null)
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
    })
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
