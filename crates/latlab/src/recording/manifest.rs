//! `manifest.json`: everything about a run that is not a row. Facts and settings, never statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostics::Caveat;
use crate::facts::{
    ClockAnchor, ClockRelation, ConnectionFacts, ExperimentFacts, HostFacts, Instrument, LoadReport, RateSearchFacts,
    ReflectorReport, SettingFacts, StageFacts, StreamFacts, WakeupFacts,
};
use crate::plan::{Condition, Kind, RunSpec};
use crate::units::Nanos;

/// The version of the recording format: a reader refuses another major, and accepts a newer minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Raised when an old reader would misread.
    pub major: u16,
    /// Raised when nullable columns or optional keys are added.
    pub minor: u16,
}

impl FormatVersion {
    /// What this latlab writes.
    pub const CURRENT: FormatVersion = FormatVersion { major: 1, minor: 5 };
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnding {
    /// The manifest as first written; the run goes on, or its process died.
    Measuring,
    /// Its own stop rule.
    Completed,
    /// SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    Interrupted,
    /// The world broke: see `reason`.
    Failed,
    /// The process died without a word; a later command finished the recording from the spool.
    Recovered,
}

/// One end of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndFacts {
    /// The host before the run; null where it was not ours to ask.
    pub before: Option<HostFacts>,
    /// The host after the run.
    pub after: Option<HostFacts>,
    /// Where the clocks stood at the start.
    pub clock_start: Option<ClockAnchor>,
    /// Where the clocks stood at the end.
    pub clock_end: Option<ClockAnchor>,
}

/// The condition that tells the largest payload which crosses the path in one packet, in bytes.
pub const UNFRAGMENTED_BYTES: &str = "path.unfragmented-bytes";

/// What the run itself saw, beside its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The address measured from, `ADDR:PORT`.
    pub local_address: Option<String>,
    /// The address measured to.
    pub peer_address: Option<String>,
    /// The reflector's own counters.
    pub reflector: Option<ReflectorReport>,
    /// How latlab's own reflector process died while it was measured against: `killed by SIGKILL`. Null where it did
    /// not, or where the reflector is not ours.
    #[serde(default)]
    pub reflector_died: Option<String>,
    /// Datagrams that reached the socket and were no valid answer: reason → count.
    pub strays: BTreeMap<String, u64>,
    /// Events thrown away because the ring was full.
    pub gap_events: u64,
    /// Time that a closed loop spent waiting for answers that did not come in time, after the warm-up.
    pub timed_out_ns: Nanos,
    /// Time that a closed loop paused after sends that the kernel refused, after the warm-up.
    #[serde(default)]
    pub refused_pause_ns: Nanos,
    /// errno and count of errors that the socket reported about earlier datagrams (ICMP) in the measuring phase.
    pub socket_errors: BTreeMap<String, u64>,
    /// Conditions of the path that were not asked for but found or made: `lab` switches checksums off.
    pub conditions: BTreeMap<String, String>,
    /// Until when the run listened for answers, on the sender's clock; null: for the whole time-out of every probe.
    #[serde(default)]
    pub listened_until_ns: Option<i64>,
    /// Probes that were unanswered, but not yet for a whole time-out, when the run stopped listening: they have no
    /// row, since nobody can know their fate.
    #[serde(default)]
    pub undecided_probes: u64,
    /// Answers to probes of which the recording knows nothing, because a gap swallowed them.
    #[serde(default)]
    pub orphan_answers: u64,
    /// Places in the spool that held no event: a power cut tears holes.
    #[serde(default)]
    pub unreadable_events: u64,
    /// Datagrams that the kernel threw away at the sender's own socket; null: unknown.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// What the kernel told of the sender's TCP connection; null where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionFacts>,
    /// How the threads slept; null where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakeup: Option<WakeupFacts>,
    /// How the ends of a stream were set up; null where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamFacts>,
    /// What the search for a rate saw; null where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearchFacts>,
    /// The stages of a stream that had probes beside it, or whose rate was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFacts>,
}

/// What made the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Software {
    /// `latlab`, or the tool whose log was imported.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the whole directory.
    pub format: FormatVersion,
    /// The run's id, 16 hexadecimal digits; its first four stand in the directory's name.
    pub run_id: String,
    /// What kind of rows.
    pub kind: Kind,
    /// UTC start, RFC 3339.
    pub started_at: String,
    /// The settled specification.
    pub spec: RunSpec,
    /// The same as factors.
    pub condition: Condition,
    /// Where it stands in an experiment; null where it is none of one.
    #[serde(default)]
    pub experiment: Option<ExperimentFacts>,
    /// This end.
    pub here: EndFacts,
    /// The other end.
    pub peer: EndFacts,
    /// What the far host's CLOCK_MONOTONIC is on this one's: its host samples were converted by it. Null where no agent
    /// stands at the far end, or was lost before the end.
    #[serde(default)]
    pub clock_relation: Option<ClockRelation>,
    /// What the loads of the run reached while it measured; all runs of one command have them in common.
    #[serde(default)]
    pub loads: Vec<LoadReport>,
    /// What the run saw.
    pub run: RunFacts,
    /// What was set for the run, and how it was put back.
    #[serde(default)]
    pub settings: Vec<SettingFacts>,
    /// The floor.
    pub instrument: Instrument,
    /// Caveats that the run itself raised (those of the analysis are derived again each time).
    pub caveats: Vec<Caveat>,
    /// What wrote this.
    pub software: Software,
    /// How it ended.
    pub ending: RunEnding,
    /// Why, where it did not end by its own rule.
    pub reason: Option<String>,
    /// Rows in the data file, once it is finished.
    pub rows: Option<u64>,
    /// Rows in `wakeups.parquet`, once it is finished; null where there is none.
    #[serde(default)]
    pub wakeup_rows: Option<u64>,
    /// Rows in `intervals.parquet`, once it is finished; null where there is none.
    #[serde(default)]
    pub interval_rows: Option<u64>,
    /// Rows in `probes.parquet` beside `intervals.parquet`, once it is finished; null where there is none.
    #[serde(default)]
    pub probe_rows: Option<u64>,
    /// Rows in `host.parquet`, once it is finished; null where there is none.
    #[serde(default)]
    pub host_rows: Option<u64>,
}

impl Manifest {
    /// The manifest of a run of `spec` before anything is known of it but who writes it.
    pub fn of(spec: RunSpec, run_id: String, started_at: String) -> Manifest {
        Manifest {
            format: FormatVersion::CURRENT,
            run_id,
            kind: spec.kind(),
            started_at,
            condition: Condition::of(&spec),
            spec,
            experiment: None,
            here: EndFacts::default(),
            peer: EndFacts::default(),
            clock_relation: None,
            loads: Vec::new(),
            run: RunFacts::default(),
            settings: Vec::new(),
            instrument: Instrument::default(),
            caveats: Vec::new(),
            software: Software { name: "latlab".into(), version: env!("CARGO_PKG_VERSION").into() },
            ending: RunEnding::Measuring,
            reason: None,
            rows: None,
            wakeup_rows: None,
            interval_rows: None,
            probe_rows: None,
            host_rows: None,
        }
    }
}
