//! How runs are spread: a box plot for each cell of an experiment, and what differs between its blocks.

use serde_json::{Value, json};

use crate::report::paint::{Style, width, wrap};
use crate::stats::BoxPlot;
use crate::units::human::{ABSENT, percent};

/// The runs of all cells, in one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadView {
    /// What each run is one observation of.
    pub heading: String,
    /// Its unit.
    pub unit: String,
    /// Digits after the point.
    pub decimals: usize,
    /// Those that have runs.
    pub cells: Vec<SpreadCell>,
    /// In how many boots the blocks were measured; none where that is not known.
    pub boots: Option<usize>,
    /// How many boots it takes to say something about boots.
    pub boots_needed: usize,
}

/// The runs of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadCell {
    /// Its name.
    pub label: String,
    /// Of all of its runs.
    pub box_plot: BoxPlot,
    /// Each block with its number of runs and their median.
    pub blocks: Vec<(u32, usize, f64)>,
    /// The share of the variance that lies between blocks; none where that cannot be told.
    pub between_blocks: Option<f64>,
}

/// Columns between two columns.
const GAP: usize = 2;
/// Columns of a figure.
const FIGURE: usize = 8;
/// More blocks than this have no columns of their own.
const BLOCKS_SHOWN: usize = 4;

/// As text.
pub fn render(view: &SpreadView, style: Style) -> String {
    let heading = format!("{}, {}", style.strong(&view.heading), view.unit);
    let parts = [[vec![heading], plots(view, style)].concat(), quartiles(view, style), blocks(view, style)];
    let mut parts: Vec<String> =
        parts.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    parts.push(wrap(&boots(view), style.width).join("\n"));
    parts.join("\n\n") + "\n"
}

fn labels(view: &SpreadView) -> usize {
    view.cells.iter().map(|cell| width(&cell.label)).max().unwrap_or_default()
}

