//! Rendering of a single condition: its statistics over runs with their intervals.

use serde_json::{Value, json};

use crate::analysis::experiment::ConditionRow;
use crate::comparison::quantity_figure;
use crate::units::human::{ABSENT, counted};
use crate::view::{ColumnView, GroupView, RowView, TableView};

/// As a table; `condition` is its name, if the experiment has others.
pub(super) fn table(rows: &[ConditionRow], condition: Option<&str>) -> TableView {
    let name = condition.map(|name| format!(" (`{name}`)")).unwrap_or_default();
    let title =
        format!("one condition{name}, compared with none: geometric means over runs, 95 % intervals, for these blocks");
    let figures = vec![
        ColumnView::figures("mean", rows.iter().map(mean)),
        ColumnView::words("interval", rows.iter().map(interval)),
    ];
    let groups = [figures, vec![ColumnView::words("of", rows.iter().map(runs))]].map(GroupView::plain).into();
    TableView { title, rows: rows.iter().map(|row| RowView::of(label(row))).collect(), groups, ..TableView::default() }
}

fn label(row: &ConditionRow) -> String {
    if row.quantity.is_share() {
        row.quantity.label()
    } else {
        format!("{} {}", row.quantity.metric_name(), row.quantity.label())
    }
}

fn mean(row: &ConditionRow) -> String {
    row.mean.map_or(ABSENT.into(), |mean| quantity_figure(row.quantity, mean, mean))
}

fn interval(row: &ConditionRow) -> String {
    let Some(mean) = row.mean else { return String::new() };
    let figure = |value: f64| quantity_figure(row.quantity, value, mean);
    let ends = row.interval.and_then(|ends| Some(format!("[{}, {}]", figure(ends.low?), figure(ends.high?))));
    ends.unwrap_or_else(|| "[no block has two runs]".into())
}

fn runs(row: &ConditionRow) -> String {
    let lost = if row.lost > 0 { format!(", lost in {}", counted(row.lost, "more run")) } else { String::new() };
    let runs = format!("{} in {}{lost}", counted(row.runs, "run"), counted(row.blocks, "block"));
    if row.mean.is_none() || row.is_geometric { runs } else { format!("{runs}, arithmetic mean") }
}

/// As the value of a key of `latlab.compare/1`.
pub(super) fn document(rows: &[ConditionRow]) -> Value {
    let row = |row: &ConditionRow| {
        json!({
            "metric": row.quantity.metric_name(),
            "statistic": row.quantity.statistic_name(),
            "unit": row.quantity.unit(),
            "runs": row.runs,
            "lost": row.lost,
            "blocks": row.blocks,
            "mean": row.mean,
            "low": row.interval.and_then(|ends| ends.low),
            "high": row.interval.and_then(|ends| ends.high),
            "confidence": row.interval.map(|ends| ends.confidence),
        })
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::{Quantity, parse_estimand};
    use crate::stats::Interval;
    use crate::text::{Style, draw_table};

    #[test]
    fn figures_have_intervals_and_counts() {
        let quantity = |name| Quantity::Of(parse_estimand(Some("round_trip_delay"), name).expect(name));
        let interval = Interval { low: Some(47_900.0), high: Some(49_600.0), confidence: 0.95 };
        let row = ConditionRow {
            quantity: quantity("p50"),
            runs: 14,
            lost: 0,
            blocks: 7,
            mean: Some(48_700.0),
            is_geometric: true,
            interval: Some(interval),
        };
        let other =
            ConditionRow { quantity: quantity("p99"), runs: 13, lost: 1, mean: None, interval: None, ..row.clone() };
        let single = ConditionRow { runs: 1, blocks: 1, interval: None, ..row.clone() };
        let plain = ConditionRow { is_geometric: false, ..single.clone() };
        let shown = draw_table(&table(&[row.clone(), other, single, plain], None), Style::PLAIN).join("\n");
        assert!(shown.starts_with("one condition, compared with none: geometric means over runs"), "{shown}");
        let named = table(std::slice::from_ref(&row), Some("build=old")).title;
        assert!(named.starts_with("one condition (`build=old`), compared with none: geometric"), "{named}");
        for line in
            ["14 runs in 7 blocks\n", "13 runs in 7 blocks, lost in 1 more run\n", "1 run in 1 block, arithmetic mean"]
        {
            assert!(shown.contains(line), "{line}\n{shown}");
        }
        assert!(shown.contains("48.7 µs  [47.9 µs, 49.6 µs]") && shown.contains("[no block has two runs]"), "{shown}");
        assert_eq!(document(&[row])[0]["high"], 49_600.0);
    }
}
