//! Putting values back: only where the current one is still ours.

use std::fs;
use std::io;
use std::path::PathBuf;

use latlab_sys::errno::explain;
use rustix::io::Errno;

use super::journal::{HeldPage, JournalRecord, KnobJournal, UnclaimedPage};
use super::lab;
use super::owner::boot_id;
use super::root::HostRoot;
use crate::facts::Restoration;

/// What became of one value that a latlab had left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// As it was typed.
    pub setting: String,
    /// Where exactly.
    pub place: String,
    /// What stood there before.
    pub before: String,
    /// What that latlab had set.
    pub ours: String,
    /// What became of it.
    pub outcome: Restoration,
    /// The page that keeps it, where it is still to be put back.
    pub kept_in: Option<PathBuf>,
}

/// A page of the journal that could not be read or written.
#[derive(Debug)]
pub struct Unrecovered {
    /// The page, or the journal.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Puts back what dead latlabs have left behind, in reverse order of setting; the living are left alone. What a
/// reboot has undone is forgotten.
pub fn heal(journal: &KnobJournal, root: &HostRoot) -> (Vec<Recovered>, Vec<Unrecovered>) {
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
    let (mut healed, mut unhealed) = (Vec::new(), Vec::new());
    for page in pages {
        match page {
            Ok(page) => {
                let path = page.path.clone();
                let (mut done, written) = turn_back(page, &this_boot, root);
                healed.append(&mut done);
                unhealed.extend(written.err().map(|source| Unrecovered { path, source }));
            }
            Err(UnclaimedPage::Living(..)) => {}
            Err(UnclaimedPage::Unreadable(path, source)) => unhealed.push(Unrecovered { path, source }),
        }
    }
    (healed, unhealed)
}

/// Puts back what this very process has journalled, from whatever thread: for when it must end at once.
pub fn restore_own(journal: &KnobJournal, root: &HostRoot) {
    let Ok(Some((path, entries))) = journal.own() else { return };
    let outcomes: Vec<Restoration> = entries.iter().rev().map(|entry| put_back(entry, root)).collect();
    // What failed stays in the journal for the next latlab, which tells of it.
    if outcomes.iter().all(is_settled) {
        let _ = fs::remove_file(path);
    }
}

/// The values that this process could not put back, and the page that keeps them.
pub fn left_behind(journal: &KnobJournal) -> Option<(PathBuf, Vec<String>)> {
    let (path, entries) = journal.own().ok()??;
    Some((path, entries.into_iter().map(|entry| entry.setting).collect()))
}

fn turn_back(page: HeldPage, this_boot: &str, root: &HostRoot) -> (Vec<Recovered>, io::Result<()>) {
    if page.owner.boot_id != this_boot {
        return (Vec::new(), page.keep_only(Vec::new()));
    }
    let (mut healed, mut pending) = (Vec::new(), Vec::new());
    for entry in page.entries.iter().rev() {
        let outcome = put_back(entry, root);
        let settled = is_settled(&outcome);
        healed.push(Recovered {
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
    (healed, written)
}

const fn is_settled(outcome: &Restoration) -> bool {
    !matches!(outcome, Restoration::Failed { .. })
}

fn put_back(entry: &JournalRecord, root: &HostRoot) -> Restoration {
    let work = || Ok(restore(entry, root));
    let there = || match entry.at.find()? {
        Some(place) => lab::inside(&place, work),
        // An interface goes with its namespace, and so does what was set on it.
        None if entry.knob.is_of_an_interface() => {
            Ok(Restoration::Changed { found: "nobody lives in its network namespace any more".into() })
        }
        None => Err(io::Error::new(io::ErrorKind::NotFound, "its network namespace cannot be found")),
    };
    let done = entry.at.is_here().and_then(|here| if here { work() } else { there() });
    done.unwrap_or_else(|error| Restoration::Failed { reason: explain(&error) })
}

/// Puts one value back in the calling thread's network namespace, and reads it back.
pub(super) fn restore(entry: &JournalRecord, root: &HostRoot) -> Restoration {
    let tried = || -> io::Result<Restoration> {
        let is_it = || entry.at.has_interface_of(&entry.knob);
        let found = match is_it().and_then(|is_it| is_it.then(|| entry.knob.read(root)).transpose()) {
            // With the interface went what was set on it.
            Err(error) if entry.knob.is_of_an_interface() && Errno::from_io_error(&error) == Some(Errno::NODEV) => {
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
