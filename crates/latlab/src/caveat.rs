//! Warnings as values: a cause with its numbers, what it does to the result, and the remedy.

use serde::{Deserialize, Serialize};

/// How much a caveat spoils a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The figures may mislead.
    Warning,
    /// The figures must not be trusted: exit code 4.
    Fatal,
}

/// One thing to know about a run before believing it. Travels to every renderer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Stable kebab-case name, listed in docs/metrics.md.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// What was seen, with numbers.
    pub message: String,
    /// What it does to the figures.
    pub effect: String,
    /// What to do about it.
    pub hint: String,
}

impl Caveat {
    /// A caveat of `severity` named `code`.
    pub fn new(
        severity: Severity,
        code: &str,
        message: impl Into<String>,
        effect: impl Into<String>,
        hint: impl Into<String>,
    ) -> Caveat {
        Caveat { code: code.into(), severity, message: message.into(), effect: effect.into(), hint: hint.into() }
    }
}
