//! The clocks of a host: their readings, their relation to those of another host, and their synchronisation.

use serde::{Deserialize, Serialize};

/// Readings of four clocks within `width_ns`, which relate CLOCK_MONOTONIC of a recording to calendar time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// CLOCK_MONOTONIC, midway between the first and the last read.
    pub monotonic_ns: i64,
    pub realtime_ns: i64,
    pub boottime_ns: i64,
    pub tai_ns: i64,
    /// From the first reading to the last: twice the error bound of the anchor.
    pub width_ns: i64,
}

/// One request for the clock of the far host, with the readings of the local clock before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// Local CLOCK_MONOTONIC, midway between request and answer.
    pub near_ns: i64,
    /// CLOCK_MONOTONIC of the far host, from the answer.
    pub far_ns: i64,
    /// Error bound of the offset: half the round trip of the exchange, which may be entirely asymmetric, and half the width
    /// of the far anchor.
    pub bound_ns: i64,
}

impl ClockExchange {
    /// The exchange with a request at `asked_ns`, whose answer `far` arrived at `answered_ns`.
    pub const fn of(asked_ns: i64, far: &ClockAnchor, answered_ns: i64) -> ClockExchange {
        let round_trip_ns = answered_ns - asked_ns;
        ClockExchange {
            near_ns: asked_ns + round_trip_ns / 2,
            far_ns: far.monotonic_ns,
            // Both halves are rounded up.
            bound_ns: (round_trip_ns + 1) / 2 + (far.width_ns + 1) / 2,
        }
    }
}

/// Converts CLOCK_MONOTONIC of the far host to the local one: linear interpolation between exchanges before and after a
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRelation {
    /// Before the run was armed.
    pub before: ClockExchange,
    pub after: ClockExchange,
}

impl ClockRelation {
    /// The error bound of a converted instant between the two exchanges, for clocks of constant rate; slewing changes the
    /// rate of a clock by at most 500 parts per million (adjtimex(2)).
    pub fn bound_ns(&self) -> i64 {
        self.before.bound_ns.max(self.after.bound_ns)
    }

    /// The instant `far_ns` of the far clock on the local clock.
    pub fn near_ns(&self, far_ns: i64) -> i64 {
        let ClockRelation { before, after } = self;
        let offset = |exchange: &ClockExchange| i128::from(exchange.near_ns) - i128::from(exchange.far_ns);
        let span = i128::from(after.far_ns) - i128::from(before.far_ns);
        let drift = offset(after) - offset(before);
        let gone = i128::from(far_ns) - i128::from(before.far_ns);
        // Exchanges at one instant give no rate.
        let drifted = if span > 0 { drift * gone / span } else { 0 };
        i64::try_from(i128::from(far_ns) + offset(before) + drifted).unwrap_or(i64::MAX)
    }
}

/// Clocksources, and the synchronisation of CLOCK_REALTIME. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockFacts {
    pub clocksources: Option<Vec<String>>,
    /// The state that the kernel reports for CLOCK_REALTIME.
    pub discipline: Option<ClockDiscipline>,
    /// The daemon that synchronises CLOCK_REALTIME.
    pub keeper: Option<ClockKeeper>,
}

/// The clock state of the kernel ([adjtimex(2)](https://man7.org/linux/man-pages/man2/adjtimex.2.html)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockDiscipline {
    pub synchronised: bool,
    pub estimated_error_us: i64,
    pub maximum_error_us: i64,
    /// Frequency correction, parts per million.
    pub frequency_ppm: f64,
    /// TAI − UTC; 0 if it is not set.
    pub tai_offset_s: i32,
    /// Status bits.
    pub status: i32,
}

/// A daemon that synchronises CLOCK_REALTIME, and what it reports. Null: not reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockKeeper {
    pub name: String,
    pub reference: Option<String>,
    pub stratum: Option<u32>,
    /// Estimated offset of this clock.
    pub offset_ns: Option<f64>,
    /// Root mean square of past offsets (chrony), or their jitter (ntp).
    pub scatter_ns: Option<f64>,
    /// Round trip to the reference clock.
    pub root_delay_ns: Option<f64>,
    /// Dispersion accumulated on the way.
    pub root_dispersion_ns: Option<f64>,
    /// Drift of the oscillator of this host, parts per million.
    pub frequency_ppm: Option<f64>,
    /// Whether it is synchronised to a reference.
    pub synchronised: Option<bool>,
}

impl ClockKeeper {
    /// The maximum error relative to the reference clock: the offset and the root distance, which is half the root delay
    /// and the root dispersion (RFC 5905, section 11.2).
    pub fn error_bound_ns(&self) -> Option<f64> {
        Some(self.offset_ns?.abs() + self.root_delay_ns? / 2.0 + self.root_dispersion_ns?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(before: (i64, i64), after: (i64, i64)) -> ClockRelation {
        let exchange = |(near_ns, far_ns)| ClockExchange { near_ns, far_ns, bound_ns: 5 };
        ClockRelation { before: exchange(before), after: exchange(after) }
    }

    #[test]
    fn the_error_of_an_exchange_is_half_its_round_trip() {
        let far = ClockAnchor { monotonic_ns: 7_000, realtime_ns: 1, boottime_ns: 2, tai_ns: 3, width_ns: 11 };
        let exchange = ClockExchange::of(100, &far, 301);
        assert_eq!(exchange, ClockExchange { near_ns: 200, far_ns: 7_000, bound_ns: 101 + 6 });
        assert!(exchange.near_ns - 100 <= exchange.bound_ns && 301 - exchange.near_ns <= exchange.bound_ns);
    }

    #[test]
    fn instants_are_interpolated_between_two_exchanges() {
        let steady = relation((1_000, 50), (11_000, 10_050));
        // The far clock is slower: 9,000 of its nanoseconds are 10,000 local ones.
        let drifting = relation((1_000, 50), (11_000, 9_050));
        for (relation, far_ns, near_ns) in [
            (steady, 50, 1_000),
            (steady, 5_050, 6_000),
            (steady, 10_050, 11_000),
            (drifting, 50, 1_000),
            (drifting, 4_550, 6_000),
            (drifting, 9_050, 11_000),
            // Instants slightly outside are extrapolated: samples begin before the first exchange ends.
            (drifting, 9_950, 12_000),
            (relation((1_000, 50), (1_000, 50)), 70, 1_020),
            (relation((i64::MAX, i64::MIN), (i64::MAX, i64::MIN)), i64::MAX, i64::MAX),
        ] {
            assert_eq!(relation.near_ns(far_ns), near_ns, "{relation:?} {far_ns}");
        }
    }

    #[test]
    fn the_larger_bound_is_that_of_the_relation() {
        let mut relation = relation((0, 0), (1, 1));
        relation.after.bound_ns = 900;
        assert_eq!(relation.bound_ns(), 900);
    }
}
