use std::io;
use std::path::{Path, PathBuf};

use latlab_sys::errno::explain;
use thiserror::Error;

use super::event::ExperimentFormat;
use crate::diagnostics::Explain;
use crate::recording::RecordingError;

/// Why an experiment cannot be begun, read or gone on with.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The system refused.
    #[error("cannot {action} `{}`", path.display())]
    Refused {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The directory holds no experiment.
    #[error("`{}` is no experiment", path.display())]
    NotAnExperiment {
        /// The directory.
        path: PathBuf,
    },
    /// The journal cannot be read.
    #[error("the journal of the experiment `{}` is damaged", path.display())]
    Damaged {
        /// The experiment's directory.
        path: PathBuf,
        /// Where and how.
        cause: String,
    },
    /// A later latlab wrote it in a form that this one would misread.
    #[error("the experiment `{}` has format {}.{}", path.display(), found.major, found.minor)]
    NewerVersion {
        /// The experiment's directory.
        path: PathBuf,
        /// Its format.
        found: ExperimentFormat,
    },
    /// Another process conducts it.
    #[error("the experiment `{}` is being measured", path.display())]
    Busy {
        /// The experiment's directory.
        path: PathBuf,
        /// That process.
        pid: Option<u32>,
    },
    /// Its file is not the one that it began with.
    #[error("`{file}` has changed since the experiment `{}` began", path.display())]
    Changed {
        /// The file.
        file: String,
        /// The experiment's directory.
        path: PathBuf,
        /// Where they differ first.
        difference: String,
    },
    /// The file in its directory is not the one that its journal speaks of.
    #[error("the file of the experiment `{}` was edited", path.display())]
    Edited {
        /// The experiment's directory.
        path: PathBuf,
    },
    /// The next block needs another boot.
    #[error("block {block} of `{}` needs a reboot first", path.display())]
    SameBoot {
        /// The experiment's directory.
        path: PathBuf,
        /// The block that is next.
        block: u32,
    },
    /// Which boot this is cannot be read.
    #[error("cannot tell whether this host was rebooted")]
    UnknownBoot {
        /// Why not.
        cause: String,
    },
    /// A recording of it cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl ExperimentError {
    /// Wraps what the system said about `action` on `path`.
    pub(super) fn refused(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> ExperimentError {
        move |source| ExperimentError::Refused { action, path: path.as_ref().to_owned(), source }
    }

    /// The same of a store that cannot be made or written to.
    pub(super) fn of_store(error: RecordingError) -> ExperimentError {
        match error {
            RecordingError::Refused { action, path, source } => ExperimentError::Refused { action, path, source },
            other => other.into(),
        }
    }

    /// Why.
    pub fn cause(&self) -> Option<String> {
        match self {
            ExperimentError::Refused { source, .. } => Some(explain(source)),
            ExperimentError::NotAnExperiment { .. } => Some("it has no `journal.jsonl` that begins one".into()),
            ExperimentError::Damaged { cause, .. } | ExperimentError::UnknownBoot { cause } => Some(cause.clone()),
            ExperimentError::NewerVersion { .. } => {
                let ExperimentFormat { major, minor } = ExperimentFormat::CURRENT;
                Some(format!("this latlab reads formats up to {major}.x, and writes {major}.{minor}"))
            }
            ExperimentError::Busy { pid, .. } => {
                Some(pid.map_or_else(|| "another process holds its journal".into(), |pid| format!("by process {pid}")))
            }
            ExperimentError::Changed { difference, .. } => Some(difference.clone()),
            ExperimentError::Edited { .. } => {
                Some("`experiment.toml` in it is not what its journal says that the runs were measured by".into())
            }
            ExperimentError::SameBoot { .. } => Some("this is still the boot that the last block ran in".into()),
            ExperimentError::Recording(error) => error.explain().cause,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ExperimentError::Refused { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space, then run the same command again: no run that ended is lost".into()
            }
            ExperimentError::Refused { action, .. } if action.ends_with("the store") => {
                "name a writable place with `--store`".into()
            }
            ExperimentError::Refused { .. } => return None,
            ExperimentError::NotAnExperiment { .. } => {
                "`latlab run FILE` begins one; `latlab recipes` lists the built-in ones".into()
            }
            ExperimentError::Damaged { .. } => {
                "its recordings in `runs/` are whole: `latlab compare` reads them; `latlab run FILE --new` begins again"
                    .into()
            }
            ExperimentError::NewerVersion { .. } => "use the latlab that wrote it, or a later one".into(),
            ExperimentError::Busy { .. } => "wait until it has ended, or end it; then the same command goes on".into(),
            ExperimentError::Changed { .. } => "`--new` begins another experiment; `--force` goes on with the changed \
                file: its runs stand beside the old ones, and the two are no longer one experiment"
                .into(),
            ExperimentError::Edited { .. } => {
                "put the file back as it was; `--force` goes on with the edited one: its runs \
                stand beside the old ones, and the two are no longer one experiment; `latlab run FILE` begins another"
                    .into()
            }
            ExperimentError::SameBoot { .. } => {
                "reboot, then run the same command again; `--print-unit` prints a unit that does so at boot".into()
            }
            ExperimentError::UnknownBoot { .. } => "`between-blocks = \"none\"` needs no boot id".into(),
            ExperimentError::Recording(error) => return error.explain().hint,
        })
    }

    /// 2: the request is wrong. 3: the world refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            ExperimentError::NotAnExperiment { .. }
            | ExperimentError::Damaged { .. }
            | ExperimentError::NewerVersion { .. }
            | ExperimentError::Changed { .. }
            | ExperimentError::Edited { .. } => 2,
            ExperimentError::Refused { .. }
            | ExperimentError::Busy { .. }
            | ExperimentError::SameBoot { .. }
            | ExperimentError::UnknownBoot { .. } => 3,
            ExperimentError::Recording(error) => error.explain().exit_code,
        }
    }
}
