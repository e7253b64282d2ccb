//! The clocks of one host, read together.

use serde::{Deserialize, Serialize};

/// Four clocks read within `width_ns`: relates a recording's CLOCK_MONOTONIC to the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// CLOCK_MONOTONIC, midway between the first and the last read.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME.
    pub realtime_ns: i64,
    /// CLOCK_BOOTTIME.
    pub boottime_ns: i64,
    /// CLOCK_TAI.
    pub tai_ns: i64,
    /// From the first read to the last: twice the anchor's error bound.
    pub width_ns: i64,
}
