//! A run of a command: what is executed, with which files, and when it counts as failed.

use serde::{Deserialize, Serialize};

use crate::facts::in_shell;
use crate::metric::PrintedMetric;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

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
    /// The metrics of the numbers that it prints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedSpec>,
}

/// A metric of numbers that a command prints, and where they stand in its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedSpec {
    pub name: String,
    /// A JSON pointer (`/latency/p99`), `*` for each line that is a number, or a regular expression with one group.
    pub pattern: String,
    /// As typed; may be empty.
    pub unit: String,
    pub higher_is_better: bool,
}

impl PrintedSpec {
    pub fn metric(&self) -> PrintedMetric {
        let unit = Some(&*self.unit).filter(|unit| TimeUnit::from_word(unit).is_none());
        PrintedMetric::declare(&self.name, unit, self.higher_is_better)
    }

    /// What a number is multiplied by: times are recorded in ns.
    pub fn factor(&self) -> f64 {
        TimeUnit::from_word(&self.unit).map_or(1.0, TimeUnit::nanos)
    }
}

impl CommandSpec {
    /// The command as it can be pasted into a shell.
    pub fn in_shell(&self) -> String {
        in_shell(&self.words)
    }
}
