//! Why a log is not imported, with its line and column.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFault {
    /// Number of the line, from 1; the caller fills it in for a format of lines.
    pub line: Option<u64>,
    /// Byte of the line, from 1; `None` if the fault is of the whole log.
    pub column: Option<u64>,
    pub what: String,
    pub hint: Option<String>,
    /// Whether it is of one row, without which the others are right.
    pub is_skippable: bool,
}

impl LogFault {
    pub fn at(column: usize, what: impl Into<String>) -> LogFault {
        LogFault { line: None, column: Some(column as u64), what: what.into(), hint: None, is_skippable: true }
    }

    pub fn whole(what: impl Into<String>) -> LogFault {
        LogFault { line: None, column: None, what: what.into(), hint: None, is_skippable: false }
    }

    /// A fault that other rows have too: the figures would be wrong if `--skip-bad` skipped some of them.
    #[must_use]
    pub(super) fn of_all_rows(self) -> LogFault {
        LogFault { is_skippable: false, ..self }
    }

    /// Where and what: ``line 3, column 7: `abc` is not a number``.
    pub fn in_words(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: {}", self.what),
            (Some(line), None) => format!("line {line}: {}", self.what),
            (None, _) => self.what.clone(),
        }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> LogFault {
        LogFault { hint: Some(hint.into()), ..self }
    }
}
