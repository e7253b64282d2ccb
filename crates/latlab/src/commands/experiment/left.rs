//! How much of an experiment is left: steps of a progress line, and how long the rest takes.

use std::time::Duration;

use super::cost::one_run;
use crate::plan::Experiment;
use crate::report::experiment::plan::roughly;
use crate::units::Nanos;

/// Steps of the progress line for each run.
const STEPS: u64 = 100;

/// What is known of the runs that are left: how long they should take, and how long they took.
pub(super) struct RemainingTime {
    /// Of each condition, in ns; what was learnt replaces what was expected.
    expected_ns: Vec<f64>,
    settle_ns: f64,
    runs: u64,
    blocks: u32,
}

impl RemainingTime {
    pub(super) fn of(experiment: &Experiment) -> RemainingTime {
        let conditions = &experiment.conditions;
        RemainingTime {
            expected_ns: conditions.iter().map(|condition| one_run(&condition.plan).0).collect(),
            settle_ns: experiment.design.settle.0 as f64,
            runs: experiment.design.runs_at_most(conditions.len()),
            blocks: experiment.design.blocks_at_most(),
        }
    }

    /// A run of `condition` took so long: the next ones will too.
    pub(super) fn learn(&mut self, condition: usize, took: Duration) {
        self.expected_ns[condition] = took.as_nanos() as f64;
    }

    /// All steps.
    pub(super) const fn steps(&self) -> u64 {
        self.runs * STEPS
    }

    /// Where the progress line is when `done` runs are over and one has gone for so long.
    pub(super) fn step(&self, condition: usize, done: u64, gone: Duration) -> u64 {
        let share = (gone.as_nanos() as f64 / self.expected_ns[condition]).min(0.99);
        done * STEPS + (share * STEPS as f64) as u64
    }

    /// `block 2 of 3 · run 14 of 90 · 12 min left`.
    pub(super) fn words(&self, block: u32, done: u64, gone: Duration) -> String {
        let mean = self.expected_ns.iter().sum::<f64>() / self.expected_ns.len().max(1) as f64 + self.settle_ns;
        let rest = (self.runs.saturating_sub(done) as f64 * mean - gone.as_nanos() as f64).max(mean / 10.0);
        let blocks = if self.blocks > 1 { format!("block {block} of {} · ", self.blocks) } else { String::new() };
        format!("{blocks}run {} of {} · {} left", done + 1, self.runs, roughly(Nanos(rest as i64)))
    }
}
