//! What a stream was asked to be and what it was found to be, as plain data.

use serde::{Deserialize, Serialize};

use super::LoadReport;
use super::load::BITS_PER_SECOND;
use crate::units::Nanos;

/// A rate over a stream's life and over its windows of about 100 ms, in bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowedRate {
    /// Over all windows together.
    pub mean_bps: f64,
    /// In the slowest window.
    pub min_bps: f64,
    /// In the fastest window.
    pub max_bps: f64,
}

/// A stream, told by both of its ends. Bits are payload bits, or bits on an Ethernet wire where `wire` says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// UDP payload of each packet.
    pub size_bytes: u32,
    /// Rates count an Ethernet wire's bits.
    pub wire: bool,
    /// The rate asked for; none: as fast as sends go.
    pub offered_bps: Option<f64>,
    /// The rate that the path carried without loss, where that was searched for.
    pub searched_bps: Option<f64>,
    /// Trials of that search; 0 where there was none.
    pub search_trials: u32,
    /// What the kernel took, on the sender's clock; none where there was no whole window.
    pub sent: Option<WindowedRate>,
    /// What arrived, on the reflector's clock.
    pub delivered: Option<WindowedRate>,
    /// Windows.
    pub windows: u64,
    /// How long they were together, on the reflector's clock; none where there was no whole one.
    pub measured_ns: Option<Nanos>,
    /// Packets that the kernel took.
    pub sent_packets: u64,
    /// Due packets given up because the sender was more than 100 ms behind.
    pub skipped_packets: u64,
    /// Packets that the kernel refused for want of room.
    pub refused_packets: u64,
    /// Packets that arrived, each once.
    pub delivered_packets: u64,
    /// Packets sent that did not arrive.
    pub lost_packets: u64,
    /// Packets that arrived after one that was sent later (RFC 4737).
    pub reordered_packets: u64,
    /// Packets that arrived again.
    pub duplicate_packets: u64,
    /// Datagrams that the reflector's socket dropped meanwhile, whosever they were; none where it does not tell.
    pub socket_drops: Option<u64>,
}

impl StreamReport {
    /// A load of which nothing is known but what was asked for: its process fell silent.
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

    /// The stream as a load, in the words of the command line `load`, made at `at`.
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
