//! What the instrument itself costs: the floor under every figure.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The floor of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instrument {
    /// clock_getres(CLOCK_MONOTONIC).
    pub clock_resolution_ns: Option<Nanos>,
    /// Median cost of one clock read, measured when the run was armed.
    pub clock_read_ns: Option<f64>,
    /// Median cost of making or checking one tag; null without a key.
    pub tag_ns: Option<f64>,
    /// The bare loop on these pins, if `latlab doctor --calibrate` has measured it.
    pub bare_loop: Option<BareLoop>,
}

/// What the bare loop (send, receive, two clock reads, nothing kept) takes for a round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BareLoop {
    /// Median round trip.
    pub p50_ns: f64,
    /// Its 99th percentile.
    pub p99_ns: f64,
    /// Round trips behind the figures.
    pub n: u64,
    /// Payload.
    pub size_bytes: u32,
    /// `block`, `spin` or `busy-poll`, both ends.
    pub wait: String,
    /// The sender's pin.
    pub cpu: Option<u16>,
    /// The reflector's pin.
    pub peer_cpu: Option<u16>,
    /// When it was measured, UTC, RFC 3339.
    pub measured_at: String,
    /// The boot in which it was measured: it holds for no other.
    pub boot_id: Option<String>,
}
