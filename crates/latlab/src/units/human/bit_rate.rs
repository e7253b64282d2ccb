//! Rates on a network: bits or packets a second.

use super::parse::{ParseError, split};
use super::show::significant;

const HINT: &str = "bits or packets a second with their unit, such as `10Mbit/s`, `1.5Gbit/s` or `500kpps`";

const BITS: [(&str, u128); 5] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000), ("Tbit/s", 1_000_000_000_000)];
const PACKETS: [(&str, u128); 3] = [("pps", 1), ("kpps", 1_000), ("Mpps", 1_000_000)];

/// A rate as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkRate {
    /// Bits a second.
    Bits(u64),
    /// Packets a second.
    Packets(u64),
}

/// Reads a network's rate: `10Mbit/s`, `500kpps`. The unit is demanded, since `10M` could be bytes.
pub fn parse_network_rate(text: &str) -> Result<NetworkRate, ParseError> {
    let refuse = |cause: String| ParseError::new("rate", text, cause, HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let scale_of = |units: &[(&str, u128)]| units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let whole = |scale: u128| {
        let rate = number.times(scale).map_err(|_| refuse("it is finer than one a second".into()))?;
        u64::try_from(rate).map_err(|_| refuse(format!("it is more than {} a second", u64::MAX)))
    };
    match (scale_of(&BITS), scale_of(&PACKETS)) {
        (Some(scale), _) => whole(scale).map(NetworkRate::Bits),
        (None, Some(scale)) => whole(scale).map(NetworkRate::Packets),
        (None, None) if unit.is_empty() => Err(refuse("the unit is missing".into())),
        (None, None) => Err(refuse(format!("`{unit}` is no unit of a network's rate"))),
    }
}

/// That `text` is a rate of packets where bits are compared.
pub fn bits_wanted(text: &str) -> ParseError {
    ParseError::new("rate", text, "it counts packets, and bits are compared", "such as `10Mbit/s` or `1.5Gbit/s`")
}

/// A rate with its unit, three significant digits: `98.3 Mbit/s`.
pub fn bit_rate(bps: f64) -> String {
    let fitting = BITS.iter().rev().find(|(_, scale)| bps.abs() >= 0.9995 * *scale as f64);
    let (name, scale) = fitting.copied().unwrap_or(BITS[0]);
    format!("{} {name}", significant(bps / scale as f64))
}

/// A rate of bits as it is typed, in the largest unit that keeps it whole: `100Mbit/s`, `1500kbit/s`.
pub fn typed_bit_rate(bps: u64) -> String {
    typed(&BITS, bps)
}

/// A rate of packets as it is typed: `500kpps`.
pub fn typed_packet_rate(pps: u64) -> String {
    typed(&PACKETS, pps)
}

fn typed(units: &[(&str, u128)], rate: u64) -> String {
    let fitting = units.iter().rev().find(|(_, scale)| rate > 0 && u128::from(rate).is_multiple_of(*scale));
    let (name, scale) = fitting.copied().unwrap_or(units[0]);
    format!("{}{name}", u128::from(rate) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_shown_and_typed_again() {
        use NetworkRate::{Bits, Packets};
        for (text, rate, again) in [
            ("1bit/s", Bits(1), "1bit/s"),
            ("10Mbit/s", Bits(10_000_000), "10Mbit/s"),
            ("1.5 Gbit/s", Bits(1_500_000_000), "1500Mbit/s"),
            ("0bit/s", Bits(0), "0bit/s"),
            ("500kpps", Packets(500_000), "500kpps"),
            ("1.25Mpps", Packets(1_250_000), "1250kpps"),
            ("7pps", Packets(7), "7pps"),
        ] {
            let read = parse_network_rate(text).expect(text);
            let typed = match read {
                Bits(bps) => typed_bit_rate(bps),
                Packets(pps) => typed_packet_rate(pps),
            };
            assert_eq!((read, typed.as_str()), (rate, again));
            assert_eq!(parse_network_rate(again), Ok(rate));
        }
        for (bps, shown) in [(98_340_000.0, "98.3 Mbit/s"), (999_900.0, "1.00 Mbit/s"), (5.0, "5.00 bit/s")] {
            assert_eq!(bit_rate(bps), shown);
        }
    }

    #[test]
    fn a_rate_without_a_unit_could_be_bytes() {
        for (text, cause) in [
            ("10", "unit is missing"),
            ("10M", "no unit"),
            ("10MB/s", "no unit"),
            ("10mbit/s", "no unit"),
            ("0.5bit/s", "finer"),
            ("99999999999Tbit/s", "more than"),
            ("-1bit/s", "negative"),
            ("", "empty"),
        ] {
            let error = parse_network_rate(text).expect_err(text);
            assert!(error.cause.contains(cause) && error.hint.contains("10Mbit/s"), "{text}: {error:?}");
        }
    }
}
