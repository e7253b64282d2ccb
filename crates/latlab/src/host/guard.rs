//! Holds settings for the time of a run: found, journalled, set, read back; put back in reverse order.

use super::ground::{PathInterfaces, within};
use super::journal::{HeldPage, JournalRecord, KnobJournal, LockedJournal, UnclaimedPage};
use super::knob::Knob;
use super::knob_refusal::KnobError;
use super::restoring::restore;
use super::root::HostRoot;
use super::turn::{KnobChange, turns};
use crate::facts::{Restoration, SettingFacts};
use crate::plan::{SettingSpec, Side};

/// What is set on this host as long as this value lives. Stays on its thread: timer slack belongs to it.
#[derive(Debug)]
pub struct HostGuard {
    root: HostRoot,
    turns: Vec<KnobChange>,
    page: Option<HeldPage>,
    /// Whether both ends of the path are on this host.
    one_host: bool,
}

impl HostGuard {
    /// Nothing is set.
    pub fn none() -> HostGuard {
        HostGuard { root: HostRoot::live(), turns: Vec::new(), page: None, one_host: false }
    }

    /// Sets `settings` at the ends that stand on `ground`, with the knobs under `root`.
    ///
    /// All knobs are found and read before the first is turned, and what will outlive this process is on disk
    /// before that. Where one refuses, those before it are put back.
    ///
    /// # Errors
    /// A knob is absent, held by another latlab, or refuses; nothing can be journalled.
    pub fn hold(
        settings: &[SettingSpec],
        ground: &PathInterfaces,
        root: HostRoot,
        journal: Option<&KnobJournal>,
    ) -> Result<HostGuard, KnobError> {
        let mut guard = HostGuard::find(settings, ground, root)?;
        guard.turn(journal)?;
        Ok(guard)
    }

    /// Finds and reads the knobs of `settings`, and changes nothing yet.
    ///
    /// # Errors
    /// A knob is absent or cannot be read.
    pub fn find(settings: &[SettingSpec], ground: &PathInterfaces, root: HostRoot) -> Result<HostGuard, KnobError> {
        let mut guard = HostGuard { root, turns: Vec::new(), page: None, one_host: ground.one_host };
        // What is asked of a host of the peer's own is for the agent there.
        for spec in settings.iter().filter(|spec| ground.one_host || spec.ends(false).is_local()) {
            for turn in turns(spec, ground, &guard.root)? {
                guard.refuse_twice(&turn)?;
                guard.turns.push(turn);
            }
        }
        Ok(guard)
    }

    /// Two settings can lead to one knob: by the interface of the path and its name, by a group of features and one of
    /// them. Slack is that of a thread, of which each end has one.
    fn refuse_twice(&self, turn: &KnobChange) -> Result<(), KnobError> {
        let entry = turn.as_entry();
        let twin = self.turns.iter().find(|other| other.knob != Knob::TimerSlack && other.meets(&entry));
        twin.map_or(Ok(()), |other| {
            // What they have in common has the name of the one that was first.
            let (setting, place) = (turn.setting.clone(), other.knob.to_string());
            Err(KnobError::Twice { setting, place, before: other.setting.clone() })
        })
    }

    /// Turns the knobs that were found; what will outlive this process is on disk before that. Whoever drops the
    /// guard after a failure puts back what was set.
    ///
    /// # Errors
    /// A knob is held by another latlab, or refuses; nothing can be journalled.
    pub fn turn(&mut self, journal: Option<&KnobJournal>) -> Result<(), KnobError> {
        self.journal(journal)?;
        for number in 0..self.turns.len() {
            if !(self.one_host && self.is_slack_of(number, Side::Local)) {
                self.set(number)?;
            }
        }
        Ok(())
    }

