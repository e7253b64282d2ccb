//! Holds settings during a run: finds, journals, sets and reads back the knobs, and restores them in reverse order.

use std::io;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::change::{KnobChange, find_changes};
use super::journal::{HeldPage, JournalRecord, KnobJournal, LockedJournal, UnclaimedPage};
use super::knob::Knob;
use super::recover::{exclusive_restoring, restore};
use crate::facts::{Restoration, SettingFacts};
use crate::host::error::KnobError;
use crate::host::namespaces::{PathInterfaces, within};
use crate::host::root::HostRoot;
use crate::plan::{SettingSpec, Side};

/// Settings that hold as long as this value. It stays on its thread, to which timer slack belongs.
#[derive(Debug)]
pub struct HostGuard {
    root: HostRoot,
    changes: Vec<KnobChange>,
    page: Option<HeldPage>,
    /// Whether both ends of the path are on this host.
    one_host: bool,
}

impl HostGuard {
    pub fn none() -> HostGuard {
        HostGuard { root: HostRoot::live(), changes: Vec::new(), page: None, one_host: false }
    }

    /// Sets `settings` at the ends of `path`, with the knobs under `root`.
    ///
    /// All knobs are found and read before the first is set, and values that will outlive this process are journalled
    /// before that. If a knob refuses, those before it are restored.
    ///
    /// # Errors
    /// A knob is absent, held by another latlab, or refuses; or the journal cannot be written.
    pub fn hold(
        settings: &[SettingSpec],
        path: &PathInterfaces,
        root: HostRoot,
        journal: Option<&KnobJournal>,
    ) -> Result<HostGuard, KnobError> {
        let mut guard = HostGuard::find(settings, path, root)?;
        guard.apply(journal)?;
        Ok(guard)
    }

    /// Finds and reads the knobs of `settings`, without changing them.
    ///
    /// # Errors
    /// A knob is absent or cannot be read.
    pub fn find(settings: &[SettingSpec], path: &PathInterfaces, root: HostRoot) -> Result<HostGuard, KnobError> {
        let mut guard = HostGuard { root, changes: Vec::new(), page: None, one_host: path.one_host };
        // The agent sets those of another host.
        for spec in settings.iter().filter(|spec| path.one_host || spec.ends(false).is_local()) {
            for change in find_changes(spec, path, &guard.root)? {
                guard.refuse_conflict(&change)?;
                guard.changes.push(change);
            }
        }
        Ok(guard)
    }

    /// Refuses a file that this process may not write.
    pub fn expect_writable(&self) -> Result<(), KnobError> {
        let mut files = self.changes.iter().filter_map(|change| Some((change, change.knob.file()?)));
        files.try_for_each(|(change, file)| {
            let (setting, place) = (change.setting.clone(), change.knob.to_string());
            let refused = |source: Errno| KnobError::Refused { setting, place, source: source.into() };
            access(self.root.path(&file), Access::WRITE_OK).map_err(refused)
        })
    }

    /// Refuses a second change of one knob: of an interface that is meant as that of the path and also named, or of a
    /// feature that is set alone and in a group. Each end has a timer slack of its own, since each has a thread.
    fn refuse_conflict(&self, change: &KnobChange) -> Result<(), KnobError> {
        let entry = change.as_entry();
        let conflict = self.changes.iter().find(|other| other.knob != Knob::TimerSlack && other.overlaps(&entry));
        conflict.map_or(Ok(()), |other| {
            let (setting, place) = (change.setting.clone(), other.knob.to_string());
            Err(KnobError::Twice { setting, place, before: other.setting.clone() })
        })
    }

    /// Sets the knobs that were found; values that will outlive this process are journalled before. After an error,
    /// dropping the guard restores what was set.
    ///
    /// # Errors
    /// A knob is held by another latlab, or refuses; or the journal cannot be written.
    pub fn apply(&mut self, journal: Option<&KnobJournal>) -> Result<(), KnobError> {
        self.journal(journal)?;
        for number in 0..self.changes.len() {
            if !(self.one_host && self.is_slack_of(number, Side::Local)) {
                self.set(number)?;
            }
        }
        Ok(())
    }

