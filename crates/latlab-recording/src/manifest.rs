//! `manifest.json`: everything about a run that is not a row. Facts and settings, never statistics.

use std::collections::BTreeMap;

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::checksums::TableChecksums;
use crate::diagnostics::{Caveat, names_full_disk};
use crate::facts::{
    ClockAnchor, ClockRelation, CommandLine, ConnectionFacts, DdsFacts, ExperimentFacts, HostFacts, ImportFacts,
    Instrument, LoadReport, RateSearchFacts, ReflectorReport, SettingFacts, StageFacts, StampFacts, StreamFacts,
    WakeupFacts, XdpFacts,
};
use crate::metric::Metric;
use crate::plan::{Kind, RunSpec};
use crate::units::Nanos;

/// The version of the recording format: a reader refuses another major, and accepts a newer minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Raised if an old reader would misread the new format.
    pub major: u16,
    /// Raised if nullable columns or optional keys are added, or if another key replaces one that may be null.
    pub minor: u16,
}

impl FormatVersion {
    /// The version that this latlab writes.
    pub const CURRENT: FormatVersion = FormatVersion { major: 1, minor: 13 };

    /// The last version without checksums.
    const WITHOUT_CHECKSUMS: FormatVersion = FormatVersion { major: 1, minor: 5 };

    /// Whether recordings of this version have checksums.
    pub(super) fn has_checksums(self) -> bool {
        self > FormatVersion::WITHOUT_CHECKSUMS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnding {
    /// It has not: the run goes on, or its process was killed.
    Measuring,
    /// By its own stop rule; or, if it has a `reason`, since no probe was answered in its first seconds.
    Completed,
    /// By SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    Interrupted,
    /// By an error: see `reason`.
    Failed,
    /// Its process died; a later command finished the recording from the spool.
    Recovered,
}

/// One end of the path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "StoredEnd")]
pub struct EndFacts {
    /// The host before the run; null if latlab does not run there.
    pub before: Option<HostFacts>,
    /// The host after the run.
    pub after: Option<HostFacts>,
    /// The clocks at the start.
    pub clock_start: Option<ClockAnchor>,
    /// The clocks at the end.
    pub clock_end: Option<ClockAnchor>,
}

/// An end as the manifest has it: facts that are the same before and after the run are stored once.
#[derive(Serialize, Deserialize)]
struct StoredEnd {
    before: Option<HostFacts>,
    /// All facts after the run, in formats before 1.9.
    #[serde(skip_serializing)]
    after: Option<HostFacts>,
    /// The JSON merge patch (RFC 7396) that makes the facts after the run from those before it; null if the former are
    /// unknown.
    changes: Option<Value>,
    clock_start: Option<ClockAnchor>,
    clock_end: Option<ClockAnchor>,
}

impl Serialize for EndFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EndFacts { before, after, clock_start, clock_end } = self.clone();
        let changes =
            after.map(|after| Ok(merge_patch(&serde_json::to_value(&before)?, &serde_json::to_value(after)?)));
        let changes = changes.transpose().map_err(|error: serde_json::Error| S::Error::custom(error))?;
        StoredEnd { before, after: None, changes, clock_start, clock_end }.serialize(serializer)
    }
}

impl TryFrom<StoredEnd> for EndFacts {
    type Error = serde_json::Error;

    fn try_from(stored: StoredEnd) -> Result<EndFacts, serde_json::Error> {
        let StoredEnd { before, after, changes, clock_start, clock_end } = stored;
        let after = match changes {
            Some(changes) => Some(serde_json::from_value(patched(serde_json::to_value(&before)?, changes))?),
            None => after,
        };
        Ok(EndFacts { before, after, clock_start, clock_end })
    }
}

/// The JSON merge patch (RFC 7396) that makes `to` from `from`. A member that is null becomes absent, which means the same
/// in facts.
fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let differs = |(name, value): &(&String, &Value)| from.get(*name) != Some(*value);
    let changed = to.iter().filter(differs).map(|(name, value)| {
        let old = from.get(name).unwrap_or(&Value::Null);
        (name.clone(), merge_patch(old, value))
    });
    gone.chain(changed).collect()
}

/// `target` after a JSON merge patch (RFC 7396, section 2).
fn patched(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut members = match target {
        Value::Object(members) => members,
        _ => serde_json::Map::new(),
    };
    for (name, value) in patch {
        let old = members.remove(&name).unwrap_or_default();
        if !value.is_null() {
            members.insert(name, patched(old, value));
        }
    }
    Value::Object(members)
}

/// The condition that has the largest payload, in bytes, that crosses the path in one packet.
pub const UNFRAGMENTED_BYTES: &str = "path.unfragmented-bytes";

/// The condition that has the address from which the target answers, if that is not the one that is asked.
pub const ANSWERED_FROM: &str = "path.answered-from";

/// The condition that has the version of the agent's latlab, if that is not this one.
pub const AGENT_VERSION: &str = "agent.version";

