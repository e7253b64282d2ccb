//! Conducting an experiment: its directory, its journal, what is due next, over interruptions and reboots. Decision
//! 0012; format: docs/experiments.md.

mod conduct;
mod course;
mod directory;
mod error;
mod event;
mod journal;
mod standing;

pub use conduct::{ConductEnd, Hands, Manners, News, Taken, conduct};
pub use course::{Course, DueRun, Step};
pub use directory::{
    FoundExperiment, OpenExperiment, Origin, expect_same, file_text, is_experiment, look_at, newest_unfinished,
};
pub use error::ExperimentError;
pub use event::{Event, ExperimentFormat, Line, Place, RecipeFacts, RunKey, RunOutcome};
pub use journal::Journal;
pub use standing::{BlockStanding, RunStanding, Standing};
