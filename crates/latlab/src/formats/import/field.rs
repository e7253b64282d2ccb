//! Parts of a line, and the numbers in them. Arithmetic is decimal: no value passes through a floating-point number unless it
//! has an exponent.

use super::LogFault;
use crate::units::human::TimeUnit;

/// The most characters of a text that a message shows.
const SHOWN: usize = 40;

/// Instants and values are below 2^62 ns, about 146 years, on either side of 0: the difference of two of them fits too.
const NANOS_END: i64 = 1 << 62;

/// The most that a log counts, about 10^12: sums of such counts do not overflow.
pub(super) const TOTAL_MAX: u64 = 1 << 40;

/// `nanos` if it is an instant or a value of a log.
#[inline]
pub(super) fn bounded(nanos: i64) -> Option<i64> {
    (nanos.unsigned_abs() < NANOS_END as u64).then_some(nanos)
}

/// Whether `line` is blank or a comment, which begins with `#`.
#[inline]
pub(super) fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.iter().find(|byte| !byte.is_ascii_whitespace()), None | Some(b'#'))
}

/// The unit of values: that which the log states, else that which the user states.
///
/// # Errors
/// The two differ, or both are missing.
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

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogField<'a> {
    /// Without white space around it.
    pub(super) text: &'a [u8],
    /// The byte at which it begins, from 1.
    pub(super) column: usize,
}

/// All of `line` as a field.
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
    let mut rest = Some((0, line));
    std::iter::from_fn(move || {
        let (start, text) = rest?;
        let length = text.iter().position(|byte| *byte == delimiter);
        rest = length.map(|length| (start + length + 1, &text[length + 1..]));
        let cell = &text[..length.unwrap_or(text.len())];
        let blanks = cell.len() - cell.trim_ascii_start().len();
        Some(LogField { text: cell.trim_ascii(), column: start + blanks + 1 })
    })
}

impl LogField<'_> {
    /// The text as a message shows it: one line, at most 40 characters.
    pub(super) fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[..self.text.len().min(4 * SHOWN)]);
        text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
    }

    /// The fault that this is not `due`.
    #[cold]
    pub(super) fn is_not(&self, due: &str) -> LogFault {
        let fault = LogFault::at(self.column, format!("`{}` is not {due}", self.shown()));
        match is_decimal_comma(self.text) {
            true => fault.hint("decimals need a point, not a comma: write the log with `LC_ALL=C`"),
            false => fault,
        }
    }

    /// A whole number, zero or above.
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

    /// A whole number of nanoseconds, of either sign.
    pub(super) fn nanos(&self) -> Result<i64, LogFault> {
        let (negative, text) = signed(self.text);
        let value = digits(text).and_then(|value| i64::try_from(value).ok());
        let value = value.ok_or_else(|| self.is_not("a whole number"))?;
        bounded(if negative { -value } else { value }).ok_or_else(|| self.is_not("a time below 146 years"))
    }

    /// A decimal number of `unit` in ns, rounded half away from zero.
    #[inline]
    pub(super) fn time(&self, unit: TimeUnit) -> Result<i64, LogFault> {
        match decimal(self.text, exponent_of(unit)) {
            Some(value) => Ok(value),
            None => self.odd_time(unit),
        }
    }

    /// The same, and whether the number has digits below a nanosecond, which were rounded.
    #[inline]
    pub(super) fn rounded_time(&self, unit: TimeUnit) -> Result<(i64, bool), LogFault> {
        let exponent = exponent_of(unit);
        match decimal(self.text, exponent) {
            Some(value) => Ok((value, self.has_places_beyond(exponent) && self.is_rounded(unit))),
            None => Ok((self.odd_time(unit)?, self.is_rounded(unit))),
        }
    }

    /// Whether more than so many characters stand behind the point.
    #[inline]
    fn has_places_beyond(&self, exponent: u32) -> bool {
        let front = self.text.len().saturating_sub(exponent as usize + 1);
        self.text[..front].contains(&b'.')
    }

    /// Whether this number of `unit`, which may have an exponent, is not one of whole nanoseconds.
    #[cold]
    fn is_rounded(&self, unit: TimeUnit) -> bool {
        let (mantissa, power) = match memchr::memchr2(b'e', b'E', self.text) {
            None => (self.text, Some(0)),
            Some(at) => {
                let power = std::str::from_utf8(&self.text[at + 1..]).ok().and_then(|text| text.parse::<i64>().ok());
                (&self.text[..at], power)
            }
        };
        power.is_none_or(|power| last_place(mantissa) - power > i64::from(exponent_of(unit)))
    }

    /// A number with an exponent, one that is too large, or text.
    #[cold]
    fn odd_time(&self, unit: TimeUnit) -> Result<i64, LogFault> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let text = std::str::from_utf8(self.text).ok().filter(|_| self.text.iter().all(is_part));
        match text.and_then(|text| text.parse::<f64>().ok()).map(|value| (value * unit.nanos()).round()) {
            Some(value) if value.abs() < NANOS_END as f64 => Ok(value as i64),
            Some(_) => Err(self.is_not("a time below 146 years")),
            None => Err(self.is_not("a number")),
        }
    }
}

