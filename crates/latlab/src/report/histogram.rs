//! Buckets to bars with logarithmic lengths, so that seven outliers show beside a hundred thousand.

use super::paint::{Style, width};
use super::view::{BarView, HistogramView};
use crate::stats::Bucket;
use crate::units::Nanos;
use crate::units::human::{grouped, spans};

/// Columns of the longest bar.
const LONGEST: f64 = 28.0;
/// Columns of where a bucket begins, at least.
const FROM: usize = 10;
/// Eighths of a column, from one to seven.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The view of these buckets; none where there are none.
pub(super) fn of(buckets: &[Bucket]) -> Option<HistogramView> {
    let most = buckets.iter().map(|bucket| bucket.count).max().filter(|most| *most > 0)?;
    let length = |count: u64| (1.0 + count as f64).ln() / (1.0 + most as f64).ln();
    let labels = spans(&buckets.iter().map(|bucket| Nanos(bucket.low_ns)).collect::<Vec<_>>());
    let bars = buckets
        .iter()
        .zip(labels)
        .map(|(bucket, from)| BarView { from, length: length(bucket.count), count: grouped(bucket.count) })
        .collect();
    Some(HistogramView { bars })
}

/// The bars, a line each.
pub(super) fn draw(view: &HistogramView, style: Style) -> Vec<String> {
    let from_width = view.bars.iter().map(|bar| width(&bar.from)).max().unwrap_or(0).max(FROM);
    let count_width = view.bars.iter().map(|bar| width(&bar.count)).max().unwrap_or(0);
    let middle = view.bars.len() / 2;
    let legend = |row: usize| if row == middle { style.quiet("   counts are logarithmic") } else { String::new() };
    let lines = view.bars.iter().enumerate().map(|(row, bar)| {
        let bar_text = blocks(bar.length);
        let pad = " ".repeat((LONGEST as usize + 1).saturating_sub(width(&bar_text)));
        let count = format!("{:>count_width$}", bar.count);
        format!("{:>from_width$} ▕{bar_text}{pad} {count}{}", bar.from, legend(row))
    });
    lines.collect()
}

/// A bar of `length` times the longest one, in eighths of a column; nothing only for nothing.
fn blocks(length: f64) -> String {
    let least = if length > 0.0 { 1 } else { 0 };
    let eighths = ((length.clamp(0.0, 1.0) * LONGEST * 8.0).round() as usize).max(least);
    let mut text = "█".repeat(eighths / 8);
    text.extend((eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_logarithm_and_an_empty_one_is_empty() {
        let bucket = |low_ns, count| Bucket { low_ns, high_ns: low_ns * 2, count };
        let view = of(&[bucket(44_000, 1), bucket(88_000, 0), bucket(176_000, 3)]).expect("counts");
        assert_eq!(view.bars.iter().map(|bar| bar.length).collect::<Vec<_>>(), [0.5, 0.0, 1.0]);
        let lines = draw(&view, Style::PLAIN);
        assert!(lines[0].starts_with("     44 µs ▕██████████████ ") && lines[0].ends_with(" 1"), "{}", lines[0]);
        assert!(!lines[1].contains('█') && lines[1].contains("counts are logarithmic"), "{}", lines[1]);
        assert!(lines.iter().all(|line| width(line) <= 80));
    }

    #[test]
    fn no_two_rows_bear_the_same_label() {
        let bucket = |low_ns| Bucket { low_ns, high_ns: low_ns + 1, count: 1 };
        let view = of(&[100_010, 100_020, 100_030].map(bucket)).expect("counts");
        let labels: Vec<_> = view.bars.iter().map(|bar| bar.from.as_str()).collect();
        assert_eq!(labels, ["100.01 µs", "100.02 µs", "100.03 µs"]);
    }

    #[test]
    fn nothing_has_no_shape() {
        assert_eq!(of(&[]), None);
        assert_eq!((blocks(0.0).as_str(), blocks(1e-9).as_str()), ("", "▏"));
    }
}
