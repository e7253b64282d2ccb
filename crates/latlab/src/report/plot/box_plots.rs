//! Box plots below each other on one scale.

use crate::report::text::{Style, flush_left, width, wrap};
use crate::stats::BoxPlot;

/// Columns between a label and its box plot.
const GAP: usize = 2;

/// A box plot with its label.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct LabelledBox<'a> {
    pub(in crate::report) label: &'a str,
    pub(in crate::report) plot: &'a BoxPlot,
}

/// One line for each of `boxes`, all on one scale, whose ends are above as `figure` writes them. Labels that take more than
/// half of the line have lines of their own.
pub(in crate::report) fn box_plots(
    boxes: &[LabelledBox<'_>],
    figure: impl Fn(f64) -> String,
    style: Style,
) -> Vec<String> {
    let longest = boxes.iter().map(|each| width(each.label)).max().unwrap_or_default();
    let is_above = longest > style.width / 2;
    let indent = if is_above { GAP } else { longest + GAP };
    let columns = style.width.saturating_sub(indent).max(2);
    let all = || boxes.iter().flat_map(|each| ends(each.plot));
    let (low, high) = (all().reduce(f64::min).unwrap_or_default(), all().reduce(f64::max).unwrap_or_default());
    let scale = BoxScale { low, high, columns };
    let [low, high] = [low, high].map(figure);
    let rest = columns.saturating_sub(width(&low));
    let high = format!("{}{high}", " ".repeat(rest.saturating_sub(width(&high))));
    let mut lines = vec![style.quiet(&format!("{:indent$}{low}{high}", ""))];
    for LabelledBox { label, plot } in boxes {
        if is_above {
            lines.extend(wrap(label, style.width));
        }
        let label = if is_above { "" } else { label };
        lines.push(format!("{}{}", flush_left(label, indent), drawn(plot, scale)).trim_end().to_owned());
    }
    lines.extend(wrap(
        "▒ from the first to the third quartile, █ the median, ├ ┤ the farthest runs within 1.5 interquartile ranges \
         of the box, o beyond",
        style.width,
    ));
    lines
}

/// The smallest and the largest of its observations.
fn ends(plot: &BoxPlot) -> impl Iterator<Item = f64> {
    let outside = plot.outside.first().into_iter().chain(plot.outside.last()).copied();
    [plot.whiskers.0, plot.whiskers.1].into_iter().chain(outside)
}

/// From values to columns.
#[derive(Clone, Copy)]
struct BoxScale {
    low: f64,
    high: f64,
    columns: usize,
}

impl BoxScale {
    fn column(self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        // A single value is drawn at the beginning.
        let share = if share.is_finite() { share } else { 0.0 };
        (share * (self.columns - 1) as f64).round() as usize
    }
}

fn drawn(plot: &BoxPlot, scale: BoxScale) -> String {
    let mut line = vec![' '; scale.columns];
    let [from, q1, median, q3, to] =
        [plot.whiskers.0, plot.q1, plot.median, plot.q3, plot.whiskers.1].map(|value| scale.column(value));
    line[from..=to].fill('─');
    line[from] = '├';
    line[to] = '┤';
    line[q1..=q3].fill('▒');
    line[median] = '█';
    plot.outside.iter().for_each(|value| line[scale.column(*value)] = 'o');
    line.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_have_lines_of_their_own_and_no_line_is_too_wide() {
        let plot = BoxPlot::of(&mut [1.0, 2.0, 3.0, 4.0, 100.0]).expect("observations");
        let label = "interval=10ms, load=none, set=governor=as-found";
        for width_of_line in [40, 60, 120] {
            let style = Style { width: width_of_line, ..Style::PLAIN };
            let lines = box_plots(&[LabelledBox { label, plot: &plot }; 2], |value| format!("{value:.0}"), style);
            assert!(lines.iter().all(|line| width(line) <= width_of_line), "{lines:#?}");
            assert!(lines[0].trim_start().starts_with('1') && lines[0].ends_with("100"), "{lines:#?}");
            assert_eq!(lines.iter().filter(|line| line.ends_with('o') && line.contains('█')).count(), 2, "{lines:#?}");
        }
    }
}
