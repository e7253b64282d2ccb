//! Rendering of the spread of runs: a box plot for each row of a publication, the ministat form, quartiles, and medians
//! of blocks.

use serde_json::{Value, json};

use crate::analysis::experiment::{BlockMedian, RunSpread, SpreadCell};
use crate::ministat::{self, MinistatForm, MinistatGroup};
use crate::plan::defaults::CONFIDENCE_PERCENT;
use crate::stats::Outline;
use crate::text::{Style, flush_left, flush_right, width, wrap};
use crate::text_plots::{LabelledBox, box_plots};
use crate::units::human::{ABSENT, percent};

const GAP: usize = 2;
const FIGURE: usize = 8;
/// More blocks than this have no columns of their own.
const BLOCKS_SHOWN: usize = 4;

/// The form of ministat, `plot_width` characters wide; `None` if there are too few runs for its test.
pub(super) fn classic(view: &RunSpread, plot_width: usize) -> Option<String> {
    let group = |cell: &SpreadCell| {
        let outline = Outline::of(&mut cell.observations.clone())?;
        Some(MinistatGroup { name: cell.label.to_owned(), outline, observations: cell.observations.clone() })
    };
    let groups: Vec<MinistatGroup> = view.cells.iter().filter_map(group).collect();
    let form = MinistatForm {
        plot_width: Some(plot_width),
        separate_bars: true,
        headed: true,
        tested_at: Some(CONFIDENCE_PERCENT),
    };
    let heading = format!("in the form of ministat, {}; it ignores blocks\n", view.unit);
    view.is_testable.then(|| heading + &ministat::render(&groups, form))
}

pub(super) fn text(view: &RunSpread, style: Style) -> String {
    let heading = format!("{}, {}", style.strong("spread of the runs"), view.unit);
    let parts = [[vec![heading], plots(view, style)].concat(), quartiles(view, style), blocks(view, style)];
    let mut parts: Vec<String> =
        parts.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    parts.push(wrap(&boots(view), style.width).join("\n"));
    parts.join("\n\n") + "\n"
}

fn labels(view: &RunSpread) -> usize {
    view.cells.iter().map(|cell| width(cell.label)).max().unwrap_or_default()
}

/// One line for each cell, all on one scale; its ends are above.
fn plots(view: &RunSpread, style: Style) -> Vec<String> {
    let boxes = view.cells.iter().map(|cell| LabelledBox { label: cell.label, plot: &cell.box_plot });
    box_plots(&boxes.collect::<Vec<_>>(), |value| figure(value, view), style)
}

fn figure(value: f64, view: &RunSpread) -> String {
    format!("{value:.*}", view.decimals)
}

fn table(
    view: &RunSpread,
    headings: &[String],
    style: Style,
    cells: impl Fn(&SpreadCell) -> Vec<String>,
) -> Vec<String> {
    let label = labels(view);
    let room = |heading: &String| GAP + width(heading).max(FIGURE);
    let widest = headings.iter().map(room).max().unwrap_or(1);
    // Columns that do not fit stand in a further table.
    let count = (style.width.saturating_sub(label) / widest).max(1);
    let count = if label + headings.iter().map(room).sum::<usize>() <= style.width { headings.len() } else { count };
    let mut lines = Vec::new();
    for (part, headings) in headings.chunks(count).enumerate() {
        let line = |name: &str, cells: &[String]| {
            let cells = cells.iter().zip(headings).map(|(cell, heading)| flush_right(cell, room(heading)));
            flush_left(name, label) + &cells.collect::<String>()
        };
        lines.push(style.quiet(&line("", headings)));
        lines.extend(view.cells.iter().map(|cell| line(cell.label, &cells(cell)[part * count..])));
    }
    lines
}

fn quartiles(view: &RunSpread, style: Style) -> Vec<String> {
    let headings = ["q1", "median", "q3", "IQR", "beyond"].map(str::to_owned);
    table(view, &headings, style, |SpreadCell { box_plot, .. }| {
        let figures = [box_plot.q1, box_plot.median, box_plot.q3, box_plot.iqr()];
        let beyond = format!("{} of {}", box_plot.outside.len(), box_plot.n);
        figures.map(|value| figure(value, view)).into_iter().chain([beyond]).collect()
    })
}

