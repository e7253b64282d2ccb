//! The metrics: each name is a definition, with its source.

use serde::{Deserialize, Serialize};

/// What is measured. Each variant's singleton is one value per probe (or per pair of probes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// received − sent, the reflector's dwell included (RFC 2681).
    RoundTripDelay,
    /// round trip delay − reflector dwell.
    RoundTripDelayLessDwell,
    /// reflector sent − reflector received, on the reflector's clock.
    ReflectorDwell,
    /// sent − due: how far the schedule slipped.
    SendSlip,
    /// received − due: what a user waiting on the schedule saw.
    ResponseTime,
    /// Packet delay variation: round trip delay − the sample's minimum (RFC 5481, section 4.2).
    Pdv,
    /// woke − due: how late a thread that asked to be woken runs again.
    WakeupLatency,
    /// What a stream's sender handed to the kernel, in payload bits a second, interval by interval.
    OfferedRate,
    /// What arrived of it, interval by interval of the receiver.
    DeliveredRate,
    /// Inter-packet delay variation: difference of the round trip delays of two consecutive probes (RFC 3393).
    Ipdv,
}

impl Metric {
    /// The metrics of a ping recording, in the order in which they are shown.
    pub const PING: [Metric; 7] = [
        Metric::RoundTripDelay,
        Metric::ResponseTime,
        Metric::RoundTripDelayLessDwell,
        Metric::ReflectorDwell,
        Metric::SendSlip,
        Metric::Pdv,
        Metric::Ipdv,
    ];

    /// The metrics of a recording of wake-ups.
    pub const WAKEUP: [Metric; 1] = [Metric::WakeupLatency];

    /// The metrics of a recording of a stream.
    pub const STREAM: [Metric; 2] = [Metric::OfferedRate, Metric::DeliveredRate];

    /// Those that answer the usual question: how long, and was the schedule kept.
    pub const USUAL: [Metric; 3] = [Metric::RoundTripDelay, Metric::ResponseTime, Metric::SendSlip];

    /// The name in JSON, in `--fail-if` and in `compare`.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::RoundTripDelay => "round_trip_delay",
            Metric::RoundTripDelayLessDwell => "round_trip_delay_less_dwell",
            Metric::ReflectorDwell => "reflector_dwell",
            Metric::SendSlip => "send_slip",
            Metric::ResponseTime => "response_time",
            Metric::WakeupLatency => "wakeup_latency",
            Metric::OfferedRate => "offered_rate",
            Metric::DeliveredRate => "delivered_rate",
            Metric::Pdv => "pdv",
            Metric::Ipdv => "ipdv",
        }
    }

    /// Whether its singletons lie on both sides of 0: differences of delays, or of the two ends' clocks.
    pub const fn is_signed(self) -> bool {
        matches!(self, Metric::Ipdv | Metric::RoundTripDelayLessDwell)
    }

    /// Whether its singletons are bits a second; else they are nanoseconds.
    pub const fn is_rate(self) -> bool {
        matches!(self, Metric::OfferedRate | Metric::DeliveredRate)
    }

    /// The unit of its singletons, in JSON.
    pub const fn unit(self) -> &'static str {
        if self.is_rate() { "bit/s" } else { "ns" }
    }

    /// The name in text for people.
    pub const fn title(self) -> &'static str {
        match self {
            Metric::RoundTripDelay => "round trip delay",
            Metric::RoundTripDelayLessDwell => "round trip delay less dwell",
            Metric::ReflectorDwell => "reflector dwell",
            Metric::SendSlip => "send slip",
            Metric::ResponseTime => "response time",
            Metric::WakeupLatency => "wake-up latency",
            Metric::OfferedRate => "offered rate",
            Metric::DeliveredRate => "delivered rate",
            Metric::Pdv => "delay variation (pdv)",
            Metric::Ipdv => "inter-packet delay variation (ipdv)",
        }
    }

    /// The metric of that name; `_`, `-` and spaces are the same.
    pub fn from_name(name: &str) -> Option<Metric> {
        let wanted = name.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        Metric::PING.into_iter().chain(Metric::WAKEUP).chain(Metric::STREAM).find(|metric| metric.name() == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_metric() {
        for metric in Metric::PING.into_iter().chain(Metric::WAKEUP).chain(Metric::STREAM) {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
            assert_eq!(Metric::from_name(&metric.name().replace('_', "-")), Some(metric));
        }
        assert_eq!(Metric::from_name("latency"), None);
    }
}
