//! Reports of loads: what was asked for, and what was achieved.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One load at one end, over the measuring phase of a run.
///
/// Kinds and units are strings instead of enums, so that a reader can open reports of later versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// As on the command line, without its place: `cpu=80%:period=10ms`.
    pub load: String,
    /// `cpu`, `heaters`, `mem` or `net`.
    pub kind: String,
    /// The end of the load: `local` or `peer`.
    pub at: String,
    /// The unit of the figures below: [`SHARE`], [`CPUS`], [`BYTES_PER_SECOND`] or [`BITS_PER_SECOND`].
    pub unit: String,
    /// As asked for; null: as much as possible.
    pub offered: Option<f64>,
    /// The mean over `measured_ns`; null if that is too short.
    pub achieved: Option<f64>,
    /// The least of the 100 ms windows; null without a complete one.
    pub min: Option<f64>,
    /// The greatest of the 100 ms windows.
    pub max: Option<f64>,
    /// The least and the greatest of all 5 s windows, which start 100 ms apart; null without a complete one.
    #[serde(default)]
    pub five_seconds: Option<[f64; 2]>,
    /// The time that the figures cover.
    pub measured_ns: Option<Nanos>,
    /// The period of a burst and the pause after it; null for a load without bursts.
    #[serde(default)]
    pub period_ns: Option<Nanos>,
    /// Its CPUs; empty if the system places it.
    #[serde(default)]
    pub cpus: Vec<u16>,
    /// Why it ended before the run; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// The counts of both ends of a network load; null for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamReport>,
}

impl LoadReport {
    /// Marks the load as ended before the run for `reason`.
    pub fn that_ended_early(self, reason: impl Into<String>) -> LoadReport {
        LoadReport { ended_early: Some(reason.into()), ..self }
    }
}

/// CPU time of the load as a share of its CPUs' time, 0 to 1.
pub const SHARE: &str = "share";
/// CPU time of the load over elapsed time: the number of CPUs that it had.
pub const CPUS: &str = "cpus";
/// Bytes read and written, in sum, a second.
pub const BYTES_PER_SECOND: &str = "bytes_per_second";
/// Payload bits a second.
pub const BITS_PER_SECOND: &str = "bits_per_second";

/// The rate of a stream over windows of about 100 ms, in bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowedRate {
    pub mean_bps: f64,
    pub min_bps: f64,
    pub max_bps: f64,
}

/// The counts of both ends of a stream. Bits are payload bits, or bits on an Ethernet wire if `wire` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    pub size_bytes: u32,
    /// Whether rates count bits on an Ethernet wire.
    pub wire: bool,
    /// The rate asked for; null: unlimited.
    pub offered_bps: Option<f64>,
    /// The rate that the path carried without loss, if it was searched for.
    pub searched_bps: Option<f64>,
    /// Trials of that search; 0 without one.
    pub search_trials: u32,
    /// The rate accepted by the kernel of the sender, on its clock; null without a complete window.
    pub sent: Option<WindowedRate>,
    /// The rate received, on the clock of the reflector.
    pub delivered: Option<WindowedRate>,
    pub windows: u64,
    /// Length of all windows, on the clock of the reflector; null without a complete one.
    pub measured_ns: Option<Nanos>,
    /// Packets accepted by the kernel of the sender.
    pub sent_packets: u64,
    /// Due packets skipped because the sender was more than 100 ms behind.
    pub skipped_packets: u64,
    /// Packets that the kernel of the sender refused because its buffer was full.
    pub refused_packets: u64,
    pub delivered_packets: u64,
    /// Packets sent and not received.
    pub lost_packets: u64,
    /// Packets received after one that was sent later (RFC 4737).
    pub reordered_packets: u64,
    pub duplicate_packets: u64,
    /// Datagrams dropped by the socket of the reflector, of all sessions; null if unknown.
    pub socket_drops: Option<u64>,
}

impl StreamReport {
    /// The report of a load whose process ended without one.
    pub fn lost(load: String, at: String, offered_bps: Option<f64>) -> LoadReport {
        LoadReport {
            load,
            kind: "net".into(),
            at,
            unit: BITS_PER_SECOND.into(),
            offered: offered_bps,
            achieved: None,
            min: None,
            max: None,
            five_seconds: None,
            measured_ns: None,
            period_ns: None,
            cpus: Vec::new(),
            ended_early: None,
            stream: None,
        }
    }

    /// The stream as the report of `load`, as on the command line, at the end `at`.
    pub fn as_load(&self, load: String, at: String) -> LoadReport {
        let delivered = self.delivered;
        LoadReport {
            achieved: delivered.map(|rate| rate.mean_bps),
            min: delivered.map(|rate| rate.min_bps),
            max: delivered.map(|rate| rate.max_bps),
            measured_ns: self.measured_ns,
            stream: Some(self.clone()),
            ..StreamReport::lost(load, at, self.offered_bps)
        }
    }
}
