//! Facts of the runs of a page: their hosts before and after, the command line, the specification, the software and the time.
//! Of many runs each fact is shown once, with the texts that differ, or with the range of its numbers.

use std::collections::BTreeSet;

use crate::facts::{CommandLine, Driver, Frequency, HostFacts, InterfaceFacts};
use crate::plan::Kind;
use crate::recording::manifest::{EndFacts, Manifest};
use crate::units::human::{few_parts, percent, significant};
use crate::view::{Part, RemarkView};

/// What a page says of a run apart from its figures, in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedRun {
    run: String,
    /// UTC start, RFC 3339; empty if it is not known.
    started_at: String,
    software: String,
    /// `None` if it is not known.
    command: Option<String>,
    is_log: bool,
    specification: String,
    hosts: Vec<ReportedHost>,
}

impl ReportedRun {
    pub fn of(manifest: &Manifest) -> ReportedRun {
        let software = &manifest.software;
        ReportedRun {
            run: format!("{} {}", manifest.kind.word(), manifest.run_id),
            started_at: if manifest.has_start() { manifest.started_at.clone() } else { String::new() },
            software: format!(
                "{} {}, recording format {}.{}",
                software.name, software.version, manifest.format.major, manifest.format.minor
            ),
            command: manifest.command.as_ref().map(CommandLine::in_shell),
            is_log: manifest.spec.import().is_some(),
            specification: match manifest.spec.import() {
                // The rest of the specification of a log is that of no run.
                Some(import) => serde_json::to_string_pretty(import),
                None => serde_json::to_string_pretty(&manifest.spec),
            }
            .unwrap_or_default(),
            hosts: ends(manifest),
        }
    }

    /// The command line that made the run, as it can be pasted.
    pub(super) fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    pub(super) fn title_of_specification(&self) -> String {
        if self.is_log {
            format!("Log of {}, as it was read", self.run)
        } else {
            format!("Specification of {}, with every default filled in", self.run)
        }
    }

    /// The settled specification as JSON; of an imported log, how it was read.
    pub(super) fn specification(&self) -> &str {
        &self.specification
    }
}

/// The facts of each end that are known; of both at once if they are those of one host.
fn ends(manifest: &Manifest) -> Vec<ReportedHost> {
    let target = &manifest.spec.target;
    let named = match manifest.kind {
        Kind::Wakeup | Kind::Command => vec![("Host".to_owned(), &manifest.here)],
        _ if manifest.peer == manifest.here => vec![("Host of both ends".to_owned(), &manifest.here)],
        _ => vec![
            ("Host of the sender".into(), &manifest.here),
            (format!("Host of the reflector, {target}"), &manifest.peer),
        ],
    };
    let is_known = |end: &EndFacts| end.before.is_some() || end.after.is_some();
    named.into_iter().filter(|(_, end)| is_known(end)).map(|(name, end)| ReportedHost::of(name, end)).collect()
}

/// A fact in words; `None` if it is unknown.
type Fact = fn(&HostFacts) -> Option<String>;

