//! Histograms of several runs or groups above each other, on one axis and with one scale of heights.

use super::{ROWS_MAX, left_out};
use crate::analysis::{MetricHistogram, Summary};
use crate::figure::axis::{Axis, AxisUnit, Scale, ValueLimits};
use crate::heading::names;
use crate::metric::Metric;
use crate::text::{Style, flush_left, width, wrap};
use crate::units::human::grouped;

/// A value that occurs `count` times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedValue {
    /// The value, in the unit of its plot.
    pub value: f64,
    pub count: u64,
}

/// The values of one run or group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramRow {
    /// What distinguishes it; may be empty.
    pub label: String,
    /// Its finite values, in any order.
    pub values: Vec<CountedValue>,
    /// Probes that got no answer in time, which have no place on the axis.
    pub unanswered: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Histograms {
    /// The name of the values.
    pub title: String,
    pub unit: AxisUnit,
    pub rows: Vec<HistogramRow>,
}

/// Columns of the border between a label and its bars, with the blank in front of it.
const BORDER: usize = 2;
/// Parts of a character by which heights are drawn.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Lines of each histogram: fewer, the more there are.
const fn height_of(rows: usize) -> usize {
    match rows {
        0 | 1 => 8,
        2 | 3 => 4,
        4..=12 => 2,
        _ => 1,
    }
}

/// Draws them; empty without a finite value. A column with any value is never empty.
pub fn histograms(plot: &Histograms, style: Style) -> String {
    let rows = &plot.rows[..plot.rows.len().min(ROWS_MAX)];
    let longest = rows.iter().map(|row| width(&row.label)).max().unwrap_or_default();
    // Labels that take more than a third of the line have lines of their own.
    let is_above = longest > style.width / 3;
    let indent = if is_above { 0 } else { longest };
    let columns = style.width - indent - BORDER;
    let values = rows.iter().flat_map(|row| &row.values).map(|value| value.value);
    let Some(scale) = ValueLimits::of(values).map(ValueLimits::suited) else { return String::new() };
    let axis = Axis::new("", scale, plot.unit);
    let counts: Vec<Vec<u64>> = rows.iter().map(|row| counts(row, &axis, columns)).collect();
    let most = counts.iter().flatten().copied().max().unwrap_or_default();
    let mut lines = vec![style.strong(&plot.title)];
    for (row, counts) in rows.iter().zip(&counts) {
        if is_above {
            lines.extend(wrap(&row.label, style.width));
        }
        let bars = bars(counts, most, height_of(rows.len()));
        for (index, line) in bars.iter().enumerate() {
            let label = if is_above || index + 1 < bars.len() { "" } else { &row.label };
            lines.push(format!("{} ▕{line}", flush_left(label, indent)).trim_end().to_owned());
        }
    }
    let before = " ".repeat(indent);
    let [ticks, labels] = axis_lines(&axis, columns);
    lines.push(style.quiet(&format!("{before} └{ticks}")));
    lines.push(style.quiet(&format!("{before}  {labels}")));
    lines.extend(remarks(plot, &axis, most).iter().flat_map(|remark| wrap(remark, style.width)));
    lines.join("\n") + "\n"
}

fn remarks(plot: &Histograms, axis: &Axis, most: u64) -> Vec<String> {
    let is_logarithmic = matches!(axis.scale, Scale::Log(..));
    let axes = if is_logarithmic { "bars and axis are logarithmic" } else { "bars are logarithmic" };
    let unanswered: u64 = plot.rows.iter().map(|row| row.unanswered).sum();
    let scale = format!("{axes}; the highest stands for {}", grouped(most));
    let without_place = (unanswered > 0).then(|| format!("not drawn: {} without an answer", grouped(unanswered)));
    [Some(scale), without_place, left_out(plot.rows.len())].into_iter().flatten().collect()
}

fn column(position: f64, columns: usize) -> usize {
    (position * (columns - 1) as f64).round() as usize
}

/// The values in each column.
fn counts(row: &HistogramRow, axis: &Axis, columns: usize) -> Vec<u64> {
    let mut counts = vec![0; columns];
    for value in &row.values {
        counts[column(axis.scale.position(value.value), columns)] += value.count;
    }
    counts
}

/// The lines of ticks and of their labels.
fn axis_lines(axis: &Axis, columns: usize) -> [String; 2] {
    let (mut ticks, mut labels) = (vec!['─'; columns], vec![' '; columns]);
    let symbol = axis.symbol();
    let word = |label: &str| format!("{label} {symbol}").trim_end().to_owned();
    for tick in axis.ticks(columns as f64, |label| (width(&word(label)) + 1) as f64) {
        let (label, column) = (word(&tick.label), column(tick.position, columns));
        // A minor tick has no label, and one at an end may not fit.
        let Some(start) = column.checked_sub(width(&label) / 2).filter(|_| !tick.label.is_empty()) else { continue };
        if start + width(&label) <= columns {
            ticks[column] = '┴';
            labels[start..].iter_mut().zip(label.chars()).for_each(|(cell, char)| *cell = char);
        }
    }
    [ticks.into_iter().collect(), labels.into_iter().collect::<String>().trim_end().to_owned()]
}

