//! Conducting an experiment: its directory, its journal, what is due next, over interruptions and reboots. Decision
//! 0012; format: docs/experiments.md.

mod conduct;
mod course;
mod directory;
mod error;
mod event;
mod file;
mod journal;
mod judgement;
mod standing;
mod turn;

pub use conduct::{ExperimentEvent, RunExecutor, RunPolicy, RunResult, RunnerOutcome, conduct};
pub use course::{DueRun, NextStep, RunScheduler};
pub use directory::{
    ExperimentOrigin, FoundExperiment, OpenExperiment, expect_idle, expect_same, file_text, in_store, is_edited,
    is_experiment, look_at, look_closer, newest_unfinished, runs_of,
};
pub use error::ExperimentError;
pub use event::{ExperimentFormat, JournalEntry, JournalLine, RecipeFacts, RunKey, RunOutcome, RunPosition};
pub use journal::{ExperimentJournal, RunnerProcess};
pub use judgement::outcome_of;
pub use standing::{BlockState, ExperimentState, RunState};
pub use turn::StoreLock;
