//! The runs of a recording, a store or an experiment, and the figures of each.

use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::diagnostics::{Explain, Failure};
use crate::experiment::runs_of;
use crate::plan::Kind;
use crate::recording::{ListingState, Recording, Store};

/// A recording whose rows are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRun {
    pub(super) path: PathBuf,
    /// The kind, if the listing of the store says it.
    kind: Option<Kind>,
}

impl FoundRun {
    /// The kind of the run; `None` if it cannot be opened, which its reader reports.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind.or_else(|| Some(Recording::open(&self.path).ok()?.manifest().kind))
    }
}

/// The runs of the recording, store or experiment at `path`, oldest first. Reports those that cannot be read.
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
            ListingState::Damaged(error) => {
                console.warning(&format!("left out: {error}"), error.explain().hint.as_deref())
            }
        }
    }
    // the store lists the newest first
    found.reverse();
    if found.is_empty() && store == path {
        found.push(FoundRun { path: path.to_owned(), kind: None });
    }
    Ok(found)
}
