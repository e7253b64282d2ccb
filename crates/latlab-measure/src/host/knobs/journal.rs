//! The values to restore on this host, written to disk before anything is changed.
//!
//! Each process that changes settings has a file, its page, which is named after the process and locked by it. The
//! kernel releases the lock however the process ends. A page is written under another name, synced and renamed, so that
//! it is never incomplete. A process that can lock a page whose owner died may restore its values.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::knob::Knob;
use super::netns_identity::NetnsIdentity;
use crate::host::process::ProcessIdentity;
use crate::host::root::HostRoot;
use crate::platform::input_file;
use crate::platform::ownership::expect_own;

const FORMAT: &str = "latlab.journal/1";
const SUFFIX: &str = "json";
/// A page that is being written: nothing was changed for it.
const UNFINISHED: &str = "unfinished";
/// The longest page that is read: a knob of each of a thousand CPUs takes a third of it.
const PAGE_MAX_BYTES: u64 = 1 << 20;
/// How long to wait for the lock. Reading all pages takes milliseconds, so a process that holds it longer is stopped.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// One value that was changed, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalRecord {
    /// The setting as typed: `governor=performance`.
    pub(super) setting: String,
    pub(super) knob: Knob,
    #[serde(flatten)]
    pub(super) at: NetnsIdentity,
    /// The value before the change.
    pub(super) before: String,
    /// The value that latlab set.
    pub(super) ours: String,
}

#[derive(Serialize, Deserialize)]
struct JournalPage {
    format: String,
    owner: ProcessIdentity,
    /// The root of the knobs in tests; absent for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<PathBuf>,
    /// In the order of the changes.
    entries: Vec<JournalRecord>,
}

/// The journal of this user on this host.
#[derive(Clone, Debug)]
pub struct KnobJournal {
    directory: PathBuf,
}

/// A page that this process holds locked.
#[derive(Debug)]
pub(super) struct HeldPage {
    pub(super) path: PathBuf,
    pub(super) owner: ProcessIdentity,
    pub(super) entries: Vec<JournalRecord>,
    root: Option<PathBuf>,
    _lock: File,
}

pub(super) struct LockedJournal<'a> {
    journal: &'a KnobJournal,
    lock: File,
}

impl KnobJournal {
    pub fn at(directory: impl Into<PathBuf>) -> KnobJournal {
        KnobJournal { directory: directory.into() }
    }

