//! Resolution of `latlab list`: which recordings, in which order, and whether they are removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::environment::{Environment, store, tags};
use super::{RequestError, value};
use crate::cli::args::{ListArgs, ListFilterArgs, ListedKind, SortKey};
use crate::plan::Kind;
use crate::units::human::parse_duration;

#[derive(Clone, Debug, PartialEq)]
pub struct ListSpec {
    pub store: PathBuf,
    /// True if other commands find its recordings by name, without `--store`.
    pub is_usual_store: bool,
    pub filter: ListFilter,
    pub sort: SortKey,
    pub pruning: Pruning,
    /// True for one JSON document instead of text.
    pub json: bool,
}

/// Whether what is listed is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    Off,
    /// What would be removed is listed.
    DryRun,
    Confirmed,
}

/// The properties of a listed recording or experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Kinds of rows; empty for all.
    kinds: Vec<ListedKind>,
    tags: BTreeMap<String, String>,
    since: Option<Timestamp>,
    /// End of the latest start.
    before: Option<Timestamp>,
}

impl ListFilter {
    /// Whether recordings of `kind` are listed; `None` for a recording whose kind is unknown.
    pub fn has_kind(&self, kind: Option<Kind>) -> bool {
        let listed = kind.map(|kind| match kind {
            Kind::Ping => ListedKind::Ping,
            Kind::Stream => ListedKind::Stream,
            Kind::Wakeup => ListedKind::Wakeup,
            Kind::Values => ListedKind::Values,
        });
        self.kinds.is_empty() || listed.is_some_and(|kind| self.kinds.contains(&kind))
    }

    pub fn has_experiments(&self) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&ListedKind::Experiment)
    }

    /// Whether `tags` include those that are asked for; `None` if they are unknown.
    pub fn has_tags(&self, tags: Option<&BTreeMap<String, String>>) -> bool {
        let is_there = |(key, value): (&String, &String)| tags.is_some_and(|tags| tags.get(key) == Some(value));
        self.tags.iter().all(is_there)
    }

    /// Whether a run that began at `start` is listed; `None` if that is unknown.
    pub fn has_start(&self, start: Option<Timestamp>) -> bool {
        let is_late_enough = self.since.is_none_or(|since| start.is_some_and(|start| start >= since));
        is_late_enough && self.before.is_none_or(|before| start.is_some_and(|start| start < before))
    }
}

/// Resolves the arguments. Ages count back from `now`.
pub fn list(typed: &ListArgs, environment: &Environment, now: Timestamp) -> Result<ListSpec, RequestError> {
    let ListFilterArgs { kind, tag, since, before, sort } = &typed.filter;
    let instant = |option, typed: &Option<String>| typed.as_ref().map(|typed| instant(option, typed, now)).transpose();
    let filter = ListFilter {
        kinds: kind.clone(),
        tags: tags(tag)?,
        since: instant("--since", since)?,
        before: instant("--before", before)?,
    };
    let pruning = match (typed.prune.prune, typed.prune.yes) {
        (false, true) => {
            return Err(RequestError::Alone {
                option: "--yes",
                needed: "--prune",
                cause: "it confirms a removal, and nothing is to be removed",
                hint: "such as `--prune --before 30d`, which lists what would be removed, then the same with `--yes`",
            });
        }
        (false, false) => Pruning::Off,
        (true, false) => Pruning::DryRun,
        (true, true) => Pruning::Confirmed,
    };
    if pruning != Pruning::Off && filter.tags.is_empty() && filter.before.is_none() {
        return Err(RequestError::Alone {
            option: "--prune",
            needed: "--before` or `--tag",
            cause: "without an age or a tag it would remove every finished recording of the store",
            hint: "such as `--before 30d` or `--tag build=4f2a`; `--before 0s` removes everything that is finished",
        });
    }
    Ok(ListSpec {
        store: store(&typed.store, environment),
        is_usual_store: typed.store.store.is_none(),
        filter,
        sort: sort.unwrap_or_default(),
        pruning,
        json: typed.json.json,
    })
}