/// Facts observed in the run, apart from its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The address measured from, `ADDR:PORT`.
    pub local_address: Option<String>,
    pub peer_address: Option<String>,
    pub reflector: Option<ReflectorReport>,
    /// How latlab's own reflector process died during the run: `killed by SIGKILL`. Null if it did not, or if latlab did
    /// not start it.
    #[serde(default)]
    pub reflector_died: Option<String>,
    /// Datagrams at the sender's socket that were not valid answers: reason → count.
    pub strays: BTreeMap<String, u64>,
    /// Events dropped because the ring was full.
    pub gap_events: u64,
    /// Time that a closed loop waited for answers that did not come in time, after the warm-up.
    pub timed_out_ns: Nanos,
    /// Time that a closed loop paused after sends that the kernel refused, after the warm-up.
    #[serde(default)]
    pub refused_pause_ns: Nanos,
    /// Errors that the socket reported about earlier datagrams (ICMP) in the measuring phase: errno → count.
    pub socket_errors: BTreeMap<String, u64>,
    /// Conditions of the path that were found or made without a request: `lab` switches checksums off.
    pub conditions: BTreeMap<String, String>,
    /// Until when the run listened for answers, on the sender's clock; null if for the time-out of every probe.
    #[serde(default)]
    pub listened_until_ns: Option<i64>,
    /// Probes without an answer, sent less than a time-out before the run stopped listening: their fate is unknown, and
    /// they have no row.
    #[serde(default)]
    pub undecided_probes: u64,
    /// Answers to probes whose departure is not recorded, because it fell into a gap.
    #[serde(default)]
    pub orphan_answers: u64,
    /// Places in the spool without an event: a power cut leaves holes.
    #[serde(default)]
    pub unreadable_events: u64,
    /// Events at the end of the spool that no checksum covers, because their writer was killed.
    #[serde(default)]
    pub unchecked_events: u64,
    /// Datagrams that the kernel dropped at the sender's socket; null if unknown.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// The sender's TCP connection (TCP_INFO); null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionFacts>,
    /// The DDS participant; null unless the run was over DDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dds: Option<DdsFacts>,
    /// The AF_XDP socket of the sender; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpFacts>,
    /// The AF_XDP socket of the reflector, or its program that answers; null without either, or if latlab did not start the
    /// reflector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_reflector: Option<XdpFacts>,
    /// Timer slack of the thread that sent, read back before its first slice; null if it is not known, and in runs that
    /// send nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<Nanos>,
    /// How threads slept; null if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakeup: Option<WakeupFacts>,
    /// The kernel's stamps; null without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampFacts>,
    /// What tracing adds to one wake-up of a thread, measured before the run between two threads of one CPU; null if the run
    /// is not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_cost_ns: Option<i64>,
    /// The same on the peer's host; null if that is not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_trace_cost_ns: Option<i64>,
    /// Peak of latlab's resident memory in a run of a command: no execution has less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_resident_bytes: Option<i64>,
    /// Whether the host samples count a service that was started for the run as latlab's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service_counted: bool,
    /// How the ends of a stream were set up; null without a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamFacts>,
    /// The search for a rate; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearchFacts>,
    /// What importing its log found; null unless another tool measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportFacts>,
    /// The stages of a stream with concurrent probes, or whose rate was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFacts>,
}

/// The software that made the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Software {
    /// `latlab`, or the tool whose log was imported.
    pub name: String,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the whole directory.
    pub format: FormatVersion,
    /// The run's id, 16 hexadecimal digits; the first four are in the directory's name.
    pub run_id: String,
    /// The kind of its rows.
    pub kind: Kind,
    /// UTC start, RFC 3339.
    pub started_at: String,
    pub spec: RunSpec,
    /// The command line that made the run; absent in formats before 1.10, and if the file of an experiment made the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// The run's place in an experiment; null outside of one.
    #[serde(default)]
    pub experiment: Option<ExperimentFacts>,
    pub here: EndFacts,
    pub peer: EndFacts,
    /// The far host's CLOCK_MONOTONIC in terms of this one, by which its host samples were converted. Null without an
    /// agent at the far end, or if it was lost before the end.
    #[serde(default)]
    pub clock_relation: Option<ClockRelation>,
    /// Offered and achieved loads in the measuring phase; all runs of one command share them.
    #[serde(default)]
    pub loads: Vec<LoadReport>,
    /// Facts observed in the run.
    pub run: RunFacts,
    /// Settings that were changed for the run, and how they were restored.
    #[serde(default)]
    pub settings: Vec<SettingFacts>,
    /// The cost of the instrument itself.
    pub instrument: Instrument,
    /// Caveats that the run raised; those of the analysis are derived each time.
    pub caveats: Vec<Caveat>,
    /// The software that made the recording.
    pub software: Software,
    pub ending: RunEnding,
    /// Why, if not by its own stop rule.
    pub reason: Option<String>,
    /// Rows in the data file, once it is finished.
    pub rows: Option<u64>,
    /// Rows in `wakeups.parquet`, once it is finished; null without one.
    #[serde(default)]
    pub wakeup_rows: Option<u64>,
    /// Rows in `intervals.parquet`, once it is finished; null without one.
    #[serde(default)]
    pub interval_rows: Option<u64>,
    /// Rows in `probes.parquet` of a recording with `intervals.parquet`, once it is finished; null without one.
    #[serde(default)]
    pub probe_rows: Option<u64>,
    /// Rows in `printed.parquet`, once it is finished; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_rows: Option<u64>,
    /// Rows in `host.parquet`, once it is finished; null without one.
    #[serde(default)]
    pub host_rows: Option<u64>,
    /// Checksums of each table by its name, once it is written; empty in formats before 1.6.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checksums: BTreeMap<String, TableChecksums>,
}