    /// `$LATLAB_STATE_DIR/journal`; else `/var/lib/latlab/journal` for root and `$XDG_STATE_HOME/latlab/journal` (or below
    /// `~/.local/state`) for other users. `None` for other users without a home directory.
    pub fn for_user() -> Option<KnobJournal> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let trusted = !latlab_sys::process::started_with_more_rights();
        let named = variable("LATLAB_STATE_DIR").filter(|_| trusted);
        let state = match named {
            Some(directory) => directory,
            None if rustix::process::geteuid().is_root() => PathBuf::from("/var/lib/latlab"),
            None => {
                let home = || variable("HOME").map(|home| home.join(".local/state"));
                variable("XDG_STATE_HOME").or_else(home)?.join("latlab")
            }
        };
        Some(KnobJournal::at(state.join("journal")))
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Locks the journal; creates it if missing.
    pub(super) fn create_and_lock(&self) -> io::Result<LockedJournal<'_>> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.lock()
    }

    /// Locks the journal; an error of kind `NotFound` without one.
    pub(super) fn lock(&self) -> io::Result<LockedJournal<'_>> {
        let lock = input_file::open_directory(&self.directory)?;
        expect_own(&self.directory, &lock)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while !try_lock(&lock)? {
            if Instant::now() > deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another latlab holds the journal"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(LockedJournal { journal: self, lock })
    }

    /// The page of this process, if it has one.
    pub(super) fn own(&self) -> io::Result<Option<(PathBuf, Vec<JournalRecord>)>> {
        let path = self.page_path(&ProcessIdentity::this_process()?);
        match input_file::read(&path, PAGE_MAX_BYTES) {
            Ok(bytes) => Ok(Some((path, serde_json::from_slice::<JournalPage>(&bytes)?.entries))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn page_path(&self, owner: &ProcessIdentity) -> PathBuf {
        self.directory.join(owner.name()).with_extension(SUFFIX)
    }

    /// Whether it has a page of a process `pid`.
    pub(super) fn has_page_of(&self, pid: u32) -> bool {
        let begin = format!("{pid}-");
        let is_its = |name: OsString| {
            let path = Path::new(&name);
            path.extension().is_some_and(|end| end == SUFFIX) && name.to_string_lossy().starts_with(&begin)
        };
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).any(is_its)
    }

    fn sync(&self) -> io::Result<()> {
        input_file::open_directory(&self.directory)?.sync_all()
    }

    /// Writes a page that survives a power cut; it is locked before it has its name.
    fn write(
        &self,
        owner: ProcessIdentity,
        root: Option<PathBuf>,
        entries: Vec<JournalRecord>,
    ) -> io::Result<HeldPage> {
        let path = self.page_path(&owner);
        let unfinished = path.with_extension(UNFINISHED);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let page = JournalPage { format: FORMAT.into(), owner, root, entries };
        let mut text = serde_json::to_vec_pretty(&page)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        self.sync()?;
        Ok(HeldPage { path, owner: page.owner, entries: page.entries, root: page.root, _lock: file })
    }
}

/// A page whose values must not be restored.
#[derive(Debug)]
pub(super) enum UnclaimedPage {
    Living(ProcessIdentity, Vec<JournalRecord>),
    Unreadable(PathBuf, io::Error),
}

impl LockedJournal<'_> {
    /// Writes the page of this process, about knobs under `root`.
    pub(super) fn begin(&self, root: &HostRoot, entries: Vec<JournalRecord>) -> io::Result<HeldPage> {
        self.journal.write(ProcessIdentity::this_process()?, root.elsewhere().map(Path::to_owned), entries)
    }

    /// Every page about knobs under `root`: held if its owner is dead. Incomplete pages of dead processes are removed.
    pub(super) fn pages(&self, root: &HostRoot) -> io::Result<Vec<Result<HeldPage, UnclaimedPage>>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.journal.directory)? {
            names.push(entry?.file_name());
        }
        names.sort_unstable();
        let with_suffix =
            |suffix: &'static str| move |name: &&OsString| Path::new(name).extension().is_some_and(|end| end == suffix);
        for name in names.iter().filter(with_suffix(UNFINISHED)) {
            if input_file::open_in(&self.lock, name).and_then(|file| try_lock(&file)).unwrap_or(false) {
                fs::remove_file(self.journal.directory.join(name))?;
            }
        }
        Ok(names.iter().filter(with_suffix(SUFFIX)).filter_map(|name| self.hold(name, root).transpose()).collect())
    }

    /// Holds the page of this `name`; `None` if it has just been removed, or is not about `root`.
    fn hold(&self, name: &OsString, root: &HostRoot) -> Result<Option<HeldPage>, UnclaimedPage> {
        match input_file::open_in(&self.lock, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => hold(&self.journal.directory.join(name), opened, root),
        }
    }
}

/// Holds the page at `path`, `opened`; `None` if it has just been removed, or is not about `root`.
fn hold(path: &Path, opened: io::Result<File>, root: &HostRoot) -> Result<Option<HeldPage>, UnclaimedPage> {
    let unreadable = |error| UnclaimedPage::Unreadable(path.to_owned(), error);
    let file = opened.map_err(unreadable)?;
    expect_own(path, &file).map_err(unreadable)?;
    let free = try_lock(&file).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.nlink() == 0 {
        return Ok(None);
    }
    let bytes = file.try_clone().and_then(|file| input_file::read_open(file, PAGE_MAX_BYTES)).map_err(unreadable)?;
    let page: JournalPage = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))?;
    if page.format != FORMAT {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, format!("its format is `{}`", page.format))));
    }
    // The values of another root are not on this host.
    if page.root.as_deref() != root.elsewhere() {
        return Ok(None);
    }
    if !free || page.owner.is_alive() {
        return Err(UnclaimedPage::Living(page.owner, page.entries));
    }
    let JournalPage { owner, entries, root, .. } = page;
    Ok(Some(HeldPage { path: path.to_owned(), owner, entries, root, _lock: file }))
}

