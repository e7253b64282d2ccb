//! What a load was asked to be, and what it was found to be.

use serde::{Deserialize, Serialize};

use super::StreamReport;
use crate::units::Nanos;

/// One load at one end, over the measuring part of a run.
///
/// Words rather than enums: a reader of this version opens what a later one has added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The load in the words of the command line, without its place: `cpu=80%:period=10ms`.
    pub load: String,
    /// `cpu`, `heaters`, `mem` or `net`.
    pub kind: String,
    /// The end that it was made at: `local` or `peer`.
    pub at: String,
    /// What the four figures below count: [`SHARE`], [`CPUS`], [`BYTES_PER_SECOND`], [`BITS_PER_SECOND`] or
    /// [`PACKETS_PER_SECOND`].
    pub unit: String,
    /// What was asked for; null: as much as goes.
    pub offered: Option<f64>,
    /// The mean over `measured_ns`; null where that is too short to say.
    pub achieved: Option<f64>,
    /// The least of the 100 ms windows; null where there was no whole one.
    pub min: Option<f64>,
    /// The most of them.
    pub max: Option<f64>,
    /// The least and the most of all 5 s windows, which start 100 ms apart; null where there was no whole one.
    #[serde(default)]
    pub five_seconds: Option<[f64; 2]>,
    /// How long the figures were gathered.
    pub measured_ns: Option<Nanos>,
    /// How long one burst and the rest after it take together; null where the load has none.
    #[serde(default)]
    pub period_ns: Option<Nanos>,
    /// The CPUs that made it; empty where that was left to the system.
    #[serde(default)]
    pub cpus: Vec<u16>,
    /// Why it ended before it was told to; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// What both ends of a network load counted; null for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamReport>,
}

impl LoadReport {
    /// This load, which ended before it was told to, for that `reason`.
    pub fn that_ended_early(self, reason: impl Into<String>) -> LoadReport {
        LoadReport { ended_early: Some(reason.into()), ..self }
    }
}

/// CPU time of the load as a share of its CPUs' time, 0 to 1.
pub const SHARE: &str = "share";
/// CPU time of the load over elapsed time: how many CPUs it had.
pub const CPUS: &str = "cpus";
/// Bytes read and bytes written, added up, a second.
pub const BYTES_PER_SECOND: &str = "bytes_per_second";
/// Payload bits a second.
pub const BITS_PER_SECOND: &str = "bits_per_second";
/// Packets a second.
pub const PACKETS_PER_SECOND: &str = "packets_per_second";
