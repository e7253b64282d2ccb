//! What the commands that measure have in common: the end of a run, the schedule of its end, its conditions.

use super::environment::{output_spec, tags};
use super::{Environment, OutputSpec, load, setting};
use crate::cli::args::{EndArgs, MeasuringArgs, StopArgs};
use crate::cli::options::KeySource;
use crate::diagnostics::Failure;
use crate::plan::{EndSpec, Plan, RunSpec, StopWhen, Target, WaitMode, Warmup, Work, defaults};

#[derive(Clone, Debug, PartialEq)]
pub struct MeasureJob {
    pub plan: Plan,
    /// Source of the pre-shared key.
    pub key: KeySource,
    pub output: OutputSpec,
}

impl MeasureJob {
    /// The job of `runs`, of which each leaves `recordings` recordings.
    pub(super) fn of(
        plan: Plan,
        key: KeySource,
        recordings: usize,
        typed: &MeasuringArgs,
        environment: &Environment,
    ) -> MeasureJob {
        let output = output_spec(&typed.output, plan.runs.len() * recordings, environment);
        MeasureJob { plan, key, output }
    }
}

/// A run of `work` under the conditions that were typed, from which its command makes its runs.
pub(super) fn run(typed: &MeasuringArgs, work: Work, target: Target) -> Result<RunSpec, Failure> {
    Ok(RunSpec {
        loads: load::loads(&typed.loads, &target)?,
        settings: setting::settings(&typed.settings, &target)?,
        tags: tags(&typed.output.tag)?,
        judging: typed.judging.of_run()?,
        target,
        ..RunSpec::here(work)
    })
}

impl StopArgs {
    /// A count without a duration lifts the default duration.
    pub(super) fn stop(&self) -> StopWhen {
        let default = self.count.is_none().then_some(defaults::DURATION);
        StopWhen { count: self.count, duration_ns: self.duration.or(default) }
    }

    pub(super) fn warmup(&self) -> Warmup {
        let usual = Warmup { count: Some(defaults::WARMUP_PROBES), duration_ns: Some(defaults::WARMUP) };
        self.warmup.unwrap_or(usual)
    }
}

impl EndArgs {
    pub fn end(&self) -> EndSpec {
        EndSpec { wait: self.wait.unwrap_or(WaitMode::Block), cpu: self.cpu, fifo: self.fifo, mlock: self.mlock }
    }
}

/// The number of slices of each of `runs`: 1 of a single run, else limited so that each slice has a probe.
pub(super) fn rounds(runs: &[RunSpec]) -> u32 {
    match runs {
        [_] => 1,
        several => {
            let fewest = several.iter().filter_map(|run| run.stop.count).min().unwrap_or(u64::MAX);
            u64::from(defaults::ROUNDS).min(fewest) as u32
        }
    }
}
