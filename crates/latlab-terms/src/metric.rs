//! The metrics: a table of their names, units and definitions.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// A metric. It has one singleton for each probe or pair of probes, wake-up, execution, or
/// interval of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// received − sent, including the dwell of the reflector (RFC 2681).
    RoundTripDelay,
    /// round trip delay − reflector dwell.
    RoundTripDelayLessDwell,
    /// reflector sent − reflector received, on the clock of the reflector.
    ReflectorDwell,
    /// sent − due: the delay of sending behind the schedule.
    SendSlip,
    /// received − due: the delay for a user who waits from the due time on.
    ResponseTime,
    /// Packet delay variation: round trip delay − minimum of the sample (RFC 5481, section 4.2).
    Pdv,
    /// woke − due: the delay of a thread that was to be woken.
    WakeupLatency,
    /// Payload that the kernel of the sender accepted from a stream, in each interval of the sender.
    OfferedRate,
    /// Payload that arrived of a stream, in each interval of the receiver.
    DeliveredRate,
    /// Inter-packet delay variation: difference of the round trip delays of two consecutive probes (RFC 3393).
    Ipdv,
    /// reflector received − sent, by a bound of the offset of the clocks (RFC 7679).
    ForwardDelay,
    /// received − reflector sent, likewise.
    BackwardDelay,
    /// Wall-clock time of an execution of a command: ended − started.
    ElapsedTime,
    /// CPU time of an execution outside of the kernel.
    UserTime,
    /// CPU time of an execution in the kernel.
    SystemTime,
    /// A delay of a log that does not state between which two instants it is.
    Delay,
    /// Numbers that a command prints.
    #[serde(skip)]
    Printed(PrintedMetric),
}

/// A metric that a user declared for the numbers that a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrintedMetric {
    pub name: &'static str,
    /// May be empty; `None` of times, which are in ns.
    unit: Option<&'static str>,
    pub higher_is_better: bool,
}

/// The metrics that were declared, each once, with texts that are kept for ever.
static DECLARED: Mutex<Vec<PrintedMetric>> = Mutex::new(Vec::new());

impl PrintedMetric {
    /// The metric with these properties, which [`Metric::from_name`] knows from now on.
    pub fn declare(name: &str, unit: Option<&str>, higher_is_better: bool) -> PrintedMetric {
        let mut declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&PrintedMetric| it.name == name && it.unit == unit && it.higher_is_better == higher_is_better;
        if let Some(known) = declared.iter().find(is_it) {
            return *known;
        }
        let kept = |text: &str| -> &'static str { String::leak(text.to_owned()) };
        declared.push(PrintedMetric { name: kept(name), unit: unit.map(kept), higher_is_better });
        declared[declared.len() - 1]
    }
}

/// A row of the table of metrics.
struct Definition {
    /// In JSON, in `--gate` and in `compare`.
    name: &'static str,
    title: &'static str,
    unit: Unit,
}

/// The unit and range of singletons.
enum Unit {
    /// Nanoseconds.
    Time,
    /// Nanoseconds of either sign.
    SignedTime,
    /// Bits a second.
    Rate,
    /// Any numbers in this unit.
    Plain(&'static str),
}

impl Metric {
    const fn definition(self) -> Definition {
        use Unit::{Plain, Rate, SignedTime, Time};
        let (name, title, unit) = match self {
            Metric::RoundTripDelay => ("round_trip_delay", "round trip delay", Time),
            Metric::RoundTripDelayLessDwell => {
                ("round_trip_delay_less_dwell", "round trip delay without reflector dwell", SignedTime)
            }
            Metric::ReflectorDwell => ("reflector_dwell", "reflector dwell", Time),
            Metric::SendSlip => ("send_slip", "send slip", Time),
            Metric::ResponseTime => ("response_time", "response time", Time),
            Metric::Pdv => ("pdv", "delay variation (pdv)", Time),
            Metric::WakeupLatency => ("wakeup_latency", "wake-up latency", Time),
            Metric::OfferedRate => ("offered_rate", "offered rate", Rate),
            Metric::DeliveredRate => ("delivered_rate", "delivered rate", Rate),
            Metric::Ipdv => ("ipdv", "inter-packet delay variation (ipdv)", SignedTime),
            Metric::ForwardDelay => ("forward_delay", "forward delay", SignedTime),
            Metric::BackwardDelay => ("backward_delay", "backward delay", SignedTime),
            Metric::ElapsedTime => ("elapsed_time", "elapsed time", Time),
            Metric::UserTime => ("user_time", "user CPU time", Time),
            Metric::SystemTime => ("system_time", "system CPU time", Time),
            Metric::Delay => ("delay", "delay", SignedTime),
            Metric::Printed(PrintedMetric { name, unit: None, .. }) => (name, name, SignedTime),
            Metric::Printed(PrintedMetric { name, unit: Some(unit), .. }) => (name, name, Plain(unit)),
        };
        Definition { name, title, unit }
    }

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