/// The lines of a histogram from top to bottom, whose bars have `height` characters where there are `most`.
fn bars(counts: &[u64], most: u64, height: usize) -> Vec<String> {
    let full = (LEVELS.len() - 1) * height;
    let level = |count: &u64| {
        let share = (1.0 + *count as f64).ln() / (1.0 + most as f64).ln();
        ((share * full as f64).round() as usize).max(usize::from(*count > 0))
    };
    let levels: Vec<usize> = counts.iter().map(level).collect();
    let line = |number: usize| {
        let below = number * (LEVELS.len() - 1);
        levels.iter().map(|level| LEVELS[level.saturating_sub(below).min(LEVELS.len() - 1)]).collect()
    };
    (0..height).rev().map(line).collect()
}

impl HistogramRow {
    /// The row of `distribution`, whose values are the middles of buckets, which are narrower than a column.
    pub(crate) fn of(label: String, distribution: &MetricHistogram) -> HistogramRow {
        let middle = |low: i64, high: i64| (low as f64 + (high - 1) as f64) / 2.0;
        let buckets = distribution.finite.buckets();
        let values =
            buckets.map(|bucket| CountedValue { value: middle(bucket.low_ns, bucket.high_ns), count: bucket.count });
        HistogramRow { label, values: values.collect(), unanswered: distribution.infinite }
    }
}

/// Draws the `distributions` of the main metric of `summaries`, in their order: those of one kind on one axis.
pub fn of_runs(summaries: &[Summary], distributions: &[MetricHistogram], style: Style) -> String {
    let runs = || summaries.iter().zip(names(summaries)).zip(distributions);
    let plot = |metric: Metric| {
        let of_metric = runs().filter(|((summary, _), _)| summary.metric == metric);
        let rows = of_metric.map(|((_, name), distribution)| HistogramRow::of(name, distribution));
        let plot = Histograms { title: metric.title().into(), unit: AxisUnit::of(metric), rows: rows.collect() };
        histograms(&plot, style)
    };
    let mut metrics: Vec<Metric> = summaries.iter().map(|summary| summary.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    metrics.into_iter().map(plot).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, values: &[(f64, u64)]) -> HistogramRow {
        let values = values.iter().map(|(value, count)| CountedValue { value: *value, count: *count }).collect();
        HistogramRow { label: label.into(), values, unanswered: 0 }
    }

    fn plot(rows: Vec<HistogramRow>) -> Histograms {
        Histograms { title: "round trip delay".into(), unit: AxisUnit::Time, rows }
    }

    #[test]
    fn runs_share_axis_and_heights_and_a_single_outlier_is_seen() {
        let rows = vec![
            row("64 B", &[(45e3, 10), (50e3, 1_000), (60e3, 100), (900e3, 1)]),
            HistogramRow { unanswered: 3, ..row("1,024 B", &[(90e3, 1_000), (95e3, 10)]) },
        ];
        let shown = histograms(&plot(rows), Style { width: 40, ..Style::PLAIN });
        let expected = "\
round trip delay
        ▕  █
        ▕  █ ▅
        ▕ ▃█ █
64 B    ▕ ██ █                        ▃
        ▕        █
        ▕        █
        ▕        █
1,024 B ▕        █
        └─────────┴─────────┴───────────
               100 µs    300 µs
bars and axis are logarithmic; the
highest stands for 1,010
not drawn: 3 without an answer
";
        assert_eq!(shown, expected, "{shown}");
    }

    #[test]
    fn any_number_of_runs_stays_readable() {
        let label = "interval=10ms, load=none, set=governor=as-found";
        let many: Vec<HistogramRow> = (1..=10_000).map(|n| row(label, &[(f64::from(n), 1)])).collect();
        let shown = histograms(&plot(many), Style { width: 40, ..Style::PLAIN });
        assert!(shown.lines().all(|line| width(line) <= 40) && shown.lines().count() < 300, "{shown}");
        assert!(shown.contains("and 9,936 more"), "{shown}");
        assert_eq!(histograms(&plot(vec![row("lost", &[])]), Style::PLAIN), "");
        assert_eq!(histograms(&plot(Vec::new()), Style::PLAIN), "");
        let one = histograms(&plot(vec![row("", &[(5e3, 7)])]), Style::PLAIN);
        assert_eq!((one.lines().count(), one.matches('█').count()), (12, 8), "{one}");
    }
}