impl Manifest {
    /// The manifest of a run of `spec` that has not begun.
    pub fn new(spec: RunSpec, run_id: String, started_at: String) -> Manifest {
        Manifest {
            format: FormatVersion::CURRENT,
            run_id,
            kind: spec.kind(),
            started_at,
            spec,
            command: None,
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
            printed_rows: None,
            probe_rows: None,
            host_rows: None,
            checksums: BTreeMap::new(),
        }
    }

    /// The main metric of its rows.
    pub fn metric(&self) -> Metric {
        self.spec.import().and_then(|import| import.metric).unwrap_or_else(|| self.kind.metric())
    }

    /// Whether `started_at` is the start of the run: that of a log without times is the time of its import.
    pub fn has_start(&self) -> bool {
        self.run.import.as_ref().is_none_or(|facts| facts.start_known)
    }

    /// Probes of an imported log that are lost according to its totals, and have no row.
    pub fn lost_without_row(&self) -> u64 {
        self.run.import.as_ref().map_or(0, |facts| facts.lost_without_row)
    }

    /// Whether damage to its rows may have gone unnoticed, because its format has no checksums. Rows that were recovered from
    /// an old spool have some, and the spool had none.
    pub fn lacks_checksums(&self) -> bool {
        !self.format.has_checksums()
    }

    /// Whether it ended because the disk was full.
    pub fn ended_by_full_disk(&self) -> bool {
        self.ending == RunEnding::Failed && self.reason.as_deref().is_some_and(names_full_disk)
    }

    /// Forgets the numbers of rows and the checksums: the spool has the data.
    pub(super) fn clear_rows(&mut self) {
        (self.rows, self.wakeup_rows, self.interval_rows) = (None, None, None);
        (self.probe_rows, self.printed_rows, self.host_rows) = (None, None, None);
        self.checksums.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches_are_applied_as_in_the_examples_of_rfc_7396() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(patched(target.clone(), patch.clone()), result, "{target} {patch}");
            assert_eq!(patched(target.clone(), merge_patch(&target, &result)), result, "{target} {result}");
        }
    }

    #[test]
    fn facts_after_a_run_are_stored_as_changes_and_read_as_they_were() {
        let facts = |text: &str| serde_json::from_str::<HostFacts>(text).expect("facts");
        let before = facts(
            r#"{"kernel": "Linux 6.1", "steal_ticks": 7, "governors": ["powersave"], "load_average": [0.1, 0.2, 0.3],
            "counters": {"interrupts": {"41": {"source": "eth", "affinity": "0-1", "counts": {"0": 5, "1": 6}},
            "50": {"source": "disk", "affinity": null, "counts": {"3": 1}}}}, "unknown": {"a": "b", "c": "d"}}"#,
        );
        let after = facts(
            r#"{"kernel": "Linux 6.1", "steal_ticks": 9, "governors": ["performance"], "load_average": [0.1, 0.2, 0.4],
            "counters": {"interrupts": {"41": {"source": "eth", "affinity": null, "counts": {"0": 5, "1": 60}},
            "51": {"source": "usb", "affinity": "2", "counts": {"2": 1}}}}, "unknown": {"c": "d"}, "reading_ns": 3}"#,
        );
        let known = |facts: &HostFacts| Some(facts.clone());
        for (before, after) in [
            (known(&before), known(&after)),
            (known(&before), known(&before)),
            (None, known(&after)),
            (known(&before), None),
            (None, None),
        ] {
            let end = EndFacts { before, after, ..EndFacts::default() };
            let stored = serde_json::to_value(&end).expect("JSON");
            assert!(stored.get("after").is_none(), "{stored:#}");
            assert_eq!(serde_json::from_value::<EndFacts>(stored).expect("reads"), end);
        }
        let end = EndFacts { before: Some(before), after: Some(after), ..EndFacts::default() };
        let changes = &serde_json::to_value(&end).expect("JSON")["changes"];
        assert_eq!(changes["counters"]["interrupts"]["41"], json!({"affinity": null, "counts": {"1": 60}}));
        assert!(changes.get("kernel").is_none(), "{changes:#}");
    }
}
