//! What is known so far, why the rest is not, and how long there is left to ask.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long reading may take in all. Files of the kernel answer within microseconds; a broken driver, a
/// machine with thousands of interrupts, or a program that hangs must not hold up a measurement.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps the books of one reading.
pub(super) struct FactReader {
    deadline: Instant,
    unknown: BTreeMap<String, String>,
}

impl FactReader {
    /// A reading that began at `start`.
    pub(super) fn from(start: Instant) -> FactReader {
        FactReader { deadline: start + PATIENCE, unknown: BTreeMap::new() }
    }

    /// What `ask` answers; without an answer the reason is kept under the name of the field.
    pub(super) fn fact<T>(&mut self, field: &str, ask: impl FnOnce() -> Result<T, String>) -> Option<T> {
        let answer = if self.left().is_zero() { Err("there was no time left to ask".into()) } else { ask() };
        answer.map_err(|reason| self.unknown.insert(field.into(), reason)).ok()
    }

    /// Why a field inside of one that is known is null.
    pub(super) fn lacks(&mut self, field: String, reason: &str) {
        self.unknown.insert(field, reason.into());
    }

    /// How long there is left.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Why fields are null.
    pub(super) fn reasons(self) -> BTreeMap<String, String> {
        self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_deadline_nothing_is_asked() {
        let mut late = FactReader::from(Instant::now() - PATIENCE);
        assert_eq!(late.fact("a.field", || -> Result<(), String> { panic!("asked") }), None);
        assert_eq!(late.reasons()["a.field"], "there was no time left to ask");
    }
}
