//! What can be wrong with a recording, or with the place where one shall be made.

use std::io;
use std::path::PathBuf;

use latlab_sys::errno::explain;
use thiserror::Error;

use super::manifest::FormatVersion;

/// A recording that cannot be made, finished or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// Nothing stands at the path.
    #[error("no recording at `{}`", path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// A file stands where a directory is due.
    #[error("`{}` is a file, and a {due} is a directory", path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
        /// `recording` or `store`.
        due: &'static str,
    },
    /// A directory, but none that latlab made.
    #[error("`{}` is not a recording", path.display())]
    NotARecording {
        /// The path as given.
        path: PathBuf,
    },
    /// A file of the recording does not hold what it must.
    #[error("the recording file `{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A later latlab changed the format so that this one would misread it.
    #[error("the recording `{}` has format {}.{}", path.display(), found.major, found.minor)]
    NewerVersion {
        /// The recording.
        path: PathBuf,
        /// Its format.
        found: FormatVersion,
    },
    /// Its run goes on, or another command is finishing it.
    #[error("the recording `{}` is still being written", path.display())]
    Busy {
        /// The recording.
        path: PathBuf,
        /// The process that began to write it.
        pid: u32,
    },
    /// `--output` names something that is there already.
    #[error("cannot make the recording `{}`: it exists already", path.display())]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// The recording's directory went away while it was being measured.
    #[error("the recording `{}` was removed while it was being measured", path.display())]
    Vanished {
        /// Where it was.
        path: PathBuf,
    },
    /// The system refused a step.
    #[error("cannot {action} `{}`", path.display())]
    Refused {
        /// The step, as a verb with its object.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RecordingError {
    /// Why, in one line; none where the message says it already.
    pub fn cause(&self) -> Option<String> {
        match self {
            RecordingError::Damaged { what, .. } => Some(what.clone()),
            RecordingError::NewerVersion { .. } => {
                let readable = FormatVersion::CURRENT;
                Some(format!("this latlab reads formats up to {}.x", readable.major))
            }
            RecordingError::NotARecording { .. } => Some("it has no `manifest.json`".into()),
            RecordingError::Busy { pid, .. } => Some(format!("process {pid} holds its `events.spool`")),
            RecordingError::Refused { source, .. } => Some(explain(source)),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            RecordingError::Missing { .. } | RecordingError::NotARecording { .. } => {
                "`latlab list` shows the recordings of a store".into()
            }
            RecordingError::NotADirectory { due, .. } => format!("name the directory of a {due}"),
            RecordingError::Damaged { .. } => {
                "what a finished recording once held cannot be derived again: restore it from a copy".into()
            }
            RecordingError::NewerVersion { .. } => "read it with the latlab that wrote it, or a newer one".into(),
            RecordingError::Busy { .. } => "wait for its end, or end that process; the recording is kept".into(),
            RecordingError::Exists { .. } => "name a new directory, or leave `--output` out to get a fresh name".into(),
            RecordingError::Vanished { .. } => {
                "what was measured until then was written to that path again; keep the store until the run has ended"
                    .into()
            }
            RecordingError::Refused { source, action, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space, or name another place with `--store`; what was measured is kept".into()
                }
                _ if is_reading(action) => {
                    "name another one, or see with `ls -ld` who may read it; `list` takes its store from `--store`"
                        .into()
                }
                _ => "name a writable place with `--store`, or measure with `--no-record`".into(),
            },
        })
    }

    /// 2: the request is wrong or the input damaged; 3: the world refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            RecordingError::Busy { .. } | RecordingError::Vanished { .. } | RecordingError::Refused { .. } => 3,
            _ => 2,
        }
    }

    pub(crate) fn refused(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.into();
        move |source| RecordingError::Refused { action, path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl ToString) -> RecordingError {
        RecordingError::Damaged { path: path.into(), what: what.to_string() }
    }
}

/// Whether the step only looks: whoever may not is not helped by a place to write.
fn is_reading(action: &str) -> bool {
    action.starts_with("read") || action.starts_with("open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_in_words_and_never_a_raw_os_error() {
        let refused = RecordingError::refused("write", "/store")(io::Error::from_raw_os_error(28));
        assert_eq!(refused.to_string(), "cannot write `/store`");
        assert_eq!(refused.cause().as_deref(), Some("no space left on device (ENOSPC)"));
        assert_eq!(refused.exit_code(), 3);
    }

    #[test]
    fn who_may_not_read_is_not_told_where_to_write() {
        let hint = |action| RecordingError::refused(action, "/root")(io::Error::from_raw_os_error(13)).hint();
        for action in ["read the store", "open", "read"] {
            assert!(
                hint(action).is_some_and(|hint| !hint.contains("writable") && hint.contains("read it")),
                "{action}"
            );
        }
        assert!(hint("make the store").is_some_and(|hint| hint.contains("writable")));
    }

    #[test]
    fn damaged_input_is_a_wrong_request() {
        let damaged = RecordingError::damaged("/r/manifest.json", "0 bytes");
        assert_eq!((damaged.exit_code(), damaged.cause().as_deref()), (2, Some("0 bytes")));
        assert!(damaged.hint().is_some());
    }
}
