//! Which recordings and experiments `latlab list` shows.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cli::args::{ListFilterArgs, ListedKind};
use crate::plan::Kind;

impl ListFilterArgs {
    /// Whether recordings of `kind` are listed; `None` for a recording whose kind is unknown.
    pub fn has_kind(&self, kind: Option<Kind>) -> bool {
        let listed = kind.map(|kind| match kind {
            Kind::Ping => ListedKind::Ping,
            Kind::Stream => ListedKind::Stream,
            Kind::Wakeup => ListedKind::Wakeup,
            Kind::Values => ListedKind::Values,
        });
        self.kind.is_empty() || listed.is_some_and(|kind| self.kind.contains(&kind))
    }

    pub fn has_experiments(&self) -> bool {
        self.kind.is_empty() || self.kind.contains(&ListedKind::Experiment)
    }

    /// Whether `tags` include those that are asked for; `None` if they are unknown.
    pub fn has_tags(&self, tags: Option<&BTreeMap<String, String>>) -> bool {
        self.tag.iter().all(|asked| tags.is_some_and(|tags| tags.get(&asked.key) == Some(&asked.value)))
    }

    /// Whether a run that began at `start` is listed; `None` if that is unknown.
    pub fn has_start(&self, start: Option<Timestamp>) -> bool {
        let is_late_enough = self.since.is_none_or(|since| start.is_some_and(|start| start >= since));
        is_late_enough && self.before.is_none_or(|before| start.is_some_and(|start| start < before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn filter(line: &str) -> ListFilterArgs {
        let typed = ["latlab", "list"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::List(args) => args.filter,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_filter_passes_what_has_all_of_its_properties() {
        let filtered = filter("--kind ping --tag build=a --since 2026-11-20T12:00 --before 2026-11-22");
        assert!(filtered.has_kind(Some(Kind::Ping)) && !filtered.has_kind(Some(Kind::Stream)));
        assert!(!filtered.has_kind(None));
        assert!(!filtered.has_experiments() && filter("").has_experiments());
        let tags =
            |list: &[(&str, &str)]| list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert!(filtered.has_tags(Some(&tags(&[("build", "a"), ("note", "x")]))));
        assert!(!filtered.has_tags(Some(&tags(&[("build", "b")]))) && !filtered.has_tags(None));
        for (start, is_listed) in [
            ("2026-11-20T11:59:59Z", false),
            ("2026-11-20T12:00:00Z", true),
            ("2026-11-21T23:59:59Z", true),
            ("2026-11-22T00:00:00Z", false),
        ] {
            assert_eq!(filtered.has_start(Some(start.parse().expect("an instant"))), is_listed, "{start}");
        }
        assert!(!filtered.has_start(None));
    }
}
