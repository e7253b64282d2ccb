//! Rates of networks (bits or packets a second) and of memory (bytes a second), and the figures of loads.

use super::parse::{ParseError, split};
use super::show::{percent, shortest, significant};

const NETWORK_HINT: &str = "bits or packets a second with their unit, such as `10Mbit/s`, `1.5Gbit/s` or `500kpps`";

const BITS: [(&str, u128); 5] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000), ("Tbit/s", 1_000_000_000_000)];
const PACKETS: [(&str, u128); 3] = [("pps", 1), ("kpps", 1_000), ("Mpps", 1_000_000)];

/// The rate of a network, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkRate {
    /// Bits a second.
    Bits(u64),
    /// Packets a second.
    Packets(u64),
}

/// Parses the rate of a network: `10Mbit/s`, `500kpps`. The unit is required, since `10M` could be bytes.
pub fn parse_network_rate(text: &str) -> Result<NetworkRate, ParseError> {
    let refuse = |cause: String| ParseError::new("rate", text, cause, NETWORK_HINT);
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
        (None, None) => {
            let cause = format!("`{unit}` is not a unit of a network rate");
            let hint = meant_bits(text, unit).map(|meant| format!("did you mean `{meant}`?"));
            Err(ParseError::new("rate", text, cause, hint.unwrap_or_else(|| NETWORK_HINT.into())))
        }
    }
}

/// The rate `text` with the unit that `unit` is another spelling of: `1Gbit/s` for `1Gbps`. `None` of any other unit, such
/// as one of bytes.
fn meant_bits(text: &str, unit: &str) -> Option<String> {
    let prefix = ["bps", "b/s", "bit/s", "bits/s"].into_iter().find_map(|ending| unit.strip_suffix(ending))?;
    let is_meant = |name: &str| name.strip_suffix("bit/s").is_some_and(|own| own.eq_ignore_ascii_case(prefix));
    let (name, _) = BITS.into_iter().find(|(name, _)| is_meant(name))?;
    let number = text.trim().strip_suffix(unit)?;
    Some(format!("{}{name}", number.trim_end()))
}

/// The error of a rate of packets `text` where bits are compared.
pub fn bits_wanted(text: &str) -> ParseError {
    ParseError::new("rate", text, "it counts packets, and bits are compared", "such as `10Mbit/s` or `1.5Gbit/s`")
}

/// The unit of a table of bit rates, the same for all of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRateUnit {
    symbol: &'static str,
    scale: u128,
}

impl BitRateUnit {
    /// The unit in which a rate of about `typical_bps` has one to three digits before its point.
    pub fn suiting(typical_bps: f64) -> BitRateUnit {
        let fitting = BITS.iter().rev().find(|(_, scale)| typical_bps.abs() >= 0.9995 * *scale as f64);
        let (symbol, scale) = fitting.copied().unwrap_or(BITS[0]);
        BitRateUnit { symbol, scale }
    }

    pub const fn symbol(self) -> &'static str {
        self.symbol
    }

    /// This unit in bits a second.
    pub const fn bps(self) -> f64 {
        self.scale as f64
    }

    /// `bps` bits a second in this unit, with three significant digits and without the symbol.
    pub fn figure(self, bps: f64) -> String {
        significant(bps / self.scale as f64)
    }
}

/// A rate of bits with its unit and three significant digits: `98.3 Mbit/s`.
pub fn bit_rate(bps: f64) -> String {
    let unit = BitRateUnit::suiting(bps);
    format!("{} {}", unit.figure(bps), unit.symbol)
}

/// A rate of bits as typed, in the largest unit that keeps it whole: `100Mbit/s`, `1500kbit/s`.
pub fn typed_bit_rate(bps: u64) -> String {
    typed(&BITS, bps)
}

/// A rate of packets as typed: `500kpps`.
pub fn typed_packet_rate(pps: u64) -> String {
    typed(&PACKETS, pps)
}

fn typed(units: &[(&str, u128)], rate: u64) -> String {
    let fitting = units.iter().rev().find(|(_, scale)| rate > 0 && u128::from(rate).is_multiple_of(*scale));
    let (name, scale) = fitting.copied().unwrap_or(units[0]);
    format!("{}{name}", u128::from(rate) / scale)
}

const BYTES_HINT: &str = "bytes a second with their unit, such as `500MB/s`, `2GB/s` or `1.5GiB/s`";

const BYTES: [(&str, f64); 8] = [
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];

