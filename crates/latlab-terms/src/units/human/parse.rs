//! Text to quantities: durations, counts, sizes, shares, lists of CPUs.

use strsim::osa_distance;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read `{value}` as a {noun}")]
pub struct ParseError {
    /// The expected quantity: `duration`, `count`, `size`, `ratio`, `rate` or `list of CPUs`.
    pub noun: &'static str,
    pub value: String,
    /// Why it cannot be parsed.
    pub cause: String,
    /// The expected form, with examples.
    pub hint: String,
}

impl ParseError {
    pub(super) fn new(
        noun: &'static str,
        value: &str,
        cause: impl Into<String>,
        hint: impl Into<String>,
    ) -> ParseError {
        ParseError { noun, value: value.to_owned(), cause: cause.into(), hint: hint.into() }
    }
}

impl Explain for ParseError {
    fn explain(&self) -> Failure {
        Failure::request(self).because(&self.cause).hint(&self.hint)
    }
}

const DURATION_HINT: &str = "a number with its unit: `100ns`, `250us`, `1.5ms`, `2s`, `1m` or `1h`";
const COUNT_HINT: &str = "a whole number, such as `50000`, `50_000`, `50k` or `1M`";
const SIZE_HINT: &str = "bytes, such as `64`, `1472B`, `8kB` or `8KiB`";
const PERCENT_HINT: &str = "a share, such as `0.5%` or `0.005`";

/// Parses a number, which `unit` may follow.
pub fn parse_number(text: &str, unit: &str) -> Result<f64, ParseError> {
    let number = text.trim().strip_suffix(unit).unwrap_or(text).trim();
    let number = number.replace('−', "-").parse().ok().filter(|number: &f64| number.is_finite());
    number
        .ok_or_else(|| ParseError::new("number", text, "it is not a number in this unit", format!("such as `5{unit}`")))
}

/// Parses a duration: `100ns`, `250us` (or `µs`), `1.5ms`, `2s`, `1m`, `1h`. The unit is required, except of `0`.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseError> {
    let refuse = |cause: String| ParseError::new("duration", text, cause, DURATION_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if number.is_zero() => 1,
        "" => return Err(refuse("the unit is missing".into())),
        other => return Err(refuse(format!("`{other}` is not a unit of time"))),
    };
    let nanos = number.times(scale).map_err(|_| refuse("it is finer than a nanosecond".into()))?;
    i64::try_from(nanos).map(Nanos).map_err(|_| refuse("it is longer than 292 years".into()))
}

/// Parses a count: `50000`, `50_000`, `50k`, `1M`, `2G` (powers of ten).
pub fn parse_count(text: &str) -> Result<u64, ParseError> {
    let refuse = |cause: String| ParseError::new("count", text, cause, COUNT_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let scale = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        other => return Err(refuse(format!("`{other}` is not a multiplier of a count"))),
    };
    let count = number.times(scale).map_err(|_| refuse("it is not a whole number".into()))?;
    u64::try_from(count).map_err(|_| refuse(format!("it is more than {}", u64::MAX)))
}

