//! Quantities as text: figures and times for tables and sentences, and the forms that can be typed again.

use crate::units::Nanos;

/// The width of `text` in a terminal, whose East Asian characters and pictographs take two columns.
pub fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Stands for a figure that does not exist.
pub const ABSENT: &str = "–";

crate::worded! {
    /// The unit of a row of times, the same for all of its figures.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TimeUnit: symbol {
        Nanos = "ns",
        Micros = "µs",
        Millis = "ms",
        Seconds = "s",
    }
}

impl TimeUnit {
    /// The unit in which a time of about `typical_ns` has one to three digits before its point.
    pub fn suiting(typical_ns: f64) -> TimeUnit {
        match typical_ns.abs() {
            size if size < 999.5 => TimeUnit::Nanos,
            size if size < 999.5e3 => TimeUnit::Micros,
            size if size < 999.5e6 => TimeUnit::Millis,
            _ => TimeUnit::Seconds,
        }
    }

    /// The word by which it is typed.
    pub const fn word(self) -> &'static str {
        match self {
            TimeUnit::Micros => "us",
            unit => unit.symbol(),
        }
    }

    /// The unit of that word or symbol.
    pub fn from_word(word: &str) -> Option<TimeUnit> {
        // U+00B5 and U+03BC look alike.
        let word = word.replace('\u{3bc}', "\u{b5}");
        TimeUnit::ALL.into_iter().find(|unit| unit.word() == word || unit.symbol() == word)
    }

    /// The length of this unit in nanoseconds.
    pub const fn nanos(self) -> f64 {
        match self {
            TimeUnit::Nanos => 1.0,
            TimeUnit::Micros => 1e3,
            TimeUnit::Millis => 1e6,
            TimeUnit::Seconds => 1e9,
        }
    }

    /// `ns` nanoseconds in this unit, with three significant digits and without the symbol.
    pub fn figure(self, ns: f64) -> String {
        significant(ns / self.nanos())
    }

    /// `nanos` in this unit with all digits: `1.25` s, `10,125` ms.
    pub fn exactly(self, nanos: Nanos) -> String {
        let scale = self.nanos() as u64;
        let (whole, rest) = (nanos.0.unsigned_abs() / scale, nanos.0.unsigned_abs() % scale);
        let digits = scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        let fraction = fraction.trim_end_matches('0');
        let sign = if nanos.0 < 0 { "−" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{fraction}", grouped(whole))
    }
}

/// Three significant digits, at most three of them after the point, thousands grouped: `48.7`, `1,210,000`; [`ABSENT`] if
/// the value is not finite.
pub fn significant(value: f64) -> String {
    rounded(value, 3)
}

/// Two significant digits, for the width of an interval: `±` is written by the caller.
pub fn about(value: f64) -> String {
    rounded(value, 2)
}

/// From here on figures have an exponent. No time, size or rate comes near.
const LARGE: f64 = 1e15;

fn rounded(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return ABSENT.into();
    }
    let size = value.abs();
    if size >= LARGE {
        return format!("{}{size:.*e}", if value < 0.0 { "−" } else { "" }, digits as usize - 1);
    }
    let mut decimals = if size == 0.0 { 0 } else { digits - 1 - size.log10().floor() as i32 };
    // 9.996 has three digits as 10.0, not as 10.00
    let carried = 10f64.powi(digits - decimals);
    if (size * 10f64.powi(decimals)).round() / 10f64.powi(decimals) >= carried {
        decimals -= 1;
    }
    let text = if decimals < 0 {
        let step = 10f64.powi(-decimals);
        format!("{:.0}", (size / step).round() * step)
    } else {
        format!("{size:.*}", decimals.min(3) as usize)
    };
    let sign = if value < 0.0 && text.bytes().any(|digit| matches!(digit, b'1'..=b'9')) { "−" } else { "" };
    format!("{sign}{}", group(&text))
}

/// As [`significant`], with a `+` unless it is negative.
pub fn signed(value: f64) -> String {
    let text = significant(value);
    if text.starts_with('−') || !value.is_finite() { text } else { format!("+{text}") }
}

