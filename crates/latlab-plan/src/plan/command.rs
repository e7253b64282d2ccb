//! A run of a command: what is executed, with which files, and when it counts as failed.

use serde::{Deserialize, Serialize};

use crate::facts::in_shell;
use crate::units::Nanos;

/// Where the standard output of a command goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutput {
    Null,
    /// To latlab's own, with its standard error.
    Inherit,
    /// To this file, which has the output of the last execution.
    File(String),
}

/// The parameters of a run of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program and its arguments, those of a shell included.
    pub words: Vec<String>,
    /// The same of what is executed before each execution, outside of its time.
    pub prepare: Option<Vec<String>>,
    /// The file of its standard input; `None`: empty.
    pub input: Option<String>,
    pub output: CommandOutput,
    /// An execution that takes longer is ended.
    pub timeout_ns: Option<Nanos>,
    /// Whether every exit code is a success.
    pub ignore_failure: bool,
}

impl CommandSpec {
    /// The command as it can be pasted into a shell.
    pub fn in_shell(&self) -> String {
        in_shell(&self.words)
    }
}
