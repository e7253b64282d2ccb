//! Errors of starting a load.

use std::io;

use latlab_sys::errno::explain;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::units::human::grouped;

#[derive(Debug, Error)]
pub enum LoadError {
    /// Its process cannot be started.
    #[error("cannot start a process for the load `{load}`")]
    Process {
        load: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// Its process reported a failure.
    #[error("cannot make the load `{load}`: {failure}")]
    Refused { load: String, failure: Failure },
    /// A CPU does not exist, or latlab may not use it.
    #[error("cannot work on CPU `{cpu}`")]
    CpuAbsent {
        cpu: u16,
        /// The usable CPUs, as a list.
        usable: String,
    },
    /// The affinity of a worker cannot be set for another reason.
    #[error("cannot pin a worker to its CPU")]
    Affinity {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A network load was requested of a worker, which has no path.
    #[error("cannot load a network without a path")]
    NeedsPath,
    /// A worker cannot be started.
    #[error("cannot start a worker")]
    Thread {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The memory for copying cannot be allocated.
    #[error("cannot take {} bytes of memory", grouped(*.bytes))]
    Memory {
        /// The buffer of one worker.
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
            LoadError::Refused { failure: reported, .. } => Failure { message: failure.message, ..reported.clone() },
            LoadError::CpuAbsent { usable, .. } => Failure::request(self)
                .because(format!("there is no such CPU, or latlab may not use it; usable are `{usable}`"))
                .hint(format!("name CPUs with `:cpus={usable}`")),
            LoadError::NeedsPath => failure.because("it was started by the wrong process"),
            LoadError::Memory { .. } => {
                failure.because("the system has no more memory for this process").hint("take less with `:buffer=64MiB`")
            }
        }
    }
}
