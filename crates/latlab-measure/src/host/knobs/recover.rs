//! Restores the values of a dead process from its journal, if the current values are still those that latlab set.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use latlab_sys::errno::explain;
use rustix::io::Errno;

use super::journal::{HeldPage, JournalRecord, KnobJournal, UnclaimedPage};
use crate::facts::Restoration;
use crate::host::namespaces::inside;
use crate::host::process::boot_id;
use crate::host::root::HostRoot;

/// One value that a latlab had left changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub setting: String,
    /// The file, or the interface and its property.
    pub place: String,
    /// The value before the change.
    pub before: String,
    /// The value that latlab set.
    pub ours: String,
    pub outcome: Restoration,
    /// The page that keeps it, if it could not be restored.
    pub kept_in: Option<PathBuf>,
}

/// A page of the journal that could not be read or written.
#[derive(Debug)]
pub struct Unrecovered {
    pub path: PathBuf,
    /// The error of the system call.
    pub source: io::Error,
}

/// Restores the values that dead latlab processes have left changed, the last change first. Pages of an earlier boot
/// are removed, since the reboot has reset their values.
pub fn recover(journal: &KnobJournal, root: &HostRoot) -> (Vec<Recovered>, Vec<Unrecovered>) {
    let at_journal = |source| Unrecovered { path: journal.directory().to_owned(), source };
    let pages = match journal.lock().and_then(|journal| journal.pages(root)) {
        Ok(pages) => pages,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), Vec::new()),
        Err(error) => return (Vec::new(), vec![at_journal(error)]),
    };
    let this_boot = match boot_id() {
        Ok(id) => id,
        Err(error) => return (Vec::new(), vec![at_journal(error)]),
    };
    let (mut recovered, mut unrecovered) = (Vec::new(), Vec::new());
    for page in pages {
        match page {
            Ok(page) => {
                let path = page.path.clone();
                let (mut done, written) = recover_page(page, &this_boot, root);
                recovered.append(&mut done);
                unrecovered.extend(written.err().map(|source| Unrecovered { path, source }));
            }
            Err(UnclaimedPage::Living(..)) => {}
            Err(UnclaimedPage::Unreadable(path, source)) => unrecovered.push(Unrecovered { path, source }),
        }
    }
    (recovered, unrecovered)
}

/// Attempts of [`restore_of`] and the pause between them: a process that dies closes its pipes before its locks.
const RESTORE_ATTEMPTS: u32 = 20;
const RESTORE_PAUSE: Duration = Duration::from_millis(25);

static RESTORING: Mutex<()> = Mutex::new(());

/// Waits until no other thread restores what this process set. [`recover`] needs no lock: it runs before any change.
pub(super) fn exclusive_restoring() -> MutexGuard<'static, ()> {
    RESTORING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the values that this process has journalled, the last change first, from any thread, if it must end at once. If
/// one cannot be restored, the journal keeps them, and the next latlab reports them. No other thread restores them until the returned guard is dropped: a process that ends while it is held breaks off no restoration.
pub fn restore_own(journal: &KnobJournal, root: &HostRoot) -> MutexGuard<'static, ()> {
    let exclusive = exclusive_restoring();
    let Ok(Some((path, entries))) = journal.own() else { return exclusive };
    let outcomes: Vec<Restoration> = entries.iter().rev().map(|entry| restore_at(entry, root)).collect();
    if outcomes.iter().all(is_settled) {
        let _ = fs::remove_file(path);
    }
    exclusive
}

/// Restores the values that the process `pid`, which has died, has journalled.
pub fn restore_of(pid: u32, journal: &KnobJournal, root: &HostRoot) {
    for _ in 0..RESTORE_ATTEMPTS {
        // The next latlab reports what cannot be restored.
        recover(journal, root);
        if !journal.has_page_of(pid) {
            return;
        }
        thread::sleep(RESTORE_PAUSE);
    }
}

/// The settings that this process could not restore, and the page that keeps them.
pub fn unrestored(journal: &KnobJournal) -> Option<(PathBuf, Vec<String>)> {
    let (path, entries) = journal.own().ok()??;
    Some((path, entries.into_iter().map(|entry| entry.setting).collect()))
}

fn recover_page(page: HeldPage, this_boot: &str, root: &HostRoot) -> (Vec<Recovered>, io::Result<()>) {
    if page.owner.boot_id != this_boot {
        return (Vec::new(), page.keep_only(Vec::new()));
    }
    let (mut recovered, mut pending) = (Vec::new(), Vec::new());
    for entry in page.entries.iter().rev() {
        let outcome = restore_at(entry, root);
        let settled = is_settled(&outcome);
        recovered.push(Recovered {
            setting: entry.setting.clone(),
            place: entry.knob.to_string(),
            before: entry.before.clone(),
            ours: entry.ours.clone(),
            outcome,
            kept_in: (!settled).then(|| page.path.clone()),
        });
        if !settled {
            pending.insert(0, entry.clone());
        }
    }
    let written = page.keep_only(pending);
    (recovered, written)
}

const fn is_settled(outcome: &Restoration) -> bool {
    !matches!(outcome, Restoration::Failed { .. })
}

/// Restores one value in its network namespace.
fn restore_at(entry: &JournalRecord, root: &HostRoot) -> Restoration {
    let work = || Ok(restore(entry, root));
    let elsewhere = || match entry.at.find()? {
        Some(namespace) => inside(&namespace, work),
        // The interface and its settings ended with the namespace.
        None if entry.knob.is_of_interface() => {
            Ok(Restoration::Changed { found: "its network namespace has no process any more".into() })
        }
        None => Err(io::Error::new(io::ErrorKind::NotFound, "its network namespace cannot be found")),
    };
    let done = entry.at.is_here().and_then(|here| if here { work() } else { elsewhere() });
    done.unwrap_or_else(|error| Restoration::Failed { reason: explain(&error) })
}

/// Restores one value in the calling thread's network namespace, and reads it back.
pub(super) fn restore(entry: &JournalRecord, root: &HostRoot) -> Restoration {
    let tried = || -> io::Result<Restoration> {
        let is_it = || entry.at.has_interface_of(&entry.knob);
        let found = match is_it().and_then(|is_it| is_it.then(|| entry.knob.read(root)).transpose()) {
            // The settings ended with the interface.
            Err(error) if entry.knob.is_of_interface() && Errno::from_io_error(&error) == Some(Errno::NODEV) => {
                return Ok(Restoration::Changed { found: explain(&error) });
            }
            Ok(None) => return Ok(Restoration::Changed { found: "another interface has its name".into() }),
            found => found?.unwrap_or_default(),
        };
        if found == entry.before {
            return Ok(Restoration::Restored);
        }
        if found != entry.ours {
            return Ok(Restoration::Changed { found });
        }
        entry.knob.set(root, &entry.before)?;
        let now = entry.knob.read(root)?;
        if now == entry.before {
            return Ok(Restoration::Restored);
        }
        Ok(Restoration::Failed { reason: format!("it reads `{now}` after `{}` was written", entry.before) })
    };
    tried().unwrap_or_else(|error| Restoration::Failed { reason: explain(&error) })
}
