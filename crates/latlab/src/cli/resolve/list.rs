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
            Kind::Command => ListedKind::Command,
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