    /// Gives this thread its own timer slack, now that the reflector process has started and inherited the peer's from it.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn reflector_started(&mut self) -> Result<(), KnobError> {
        for number in 0..self.changes.len() {
            if self.is_slack_of(number, Side::Peer) {
                self.restore_one(number);
            } else if self.is_slack_of(number, Side::Local) && self.changes[number].read_back.is_none() {
                self.set(number)?;
            }
        }
        Ok(())
    }

    /// The settings, and how those that were restored were restored.
    pub fn facts(&self) -> Vec<SettingFacts> {
        let mut facts: Vec<SettingFacts> = Vec::new();
        for change in &self.changes {
            let fact = change.facts(&self.root);
            match facts.iter_mut().find(|known| are_alike(known, &fact)) {
                Some(known) => known.places += 1,
                None => facts.push(fact),
            }
        }
        facts
    }

    /// Restores what is not restored yet, the last change first. Values that cannot be restored stay in the journal.
    pub fn restore(&mut self) -> Vec<SettingFacts> {
        for number in (0..self.changes.len()).rev() {
            self.restore_one(number);
        }
        if let Some(page) = self.page.take() {
            let failed = |change: &&KnobChange| matches!(change.ended, Some(Restoration::Failed { .. }));
            let pending: Vec<JournalRecord> =
                self.changes.iter().filter(failed).filter_map(KnobChange::entry).collect();
            // If it cannot be written, the next latlab finds the values restored.
            let _ = page.keep_only(pending);
        }
        self.facts()
    }

    /// Whether one of the changes would outlive this process.
    pub(crate) fn outlives_process(&self) -> bool {
        self.changes.iter().any(KnobChange::outlives_process)
    }

    fn is_slack_of(&self, number: usize, side: Side) -> bool {
        self.changes[number].knob == Knob::TimerSlack && self.changes[number].at == side
    }

    /// Journals the values that will be changed and would outlive this process.
    ///
    /// They were read without the lock of the journal, and may have been those of another latlab, restored since: they are
    /// read again under the lock.
    fn journal(&mut self, journal: Option<&KnobJournal>) -> Result<(), KnobError> {
        let lasting: Vec<usize> =
            (0..self.changes.len()).filter(|number| self.changes[*number].outlives_process()).collect();
        if lasting.is_empty() {
            return Ok(());
        }
        let nothing_to_do = lasting.iter().all(|number| self.changes[*number].is_already_there());
        let no_home = || KnobError::Journal {
            path: "~/.local/state/latlab/journal".into(),
            source: io::Error::other("neither LATLAB_STATE_DIR, XDG_STATE_HOME nor HOME is set"),
        };
        let journal = match journal {
            None if nothing_to_do => return Ok(()),
            journal => journal.ok_or_else(no_home)?,
        };
        let exclusive = match if nothing_to_do { journal.lock() } else { journal.create_and_lock() } {
            // No latlab has changed a value on this host.
            Err(error) if nothing_to_do && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            locked => locked.map_err(journal_error(journal))?,
        };
        self.refuse_held(&exclusive, journal)?;
        for number in lasting {
            let (root, change) = (&self.root, &mut self.changes[number]);
            let now = within(change.namespace.as_ref(), || change.knob.read(root));
            change.before = now.map_err(|source| change.refused(source))?;
        }
        let entries: Vec<JournalRecord> = self.changes.iter().filter_map(KnobChange::entry).collect();
        if !entries.is_empty() {
            self.page = Some(exclusive.begin(&self.root, entries).map_err(journal_error(journal))?);
        }
        Ok(())
    }

    /// Refuses knobs of other latlabs: of two, each would restore what the other has set.
    fn refuse_held(&self, locked: &LockedJournal<'_>, journal: &KnobJournal) -> Result<(), KnobError> {
        for page in locked.pages(&self.root).map_err(journal_error(journal))? {
            let (owner, theirs, left_in) = match page {
                Ok(dead) if dead.owner.is_of_this_boot() => (dead.owner, dead.entries, Some(dead.path)),
                Err(UnclaimedPage::Living(owner, theirs)) => (owner, theirs, None),
                Ok(_) | Err(UnclaimedPage::Unreadable(..)) => continue,
            };
            let taken =
                |change: &&KnobChange| change.outlives_process() && theirs.iter().any(|entry| change.overlaps(entry));
            let Some(change) = self.changes.iter().find(taken) else { continue };
            let (setting, place, pid) = (change.setting.clone(), change.knob.to_string(), owner.pid);
            let of_the_same_run = owner.is_ancestor();
            return Err(match left_in {
                Some(page) => KnobError::Left { setting, place, pid, page },
                None => KnobError::Taken { setting, place, pid, of_the_same_run },
            });
        }
        Ok(())
    }

    fn set(&mut self, number: usize) -> Result<(), KnobError> {
        let (root, change) = (&self.root, &mut self.changes[number]);
        if change.is_already_there() {
            change.read_back = Some(change.before.clone());
            return Ok(());
        }
        let (knob, wanted) = (&change.knob, &change.wanted);
        let held = match within(change.namespace.as_ref(), || knob.set(root, wanted)) {
            Ok(held) => held,
            Err(source) => {
                // A refused write may have changed the value.
                let now = within(change.namespace.as_ref(), || knob.read(root)).unwrap_or_else(|_| wanted.clone());
                change.read_back = Some(now).filter(|now| *now != change.before);
                return Err(change.refused(source));
            }
        };
        // Set, whatever is read back: it must be restored.
        change.read_back = Some(wanted.clone());
        let seen = within(change.namespace.as_ref(), || Ok((knob.read(root)?, knob.is_in_force(wanted)?)));
        let (found, in_force) = seen.map_err(|source| change.refused(source))?;
        let agreed = knob.agrees(wanted, &found);
        (change.held, change.read_back) = (held, Some(found.clone()));
        if agreed && in_force {
            return Ok(());
        }
        let found = if agreed { "as asked for, but not in force".into() } else { found };
        let (setting, place) = (change.setting.clone(), change.knob.to_string());
        Err(KnobError::Differs { setting, place, wanted: change.wanted.clone(), found })
    }

    fn restore_one(&mut self, number: usize) {
        let (root, change) = (&self.root, &mut self.changes[number]);
        let Some(ours) = change.read_back.clone().filter(|_| change.ended.is_none()) else { return };
        change.held = None;
        // A value that was there before needs nothing; a request for a wake-up latency ended with its file, `held`.
        if change.is_already_there() || change.knob == Knob::CpuDmaLatency {
            change.ended = Some(Restoration::Restored);
            return;
        }
        let entry = JournalRecord { ours, ..change.as_entry() };
        let _exclusive = exclusive_restoring();
        let outcome = within(change.namespace.as_ref(), || Ok(restore(&entry, root)));
        change.ended = Some(outcome.unwrap_or_else(|error| Restoration::Failed { reason: error.to_string() }));
    }
}

impl Drop for HostGuard {
    fn drop(&mut self) {
        self.restore();
    }
}

fn journal_error(journal: &KnobJournal) -> impl Fn(io::Error) -> KnobError {
    |source| KnobError::Journal { path: journal.directory().to_owned(), source }
}

fn are_alike(one: &SettingFacts, other: &SettingFacts) -> bool {
    (&one.setting, &one.at, &one.before, &one.set, &one.read_back, &one.ended)
        == (&other.setting, &other.at, &other.before, &other.set, &other.read_back, &other.ended)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
