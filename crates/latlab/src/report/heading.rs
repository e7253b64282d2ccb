//! One-line headings of measurements, identical during the run and in the report.

use crate::analysis::{Condition, Family, Kind, StopWhen, Summary};
use crate::plan::RunSpec;
use crate::units::human::{grouped, span};

/// Parts of the heading of one planned or measured run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headline<'a> {
    pub kind: Kind,
    /// Factors of the run.
    pub condition: &'a Condition,
    /// Address family of the path; `None` if unknown.
    pub family: Option<Family>,
    /// Stop condition.
    pub stop: StopWhen,
}

impl Headline<'_> {
    pub(super) fn of(summary: &Summary) -> Headline<'_> {
        let family = summary.peer_address.as_deref().map(family_of);
        Headline { kind: summary.kind, condition: &summary.condition, family, stop: summary.stop }
    }

    fn target(&self) -> String {
        let word = self.kind.word();
        if self.kind.has_target() { format!("{word} {}", self.condition.target) } else { word.into() }
    }

    fn planned(&self) -> Option<String> {
        let count = self.stop.count.map(|count| format!("{} {}", grouped(count), self.kind.rows()));
        let up_to = if self.condition.schedule == "search" { "up to " } else { "" };
        let duration = self.stop.duration_ns.map(|duration| format!("{up_to}{}", span(duration)));
        count.into_iter().chain(duration).reduce(|count, duration| format!("{count} or {duration}"))
    }
}

/// Returns the family of an address with a port.
pub fn family_of(address: &str) -> Family {
    if address.starts_with('[') { Family::Ipv6 } else { Family::Ipv4 }
}

/// The heading that the summaries of `runs` will have.
pub fn planned_heading<'a>(runs: impl IntoIterator<Item = &'a RunSpec>) -> String {
    let (runs, conditions): (Vec<&RunSpec>, Vec<Condition>) =
        runs.into_iter().map(|run| (run, Condition::of(run))).unzip();
    let headlines = runs.iter().zip(&conditions).map(|(run, condition)| Headline {
        kind: run.kind(),
        condition,
        family: run.family(),
        stop: run.stop,
    });
    heading(&headlines.collect::<Vec<_>>())
}

/// The properties that all runs have in common.
pub(super) fn heading(runs: &[Headline]) -> String {
    let parts = |run: &Headline| {
        let factors = run.condition.heading(run.family);
        std::iter::once(Some(run.target())).chain(factors).chain([run.planned()]).collect::<Vec<_>>()
    };
    let of_each: Vec<_> = runs.iter().map(parts).collect();
    let Some((first, others)) = of_each.split_first() else { return String::new() };
    let common = first.iter().enumerate().filter(|(place, part)| others.iter().all(|other| other[*place] == **part));
    common.filter_map(|(_, part)| part.clone()).collect::<Vec<_>>().join(" · ")
}

/// Returns the shortest distinct name of each run: its size, its source port, else its directory.
pub(super) fn names(summaries: &[Summary]) -> Vec<String> {
    let directory = |summary: &Summary| {
        let parts = summary.recording.trim_end_matches('/').rsplit('/');
        parts.map(str::to_owned).next().unwrap_or_default()
    };
    let names = Condition::labels(&summaries.iter().map(|summary| &summary.condition).collect::<Vec<_>>());
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() == summaries.len() && !names.iter().any(String::is_empty) {
        names
    } else if summaries.len() == 1 {
        vec![String::new()]
    } else {
        summaries.iter().map(directory).collect()
    }
}
