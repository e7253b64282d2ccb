//! Why a load could not be made.

use std::io;

use latlab_sys::errno::explain;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::units::human::grouped;

/// Why a load could not be made.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its process did not come up.
    #[error("cannot start a process for the load `{load}`")]
    Process {
        /// As typed.
        load: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Its process came up and refused.
    #[error("cannot make the load `{load}`: {message}")]
    Refused {
        /// As typed.
        load: String,
        /// What it said.
        message: String,
        /// Its cause.
        cause: Option<String>,
        /// Its hint.
        hint: Option<String>,
        /// Its exit code.
        exit_code: u8,
    },
    /// A worker's CPU does not exist, or is not for us.
    #[error("cannot work on CPU `{cpu}`")]
    CpuAbsent {
        /// The CPU.
        cpu: u16,
        /// Those that can be used, as a list.
        usable: String,
    },
    /// The kernel refused a pin for another reason.
    #[error("cannot pin a worker to its CPU")]
    Affinity {
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A network load is made on a measured path, which a worker has not.
    #[error("cannot load a network without a path")]
    NeedsPath,
    /// A worker could not be started.
    #[error("cannot start a worker")]
    Thread {
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// No memory to walk through.
    #[error("cannot take {} bytes of memory", grouped(*.bytes))]
    Memory {
        /// What one worker asked for.
        bytes: u64,
    },
}

impl LoadError {
    pub(super) fn thread_gone() -> LoadError {
        LoadError::Thread { source: io::Error::other("it ended before it was ready") }
    }
}

impl Explain for LoadError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            LoadError::Process { source, .. } => failure
                .because(explain(source))
                .hint("the latlab binary starts itself again: it must stay where it is and be executable"),
            LoadError::Affinity { source } => {
                failure.because(explain(source)).hint("leave out `:cpus=`, and the load takes the CPUs that it may use")
            }
            LoadError::Thread { source } => failure
                .because(explain(source))
                .hint("ask for fewer workers, or raise the limit of processes (`ulimit -u`)"),
            LoadError::Refused { cause, hint, exit_code, .. } => {
                Failure { cause: cause.clone(), hint: hint.clone(), exit_code: *exit_code, ..failure }
            }
            LoadError::CpuAbsent { usable, .. } => Failure::request(self)
                .because(format!("there is no such CPU, or it is kept from latlab; usable are `{usable}`"))
                .hint(format!("name CPUs with `:cpus={usable}`")),
            LoadError::NeedsPath => failure.because("it was ordered from the wrong process"),
            LoadError::Memory { .. } => {
                failure.because("the system has no more for this process").hint("take less with `:buffer=64MiB`")
            }
        }
    }
}
