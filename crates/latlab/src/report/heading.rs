//! What is measured, in one line: the same words while it is measured and when it is shown.

use crate::analysis::{Condition, Family, Kind, StopWhen, Summary};
use crate::units::human::{bytes, grouped, span};

/// What a heading says of one run, be it planned or measured.
#[derive(Clone, Copy, Debug)]
pub struct Headline<'a> {
    /// What kind of rows.
    pub kind: Kind,
    /// Its factors.
    pub condition: &'a Condition,
    /// The family of the path, where it is known.
    pub family: Option<Family>,
    /// When it is to end.
    pub stop: StopWhen,
}

impl Headline<'_> {
    /// That of a summary.
    pub(super) fn of(summary: &Summary) -> Headline<'_> {
        let v6 = summary.peer_address.as_deref().map(|address| address.starts_with('['));
        let family = v6.map(|v6| if v6 { Family::Ipv6 } else { Family::Ipv4 });
        Headline { kind: summary.kind, condition: &summary.condition, family, stop: summary.stop }
    }

    fn transport(&self) -> String {
        let family = match self.family {
            Some(Family::Ipv6) => " ipv6",
            Some(Family::Ipv4) => " ipv4",
            None => "",
        };
        format!("{}{family}", self.condition.transport)
    }

    fn schedule(&self) -> String {
        match (self.condition.schedule.as_str(), self.condition.interval_ns) {
            (_, None) => "closed loop".into(),
            ("poisson", Some(mean)) => format!("poisson, {} on average", span(mean)),
            (_, Some(interval)) => format!("every {}", span(interval)),
        }
    }

    fn planned(&self) -> Option<String> {
        let count = self.stop.count.map(|count| format!("{} probes", grouped(count)));
        let duration = self.stop.duration_ns.map(span);
        count.into_iter().chain(duration).reduce(|count, duration| format!("{count} or {duration}"))
    }
}

/// What a run has to say on something, if it has.
type Part = fn(&Headline) -> Option<String>;

/// What all runs have in common.
pub fn heading(runs: &[Headline]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let parts: [Part; 6] = [
        |run| Some(format!("{} {}", run.kind.word(), run.condition.target)),
        |run| Some(run.transport()),
        |run| (run.condition.protocol != "native").then(|| run.condition.protocol.clone()),
        |run| Some(bytes(run.condition.size_bytes.into())),
        |run| Some(run.schedule()),
        |run| run.planned(),
    ];
    let common = parts.into_iter().filter_map(|part| {
        let text = part(first)?;
        runs.iter().all(|run| part(run).as_ref() == Some(&text)).then_some(text)
    });
    common.collect::<Vec<_>>().join(" · ")
}
