//! Where the recordings of a command go, opened before anything is sent.

use std::path::PathBuf;

use crate::cli::resolve::Keeping;
use crate::error::Failure;
use crate::measure::Place;
use crate::recording::Store;

/// An open store, and the directory that `--output` named.
#[derive(Debug)]
pub(super) struct Keep {
    store: Store,
    directory: Option<PathBuf>,
}

impl Keep {
    /// Where a measurement shall record.
    pub(super) fn place(&self) -> Place<'_> {
        Place { store: &self.store, directory: self.directory.as_deref(), experiment: None, live: None }
    }
}

/// Opens what `keeping` names. `--no-record` records all the same, into a store that goes when the
/// command ends: there is one path from the loop to the summary, not two.
pub(super) fn open(keeping: &Keeping) -> Result<Keep, Failure> {
    let (store, directory) = match keeping {
        Keeping::Nothing => (Store::temporary()?, None),
        Keeping::InStore(path) => (Store::open(path)?, None),
        Keeping::InNewStore(path) => (Store::make_new(path)?, None),
        Keeping::As(path) => {
            Store::expect_new(path)?;
            (Store::at(path), Some(path.clone()))
        }
    };
    Ok(Keep { store, directory })
}
