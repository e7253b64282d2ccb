//! What is due next: a function of the experiment and of how far it is. Nothing here reads or writes anything.

use super::event::{RunKey, RunPosition};
use super::standing::ExperimentState;
use crate::plan::{BetweenBlocks, Experiment, RunsRule, ScheduledRun, defaults};
use crate::units::Nanos;

/// What is due.
#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// A block begins, after a pause if one was asked for.
    BeginBlock {
        /// From 1.
        block: u32,
        /// The pause before it.
        pause: Option<Nanos>,
    },
    /// The next block needs another boot.
    Reboot {
        /// The block that is next.
        block: u32,
    },
    /// A run.
    Run(DueRun),
    /// All runs of a block have ended.
    EndBlock {
        /// From 1.
        block: u32,
    },
    /// The widths of intervals are to be looked at.
    LookAtWidths {
        /// After this block.
        block: u32,
    },
    /// Nothing is left to do.
    Finish,
}

/// A run that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DueRun {
    /// What it is known by.
    pub key: RunKey,
    /// Where it stands.
    pub place: RunPosition,
    /// Index of its condition.
    pub condition: usize,
}

/// The way through an experiment. Keeps the order of the block at hand, so that it is computed once.
#[derive(Debug)]
pub struct RunScheduler<'a> {
    experiment: &'a Experiment,
    order: (u32, Vec<ScheduledRun>),
}

impl<'a> RunScheduler<'a> {
    /// Through `experiment`.
    pub fn of(experiment: &'a Experiment) -> RunScheduler<'a> {
        RunScheduler { experiment, order: (0, Vec::new()) }
    }

    /// What is due, given how far the experiment is and which boot this is.
    pub fn next(&mut self, standing: &ExperimentState, boot_id: Option<&str>) -> NextStep {
        if standing.finished {
            return NextStep::Finish;
        }
        let design = &self.experiment.design;
        for block in 1..=design.blocks_at_most() {
            let known = standing.blocks.get(&block);
            match known {
                Some(known) if known.ended && self.is_to_be_looked_at(block, standing) => {
                    return NextStep::LookAtWidths { block };
                }
                Some(known) if known.ended => {}
                Some(_) => return self.due(block, standing).map_or(NextStep::EndBlock { block }, NextStep::Run),
                None if standing.narrow_enough || self.due(block, standing).is_none() => return NextStep::Finish,
                None => return self.enter(block, standing, boot_id),
            }
        }
        NextStep::Finish
    }

    /// The first run of `block` that is not over.
    fn due(&mut self, block: u32, standing: &ExperimentState) -> Option<DueRun> {
        let conditions = &self.experiment.conditions;
        if self.order.0 != block {
            self.order = (block, self.experiment.design.schedule(conditions.len(), block));
        }
        let due_run = |turn: &ScheduledRun| {
            let factors = conditions[turn.condition].factors.clone();
            let key = RunKey { block, factors, repetition: turn.repetition, warmup: turn.warmup };
            let place = RunPosition { position: turn.position, condition: turn.condition as u32 + 1 };
            DueRun { key, place, condition: turn.condition }
        };
        let turns = self.order.1.iter().map(due_run);
        turns.into_iter().find(|due| !standing.is_done(&due.key) && !standing.is_dropped(&due.key.factors))
    }

    /// How `block` is entered, which has not begun yet.
    pub fn enter(&self, block: u32, standing: &ExperimentState, boot_id: Option<&str>) -> NextStep {
        let before = standing.blocks.range(..block).next_back().map(|(_, before)| before);
        match (self.experiment.design.between, before) {
            (BetweenBlocks::Pause(pause), Some(_)) => NextStep::BeginBlock { block, pause: Some(pause) },
            (BetweenBlocks::Reboot, Some(before)) if boot_id.is_none() || before.boot_id.as_deref() == boot_id => {
                NextStep::Reboot { block }
            }
            _ => NextStep::BeginBlock { block, pause: None },
        }
    }

    /// Whether the widths after `block` decide if there is another: once there are runs enough, and while nobody
    /// has gone on without looking.
    fn is_to_be_looked_at(&self, block: u32, standing: &ExperimentState) -> bool {
        let design = &self.experiment.design;
        let RunsRule::Until { .. } = design.runs else { return false };
        let runs: u32 = (1..=block).filter_map(|block| design.runs_in(block)).sum();
        let is_last = block == design.blocks_at_most();
        let goes_on = standing.blocks.contains_key(&(block + 1));
        runs >= defaults::UNTIL_RUNS_MIN && block >= design.blocks && !is_last && !goes_on && !standing.narrow_enough
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
