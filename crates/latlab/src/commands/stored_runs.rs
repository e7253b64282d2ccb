//! The runs of a recording, a store or an experiment, each asked for its figures.

use std::path::{Path, PathBuf};

use crate::analysis::Subject;
use crate::analysis::comparison::ObservedRun;
use crate::console::Console;
use crate::error::Failure;
use crate::plan::Kind;
use crate::recording::{ListingState, Recording, Store};

/// The file that makes a directory an experiment, and the store of its runs.
const EXPERIMENT: &str = "experiment.toml";
const RUNS: &str = "runs";

/// The kind of the newest recording at `path`; none where none can be opened, which whoever reads it will tell.
pub(super) fn kind_in(path: &Path) -> Option<Kind> {
    let listed = Store::at(&store_of(path)).list().ok()?.into_iter().find_map(|listing| listing.manifest);
    listed.map(|manifest| manifest.kind).or_else(|| Some(Recording::open(path).ok()?.manifest().kind))
}

fn store_of(path: &Path) -> PathBuf {
    if path.join(EXPERIMENT).is_file() { path.join(RUNS) } else { path.to_owned() }
}

/// The runs of the recording, the store or the experiment at `path`, in the order in which they were made.
pub(super) fn runs_in(path: &Path, subjects: &[Subject], console: &Console) -> Result<Vec<ObservedRun>, Failure> {
    let store = store_of(path);
    let mut found: Vec<PathBuf> = Vec::new();
    for listing in Store::at(&store).list()? {
        match listing.state {
            ListingState::Finished | ListingState::Unfinished => found.push(listing.path),
            ListingState::Measuring { pid } => {
                console.note(&format!("`{}` is left out: process {pid} still measures", listing.name()));
            }
            ListingState::Damaged(error) => console.warning(&format!("left out: {error}"), error.hint().as_deref()),
        }
    }
    // the store lists the newest first
    found.reverse();
    if found.is_empty() && store == path {
        found.push(path.to_owned());
    }
    found.iter().map(|path| observe(path, subjects, console)).collect()
}

fn observe(path: &Path, subjects: &[Subject], console: &Console) -> Result<ObservedRun, Failure> {
    let recording = Recording::open(path)?;
    if let Some(note) = recording.note() {
        console.note(note);
    }
    Ok(ObservedRun::of(&recording, subjects)?)
}
