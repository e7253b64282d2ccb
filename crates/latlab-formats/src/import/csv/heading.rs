//! Headings of tables: names with units, and which figures they announce.

use super::super::LogFault;
use super::super::field::{LogField, whole};
use crate::metric::Metric;
use crate::units::human::TimeUnit;

const IDS: [&str; 8] = ["id", "seq", "seqno", "icmp_seq", "packet", "n", "index", "cycle"];
const INSTANTS: [&str; 5] = ["timestamp", "time", "date", "datetime", "ts"];
const ROUND_TRIPS: [&str; 6] = ["rtt", "rtts", "roundtrip", "roundtriptime", "roundtripdelay", "roundtriplatency"];
const SUMMARIES: &str = " avg average averages mean means half halves halved min minimum minima max maximum maxima median medians \
    percentile percentiles quantile quantiles pctl std stddev stdev stdevs mdev sd sigma deviation variance var ";

pub(super) struct Heading {
    whole: String,
    pub(super) name: String,
    pub(super) unit: Option<TimeUnit>,
}

impl Heading {
    pub(super) fn of(cell: &LogField<'_>) -> Heading {
        let whole = String::from_utf8_lossy(cell.text).into_owned();
        let lower = whole.to_lowercase();
        let (name, unit) = name_and_unit(&lower);
        Heading { name: name.to_owned(), unit, whole }
    }

    fn is_called(&self, name: &str) -> bool {
        !name.is_empty() && (self.name == name || self.whole.to_lowercase() == name)
    }

    pub(super) fn counts_rows(&self) -> bool {
        IDS.contains(&&*self.name)
    }

    pub(super) fn is_instant(&self) -> bool {
        INSTANTS.contains(&&*self.name)
    }

    pub(super) fn metric(&self) -> Metric {
        let name: String = self.name.chars().filter(|char| !" _-".contains(*char)).collect();
        match name.as_str() {
            "wakeuplatency" => Metric::WakeupLatency,
            name if ROUND_TRIPS.contains(&name) => Metric::RoundTripDelay,
            _ => Metric::Delay,
        }
    }

    /// Refuses figures that are not samples: averages, halves, quantiles such as `p99` and `99%`.
    pub(super) fn expect_samples(&self) -> Result<(), LogFault> {
        let lower = self.whole.to_lowercase().replace("/ 2", "/2").replace(" /2", "/2");
        let is_figure = |word: &&str| {
            let digits = word.trim_start_matches('p').trim_end_matches('%').trim_end_matches("th");
            let is_quantile = digits.len() < word.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let is_known = SUMMARIES.contains(&format!(" {word} ")) || word.ends_with("avg") || word.ends_with("/2");
            is_known || (is_quantile && (digits.len() > 1 || !word.starts_with('p')) && !digits.is_empty())
        };
        let Some(word) = lower.split(|char: char| !char.is_alphanumeric() && !"%/".contains(char)).find(is_figure)
        else {
            return Ok(());
        };
        let shown = whole(self.whole.as_bytes()).shown();
        Err(LogFault::whole(format!("the column `{shown}` has statistics (`{word}`), not samples"))
            .hint(format!("`--column '{shown}'` imports its values as delays, as they are")))
    }
}

fn name_and_unit(heading: &str) -> (&str, Option<TimeUnit>) {
    let bracketed = [('[', ']'), ('(', ')')].into_iter().find_map(|(open, close)| {
        let (name, unit) = heading.strip_suffix(close)?.rsplit_once(open)?;
        Some((name.trim_end(), unit_named(unit.trim())?))
    });
    let suffixed = || {
        let (name, unit) = heading.rsplit_once([' ', '_', '-', '.'])?;
        Some((name.trim_end(), unit_named(unit)?))
    };
    match bracketed.or_else(suffixed) {
        Some((name, unit)) => (name, Some(unit)),
        None => (heading, unit_named(heading)),
    }
}

pub(super) fn unit_named(name: &str) -> Option<TimeUnit> {
    match name {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => Some(TimeUnit::Nanos),
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "usecs" | "microsecond" | "microseconds" => Some(TimeUnit::Micros),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(TimeUnit::Millis),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(TimeUnit::Seconds),
        _ => None,
    }
}

pub(super) fn column_called(headings: &[Heading], columns: usize, wanted: &str) -> Result<usize, LogFault> {
    let (wanted, lower) = (wanted.trim(), wanted.trim().to_lowercase());
    let mut called = (0..headings.len()).filter(|at| headings[*at].is_called(&lower));
    match (called.next(), called.next(), wanted.parse::<usize>()) {
        (Some(column), None, _) => Ok(column),
        (None, _, Ok(number)) if (1..=columns).contains(&number) => Ok(number - 1),
        _ => {
            let what = format!("not one column is called `{wanted}`; columns: {}", listed(headings, columns));
            Err(LogFault::whole(what).hint("choose one by its heading or number: `--column`"))
        }
    }
}

pub(super) fn listed(headings: &[Heading], columns: usize) -> String {
    let name = |at: usize| headings.get(at).map(|heading| format!("`{}`", whole(heading.whole.as_bytes()).shown()));
    let shown = |at: usize| name(at).unwrap_or_else(|| (at + 1).to_string());
    (0..columns.min(20)).map(shown).collect::<Vec<_>>().join(", ")
}
