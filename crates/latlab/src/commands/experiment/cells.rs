//! A recipe whose publication has figures over runs: the runs of each of its rows, and what is shown of them.

use std::path::{Path, PathBuf};

use super::runs;
use crate::analysis::comparison::MinistatTest;
use crate::analysis::comparison::{ObservedRun, RunGroups, parse_estimand};
use crate::analysis::experiment::ColumnFigure;
use crate::commands::stored_runs::observe;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::plan::defaults::{CONFIDENCE_PERCENT, MINISTAT_VALUES_MIN};
use crate::recipe::{self, FiguresOf, Published, PublishedRow};
use crate::report::experiment::published::Measured;
use crate::report::ministat::MinistatGroup;
use crate::stats::Outline;

/// The runs, one cell for each row of the publication.
pub(super) struct ConditionCells {
    pub(super) published: &'static Published,
    pub(super) cells: Vec<Vec<ObservedRun>>,
}

/// Reads them; none where the experiment is no such recipe.
pub(super) fn cells(
    directory: &Path,
    standing: &ExperimentState,
    console: &Console,
) -> Result<Option<ConditionCells>, Failure> {
    let recipe = standing.recipe.as_ref().and_then(|facts| recipe::find(&facts.name));
    let published = recipe.and_then(|recipe| recipe.published);
    let Some(published) = published.filter(|published| published.figures_of == FiguresOf::Runs) else {
        return Ok(None);
    };
    let subject = parse_estimand(Some(published.metric.name()), "mean")?;
    let paths: Vec<PathBuf> = runs::judged(standing).map(|(_, name)| directory.join("runs").join(name)).collect();
    let observed = observe(&paths, &[subject], console)?;
    let of = |row: &PublishedRow| {
        let is_its = |run: &&ObservedRun| run.factors.as_ref().is_some_and(|own| published.is_done_by(row, own));
        observed.iter().filter(is_its).cloned().collect()
    };
    Ok(Some(ConditionCells { published, cells: published.rows.iter().map(of).collect() }))
}

impl ConditionCells {
    /// The figures of runs in the publication's unit.
    pub(super) fn figures<'a>(&'a self, runs: &'a [ObservedRun]) -> impl Iterator<Item = (&'a ObservedRun, f64)> {
        runs.iter().filter_map(|run| Some((run, run.figures[0].value()? / self.published.own_units)))
    }

    fn outline(&self, place: usize) -> Option<Outline> {
        Outline::of(&mut self.figures(self.cells.get(place)?).map(|(_, figure)| figure).collect::<Vec<_>>())
    }

    /// What was measured of the row at `place`; none where nothing was.
    pub(super) fn beside(&self, place: usize) -> Option<Measured> {
        let (runs, outline) = (&self.cells[place], self.outline(place)?);
        let first = self.outline(0).filter(|_| place > 0);
        let test = first.and_then(|first| MinistatTest::of(&first, &outline, CONFIDENCE_PERCENT));
        Some(Measured::OverRuns {
            figures: self.published.columns.iter().map(|column| ColumnFigure::of_runs(*column, &outline)).collect(),
            against_first: test.map(|test| test.answer()),
            runs: outline.n as usize,
            packets: runs.iter().map(|run| run.n).max().unwrap_or_default(),
            lost: runs.iter().map(|run| run.lost).sum(),
        })
    }

    /// The groups that ministat shows; none where one has too few runs, or the first has none to be tested against.
    pub(super) fn groups(&self) -> Vec<MinistatGroup> {
        let group = |(place, runs): (usize, &Vec<ObservedRun>)| {
            let observations: Vec<f64> = self.figures(runs).map(|(_, figure)| figure).collect();
            let name = self.published.rows[place].label.to_owned();
            Some(MinistatGroup { name, outline: self.outline(place)?, observations })
        };
        let groups: Vec<_> = self.cells.iter().enumerate().filter_map(group).collect();
        let is_whole =
            self.outline(0).is_some() && groups.iter().all(|group| group.observations.len() >= MINISTAT_VALUES_MIN);
        if is_whole { groups } else { Vec::new() }
    }

    /// Names groups as the publication does.
    pub(super) fn name(&self, groups: &mut RunGroups) {
        for group in &mut groups.groups {
            let row = self.published.rows.iter().find(|row| self.published.is_done_by(row, &group.levels));
            if let Some(row) = row {
                group.name = row.label.into();
            }
        }
    }
}
