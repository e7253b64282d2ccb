//! What was set on a host for the time of a run, and how it was put back.

use serde::{Deserialize, Serialize};

/// One setting at one end: what stood there, what was set, what came of it. Numbers are in the kernel's units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFacts {
    /// As it can be typed: `governor=performance`.
    pub setting: String,
    /// `local` or `peer`.
    pub at: String,
    /// Where exactly: a file, or an interface and what of it.
    pub place: String,
    /// At so many places, all with the values below; `place` is the first of them.
    pub places: u32,
    /// Under this root, where it was not a setting of the host itself but of a picture of one (`LATLAB_HOST_ROOT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What stood there before.
    pub before: String,
    /// What was set.
    pub set: String,
    /// What was read back.
    pub read_back: Option<String>,
    /// How it was put back; null while it was not yet.
    pub ended: Option<Restoration>,
}

/// How a value was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Restoration {
    /// As it was before.
    Restored,
    /// Somebody else had set another value meanwhile, which was left alone.
    Changed {
        /// That value.
        found: String,
    },
    /// It could not be read or written any more.
    Failed {
        /// Why.
        reason: String,
    },
}