/// The facts that a page shows in words, in their order.
const FACTS: [(&str, Fact); 16] = [
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

/// The hosts of all runs, each once; a fact with the values that it had.
pub(super) fn hosts(runs: &[ReportedRun]) -> Vec<Part> {
    let mut merged: Vec<ReportedHost> = Vec::new();
    for host in runs.iter().flat_map(|run| &run.hosts) {
        match merged.iter_mut().find(|known| known.name == host.name) {
            Some(known) => known.take(host),
            None => merged.push(host.clone()),
        }
    }
    merged.iter().flat_map(|host| [Part::Heading(host.name.clone()), Part::Remarks(host.remarks())]).collect()
}

/// The CPU, the CPUs and the kernel of the first host.
pub(super) fn machine(runs: &[ReportedRun]) -> Option<String> {
    let host = runs.first()?.hosts.first()?;
    let fact = |name: &str| host.facts[FACTS.iter().position(|(own, _)| *own == name)?].first();
    let cpus = fact("CPUs online").map(|cpus| format!("CPUs {cpus}"));
    let known =
        fact("CPU").cloned().into_iter().chain(cpus).chain(fact("kernel").map(|kernel| format!("kernel {kernel}")));
    Some(known.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
}

/// A host with its facts in one run or several.
#[derive(Clone, Debug, PartialEq)]
struct ReportedHost {
    name: String,
    /// The values of each of [`FACTS`]; empty if it is not known.
    facts: Vec<BTreeSet<String>>,
    /// Over a minute, before and after each run.
    load_averages: Vec<f64>,
    /// Shares of the time of all CPUs during each run.
    busy: Vec<f64>,
    stolen: Vec<f64>,
}

impl ReportedHost {
    /// An end before the run, and after it where that differs.
    fn of(name: String, end: &EndFacts) -> ReportedHost {
        let of = |host: &Option<HostFacts>, fact: Fact| host.as_ref().and_then(fact);
        let in_words = |(_, fact): (&str, Fact)| match (of(&end.before, fact), of(&end.after, fact)) {
            (Some(before), Some(after)) if before != after => Some(format!("{before} before, {after} after")),
            (before, after) => before.or(after),
        };
        let both = end.before.iter().chain(&end.after);
        let activity =
            end.before.as_ref().zip(end.after.as_ref()).and_then(|(before, after)| after.activity_since(before));
        ReportedHost {
            name,
            facts: FACTS.into_iter().map(|fact| in_words(fact).into_iter().collect()).collect(),
            load_averages: both.filter_map(|host| Some(host.load_average?[0])).collect(),
            busy: activity.iter().map(|activity| activity.all.busy).collect(),
            stolen: activity.iter().map(|activity| activity.all.steal).collect(),
        }
    }

    /// Takes the facts of another run.
    fn take(&mut self, other: &ReportedHost) {
        self.facts.iter_mut().zip(&other.facts).for_each(|(own, others)| own.extend(others.iter().cloned()));
        self.load_averages.extend(&other.load_averages);
        self.busy.extend(&other.busy);
        self.stolen.extend(&other.stolen);
    }

    fn remarks(&self) -> Vec<RemarkView> {
        let fact = |values: &BTreeSet<String>| match values.len() {
            0 => None,
            1 => values.first().cloned(),
            _ => Some(format!("differs between runs: {}", few_parts(&values.iter().cloned().collect::<Vec<_>>()))),
        };
        let load = range(&self.load_averages, significant).map(|load| format!("{load} over 1 minute"));
        let time = range(&self.busy, percent).zip(range(&self.stolen, percent));
        let time = time.map(|(busy, stolen)| format!("{busy} busy, {stolen} stolen"));
        let facts = FACTS.iter().zip(&self.facts).map(|((label, _), values)| (*label, fact(values)));
        let all = facts.chain([("load average", load), ("CPU time during the run", time)]);
        all.filter_map(|(label, text)| Some(RemarkView { label: label.into(), text: text? })).collect()
    }
}

/// `0 % to 12 %`, or `12 %`; `None` of no values.
fn range(values: &[f64], shown: fn(f64) -> String) -> Option<String> {
    let [least, most] = [f64::min, f64::max].map(|of| values.iter().copied().reduce(of));
    let (least, most) = (shown(least?), shown(most?));
    Some(if least == most { least } else { format!("{least} to {most}") })
}

/// The software that made the recordings, each version once.
pub(super) fn versions(runs: &[ReportedRun]) -> Vec<String> {
    let versions: BTreeSet<&String> = runs.iter().map(|run| &run.software).collect();
    versions.into_iter().cloned().collect()
}

/// `latlab 0.9.0 · recordings of 2026-11-21 02:15:00 to 03:10:44 UTC`.
pub(super) fn made(runs: &[ReportedRun]) -> String {
    let own = concat!("latlab ", env!("CARGO_PKG_VERSION"));
    let starts = || runs.iter().map(|run| run.started_at.as_str()).filter(|start| !start.is_empty());
    let (Some(first), Some(last)) = (starts().min(), starts().max()) else { return own.into() };
    // `2026-11-21T02:15:00.123Z` to the second.
    let shown = |start: &str| start.chars().take(19).collect::<String>().replace('T', " ");
    let until = if first == last { String::new() } else { format!(" to {}", shown(last)) };
    let noun = if starts().count() == 1 { "recording" } else { "recordings, begun" };
    format!("{own} · {noun} {}{until} UTC", shown(first))
}
