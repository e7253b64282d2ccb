//! The next step of an experiment: a pure function of the experiment and its state.

use super::state::ExperimentState;
use crate::facts::{RunKey, RunPosition};
use crate::plan::{BetweenBlocks, Experiment, RunsRule, ScheduledRun, defaults};
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextStep {
    /// A block begins, after a pause if one was asked for.
    BeginBlock {
        block: u32,
        pause: Option<Nanos>,
    },
    /// This block needs another boot.
    Reboot {
        block: u32,
    },
    Run(DueRun),
    EndBlock {
        block: u32,
    },
    /// After this block the intervals may be narrow enough.
    CheckPrecision {
        block: u32,
    },
    /// Nothing is left to do.
    Finish,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DueRun {
    pub(crate) key: RunKey,
    pub(crate) position: RunPosition,
    pub(crate) condition: usize,
    /// The pause before it is measured, once its hooks are ready; 0 without one.
    pub(crate) settle: Nanos,
}

/// Finds the next step of an experiment. Keeps the order of the current block, so that it is computed once.
#[derive(Debug)]
pub(crate) struct RunScheduler<'a> {
    experiment: &'a Experiment,
    block: u32,
    order: Vec<ScheduledRun>,
}

impl<'a> RunScheduler<'a> {
    pub(crate) fn of(experiment: &'a Experiment) -> RunScheduler<'a> {
        RunScheduler { experiment, block: 0, order: Vec::new() }
    }

    /// The next step in `state`, in the boot with this id.
    pub(crate) fn next(&mut self, state: &ExperimentState, boot_id: Option<&str>) -> NextStep {
        if state.finished {
            return NextStep::Finish;
        }
        let design = &self.experiment.design;
        for block in 1..=design.blocks_at_most() {
            let known = state.blocks.get(&block);
            match known {
                Some(known) if known.ended && self.is_precision_check_due(block, state) => {
                    return NextStep::CheckPrecision { block };
                }
                Some(known) if known.ended => {}
                Some(_) => return self.due(block, state).map_or(NextStep::EndBlock { block }, NextStep::Run),
                None if state.narrow_enough || self.due(block, state).is_none() => return NextStep::Finish,
                None => return self.enter(block, state, boot_id),
            }
        }
        NextStep::Finish
    }

    /// The first run of `block` that is not over.
    fn due(&mut self, block: u32, state: &ExperimentState) -> Option<DueRun> {
        let conditions = &self.experiment.conditions;
        if self.block != block {
            (self.block, self.order) = (block, self.experiment.design.schedule(conditions.len(), block));
        }
        let due_run = |run: &ScheduledRun| {
            let factors = conditions[run.condition].factors.clone();
            let key = RunKey { block, factors, repetition: run.repetition, warmup: run.warmup };
            let position = RunPosition { position: run.position, condition: run.condition as u32 + 1 };
            DueRun { key, position, condition: run.condition, settle: Nanos::ZERO }
        };
        let turns = self.order.iter().map(due_run);
        turns.into_iter().find(|due| !state.is_done(&due.key) && !state.is_dropped(&due.key.factors))
    }

    /// The step into `block`, which has not begun yet.
    pub(crate) fn enter(&self, block: u32, state: &ExperimentState, boot_id: Option<&str>) -> NextStep {
        let before = state.blocks.range(..block).next_back().map(|(_, before)| before);
        match (self.experiment.design.between, before) {
            (BetweenBlocks::Pause(pause), Some(_)) => NextStep::BeginBlock { block, pause: Some(pause) },
            (BetweenBlocks::Reboot, Some(before)) if boot_id.is_none() || before.boot_id.as_deref() == boot_id => {
                NextStep::Reboot { block }
            }
            _ => NextStep::BeginBlock { block, pause: None },
        }
    }

    /// Whether the precision after `block` decides if there is another: there are enough runs, and the next block has
    /// not begun.
    fn is_precision_check_due(&self, block: u32, state: &ExperimentState) -> bool {
        let design = &self.experiment.design;
        let RunsRule::Until { .. } = design.runs else { return false };
        let runs: u32 = (1..=block).filter_map(|block| design.runs_in(block)).sum();
        let is_last = block == design.blocks_at_most();
        let is_passed = state.blocks.contains_key(&(block + 1));
        runs >= defaults::UNTIL_RUNS_MIN && block >= design.blocks && !is_last && !is_passed && !state.narrow_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::journal::JournalEntry;
    use crate::facts::RunOutcome;
    use crate::plan::{Design, ExperimentCondition, Factors, Hooks, Kind, Plan, RunOrder};

    fn experiment(runs: RunsRule, blocks: u32, between: BetweenBlocks) -> Experiment {
        let condition = |value: &str| ExperimentCondition {
            hooks: Hooks::default(),
            factors: Factors::from([("load".to_owned(), value.to_owned())]),
            plan: Plan { runs: Vec::new(), rounds: 1 },
        };
        let design = Design {
            runs,
            warmup_runs: 1,
            blocks,
            between,
            order: RunOrder::Randomized,
            seed: Some(3),
            settle: Nanos::ZERO,
            looks: None,
        };
        let conditions = vec![condition("none"), condition("cpu=80%")];
        Experiment { name: "x".into(), kind: Kind::Ping, conditions, design, contrasts: Vec::new() }
    }

    /// Applies the steps that a process takes, each run ending as `outcome` says, until a step that it cannot take.
    fn advance(
        experiment: &Experiment,
        state: &mut ExperimentState,
        boot: &str,
        outcome: &mut dyn FnMut(&DueRun) -> RunOutcome,
    ) -> NextStep {
        let mut scheduler = RunScheduler::of(experiment);
        let boot_id = || Some(boot.to_owned());
        for _ in 0..10_000 {
            match scheduler.next(state, Some(boot)) {
                NextStep::BeginBlock { block, .. } => {
                    state.apply(JournalEntry::BlockBegan { block, boot_id: boot_id() })
                }
                NextStep::EndBlock { block } => state.apply(JournalEntry::BlockEnded { block, boot_id: boot_id() }),
                NextStep::Run(due) => {
                    state.apply(JournalEntry::RunBegan { key: due.key.clone(), position: due.position });
                    let outcome = outcome(&due);
                    let (block, position, recording) = (due.key.block, due.position.position, Some("r".into()));
                    state.apply(JournalEntry::RunEnded { block, position, outcome, recording, reason: None });
                }
                step => return step,
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn every_run_is_scheduled_once_and_in_order() {
        let experiment = experiment(RunsRule::PerBlock(3), 2, BetweenBlocks::Nothing);
        let mut state = ExperimentState::default();
        let end = advance(&experiment, &mut state, "one", &mut |_| RunOutcome::Completed);
        assert_eq!((end, state.runs.len()), (NextStep::Finish, 2 * (2 + 6)));
        let places: Vec<_> = state.runs.iter().map(|run| (run.key.block, run.position.position)).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(state.runs_done(), 16);
    }

    #[test]
    fn unfinished_runs_are_repeated_and_final_ones_are_not() {
        let experiment = experiment(RunsRule::PerBlock(3), 2, BetweenBlocks::Nothing);
        let outcomes = [RunOutcome::Died, RunOutcome::Interrupted, RunOutcome::Refused, RunOutcome::Failed];
        let mut state = ExperimentState::default();
        let mut taken = 0;
        let end = advance(&experiment, &mut state, "one", &mut |_| {
            taken += 1;
            if taken % 3 == 0 { outcomes[taken % outcomes.len()] } else { RunOutcome::Completed }
        });
        assert_eq!((end, state.runs_done()), (NextStep::Finish, 16));
        let again = state.runs.iter().filter(|run| !run.outcome.is_some_and(RunOutcome::is_final)).count();
        assert_eq!(state.runs.len(), 16 + again);
        assert!(again > 3);
    }

    #[test]
    fn a_block_waits_for_another_boot() {
        let experiment = experiment(RunsRule::PerBlock(2), 3, BetweenBlocks::Reboot);
        let mut state = ExperimentState::default();
        let mut completed = |_: &DueRun| RunOutcome::Completed;
        assert_eq!(advance(&experiment, &mut state, "one", &mut completed), NextStep::Reboot { block: 2 });
        assert_eq!(advance(&experiment, &mut state, "one", &mut completed), NextStep::Reboot { block: 2 });
        assert_eq!(advance(&experiment, &mut state, "two", &mut completed), NextStep::Reboot { block: 3 });
        assert_eq!(state.runs_done(), 2 * (2 + 4));
        // Without a boot id the boot may be the same.
        assert_eq!(RunScheduler::of(&experiment).next(&state, None), NextStep::Reboot { block: 3 });
        assert_eq!(advance(&experiment, &mut state, "three", &mut completed), NextStep::Finish);
    }

    #[test]
    fn precision_is_checked_after_blocks_with_ten_runs_and_ends_the_experiment() {
        let rule = RunsRule::Until { statistic: "p99".into(), half_width: 0.03, most: 25 };
        let experiment = experiment(rule, 2, BetweenBlocks::Nothing);
        let mut completed = |_: &DueRun| RunOutcome::Completed;
        let mut state = ExperimentState::default();
        assert_eq!(advance(&experiment, &mut state, "one", &mut completed), NextStep::CheckPrecision { block: 2 });
        let mut narrow = state.clone();
        narrow.apply(JournalEntry::NarrowEnough { block: 2 });
        assert_eq!(advance(&experiment, &mut narrow, "one", &mut completed), NextStep::Finish);
        for block in [3, 4] {
            let entered = RunScheduler::of(&experiment).enter(block, &state, Some("one"));
            assert_eq!(entered, NextStep::BeginBlock { block, pause: None });
            state.apply(JournalEntry::BlockBegan { block, boot_id: None });
            assert_eq!(advance(&experiment, &mut state, "one", &mut completed), NextStep::CheckPrecision { block });
        }
        // At the cap there is nothing to decide.
        state.apply(JournalEntry::BlockBegan { block: 5, boot_id: None });
        assert_eq!(advance(&experiment, &mut state, "one", &mut completed), NextStep::Finish);
        assert_eq!(state.runs_done(), 2 * (25 + 5));
    }

    #[test]
    fn additional_runs_of_a_changed_file_are_scheduled() {
        let few = experiment(RunsRule::PerBlock(2), 1, BetweenBlocks::Nothing);
        let mut state = ExperimentState::default();
        let mut completed = |_: &DueRun| RunOutcome::Completed;
        assert_eq!(advance(&few, &mut state, "one", &mut completed), NextStep::Finish);
        state.apply(JournalEntry::Finished { looks: Some(None), over_budget: false });
        state.apply(JournalEntry::Changed { kept_as: "experiment.1.toml".into(), file_blake3: None });
        let more = experiment(RunsRule::PerBlock(3), 1, BetweenBlocks::Nothing);
        assert_eq!(advance(&more, &mut state, "one", &mut completed), NextStep::Finish);
        assert_eq!((state.runs.len(), state.runs_done()), (2 + 6, 2 + 6));
    }
}
