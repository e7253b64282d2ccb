//! Box plots below each other on one scale, and the figures of the runs of groups as box plots and as ministat's plot.

use super::{ROWS_MAX, left_out};
use crate::figure::axis::{AxisUnit, Scale, ValueLimits};
use crate::ministat::{self, MinistatGroup};
use crate::plan::defaults::MINISTAT_GROUPS_MAX;
use crate::stats::{BoxPlot, Outline};
use crate::text::{Style, flush_left, flush_right, width, wrap};

const LEGEND: &str = "▒ from the first to the third quartile, █ the median, ├ ┤ the farthest runs within 1.5 interquartile \
    ranges of the box, o beyond";
const OPEN: &str = "; → infinite values of runs count as the largest";

/// Columns between a label and its box plot.
const GAP: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelledBox<'a> {
    pub(crate) label: &'a str,
    pub(crate) plot: &'a BoxPlot,
}

/// One line for each of `boxes`, all on one scale, whose ends are above as `figure` writes them. Labels that take more than
/// half of the line have lines of their own.
pub(crate) fn box_plots(boxes: &[LabelledBox<'_>], figure: impl Fn(f64) -> String, style: Style) -> Vec<String> {
    let longest = boxes.iter().map(|each| width(each.label)).max().unwrap_or_default();
    let is_above = longest > style.width / 2;
    let indent = if is_above { GAP } else { longest + GAP };
    let width_of_plot = style.width.saturating_sub(indent).max(4);
    let Some(ValueLimits { min, max }) = ValueLimits::of(boxes.iter().flat_map(|each| values(each.plot))) else {
        return Vec::new();
    };
    // Arrows of infinite figures are apart from all finite ones.
    let has_infinite = boxes.iter().any(|each| each.plot.infinite > 0);
    let columns = if has_infinite { width_of_plot - 2 } else { width_of_plot };
    let scale = Scale::Linear(min, max);
    let [low, high] = [min, max].map(figure);
    let rest = columns.saturating_sub(width(&low));
    let mut lines = vec![style.quiet(&format!("{:indent$}{low}{}", "", flush_right(&high, rest)))];
    for LabelledBox { label, plot } in boxes {
        if is_above {
            lines.extend(wrap(label, style.width));
        }
        let label = if is_above { "" } else { label };
        let column = |value: f64| match value {
            f64::INFINITY => width_of_plot - 1,
            value => (scale.position(value) * (columns - 1) as f64).round() as usize,
        };
        let drawn = drawn(plot, vec![' '; width_of_plot], column);
        lines.push(format!("{}{drawn}", flush_left(label, indent)).trim_end().to_owned());
    }
    lines.extend(wrap(&format!("{LEGEND}{}", if has_infinite { OPEN } else { "" }), style.width));
    lines
}

/// What a box plot draws; the last of them is the largest observation.
fn values(plot: &BoxPlot) -> impl Iterator<Item = f64> {
    let box_plot = [plot.whiskers.0, plot.q1, plot.median, plot.q3, plot.whiskers.1];
    box_plot.into_iter().chain(plot.outside.iter().copied())
}

fn drawn(plot: &BoxPlot, mut line: Vec<char>, column: impl Fn(f64) -> usize) -> String {
    let [from, q1, median, q3, to] = [plot.whiskers.0, plot.q1, plot.median, plot.q3, plot.whiskers.1].map(&column);
    line[from..=to].fill('─');
    line[from] = '├';
    line[to] = '┤';
    if plot.q1.is_finite() {
        line[q1..=q3].fill('▒');
    }
    if plot.median.is_finite() {
        line[median] = '█';
    }
    if plot.infinite > 0 {
        line[column(f64::INFINITY)] = '→';
    }
    plot.outside.iter().for_each(|value| line[column(*value)] = 'o');
    line.into_iter().collect()
}

/// One figure of each run of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroup {
    pub name: String,
    /// The figures of its runs, in the unit of the plot; an infinite one is the largest.
    pub figures: Vec<f64>,
}

