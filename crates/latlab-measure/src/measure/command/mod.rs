//! Executions of a command: how long each takes and what it uses. Decisions: docs/design/0030-commands.md.

mod error;
mod executor;
mod files;
mod printed;
mod run;

pub(super) use error::CommandError;
pub use printed::OutputPattern;
pub(super) use run::CommandRun;
