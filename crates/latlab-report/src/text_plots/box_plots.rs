//! Box plots below each other on one scale, and the figures of the runs of groups as box plots and as ministat's plot.

use super::axis::PlotUnit;
use super::{ROWS_MAX, left_out};
use crate::plan::defaults::MINISTAT_GROUPS_MAX;
use crate::report::ministat::{self, MinistatGroup};
use crate::report::text::{Style, flush_left, width, wrap};
use crate::stats::{BoxPlot, Outline};

const LEGEND: &str = "▒ from the first to the third quartile, █ the median, ├ ┤ the farthest runs within 1.5 interquartile \
    ranges of the box, o beyond";
/// Of plots with infinite figures.
const OPEN: &str = "; → infinite: figures of runs that lost too many probes count as the largest";

/// Columns between a label and its box plot.
const GAP: usize = 2;

/// A box plot with its label.
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
    let columns = style.width.saturating_sub(indent).max(2);
    let all = || boxes.iter().flat_map(|each| ends(each.plot));
    let (low, high) = (all().reduce(f64::min).unwrap_or_default(), all().reduce(f64::max).unwrap_or_default());
    // Arrows of infinite figures are apart from all finite ones.
    let margin = if boxes.iter().any(|each| each.plot.infinite > 0) { 2 } else { 0 };
    let scale = BoxScale { low, high, columns: columns.saturating_sub(margin).max(1), width: columns };
    let [low, high] = [low, high].map(figure);
    let rest = scale.columns.saturating_sub(width(&low));
    let high = format!("{}{high}", " ".repeat(rest.saturating_sub(width(&high))));
    let mut lines = vec![style.quiet(&format!("{:indent$}{low}{high}", ""))];
    for LabelledBox { label, plot } in boxes {
        if is_above {
            lines.extend(wrap(label, style.width));
        }
        let label = if is_above { "" } else { label };
        lines.push(format!("{}{}", flush_left(label, indent), drawn(plot, scale)).trim_end().to_owned());
    }
    let open = if margin > 0 { OPEN } else { "" };
    lines.extend(wrap(&format!("{LEGEND}{open}"), style.width));
    lines
}

/// The smallest and the largest of its finite observations.
fn ends(plot: &BoxPlot) -> impl Iterator<Item = f64> {
    let outside = plot.outside.first().into_iter().chain(plot.outside.last()).copied();
    let highest = [plot.median, plot.q3, plot.whiskers.1];
    [plot.whiskers.0, plot.q1].into_iter().chain(highest).chain(outside).filter(|value| value.is_finite())
}

#[derive(Clone, Copy)]
struct BoxScale {
    low: f64,
    high: f64,
    columns: usize,
    /// All columns, the last of which has infinite values.
    width: usize,
}

impl BoxScale {
    fn column(self, value: f64) -> usize {
        if value == f64::INFINITY {
            return self.width - 1;
        }
        let share = (value - self.low) / (self.high - self.low);
        // A single value is drawn at the beginning.
        let share = if share.is_finite() { share } else { 0.0 };
        (share * (self.columns - 1) as f64).round() as usize
    }
}

fn drawn(plot: &BoxPlot, scale: BoxScale) -> String {
    let mut line = vec![' '; scale.width];
    let [from, q1, median, q3, to] =
        [plot.whiskers.0, plot.q1, plot.median, plot.q3, plot.whiskers.1].map(|value| scale.column(value));
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
        line[scale.width - 1] = '→';
    }
    plot.outside.iter().for_each(|value| line[scale.column(*value)] = 'o');
    line.into_iter().collect()
}

/// One figure of each run of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroup {
    pub name: String,
    /// The figures of its runs, in the unit of the plot; an infinite one is the largest.
    pub figures: Vec<f64>,
}

/// The groups of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroups {
    /// The name of the figure.
    pub title: String,
    /// Its unit.
    pub unit: PlotUnit,
    pub groups: Vec<FigureGroup>,
}

/// Draws box plots of the groups, and of few of them ministat's plot; empty without a figure.
pub fn figures(plot: &FigureGroups, style: Style) -> String {
    let drawn = plot.groups.iter().filter_map(|group| Some((group, BoxPlot::of(&mut group.figures.clone())?)));
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
    let mut lines: Vec<String> = wrap(&plot.title, style.width).iter().map(|line| style.strong(line)).collect();
    lines.extend(box_plots(&boxes.collect::<Vec<_>>(), |value| plot.unit.figure(value), style));
    lines.extend(left_out(drawn.len()).iter().flat_map(|remark| wrap(remark, style.width)));
    // ministat's plot has a mean of each group, which an infinite figure does not leave.
    let several = (2..=MINISTAT_GROUPS_MAX).contains(&drawn.len()) && drawn.iter().all(|(_, plot)| plot.infinite == 0);
    lines.extend(several.then(|| classic(&drawn, style)).into_iter().flatten());
    lines.join("\n") + "\n"
}

/// Ministat's plot, with the symbol of each group and what the bars mean.
fn classic(drawn: &[(&FigureGroup, BoxPlot)], style: Style) -> Vec<String> {
    let group = |(group, _): &(&FigureGroup, BoxPlot)| {
        let outline = Outline::of(&mut group.figures.clone())?;
        Some(MinistatGroup { name: group.name.clone(), outline, observations: group.figures.clone() })
    };
    let groups: Vec<MinistatGroup> = drawn.iter().filter_map(group).collect();
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
        let plot = FigureGroups { title: "p50 of each run".into(), unit: PlotUnit::Nanos, groups };
        for columns in [40, 80] {
            let shown = figures(&plot, Style { width: columns, ..Style::PLAIN });
            assert!(shown.lines().all(|line| width(line) <= columns), "{shown}");
            for part in ["41 µs", "48.9 µs\n", "none (n 3)", "cpu=80% (n 3)", "x none\n+ cpu=80%\n+--", "A"] {
                assert!(shown.contains(part), "`{part}` is not in\n{shown}");
            }
        }
        assert_eq!(figures(&FigureGroups { groups: vec![group("all lost", &[])], ..plot }, Style::PLAIN), "");
    }

    #[test]
    fn infinite_figures_of_runs_are_the_largest_and_are_counted() {
        let lost = f64::INFINITY;
        let of = |figures: &[f64]| FigureGroup { name: format!("group {}", figures.len()), figures: figures.to_vec() };
        let groups = vec![of(&[1e3, 2e3, 3e3]), of(&[1e3, 2e3, 3e3, lost]), of(&[1e3, lost]), of(&[lost])];
        let plot = FigureGroups { title: "p99 of each run".into(), unit: PlotUnit::Nanos, groups };
        let shown = figures(&plot, Style { width: 80, ..Style::PLAIN });
        let row = |label: &str| shown.lines().find(|line| line.starts_with(label)).expect("a row").to_owned();
        assert!(!row("group 3 (n 3) ").contains('→'), "{shown}");
        assert!(row("group 4 (n 4, 1 infinite)").contains('█') && row("group 4").ends_with("▒→"), "{shown}");
        assert!(!row("group 2 (n 2, 1 infinite)").contains('█') && row("group 2").ends_with("─→"), "{shown}");
        assert!(row("group 1 (n 1, 1 infinite)").trim_end_matches('→').ends_with(' '), "{shown}");
        assert!(shown.contains("→ infinite") && !shown.contains("x group"), "{shown}");
        let lost = FigureGroups { groups: vec![of(&[lost])], ..plot };
        assert_eq!(figures(&lost, Style::PLAIN), "");
    }
}
