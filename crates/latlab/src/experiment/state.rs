//! The progress of an experiment: what the entries of its journal add up to.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::JournalEntry;
use crate::analysis::comparison::Look;
use crate::facts::{ExcludedCondition, RecipeFacts, RunKey, RunOutcome, RunState};
use crate::plan::{ExperimentCondition, Factors};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentState {
    pub id: String,
    /// The absolute path of its file, or `recipe:…`.
    pub source: String,
    pub recipe: Option<RecipeFacts>,
    /// Its runs, in the order in which they began.
    pub runs: Vec<RunState>,
    /// Conditions that were given up.
    pub dropped: Vec<ExcludedCondition>,
    pub blocks: BTreeMap<u32, BlockState>,
    pub narrow_enough: bool,
    /// Whether its format is one in which a randomized order has rounds.
    pub has_rounds: bool,
    /// Nothing is left to do.
    pub finished: bool,
    /// Whether runs were left when its budget was used up.
    pub over_budget: bool,
    /// Runs that were over when its gates were judged last while runs were left.
    looked_at: u64,
    /// How often it was continued with a changed file.
    pub changes: u32,
    /// Runs that were over when it was finished, each time that further ones were.
    ends: Vec<u64>,
    /// The looks that its file declared, if any, when it was finished first; `None` if the journal does not say it.
    looks: Option<Option<u32>>,
    /// Its number among the experiments of its store; 0 if the journal has none.
    pub number: u64,
    /// BLAKE3 of its file, after a change of the previous file before it; empty if the journal has none.
    files: Vec<String>,
    done: BTreeSet<RunKey>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// The boot in which its last entry was written.
    pub boot_id: Option<String>,
    pub ended: bool,
}

impl ExperimentState {
    /// An experiment that has not begun, without a directory.
    pub(crate) fn new(id: String) -> ExperimentState {
        ExperimentState { id, ..ExperimentState::default() }
    }

    pub(super) fn of(entries: Vec<JournalEntry>) -> ExperimentState {
        let mut state = ExperimentState::default();
        entries.into_iter().for_each(|entry| state.apply(entry));
        state
    }

