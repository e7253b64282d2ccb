//! Parts of a line, and the numbers in them. Arithmetic is decimal: no value passes through a floating-point number.

use std::str::FromStr;

use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

use super::LogFault;
use crate::units::human::TimeUnit;

const SHOWN: usize = 40;

/// Instants and values are below 2^62 ns, about 146 years, on either side of 0: the difference of two of them fits too.
const NANOS_END: i64 = 1 << 62;

/// The most that a log counts, about 10^12: sums of such counts do not overflow.
pub(super) const TOTAL_MAX: u64 = 1 << 40;

#[inline]
pub(super) fn bounded(nanos: i64) -> Option<i64> {
    (nanos.unsigned_abs() < NANOS_END as u64).then_some(nanos)
}

#[inline]
pub(super) fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.iter().find(|byte| !byte.is_ascii_whitespace()), None | Some(b'#'))
}

/// The unit of values: that which the log states, else that which the user states; they may not differ.
pub(super) fn unit_of(stated: Option<TimeUnit>, given: Option<TimeUnit>) -> Result<TimeUnit, LogFault> {
    match (stated, given) {
        (Some(stated), Some(given)) if stated != given => {
            let what = format!("the log states its values in {}, not in {}", stated.symbol(), given.symbol());
            Err(LogFault::whole(what).hint("leave out `--unit`"))
        }
        (Some(unit), _) | (None, Some(unit)) => Ok(unit),
        (None, None) => {
            Err(LogFault::whole("the log does not state the unit of its values").hint("add `--unit ns|us|ms|s`"))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogField<'a> {
    /// Without white space around it.
    pub(super) text: &'a [u8],
    /// The byte at which it begins, from 1.
    pub(super) column: usize,
}

pub(super) fn whole(line: &[u8]) -> LogField<'_> {
    LogField { text: line, column: 1 }
}

/// The parts of `line` between runs of blanks and tabs.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = LogField<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + line[at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        let length = line[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(line.len() - start);
        at = start + length;
        Some(LogField { text: &line[start..at], column: start + 1 })
    })
}

/// The parts of `line` between `delimiters`, without white space around them; they may be empty.
pub(super) fn cells(line: &[u8], delimiter: u8) -> impl Iterator<Item = LogField<'_>> {
    let mut at = 0;
    line.split(move |byte| *byte == delimiter).map(move |cell| {
        let start = at;
        at += cell.len() + 1;
        whole(line).part(start, start + cell.len())
    })
}

