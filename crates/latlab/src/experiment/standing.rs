//! How far an experiment is: what the lines of its journal add up to.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{JournalEntry, RecipeFacts, RunKey, RunOutcome, RunPosition};
use crate::plan::Factors;

/// How far an experiment is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentState {
    /// Its id.
    pub id: String,
    /// The absolute path of its file, or `recipe:…`.
    pub source: String,
    /// The recipe that it is, if it is one.
    pub recipe: Option<RecipeFacts>,
    /// Its runs, in the order in which they began.
    pub runs: Vec<RunState>,
    /// Conditions that this host cannot do, with the reason.
    pub dropped: Vec<(Factors, String)>,
    /// Its blocks so far.
    pub blocks: BTreeMap<u32, BlockState>,
    /// The stop rule held.
    pub narrow_enough: bool,
    /// Nothing is left to do.
    pub finished: bool,
    /// How often it went on with another file.
    pub changes: u32,
    /// Its place among the experiments of its store; 0 where that was not written down.
    pub number: u64,
    /// BLAKE3 of its files, that of now last; empty where it was not written down.
    files: Vec<String>,
    done: BTreeSet<RunKey>,
}

/// One run of an experiment, taken once.
#[derive(Clone, Debug, PartialEq)]
pub struct RunState {
    /// Which.
    pub key: RunKey,
    /// Where among the others.
    pub place: RunPosition,
    /// How it ended; none where it has not, or nobody knows.
    pub outcome: Option<RunOutcome>,
    /// The name of its recording in `runs/`.
    pub recording: Option<String>,
    /// Why it did not end by its own rule.
    pub reason: Option<String>,
    /// Its recording was not cut short, whatever was answered.
    pub complete: bool,
}

/// One block of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// The boot in which something of it was last done.
    pub boot_id: Option<String>,
    /// All of its runs have ended.
    pub ended: bool,
}

impl RunState {
    /// Whether a comparison takes it: one without an answer too, since loss is a result.
    pub fn is_judged(&self) -> bool {
        self.outcome.is_some_and(RunOutcome::is_final) && self.complete && !self.key.warmup && self.recording.is_some()
    }

    /// Whether it sent all that it should, and nothing was answered.
    pub fn is_unanswered(&self) -> bool {
        self.outcome == Some(RunOutcome::Failed) && self.complete
    }
}

impl ExperimentState {
    /// Of the lines of a journal.
    pub fn of(events: Vec<JournalEntry>) -> ExperimentState {
        let mut standing = ExperimentState::default();
        events.into_iter().for_each(|event| standing.take(event));
        standing
    }

    /// What one more line changes.
    pub fn take(&mut self, event: JournalEntry) {
        match event {
            JournalEntry::Begun { experiment, source, recipe, number, file_blake3, .. } => {
                (self.id, self.source, self.recipe) = (experiment, source, recipe);
                self.number = number.unwrap_or_default();
                self.files = file_blake3.into_iter().collect();
            }
            JournalEntry::Changed { file_blake3, .. } => {
                self.changes += 1;
                self.files =
                    file_blake3.map_or_else(Vec::new, |new| self.files.pop().into_iter().chain([new]).collect());
                (self.narrow_enough, self.finished) = (false, false);
                self.dropped.clear();
                // The other file may have more runs for blocks that were over.
                self.blocks.values_mut().for_each(|block| block.ended = false);
            }
            JournalEntry::BlockBegan { block, boot_id } => {
                self.blocks.insert(block, BlockState { boot_id, ended: false });
            }
            JournalEntry::BlockEnded { block, boot_id } => {
                self.blocks.insert(block, BlockState { boot_id, ended: true });
            }
            JournalEntry::RunBegan { key, place } => {
                let (outcome, recording, reason) = (None, None, None);
                self.runs.push(RunState { key, place, outcome, recording, reason, complete: false });
            }
            JournalEntry::RunEnded { outcome, recording, reason, .. } => self.end_run(outcome, recording, reason),
            JournalEntry::ConditionDropped { factors, reason } => self.dropped.push((factors, reason)),
            JournalEntry::NarrowEnough { .. } => self.narrow_enough = true,
            JournalEntry::Finished => self.finished = true,
            JournalEntry::Opened { .. } | JournalEntry::Unknown => {}
        }
    }

    /// One run goes at a time, so that what ends is what began last.
    fn end_run(&mut self, outcome: RunOutcome, recording: Option<String>, reason: Option<String>) {
        let Some(run) = self.runs.last_mut().filter(|run| run.outcome.is_none()) else { return };
        (run.outcome, run.recording, run.reason) = (Some(outcome), recording, reason);
        run.complete = matches!(outcome, RunOutcome::Completed | RunOutcome::Untrusted);
        if outcome.is_final() {
            self.done.insert(run.key.clone());
        }
    }

    /// Whether a file with this hash is the one that the journal speaks of; true where it does not say. The one before
    /// it is too: who was killed while he changed it has noted the change, and not yet made it.
    pub fn speaks_of_file(&self, blake3: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|known| known == blake3)
    }

    /// The run that began and has no end.
    pub fn cut_off(&self) -> Option<&RunState> {
        self.runs.last().filter(|run| run.outcome.is_none())
    }

    /// Whether the run is over for good.
    pub fn is_done(&self, key: &RunKey) -> bool {
        self.done.contains(key)
    }

    /// Whether the condition was given up.
    pub fn is_dropped(&self, factors: &Factors) -> bool {
        self.dropped.iter().any(|(dropped, _)| dropped == factors)
    }

    /// Whether a run of this condition has ever been measured.
    pub fn has_measured(&self, factors: &Factors) -> bool {
        self.runs.iter().any(|run| run.key.factors == *factors && run.recording.is_some())
    }

    /// How many runs are over for good.
    pub fn runs_done(&self) -> u64 {
        self.done.len() as u64
    }

    /// Runs with this outcome.
    pub fn runs_that(&self, outcome: RunOutcome) -> impl Iterator<Item = &RunState> {
        self.runs.iter().filter(move |run| run.outcome == Some(outcome))
    }
}
