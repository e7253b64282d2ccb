//! The condition of a run: what a comparison groups by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{RunSpec, WaitMode};
use crate::units::Nanos;

/// The settled factors of one run, flat, as the JSON document shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `local`, `lab`, `HOST:PORT`, `ssh:HOST` or `cmd:COMMAND`.
    pub target: String,
    /// `udp`.
    pub transport: String,
    /// `native` or `echo`.
    pub protocol: String,
    /// Transport payload.
    pub size_bytes: u32,
    /// `closed`, `periodic` or `poisson`.
    pub schedule: String,
    /// The (mean) gap of a schedule.
    pub interval_ns: Option<Nanos>,
    /// How this end waits.
    pub wait: WaitMode,
    /// The source port, where one was asked for.
    pub source_port: Option<u16>,
    /// Loads asked for, in the words of the command line.
    pub loads: Vec<String>,
    /// Settings made: `KNOB[:DEV][@WHERE]` → value.
    pub settings: BTreeMap<String, String>,
    /// The user's own words.
    pub tags: BTreeMap<String, String>,
}

impl Condition {
    /// The condition that `spec` asks for.
    pub fn of(spec: &RunSpec) -> Condition {
        let ping = spec.ping();
        Condition {
            target: spec.target.to_string(),
            transport: "udp".into(),
            protocol: match ping.protocol {
                super::Protocol::Native => "native".into(),
                super::Protocol::Echo => "echo".into(),
            },
            size_bytes: ping.size_bytes,
            schedule: ping.schedule.word().into(),
            interval_ns: ping.schedule.interval(),
            wait: spec.here.wait,
            source_port: ping.path.source_port,
            loads: spec.loads.iter().map(ToString::to_string).collect(),
            settings: super::setting::as_condition(&spec.settings),
            tags: spec.tags.clone(),
        }
    }
}
