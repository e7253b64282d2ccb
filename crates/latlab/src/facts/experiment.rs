//! Where a run stands in an experiment, as plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The place of a run in its experiment: all that a comparison needs beside the run itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentFacts {
    /// The experiment's id, 16 hexadecimal digits.
    pub experiment: String,
    /// The number of its condition, from 1, in the order of the experiment's file.
    pub condition: u32,
    /// The factors that make the condition, as typed: option → value.
    pub factors: BTreeMap<String, String>,
    /// The block, from 1: inside of one the runs of all conditions were interleaved.
    pub block: u32,
    /// The run's place in the order of its block, from 1, runs that warm up included.
    pub position: u32,
    /// The kernel's id of the boot that the block ran in; null where it could not be read.
    pub boot_id: Option<String>,
    /// It warms the block up: kept and not judged.
    pub warmup: bool,
}
