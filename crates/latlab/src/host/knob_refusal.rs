//! Why something was not set. Whatever had been set before is put back by then, or stays in the journal.

use std::io;
use std::path::PathBuf;

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

/// Why a setting does not hold.
#[derive(Debug, Error)]
pub enum KnobError {
    /// The host does not have the knob, or not with this value. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Absent {
        /// As it was typed.
        setting: String,
        /// What is missing.
        cause: String,
        /// What could be set instead.
        hint: String,
    },
    /// Two settings of one run turn it. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Twice {
        /// As it was typed.
        setting: String,
        /// Where exactly.
        place: String,
        /// The setting before it.
        before: String,
    },
    /// Another latlab has its hand on it. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Taken {
        /// As it was typed.
        setting: String,
        /// Where exactly.
        place: String,
        /// Whose it is.
        pid: u32,
        /// Whether that one has started this process: then both ends of one measurement are on one host.
        of_the_same_run: bool,
    },
    /// A latlab that died has left it changed, and it could not be put back. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Left {
        /// As it was typed.
        setting: String,
        /// Where exactly.
        place: String,
        /// Who set it.
        pid: u32,
        /// What tells of it.
        page: PathBuf,
    },
    /// Nothing can be journalled. Nothing was changed.
    #[error("cannot journal what `--set` changes in `{path}`")]
    Journal {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The host refused to read or to write the value.
    #[error("cannot set `{setting}` at `{place}`")]
    Refused {
        /// As it was typed.
        setting: String,
        /// Where exactly.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// The host took the value and shows another one.
    #[error("`{setting}` did not come about at `{place}`")]
    Differs {
        /// As it was typed.
        setting: String,
        /// Where exactly.
        place: String,
        /// What was written.
        wanted: String,
        /// What was read.
        found: String,
    },
}

impl KnobError {
    /// The reason in one line.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            KnobError::Absent { cause, .. } => cause.clone(),
            KnobError::Twice { setting, place, before } if setting == before => {
                format!("it sets `{place}` more than once")
            }
            KnobError::Twice { place, before, .. } => format!("`{before}` sets `{place}` already"),
            KnobError::Taken { place, pid, of_the_same_run: true, .. } => format!(
                "both ends are on one host, and the latlab that measures, process id {pid}, has set `{place}` already"
            ),
            KnobError::Taken { place, pid, .. } => format!("the latlab with process id {pid} holds `{place}`"),
            KnobError::Left { place, pid, .. } => {
                format!("a latlab that died (process id {pid}) had set `{place}`, and that is not undone yet")
            }
            KnobError::Journal { source, .. } | KnobError::Refused { source, .. } => explain(source),
            KnobError::Differs { wanted, found, .. } => format!("it reads `{found}` after `{wanted}` was written"),
        })
    }

    /// What to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            KnobError::Absent { hint, .. } => hint.clone(),
            KnobError::Twice { .. } => "give each knob once".into(),
            KnobError::Taken { of_the_same_run: true, .. } => {
                "set it for one end: leave `@both` out, and it holds for the whole host".into()
            }
            KnobError::Taken { .. } => "wait for its end: each would put back what the other has set".into(),
            KnobError::Left { page, .. } => {
                format!(
                    "`latlab doctor --restore` puts it back, or says why not; what was there stands in `{}`",
                    page.display()
                )
            }
            KnobError::Journal { .. } => {
                "nothing was changed; `LATLAB_STATE_DIR` names another directory for the journal".into()
            }
            KnobError::Refused { source, .. } => match Errno::from_io_error(source) {
                Some(Errno::PERM | Errno::ACCESS) => {
                    "settings of the host need root: `sudo latlab …`, or leave this `--set` out".into()
                }
                Some(Errno::INVAL) => "this host does not take that value; leave this `--set` out, or change it".into(),
                _ => "leave this `--set` out, or see what holds the value".into(),
            },
            KnobError::Differs { .. } => {
                "the driver, or somebody else on this host, decided otherwise; leave this `--set` out".into()
            }
        })
    }

    /// 2: the request contradicts itself. 3: the world refuses.
    pub const fn exit_code(&self) -> u8 {
        match self {
            KnobError::Twice { .. } => 2,
            _ => 3,
        }
    }
}
