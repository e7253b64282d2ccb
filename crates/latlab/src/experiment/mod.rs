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

pub use conduct::{ConductEnd, Hands, Manners, News, Taken, conduct};
pub use course::{Course, DueRun, Step};
pub use directory::{
    FoundExperiment, OpenExperiment, Origin, expect_idle, expect_same, file_text, in_store, is_edited, is_experiment,
    look_at, look_closer, newest_unfinished, runs_of,
};
pub use error::ExperimentError;
pub use event::{Event, ExperimentFormat, Line, Place, RecipeFacts, RunKey, RunOutcome};
pub use journal::{Conductor, Journal};
pub use judgement::outcome_of;
pub use standing::{BlockStanding, RunStanding, Standing};
pub use turn::StoreTurn;
