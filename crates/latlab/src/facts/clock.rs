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

/// One question for the far host's clock, and what stood on this one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// CLOCK_MONOTONIC here, midway between question and answer.
    pub near_ns: i64,
    /// CLOCK_MONOTONIC there, as the answer told it.
    pub far_ns: i64,
    /// The far clock showed `far_ns` no further than this from `near_ns`: half the round trip of the exchange, which
    /// may have been all of it one way, and half the width of the far anchor.
    pub bound_ns: i64,
}

impl ClockExchange {
    /// The exchange in which `far` was the answer to a question asked at `asked_ns` and answered by `answered_ns`.
    pub const fn of(asked_ns: i64, far: &ClockAnchor, answered_ns: i64) -> ClockExchange {
        let round_trip_ns = answered_ns - asked_ns;
        ClockExchange {
            near_ns: asked_ns + round_trip_ns / 2,
            far_ns: far.monotonic_ns,
            // Rounded up, each of them.
            bound_ns: (round_trip_ns + 1) / 2 + (far.width_ns + 1) / 2,
        }
    }
}

/// What the far host's CLOCK_MONOTONIC is on this one's: exchanges before and after a run, and a straight line between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRelation {
    /// Before the run was armed.
    pub before: ClockExchange,
    /// After it was disarmed.
    pub after: ClockExchange,
}

impl ClockRelation {
    /// The error bound of a converted instant between the two exchanges, as far as the clocks keep their rates; a
    /// clock that is being slewed changes its own by at most 500 parts per million (adjtimex(2)).
    pub fn bound_ns(&self) -> i64 {
        self.before.bound_ns.max(self.after.bound_ns)
    }

    /// The instant `far_ns` of the far clock, on this one.
    pub fn near_ns(&self, far_ns: i64) -> i64 {
        let ClockRelation { before, after } = self;
        let offset = |exchange: &ClockExchange| i128::from(exchange.near_ns) - i128::from(exchange.far_ns);
        let span = i128::from(after.far_ns) - i128::from(before.far_ns);
        let drift = offset(after) - offset(before);
        let gone = i128::from(far_ns) - i128::from(before.far_ns);
        // Exchanges at one instant tell no rate.
        let drifted = if span > 0 { drift * gone / span } else { 0 };
        i64::try_from(i128::from(far_ns) + offset(before) + drifted).unwrap_or(i64::MAX)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(before: (i64, i64), after: (i64, i64)) -> ClockRelation {
        let exchange = |(near_ns, far_ns)| ClockExchange { near_ns, far_ns, bound_ns: 5 };
        ClockRelation { before: exchange(before), after: exchange(after) }
    }

    #[test]
    fn an_exchange_is_as_good_as_its_round_trip() {
        let far = ClockAnchor { monotonic_ns: 7_000, realtime_ns: 1, boottime_ns: 2, tai_ns: 3, width_ns: 11 };
        let exchange = ClockExchange::of(100, &far, 301);
        assert_eq!(exchange, ClockExchange { near_ns: 200, far_ns: 7_000, bound_ns: 101 + 6 });
        assert!(exchange.near_ns - 100 <= exchange.bound_ns && 301 - exchange.near_ns <= exchange.bound_ns);
    }

    #[test]
    fn instants_between_two_exchanges_lie_on_the_line_between_them() {
        let steady = relation((1_000, 50), (11_000, 10_050));
        // The far clock is slower: 9,000 of its nanoseconds are 10,000 of ours.
        let drifting = relation((1_000, 50), (11_000, 9_050));
        for (relation, far_ns, near_ns) in [
            (steady, 50, 1_000),
            (steady, 5_050, 6_000),
            (steady, 10_050, 11_000),
            (drifting, 50, 1_000),
            (drifting, 4_550, 6_000),
            (drifting, 9_050, 11_000),
            // A little outside the line goes on: samples begin before the first exchange's end, and so on.
            (drifting, 9_950, 12_000),
            (relation((1_000, 50), (1_000, 50)), 70, 1_020),
            (relation((i64::MAX, i64::MIN), (i64::MAX, i64::MIN)), i64::MAX, i64::MAX),
        ] {
            assert_eq!(relation.near_ns(far_ns), near_ns, "{relation:?} {far_ns}");
        }
    }

    #[test]
    fn the_worse_exchange_bounds_the_relation() {
        let mut relation = relation((0, 0), (1, 1));
        relation.after.bound_ns = 900;
        assert_eq!(relation.bound_ns(), 900);
    }
}
