//! Where the recordings of a command go, opened before anything is sent.

use std::path::PathBuf;

use crate::cli::resolve::OutputSpec;
use crate::diagnostics::Failure;
use crate::measure::RecordingTarget;
use crate::recording::Store;

/// An open store, and the directory that `--output` named.
#[derive(Debug)]
pub(super) struct OpenOutput {
    store: Store,
    directory: Option<PathBuf>,
}

impl OpenOutput {
    /// Where a measurement shall record.
    pub(super) fn place(&self) -> RecordingTarget<'_> {
        RecordingTarget { store: &self.store, directory: self.directory.as_deref(), experiment: None, live: None }
    }
}

/// Opens what `keeping` names. `--no-record` records all the same, into a store that goes when the
/// command ends: there is one path from the loop to the summary, not two.
pub(super) fn open(keeping: &OutputSpec) -> Result<OpenOutput, Failure> {
    let (store, directory) = match keeping {
        OutputSpec::Nothing => (Store::temporary()?, None),
        OutputSpec::InStore(path) => (Store::open(path)?, None),
        OutputSpec::InNewStore(path) => (Store::make_new(path)?, None),
        OutputSpec::As(path) => {
            Store::expect_new(path)?;
            (Store::at(path), Some(path.clone()))
        }
    };
    Ok(OpenOutput { store, directory })
}
