//! What a look at a host found.

use serde::{Deserialize, Serialize};

/// How much a finding spoils a measurement. Ordered from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// The measurement asked for cannot succeed here, or its figures would mean something else.
    Blocker,
    /// The figures will be worse or wilder than they need be.
    Warning,
    /// Worth knowing.
    Note,
    /// Looked at, and in order.
    Fine,
}

/// One finding, with the command that mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable kebab-case name.
    pub code: String,
    /// How bad.
    pub severity: FindingSeverity,
    /// What was found, with numbers.
    pub message: String,
    /// The command, or the option, that mends it; none where nothing needs or can be mended.
    pub fix: Option<String>,
}

impl Finding {
    /// A finding with a remedy.
    pub fn new(severity: FindingSeverity, code: &str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity, message: message.into(), fix: Some(fix.into()) }
    }

    /// Something to know that nothing mends.
    pub fn note(code: &str, message: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity: FindingSeverity::Note, message: message.into(), fix: None }
    }

    /// Something that is in order.
    pub fn fine(code: &str, message: impl Into<String>) -> Finding {
        Finding { code: code.into(), severity: FindingSeverity::Fine, message: message.into(), fix: None }
    }
}