    /// The reflector process has started and has the slack that this thread had: from now on this thread has its
    /// own.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn reflector_started(&mut self) -> Result<(), KnobError> {
        for number in 0..self.turns.len() {
            if self.is_slack_of(number, Side::Peer) {
                self.put_back(number);
            } else if self.is_slack_of(number, Side::Local) && self.turns[number].read_back.is_none() {
                self.set(number)?;
            }
        }
        Ok(())
    }

    /// What was set, and how it was put back where it was.
    pub fn facts(&self) -> Vec<SettingFacts> {
        let mut facts: Vec<SettingFacts> = Vec::new();
        for turn in &self.turns {
            let fact = turn.facts(&self.root);
            match facts.iter_mut().find(|known| alike(known, &fact)) {
                Some(known) => known.places += 1,
                None => facts.push(fact),
            }
        }
        facts
    }

    /// Puts everything back that is not back yet, the last first, and says what came of it. What fails stays in the
    /// journal.
    pub fn restore(&mut self) -> Vec<SettingFacts> {
        for number in (0..self.turns.len()).rev() {
            self.put_back(number);
        }
        if let Some(page) = self.page.take() {
            let failed = |turn: &&KnobChange| matches!(turn.ended, Some(Restoration::Failed { .. }));
            let pending: Vec<JournalRecord> = self.turns.iter().filter(failed).filter_map(KnobChange::entry).collect();
            // A page that cannot be written stays as it is, and the next latlab finds nothing to do for it.
            let _ = page.keep_only(pending);
        }
        self.facts()
    }

    fn is_slack_of(&self, number: usize, side: Side) -> bool {
        self.turns[number].knob == Knob::TimerSlack && self.turns[number].at == side
    }

    /// Writes down what will be changed and would outlive this process.
    ///
    /// What was found without the journal's lock may have been another latlab's value, put back since: it is read
    /// again, now that nobody else can be at work on it.
    fn journal(&mut self, journal: Option<&KnobJournal>) -> Result<(), KnobError> {
        let lasting: Vec<usize> = (0..self.turns.len()).filter(|number| self.turns[*number].lasts()).collect();
        if lasting.is_empty() {
            return Ok(());
        }
        let nothing_to_do = lasting.iter().all(|number| self.turns[*number].is_already_there());
        let no_home = || KnobError::Journal {
            path: "~/.local/state/latlab/journal".into(),
            source: std::io::Error::other("neither LATLAB_STATE_DIR, XDG_STATE_HOME nor HOME is set"),
        };
        let journal = match journal {
            None if nothing_to_do => return Ok(()),
            journal => journal.ok_or_else(no_home)?,
        };
        let exclusive = match if nothing_to_do { journal.lock() } else { journal.open() } {
            // No latlab has ever changed anything here.
            Err(error) if nothing_to_do && error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            locked => locked.map_err(refused_by(journal))?,
        };
        self.refuse_what_others_hold(&exclusive, journal)?;
        for number in lasting {
            let (root, turn) = (&self.root, &mut self.turns[number]);
            let now = within(turn.network.as_ref(), || turn.knob.read(root));
            turn.before = now.map_err(|source| turn.refused(source))?;
        }
        let entries: Vec<JournalRecord> = self.turns.iter().filter_map(KnobChange::entry).collect();
        if !entries.is_empty() {
            self.page = Some(exclusive.begin(&self.root, entries).map_err(refused_by(journal))?);
        }
        Ok(())
    }

    /// Two latlabs that turn one knob would each put back what the other has set.
    fn refuse_what_others_hold(&self, all: &LockedJournal<'_>, journal: &KnobJournal) -> Result<(), KnobError> {
        for page in all.pages(&self.root).map_err(refused_by(journal))? {
            let (owner, theirs, left_in) = match page {
                Ok(dead) if dead.owner.is_of_this_boot() => (dead.owner, dead.entries, Some(dead.path)),
                Err(UnclaimedPage::Living(owner, theirs)) => (owner, theirs, None),
                Ok(_) | Err(UnclaimedPage::Unreadable(..)) => continue,
            };
            let taken = |turn: &&KnobChange| turn.lasts() && theirs.iter().any(|entry| turn.meets(entry));
            let Some(turn) = self.turns.iter().find(taken) else { continue };
            let (setting, place, pid) = (turn.setting.clone(), turn.knob.to_string(), owner.pid);
            let of_the_same_run = owner.is_above_us();
            return Err(match left_in {
                Some(page) => KnobError::Left { setting, place, pid, page },
                None => KnobError::Taken { setting, place, pid, of_the_same_run },
            });
        }
        Ok(())
    }

    fn set(&mut self, number: usize) -> Result<(), KnobError> {
        let (root, turn) = (&self.root, &mut self.turns[number]);
        if turn.is_already_there() {
            turn.read_back = Some(turn.before.clone());
            return Ok(());
        }
        let (knob, wanted) = (&turn.knob, &turn.wanted);
        let held = match within(turn.network.as_ref(), || knob.set(root, wanted)) {
            Ok(held) => held,
            Err(source) => {
                // A write that was refused may have changed something all the same.
                let now = within(turn.network.as_ref(), || knob.read(root)).unwrap_or_else(|_| wanted.clone());
                turn.read_back = Some(now).filter(|now| *now != turn.before);
                return Err(turn.refused(source));
            }
        };
        // Turned, whatever is read back: it must be put back.
        turn.read_back = Some(wanted.clone());
        let seen = within(turn.network.as_ref(), || Ok((knob.read(root)?, knob.is_in_force(wanted)?)));
        let (found, in_force) = seen.map_err(|source| turn.refused(source))?;
        let agreed = knob.agrees(wanted, &found);
        (turn.held, turn.read_back) = (held, Some(found.clone()));
        if agreed && in_force {
            return Ok(());
        }
        let found = if agreed { "as asked for, but not in force".into() } else { found };
        let (setting, place) = (turn.setting.clone(), turn.knob.to_string());
        Err(KnobError::Differs { setting, place, wanted: turn.wanted.clone(), found })
    }

    fn put_back(&mut self, number: usize) {
        let (root, turn) = (&self.root, &mut self.turns[number]);
        let Some(ours) = turn.read_back.clone().filter(|_| turn.ended.is_none()) else { return };
        turn.held = None;
        // What was there already needs nothing; the kernel forgets a wish for short wake-ups with its file.
        if turn.is_already_there() || turn.knob == Knob::CpuDmaLatency {
            turn.ended = Some(Restoration::Restored);
            return;
        }
        let entry = JournalRecord { ours, ..turn.as_entry() };
        let outcome = within(turn.network.as_ref(), || Ok(restore(&entry, root)));
        turn.ended = Some(outcome.unwrap_or_else(|error| Restoration::Failed { reason: error.to_string() }));
    }
}