/// A count with its noun, which takes an s: `1 run`, `2,000 runs`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// An integer with its thousands grouped: `203,118`.
pub fn grouped(value: u64) -> String {
    group(&value.to_string())
}

/// Groups the digits before the point by thousands.
fn group(text: &str) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::with_capacity(text.len() + whole / 3);
    for (place, digit) in text.char_indices() {
        if place > 0 && place < whole && (whole - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time with its unit and at most three significant digits: `10 s`, `250 µs`, `1.5 ms`, `123 s`.
pub fn span(nanos: Nanos) -> String {
    let unit = TimeUnit::suiting(nanos.0 as f64);
    let mut figure = unit.figure(nanos.0 as f64);
    if figure.contains('.') {
        figure = figure.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{figure} {}", unit.symbol())
}

/// Each of these times with its unit, with the fewest digits, from three on, that show different times differently.
pub fn spans(times: &[Nanos]) -> Vec<String> {
    // 18 digits show every nanosecond.
    let labels = (3..=18).map(|digits| times.iter().map(|time| span_in(*time, digits)).collect::<Vec<_>>());
    let distinct = |labels: &[String]| {
        let mut pairs = times.iter().zip(labels).map(|(time, label)| (label, time)).collect::<Vec<_>>();
        pairs.sort();
        pairs.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
    };
    let mut last = Vec::new();
    for labels in labels {
        let enough = distinct(&labels);
        last = labels;
        if enough {
            break;
        }
    }
    last
}

/// As [`span`], with this many significant digits.
fn span_in(time: Nanos, digits: u32) -> String {
    if digits <= 3 {
        return span(time);
    }
    let unit = TimeUnit::suiting(time.0 as f64);
    let size = time.0.unsigned_abs();
    // The value of the last digit in nanoseconds.
    let step = 10_u64.pow(size.checked_ilog10().unwrap_or(0).saturating_sub(digits - 1));
    let rounded = Nanos(((size + step / 2) / step * step) as i64 * time.0.signum());
    format!("{} {}", unit.exactly(rounded), unit.symbol())
}

/// A size: `64 B`, `1,472 B`.
pub fn bytes(size: u64) -> String {
    format!("{} B", grouped(size))
}

/// The most names in a list of [`few`].
const NAMED: usize = 3;

/// `words` as a list: `a, b and c`.
pub fn listed(words: &[String]) -> String {
    match words {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        words => words.concat(),
    }
}

/// The first of `names`, and how many more there are: `a, b, c and 4 more`.
pub fn few(names: &[String]) -> String {
    few_joined(names, ", ")
}

/// The same of parts that have commas of their own: `a, b; c and 4 more`.
pub fn few_parts(parts: &[String]) -> String {
    few_joined(parts, "; ")
}

fn few_joined(names: &[String], separator: &str) -> String {
    let (shown, more) = names.split_at(names.len().min(NAMED));
    let shown = shown.join(separator);
    if more.is_empty() { shown } else { format!("{shown} and {} more", more.len()) }
}

/// A share in percent: 0.0123 is `1.23 %`. A share above 0 is never shown as 0.
pub fn percent(share: f64) -> String {
    let percents = share * 100.0;
    if percents > 0.0 && percents < 0.001 {
        return "< 0.001 %".into();
    }
    let mut figure = significant(percents);
    if figure.contains('.') {
        figure = figure.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{figure} %")
}

/// The name of a quantile: 0.999 is `p99.9`, 0.5 is `p50`.
pub fn quantile(q: f64) -> String {
    // 0.999 × 100 is 99.9 only after rounding.
    let percents = format!("{:.10}", q * 100.0);
    format!("p{}", percents.trim_end_matches('0').trim_end_matches('.'))
}

/// The errors of Linux for a datagram that it does not send. The numbers are the same on all architectures but Alpha,
/// MIPS, PA-RISC and SPARC (include/uapi/asm-generic/errno.h).
const SEND_ERRORS: [(i32, &str); 11] = [
    (1, "EPERM"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (22, "EINVAL"),
    (90, "EMSGSIZE"),
    (100, "ENETDOWN"),
    (101, "ENETUNREACH"),
    (105, "ENOBUFS"),
    (111, "ECONNREFUSED"),
    (113, "EHOSTUNREACH"),
];

/// An error of the kernel: `message too long (EMSGSIZE)`.
pub fn errno(number: i32) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    let words = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    match SEND_ERRORS.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("{words} ({name})"),
        None => format!("{words} (errno {number})"),
    }
}

/// `value` as formatted by `%.{digits}g` of C: that many significant digits without trailing zeros, with an exponent if
/// the number is very small or has more digits before the point; `inf`, `-inf` and `nan`. For the formats of other tools.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let digits = digits.max(1);
    // The exponent after rounding decides: 9.9999999e5 with six digits is 1e+06.
    let rounded = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", bare(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    bare(&format!("{value:.decimals$}")).into()
}

/// `number` without trailing zeros of its fraction.
fn bare(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A time as typed, in the largest unit that keeps it whole: `24h`, `90s`, `1500us`.
pub fn typed_span(span: Nanos) -> String {
    const UNITS: [(i64, &str); 5] =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let fitting = UNITS.into_iter().find(|(unit, _)| span.0 != 0 && span.0 % unit == 0);
    let (unit, symbol) = fitting.unwrap_or((1, "ns"));
    format!("{}{symbol}", span.0 / unit)
}

/// A share in percent as typed, with at most six decimals: `80%`, `33.3%`.
pub fn typed_percent(share: f64) -> String {
    format!("{}%", shortest(share * 100.0))
}

/// A size as typed, in the largest unit that keeps it whole: `256MiB`, `1500B`.
pub fn typed_size(bytes: u32) -> String {
    const UNITS: [(u32, &str); 4] = [(1 << 20, "MiB"), (1_000_000, "MB"), (1 << 10, "KiB"), (1_000, "kB")];
    let fitting = UNITS.into_iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit));
    let (unit, symbol) = fitting.unwrap_or((1, "B"));
    format!("{}{symbol}", bytes / unit)
}

/// `text` as one word of a shell (POSIX, section 2.2.2).
pub fn shell_word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,:@%".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// `text` as a field of CSV: in quotes if it needs them (RFC 4180), and behind `'` if a spreadsheet would compute it.
pub fn csv_field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let field = if is_formula { format!("'{text}") } else { text.to_owned() };
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

/// `value` with at most six decimals and no trailing zeros.
pub(super) fn shortest(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::human::{parse_duration, parse_percent, parse_size};

    #[test]
    fn no_field_of_csv_begins_like_a_formula() {
        for (text, field) in [
            ("a \"b\",\nc", "\"a \"\"b\"\",\nc\""),
            ("=1+1", "'=1+1"),
            ("-O2", "'-O2"),
            ("+a,b", "\"'+a,b\""),
            ("@x", "'@x"),
            ("-1.5e3", "-1.5e3"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, word) in
            [("/a/b-1.toml", "/a/b-1.toml"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("-f", "'-f'"), ("", "''")]
        {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn figures_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (48.66, "48.7"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.6, "1,000"),
            (9.25, "9.25"),
            (6.1, "6.10"),
            (1_210.4, "1,210"),
            (1_216.0, "1,220"),
            (123_456.0, "123,000"),
            (0.0812, "0.081"),
            (0.0004, "0.000"),
            (-0.0004, "0.000"),
            (-5.678, "−5.68"),
            (1.7e308, "1.70e308"),
            (-1.7e308, "−1.70e308"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
        assert_eq!((about(0.1949), about(12.7), about(0.0)), ("0.19".into(), "13".into(), "0".into()));
        assert_eq!((signed(1.0), signed(-1.0)), ("+1.00".into(), "−1.00".into()));
    }

    #[test]
    fn the_unit_suits_the_size() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (23.4, "23.4 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (48_700.0, "48.7 µs"),
            (1.5e6, "1.50 ms"),
            (2e9, "2.00 s"),
            (-3_000.0, "−3.00 µs"),
        ] {
            let unit = TimeUnit::suiting(ns);
            assert_eq!(format!("{} {}", unit.figure(ns), unit.symbol()), text);
        }
    }

    #[test]
    fn exact_times_have_all_digits() {
        for (unit, nanos, text) in [
            (TimeUnit::Seconds, 1_250_000_000, "1.25"),
            (TimeUnit::Millis, 10_125_000_000, "10,125"),
            (TimeUnit::Nanos, 7, "7"),
            (TimeUnit::Micros, -1_001, "−1.001"),
            (TimeUnit::Seconds, 0, "0"),
        ] {
            assert_eq!(unit.exactly(Nanos(nanos)), text);
        }
    }

    #[test]
    fn times_are_short() {
        for (nanos, text) in [
            (10_000_000_000, "10 s"),
            (250_000, "250 µs"),
            (1_500_000, "1.5 ms"),
            (100, "100 ns"),
            (3_600_000_000_000, "3,600 s"),
            (0, "0 ns"),
        ] {
            assert_eq!(span(Nanos(nanos)), text);
        }
    }

    #[test]
    fn different_times_are_shown_differently() {
        for (times, texts) in [
            (vec![44_000, 46_000], vec!["44 µs", "46 µs"]),
            (vec![44_010, 44_040, 64_000], vec!["44.01 µs", "44.04 µs", "64 µs"]),
            (vec![1_000_100, 1_000_200], vec!["1.0001 ms", "1.0002 ms"]),
            (vec![999_600, 1_000_000], vec!["0.9996 ms", "1 ms"]),
            (vec![1_000_000_001, 1_000_000_002], vec!["1.000000001 s", "1.000000002 s"]),
            (vec![5_000, 5_000], vec!["5 µs", "5 µs"]),
            (vec![-5_001, -5_002, 0], vec!["−5.001 µs", "−5.002 µs", "0 ns"]),
            (vec![], vec![]),
        ] {
            let times: Vec<_> = times.into_iter().map(Nanos).collect();
            assert_eq!(spans(&times), texts, "{times:?}");
        }
    }

    #[test]
    fn counts_sizes_shares_quantiles_and_errors_are_shown() {
        assert_eq!((grouped(0), grouped(999), grouped(203_118)), ("0".into(), "999".into(), "203,118".into()));
        assert_eq!((bytes(64), bytes(1_472)), ("64 B".into(), "1,472 B".into()));
        for (share, text) in [(0.0, "0 %"), (0.0123, "1.23 %"), (0.05, "5 %"), (1.0, "100 %"), (1e-7, "< 0.001 %")] {
            assert_eq!(percent(share), text);
        }
        for (q, name) in [(0.5, "p50"), (0.999, "p99.9"), (0.9999, "p99.99"), (0.05, "p5"), (0.99999, "p99.999")] {
            assert_eq!(quantile(q), name);
        }
        assert!(errno(90).starts_with("message too") && errno(90).ends_with("(EMSGSIZE)"), "{}", errno(90));
        assert!(errno(10).ends_with("(errno 10)"), "{}", errno(10));
    }

    /// Output of `printf` of the C library.
    #[test]
    fn general_figures_agree_with_printf() {
        for (value, digits, expected) in [
            (0.0, 8, "0"),
            (-0.0, 8, "-0"),
            (300.0, 8, "300"),
            (238.047_614_284_761_67, 8, "238.04761"),
            (1.290_994_448_735_805_6, 8, "1.2909944"),
            (99_999_999.4, 8, "99999999"),
            (99_999_999.5, 8, "1e+08"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (0.000_1, 8, "0.0001"),
            (0.000_099_999_999, 6, "0.0001"),
            (0.000_01, 6, "1e-05"),
            (2.333_333_333e-300, 8, "2.3333333e-300"),
            (1e300, 8, "1e+300"),
            (-28.571_428_57, 6, "-28.5714"),
            (1_000_000.0, 6, "1e+06"),
            (999_999.5, 6, "1e+06"),
            (0.5, 6, "0.5"),
            (2.5, 1, "2"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (-f64::NAN, 6, "nan"),
        ] {
            assert_eq!(general(value, digits), expected, "{value:e} with {digits} digits");
        }
    }

    #[test]
    fn durations_can_be_typed_again() {
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
