//! What a run measures, and so what its recording holds.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The kind of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Round trips.
    Ping,
    /// Wake-ups.
    Wakeup,
    /// Rates of a stream.
    Stream,
}

impl Kind {
    /// The word in directory names and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Ping => "ping",
            Kind::Wakeup => "wakeup",
            Kind::Stream => "stream",
        }
    }

    /// What its rows are, for people.
    pub const fn rows(self) -> &'static str {
        match self {
            Kind::Ping => "probes",
            Kind::Wakeup => "wake-ups",
            Kind::Stream => "packets",
        }
    }

    /// The metric that its recordings are about.
    pub const fn metric(self) -> Metric {
        match self {
            Kind::Ping => Metric::RoundTripDelay,
            Kind::Wakeup => Metric::WakeupLatency,
            Kind::Stream => Metric::DeliveredRate,
        }
    }

    /// Every metric that its recordings have.
    pub const fn metrics(self) -> &'static [Metric] {
        match self {
            Kind::Ping => &Metric::PING,
            Kind::Wakeup => &Metric::WAKEUP,
            Kind::Stream => &Metric::STREAM,
        }
    }
}
