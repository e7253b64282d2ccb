//! Taking turns at a store: those that are started at the same moment shall not all find that nothing was begun.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::error::ExperimentError;
use crate::recording::Store;

/// Held while experiments of a store are looked for and begun; whoever comes meanwhile waits.
#[derive(Debug)]
pub struct StoreLock {
    _store: File,
}

impl StoreLock {
    /// Waits for the turn at `store`, which is made where it is not there.
    ///
    /// # Errors
    /// Where it cannot be made or opened.
    pub fn take(store: &Path) -> Result<StoreLock, ExperimentError> {
        Store::open(store).map_err(ExperimentError::of_store)?;
        let file = File::open(store).map_err(ExperimentError::refused("open the store", store))?;
        // Some network file systems lock no directories: there the journal's own lock is all there is.
        let _ = flock(&file, FlockOperation::LockExclusive);
        Ok(StoreLock { _store: file })
    }
}