/// Parses a date, or an age before `now`. Dates without an offset are in UTC, as the names of recordings are.
fn instant(option: &'static str, typed: &str, now: Timestamp) -> Result<Timestamp, RequestError> {
    let dated = typed.parse().ok().or_else(|| {
        let date: DateTime = typed.parse().ok()?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    let refuse = || {
        let hint = "an age such as `12h`, `2d` or `3w`, or a date such as `2026-11-20` or `2026-11-20T08:30` (UTC)";
        value::unusable(option, typed, "it is neither an age nor a date", hint)
    };
    dated.or_else(|| now.checked_sub(age(typed)?).ok()).ok_or_else(refuse)
}

/// Parses a duration, also in days and weeks.
fn age(typed: &str) -> Option<SignedDuration> {
    let hours = |number: &str| parse_duration(&format!("{number}h")).ok();
    let days = |number: &str, days: i64| hours(number)?.0.checked_mul(24 * days);
    let nanos = match (typed.strip_suffix('d'), typed.strip_suffix('w')) {
        (Some(number), _) => days(number, 1),
        (_, Some(number)) => days(number, 7),
        _ => parse_duration(typed).ok().map(|span| span.0),
    };
    nanos.map(SignedDuration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::diagnostics::Explain;

    const NOW: &str = "2026-11-22T12:00:00Z";

    fn resolved(line: &str) -> Result<ListSpec, RequestError> {
        let typed = ["latlab", "list"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::List(args) => list(&args, &Environment::default(), NOW.parse().expect("an instant")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ages_count_back_from_now_and_dates_are_in_utc() {
        for (typed, expected) in [
            ("2d", "2026-11-20T12:00:00Z"),
            ("1.5d", "2026-11-21T00:00:00Z"),
            ("1w", "2026-11-15T12:00:00Z"),
            ("90m", "2026-11-22T10:30:00Z"),
            ("0s", NOW),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T08:30", "2026-11-20T08:30:00Z"),
            ("2026-11-20T08:30:00+01:00", "2026-11-20T07:30:00Z"),
        ] {
            let since = resolved(&format!("--since {typed}")).expect(typed).filter.since.expect("given");
            assert_eq!(since.to_string(), expected, "{typed}");
        }
        for typed in ["yesterday", "2", "-2d", "d", "2026-13-01", "100000w", "2y", ""] {
            let error = resolved(&format!("--before={typed}")).expect_err(typed).explain();
            assert!(error.message.contains("`--before`") && error.hint.is_some(), "{error:?}");
        }
    }

    #[test]
    fn a_filter_passes_what_has_all_of_its_properties() {
        let filter = resolved("--kind ping --tag build=a --since 2d --before 2026-11-22").expect("resolved").filter;
        assert!(filter.has_kind(Some(Kind::Ping)) && !filter.has_kind(Some(Kind::Stream)) && !filter.has_kind(None));
        assert!(!filter.has_experiments() && resolved("").expect("resolved").filter.has_experiments());
        let tags =
            |list: &[(&str, &str)]| list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert!(filter.has_tags(Some(&tags(&[("build", "a"), ("note", "x")]))));
        assert!(!filter.has_tags(Some(&tags(&[("build", "b")]))) && !filter.has_tags(None));
        for (start, is_listed) in [
            ("2026-11-20T11:59:59Z", false),
            ("2026-11-20T12:00:00Z", true),
            ("2026-11-21T23:59:59Z", true),
            ("2026-11-22T00:00:00Z", false),
        ] {
            assert_eq!(filter.has_start(Some(start.parse().expect("an instant"))), is_listed, "{start}");
        }
        assert!(!filter.has_start(None));
    }

    #[test]
    fn pruning_needs_an_age_or_a_tag_and_a_confirmation() {
        let pruning = |line: &str| resolved(line).map(|spec| spec.pruning);
        assert_eq!(pruning("--before 30d"), Ok(Pruning::Off));
        assert_eq!(pruning("--prune --before 30d"), Ok(Pruning::DryRun));
        assert_eq!(pruning("--prune --tag build=a --yes"), Ok(Pruning::Confirmed));
        assert!(pruning("--yes").is_err_and(|error| error.to_string() == "`--yes` needs `--prune`"));
        for line in ["--prune", "--prune --kind ping --yes", "--prune --since 1h"] {
            assert!(
                pruning(line).is_err_and(|error| error.to_string().contains("`--prune` needs `--before` or `--tag`")),
                "{line}"
            );
        }
    }
}
