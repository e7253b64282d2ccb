//! Rendering of the spread of runs: a box plot for each row of a publication, the ministat form, quartiles, and medians
//! of blocks.

use serde_json::{Value, json};

use crate::analysis::experiment::{BlockMedian, RunSpread, SpreadCell};
use crate::ministat::{self, MinistatForm, MinistatGroup};
use crate::plan::defaults::CONFIDENCE_PERCENT;
use crate::stats::Outline;
use crate::text::Style;
use crate::text_plots::{LabelledBox, box_plots};
use crate::units::human::{ABSENT, percent};
use crate::view::{ColumnView, Part, RowView, TableView, TextBlock};

/// More blocks than this have no columns of their own.
const BLOCKS_SHOWN: usize = 4;

/// The form of ministat, `plot_width` characters wide; `None` if there are too few runs for its test.
fn classic(view: &RunSpread, plot_width: usize) -> Option<Part> {
    let group = |cell: &SpreadCell| {
        let outline = Outline::of(&mut cell.observations.clone())?;
        Some(MinistatGroup { name: cell.label.to_owned(), outline, observations: cell.observations.clone() })
    };
    let groups: Vec<MinistatGroup> = view.cells.iter().filter_map(group).collect();
    let form = MinistatForm {
        plot_width: Some(plot_width),
        separate_bars: true,
        headed: true,
        tested_at: (!view.is_rehearsal).then_some(CONFIDENCE_PERCENT),
    };
    let title = format!("in the form of ministat, {}; it ignores blocks", view.unit);
    view.is_testable.then(|| Part::Text(TextBlock { title, text: ministat::render(&groups, form) }))
}

/// Plots, quartiles and medians of blocks; the form of ministat and box plots have these `widths` in characters, if there
/// are any.
pub(super) fn parts(view: &RunSpread, widths: Option<[usize; 2]>) -> Vec<Part> {
    let title = format!("spread of the runs, {}", view.unit);
    let boxes = |width| Part::Text(TextBlock { title, text: plots(view, width).join("\n") });
    let tables = std::iter::once(quartiles(view)).chain(blocks(view)).map(Part::Table);
    let plots = widths.map(|[classic, width]| self::classic(view, classic).into_iter().chain([boxes(width)]));
    let plots = plots.into_iter().flatten();
    let boots = (!view.is_rehearsal).then(|| boots(view));
    plots.chain(tables).chain([Part::Notes(boots.into_iter().collect())]).collect()
}

/// One line for each cell, all on one scale; its ends are above.
fn plots(view: &RunSpread, width: usize) -> Vec<String> {
    let boxes = view.cells.iter().map(|cell| LabelledBox { label: cell.label, plot: &cell.box_plot });
    box_plots(&boxes.collect::<Vec<_>>(), |value| figure(value, view), Style { width, ..Style::PLAIN })
}

fn figure(value: f64, view: &RunSpread) -> String {
    format!("{value:.*}", view.decimals)
}

/// A table of a row for each cell, and a column for each heading.
fn table(view: &RunSpread, title: &str, headings: &[String], cell: impl Fn(&SpreadCell, usize) -> String) -> TableView {
    let cells = |column| view.cells.iter().map(|own| cell(own, column)).collect::<Vec<_>>();
    let columns = headings.iter().enumerate().map(|(column, heading)| ColumnView::figures(heading, cells(column)));
    TableView::of(title, view.cells.iter().map(|own| RowView::of(own.label)).collect(), columns.collect())
}

fn quartiles(view: &RunSpread) -> TableView {
    let headings = ["q1", "median", "q3", "IQR", "beyond"].map(str::to_owned);
    table(view, &format!("quartiles, {}", view.unit), &headings, |SpreadCell { box_plot, .. }, column| {
        let figures = [box_plot.q1, box_plot.median, box_plot.q3, box_plot.iqr()];
        let beyond = || format!("{} of {}", box_plot.outside.len(), box_plot.n);
        figures.get(column).map_or_else(beyond, |value| figure(*value, view))
    })
}

/// Medians of blocks; `None` if there is only one.
fn blocks(view: &RunSpread) -> Option<TableView> {
    let numbers = numbers(view);
    let shown = if numbers.len() > BLOCKS_SHOWN { &[] } else { &numbers[..] };
    let headings: Vec<String> =
        shown.iter().map(|number| format!("block {number}")).chain(["between blocks".into()]).collect();
    let title = format!("median of each block, {}, and the share of the variance that lies between blocks", view.unit);
    let cell = |cell: &SpreadCell, column: usize| match shown.get(column) {
        None => cell.between_blocks.map_or(ABSENT.into(), percent),
        Some(number) => {
            let block = cell.blocks.iter().find(|one| one.block == *number);
            block.map_or(ABSENT.into(), |one| figure(one.median, view))
        }
    };
    (numbers.len() > 1).then(|| table(view, &title, &headings, cell))
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
        (0 | 1, _) => {
            "One block: what differs from block to block, or from boot to boot, is not in these results.".into()
        }
        (_, Some(1)) => "All blocks are of one boot: what differs from boot to boot is not in these results.".into(),
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
        RunSpread {
            unit: "10⁶ bit/s",
            decimals: 1,
            cells,
            is_testable: false,
            boots,
            boots_needed: 6,
            is_rehearsal: false,
        }
    }

    fn shown(view: &RunSpread) -> String {
        crate::text::render(&parts(view, Some([46, 46])), Style { width: 46, ..Style::PLAIN })
    }

    #[test]
    fn box_plots_share_a_scale_and_blocks_have_medians() {
        let cells = vec![
            cell("v4", &[&[100.0, 110.0, 120.0], &[130.0, 140.0, 100.0]]),
            cell("v4, no offload", &[&[20.0, 60.0, 61.0], &[62.0, 63.0, 64.0]]),
        ];
        let shown = shown(&view(cells, Some(1)));
        let expected = "\
spread of the runs, 10⁶ bit/s
                20.0                     140.0
v4                                 ├▒▒▒█▒▒▒──┤
v4, no offload  o         █┤
";
        assert!(shown.starts_with(expected), "{shown}");
        for words in
            ["v4, no offload     60.2    61.5    62.8\n", "block 1  block 2", "1 of 6", "All blocks are of one boot"]
        {
            assert!(shown.contains(words), "{words} is not in\n{shown}");
        }
    }

    #[test]
    fn one_block_has_no_medians_and_equal_runs_no_span() {
        let one = shown(&view(vec![cell("v4", &[&[5.0, 5.0]])], Some(1)));
        assert!(one.contains("v4  █\n") && one.contains("One block: ") && !one.contains("between blocks\n"), "{one}");
        let blocks: [&[f64]; 2] = [&[1.0, 2.0], &[2.0, 3.0]];
        let two = shown(&view(vec![cell("v4", &blocks)], Some(2)));
        assert!(two.contains("2 blocks in 2 boots") && two.contains("it takes 6 boots"), "{two}");
    }
}
