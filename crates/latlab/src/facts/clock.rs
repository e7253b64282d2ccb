//! The clocks of one host: read together, and who keeps them in step.

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

/// Clocks beside CLOCK_MONOTONIC. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockFacts {
    /// The clocksources that the kernel could use.
    pub clocksources: Option<Vec<String>>,
    /// What the kernel knows about the error of CLOCK_REALTIME.
    pub discipline: Option<ClockDiscipline>,
    /// Who keeps CLOCK_REALTIME in step.
    pub keeper: Option<ClockKeeper>,
}

/// The kernel's view of CLOCK_REALTIME ([adjtimex(2)](https://man7.org/linux/man-pages/man2/adjtimex.2.html)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockDiscipline {
    /// Whether somebody keeps it in step.
    pub synchronised: bool,
    /// The estimated error.
    pub estimated_error_us: i64,
    /// The largest possible error.
    pub maximum_error_us: i64,
    /// By how much it is made faster, parts per million.
    pub frequency_ppm: f64,
    /// TAI − UTC; 0 where nobody said it.
    pub tai_offset_s: i32,
    /// The status bits.
    pub status: i32,
}

/// A daemon that keeps CLOCK_REALTIME in step, and what it says. Null: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockKeeper {
    /// `chrony` or `ntp`.
    pub name: String,
    /// What it follows.
    pub reference: Option<String>,
    /// Steps from a reference clock.
    pub stratum: Option<u32>,
    /// How far this clock is off, as it believes.
    pub offset_ns: Option<f64>,
    /// Root mean square of past offsets (chrony), or their jitter (ntp).
    pub scatter_ns: Option<f64>,
    /// Round trip to the reference clock.
    pub root_delay_ns: Option<f64>,
    /// Error gathered on the way.
    pub root_dispersion_ns: Option<f64>,
    /// Drift of this host's oscillator, parts per million.
    pub frequency_ppm: Option<f64>,
    /// Whether it follows anything at all.
    pub synchronised: Option<bool>,
}

impl ClockKeeper {
    /// The largest error against the reference clock: offset, half the root delay, and the root dispersion
    /// (RFC 5905, section 11.2, calls the latter two the root distance).
    pub fn error_bound_ns(&self) -> Option<f64> {
        Some(self.offset_ns?.abs() + self.root_delay_ns? / 2.0 + self.root_dispersion_ns?)
    }
}
