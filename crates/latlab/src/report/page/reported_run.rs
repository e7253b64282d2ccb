//! Facts of the runs of a page: their hosts before and after, the command line, the specification, the software and the time.
//! Of many runs each fact is shown once, with the values that differ.

use std::collections::BTreeSet;

use crate::facts::{CommandLine, Driver, Frequency, HostFacts, InterfaceFacts};
use crate::plan::Kind;
use crate::recording::manifest::{EndFacts, Manifest};
use crate::report::html::HostFactsView;
use crate::report::view::RemarkView;
use crate::units::human::{few, percent, significant};

/// What a page says of a run apart from its figures, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedRun {
    run: String,
    /// UTC start, RFC 3339.
    started_at: String,
    software: String,
    /// `None` if it is not known.
    command: Option<String>,
    specification: String,
    hosts: Vec<HostFactsView>,
}

impl ReportedRun {
    /// Those of the run with this manifest.
    pub fn of(manifest: &Manifest) -> ReportedRun {
        let software = &manifest.software;
        ReportedRun {
            run: format!("{} {}", manifest.kind.word(), manifest.run_id),
            started_at: manifest.started_at.clone(),
            software: format!(
                "{} {}, recording format {}.{}",
                software.name, software.version, manifest.format.major, manifest.format.minor
            ),
            command: manifest.command.as_ref().map(CommandLine::in_shell),
            specification: serde_json::to_string_pretty(&manifest.spec).unwrap_or_default(),
            hosts: ends(manifest),
        }
    }

    /// Kind and id of the run.
    pub(super) fn words(&self) -> &str {
        &self.run
    }

    /// The command line that made the run, as it can be pasted.
    pub(super) fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The settled specification as JSON.
    pub(super) fn specification(&self) -> &str {
        &self.specification
    }
}

/// The facts of each end that are known; of both at once if they are those of one host.
fn ends(manifest: &Manifest) -> Vec<HostFactsView> {
    let target = &manifest.condition.target;
    let named = match manifest.kind {
        Kind::Wakeup => vec![("Host".to_owned(), &manifest.here)],
        _ if manifest.peer == manifest.here => vec![("Host of both ends".to_owned(), &manifest.here)],
        _ => vec![
            ("Host of the sender".into(), &manifest.here),
            (format!("Host of the reflector, {target}"), &manifest.peer),
        ],
    };
    let view = |(name, end): (String, &EndFacts)| HostFactsView { name, rows: rows(end) };
    named.into_iter().map(view).filter(|host| !host.rows.is_empty()).collect()
}

/// A fact in words; `None` if it is unknown.
type Fact = fn(&HostFacts) -> Option<String>;

/// The facts that a page shows, in their order.
const FACTS: [(&str, Fact); 17] = [
    ("kernel", kernel),
    ("CPU", |host| host.cpu_model.clone()),
    ("CPUs online", |host| host.cpus_online.clone()),
    ("virtualisation", |host| host.virtualisation.clone()),
    ("governor", |host| host.governors.as_ref().map(|all| all.join(", "))),
    ("frequency", |host| frequency(host.processor.frequencies.as_ref()?.values())),
    ("turbo", |host| host.processor.turbo.map(switch)),
    ("SMT", |host| host.processor.smt_active.map(switch)),
    ("idle states", idle_states),
    ("clock source", |host| host.clocksource.clone()),
    ("isolated CPUs", |host| host.kernel_settings.isolated_cpus.clone().filter(|cpus| !cpus.is_empty())),
    ("tickless CPUs", |host| host.kernel_settings.tickless_cpus.clone().filter(|cpus| !cpus.is_empty())),
    ("real-time pause", |host| host.real_time_pause().map(|pause| pause.in_words())),
    ("memory", |host| host.memory_bytes.map(|bytes| format!("{} GiB", significant(bytes as f64 / f64::from(1 << 30))))),
    ("interface", |host| host.network.interface.as_ref().map(interface)),
    ("load average", |host| host.load_average.map(|[minute, ..]| format!("{minute} over 1 minute"))),
    ("kernel command line", |host| host.kernel_settings.command_line.as_ref().map(|line| format!("`{line}`"))),
];

fn kernel(host: &HostFacts) -> Option<String> {
    let preemption = host.kernel_settings.preemption.iter();
    let parts = host.kernel.iter().chain(&host.architecture).chain(preemption);
    parts.cloned().reduce(|all, part| format!("{all}, {part}"))
}

fn switch(is_on: bool) -> String {
    if is_on { "on".into() } else { "off".into() }
}

fn frequency<'a>(each: impl Iterator<Item = &'a Frequency>) -> Option<String> {
    let (mut least, mut most) = (None::<u64>, None::<u64>);
    for cpu in each {
        least = least.into_iter().chain(cpu.minimum_khz).min();
        most = most.into_iter().chain(cpu.maximum_khz).max();
    }
    let gigahertz = |khz: u64| significant(khz as f64 / 1e6);
    Some(format!("{} to {} GHz", gigahertz(least?), gigahertz(most?)))
}