impl<'a> LogField<'a> {
    /// The bytes of it from `start` to `end`, without white space around them.
    pub(super) fn part(&self, start: usize, end: usize) -> LogField<'a> {
        let text = &self.text[start..end];
        let blanks = text.len() - text.trim_ascii_start().len();
        LogField { text: text.trim_ascii(), column: self.column + start + blanks }
    }

    /// One unit of the last digit of a decimal number of `unit`, at least 1 ns.
    pub(super) fn step_ns(&self, unit: TimeUnit) -> i64 {
        let places = memchr::memchr(b'.', self.text).map_or(0, |point| self.text.len() - point - 1);
        10_i64.pow(exponent_of(unit).saturating_sub(places as u32))
    }

    /// The text as a message shows it: one line, at most 40 characters.
    pub(super) fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[..self.text.len().min(4 * SHOWN)]);
        text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
    }

    #[cold]
    pub(super) fn is_not(&self, due: &str) -> LogFault {
        let fault = LogFault::at(self.column, format!("`{}` is not {due}", self.shown()));
        match commas_of(self.text) {
            Some(Commas::Thousands) => {
                let what = format!("`{}` has separators of thousands", self.shown());
                LogFault { what, ..fault }.hint("write the numbers without them")
            }
            Some(_) => fault.hint("decimals need a point, not a comma: write the log with `LC_ALL=C`"),
            None => fault,
        }
    }

    pub(super) fn count(&self) -> Result<u64, LogFault> {
        digits(self.text).ok_or_else(|| self.is_not("a whole number"))
    }

    /// A count of packets or values: a whole number up to 2^40.
    pub(super) fn total(&self) -> Result<u64, LogFault> {
        match self.count()? {
            total @ ..=TOTAL_MAX => Ok(total),
            _ => Err(self.is_not("a count up to 2^40")),
        }
    }

    pub(super) fn nanos(&self) -> Result<i64, LogFault> {
        let (negative, text) = signed(self.text);
        let value = digits(text).and_then(|value| i64::try_from(value).ok());
        let value = value.ok_or_else(|| self.is_not("a whole number"))?;
        bounded(if negative { -value } else { value }).ok_or_else(|| self.is_not("a time below 146 years"))
    }

    /// A decimal number of `unit` in ns, rounded half away from zero.
    #[inline]
    pub(super) fn time(&self, unit: TimeUnit) -> Result<i64, LogFault> {
        self.rounded_time(unit).map(|(value, _)| value)
    }

    /// The same, and whether the number has digits below a nanosecond, which were rounded. Digits beyond the 15th are noise of
    /// doubles, and do not count.
    #[inline]
    pub(super) fn rounded_time(&self, unit: TimeUnit) -> Result<(i64, bool), LogFault> {
        let (negative, text) = signed(self.text);
        let mut scan = Scan { text, at: 0 };
        match scan.time(unit).filter(|_| scan.at == text.len()) {
            Some(value) => Ok((if negative { -value } else { value }, false)),
            None => self.odd_time(unit),
        }
    }

    /// A number with an exponent or with further digits, one that is too large, or text; and whether it was rounded.
    #[cold]
    fn odd_time(&self, unit: TimeUnit) -> Result<(i64, bool), LogFault> {
        let is_plain = self.text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
        let text = std::str::from_utf8(self.text).ok().filter(|text| is_plain && text.parse::<f64>().is_ok());
        let text = text.ok_or_else(|| self.is_not("a number"))?;
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let power = power.parse::<i64>().map_err(|_| self.is_not("a number"))?;
        let value = scaled(mantissa, power.saturating_add(exponent_of(unit).into()));
        let whole = value.map(|value| value.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero));
        let nanos = whole.and_then(|whole| whole.to_i64()).and_then(bounded);
        let nanos = nanos.ok_or_else(|| self.is_not("a time below 146 years").of_all_rows())?;
        let is_finer =
            |value: Decimal| !value.is_integer() && !value.round_sf(KEPT_DIGITS).unwrap_or(value).is_integer();
        Ok((nanos, value.is_some_and(is_finer)))
    }
}

const KEPT_DIGITS: u32 = 15;

/// `mantissa` times 10^`power`, to 28 digits; `None` if it is not below 7 × 10^28.
fn scaled(mantissa: &str, power: i64) -> Option<Decimal> {
    let value = Decimal::from_str(mantissa).ok()?;
    match power {
        0..=28 => value.checked_mul(Decimal::from_i128_with_scale(10_i128.pow(power as u32), 0)),
        -28..0 => value.checked_mul(Decimal::new(1, power.unsigned_abs() as u32)),
        _ if value.is_zero() => Some(value),
        // A rest that is not 0 counts as digits below a nanosecond.
        _ => (power < 0).then(|| Decimal::new(1, 28)),
    }
}

const fn exponent_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Nanos => 0,
        TimeUnit::Micros => 3,
        TimeUnit::Millis => 6,
        TimeUnit::Seconds => 9,
    }
}

#[inline]
pub(super) fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    text.first().filter(|byte| byte.is_ascii_digit())?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commas {
    Decimal,
    /// They, or other marks, are between groups of three digits: `1,234.5`, `1.234,5`, `1'234`.
    Thousands,
    /// `1,234`.
    Either,
}

