//! The text format of Go benchmarks, which benchstat compares: a line for each run.
//!
//! `BenchmarkRoundTripDelay/transport=udp/size=64/by=latlab 2000 45120 ns/op 44000 p50-ns 59000 p99-ns 0.001 loss-ratio`

use std::io::{self, Write};

use super::in_one_line;
use crate::metric::Metric;
use crate::units::human::general;

/// Significant digits: all that two `f64` of different sources agree on.
const DIGITS: usize = 15;

/// The last part of every name. At its end a name may have `-` and digits, which are read as the value of GOMAXPROCS: a level
/// such as `v1-8` must not stand there.
const LAST_PART: &str = "/by=latlab";

#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkLine<'a> {
    pub metric: Metric,
    /// Factor and level of its condition.
    pub levels: &'a [(String, String)],
    /// Finite singletons, at least 1.
    pub iterations: u64,
    /// Value and unit, `ns/op` first; all finite.
    pub values: &'a [(f64, String)],
}

/// Writes the header: what the format calls configuration, and for the units of which larger is better that they are.
///
/// # Errors
/// If `target` refuses it.
pub fn write_header(target: &mut impl Write, metric: Metric) -> io::Result<()> {
    writeln!(target, "pkg: latlab/{}", metric.name())?;
    writeln!(target, "Unit loss-ratio better=lower assume=nothing")?;
    if metric.is_rate() {
        ["bit/s", "p50-bit/s"].iter().try_for_each(|unit| writeln!(target, "Unit {unit} better=higher"))?;
    }
    Ok(())
}

/// Writes the line of a run.
///
/// # Errors
/// If `target` refuses it.
pub fn write_line(target: &mut impl Write, line: &BenchmarkLine<'_>) -> io::Result<()> {
    write!(target, "Benchmark{}", camel_case(line.metric.name()))?;
    for (factor, level) in line.levels {
        write!(target, "/{}={}", name_part(factor), name_part(level))?;
    }
    write!(target, "{LAST_PART} {}", line.iterations)?;
    line.values.iter().try_for_each(|(value, unit)| write!(target, " {} {unit}", general(*value, DIGITS)))?;
    writeln!(target)
}

fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    name.split('_').map(word).collect()
}

/// `text` as a part of a name: a slash, which separates parts, becomes `|`, a colon, which benchstat does not take in `-col`,
/// `-`, a blank `_`; `1 ms` becomes `1ms`.
fn name_part(text: &str) -> String {
    let is_digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
    let text = in_one_line(text);
    let mut part = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '/' => part.push('|'),
            ':' => part.push('-'),
            char if char.is_whitespace() && is_digit(part.chars().next_back()) => {}
            char if char.is_whitespace() => part.push('_'),
            char => part.push(char),
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_name_of_one_word_a_count_and_pairs_of_value_and_unit() {
        let levels = [("size", "64"), ("interval", "1 ms"), ("load", "net=10Mbit/s + cpu=20%"), ("tag:a b", "c\nd")];
        let levels = levels.map(|(factor, level)| (factor.to_owned(), level.to_owned()));
        let values = [(45_120.5, "ns/op".to_owned()), (59_000.0, "p99-ns".to_owned()), (0.0, "loss-ratio".to_owned())];
        let line =
            BenchmarkLine { metric: Metric::RoundTripDelay, levels: &levels, iterations: 1_997, values: &values };
        let mut text = Vec::new();
        write_line(&mut text, &line).expect("memory takes it");
        let expected = "BenchmarkRoundTripDelay/size=64/interval=1ms/load=net=10Mbit|s_+_cpu=20%/tag-a_b=c_d/by=latlab \
            1997 45120.5 ns/op 59000 p99-ns 0 loss-ratio\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn a_level_with_digits_at_its_end_is_not_the_end_of_the_name() {
        let levels = [("tag:build".to_owned(), "v1-8".to_owned())];
        let values = [(1.0, "ns/op".to_owned())];
        let line = BenchmarkLine { metric: Metric::RoundTripDelay, levels: &levels, iterations: 1, values: &values };
        let mut text = Vec::new();
        write_line(&mut text, &line).expect("memory takes it");
        assert_eq!(String::from_utf8_lossy(&text), "BenchmarkRoundTripDelay/tag-build=v1-8/by=latlab 1 1 ns/op\n");
    }
}
