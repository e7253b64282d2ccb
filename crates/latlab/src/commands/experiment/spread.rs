//! How the runs of a recipe's cells are spread, over all blocks and from block to block.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::ConditionCells;
use crate::analysis::comparison::{ObservedRun, boots_needed};
use crate::plan::defaults::CONFIDENCE;
use crate::report::experiment::spread::{SpreadCell, SpreadView};
use crate::stats::{BoxPlot, Outline, between_blocks};

/// What is shown of it.
pub(super) fn view(cells: &ConditionCells) -> SpreadView {
    let boots: Option<BTreeSet<&str>> = cells.cells.iter().flatten().map(|run| run.origin.boot.as_deref()).collect();
    let rows = cells.published.rows.iter().zip(&cells.cells);
    SpreadView {
        heading: "how the runs are spread".into(),
        unit: cells.published.unit.into(),
        decimals: cells.published.decimals,
        cells: rows.filter_map(|(row, runs)| cell(row.label, cells, runs)).collect(),
        boots: boots.map(|boots| boots.len()),
        boots_needed: boots_needed(1.0 - CONFIDENCE),
    }
}

fn cell(label: &str, cells: &ConditionCells, runs: &[ObservedRun]) -> Option<SpreadCell> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (run, figure) in cells.figures(runs) {
        blocks.entry(run.origin.block.as_ref().map_or(1, |block| block.1)).or_default().push(figure);
    }
    let all: Vec<Vec<f64>> = blocks.values().cloned().collect();
    let median = |(block, runs): (&u32, &mut Vec<f64>)| Some((*block, runs.len(), Outline::of(runs)?.median));
    let box_plot = BoxPlot::of(&mut all.concat())?;
    let blocks = blocks.iter_mut().filter_map(median).collect();
    Some(SpreadCell { label: label.into(), box_plot, blocks, between_blocks: between_blocks(&all) })
}
