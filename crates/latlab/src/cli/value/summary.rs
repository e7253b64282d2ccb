//! Parsers of what recordings are picked by, and of what is said about them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{Refusal, refusal};
use crate::plan::defaults;
use crate::units::human;

/// Parses a quantile above 0 and below 1.
pub fn quantile(typed: &str) -> Result<f64, Refusal> {
    let typed = typed.trim();
    let refuse =
        |cause: &str| refusal(cause, "between 0 and 1, neither included: `0.99` or `p99` is the 99th percentile");
    let number = || typed.strip_prefix(['p', 'q']).unwrap_or(typed).parse().ok();
    let out_of_range = |q: &f64| *q <= 0.0 || *q >= 1.0;
    let read = human::parse_quantile(typed).or_else(|| number().filter(out_of_range));
    match read.ok_or_else(|| refuse("it is not a quantile"))? {
        q if q > 0.0 && q < 1.0 => Ok(q),
        q if q.is_finite() => Err(refuse("it does not lie between 0 and 1")),
        _ => Err(refuse("it is not a quantile")),
    }
}

pub fn percent(typed: &str) -> Result<f64, Refusal> {
    Ok(human::parse_percent(typed)?)
}

/// The share as it was typed.
pub fn percent_word(typed: &str) -> Result<String, Refusal> {
    percent(typed).map(|_| typed.to_owned())
}

/// Confidence level in per cent, from 50 to below 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence {
    percent: f64,
}

impl Confidence {
    /// Confidence level in per cent, such as `95`.
    pub const fn percent(self) -> f64 {
        self.percent
    }

    /// Confidence level as a ratio, such as `0.95`.
    pub fn share(self) -> f64 {
        self.percent / 100.0
    }
}

impl Default for Confidence {
    fn default() -> Confidence {
        Confidence { percent: defaults::CONFIDENCE_PERCENT }
    }
}

pub fn confidence(typed: &str) -> Result<Confidence, Refusal> {
    let refuse = |cause: &str| refusal(cause, "per cent between 50 and 100: `95`, `99.5`");
    match typed.trim().trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (50.0..100.0).contains(&percent) => Ok(Confidence { percent }),
        Ok(percent) if percent.is_finite() => Err(refuse("it does not lie between 50 and 100")),
        _ => Err(refuse("it is not a number")),
    }
}

/// The characters between the columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiters(pub Vec<u8>);

pub fn delimiters(typed: &str) -> Result<Delimiters, Refusal> {
    match typed {
        "" => Err(refusal("there would be no separator between columns", "such as `-d ,`")),
        typed => Ok(Delimiters(typed.into())),
    }
}

/// A group of `--group NAME=GLOB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGlob {
    pub name: String,
    /// Pattern of the paths in the group.
    pub glob: String,
}

pub fn named_glob(typed: &str) -> Result<NamedGlob, Refusal> {
    let refuse = |cause: &str| refusal(cause, "`NAME=GLOB`, such as `'before=runs/*-ping-*'`");
    let (name, glob) = typed.split_once('=').ok_or_else(|| refuse("it has no `=`"))?;
    match (name.trim(), glob) {
        ("", _) => Err(refuse("the group has no name")),
        (_, "") => Err(refuse("the pattern of the group is missing")),
        (name, glob) => Ok(NamedGlob { name: name.into(), glob: glob.into() }),
    }
}

/// `--tag KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub key: String,
    pub value: String,
}

pub fn tag(typed: &str) -> Result<Tag, Refusal> {
    let hint = "`KEY=VALUE`, the key of letters, digits, `.`, `-` and `_`, such as `build=4f2a`";
    let (key, value) = typed.split_once('=').ok_or_else(|| refusal("it has no `=`", hint))?;
    if key.is_empty() || !key.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')) {
        return Err(refusal("its key is not a word", hint));
    }
    Ok(Tag { key: key.into(), value: value.into() })
}

/// Parses a date, or an age before now. Dates without an offset are in UTC, as the names of recordings are.
pub fn instant(typed: &str) -> Result<Timestamp, Refusal> {
    instant_before(typed, Timestamp::now()).ok_or_else(|| {
        let hint = "an age such as `12h`, `2d` or `3w`, or a date such as `2026-11-20` or `2026-11-20T08:30` (UTC)";
        refusal("it is neither an age nor a date", hint)
    })
}

fn instant_before(typed: &str, now: Timestamp) -> Option<Timestamp> {
    let date = || typed.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    let dated = typed.parse().ok().or_else(|| Some(date()?.timestamp()));
    dated.or_else(|| now.checked_sub(age(typed)?).ok())
}

/// Parses a duration, also in days and weeks.
fn age(typed: &str) -> Option<SignedDuration> {
    let hours = |number: &str| human::parse_duration(&format!("{number}h")).ok();
    let days = |number: &str, days: i64| hours(number)?.0.checked_mul(24 * days);
    let nanos = match (typed.strip_suffix('d'), typed.strip_suffix('w')) {
        (Some(number), _) => days(number, 1),
        (_, Some(number)) => days(number, 7),
        _ => human::parse_duration(typed).ok().map(|span| span.0),
    };
    nanos.map(SignedDuration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_count_back_from_now_and_dates_are_in_utc() {
        let now = "2026-11-22T12:00:00Z".parse().expect("an instant");
        for (typed, expected) in [
            ("2d", "2026-11-20T12:00:00Z"),
            ("1.5d", "2026-11-21T00:00:00Z"),
            ("1w", "2026-11-15T12:00:00Z"),
            ("90m", "2026-11-22T10:30:00Z"),
            ("0s", "2026-11-22T12:00:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T08:30", "2026-11-20T08:30:00Z"),
            ("2026-11-20T08:30:00+01:00", "2026-11-20T07:30:00Z"),
        ] {
            assert_eq!(instant_before(typed, now).map(|instant| instant.to_string()).as_deref(), Some(expected));
        }
        for typed in ["yesterday", "2", "-2d", "d", "2026-13-01", "100000w", "2y", ""] {
            assert_eq!(instant_before(typed, now), None, "{typed}");
        }
    }
}