/// What the marks between the digits of `text` are, unless it is not a number, or one with a point alone or without marks.
pub(super) fn commas_of(text: &[u8]) -> Option<Commas> {
    let (_, text) = signed(text);
    let mantissa = text.split(|byte| b"eE".contains(byte)).next()?;
    let groups: Vec<&[u8]> = mantissa.split(|byte| b",.' ".contains(byte)).collect();
    if !groups.iter().all(|group| !group.is_empty() && group.iter().all(u8::is_ascii_digit)) {
        return None;
    }
    let marks: Vec<u8> = mantissa.iter().copied().filter(|byte| !byte.is_ascii_digit()).collect();
    let are_thousands = |groups: &[&[u8]]| {
        groups[0].len() <= 3 && groups[0] != b"0" && groups[1..].iter().all(|group| group.len() == 3)
    };
    let (first, last) = marks.first().zip(marks.last()).filter(|_| marks != b".")?;
    // The last mark may be that of decimals.
    let whole = if first != last && b".,".contains(last) { marks.len() } else { marks.len() + 1 };
    let is_grouped = are_thousands(&groups[..whole]) && marks[..whole - 1].iter().all(|mark| mark == first);
    match (marks.as_slice(), is_grouped) {
        (b",", is_grouped) => Some(if is_grouped { Commas::Either } else { Commas::Decimal }),
        (_, is_grouped) => is_grouped.then_some(Commas::Thousands),
    }
}

pub(super) fn is_decimal_comma(text: &[u8]) -> bool {
    matches!(commas_of(text), Some(Commas::Decimal | Commas::Either))
}

/// A place in lines of plain numbers. What is odd ends the scan, `None`: the line is then read by its fields.
pub(super) struct Scan<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

impl Scan<'_> {
    #[inline]
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.next() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes blanks and tabs, and returns whether there were any; a tab that is a `delimiter` stays.
    #[inline]
    pub(super) fn blanks(&mut self, delimiter: u8) -> bool {
        let start = self.at;
        while self.next() == b' ' || (self.next() == b'\t' && delimiter != b'\t') {
            self.at += 1;
        }
        self.at > start
    }

    #[inline]
    pub(super) fn end(&mut self) -> Option<()> {
        self.takes(b'\r');
        self.takes(b'\n').then_some(())
    }

    /// Takes the rest of a cell of text in front of a `delimiter`, unless it has quotes or begins as a comment.
    #[inline]
    pub(super) fn cell(&mut self, delimiter: u8) -> Option<()> {
        if self.next() == b'#' {
            return None;
        }
        while self.next() != delimiter && !b"\"\r\n\0".contains(&self.next()) {
            self.at += 1;
        }
        (self.next() != b'"').then_some(())
    }

    #[inline]
    fn digits(&mut self, value: &mut u64) -> usize {
        let start = self.at;
        while let digit @ 0..10 = self.next().wrapping_sub(b'0') {
            *value = value.wrapping_mul(10).wrapping_add(digit.into());
            self.at += 1;
        }
        self.at - start
    }

    #[inline]
    pub(super) fn count(&mut self) -> Option<u64> {
        let mut value = 0;
        matches!(self.digits(&mut value), 1..=19).then_some(value)
    }

    /// A decimal number of `unit`, in ns, if it has no digits below one.
    #[inline]
    pub(super) fn time(&mut self, unit: TimeUnit) -> Option<i64> {
        let (mut value, exponent) = (0, exponent_of(unit));
        let whole = self.digits(&mut value);
        let places = if self.takes(b'.') { self.digits(&mut value) } else { 0 };
        let left = exponent.checked_sub(places as u32)?;
        let value = matches!(whole + places, 1..=18).then_some(value)?.checked_mul(10_u64.pow(left))?;
        i64::try_from(value).ok().and_then(bounded)
    }
}