    /// The metrics of one way of a probe: they have a bound beside each figure, and stand apart from the others.
    pub const ONE_WAY: [Metric; 2] = [Metric::ForwardDelay, Metric::BackwardDelay];

    /// The metrics of a recording of wake-ups.
    pub const WAKEUP: [Metric; 1] = [Metric::WakeupLatency];

    /// The metrics of a recording of a command.
    pub const COMMAND: [Metric; 3] = [Metric::ElapsedTime, Metric::UserTime, Metric::SystemTime];

    /// The metrics of a recording of a stream.
    pub const STREAM: [Metric; 2] = [Metric::OfferedRate, Metric::DeliveredRate];

    /// The metrics that values of a log can be of.
    pub const VALUES: [Metric; 3] = [Metric::Delay, Metric::RoundTripDelay, Metric::WakeupLatency];

    /// The metrics that a summary shows by default: the delay, and whether the schedule was kept; of a command all.
    pub const USUAL: [Metric; 6] = [
        Metric::RoundTripDelay,
        Metric::ResponseTime,
        Metric::SendSlip,
        Metric::ElapsedTime,
        Metric::UserTime,
        Metric::SystemTime,
    ];

    /// Those that no user declared.
    pub fn built_in() -> impl Iterator<Item = Metric> {
        let known = Metric::PING.into_iter().chain(Metric::ONE_WAY).chain(Metric::WAKEUP).chain(Metric::COMMAND);
        known.chain(Metric::STREAM).chain([Metric::Delay])
    }

    pub fn every() -> impl Iterator<Item = Metric> {
        let declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Metric::built_in().chain(declared.into_iter().map(Metric::Printed))
    }

    /// The name in JSON, in `--gate` and in `compare`.
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    /// The name in text for people.
    pub const fn title(self) -> &'static str {
        self.definition().title
    }

    /// Whether its singletons may be negative: differences of delays, or of times of two clocks.
    pub const fn is_signed(self) -> bool {
        matches!(self.definition().unit, Unit::SignedTime | Unit::Plain(_))
    }

    /// Whether its singletons are nanoseconds.
    pub const fn is_time(self) -> bool {
        matches!(self.definition().unit, Unit::Time | Unit::SignedTime)
    }

    /// Whether a larger figure is a better one.
    pub const fn is_higher_better(self) -> bool {
        self.is_rate() || matches!(self, Metric::Printed(PrintedMetric { higher_is_better: true, .. }))
    }

    /// Whether its singletons are bits a second.
    pub const fn is_rate(self) -> bool {
        matches!(self.definition().unit, Unit::Rate)
    }

    /// The unit of its singletons, in JSON.
    pub const fn unit(self) -> &'static str {
        match self.definition().unit {
            Unit::Time | Unit::SignedTime => "ns",
            Unit::Rate => "bit/s",
            Unit::Plain(unit) => unit,
        }
    }

    /// The metric of that name, in which `_`, `-` and spaces are equal.
    pub fn from_name(name: &str) -> Option<Metric> {
        let wanted = name.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        Metric::every().find(|metric| metric.name().eq_ignore_ascii_case(&wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_restored_from_their_names() {
        for metric in Metric::every() {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
            assert_eq!(Metric::from_name(&metric.name().replace('_', "-")), Some(metric));
        }
        assert_eq!(Metric::from_name("latency"), None);
    }
}
