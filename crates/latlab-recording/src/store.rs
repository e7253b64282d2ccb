//! The store: a directory of recordings, and their names.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustix::fs::{Access, access};

use super::error::RecordingError;
use super::host_spool::HOST_SPOOL;
use super::manifest::{Manifest, RunEnding};
use super::manifest_file::{self, MANIFEST, NEXT};
use super::spool::{self, SPOOL};
use super::tables::recorded::RecordedTable;
use crate::plan::{Kind, Side};
use crate::platform::Directory;

/// Files of a recording besides its manifest. A directory that has one and no manifest is a damaged recording.
fn data_files() -> impl Iterator<Item = &'static str> {
    RecordedTable::ALL.into_iter().map(RecordedTable::file).chain([SPOOL, HOST_SPOOL])
}

/// The file of the trace of a host.
pub(super) const fn trace_file(side: Side) -> &'static str {
    if matches!(side, Side::Peer) { "trace-peer.txt" } else { "trace.txt" }
}

/// Further files that a recording may have.
const OTHER_FILES: [&str; 4] = [MANIFEST, NEXT, trace_file(Side::Local), trace_file(Side::Peer)];

#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// Of one that is opened for writing. What takes the place of the path later is not written to.
    directory: Option<Directory>,
    end: StoreEnd,
}

/// What happens to the directory when its [`Store`] is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreEnd {
    Stays,
    /// Removed if empty: a run that could not begin leaves nothing behind.
    StaysIfUsed,
    /// Not its own: its recordings have no names in it.
    Nameless,
}

/// An entry of a store's list: a recording that was not opened.
#[derive(Debug)]
pub struct Listing {
    pub path: PathBuf,
    pub state: ListingState,
    /// Manifest of the recording, if readable; some 15 kB.
    pub manifest: Option<Box<Manifest>>,
}

/// The state of a recording in a store.
#[derive(Debug)]
pub enum ListingState {
    /// Finished, with any ending of the run.
    Finished,
    Measuring {
        pid: u32,
    },
    /// The run is over, but the rows are still in the spool: opening the recording finishes it.
    Unfinished,
    /// The recording cannot be opened.
    Damaged(RecordingError),
}

impl Listing {
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether it has neither manifest nor data. A process that is killed as it begins a run leaves such a directory.
    pub fn is_bare(&self) -> bool {
        self.manifest.is_none() && !self.path.join(MANIFEST).exists() && !has_data(&self.path)
    }

    /// When the run began, from its manifest or else its name.
    pub fn start(&self) -> Option<Timestamp> {
        let recorded = self.manifest.as_ref().and_then(|manifest| manifest.started_at.parse().ok());
        recorded.or_else(|| start_in_name(&self.name()))
    }

    /// The size of its files.
    pub fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Why [`Listing::remove`] would not remove it: only a finished recording without other files is removed.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn reason_to_keep(&self) -> io::Result<Option<String>> {
        Ok(match &self.state {
            ListingState::Measuring { pid } => Some(format!("process {pid} still measures")),
            ListingState::Unfinished => {
                Some("its last probes are not in its tables yet; `latlab summary` adds them".into())
            }
            ListingState::Damaged(_) => Some("it is damaged".into()),
            ListingState::Finished if self.path.is_symlink() => Some("it is a link".into()),
            ListingState::Finished => {
                let names = entry_names(&self.path)?;
                names.into_iter().find(|name| !is_own_file(name)).map(|name| format!("it has the other file `{name}`"))
            }
        })
    }

    /// Removes its files and its directory. The manifest is the last file: what an interrupted removal leaves is still a
    /// recording, and can be removed again.
    ///
    /// # Errors
    /// If there is a reason to keep it, or a file cannot be removed.
    pub fn remove(&self) -> Result<(), RecordingError> {
        let refused = || RecordingError::refused("remove", &self.path);
        if let Some(reason) = self.reason_to_keep().map_err(refused())? {
            return Err(refused()(io::Error::other(reason)));
        }
        let mut names = entry_names(&self.path).map_err(refused())?;
        names.sort_by_key(|name| name == MANIFEST);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Directory::open(&self.path).and_then(|directory| directory.remove_with(&names)).map_err(refused())
    }
}