/// Parses bytes a second: `2GB/s` (2,000,000,000), `1.5GiB/s`. The unit is required, since `2G` could be bits.
pub fn parse_byte_rate(text: &str) -> Result<f64, ParseError> {
    let refuse = |cause: String| ParseError::new("rate", text, cause, BYTES_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    match BYTES.into_iter().find(|(name, _)| *name == unit) {
        Some((_, scale)) => Ok(number.as_f64() * scale),
        None if unit.is_empty() => Err(refuse("the unit is missing".into())),
        None => Err(refuse(format!("`{unit}` is not a unit of bytes per second"))),
    }
}

/// A rate of bytes with its unit and three significant digits: `1.98 GB/s`.
pub fn byte_rate(bytes_per_second: f64) -> String {
    let (name, scale) = fitting(bytes_per_second, 0.9995);
    format!("{} {name}", significant(bytes_per_second / scale))
}

/// A rate of bytes as typed: `2GB/s`.
pub fn typed_byte_rate(bytes_per_second: f64) -> String {
    let (name, scale) = fitting(bytes_per_second, 1.0);
    format!("{}{name}", shortest(bytes_per_second / scale))
}

/// The largest decimal unit of which `rate` has at least `least`.
fn fitting(rate: f64, least: f64) -> (&'static str, f64) {
    BYTES[..5].iter().rev().copied().find(|(_, scale)| rate.abs() >= least * scale).unwrap_or(BYTES[0])
}

/// A figure of a load in the unit of that name (`facts::load`): `79.8 %`, `1.98 GB/s`, `1.93 CPUs`.
pub fn load_figure(unit: &str, value: f64) -> String {
    match unit {
        "share" => percent(value),
        "bytes_per_second" => byte_rate(value),
        "bits_per_second" => bit_rate(value),
        "cpus" => format!("{} CPUs", significant(value)),
        other => format!("{} {}", significant(value), other.replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_rates_are_read_shown_and_typed() {
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
        assert_eq!(BitRateUnit::suiting(98_340_000.0).bps(), 1e6);
        for (bps, shown) in [(98_340_000.0, "98.3 Mbit/s"), (999_900.0, "1.00 Mbit/s"), (5.0, "5.00 bit/s")] {
            assert_eq!(bit_rate(bps), shown);
        }
    }

    #[test]
    fn network_rates_with_an_ambiguous_unit_are_refused() {
        for (text, cause) in [
            ("10", "unit is missing"),
            ("10M", "not a unit"),
            ("10MB/s", "not a unit"),
            ("10mbit/s", "not a unit"),
            ("0.5bit/s", "finer"),
            ("99999999999Tbit/s", "more than"),
            ("-1bit/s", "negative"),
            ("", "empty"),
        ] {
            let error = parse_network_rate(text).expect_err(text);
            assert!(error.cause.contains(cause) && error.hint.contains("10Mbit/s"), "{text}: {error:?}");
        }
    }

    #[test]
    fn figures_of_loads_have_their_unit() {
        for (unit, value, text) in [
            ("share", 0.798, "79.8 %"),
            ("bytes_per_second", 1.98e9, "1.98 GB/s"),
            ("bits_per_second", 98.3e6, "98.3 Mbit/s"),
            ("cpus", 1.93, "1.93 CPUs"),
        ] {
            assert_eq!(load_figure(unit, value), text);
        }
    }

    #[test]
    fn byte_rates_are_read_shown_and_typed() {
        for (text, rate, shown, typed) in [
            ("2GB/s", 2e9, "2.00 GB/s", "2GB/s"),
            ("500 MB/s", 5e8, "500 MB/s", "500MB/s"),
            ("1.5GiB/s", 1.5 * 1_073_741_824.0, "1.61 GB/s", "1.610613GB/s"),
            ("12B/s", 12.0, "12.0 B/s", "12B/s"),
            ("999.9kB/s", 999_900.0, "1.00 MB/s", "999.9kB/s"),
            ("0B/s", 0.0, "0 B/s", "0B/s"),
        ] {
            let read = parse_byte_rate(text).expect(text);
            assert!((read - rate).abs() < 1e-6, "{text}: {read}");
            assert_eq!((byte_rate(read), typed_byte_rate(read)), (shown.into(), typed.into()));
        }
    }

    #[test]
    fn byte_rates_with_an_ambiguous_unit_are_refused() {
        for (text, cause) in [
            ("2", "unit is missing"),
            ("2G", "not a unit"),
            ("2Gbit/s", "not a unit"),
            ("2gb/s", "not a unit"),
            ("-2GB/s", "negative"),
            ("", "empty"),
            ("fast", "begin with a number"),
        ] {
            let error = parse_byte_rate(text).expect_err(text);
            assert!(error.cause.contains(cause) && error.hint.contains("2GB/s"), "{text}: {error:?}");
        }
    }
}
