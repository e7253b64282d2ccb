//! What an experiment says, as text for people: the publication, what only some experiments have, the comparison.

use std::path::Path;

use super::cells::{ConditionCells, cells};
use super::{Asked, alone, beside, same, spread, verdicts, via_growth};
use crate::commands::ministat;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::plan::defaults::CONFIDENCE_PERCENT;
use crate::report::Style;
use crate::report::experiment::spread::render as as_boxes;
use crate::report::experiment::{
    aa_test as of_two_names, published, single_condition as of_one, timeout_slack as of_calls,
};
use crate::report::ministat::{MinistatForm, render as as_ministat};

/// Shows it.
pub(super) fn show(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
    console: &Console,
) -> Result<(), Failure> {
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    let mut sections = Vec::new();
    let cells = cells(directory, standing, console)?;
    sections.extend(
        beside::measured(directory, standing, asked, cells.as_ref())?.map(|view| published::render(&view, style)),
    );
    sections.extend(cells.iter().flat_map(|cells| of_cells(cells, console, style)));
    sections.extend(same::view(directory, standing)?.map(|view| of_two_names::render(&view, style)));
    sections.extend(via_growth::view(directory, standing)?.map(|view| of_calls::render(&view, style)));
    match verdicts::of(directory, standing, asked, (cells.as_ref(), console))? {
        Some(comparisons) => sections.push(verdicts::text(&comparisons, style)),
        None => {
            sections.extend(alone::rows(directory, standing, asked)?.map(|rows| of_one::render(&rows, style)));
            let runs = directory.join("runs");
            console.note(&format!("one condition: `latlab summary {}/*` shows each run", runs.display()));
        }
    }
    console.data(&sections.join("\n"))
}

/// The classic form, in the order of the publication, and box plots.
fn of_cells(cells: &ConditionCells, console: &Console, style: Style) -> Vec<String> {
    let groups = cells.groups();
    let form = MinistatForm {
        plot_width: Some(ministat::width(console)),
        separate_bars: true,
        headed: true,
        tested_at: Some(CONFIDENCE_PERCENT),
    };
    let classic = (!groups.is_empty()).then(|| {
        let heading = format!(
            "in the form of ministat, {}; it takes runs for independent of their block\n",
            cells.published.unit
        );
        heading + &as_ministat(&groups, form)
    });
    classic.into_iter().chain([as_boxes(&spread::view(cells), style)]).collect()
}
