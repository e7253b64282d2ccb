//! Why a command cannot be executed, or why its failure ended the run.

use std::io;

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};

/// Why executions of a command cannot begin, or ended early.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program is missing, or cannot be executed.
    #[error("cannot execute `{program}`")]
    Unusable { program: String, cause: &'static str, hint: &'static str },
    /// The kernel refused to start it, or to wait for it.
    #[error("cannot execute `{program}`")]
    Refused {
        program: String,
        #[source]
        source: io::Error,
    },
    /// A file of its input or output.
    #[error("cannot open `{path}` for `{option}`")]
    File {
        option: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    /// An execution failed, of the command or of `--prepare`, or printed no number of a metric.
    #[error("`{command}` failed: {how}")]
    Failed {
        command: String,
        /// `exit code 2`, `killed by SIGSEGV`.
        how: String,
        /// The last lines that it wrote, if latlab has them.
        output: String,
        hint: &'static str,
    },
}

impl Explain for CommandError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            CommandError::Unusable { cause, hint, .. } => failure.because(*cause).hint(*hint),
            CommandError::Refused { source, .. } if source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                failure
                    .because("it is neither a program for this machine nor a script whose first line names one (`#!`)")
                    .hint("`--shell` executes it by `sh -c`")
            }
            CommandError::Refused { source, .. } => {
                failure.because(explain(source)).hint("free memory, or raise the limits of the process (`ulimit -a`)")
            }
            CommandError::File { source, .. } => failure.because(explain(source)).hint("name another file"),
            CommandError::Failed { output, hint, .. } => {
                let failure = failure.hint(*hint);
                if output.is_empty() { failure } else { failure.because(output) }
            }
        }
    }
}
