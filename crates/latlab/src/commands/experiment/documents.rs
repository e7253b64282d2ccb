//! The one document of `latlab run --json`, however the experiment ended.

use std::path::Path;

use serde_json::{Value, json};

use super::cells::cells;
use super::companions::{about, run};
use super::{Asked, alone, beside, same, spread, verdicts, via_growth};
use crate::analysis::comparison::Comparisons;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::report::comparison::{self, Companions};
use crate::report::experiment::{
    aa_test as of_two_names, published_document as published, single_condition as of_one, spread as of_cells,
    timeout_slack as of_calls,
};

/// Prints it. Where a recording cannot be read, what is known without it is printed all the same.
pub(super) fn show(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
    console: &Console,
) -> Result<(), Failure> {
    let mut about = about(directory, standing, &asked.job.experiment);
    let told = tell(directory, standing, (asked, console), &mut about);
    let runs: Value = standing.runs.iter().map(run).collect();
    let comparisons = told.as_ref().ok().and_then(Option::as_ref);
    console.data(&match comparisons {
        Some(comparisons) => {
            comparison::json(comparisons, &[], Companions { experiment: Some(about), runs: Some(runs) })
        }
        None => {
            let document = json!({
                "schema": "latlab.compare/1", "baseline": null, "factor": null, "over": "blocks", "interleaved": true,
                "groups": [], "comparisons": [], "experiment": about, "runs": runs, "caveats": [],
            });
            format!("{document:#}\n")
        }
    })?;
    told.map(drop)
}

/// Compares, and adds what only some experiments have to what is told `about` this one.
fn tell(
    directory: &Path,
    standing: &ExperimentState,
    (asked, console): (&Asked, &Console),
    about: &mut Value,
) -> Result<Option<Comparisons>, Failure> {
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            about[key] = value;
        }
    };
    let cells = cells(directory, standing, console)?;
    let beside = beside::measured(directory, standing, asked, cells.as_ref())?;
    add("published", beside.map(|view| published::document(&view)));
    add("spread", cells.as_ref().map(|cells| of_cells::document(&spread::view(cells))));
    add("same", same::view(directory, standing)?.map(|view| of_two_names::document(&view)));
    add("via_growth", via_growth::view(directory, standing)?.map(|view| of_calls::json(&view)));
    let comparisons = verdicts::of(directory, standing, asked, (cells.as_ref(), console))?;
    if comparisons.is_none() {
        add("alone", alone::rows(directory, standing, asked)?.map(|rows| of_one::document(&rows)));
    }
    Ok(comparisons)
}
