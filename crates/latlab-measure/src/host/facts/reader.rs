//! Collects facts until a deadline, and a reason for each unknown fact. Small parsers for files of `/proc`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The reason for facts that come from system calls and programs, if the host is a directory of files.
pub(super) const NOT_THIS_HOST: &str = "only the files of this host can be read";

/// How long reading all facts may take. Files of the kernel answer within microseconds; a broken driver, a machine with
/// thousands of interrupts, or a program that hangs must not delay a measurement.
const PATIENCE: Duration = Duration::from_secs(1);

/// One reading of the facts of a host.
pub(super) struct FactReader {
    deadline: Instant,
    unknown: BTreeMap<String, String>,
}

impl FactReader {
    pub(super) fn new(start: Instant) -> FactReader {
        FactReader { deadline: start + PATIENCE, unknown: BTreeMap::new() }
    }

    /// The result of `read`; the reason of an error is kept under the name of the field.
    pub(super) fn fact<T>(&mut self, field: &str, read: impl FnOnce() -> Result<T, String>) -> Option<T> {
        let fact = if self.left().is_zero() { Err("there was no time left to read it".into()) } else { read() };
        fact.map_err(|reason| self.unknown.insert(field.into(), reason)).ok()
    }

    /// Keeps the reason for a null field within a known one.
    pub(super) fn lacks(&mut self, field: String, reason: &str) {
        self.unknown.insert(field, reason.into());
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The reason for each null field.
    pub(super) fn reasons(self) -> BTreeMap<String, String> {
        self.unknown
    }
}

/// The value of the first line `key : value`.
pub(super) fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_after_the_deadline() {
        let mut late = FactReader::new(Instant::now() - PATIENCE);
        assert_eq!(late.fact("a.field", || -> Result<(), String> { panic!("read") }), None);
        assert_eq!(late.reasons()["a.field"], "there was no time left to read it");
    }
}