/// One line for each cell, all on one scale, whose ends stand above.
fn plots(view: &SpreadView, style: Style) -> Vec<String> {
    let label = labels(view);
    let columns = style.width.saturating_sub(label + GAP).max(2);
    let all = || view.cells.iter().flat_map(|cell| ends(&cell.box_plot));
    let scale = Scale {
        low: all().reduce(f64::min).unwrap_or_default(),
        high: all().reduce(f64::max).unwrap_or_default(),
        columns,
    };
    let [low, high] = [scale.low, scale.high].map(|end| format!("{end:.*}", view.decimals));
    let room = columns.saturating_sub(width(&low));
    let mut lines = vec![style.quiet(&format!("{:label$}{:GAP$}{low}{high:>room$}", "", ""))];
    let line = |cell: &SpreadCell| format!("{:<label$}{:GAP$}{}", cell.label, "", drawn(&cell.box_plot, scale));
    lines.extend(view.cells.iter().map(|cell| line(cell).trim_end().to_owned()));
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
struct Scale {
    low: f64,
    high: f64,
    columns: usize,
}

impl Scale {
    fn column(self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        // without a span everything stands at its beginning
        let share = if share.is_finite() { share } else { 0.0 };
        (share * (self.columns - 1) as f64).round() as usize
    }
}

fn drawn(plot: &BoxPlot, scale: Scale) -> String {
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

fn figure(value: f64, view: &SpreadView) -> String {
    format!("{value:.*}", view.decimals)
}

fn table(
    view: &SpreadView,
    headings: &[String],
    style: Style,
    cells: impl Fn(&SpreadCell) -> Vec<String>,
) -> Vec<String> {
    let label = labels(view);
    let line = |name: &str, cells: &[String]| {
        let room = |heading: &String| width(heading).max(FIGURE);
        let cells = cells.iter().zip(headings).map(|(cell, heading)| format!("{:GAP$}{cell:>1$}", "", room(heading)));
        format!("{name:<label$}{}", cells.collect::<String>())
    };
    let mut lines = vec![style.quiet(&line("", headings))];
    lines.extend(view.cells.iter().map(|cell| line(&cell.label, &cells(cell))));
    lines
}

fn quartiles(view: &SpreadView, style: Style) -> Vec<String> {
    let headings = ["q1", "median", "q3", "IQR", "beyond"].map(str::to_owned);
    table(view, &headings, style, |SpreadCell { box_plot, .. }| {
        let figures = [box_plot.q1, box_plot.median, box_plot.q3, box_plot.iqr()];
        let beyond = format!("{} of {}", box_plot.outside.len(), box_plot.n);
        figures.map(|value| figure(value, view)).into_iter().chain([beyond]).collect()
    })
}

/// Median of each block; nothing of a single one.
fn blocks(view: &SpreadView, style: Style) -> Vec<String> {
    let numbers = numbers(view);
    if numbers.len() < 2 {
        return Vec::new();
    }
    let shown = if numbers.len() > BLOCKS_SHOWN { &[] } else { &numbers[..] };
    let headings: Vec<String> =
        shown.iter().map(|number| format!("block {number}")).chain(["between blocks".into()]).collect();
    let mut lines = vec![style.strong("median of each block, and the share of the variance that lies between blocks")];
    lines.extend(table(view, &headings, style, |cell| {
        let median = |number: &u32| cell.blocks.iter().find(|block| block.0 == *number).map(|block| block.2);
        let cells = shown.iter().map(|number| median(number).map_or(ABSENT.into(), |median| figure(median, view)));
        cells.chain([cell.between_blocks.map_or(ABSENT.into(), percent)]).collect()
    }));
    lines
}

fn numbers(view: &SpreadView) -> Vec<u32> {
    let mut numbers: Vec<u32> = view.cells.iter().flat_map(|cell| &cell.blocks).map(|block| block.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// What the blocks are, and what follows for whom.
fn boots(view: &SpreadView) -> String {
    let (blocks, needed) = (numbers(view).len(), view.boots_needed);
    match (blocks, view.boots) {
        (0 | 1, _) => "One block: what differs from block to block, or from boot to boot, is not in these figures.".into(),
        (_, Some(1)) => {
            "All blocks are of one boot: what differs from boot to boot is not in these figures. `--reboots` makes each \
             block a boot."
                .into()
        }
        (blocks, Some(boots)) => format!(
            "{blocks} blocks in {boots} boots. Verdicts are about these; it takes {needed} boots to say something about \
             boots: `latlab compare DIR --over boots`."
        ),
        (_, None) => "In which boots the blocks were measured is not known.".into(),
    }
}

/// As the value of a key of `latlab.compare/1`.
pub fn document(view: &SpreadView) -> Value {
    let cell = |SpreadCell { label, box_plot, blocks, between_blocks }: &SpreadCell| {
        let block = |(number, n, median): &(u32, usize, f64)| json!({ "block": number, "n": n, "median": median });
        json!({
            "label": label,
            "n": box_plot.n,
            "q1": box_plot.q1,
            "median": box_plot.median,
            "q3": box_plot.q3,
            "iqr": box_plot.iqr(),
            "whiskers": { "low": box_plot.whiskers.0, "high": box_plot.whiskers.1 },
            "outside": box_plot.outside,
            "blocks": blocks.iter().map(block).collect::<Vec<_>>(),
            "between_blocks_ratio": between_blocks,
        })
    };
    json!({ "unit": view.unit, "boots": view.boots, "cells": view.cells.iter().map(cell).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::between_blocks;

    fn cell(label: &str, blocks: &[&[f64]]) -> SpreadCell {
        let plot = |values: &[f64]| BoxPlot::of(&mut values.to_vec()).expect("runs");
        SpreadCell {
            label: label.into(),
            box_plot: plot(&blocks.concat()),
            blocks: (1..).zip(blocks).map(|(number, runs)| (number, runs.len(), plot(runs).median)).collect(),
            between_blocks: between_blocks(&blocks.iter().map(|block| block.to_vec()).collect::<Vec<_>>()),
        }
    }

    fn view(cells: Vec<SpreadCell>, boots: Option<usize>) -> SpreadView {
        SpreadView { heading: "runs".into(), unit: "10⁶ bit/s".into(), decimals: 1, cells, boots, boots_needed: 6 }
    }

    #[test]
    fn boxes_share_a_scale_and_blocks_their_figures() {
        let cells = vec![
            cell("v4", &[&[100.0, 110.0, 120.0], &[130.0, 140.0, 100.0]]),
            cell("v4, no offload", &[&[20.0, 60.0, 61.0], &[62.0, 63.0, 64.0]]),
        ];
        let text = render(&view(cells, Some(1)), Style { width: 46, ..Style::PLAIN });
        let expected = "\
runs, 10⁶ bit/s
                20.0                     140.0
v4                                 ├▒▒▒█▒▒▒──┤
v4, no offload  o         █┤
";
        assert!(text.starts_with(expected), "{text}");
        for words in [
            "q1    median        q3       IQR    beyond\n",
            "v4, no offload      60.2      61.5      62.8       2.5    1 of 6\n",
            "block 1   block 2  between blocks\n",
            "v4                 110.0     130.0",
            "`--reboots` makes each",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }

    #[test]
    fn one_block_has_no_medians_of_blocks_and_equal_runs_no_span() {
        let text = render(&view(vec![cell("v4", &[&[5.0, 5.0]])], Some(1)), Style::PLAIN);
        assert!(text.contains("v4  █\n") && !text.contains("between blocks\n"), "{text}");
        assert!(text.contains("One block: "), "{text}");
        let blocks: [&[f64]; 2] = [&[1.0, 2.0], &[2.0, 3.0]];
        let told = render(&view(vec![cell("v4", &blocks)], Some(2)), Style::PLAIN);
        assert!(told.contains("2 blocks in 2 boots") && told.contains("it takes 6 boots"), "{told}");
    }
}
