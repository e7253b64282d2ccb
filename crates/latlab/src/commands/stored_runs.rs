//! The runs of a recording, a store or an experiment, each asked for its figures.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::analysis::Estimand;
use crate::analysis::comparison::ObservedRun;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::runs_of;
use crate::plan::Kind;
use crate::platform::parallel_map;
use crate::recording::{ListingState, Recording, Store};

/// A recording before its rows are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRun {
    /// Its directory.
    pub(super) path: PathBuf,
    /// What was measured, where a look at its store told that.
    kind: Option<Kind>,
}

impl FoundRun {
    /// What was measured; none where it cannot be opened, which whoever reads it will tell.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind.or_else(|| Some(Recording::open(&self.path).ok()?.manifest().kind))
    }
}

/// The runs of the recording, the store or the experiment at `path`, in the order in which they were made. What cannot be
/// read is told.
pub(super) fn runs_in(path: &Path, console: &Console) -> Result<Vec<FoundRun>, Failure> {
    let store = runs_of(path).unwrap_or_else(|| path.to_owned());
    let mut found: Vec<FoundRun> = Vec::new();
    for listing in Store::at(&store).list()? {
        let kind = listing.manifest.as_ref().map(|manifest| manifest.kind);
        match listing.state {
            ListingState::Finished | ListingState::Unfinished => found.push(FoundRun { path: listing.path, kind }),
            ListingState::Measuring { pid } => {
                console.note(&format!("`{}` is left out: process {pid} still measures", listing.name()));
            }
            ListingState::Damaged(error) => console.warning(&format!("left out: {error}"), error.hint().as_deref()),
        }
    }
    // the store lists the newest first
    found.reverse();
    if found.is_empty() && store == path {
        found.push(FoundRun { path: path.to_owned(), kind: None });
    }
    Ok(found)
}

/// Asks each of `recordings` for `subjects`, several at a time. The first that cannot be read is the failure; what
/// opening them did is told of all that were opened.
pub(super) fn observe(
    recordings: &[PathBuf],
    subjects: &[Estimand],
    console: &Console,
) -> Result<Vec<ObservedRun>, Failure> {
    let read = |path: &PathBuf| {
        let recording = match Recording::open(path) {
            Ok(recording) => recording,
            Err(error) => return ControlFlow::Break((None, Err(error))),
        };
        let note = recording.note().map(str::to_owned);
        match ObservedRun::of(&recording, subjects) {
            Ok(run) => ControlFlow::Continue((note, Ok(run))),
            Err(error) => ControlFlow::Break((note, Err(error))),
        }
    };
    let runs = parallel_map::each(recordings, parallel_map::available(), read);
    runs.iter().filter_map(|(note, _)| note.as_deref()).for_each(|note| console.note(note));
    runs.into_iter().map(|(_, run)| Ok(run?)).collect()
}
