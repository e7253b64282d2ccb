//! Rates: bytes a second.

use super::parse::{ParseError, split};
use super::show::significant;
use super::typed::shortest;

const HINT: &str = "bytes a second with their unit, such as `500MB/s`, `2GB/s` or `1.5GiB/s`";

const UNITS: [(&str, f64); 8] = [
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];

/// Reads bytes a second: `2GB/s` (2,000,000,000), `1.5GiB/s`. The unit is demanded, since `2G` could be bits.
pub fn parse_byte_rate(text: &str) -> Result<f64, ParseError> {
    let refuse = |cause: String| ParseError::new("rate", text, cause, HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    match UNITS.into_iter().find(|(name, _)| *name == unit) {
        Some((_, scale)) => Ok(number.as_f64() * scale),
        None if unit.is_empty() => Err(refuse("the unit is missing".into())),
        None => Err(refuse(format!("`{unit}` is no unit of bytes a second"))),
    }
}

/// A rate with its unit, three significant digits: `1.98 GB/s`.
pub fn byte_rate(bytes_per_second: f64) -> String {
    let (name, scale) = fitting(bytes_per_second, 0.9995);
    format!("{} {name}", significant(bytes_per_second / scale))
}

/// A rate as it is typed: `2GB/s`.
pub fn typed_byte_rate(bytes_per_second: f64) -> String {
    let (name, scale) = fitting(bytes_per_second, 1.0);
    format!("{}{name}", shortest(bytes_per_second / scale))
}

/// The largest decimal unit of which `rate` has at least `least`.
fn fitting(rate: f64, least: f64) -> (&'static str, f64) {
    UNITS[..5].iter().rev().copied().find(|(_, scale)| rate.abs() >= least * scale).unwrap_or(UNITS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_shown_and_typed_again() {
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
    fn a_rate_without_a_unit_could_be_bits() {
        for (text, cause) in [
            ("2", "unit is missing"),
            ("2G", "no unit"),
            ("2Gbit/s", "no unit"),
            ("2gb/s", "no unit"),
            ("-2GB/s", "negative"),
            ("", "empty"),
            ("fast", "begin with a number"),
        ] {
            let error = parse_byte_rate(text).expect_err(text);
            assert!(error.cause.contains(cause) && error.hint.contains("2GB/s"), "{text}: {error:?}");
        }
    }
}