/// The idle states that may be entered, and how long it takes to leave the deepest.
fn idle_states(host: &HostFacts) -> Option<String> {
    let states = host.processor.idle_states.as_ref()?.values().flatten();
    let enabled: Vec<_> = states.filter(|state| !state.disabled).collect();
    let deepest = enabled.iter().max_by_key(|state| state.exit_latency_us)?;
    let driver = host.processor.idle_driver.as_deref().unwrap_or("unknown driver");
    Some(format!("{driver}, deepest {} ({} µs to leave)", deepest.name, deepest.exit_latency_us))
}

fn interface(facts: &InterfaceFacts) -> String {
    let driver = facts.driver.as_ref().map(|Driver { name, .. }| name.clone());
    let speed = facts.speed_mbit_per_s.map(|speed| format!("{speed} Mbit/s"));
    let mtu = facts.mtu_bytes.map(|mtu| format!("MTU {mtu} B"));
    let coalescing = facts.coalescing.as_ref().map(|it| {
        let adaptive = if it.adaptive_receive { ", adaptive" } else { "" };
        format!("interrupts up to {} µs after a frame{adaptive}", it.receive_us)
    });
    let queues = facts.qdisc.as_ref().map(|qdisc| format!("qdisc {qdisc}"));
    let parts = [Some(facts.name.clone()), driver, speed, mtu, queues, coalescing];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The known facts of an end before the run, and after it if they differ; then how its CPUs spent the time between.
fn rows(end: &EndFacts) -> Vec<RemarkView> {
    let of = |host: &Option<HostFacts>, fact: Fact| host.as_ref().and_then(fact);
    let row = |(label, fact): (&str, Fact)| {
        let text = match (of(&end.before, fact), of(&end.after, fact)) {
            (Some(before), Some(after)) if before != after => format!("{before} before, {after} after"),
            (before, after) => before.or(after)?,
        };
        Some(RemarkView { label: label.into(), text })
    };
    let activity = end.before.as_ref().zip(end.after.as_ref()).and_then(|(before, after)| after.activity_since(before));
    let activity = activity.map(|all| RemarkView {
        label: "CPU time meanwhile".into(),
        text: format!("{} busy, {} stolen", percent(all.all.busy), percent(all.all.steal)),
    });
    FACTS.into_iter().filter_map(row).chain(activity).collect()
}

/// The hosts of all runs, each once; a fact with the values that it had.
pub(super) fn hosts(runs: &[ReportedRun]) -> Vec<HostFactsView> {
    let mut merged: Vec<MergedHost> = Vec::new();
    for host in runs.iter().flat_map(|run| &run.hosts) {
        let known = merged.iter().position(|known| known.name == host.name).unwrap_or_else(|| {
            merged.push(MergedHost { name: host.name.clone(), facts: Vec::new() });
            merged.len() - 1
        });
        host.rows.iter().for_each(|row| merged[known].take(row));
    }
    merged.into_iter().map(MergedHost::view).collect()
}

/// A host with the values of each fact over all runs.
struct MergedHost {
    name: String,
    facts: Vec<MergedFact>,
}

struct MergedFact {
    label: String,
    values: BTreeSet<String>,
}

impl MergedHost {
    fn take(&mut self, row: &RemarkView) {
        match self.facts.iter_mut().find(|fact| fact.label == row.label) {
            Some(fact) => _ = fact.values.insert(row.text.clone()),
            None => self.facts.push(MergedFact { label: row.label.clone(), values: [row.text.clone()].into() }),
        }
    }

    fn view(self) -> HostFactsView {
        let row = |fact: MergedFact| {
            let values: Vec<String> = fact.values.into_iter().collect();
            let text = match values.as_slice() {
                [one] => one.clone(),
                several => format!("differs between runs: {}", few(several)),
            };
            RemarkView { label: fact.label, text }
        };
        HostFactsView { name: self.name, rows: self.facts.into_iter().map(row).collect() }
    }
}

/// The software that made the recordings, each version once.
pub(super) fn versions(runs: &[ReportedRun]) -> Vec<String> {
    let versions: BTreeSet<&String> = runs.iter().map(|run| &run.software).collect();
    versions.into_iter().cloned().collect()
}

/// `latlab 0.9.0 · recordings of 2026-11-21 02:15:00 to 03:10:44 UTC`.
pub(super) fn made(runs: &[ReportedRun]) -> String {
    let own = concat!("latlab ", env!("CARGO_PKG_VERSION"));
    let starts = || runs.iter().map(|run| run.started_at.as_str());
    let (Some(first), Some(last)) = (starts().min(), starts().max()) else { return own.into() };
    // `2026-11-21T02:15:00.123Z` to the second.
    let shown = |start: &str| start.chars().take(19).collect::<String>().replace('T', " ");
    let until = if first == last { String::new() } else { format!(" to {}", shown(last)) };
    let noun = if runs.len() == 1 { "recording" } else { "recordings, begun" };
    format!("{own} · {noun} {}{until} UTC", shown(first))
}
