use std::io;
use std::path::PathBuf;

use latlab_sys::errno::explain;
use thiserror::Error;

/// A file of numbers that cannot be read.
#[derive(Debug, Error)]
pub enum NumbersError {
    /// The system gives no access to it.
    #[error("cannot read `{}`", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line does not hold a number where one is due.
    #[error("cannot read `{value}` on line {line} of `{name}` as a number")]
    NotANumber {
        /// The file, or `<stdin>`.
        name: String,
        /// From 1.
        line: u64,
        /// What stands there.
        value: String,
        /// In which column, from 1.
        column: usize,
    },
}

impl NumbersError {
    /// Why.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            NumbersError::Refused { source, .. } => explain(source),
            NumbersError::NotANumber { column, .. } => {
                format!("column {column} of each line holds one observation, a finite decimal number")
            }
        })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            NumbersError::Refused { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "see the path; `-` is standard input".into(),
                _ => "see whose it is and what may be done with it: `ls -ld`".into(),
            },
            NumbersError::NotANumber { .. } => {
                "`-C N` picks another column, `-d DELIMS` splits otherwise; a line that begins with `#` is left out"
                    .into()
            }
        })
    }

    /// 2: no such file, or not one of numbers. 3: the system refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            NumbersError::Refused { source, .. } if source.kind() != io::ErrorKind::NotFound => 3,
            _ => 2,
        }
    }
}
