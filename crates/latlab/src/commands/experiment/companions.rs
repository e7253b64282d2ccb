//! What the document of an experiment has beside its comparison.

use std::path::Path;

use serde_json::{Value, json};

use crate::experiment::{ExperimentState, RunState};
use crate::plan::Experiment;

/// The experiment.
pub(super) fn about(directory: &Path, standing: &ExperimentState, experiment: &Experiment) -> Value {
    let recipe = standing
        .recipe
        .as_ref()
        .map(|recipe| json!({ "name": recipe.name, "scale": recipe.scale, "target": recipe.target }));
    let dropped: Vec<Value> =
        standing.dropped.iter().map(|(factors, reason)| json!({ "factors": factors, "reason": reason })).collect();
    json!({
        "id": standing.id,
        "name": experiment.name,
        "directory": directory.display().to_string(),
        "recipe": recipe,
        "finished": standing.finished,
        "blocks": standing.blocks.values().filter(|block| block.ended).count(),
        "changed": standing.changes,
        "dropped": dropped,
        "via_growth": null,
    })
}

/// One of its runs, whatever became of it.
pub(super) fn run(run: &RunState) -> Value {
    json!({
        "block": run.key.block,
        "position": run.place.position,
        "condition": run.place.condition,
        "factors": run.key.factors,
        "repetition": run.key.repetition,
        "warmup": run.key.warmup,
        "outcome": run.outcome,
        "recording": run.recording,
        "reason": run.reason,
    })
}