/// The place behind the point of the last digit of `mantissa` that is not 0; negative in front of the point.
fn last_place(mantissa: &[u8]) -> i64 {
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit());
    let zeros = digits.clone().rev().take_while(|digit| **digit == b'0').count();
    let behind = memchr::memchr(b'.', mantissa).map_or(0, |mark| mantissa.len() - mark - 1);
    if zeros == digits.count() { i64::MIN / 2 } else { behind as i64 - zeros as i64 }
}

/// Decimal places of a nanosecond in `unit`.
const fn exponent_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Nanos => 0,
        TimeUnit::Micros => 3,
        TimeUnit::Millis => 6,
        TimeUnit::Seconds => 9,
    }
}

/// Whether `text` has a minus sign, and what follows a sign.
#[inline]
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// Digits alone, below 2^64.
#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// `text` times 10^`exponent`: a sign, digits and a point; rounded half away from zero.
#[inline]
fn decimal(text: &[u8], exponent: u32) -> Option<i64> {
    let (negative, text) = signed(text);
    let (mut value, mut left, mut point, mut any) = (0_u64, exponent, false, false);
    let mut round_up = None;
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if point && left == 0 {
                    round_up.get_or_insert(*byte >= b'5');
                    continue;
                }
                left -= u32::from(point);
                value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    let value = value.checked_mul(10_u64.pow(left))?.checked_add(u64::from(round_up == Some(true)))?;
    let value = bounded(i64::try_from(value).ok()?)?;
    Some(if negative { -value } else { value })
}

