//! Errors of recordings and of the directories that they are in.

use std::io;
use std::path::PathBuf;

use latlab_sys::errno;
use thiserror::Error;

use super::manifest::FormatVersion;
use crate::diagnostics::{Explain, Failure};
use crate::platform::input_file::{UnfitInput, unfit};

/// A recording that cannot be created, finished or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The path does not exist.
    #[error("no recording at `{}`", path.display())]
    Missing { path: PathBuf },
    /// A file is in the place of a directory.
    #[error("`{}` is a file, and a {due} is a directory", path.display())]
    NotADirectory { path: PathBuf, due: &'static str },
    /// A directory without a manifest.
    #[error("`{}` is not a recording", path.display())]
    NotARecording { path: PathBuf },
    /// A file of the recording is not as the format requires.
    #[error("the recording file `{}` is damaged", path.display())]
    Damaged {
        path: PathBuf,
        /// The error in the file.
        what: String,
    },
    /// A later latlab wrote the recording in a format that this one would misread.
    #[error("the recording `{}` has format {}.{}", path.display(), found.major, found.minor)]
    NewerVersion {
        path: PathBuf,
        /// The format that it has.
        found: FormatVersion,
    },
    /// The run goes on, or another command is finishing the recording.
    #[error("the recording `{}` is still being written", path.display())]
    Busy {
        path: PathBuf,
        /// The process that began to write the recording.
        pid: u32,
    },
    /// `--output` names a path that exists.
    #[error("cannot make the recording `{}`: it exists already", path.display())]
    Exists { path: PathBuf },
    /// The recording's directory was removed during the run.
    #[error("the recording `{}` was removed while it was being measured", path.display())]
    Vanished { path: PathBuf },
    /// The system refused an operation.
    #[error("cannot {action} `{}`", path.display())]
    Refused {
        /// The operation, as a verb with its object.
        action: &'static str,
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
}

impl RecordingError {
    pub fn refused(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.into();
        move |source| RecordingError::Refused { action, path, source }
    }

    /// Like [`RecordingError::refused`]; an input that is not a regular file, or is too long, is damage.
    pub fn unreadable(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.into();
        move |source| match unfit(&source) {
            Some(UnfitInput::Type(found)) => RecordingError::damaged(path, format!("{found} is in its place")),
            Some(unfit) => RecordingError::damaged(path, unfit),
            None => RecordingError::Refused { action, path, source },
        }
    }

    pub fn damaged(path: impl Into<PathBuf>, what: impl ToString) -> RecordingError {
        RecordingError::Damaged { path: path.into(), what: what.to_string() }
    }
}

impl Explain for RecordingError {
    fn explain(&self) -> Failure {
        match self {
            RecordingError::Missing { .. } => {
                Failure::request(self).hint("`latlab list` shows the recordings of a store")
            }
            RecordingError::NotADirectory { due, .. } => {
                Failure::request(self).hint(format!("name the directory of a {due}"))
            }
            RecordingError::NotARecording { .. } => Failure::request(self)
                .because("it has no `manifest.json`")
                .hint("`latlab list` shows the recordings of a store"),
            RecordingError::Damaged { what, .. } => Failure::request(self)
                .because(what)
                .hint("a damaged recording cannot be rebuilt: restore it from a copy"),
            RecordingError::NewerVersion { .. } => Failure::request(self)
                .because(format!("this latlab reads formats up to {}.x", FormatVersion::CURRENT.major))
                .hint("read it with the latlab that wrote it, or a newer one"),
            RecordingError::Busy { pid, .. } => Failure::world(self)
                .because(format!("process {pid} holds its `events.spool`"))
                .hint("wait for its end, or end that process; the recording is kept"),
            RecordingError::Exists { .. } => {
                Failure::request(self).hint("name a new directory, or leave `--output` out to get a fresh name")
            }
            RecordingError::Vanished { .. } => Failure::world(self).hint(
                "what was measured until then was written to that path again; keep the store until the run has ended",
            ),
            RecordingError::Refused { source, action, .. } => {
                Failure::world(self).because(errno::explain(source)).hint(match source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        "free some space, or name another place with `--store`; what was measured is kept"
                    }
                    _ if *action == "remove" => "the owner of the directory above can remove it: see with `ls -ld`",
                    // A writable place does not help with reading.
                    _ if action.starts_with("read") || action.starts_with("open") => {
                        "name another one, or see with `ls -ld` who may read it; `list` takes its store from `--store`"
                    }
                    _ if action.starts_with("make temporary") => "name a writable directory in `TMPDIR`",
                    _ => "name a writable place with `--store`, or measure with `--no-record`",
                })
            }
        }
    }
}
