//! Running an experiment: its directory, its journal, what is due next, across interruptions and reboots. Decision 0012;
//! format: docs/experiments.md.

mod directory;
mod error;
mod hooks;
mod journal;
mod results;
mod runner;
mod scheduler;
mod state;

pub(crate) use directory::{
    ExperimentOrigin, StoreLock, expect_idle, expect_own, expect_readable, expect_same, file_path, file_text, in_store,
    is_edited, is_experiment, newest, newest_unfinished, read_named_state, read_state, read_state_with_runner,
    reason_to_keep, remove, runs_directory, runs_of,
};
pub(crate) use hooks::{HookError, HookRunner, HookWait, HookedRun, changed_program};
pub(crate) use results::{PartialReport, ReportReader, StopRule, can_be_of, gone_runs, observe, result_of};
pub(crate) use runner::{
    ExperimentEvent, ExperimentRunner, FailureKind, RunExecutor, RunPolicy, RunResult, RunnerOutcome, in_one_line,
};
pub(crate) use scheduler::DueRun;

pub use directory::OpenExperiment;
pub use error::ExperimentError;
pub use state::{BlockState, ExperimentState};
