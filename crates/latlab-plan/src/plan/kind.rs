//! The kinds of runs.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

crate::worded! {
    /// The kind of a run, which determines the rows and metrics of its recording, with the word of its command.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind: word {
        Ping = "ping",
        Stream = "stream",
        Command = "command",
        Wakeup = "wakeup",
        /// Values of an imported log that has no instants.
        Values = "values",
    }
}

impl Kind {
    /// The kinds that the file of an experiment can have.
    pub const IN_EXPERIMENTS: [Kind; 4] = [Kind::Ping, Kind::Stream, Kind::Command, Kind::Wakeup];

    /// The word for its rows, in the plural.
    pub const fn rows(self) -> &'static str {
        match self {
            Kind::Ping => "probes",
            Kind::Wakeup => "wake-ups",
            Kind::Command => "executions",
            Kind::Stream => "packets",
            Kind::Values => "values",
        }
    }

    /// The word for rows that count as infinite.
    pub const fn infinite(self) -> &'static str {
        if matches!(self, Kind::Command) { "failed" } else { "lost or late" }
    }

    /// Whether it sends packets to a target, which may be lost.
    pub const fn has_target(self) -> bool {
        match self {
            Kind::Ping | Kind::Stream | Kind::Values => true,
            Kind::Wakeup | Kind::Command => false,
        }
    }

    /// The main metric of its recordings, unless a log states another one for its values: see [`super::RunSpec::metric`].
    pub const fn metric(self) -> Metric {
        match self {
            Kind::Ping => Metric::RoundTripDelay,
            Kind::Wakeup => Metric::WakeupLatency,
            Kind::Command => Metric::ElapsedTime,
            Kind::Stream => Metric::DeliveredRate,
            Kind::Values => Metric::Delay,
        }
    }

    /// The statistics that a comparison of its runs shows by default.
    pub const fn compared_statistics(self) -> [&'static str; 2] {
        match self {
            Kind::Ping | Kind::Wakeup | Kind::Values => ["p50", "p99"],
            // Few executions support a high quantile.
            Kind::Command => ["mean", "p50"],
            // A low quantile of a rate matters no more than its mean, and losses are half of the answer.
            Kind::Stream => ["mean", "loss_ratio"],
        }
    }

    /// Every metric of its recordings, but for those of numbers that a command prints.
    pub const fn metrics(self) -> &'static [Metric] {
        match self {
            Kind::Ping => &Metric::PING,
            Kind::Wakeup => &Metric::WAKEUP,
            Kind::Command => &Metric::COMMAND,
            Kind::Stream => &Metric::STREAM,
            Kind::Values => &Metric::VALUES,
        }
    }

    /// The kind whose recordings have `metric`.
    pub fn of_metric(metric: Metric) -> Kind {
        let is_of = |kind: &Kind| kind.metrics().contains(&metric);
        let other = if matches!(metric, Metric::Printed(_)) { Kind::Command } else { Kind::Ping };
        Kind::ALL.into_iter().find(is_of).unwrap_or(other)
    }
}