/// Parses a size in bytes: `64`, `1472B`, `8kB` (8,000), `8KiB` (8,192).
pub fn parse_size(text: &str) -> Result<u32, ParseError> {
    let refuse = |cause: String| ParseError::new("size", text, cause, SIZE_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let scale = match unit {
        "" | "B" => 1,
        "k" | "kB" => 1_000,
        "M" | "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        other => return Err(refuse(format!("`{other}` is not a unit of size"))),
    };
    let size = number.times(scale).map_err(|_| refuse("it is not a whole number of bytes".into()))?;
    u32::try_from(size).map_err(|_| refuse(format!("it is more than {}", u32::MAX)))
}

/// Parses a share: `0.5%` or `0.005`, both 0.005. A number above 1 without `%` is refused.
pub fn parse_percent(text: &str) -> Result<f64, ParseError> {
    let refuse = |cause: String| ParseError::new("ratio", text, cause, PERCENT_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    match unit {
        "" if number.as_f64() > 1.0 => Err(refuse("without a `%` it is a share, and more than 1".into())),
        "" => Ok(number.as_f64()),
        "%" => Ok(number.as_f64() / 100.0),
        other => Err(refuse(format!("`{other}` is not `%`"))),
    }
}

/// Parses a quantile in (0, 1): `0.999`, `p99.9`, `q0.999` and `999e-3` are the same; `None` of anything else.
pub fn parse_quantile(text: &str) -> Option<f64> {
    let percents = text.strip_prefix('p');
    let digits = percents.or_else(|| text.strip_prefix('q')).unwrap_or(text);
    // Neither a sign nor `inf`.
    let begins_as_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let number = digits.parse::<f64>().ok().filter(|_| begins_as_number)?;
    // 99.9 / 100 is not 0.999 in binary; rounded to ten digits it is, and people type fewer.
    let q = if percents.is_some() { (number * 1e8).round() / 1e10 } else { number };
    (q > 0.0 && q < 1.0).then_some(q)
}

/// A decimal number: `digits` without the point, the last `fraction` of which are after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    fraction: u32,
}

/// The product is not an integer.
pub(super) struct NotWhole;

impl Decimal {
    fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// The number times `scale`, if that is an integer. Saturates, which the range check of the caller refuses.
    pub(super) fn times(self, scale: u128) -> Result<u128, NotWhole> {
        let product = self.digits.saturating_mul(scale);
        let divisor = 10u128.pow(self.fraction);
        if product == u128::MAX {
            Ok(product)
        } else if product.is_multiple_of(divisor) {
            Ok(product / divisor)
        } else {
            Err(NotWhole)
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.fraction as i32)
    }
}

/// Splits `text` into a number and its unit.
pub(super) fn split(text: &str) -> Result<(Decimal, &str), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.starts_with(['-', '−']) {
        return Err("it is negative".into());
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Ok((decimal(number)?, unit.trim_start()))
}

/// Parses `50_000` or `1.5`. Thirty digits are enough for every unit, and can be multiplied without overflow.
fn decimal(text: &str) -> Result<Decimal, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let lone_point = text.contains('.') && (whole.is_empty() || fraction.is_empty());
    let bad_separator = [whole, fraction].iter().any(|part| part.starts_with('_') || part.ends_with('_'));
    if lone_point || bad_separator || whole.is_empty() || fraction.contains('.') {
        return Err("it does not begin with a number".into());
    }
    let fraction = fraction.replace('_', "");
    let digits = whole.replace('_', "") + &fraction;
    let significant = digits.trim_start_matches('0');
    if significant.len() > 30 || fraction.len() > 30 {
        return Err("it has too many digits".into());
    }
    let digits = if significant.is_empty() { Ok(0) } else { significant.parse::<u128>() };
    Ok(Decimal { digits: digits.map_err(|_| "it does not begin with a number")?, fraction: fraction.len() as u32 })
}

const CPUS_HINT: &str =
    "CPU numbers and ranges of them, such as `0-3` or `0-3,6`; `latlab doctor` shows those of this host";

/// Parses a list of CPUs in the format of the kernel, `0-3,6`, to ascending numbers. Refused are an empty list or part, a
/// descending range, a CPU named twice, and a number above `highest`.
pub fn parse_cpus(text: &str, highest: u16) -> Result<Vec<u16>, ParseError> {
    let refuse = |cause: String| ParseError::new("list of CPUs", text, cause, CPUS_HINT);
    let number = |text: &str| match text.trim().parse::<u16>() {
        Ok(cpu) if cpu <= highest && !text.trim().starts_with('+') => Ok(cpu),
        Ok(cpu) if cpu > highest => Err(refuse(format!("the highest CPU number is {highest}"))),
        _ => Err(refuse(format!("`{}` is not a CPU number", text.trim()))),
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(refuse(format!("`{}` is in descending order", part.trim())));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    match cpus.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(refuse(format!("CPU {} occurs twice", pair[0]))),
        None => Ok(cpus),
    }
}

