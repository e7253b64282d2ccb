//! What a publication says and what was measured of it, in the publication's own columns.

use std::path::Path;

use super::cells::ConditionCells;
use super::{Asked, runs, unmeasured};
use crate::analysis::experiment::ColumnFigure;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::plan::Factors;
use crate::recipe::{self, Published, PublishedRow};
use crate::report::experiment::published::{Measured, PublishedRowView, PublishedView};

/// The publication alone.
pub(in crate::commands) fn published(published: &Published) -> PublishedView {
    let row = |row: &PublishedRow| PublishedRowView {
        label: row.label.into(),
        published: row.published.to_vec(),
        recomputed: row.recomputed.to_vec(),
        against_first: row.against_first,
        measured: None,
    };
    PublishedView {
        heading: published.heading.into(),
        unit: published.unit.into(),
        decimals: published.decimals,
        singletons: published.kind().rows(),
        may_be_lost: published.kind().has_target(),
        columns: published.columns.iter().map(|column| column.heading()).collect(),
        rows: published.rows.iter().map(row).collect(),
    }
}

/// With what was measured; none where the experiment does nobody's again.
pub(super) fn measured(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
    cells: Option<&ConditionCells>,
) -> Result<Option<PublishedView>, Failure> {
    let recipe = standing.recipe.as_ref().and_then(|facts| recipe::find(&facts.name));
    let Some(published) = recipe.and_then(|recipe| recipe.published) else { return Ok(None) };
    let mut view = self::published(published);
    for (place, (row, shown)) in published.rows.iter().zip(&mut view.rows).enumerate() {
        let measured = match cells {
            Some(cells) => cells.beside(place),
            None => of_row(directory, standing, (published, row))?,
        };
        let nothing = || Measured::Nothing(unmeasured::why(standing, asked, (published, row)));
        shown.measured = Some(measured.unwrap_or_else(nothing));
    }
    Ok(Some(view))
}

fn of_row(
    directory: &Path,
    standing: &ExperimentState,
    (published, row): (&Published, &PublishedRow),
) -> Result<Option<Measured>, Failure> {
    let is_ours = |factors: &Factors| published.is_done_by(row, factors);
    let quantiles: Vec<f64> = published.columns.iter().filter_map(|column| column.quantile()).collect();
    let (mut figures, mut probes, mut lost): (Vec<Vec<ColumnFigure>>, u64, u64) = (Vec::new(), 0, 0);
    for (_, name) in runs::judged(standing).filter(|(run, _)| is_ours(&run.key.factors)) {
        let summary = runs::summary(directory, name, published.metric, &quantiles)?;
        probes = probes.max(summary.counts.sent);
        if let Some(description) = summary.metrics.get(&published.metric) {
            lost += description.lost;
            figures.push(published.columns.iter().map(|column| ColumnFigure::of(*column, description)).collect());
        }
    }
    let runs = figures.len();
    Ok((runs > 0).then(|| Measured::Runs { runs, probes, lost, figures: medians(&figures, published) }))
}

/// The median of the runs, column by column, in the publication's unit.
fn medians(runs: &[Vec<ColumnFigure>], published: &Published) -> Vec<ColumnFigure> {
    let unit = published.own_units * if published.half { 2.0 } else { 1.0 };
    let column = |column: usize| runs.iter().map(|run| run[column]).collect::<Vec<_>>();
    (0..published.columns.len()).map(|place| ColumnFigure::median(&column(place)).in_units_of(unit)).collect()
}