/// Medians of blocks; nothing if there is only one.
fn blocks(view: &RunSpread, style: Style) -> Vec<String> {
    let numbers = numbers(view);
    if numbers.len() < 2 {
        return Vec::new();
    }
    let shown = if numbers.len() > BLOCKS_SHOWN { &[] } else { &numbers[..] };
    let headings: Vec<String> =
        shown.iter().map(|number| format!("block {number}")).chain(["between blocks".into()]).collect();
    let heading = wrap("median of each block, and the share of the variance that lies between blocks", style.width);
    let mut lines: Vec<String> = heading.iter().map(|line| style.strong(line)).collect();
    lines.extend(table(view, &headings, style, |cell| {
        let median = |number: &u32| cell.blocks.iter().find(|one| one.block == *number).map(|one| one.median);
        let cells = shown.iter().map(|number| median(number).map_or(ABSENT.into(), |median| figure(median, view)));
        cells.chain([cell.between_blocks.map_or(ABSENT.into(), percent)]).collect()
    }));
    lines
}

fn numbers(view: &RunSpread) -> Vec<u32> {
    let mut numbers: Vec<u32> = view.cells.iter().flat_map(|cell| &cell.blocks).map(|one| one.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// A sentence that says for which boots the figures hold.
fn boots(view: &RunSpread) -> String {
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
pub(super) fn document(view: &RunSpread) -> Value {
    let cell = |SpreadCell { label, box_plot, blocks, between_blocks, .. }: &SpreadCell| {
        let block =
            |BlockMedian { block, runs, median }: &BlockMedian| json!({ "block": block, "n": runs, "median": median });
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
    use crate::stats::{BoxPlot, between_blocks};

    fn cell(label: &'static str, blocks: &[&[f64]]) -> SpreadCell {
        let plot = |values: &[f64]| BoxPlot::of(&mut values.to_vec()).expect("runs");
        SpreadCell {
            label,
            observations: blocks.concat(),
            box_plot: plot(&blocks.concat()),
            blocks: (1..)
                .zip(blocks)
                .map(|(block, runs)| BlockMedian { block, runs: runs.len(), median: plot(runs).median })
                .collect(),
            between_blocks: between_blocks(&blocks.iter().map(|block| block.to_vec()).collect::<Vec<_>>()),
        }
    }

    fn view(cells: Vec<SpreadCell>, boots: Option<usize>) -> RunSpread {
        RunSpread { unit: "10⁶ bit/s", decimals: 1, cells, is_testable: false, boots, boots_needed: 6 }
    }

    #[test]
    fn box_plots_share_a_scale_and_blocks_have_medians() {
        let cells = vec![
            cell("v4", &[&[100.0, 110.0, 120.0], &[130.0, 140.0, 100.0]]),
            cell("v4, no offload", &[&[20.0, 60.0, 61.0], &[62.0, 63.0, 64.0]]),
        ];
        let shown = text(&view(cells, Some(1)), Style { width: 46, ..Style::PLAIN });
        let expected = "\
spread of the runs, 10⁶ bit/s
                20.0                     140.0
v4                                 ├▒▒▒█▒▒▒──┤
v4, no offload  o         █┤
";
        assert!(shown.starts_with(expected), "{shown}");
        for words in [
            "q1    median        q3\n",
            "v4, no offload      60.2      61.5      62.8\n",
            "IQR    beyond\n",
            "v4, no offload       2.5    1 of 6\n",
            "block 1   block 2\n",
            "between blocks\n",
            "v4                 110.0     130.0",
            "`--reboots` makes each",
        ] {
            assert!(shown.contains(words), "{words} is not in\n{shown}");
        }
    }

    #[test]
    fn one_block_has_no_medians_and_equal_runs_no_span() {
        let shown = text(&view(vec![cell("v4", &[&[5.0, 5.0]])], Some(1)), Style::PLAIN);
        assert!(shown.contains("v4  █\n") && !shown.contains("between blocks\n"), "{shown}");
        assert!(shown.contains("One block: "), "{shown}");
        let blocks: [&[f64]; 2] = [&[1.0, 2.0], &[2.0, 3.0]];
        let shown = text(&view(vec![cell("v4", &blocks)], Some(2)), Style::PLAIN);
        assert!(shown.contains("2 blocks in 2 boots") && shown.contains("it takes 6 boots"), "{shown}");
    }
}
