//! Plots of the figures of runs in groups: box plots, and the plot of ministat.

use super::axis::PlotUnit;
use super::box_plots::{LabelledBox, box_plots};
use super::{ROWS_MAX, left_out};
use crate::plan::defaults::MINISTAT_GROUPS_MAX;
use crate::report::ministat::{self, MinistatGroup};
use crate::report::text::{Style, wrap};
use crate::stats::{BoxPlot, Outline};

/// One figure of each run of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroup {
    /// Its name.
    pub name: String,
    /// The finite figures of its runs, in the unit of the plot.
    pub figures: Vec<f64>,
}

/// The groups of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroups {
    /// The name of the figure.
    pub title: String,
    /// Its unit.
    pub unit: PlotUnit,
    /// From top to bottom.
    pub groups: Vec<FigureGroup>,
}

/// Draws box plots of the groups, and of few of them ministat's plot; empty without a figure.
pub fn figures(plot: &FigureGroups, style: Style) -> String {
    let drawn = plot.groups.iter().filter_map(|group| Some((group, BoxPlot::of(&mut group.figures.clone())?)));
    let drawn: Vec<(&FigureGroup, BoxPlot)> = drawn.collect();
    if drawn.is_empty() {
        return String::new();
    }
    let label = |(group, plot): &(&FigureGroup, BoxPlot)| format!("{} (n {})", group.name, plot.n);
    let labels: Vec<String> = drawn.iter().map(label).collect();
    let boxes = drawn.iter().zip(&labels).take(ROWS_MAX).map(|((_, plot), label)| LabelledBox { label, plot });
    let mut lines: Vec<String> = wrap(&plot.title, style.width).iter().map(|line| style.strong(line)).collect();
    lines.extend(box_plots(&boxes.collect::<Vec<_>>(), |value| plot.unit.figure(value), style));
    lines.extend(left_out(drawn.len()).iter().flat_map(|remark| wrap(remark, style.width)));
    let several = (2..=MINISTAT_GROUPS_MAX).contains(&drawn.len());
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
    use crate::report::text::width;

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
}
