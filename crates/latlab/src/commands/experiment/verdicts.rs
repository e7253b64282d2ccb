//! The comparison that an experiment ends with: what its file asks, of the runs that its journal counts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::companions::{about, run};
use super::contrasts::ask_as_its_file;
use super::runs;
use crate::analysis::comparison::{Agenda, ComparisonWishes, Comparisons, RunGroups, compare};
use crate::commands::stored_runs::observe;
use crate::console::Console;
use crate::error::Failure;
use crate::experiment::Standing;
use crate::plan::{Experiment, defaults};
use crate::report::Style;
use crate::report::comparison::{self, Companions, ComparisonShowing, ComparisonView};
use crate::report::via_growth::ViaGrowthView;

/// Compares the runs of the experiment in `directory` as its file asks; none where only one condition has any.
pub(super) fn of(
    directory: &Path,
    standing: &Standing,
    experiment: &Experiment,
    console: &Console,
) -> Result<Option<Comparisons>, Failure> {
    let conditions: BTreeSet<u32> = runs::judged(standing).map(|(run, _)| run.place.condition).collect();
    if conditions.len() < 2 {
        return Ok(None);
    }
    let mut agenda = Agenda::default();
    ask_as_its_file(&mut agenda, &experiment.contrasts, None)?;
    let subjects = agenda.subjects();
    let paths: Vec<PathBuf> = runs::judged(standing).map(|(_, name)| directory.join("runs").join(name)).collect();
    let observed = observe(&paths, &subjects, console)?;
    let groups = RunGroups::by_condition(observed)?;
    Ok(Some(compare(groups, &agenda, &ComparisonWishes::at(defaults::CONFIDENCE))?))
}

/// The comparison as text.
pub(super) fn text(comparisons: &Comparisons, style: Style) -> String {
    comparison::text(&ComparisonView::of(comparisons, &[], ComparisonShowing { explain: false }), style)
}

/// The comparison as the document `latlab.compare/1`, with the experiment and its runs.
pub(super) fn document(
    comparisons: Option<&Comparisons>,
    directory: &Path,
    standing: &Standing,
    experiment: &Experiment,
    growth: Option<&ViaGrowthView>,
) -> String {
    let about = about(directory, standing, experiment, growth);
    let runs: Value = standing.runs.iter().map(run).collect();
    match comparisons {
        Some(comparisons) => {
            let companions = Companions { experiment: Some(about), runs: Some(runs) };
            comparison::json(comparisons, &[], companions)
        }
        None => {
            let document = json!({
                "schema": "latlab.compare/1", "baseline": null, "factor": null, "over": "blocks", "interleaved": true,
                "groups": [], "comparisons": [], "experiment": about, "runs": runs, "caveats": [],
            });
            format!("{document:#}\n")
        }
    }
}