/// Whether `text` is a number with a decimal comma.
pub(super) fn is_decimal_comma(text: &[u8]) -> bool {
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let mut parts = text.strip_prefix(b"-").unwrap_or(text).split(|byte| *byte == b',');
    let (whole, places, more) = (parts.next(), parts.next(), parts.next());
    more.is_none() && whole.is_some_and(digits) && places.is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> LogField<'_> {
        LogField { text: text.as_bytes(), column: 3 }
    }

    #[test]
    fn words_and_cells_have_their_columns() {
        let found = |fields: Vec<LogField<'_>>| -> Vec<(String, usize)> {
            fields.iter().map(|field| (field.shown(), field.column)).collect()
        };
        let pairs =
            |pairs: &[(&str, usize)]| pairs.iter().map(|(text, at)| ((*text).to_owned(), *at)).collect::<Vec<_>>();
        assert_eq!(found(words(b"  1 \t22  x").collect()), pairs(&[("1", 3), ("22", 6), ("x", 10)]));
        assert!(words(b" \t ").next().is_none() && words(b"").next().is_none());
        assert_eq!(found(cells(b"  1, 22,,x ", b',').collect()), pairs(&[("1", 3), ("22", 6), ("", 9), ("x", 10)]));
        assert_eq!(found(cells(b"", b',').collect()), pairs(&[("", 1)]));
    }

    #[test]
    fn a_unit_is_stated_once() {
        let (us, ns) = (Some(TimeUnit::Micros), Some(TimeUnit::Nanos));
        assert_eq!(unit_of(us, None), Ok(TimeUnit::Micros));
        assert_eq!(unit_of(None, ns), Ok(TimeUnit::Nanos));
        assert_eq!(unit_of(us, us), Ok(TimeUnit::Micros));
        for (stated, given, hint) in [(us, ns, "leave out `--unit`"), (None, None, "add `--unit ns|us|ms|s`")] {
            let fault = unit_of(stated, given).expect_err("no unit");
            assert_eq!((fault.column, fault.hint.as_deref()), (None, Some(hint)));
        }
    }

    #[test]
    fn digits_below_a_nanosecond_are_seen() {
        let has = |text: &str, unit| field(text).rounded_time(unit).expect(text).1;
        for text in ["281.41234", "0.0001", "-1.0005", "1.2345e-1", "1e-4", "1e-30"] {
            assert!(has(text, TimeUnit::Micros), "{text}");
        }
        for text in ["281.412", "281.41200", "281", "-5.", "1e3", "1.5e-2", "+0.000000"] {
            assert!(!has(text, TimeUnit::Micros), "{text}");
        }
        // As Python writes floats: binary fractions, which multiplied by a power of ten are not whole.
        for text in ["1.002e-06", "3.7611e-05", "5e-09", "1000e-12", "0e-30", "-2.5e-8"] {
            assert!(!has(text, TimeUnit::Seconds), "{text}");
        }
        assert!(has("1.0025e-09", TimeUnit::Seconds) && has("1001e-12", TimeUnit::Seconds));
        assert!(has("0.5", TimeUnit::Nanos) && !has("0.000296001", TimeUnit::Seconds) && !has("7.0", TimeUnit::Nanos));
    }

    #[test]
    fn times_are_exact_in_nanoseconds() {
        for (text, unit, expected) in [
            ("0", TimeUnit::Nanos, 0),
            ("12", TimeUnit::Micros, 12_000),
            ("-0.000296", TimeUnit::Seconds, -296_000),
            ("0.000000001", TimeUnit::Seconds, 1),
            ("1.0000000005", TimeUnit::Seconds, 1_000_000_001),
            ("1.00000000049", TimeUnit::Seconds, 1_000_000_000),
            ("-1.5", TimeUnit::Nanos, -2),
            ("5.", TimeUnit::Millis, 5_000_000),
            (".5", TimeUnit::Millis, 500_000),
            ("+7", TimeUnit::Nanos, 7),
            ("1700000000.123456789", TimeUnit::Seconds, 1_700_000_000_123_456_789),
            ("4611686018427387903", TimeUnit::Nanos, NANOS_END - 1),
            ("-4611686018427387.903", TimeUnit::Micros, 1 - NANOS_END),
            ("2.5e-05", TimeUnit::Seconds, 25_000),
            ("1E3", TimeUnit::Micros, 1_000_000),
        ] {
            assert_eq!(field(text).time(unit), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_text_is_a_fault_at_its_column() {
        for text in ["", "-", ".", "abc", "1.2.3", "1e", "NaN", "inf", "0x10", "1_000", "12us"] {
            let fault = field(text).time(TimeUnit::Nanos).expect_err(text);
            assert_eq!((fault.column, fault.what), (Some(3), format!("`{text}` is not a number")));
        }
        for text in ["4611686018427387904", "-4611686018427387904", "99999999999999999999", "9e18", "-1e40"] {
            let fault = field(text).time(TimeUnit::Nanos).expect_err(text);
            assert_eq!((fault.column, fault.what), (Some(3), format!("`{text}` is not a time below 146 years")));
        }
        assert!(field("0,000296").time(TimeUnit::Seconds).expect_err("a comma").hint.is_some());
        for (text, expected) in [("7", 7), ("-7", -7), ("+0", 0), ("-4611686018427387903", 1 - NANOS_END)] {
            assert_eq!(field(text).nanos(), Ok(expected), "{text}");
        }
        let long = field("4611686018427387904").nanos().expect_err("146 years");
        assert_eq!(long.what, "`4611686018427387904` is not a time below 146 years");
        for text in ["", "-", "1.5", "1e3", "--1", "-4611686018427387904", "9223372036854775808"] {
            assert!(field(text).nanos().is_err(), "{text}");
        }
        assert_eq!(field("7").count(), Ok(7));
        for text in ["-7", "", "1.0", "18446744073709551616"] {
            assert!(field(text).count().is_err(), "{text}");
        }
        assert_eq!(field("1099511627776").total(), Ok(TOTAL_MAX));
        let large = field("1099511627777").total().expect_err("2^40 + 1");
        assert_eq!((large.column, &*large.what), (Some(3), "`1099511627777` is not a count up to 2^40"));
        assert!(field("-1").total().is_err() && field("18446744073709551616").total().is_err());
        assert_eq!(field(&"\u{1b}[0m".repeat(100)).shown().len(), "\\u{1b}[0m".len() * 10);
    }
}