    pub(super) fn apply(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Begun { format, experiment, source, recipe, number, file_blake3, .. } => {
                self.has_rounds = format.has_rounds();
                (self.id, self.source, self.recipe) = (experiment, source, recipe);
                self.number = number.unwrap_or_default();
                self.files = file_blake3.into_iter().collect();
            }
            JournalEntry::Changed { file_blake3, .. } => self.change_file(file_blake3),
            JournalEntry::BlockBegan { block, boot_id } => {
                self.blocks.insert(block, BlockState { boot_id, ended: false });
            }
            JournalEntry::BlockEnded { block, boot_id } => {
                self.blocks.insert(block, BlockState { boot_id, ended: true });
            }
            JournalEntry::RunBegan { key, position } => {
                let (outcome, recording, reason) = (None, None, None);
                self.runs.push(RunState { key, position, outcome, recording, reason, complete: false });
            }
            JournalEntry::RunEnded { outcome, recording, reason, .. } => self.end_run(outcome, recording, reason),
            JournalEntry::ConditionDropped { factors, reason } => {
                self.dropped.push(ExcludedCondition { factors, reason });
            }
            JournalEntry::NarrowEnough { .. } => self.narrow_enough = true,
            JournalEntry::Looked { looks } => {
                self.looked_at = self.runs_done();
                self.end(Some(Some(looks)));
            }
            JournalEntry::Finished { looks, over_budget } => {
                (self.over_budget, self.finished) = (over_budget, true);
                self.end(looks);
            }
            JournalEntry::Opened { .. } | JournalEntry::Unknown => {}
        }
    }

    /// The verdicts were looked at, as one of so many looks.
    fn end(&mut self, looks: Option<Option<u32>>) {
        self.looks = self.looks.or(looks);
        if self.ends.last() < Some(&self.runs_done()) {
            self.ends.push(self.runs_done());
        }
    }

    /// Whether all its gates were decided, and no run was made since then.
    pub fn is_decided_early(&self) -> bool {
        self.finished && self.is_looked_at()
    }

    /// Whether its gates were judged after the last run, while runs were left.
    pub(super) fn is_looked_at(&self) -> bool {
        self.looked_at > 0 && self.looked_at == self.runs_done()
    }

    /// The look at its verdicts as they are now. Each end that was followed by further runs is one. The file as it is
    /// declares so many; what the journal says of the first end counts instead.
    pub fn look(&self, in_file: Option<u32>) -> Look {
        let declared = self.looks.unwrap_or(in_file);
        let done = self.runs_done();
        let ends: Vec<u64> = self.ends.iter().copied().filter(|end| *end < done).chain([done]).collect();
        let added = |(index, end): (usize, &u64)| end - index.checked_sub(1).map_or(0, |before| ends[before]);
        let added: Vec<u64> = ends.iter().enumerate().map(added).collect();
        let [least, most] = [added.iter().min(), added.iter().max()].map(|it| it.copied().unwrap_or_default());
        Look { number: ends.len() as u32, declared, balanced: 10 * most <= 11 * least }
    }

    fn change_file(&mut self, blake3: Option<String>) {
        self.changes += 1;
        self.files = blake3.map_or_else(Vec::new, |new| self.files.pop().into_iter().chain([new]).collect());
        (self.narrow_enough, self.finished) = (false, false);
        self.dropped.clear();
        // The changed file may have more runs in blocks that were over.
        self.blocks.values_mut().for_each(|block| block.ended = false);
    }

    /// Runs never overlap: the run that ends is the one that began last.
    fn end_run(&mut self, outcome: RunOutcome, recording: Option<String>, reason: Option<String>) {
        let Some(run) = self.runs.last_mut().filter(|run| run.outcome.is_none()) else { return };
        (run.outcome, run.recording, run.reason) = (Some(outcome), recording, reason);
        run.complete = matches!(outcome, RunOutcome::Completed | RunOutcome::Untrusted);
        if outcome.is_final() {
            self.done.insert(run.key.clone());
        }
    }

    /// Whether the journal names the file with this hash; true if it names none. After a change the previous file is
    /// accepted as well: the process may have died between the journal entry and the replacement of the file.
    pub fn names_file(&self, blake3: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|known| known == blake3)
    }

    /// The run that began and has not ended.
    pub fn unfinished_run(&self) -> Option<&RunState> {
        self.runs.last().filter(|run| run.outcome.is_none())
    }

    /// Whether the run is over for good.
    pub fn is_done(&self, key: &RunKey) -> bool {
        self.done.contains(key)
    }

    /// Whether the condition was given up.
    pub fn is_dropped(&self, factors: &Factors) -> bool {
        self.dropped.iter().any(|dropped| dropped.factors == *factors)
    }

    /// Whether any run of this condition was recorded.
    pub fn has_measured(&self, factors: &Factors) -> bool {
        self.runs.iter().any(|run| run.key.factors == *factors && run.recording.is_some())
    }

    /// Whether the condition may still be dropped: it was not, and no run of it was recorded.
    pub fn is_open(&self, factors: &Factors) -> bool {
        !self.is_dropped(factors) && !self.has_measured(factors)
    }

    /// How many runs are over for good.
    pub fn runs_done(&self) -> u64 {
        self.done.len() as u64
    }

    /// Whether every one of `conditions` that was not given up has a run to be judged, and none has two more than another.
    pub fn is_balanced(&self, conditions: &[ExperimentCondition]) -> bool {
        let open = conditions.iter().filter(|condition| !self.is_dropped(&condition.factors));
        let is_of = |key: &&RunKey, factors: &Factors| !key.warmup && key.factors == *factors;
        let counts = open.map(|one| self.done.iter().filter(|key| is_of(key, &one.factors)).count());
        let counts: Vec<usize> = counts.collect();
        counts.iter().min().zip(counts.iter().max()).is_some_and(|(least, most)| *least > 0 && most - least < 2)
    }

    pub fn runs_that(&self, outcome: RunOutcome) -> impl Iterator<Item = &RunState> {
        self.runs.iter().filter(move |run| run.outcome == Some(outcome))
    }

    /// The same without the runs whose recordings are `gone`.
    pub(super) fn without(&self, gone: &BTreeSet<String>) -> ExperimentState {
        let mut state = self.clone();
        state.runs.retain(|run| run.recording.as_ref().is_none_or(|name| !gone.contains(name)));
        state
    }

    /// Runs that are judged, each with the name of its recording, in the order in which they began.
    pub fn judged(&self) -> impl Iterator<Item = (&RunState, &str)> {
        self.runs.iter().filter_map(|run| Some((run, run.judged()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::RunPosition;

    /// A state after `runs` more runs.
    fn measured(mut state: ExperimentState, runs: u32) -> ExperimentState {
        for _ in 0..runs {
            let repetition = 1 + state.runs_done() as u32;
            let key = RunKey { factors: Factors::new(), block: 1, repetition, warmup: false };
            let position = RunPosition { position: repetition, condition: 1 };
            state.apply(JournalEntry::RunBegan { key, position });
            let recording = Some("r".to_owned());
            let outcome = RunOutcome::Completed;
            state.apply(JournalEntry::RunEnded { block: 1, position: repetition, outcome, recording, reason: None });
        }
        state
    }

    fn finished(state: ExperimentState) -> ExperimentState {
        finished_with(state, Some(Some(4)))
    }

    fn finished_with(mut state: ExperimentState, looks: Option<Option<u32>>) -> ExperimentState {
        state.apply(JournalEntry::Finished { looks, over_budget: false });
        state
    }

    #[test]
    fn an_end_that_was_followed_by_further_runs_is_a_look() {
        let look = |state: &ExperimentState| {
            let Look { number, balanced, .. } = state.look(None);
            (number, balanced)
        };
        let once = finished(measured(ExperimentState::default(), 10));
        assert_eq!(look(&once), (1, true));
        assert_eq!(look(&finished(once.clone())), (1, true), "finished again without further runs");
        let twice = measured(once, 10);
        assert_eq!(look(&twice), (2, true), "even before its end");
        let thrice = finished(measured(finished(twice), 3));
        assert_eq!(look(&thrice), (3, false));
    }

    #[test]
    fn the_looks_that_count_were_declared_at_the_first_end() {
        let declared = |first: Option<Option<u32>>| {
            let once = finished_with(measured(ExperimentState::default(), 10), first);
            finished_with(measured(once, 10), Some(Some(7))).look(Some(9)).declared
        };
        assert_eq!((declared(Some(Some(4))), declared(Some(None))), (Some(4), None));
        assert_eq!(declared(None), Some(7), "of an older journal the first that is known");
        assert_eq!(finished_with(ExperimentState::default(), None).look(Some(9)).declared, Some(9), "else the file's");
    }
}