/// Draws box plots of the groups, and of few of them ministat's plot; empty without a finite figure.
pub fn figures(title: &str, unit: AxisUnit, groups: &[FigureGroup], style: Style) -> String {
    let drawn = groups.iter().filter_map(|group| Some((group, BoxPlot::of(&mut group.figures.clone())?)));
    let drawn: Vec<(&FigureGroup, BoxPlot)> = drawn.collect();
    if !drawn.iter().any(|(_, plot)| plot.infinite < plot.n) {
        return String::new();
    }
    let label = |(group, plot): &(&FigureGroup, BoxPlot)| match plot.infinite {
        0 => format!("{} (n {})", group.name, plot.n),
        infinite => format!("{} (n {}, {infinite} infinite)", group.name, plot.n),
    };
    let labels: Vec<String> = drawn.iter().map(label).collect();
    let boxes = drawn.iter().zip(&labels).take(ROWS_MAX).map(|((_, plot), label)| LabelledBox { label, plot });
    let mut lines: Vec<String> = wrap(title, style.width).iter().map(|line| style.strong(line)).collect();
    lines.extend(box_plots(&boxes.collect::<Vec<_>>(), |value| unit.words(value), style));
    lines.extend(left_out(drawn.len()).iter().flat_map(|remark| wrap(remark, style.width)));
    // ministat's plot has a mean of each group, which an infinite figure does not leave.
    if (2..=MINISTAT_GROUPS_MAX).contains(&drawn.len()) && drawn.iter().all(|(_, plot)| plot.infinite == 0) {
        lines.extend(classic(drawn.iter().map(|(group, _)| *group), style));
    }
    lines.join("\n") + "\n"
}

/// Ministat's plot, with the symbol of each group and what the bars mean.
fn classic<'a>(groups: impl Iterator<Item = &'a FigureGroup>, style: Style) -> Vec<String> {
    let group = |group: &FigureGroup| {
        let outline = Outline::of(&mut group.figures.clone())?;
        Some(MinistatGroup { name: group.name.clone(), outline, observations: group.figures.clone() })
    };
    let groups: Vec<MinistatGroup> = groups.filter_map(group).collect();
    let names = ministat::symbols(&groups).into_iter().flat_map(|name| wrap(&name, style.width));
    let plot = ministat::plot(&groups, style.width.saturating_sub(2), true);
    let legend = wrap("|__A__| one standard deviation to each side of the mean A, M the median", style.width);
    let plot = plot.lines().map(str::to_owned).collect::<Vec<_>>();
    std::iter::once(String::new()).chain(names).chain(plot).chain(legend).collect()
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

    #[test]
    fn groups_have_box_plots_and_the_plot_of_ministat_in_any_width() {
        let group = |name: &str, figures: &[f64]| FigureGroup { name: name.into(), figures: figures.to_vec() };
        let groups = vec![
            group("none", &[48.1e3, 48.3e3, 48.9e3]),
            group("cpu=80%", &[41e3, 41.5e3, 42e3]),
            group("all lost", &[]),
        ];
        for columns in [40, 80] {
            let shown = figures("p50 of each run", AxisUnit::Time, &groups, Style { width: columns, ..Style::PLAIN });
            assert!(shown.lines().all(|line| width(line) <= columns), "{shown}");
            for part in ["41.0 µs", "48.9 µs\n", "none (n 3)", "cpu=80% (n 3)", "x none\n+ cpu=80%\n+--", "A"] {
                assert!(shown.contains(part), "`{part}` is not in\n{shown}");
            }
        }
        assert_eq!(figures("p50", AxisUnit::Time, &[group("all lost", &[])], Style::PLAIN), "");
    }

    #[test]
    fn infinite_figures_of_runs_are_the_largest_and_are_counted() {
        let lost = f64::INFINITY;
        let of = |figures: &[f64]| FigureGroup { name: format!("group {}", figures.len()), figures: figures.to_vec() };
        let groups = vec![of(&[1e3, 2e3, 3e3]), of(&[1e3, 2e3, 3e3, lost]), of(&[1e3, lost]), of(&[lost])];
        let shown = figures("p99 of each run", AxisUnit::Time, &groups, Style { width: 80, ..Style::PLAIN });
        let row = |label: &str| shown.lines().find(|line| line.starts_with(label)).expect("a row").to_owned();
        assert!(!row("group 3 (n 3) ").contains('→'), "{shown}");
        assert!(row("group 4 (n 4, 1 infinite)").contains('█') && row("group 4").ends_with("▒→"), "{shown}");
        assert!(!row("group 2 (n 2, 1 infinite)").contains('█') && row("group 2").ends_with("─→"), "{shown}");
        assert!(row("group 1 (n 1, 1 infinite)").trim_end_matches('→').ends_with(' '), "{shown}");
        assert!(shown.contains("→ infinite") && !shown.contains("x group"), "{shown}");
        assert_eq!(figures("p99", AxisUnit::Time, &[of(&[lost])], Style::PLAIN), "");
    }
}
