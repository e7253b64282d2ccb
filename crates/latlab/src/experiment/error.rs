//! Errors of experiments, with cause, hint and exit code.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::facts::ExperimentFormat;
use crate::platform::input_file;
use crate::recording::RecordingError;

/// Errors of beginning, reading and continuing an experiment.
#[derive(Debug, Error)]
pub enum ExperimentError {
    #[error("cannot {action} `{}`", path.display())]
    Refused { action: &'static str, path: PathBuf, source: io::Error },
    /// The directory holds no experiment.
    #[error("`{}` is not an experiment", path.display())]
    NotAnExperiment { path: PathBuf },
    /// The journal cannot be read.
    #[error("the journal of the experiment `{}` is damaged", path.display())]
    Damaged { path: PathBuf, cause: String },
    /// It has runs, and its journal does not say which: they would be repeated.
    #[error("the experiment `{}` has runs, but its journal cannot be read", path.display())]
    Unreadable { path: PathBuf, source: Box<ExperimentError> },
    /// A later version wrote it in a form that this one would misread.
    #[error("the experiment `{}` has format {}.{}", path.display(), found.major, found.minor)]
    NewerVersion {
        path: PathBuf,
        /// Format version of the experiment.
        found: ExperimentFormat,
    },
    #[error("the experiment `{}` is being measured", path.display())]
    Busy {
        path: PathBuf,
        /// That process, if it is in the journal.
        pid: Option<u32>,
    },
    /// The file to continue with differs from the one that it began with.
    #[error("`{file}` has changed since the experiment `{}` began", path.display())]
    Changed {
        file: String,
        path: PathBuf,
        /// The first difference, in words.
        difference: String,
    },
    /// The file in its directory is not the one that its journal names.
    #[error("the file of the experiment `{}` was edited", path.display())]
    Edited { path: PathBuf },
    /// A program that it measures was changed after its last run.
    #[error("the experiment in `{}` cannot be continued with another program", path.display())]
    Exchanged { path: PathBuf, program: String },
    /// The next block needs another boot.
    #[error("block {block} of `{}` needs a reboot first", path.display())]
    SameBoot { path: PathBuf, block: u32 },
    /// The boot id cannot be read.
    #[error("it is not known whether this host was rebooted")]
    UnknownBoot { cause: String },
    /// A recording of it cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// The action of reading a file of an experiment, which may be lost.
pub(super) const READ: &str = "read";

impl ExperimentError {
    /// Wraps the error of `action` on `path`.
    pub(super) fn refused(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> ExperimentError {
        move |source| ExperimentError::Refused { action, path: path.as_ref().to_owned(), source }
    }

    /// Wraps the error of creating or opening a store.
    pub(super) fn of_store(error: RecordingError) -> ExperimentError {
        match error {
            RecordingError::Refused { action, path, source } => ExperimentError::Refused { action, path, source },
            other => other.into(),
        }
    }
}

/// Whether a file is gone, or something else is in its place.
fn is_lost(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) || input_file::unfit(error).is_some()
}

impl Explain for ExperimentError {
    fn explain(&self) -> Failure {
        match self {
            ExperimentError::Refused { action, source, .. } => {
                let failure = input_file::failure(self, source);
                match source.kind() {
                    io::ErrorKind::StorageFull => {
                        failure.hint("free some space, then run the same command again: finished runs are kept")
                    }
                    _ if *action == READ && is_lost(source) => Failure { exit_code: 2, ..failure }
                        .hint("restore it; `latlab run FILE --new` starts another experiment"),
                    _ if action.ends_with("the store") => failure.hint("name a writable place with `--store`"),
                    io::ErrorKind::PermissionDenied if action.starts_with(READ) && failure.hint.is_none() => {
                        failure.hint("see with `ls -ld` who may read it")
                    }
                    _ => failure,
                }
            }
            ExperimentError::NotAnExperiment { .. } => Failure::request(self)
                .because("it has no `journal.jsonl` that begins one")
                .hint("`latlab run FILE` starts one; `latlab recipes` lists the built-in ones"),
            ExperimentError::Damaged { cause, .. } => Failure::request(self).because(cause).hint(
                "restore the journal; `latlab compare` reads the recordings in `runs/`; `latlab run FILE --new` \
                 starts another experiment",
            ),
            ExperimentError::Unreadable { source, .. } => {
                let Failure { message, cause, hint, exit_code, .. } = source.explain();
                let another = "`latlab run FILE --new` starts another experiment";
                // A newer or a protected journal is whole: its own hint says how it is read.
                let (cause, remedy) = match **source {
                    ExperimentError::NewerVersion { .. } => (Some(message), hint),
                    ExperimentError::Refused { source: ref error, .. } if !is_lost(error) => (cause, hint),
                    _ => (cause, None),
                };
                let remedy = remedy.unwrap_or_else(|| "restore the journal, or move that directory away".into());
                Failure { cause, exit_code, ..Failure::request(self) }.hint(format!("{remedy}; {another}"))
            }
            ExperimentError::NewerVersion { .. } => {
                let ExperimentFormat { major, minor } = ExperimentFormat::CURRENT;
                Failure::request(self)
                    .because(format!("this latlab reads formats up to {major}.x, and writes {major}.{minor}"))
                    .hint("use the latlab that wrote it, or a later one")
            }
            ExperimentError::Busy { pid, .. } => {
                let unknown = || "another process uses its journal".to_owned();
                Failure::world(self)
                    .because(pid.map_or_else(unknown, |pid| format!("by process {pid}")))
                    .hint("wait until it has ended, or end it; then run the same command again")
            }
            ExperimentError::Changed { difference, .. } => Failure::request(self).because(difference).hint(
                "`--new` starts another experiment; `--force` continues with the changed file: old and new runs \
                 are then no longer one experiment",
            ),
            ExperimentError::Edited { .. } => Failure::request(self)
                .because("`experiment.toml` in it is not what its journal says that the runs were measured by")
                .hint(
                    "restore the file; `--force` continues with the edited one: old and new runs are then no \
                     longer one experiment; `latlab run FILE` starts another",
                ),
            ExperimentError::Exchanged { program, .. } => Failure::request(self)
                .because(format!("`{program}` was changed after the last run"))
                .hint("`--new` begins another experiment; `--force` continues this one, with runs of both programs"),
            ExperimentError::SameBoot { .. } => Failure::world(self)
                .because("this is still the boot that the last block ran in")
                .hint("reboot, then run the same command again; `--print-unit` prints a unit that does so at boot"),
            ExperimentError::UnknownBoot { cause } => {
                Failure::world(self).because(cause).hint("`between-blocks = \"none\"` needs no boot id")
            }
            ExperimentError::Recording(error) => error.explain(),
        }
    }
}