impl HeldPage {
    /// Reduces the page to `entries`, and removes it without any.
    pub(super) fn keep_only(self, entries: Vec<JournalRecord>) -> io::Result<()> {
        let journal = KnobJournal::at(self.path.parent().unwrap_or(Path::new(".")));
        if entries.is_empty() {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return journal.sync(),
            }
        }
        if entries != self.entries {
            journal.write(self.owner, self.root, entries)?;
        }
        Ok(())
    }
}

/// Whether the lock could be taken.
fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(before: &str) -> JournalRecord {
        let knob = Knob::RtRuntime;
        let at = NetnsIdentity::default();
        JournalRecord { setting: "rt-runtime=-1".into(), knob, at, before: before.into(), ours: "-1".into() }
    }

    /// Writes a page like another process.
    fn leave_behind(journal: &KnobJournal, owner: &ProcessIdentity, text: Option<&str>) {
        let page =
            JournalPage { format: FORMAT.into(), owner: owner.clone(), root: None, entries: vec![entry("950000")] };
        let text = text.map_or_else(|| serde_json::to_string(&page).expect("plain"), str::to_owned);
        fs::create_dir_all(&journal.directory).expect("a directory");
        fs::write(journal.page_path(owner), text).expect("a file");
    }

    #[test]
    fn only_pages_of_dead_processes_are_held() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = KnobJournal::at(directory.path().join("a/b"));
        assert_eq!(journal.lock().err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
        let me = ProcessIdentity::this_process().expect("proc");
        let before_me = ProcessIdentity { started_ticks: me.started_ticks - 1, ..me.clone() };
        let other_boot =
            ProcessIdentity { boot_id: "another".into(), started_ticks: me.started_ticks + 1, ..me.clone() };
        for owner in [&me, &before_me, &other_boot] {
            leave_behind(&journal, owner, None);
        }
        let pages = journal.lock().expect("a journal").pages(&HostRoot::live()).expect("a directory");
        let taken: Vec<_> = pages.iter().flatten().map(|page| page.owner.clone()).collect();
        assert_eq!(taken, [before_me, other_boot]);
        assert!(
            matches!(pages.iter().find_map(|page| page.as_ref().err()), Some(UnclaimedPage::Living(owner, _)) if *owner == me)
        );
    }

    #[test]
    fn a_held_page_is_not_held_twice() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = KnobJournal::at(directory.path());
        let dead = ProcessIdentity { started_ticks: 0, ..ProcessIdentity::this_process().expect("proc") };
        leave_behind(&journal, &dead, None);
        let first = journal.lock().expect("a journal").pages(&HostRoot::live()).expect("a directory");
        assert!(first[0].is_ok());
        let second = journal.lock().expect("unlocked").pages(&HostRoot::live()).expect("a directory");
        assert!(matches!(second[0], Err(UnclaimedPage::Living(..))), "the lock decides, not only the owner");
    }

    #[test]
    fn a_page_is_reduced_and_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = KnobJournal::at(directory.path().join("journal"));
        let page = journal
            .create_and_lock()
            .expect("created")
            .begin(&HostRoot::live(), vec![entry("1"), entry("2")])
            .expect("written");
        let path = page.path.clone();
        assert_eq!(journal.own().expect("readable").map(|(_, entries)| entries.len()), Some(2));
        page.keep_only(vec![entry("2")]).expect("written");
        assert_eq!(journal.own().expect("readable"), Some((path.clone(), vec![entry("2")])));
        let page =
            journal.create_and_lock().expect("there").begin(&HostRoot::live(), vec![entry("1")]).expect("written");
        page.keep_only(Vec::new()).expect("removed");
        assert!(!path.exists());
    }
}
