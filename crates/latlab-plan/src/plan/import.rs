//! The specification of a run that another tool made, whose log was imported.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use crate::metric::Metric;
use crate::units::Nanos;

/// What is known of a run whose log was imported. What the log does not state is null: no default of latlab is one of the
/// other tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportSpec {
    /// The word of its format: `sockperf`.
    pub format: String,
    /// The log as typed; `-` for standard input.
    pub file: String,
    pub rows: Kind,
    /// The metric of its values; null if the rows have instants.
    pub metric: Option<Metric>,
    /// The unit that `--unit` stated for its values; null if the log states it.
    pub unit: Option<String>,
    /// The column that `--column` chose.
    pub column: Option<String>,
    /// The direction that `--direction` chose.
    pub direction: Option<String>,
    /// Whether the order of its values is known.
    pub ordered: bool,
    /// Whether the log states its losses. If it does not, those that it has are a lower bound.
    #[serde(default)]
    pub states_losses: bool,
    /// Whether the unit of its values is an assumption: neither the log nor `--unit` states it.
    #[serde(default)]
    pub unit_assumed: bool,
    /// Whether its values were half round trips, which were doubled.
    pub halves_doubled: bool,
    /// Transport payload of every packet.
    pub size_bytes: Option<u32>,
    /// The interval between two rows that was asked for.
    pub interval_ns: Option<Nanos>,
    /// The resolution of its values.
    pub resolution_ns: Option<Nanos>,
}