impl Drop for HostGuard {
    fn drop(&mut self) {
        self.restore();
    }
}

fn refused_by(journal: &KnobJournal) -> impl Fn(std::io::Error) -> KnobError {
    |source| KnobError::Journal { path: journal.directory().to_owned(), source }
}

fn alike(one: &SettingFacts, other: &SettingFacts) -> bool {
    (&one.setting, &one.at, &one.before, &one.set, &one.read_back, &one.ended)
        == (&other.setting, &other.at, &other.before, &other.set, &other.read_back, &other.ended)
}

impl KnobChange {
    fn is_already_there(&self) -> bool {
        self.before == self.wanted && !self.knob.ends_with_its_process()
    }

    /// Whether what is set would outlive this process.
    fn lasts(&self) -> bool {
        let in_a_lab = self.knob.is_of_an_interface() && self.network.is_some();
        !in_a_lab && !self.knob.ends_with_its_process()
    }

    /// What the journal must know of it; none where nothing of it outlives this process.
    fn entry(&self) -> Option<JournalRecord> {
        (self.lasts() && !self.is_already_there()).then(|| self.as_entry())
    }

    fn as_entry(&self) -> JournalRecord {
        JournalRecord {
            setting: self.setting.clone(),
            knob: self.knob.clone(),
            at: self.whereabouts.clone(),
            before: self.before.clone(),
            ours: self.read_back.clone().unwrap_or_else(|| self.wanted.clone()),
        }
    }

    /// Whether somebody's `entry` is about the same knob.
    fn meets(&self, entry: &JournalRecord) -> bool {
        entry.knob.meets(&self.knob) && entry.at.shares_network(&self.whereabouts)
    }

    fn refused(&self, source: std::io::Error) -> KnobError {
        KnobError::Refused { setting: self.setting.clone(), place: self.knob.to_string(), source }
    }

    fn facts(&self, root: &HostRoot) -> SettingFacts {
        SettingFacts {
            setting: self.setting.clone(),
            at: self.at.word().into(),
            place: self.knob.to_string(),
            places: 1,
            root: root.elsewhere().map(|path| path.display().to_string()),
            before: self.before.clone(),
            set: self.wanted.clone(),
            read_back: self.read_back.clone(),
            ended: self.ended.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
