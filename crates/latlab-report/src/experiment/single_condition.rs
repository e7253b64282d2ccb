//! Rendering of a single condition: its statistics over runs with their intervals.

use serde_json::{Value, json};

use crate::analysis::experiment::ConditionRow;
use crate::comparison::quantity_figure;
use crate::text::{Style, width, wrap};
use crate::units::human::{ABSENT, grouped};

/// As text; `condition` is its name, if the experiment has others.
pub(super) fn text(rows: &[ConditionRow], condition: Option<&str>, style: Style) -> String {
    let name = condition.map(|name| format!(" (`{name}`)")).unwrap_or_default();
    let heading =
        format!("one condition{name}, compared with none: geometric means over runs, 95 % intervals, for these blocks");
    let labels: Vec<String> = rows.iter().map(label).collect();
    let widest = labels.iter().map(|label| width(label)).max().unwrap_or_default();
    let fit = |row: &ConditionRow| widest + 3 + width(&words(row)) <= style.width;
    let lines = |(row, label): (&ConditionRow, &String)| match fit(row) {
        true => vec![format!(" {label}{}  {}", " ".repeat(widest - width(label)), words(row))],
        false => {
            let below = wrap(&words(row), style.width.saturating_sub(3).max(1));
            std::iter::once(format!(" {label}")).chain(below.iter().map(|line| format!("   {line}"))).collect()
        }
    };
    let heading = wrap(&heading, style.width).into_iter().map(|line| style.strong(&line));
    heading.chain(rows.iter().zip(&labels).flat_map(lines)).collect::<Vec<_>>().join("\n") + "\n"
}

fn label(row: &ConditionRow) -> String {
    match row.quantity.is_share() {
        true => row.quantity.label(),
        false => format!("{} {}", row.quantity.metric_name(), row.quantity.label()),
    }
}

fn words(row: &ConditionRow) -> String {
    let plural =
        |count: usize, noun: &str| format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" });
    let lost = if row.lost > 0 { format!(", lost in {}", plural(row.lost, "more run")) } else { String::new() };
    let runs = format!("{} in {}{lost}", plural(row.runs, "run"), plural(row.blocks, "block"));
    let Some(mean) = row.mean else { return format!("{ABSENT}  {runs}") };
    let runs = if row.is_geometric { runs } else { format!("arithmetic mean, {runs}") };
    let figure = |value: f64| quantity_figure(row.quantity, value, mean);
    let interval = row.interval.and_then(|ends| Some(format!("[{}, {}]", figure(ends.low?), figure(ends.high?))));
    format!("{} {}  {runs}", figure(mean), interval.unwrap_or_else(|| "[no block has two runs]".into()))
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
        let shown = text(&[row.clone(), other, single, plain], None, Style::PLAIN);
        assert!(shown.starts_with("one condition, compared with none: geometric means over runs"), "{shown}");
        let named = text(std::slice::from_ref(&row), Some("build=old"), Style::PLAIN);
        assert!(named.starts_with("one condition (`build=old`), compared with none: geometric"), "{named}");
        for line in [
            " round_trip_delay p50  48.7 µs [47.9 µs, 49.6 µs]  14 runs in 7 blocks\n",
            " round_trip_delay p99  –  13 runs in 7 blocks, lost in 1 more run\n",
            " round_trip_delay p50  48.7 µs [no block has two runs]  1 run in 1 block\n",
            " arithmetic mean, 1 run in 1 block\n",
        ] {
            assert!(shown.contains(line), "{line}\n{shown}");
        }
        assert_eq!(document(&[row])[0]["high"], 49_600.0);
    }
}