/// Whether `text` is what tools write for a value that is not finite, of either sign.
pub(super) fn is_not_finite(text: &[u8]) -> bool {
    let (_, text) = signed(text);
    [&b"nan"[..], b"inf", b"infinity"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> LogField<'_> {
        LogField { text: text.as_bytes(), column: 3 }
    }

    #[test]
    fn digits_below_a_nanosecond_are_seen_but_for_the_noise_of_doubles() {
        for (texts, unit, has) in [
            (
                "281.41234 0.0001 -1.0005 1.2345e-1 1e-30 262.37149999999997 0.00009999999999999999",
                TimeUnit::Micros,
                true,
            ),
            (
                "281.41200 281 -5. 1e3 1.5e-2 262.37199999999996 -262.37200000000007 0.99999999999999989",
                TimeUnit::Micros,
                false,
            ),
            ("0.00010514259338378906 1.0025e-09", TimeUnit::Seconds, true),
            ("1.002e-06 3.7611e-05 1000e-12 -2.5e-8", TimeUnit::Seconds, false),
        ] {
            texts.split(' ').for_each(|text| assert_eq!(field(text).rounded_time(unit).expect(text).1, has, "{text}"));
        }
    }

    #[test]
    fn times_are_exact_in_nanoseconds_in_every_notation() {
        let (ns, us, ms, s) = (TimeUnit::Nanos, TimeUnit::Micros, TimeUnit::Millis, TimeUnit::Seconds);
        for (texts, unit, expected) in [
            ("12 +12 12. 12.0 1.2e1 1200E-2 0012.e0", us, 12_000),
            ("-0.000296 -2.96e-04 -.000296", s, -296_000),
            ("0.000000001 1e-9 0.0000000005 7.5e-10", s, 1),
            ("0.00000000049 0.0000000004999 4999e-13 0e99 0.0e9223372036854775807 1.5e-9223372036854775808", s, 0),
            ("-1.5 -15e-1", ns, -2),
            ("5. 5e0", ms, 5_000_000),
            ("1700000000.123456789", s, 1_700_000_000_123_456_789),
            ("4611686018427387903 4.611686018427387903E+18", ns, NANOS_END - 1),
            ("-4611686018427387.903", us, 1 - NANOS_END),
            ("1000000000000000000000000e-20", ns, 10_000),
            ("9007199254740993 9.007199254740993e15", ns, 9_007_199_254_740_993),
        ] {
            for text in texts.split(' ') {
                assert_eq!(field(text).time(unit), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn other_text_is_a_fault_at_its_column() {
        for text in " - . abc 1.2.3 1e 1e- e5 .e5 1e5.0 1e9x +-5 NaN inf 0x10 1_000 12us".split(' ') {
            let fault = field(text).time(TimeUnit::Nanos).expect_err(text);
            assert_eq!((fault.column, fault.what), (Some(3), format!("`{text}` is not a number")));
        }
        for text in ["4611686018427387904", "-4611686018427387904", "99999999999999999999", "9e18", "-1e40"] {
            let fault = field(text).time(TimeUnit::Nanos).expect_err(text);
            assert_eq!((fault.column, fault.what), (Some(3), format!("`{text}` is not a time below 146 years")));
        }
        for (text, expected) in [("7", 7), ("-7", -7), ("+0", 0), ("-4611686018427387903", 1 - NANOS_END)] {
            assert_eq!(field(text).nanos(), Ok(expected), "{text}");
        }
        let long = field("4611686018427387904").nanos().expect_err("146 years");
        assert_eq!(long.what, "`4611686018427387904` is not a time below 146 years");
        assert_eq!(field("1099511627776").total(), Ok(TOTAL_MAX));
        let large = field("1099511627777").total().expect_err("2^40 + 1");
        assert_eq!((large.column, &*large.what), (Some(3), "`1099511627777` is not a count up to 2^40"));
        assert!(field("-1").total().is_err() && field("18446744073709551616").total().is_err());
        assert_eq!(field(&"\u{1b}[0m".repeat(100)).shown().len(), "\\u{1b}[0m".len() * 10);
    }
}
