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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::human::parse_duration;

    #[test]
    fn what_is_shown_can_be_typed() {
        for text in ["24h", "1h", "10m", "1m", "90s", "1500us", "1ms", "7ns", "0ns"] {
            let span = parse_duration(text).expect(text);
            assert_eq!(typed_span(span), text);
        }
    }
}
