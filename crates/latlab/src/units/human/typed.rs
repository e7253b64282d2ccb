//! Numbers as they are typed: what [`super::parse_duration`] reads back as the same number.

use crate::units::Nanos;

/// A time in the largest unit that keeps it whole: `24h`, `90s`, `1500us`.
pub fn typed_span(span: Nanos) -> String {
    const UNITS: [(i64, &str); 5] =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let fitting = UNITS.into_iter().find(|(unit, _)| span.0 != 0 && span.0 % unit == 0);
    let (unit, symbol) = fitting.unwrap_or((1, "ns"));
    format!("{}{symbol}", span.0 / unit)
}

/// A share in percent, with at most six decimals: `80%`, `33.3%`.
pub fn typed_percent(share: f64) -> String {
    format!("{}%", shortest(share * 100.0))
}

/// A size in the largest unit that keeps it whole: `256MiB`, `1500B`.
pub fn typed_size(bytes: u32) -> String {
    const UNITS: [(u32, &str); 4] = [(1 << 20, "MiB"), (1_000_000, "MB"), (1 << 10, "KiB"), (1_000, "kB")];
    let fitting = UNITS.into_iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit));
    let (unit, symbol) = fitting.unwrap_or((1, "B"));
    format!("{}{symbol}", bytes / unit)
}

/// `value` with at most six decimals and no zeros at their end.
pub(super) fn shortest(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::human::{parse_duration, parse_percent, parse_size};

    #[test]
    fn what_is_shown_can_be_typed() {
        for text in ["24h", "1h", "10m", "1m", "90s", "1500us", "1ms", "7ns", "0ns"] {
            let span = parse_duration(text).expect(text);
            assert_eq!(typed_span(span), text);
        }
    }

    #[test]
    fn shares_and_sizes_can_be_typed_again() {
        for text in ["80%", "33.3%", "0.5%", "100%", "29%", "57%"] {
            let share = parse_percent(text).expect(text);
            assert_eq!(typed_percent(share), text);
            assert_eq!(parse_percent(&typed_percent(share)), Ok(share));
        }
        for text in ["256MiB", "1500B", "8kB", "8KiB", "3MB", "0B"] {
            assert_eq!(typed_size(parse_size(text).expect(text)), text);
        }
    }
}