/// Ascending `cpus` as typed: `0-3,6`.
pub fn typed_cpus(cpus: &[u16]) -> String {
    let neighbours = |a: &u16, b: &u16| a.checked_add(1) == Some(*b);
    let ranges = cpus.chunk_by(neighbours).map(|range| match range {
        [one] => one.to_string(),
        range => format!("{}-{}", range[0], range[range.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// A hint with the known words that `word` may stand for, or with all of them.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    meant(word, known).unwrap_or_else(|| format!("known are {}", known.join(", ")))
}

/// A question for the known word that is most similar to `word`, or for those that begin with it; `None` without any.
pub fn meant(word: &str, known: &[&str]) -> Option<String> {
    let likely: Vec<&str> = match nearest(word, known) {
        Some(name) => vec![name],
        None => known.iter().copied().filter(|name| word.len() > 1 && name.starts_with(word)).collect(),
    };
    (!likely.is_empty()).then(|| format!("did you mean `{}`?", likely.join("` or `")))
}

/// The known word with the smallest edit distance (optimal string alignment), at most a third of its letters.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let nearest = known.iter().map(|name| (osa_distance(&wanted, name), *name)).min();
    nearest.filter(|(edits, name)| *edits <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_differs_in_a_third_of_its_letters_at_most() {
        for (word, known, expected) in [
            ("prcisoin", "precision", Some("precision")),
            ("xxxcision", "precision", Some("precision")),
            ("xxxxision", "precision", None),
            ("xo", "no", Some("no")),
            ("xx", "no", None),
        ] {
            assert_eq!(nearest(word, &[known]), expected, "{word}");
        }
    }

    #[test]
    fn durations_are_parsed() {
        let table: &[(&str, i64)] = &[
            ("100ns", 100),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("250 μs", 250_000),
            ("1ms", 1_000_000),
            ("0.1ms", 100_000),
            ("1.5s", 1_500_000_000),
            ("2s", 2_000_000_000),
            (" 1m ", 60_000_000_000),
            ("1min", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1_000us", 1_000_000),
            ("0", 0),
            ("0s", 0),
            ("0.000000001s", 1),
            ("9223372036854775807ns", i64::MAX),
        ];
        for (text, nanos) in table {
            assert_eq!(parse_duration(text), Ok(Nanos(*nanos)), "{text}");
        }
    }

    #[test]
    fn durations_that_cannot_be_represented_are_refused() {
        let table: &[(&str, &str)] = &[
            ("", "empty"),
            ("10", "unit is missing"),
            ("-1s", "negative"),
            ("−1s", "negative"),
            ("1 year", "not a unit"),
            ("1S", "not a unit"),
            ("NaN", "begin with a number"),
            ("inf", "begin with a number"),
            ("s", "begin with a number"),
            (".5s", "begin with a number"),
            ("1.s", "begin with a number"),
            ("1.2.3s", "begin with a number"),
            ("_1s", "begin with a number"),
            ("1e3s", "not a unit"),
            ("1h30m", "not a unit"),
            ("0.5ns", "finer"),
            ("9223372036854775808ns", "292 years"),
            ("99999999999h", "292 years"),
            ("1000000000000000000000000000000h", "digits"),
            ("100000000000000000000000000000h", "292 years"),
            ("0.0000000000000000000000000000001s", "digits"),
            ("0.000000000000000000000000000001s", "finer"),
        ];
        for (text, cause) in table {
            let error = parse_duration(text).expect_err(text);
            assert!(error.cause.contains(cause), "{text}: {}", error.cause);
            assert_eq!((error.explain().exit_code, error.value.as_str()), (2, *text));
            assert!(error.hint.contains("250us") && error.to_string().contains(&format!("`{text}`")));
        }
    }

    #[test]
    fn counts_are_parsed() {
        for (text, count) in [
            ("0", 0),
            ("50000", 50_000),
            ("50_000", 50_000),
            ("50k", 50_000),
            ("1M", 1_000_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in ["", "-1", "1.5", "1m", "k", "18446744073709551616", "50,000", "1e6", "0x10", "NaN"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, size) in [("64", 64), ("1472B", 1472), ("8kB", 8_000), ("8KiB", 8_192), ("1.5 kB", 1_500)] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "-64", "64b", "64.5", "4294967296", "8 KB/s"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_parsed() {
        for (text, share) in [("0.5%", 0.005), ("5 %", 0.05), ("0.05", 0.05), ("100%", 1.0), ("0", 0.0)] {
            let read = parse_percent(text).expect(text);
            assert!((read - share).abs() < 1e-15, "{text}: {read}");
        }
        for text in ["", "-1%", "NaN%", "five", "1us", "5", "1.01"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quantile_is_a_share_or_a_percentile() {
        for (text, q) in [
            ("0.999", 0.999),
            ("p99.9", 0.999),
            ("q0.999", 0.999),
            (".5", 0.5),
            ("p50", 0.5),
            ("p5", 0.05),
            ("1e-3", 0.001),
        ] {
            assert_eq!(parse_quantile(text), Some(q), "{text}");
        }
        for text in
            ["", "p", "0", "1", "99", "p0", "p100", "q1", "-0.5", "+0.5", "5e1", "1e", "pp5", "NaN", "inf", "0.5.5"]
        {
            assert_eq!(parse_quantile(text), None, "{text}");
        }
    }

    #[test]
    fn lists_of_cpus_are_parsed_and_typed() {
        for (text, cpus, typed) in [
            ("0", vec![0], "0"),
            ("0-3,6", vec![0, 1, 2, 3, 6], "0-3,6"),
            ("6, 0-1", vec![0, 1, 6], "0-1,6"),
            ("1023", vec![1_023], "1023"),
            ("2-2", vec![2], "2"),
        ] {
            assert_eq!(parse_cpus(text, 1_023), Ok(cpus.clone()), "{text}");
            assert_eq!(typed_cpus(&cpus), typed);
        }
        assert_eq!(typed_cpus(&[]), "");
    }

    #[test]
    fn a_typo_is_corrected_a_begin_is_completed_and_another_word_is_not() {
        let known = ["governor", "mtu", "offload", "rx-usecs", "rx-frames"];
        for (word, hint) in [
            ("govenor", "did you mean `governor`?"),
            ("Offload", "did you mean `offload`?"),
            ("mut", "did you mean `mtu`?"),
            ("disk", "known are governor, mtu, offload, rx-usecs, rx-frames"),
            ("gov", "did you mean `governor`?"),
            ("rx", "did you mean `rx-usecs` or `rx-frames`?"),
            ("g", "known are governor, mtu, offload, rx-usecs, rx-frames"),
            ("mtuu", "did you mean `mtu`?"),
        ] {
            assert_eq!(suggestion(word, &known), hint);
        }
    }
}