/// The names of the entries of `directory`.
pub fn entry_names(directory: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Whether latlab writes a file of this name into a recording.
fn is_own_file(name: &str) -> bool {
    let known = |name: &str| data_files().any(|file| file == name) || OTHER_FILES.contains(&name);
    known(name) || name.strip_suffix(".unfinished").is_some_and(known)
}

impl Store {
    /// Opens the store at `path` for writing; creates it if missing.
    ///
    /// # Errors
    /// If it is not a directory, cannot be made or cannot be written to.
    pub fn open(path: &Path) -> Result<Store, RecordingError> {
        refuse_files(path)?;
        fs::create_dir_all(path).map_err(RecordingError::refused("make the store", path))?;
        refuse_read_only(path).map_err(RecordingError::refused("write to the store", path))?;
        let directory = Directory::open(path).map_err(RecordingError::refused("open the store", path))?;
        Ok(Store { path: path.to_owned(), directory: Some(directory), end: StoreEnd::Stays })
    }

    /// A new store at `path`, which must not exist. It is removed if nothing is recorded in it.
    ///
    /// # Errors
    /// If `path` exists, or cannot be created.
    pub fn make_new(path: &Path) -> Result<Store, RecordingError> {
        Store::expect_new(path)?;
        let mut store = Store::open(path)?;
        store.end = StoreEnd::StaysIfUsed;
        Ok(store)
    }

    /// Checks before the run that a recording can be created at `path` itself.
    ///
    /// # Errors
    /// If `path` exists, or the directory above is not writable.
    pub fn expect_new(path: &Path) -> Result<(), RecordingError> {
        // Finds a dangling link too, unlike `exists`.
        if path.symlink_metadata().is_ok() {
            return Err(RecordingError::Exists { path: path.to_owned() });
        }
        refuse_files(path)?;
        // The last ancestor of a relative path is empty and means the working directory.
        let above = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
        refuse_read_only(above).map_err(RecordingError::refused("make the recording", path))
    }

    /// The store at `path` for reading, which need not exist.
    pub fn at(path: &Path) -> Store {
        Store { path: path.to_owned(), directory: None, end: StoreEnd::Stays }
    }

    /// A store whose recordings have no names in the file system: nothing of them remains, however the process ends. They use
    /// space in the system's directory for temporary files.
    ///
    /// # Errors
    /// If that directory cannot be written to.
    pub fn temporary() -> Result<Store, RecordingError> {
        let path = std::env::temp_dir();
        refuse_read_only(&path).map_err(RecordingError::refused("make temporary files in", &path))?;
        Ok(Store { path, directory: None, end: StoreEnd::Nameless })
    }

    /// A new directory `name` in it.
    ///
    /// # Errors
    /// Those of mkdirat(2) and openat(2).
    pub(super) fn make_directory(&self, name: &str) -> io::Result<Directory> {
        match &self.directory {
            Some(directory) => directory.create_directory(name),
            None => Directory::create(&self.path.join(name)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether recordings remain when the value is dropped.
    pub const fn keeps(&self) -> bool {
        !matches!(self.end, StoreEnd::Nameless)
    }

    /// The recordings, the newest first, with their manifests; see [`Store::list_as`].
    ///
    /// # Errors
    /// If it is not a directory or cannot be read.
    pub fn list(&self) -> Result<Vec<Listing>, RecordingError> {
        self.list_as(|listing| listing)
    }

    /// What `keep` keeps of each recording, the newest first; nothing if the store does not exist. A directory without a
    /// manifest is a damaged recording if it holds data or is named like one; other directories are left out. Unfinished
    /// recordings are not finished by this.
    ///
    /// # Errors
    /// If it is not a directory or cannot be read.
    pub fn list_as<T>(&self, mut keep: impl FnMut(Listing) -> T) -> Result<Vec<T>, RecordingError> {
        refuse_files(&self.path)?;
        let refused = || RecordingError::refused("read the store", &self.path);
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(refused())?,
        };
        let paths: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let paths = paths.map_err(refused())?.into_iter();
        let kept = paths.filter(|path| is_recording(path)).map(|path| {
            let listing = look_at(path);
            (Reverse((listing.start(), listing.name())), keep(listing))
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(kept.into_iter().map(|(_, kept)| kept).collect())
    }

    /// The manifests of the recordings that can be read, in the order in which the system names them.
    pub fn manifests(&self) -> impl Iterator<Item = Manifest> {
        self.recordings().filter_map(|path| look_at(path).manifest.map(|manifest| *manifest))
    }

    /// Whether there are recordings, sound or damaged. A directory that cannot be read may have some.
    pub fn has_recordings(&self) -> bool {
        let is_unreadable = || fs::read_dir(&self.path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
        self.recordings().next().is_some() || is_unreadable()
    }

    /// The paths of the recordings, sound or damaged, in the order in which the system names them; none if the store cannot
    /// be read.
    pub fn recordings(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_recording(path))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // An error cannot be reported here; the system clears its temporary files as well.
        _ = match self.end {
            StoreEnd::Stays | StoreEnd::Nameless => Ok(()),
            StoreEnd::StaysIfUsed => fs::remove_dir(&self.path),
        };
    }
}

/// Whether `path` is a recording, sound or damaged.
fn is_recording(path: &Path) -> bool {
    // A link that leads nowhere may have led to a recording.
    let may_be_directory = path.is_dir() || !path.exists();
    let is_named_like_one = || path.file_name().is_some_and(|name| is_directory_name(&name.to_string_lossy()));
    path.join(MANIFEST).is_file() || has_data(path) || (may_be_directory && is_named_like_one())
}

fn has_data(directory: &Path) -> bool {
    data_files().any(|file| directory.join(file).is_file())
}

fn look_at(path: PathBuf) -> Listing {
    let opened = Directory::open(&path).map_err(RecordingError::refused("open", &path));
    let pid = opened.as_ref().ok().and_then(spool::holder);
    let (manifest, error) = match opened.and_then(|directory| manifest_file::read(&directory)) {
        Ok(manifest) => (Some(Box::new(manifest)), None),
        Err(RecordingError::NotARecording { path }) => {
            (None, Some(RecordingError::damaged(path.join(MANIFEST), "it is missing")))
        }
        Err(error) => (None, Some(error)),
    };
    let ended = manifest.as_ref().is_some_and(|manifest| manifest.ending != RunEnding::Measuring);
    let state = match (error, pid) {
        // The manifest is written after the spool.
        (Some(_), Some(pid)) => ListingState::Measuring { pid },
        (Some(error), None) => ListingState::Damaged(error),
        (None, Some(pid)) => ListingState::Measuring { pid },
        (None, None) if path.join(SPOOL).exists() => ListingState::Unfinished,
        (None, None) if ended => ListingState::Finished,
        (None, None) => ListingState::Damaged(RecordingError::damaged(
            path.join(SPOOL),
            "the run did not end, and its spool is missing",
        )),
    };
    Listing { path, state, manifest }
}

fn refuse_read_only(directory: &Path) -> io::Result<()> {
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// An error if `path` or a directory above it is a file.
pub(crate) fn refuse_files(path: &Path) -> Result<(), RecordingError> {
    match path.ancestors().find(|ancestor| ancestor.exists()) {
        Some(ancestor) if !ancestor.is_dir() => {
            Err(RecordingError::NotADirectory { path: ancestor.to_owned(), due: "store" })
        }
        _ => Ok(()),
    }
}

/// A random run id: 16 hexadecimal digits.
pub fn fresh_run_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// CLOCK_REALTIME as the manifest's `started_at`: UTC, RFC 3339, to the millisecond.
pub fn started_at(realtime_ns: i64) -> String {
    let milliseconds = realtime_ns.div_euclid(1_000_000);
    let instant = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{instant:.3}")
}

/// `<UTC start>-<kind>-<short id>`; the short id has `digits` digits of the run id.
pub(crate) fn directory_name(started_at: &str, kind: Kind, run_id: &str, digits: usize) -> String {
    let start = match started_at.parse::<Timestamp>() {
        Ok(instant) => instant.strftime("%Y%m%dT%H%M%SZ").to_string(),
        // An importer may have some other text.
        Err(_) => started_at.chars().filter(char::is_ascii_alphanumeric).collect(),
    };
    let short = run_id.get(..digits).unwrap_or(run_id);
    format!("{start}-{}-{short}", kind.word())
}

/// The start in the name that latlab gave to the directory of a recording or an experiment.
pub fn start_in_name(name: &str) -> Option<Timestamp> {
    let start = DateTime::strptime("%Y%m%dT%H%M%SZ", name.split('-').next()?).ok()?;
    start.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp())
}

/// Whether `name` is one that [`directory_name`] makes for a run of latlab.
fn is_directory_name(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let [start, kind, short] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let is_start = |(at, letter): (usize, char)| match at {
        8 => letter == 'T',
        15 => letter == 'Z',
        _ => letter.is_ascii_digit(),
    };
    start.len() == "20261122T031500Z".len()
        && start.chars().enumerate().all(is_start)
        && Kind::ALL.iter().any(|known| known.word() == kind)
        && !short.is_empty()
        && short.chars().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_sort_by_their_start() {
        let start = started_at(1_795_227_300_123_456_789);
        assert_eq!(start, "2026-11-21T02:15:00.123Z");
        assert_eq!(directory_name(&start, Kind::Ping, "7f3a00112233aabb", 4), "20261121T021500Z-ping-7f3a");
        assert_eq!(directory_name("some day / or so", Kind::Ping, "7f", 4), "somedayorso-ping-7f");
    }

    #[test]
    fn only_names_of_recordings_count_as_such() {
        for name in ["20261121T021500Z-ping-7f3a", "20261121T021500Z-wakeup-7f3a0011"] {
            assert!(is_directory_name(name), "{name}");
        }
        for name in [
            "20261121T021500Z-experiment-7f3a",
            "20261121T021500Z-ping-",
            "20261121T021500Z-ping-7f3a.tar",
            "20261121-021500Z-ping-7f3a",
            "ping-7f3a",
            "notes",
        ] {
            assert!(!is_directory_name(name), "{name}");
        }
    }

    #[test]
    fn a_recording_without_its_manifest_is_damaged_and_not_left_out() {
        let store = tempfile::tempdir().expect("a store");
        let make = |name: &str, file: Option<&str>| {
            let path = store.path().join(name);
            fs::create_dir(&path).expect("made");
            file.into_iter().for_each(|file| fs::write(path.join(file), "").expect("written"));
        };
        make("named-by-hand", Some("probes.parquet"));
        make("20261121T021500Z-ping-7f3a", None);
        make("notes", Some("notes.txt"));
        fs::write(store.path().join("20261121T021500Z-ping-7f3b"), "a file").expect("written");
        std::os::unix::fs::symlink("/nowhere", store.path().join("20261121T021500Z-ping-7f3c")).expect("linked");
        let listings = Store::at(store.path()).list().expect("readable");
        let mut listed: Vec<_> = listings.iter().map(|listing| (listing.name(), listing.is_bare())).collect();
        listed.sort();
        let expected =
            [("20261121T021500Z-ping-7f3a", true), ("20261121T021500Z-ping-7f3c", true), ("named-by-hand", false)];
        assert_eq!(listed, expected.map(|(name, bare)| (name.to_owned(), bare)));
        assert!(listings.iter().all(|listing| matches!(listing.state, ListingState::Damaged(_))), "{listings:?}");
    }

    #[test]
    fn only_finished_recordings_without_other_files_are_removed() {
        let store = tempfile::tempdir().expect("a store");
        let make = |name: &str, state, files: &[&str]| {
            let path = store.path().join(name);
            fs::create_dir(&path).expect("made");
            files.iter().for_each(|file| fs::write(path.join(file), "12345").expect("written"));
            Listing { path, state, manifest: None }
        };
        let own = [MANIFEST, "probes.parquet", "host.parquet", "trace.txt", "probes.parquet.unfinished"];
        let finished = make("20261121T021500Z-ping-7f3a", ListingState::Finished, &own);
        assert_eq!(finished.bytes(), 25);
        assert_eq!(finished.start().map(|start| start.to_string()).as_deref(), Some("2026-11-21T02:15:00Z"));
        finished.remove().expect("removed");
        assert!(!finished.path.exists());
        for (name, state, file) in [
            ("noted", ListingState::Finished, "notes.txt"),
            ("measuring", ListingState::Measuring { pid: 1 }, "probes.parquet"),
            ("unfinished", ListingState::Unfinished, SPOOL),
            ("damaged", ListingState::Damaged(RecordingError::damaged("x", "y")), "probes.parquet"),
        ] {
            let kept = make(name, state, &[MANIFEST, file]);
            assert!(kept.reason_to_keep().expect("readable").is_some(), "{name}");
            assert!(
                kept.remove().is_err() && kept.path.join(MANIFEST).exists() && kept.path.join(file).exists(),
                "{name}"
            );
        }
    }
}
