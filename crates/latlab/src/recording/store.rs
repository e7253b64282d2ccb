//! The store: a directory of recordings.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::error::RecordingError;
use super::manifest::{Manifest, RunEnding};
use super::manifest_file::{self, MANIFEST};
use super::naming::fresh_run_id;
use super::spool::{self, SPOOL};

/// A directory of recordings.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    end: StoreEnd,
}

/// What becomes of a store when its value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreEnd {
    /// It stays.
    Stays,
    /// It stays if something is in it: a run that could not begin leaves nothing behind.
    StaysIfUsed,
    /// It goes, with all that is in it.
    Goes,
}

/// A recording in a store, as far as a look at it tells.
#[derive(Debug)]
pub struct Listing {
    /// Its directory.
    pub path: PathBuf,
    /// In what state it is.
    pub state: ListingState,
    /// Its manifest, where that can be read.
    pub manifest: Option<Manifest>,
}

/// The state of a recording in a store.
#[derive(Debug)]
pub enum ListingState {
    /// Finished, whatever its ending.
    Finished,
    /// Its run goes on.
    Measuring {
        /// In this process.
        pid: u32,
    },
    /// Its run is over but its rows are still in the spool: opening it finishes it.
    Unfinished,
    /// It cannot be opened.
    Damaged(RecordingError),
}

impl Listing {
    /// The directory's name.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Store {
    /// Opens the store at `path` for writing; makes it where there is none.
    ///
    /// # Errors
    /// Where it is no directory, cannot be made or cannot be written to.
    pub fn open(path: &Path) -> Result<Store, RecordingError> {
        refuse_files(path)?;
        fs::create_dir_all(path).map_err(RecordingError::refused("make the store", path))?;
        refuse_read_only(path).map_err(RecordingError::refused("write to the store", path))?;
        Ok(Store { path: path.to_owned(), end: StoreEnd::Stays })
    }

    /// A new store at `path`, where nothing may be; it stays only if something is recorded in it.
    ///
    /// # Errors
    /// Where something is there already, or it cannot be made.
    pub fn make_new(path: &Path) -> Result<Store, RecordingError> {
        Store::expect_new(path)?;
        let mut store = Store::open(path)?;
        store.end = StoreEnd::StaysIfUsed;
        Ok(store)
    }

    /// Looks whether a recording can be made at `path` itself, so that a refusal comes before the run.
    ///
    /// # Errors
    /// Where something is there already, or the directory it shall stand in takes none.
    pub fn expect_new(path: &Path) -> Result<(), RecordingError> {
        // A link that leads nowhere is in the way as well.
        if path.symlink_metadata().is_ok() {
            return Err(RecordingError::Exists { path: path.to_owned() });
        }
        refuse_files(path)?;
        // The last ancestor of a relative path is empty and means the working directory.
        let above = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
        refuse_read_only(above).map_err(RecordingError::refused("make the recording", path))
    }

    /// The store at `path` for reading: nothing is made, and it need not be there.
    pub fn at(path: &Path) -> Store {
        Store { path: path.to_owned(), end: StoreEnd::Stays }
    }

    /// A store of its own in the system's directory for temporary files, removed when this is dropped.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn temporary() -> Result<Store, RecordingError> {
        let parent = std::env::temp_dir();
        let refused = |error| RecordingError::refused("make a temporary store in", &parent)(error);
        let path = parent.join(format!("latlab-{}", fresh_run_id().map_err(refused)?));
        fs::create_dir(&path).map_err(refused)?;
        Ok(Store { path, end: StoreEnd::Goes })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether what is in it stays when the command is over.
    pub const fn keeps(&self) -> bool {
        !matches!(self.end, StoreEnd::Goes)
    }

    /// What is in it, the newest first; nothing where it does not exist. Directories that are no recordings are
    /// left out; nothing is finished or changed.
    ///
    /// # Errors
    /// Where it is no directory or cannot be read.
    pub fn list(&self) -> Result<Vec<Listing>, RecordingError> {
        refuse_files(&self.path)?;
        let refused = || RecordingError::refused("read the store", &self.path);
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(refused())?,
        };
        let paths: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let paths = paths.map_err(refused())?.into_iter();
        let mut listings: Vec<_> = paths.filter(|path| path.join(MANIFEST).is_file()).map(look_at).collect();
        // Names begin with the UTC start, to the second; manifests know it better.
        let second = |listing: &Listing| listing.name().split('-').next().map(str::to_owned);
        let instant = |listing: &Listing| listing.manifest.as_ref().map(|manifest| manifest.started_at.clone());
        listings.sort_by_cached_key(|listing| Reverse((second(listing), instant(listing), listing.name())));
        Ok(listings)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Nobody is left to tell; the system clears its temporary files as well.
        _ = match self.end {
            StoreEnd::Stays => Ok(()),
            StoreEnd::StaysIfUsed => fs::remove_dir(&self.path),
            StoreEnd::Goes => fs::remove_dir_all(&self.path),
        };
    }
}

fn look_at(path: PathBuf) -> Listing {
    let spool = path.join(SPOOL);
    let pid = spool::holder(&spool);
    let (manifest, error) = match manifest_file::read(&path) {
        Ok(manifest) => (Some(manifest), None),
        Err(error) => (None, Some(error)),
    };
    let ended = manifest.as_ref().is_some_and(|manifest| manifest.ending != RunEnding::Measuring);
    let state = match (error, pid) {
        (Some(error), _) => ListingState::Damaged(error),
        (None, Some(pid)) => ListingState::Measuring { pid },
        (None, None) if spool.exists() => ListingState::Unfinished,
        (None, None) if ended => ListingState::Finished,
        (None, None) => {
            ListingState::Damaged(RecordingError::damaged(spool, "the run did not end, and its spool is missing"))
        }
    };
    Listing { path, state, manifest }
}

fn refuse_read_only(directory: &Path) -> io::Result<()> {
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Names the file that stands where a directory is due, at `path` or on the way to it.
pub(crate) fn refuse_files(path: &Path) -> Result<(), RecordingError> {
    match path.ancestors().find(|ancestor| ancestor.exists()) {
        Some(ancestor) if !ancestor.is_dir() => {
            Err(RecordingError::NotADirectory { path: ancestor.to_owned(), due: "store" })
        }
        _ => Ok(()),
    }
}
