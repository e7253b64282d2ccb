//! The cost of an experiment: time and disk space, estimated before it begins and corrected while it runs.

use std::time::Duration;

use crate::plan::{BetweenBlocks, Experiment, Kind, Plan, defaults};
use crate::units::Nanos;

/// Time and disk space of the runs that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExperimentCost {
    pub duration: Nanos,
    /// The assumed time of a round trip or an execution; `None` if the duration does not depend on it.
    pub guessed: Option<Nanos>,
    pub bytes: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RunCost {
    duration_ns: f64,
    rows: f64,
    /// Whether the time of a round trip or an execution was assumed.
    is_guess: bool,
}

/// The cost of `experiment` after `done` runs, as if each of the others were an average one.
pub fn experiment_cost(experiment: &Experiment, done: u64) -> ExperimentCost {
    let design = &experiment.design;
    let conditions = experiment.conditions.len().max(1) as f64;
    let all = design.runs_at_most(experiment.conditions.len()) as f64;
    let left = (all - done as f64).max(0.0);
    let runs: Vec<RunCost> = experiment.conditions.iter().map(|condition| run_cost(&condition.plan)).collect();
    let duration_ns: f64 = runs.iter().map(|run| run.duration_ns / conditions).sum();
    let bytes: f64 = runs.iter().map(|run| (defaults::RUN_BYTES + run.rows * defaults::PROBE_BYTES) / conditions).sum();
    let pauses = match design.between {
        BetweenBlocks::Pause(pause) => pause.saturating_mul(i64::from(design.blocks_at_most()) - 1).0 as f64,
        _ => 0.0,
    };
    let duration = left * duration_ns + left * experiment.settle().0 as f64 + pauses * left / all.max(1.0);
    let guessed = runs.iter().any(|run| run.is_guess).then_some(guess(experiment.kind));
    ExperimentCost { duration: Nanos(duration as i64), guessed, bytes: left * bytes }
}

const fn guess(kind: Kind) -> Nanos {
    if matches!(kind, Kind::Command) { defaults::EXECUTION_GUESS } else { defaults::ROUND_TRIP_GUESS }
}

fn run_cost(plan: &Plan) -> RunCost {
    let mut total = RunCost { duration_ns: defaults::RUN_OVERHEAD.0 as f64, ..RunCost::default() };
    for run in &plan.runs {
        // A stream leaves a row for either end of each flow in every interval, whatever it sends.
        let of_stream = |flows: u16| defaults::STREAM_WINDOW.0 as f64 / 2.0 / f64::from(flows);
        let gap = match run.stream() {
            Some(stream) => Some(of_stream(stream.flows)),
            None => run.schedule().interval().map(|interval| interval.0 as f64),
        };
        let trip = gap.unwrap_or(guess(run.kind()).0 as f64);
        let counted = |count: Option<u64>| count.map_or(f64::INFINITY, |count| count as f64 * trip);
        let timed = |span: Option<Nanos>| span.map_or(f64::INFINITY, |span| span.0 as f64);
        let shorter = |span, count| Some(f64::min(timed(span), counted(count))).filter(|ns| ns.is_finite());
        let warmup = shorter(run.warmup.duration_ns, run.warmup.count).unwrap_or_default();
        let length = warmup + shorter(run.stop.duration_ns, run.stop.count).unwrap_or_default();
        total.duration_ns += length;
        // A time limit fixes the duration, but not the number of probes of a closed loop.
        total.rows += length / trip;
        total.is_guess |= gap.is_none();
    }
    if plan.runs.iter().any(|run| !run.loads.is_empty()) {
        total.duration_ns += defaults::LOAD_SETTLE.0 as f64;
    }
    total
}

/// Steps of a progress line for each run.
const STEPS: u64 = 100;

/// The remaining time of an experiment that runs: the estimate, corrected by the runs that were made.
pub struct RemainingTime {
    /// Of a run of each condition, ns.
    expected_ns: Vec<f64>,
    settle_ns: f64,
    /// All runs of the experiment, at most.
    pub runs: u64,
    pub blocks: u32,
}

impl RemainingTime {
    /// That of `experiment`, of which so many `conditions` are measured.
    pub fn of(experiment: &Experiment, conditions: usize) -> RemainingTime {
        RemainingTime {
            expected_ns: experiment.conditions.iter().map(|condition| run_cost(&condition.plan).duration_ns).collect(),
            settle_ns: experiment.settle().0 as f64,
            runs: experiment.design.runs_at_most(conditions),
            blocks: experiment.design.blocks_at_most(),
        }
    }

    /// Notes that a run of `condition` took so long; the next ones are expected to take the same.
    pub fn learn(&mut self, condition: usize, took: Duration) {
        self.expected_ns[condition] = took.as_nanos() as f64;
    }

    /// All steps of the progress line.
    pub const fn steps(&self) -> u64 {
        self.runs * STEPS
    }

    /// The step of the progress line after `done` runs, `elapsed` into a run of `condition`.
    pub fn step(&self, condition: usize, done: u64, elapsed: Duration) -> u64 {
        let share = (elapsed.as_nanos() as f64 / self.expected_ns[condition]).min(0.99);
        done * STEPS + (share * STEPS as f64) as u64
    }

    /// The time that is left after `done` runs, `elapsed` into the next.
    pub fn left(&self, done: u64, elapsed: Duration) -> Nanos {
        let mean = self.expected_ns.iter().sum::<f64>() / self.expected_ns.len().max(1) as f64 + self.settle_ns;
        let left = self.runs.saturating_sub(done) as f64 * mean - elapsed.as_nanos() as f64;
        Nanos(left.max(mean / 10.0) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::contrasts::tests::experiment;
    use crate::plan::RunsRule;

    #[test]
    fn the_cost_shrinks_with_the_runs_that_are_done() {
        let mut experiment = experiment(&["a", "b"], RunsRule::PerBlock(5));
        experiment.design.blocks = 2;
        experiment.design.settle = Nanos::from_secs(1);
        experiment.design.between = BetweenBlocks::Pause(Nanos::from_secs(60));
        let all = experiment_cost(&experiment, 0);
        let run = run_cost(&experiment.conditions[0].plan);
        // 20 runs, one pause
        let expected = 20.0 * run.duration_ns + 20e9 + 60e9;
        assert_eq!(all.duration, Nanos(expected as i64));
        assert_eq!(all.guessed.is_some(), run.is_guess);
        let half = experiment_cost(&experiment, 10);
        assert_eq!((half.duration.0, half.bytes), (all.duration.0 / 2, all.bytes / 2.0));
        assert_eq!(experiment_cost(&experiment, 30).duration, Nanos::ZERO);
    }

    #[test]
    fn the_remaining_time_follows_the_runs_that_were_made() {
        let experiment = experiment(&["a", "b"], RunsRule::PerBlock(5));
        let mut remaining = RemainingTime::of(&experiment, 2);
        assert_eq!((remaining.runs, remaining.blocks, remaining.steps()), (10, 1, 1_000));
        remaining.learn(0, Duration::from_secs(4));
        remaining.learn(1, Duration::from_secs(2));
        assert_eq!(remaining.left(4, Duration::from_secs(1)), Nanos::from_secs(6 * 3 - 1));
        // a run that takes longer than expected is nearly over
        assert_eq!(remaining.left(9, Duration::from_secs(60)), Nanos::from_millis(300));
        assert_eq!([1, 3, 9].map(|s| remaining.step(0, 2, Duration::from_secs(s))), [225, 275, 299]);
    }
}
