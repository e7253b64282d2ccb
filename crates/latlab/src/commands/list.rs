//! `latlab list`: lists the recordings of a store.

use std::path::Path;

use super::Outcome;
use super::run::settle_directory;
use crate::console::Console;
use crate::diagnostics::{Explain, Failure};
use crate::experiment::{ExperimentState, in_store, is_edited, read_state_with_runner, runs_of};
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::{Listing, ListingState, Store};
use crate::report::list::{ListedExperiment, ListingView, StoreView, render_json, render_text};
use crate::report::{Style, family_of};
use crate::units::human;

/// Lists the store at `path`; a missing store is listed as empty.
pub(super) fn run(path: &Path, as_json: bool, console: &Console) -> Result<Outcome, Failure> {
    // the directory of an experiment stands for the store of its runs
    let runs = runs_of(path);
    let path = runs.as_deref().unwrap_or(path);
    let found = Store::at(path).list()?;
    let contents = StoreView {
        store: path.display().to_string(),
        recordings: found.iter().map(show).collect(),
        experiments: in_store(path).iter().map(|path| listed(path)).collect(),
    };
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    if !path.exists() {
        console.note(&format!("the store `{}` does not exist", contents.store));
    }
    match as_json {
        true => console.document(&render_json(&contents)),
        false => console.data(&render_text(&contents, style)),
    }?;
    Ok(Outcome::Done)
}

fn show(listing: &Listing) -> ListingView {
    let manifest = listing.manifest.as_ref();
    let (state, reason) = state(listing);
    ListingView {
        recording: listing.path.display().to_string(),
        kind: manifest.map(|manifest| manifest.kind.word().into()),
        started_at: manifest.map(|manifest| manifest.started_at.clone()),
        heading: manifest.map(heading),
        rows: manifest.and_then(|manifest| manifest.rows),
        state: state.into(),
        reason,
    }
}

/// The experiment in `directory`, whatever its state.
fn listed(directory: &Path) -> ListedExperiment {
    let settled = settle_directory(directory).map(|job| job.experiment);
    let lost_file = settled.as_ref().err().map(in_full);
    let experiment = settled.ok();
    let mut view = ListedExperiment {
        experiment: directory.display().to_string(),
        name: experiment.as_ref().map(|experiment| experiment.name.clone()),
        runs_done: None,
        runs_planned: experiment.map(|experiment| experiment.design.runs_at_most(experiment.conditions.len())),
        state: "damaged".into(),
        reason: None,
    };
    match read_state_with_runner(directory) {
        Err(error) => view.reason = Some(in_full(&error.explain())),
        Ok((state, runner)) => {
            view.runs_done = Some(state.runs_done());
            let process = |pid: Option<u32>| pid.map_or("by another process".into(), |pid| format!("by process {pid}"));
            let other_file = lost_file.or_else(|| edited(directory, &state));
            let goes_on = || "`latlab run` with its directory goes on with it".to_owned();
            (view.state, view.reason) = match runner {
                Some(runner) => ("measuring".into(), Some(process(runner.pid))),
                None if state.finished => ("finished".into(), other_file),
                None => ("unfinished".into(), Some(other_file.unwrap_or_else(goes_on))),
            };
        }
    }
    view
}

/// Why the file of an experiment is not the one that its runs were measured by.
fn edited(directory: &Path, state: &ExperimentState) -> Option<String> {
    is_edited(directory, state).is_ok_and(|is_edited| is_edited).then(|| "its file was edited".into())
}

fn in_full(Failure { message, cause, .. }: &Failure) -> String {
    cause.as_ref().map_or_else(|| message.clone(), |cause| format!("{message}: {cause}"))
}

fn heading(manifest: &Manifest) -> String {
    let condition = &manifest.condition;
    let what = match (condition.via, condition.size_bytes) {
        (Some(via), _) => via.word().into(),
        (None, size) => human::bytes(size.unwrap_or(0).into()),
    };
    let when = condition.rate.as_ref().unwrap_or(&condition.schedule);
    let usual = format!("{} {} · {what} · {when}", manifest.kind.word(), condition.target);
    let family = manifest.run.peer_address.as_deref().map(family_of);
    std::iter::once(usual).chain(condition.unusual(family)).collect::<Vec<_>>().join(" · ")
}

fn state(listing: &Listing) -> (&'static str, Option<String>) {
    let reason = listing.manifest.as_ref().and_then(|manifest| manifest.reason.clone());
    match &listing.state {
        ListingState::Measuring { pid } => ("measuring", Some(format!("by process {pid}"))),
        ListingState::Unfinished => {
            ("unfinished", Some("its process ended; the next command that opens it finishes it".into()))
        }
        ListingState::Damaged(error) => ("damaged", Some(in_full(&error.explain()))),
        ListingState::Finished => {
            (listing.manifest.as_ref().map_or("damaged", |manifest| ending(manifest.ending)), reason)
        }
    }
}

const fn ending(ending: RunEnding) -> &'static str {
    match ending {
        RunEnding::Measuring => "measuring",
        RunEnding::Completed => "completed",
        RunEnding::Interrupted => "interrupted",
        RunEnding::Failed => "failed",
        RunEnding::Recovered => "recovered",
    }
}
