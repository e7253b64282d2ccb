//! One-line headings of measurements, identical during the run and in the report.

use crate::analysis::{Family, Kind, Summary};
use crate::facts::ExperimentFacts;
use crate::plan::{RunSpec, WakeupCpus, distinct_names, levels_words};
use crate::units::Nanos;
use crate::units::human::{grouped, span};

/// Parts of the heading of one planned or measured run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headline<'a> {
    pub kind: Kind,
    pub spec: &'a RunSpec,
    /// Address family of the path; `None` if unknown.
    pub family: Option<Family>,
    /// Threads that sleep so often as its stop rule says, each on a CPU of its own; `None` for one on each CPU of the host.
    pub threads: Option<usize>,
    /// What was measured of a run that ended early.
    pub measured: Option<MeasuredPart>,
}

/// How much of a planned run was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredPart {
    rows: u64,
    duration: Nanos,
    stopped: Option<StoppedAt>,
}

/// The wake-up at which `--break` ended a run.
#[derive(Clone, Copy, Debug)]
struct StoppedAt {
    slot: u64,
    limit: Nanos,
}

impl Headline<'_> {
    pub(super) fn of(summary: &Summary) -> Headline<'_> {
        let family = summary.peer_address.as_deref().map(family_of);
        // A search is not measured in one piece: its table says how long it took.
        let is_partial = summary.ended_early() && !is_search(&summary.spec);
        let wakeups = summary.wakeups.as_ref();
        let stopped =
            wakeups.and_then(|wakeups| Some(StoppedAt { slot: wakeups.broke?.seq, limit: wakeups.break_ns? }));
        let measured =
            is_partial.then(|| MeasuredPart { rows: summary.counts.due(), duration: summary.duration_ns, stopped });
        let threads = Some(wakeups.map_or(1, |wakeups| wakeups.by_cpu.len().max(1)));
        Headline { kind: summary.kind, spec: &summary.spec, family, threads, measured }
    }

    fn target(&self) -> String {
        let word = self.kind.word();
        if self.kind.has_target() { format!("{word} {}", self.spec.target) } else { word.into() }
    }

    /// The planned length, behind what was `measured` of it; of a run that a late wake-up ended, that wake-up.
    fn length(&self, measured: Option<MeasuredPart>) -> Option<String> {
        if let Some(StoppedAt { slot, limit }) = measured.and_then(|part| part.stopped) {
            return Some(format!("stopped at wake-up {slot}, later than {}", span(limit)));
        }
        let of = |part: Option<String>, whole: String| match part {
            Some(part) if part != whole => format!("{part} of {whole}"),
            _ => whole,
        };
        let rows = measured.map(|part| grouped(part.rows));
        let noun = self.kind.rows();
        let count = self.spec.stop.count.map(|count| match (self.threads, rows) {
            (Some(1), rows) => format!("{} {noun}", of(rows, grouped(count))),
            (Some(threads), Some(rows)) => {
                format!("{} {noun} on {threads} CPUs", of(Some(rows), grouped(count * threads as u64)))
            }
            (Some(threads), None) => format!("{} {noun} on each of {threads} CPUs", grouped(count)),
            (None, _) => format!("{} {noun} on each CPU", grouped(count)),
        });
        let up_to = if is_search(self.spec) { "up to " } else { "" };
        let time = measured.map(|part| match part.duration {
            Nanos::ZERO => "0 s".into(),
            duration => span(duration),
        });
        let duration = self.spec.stop.duration_ns.map(|duration| format!("{up_to}{}", of(time, span(duration))));
        let between = if measured.is_some() { "in" } else { "or" };
        count.into_iter().chain(duration).reduce(|count, duration| format!("{count} {between} {duration}"))
    }
}

fn is_search(run: &RunSpec) -> bool {
    run.stream().is_some_and(|stream| stream.search.is_some())
}

/// See [`Headline::threads`].
fn threads(run: &RunSpec) -> Option<usize> {
    match run.wakeup().map(|wakeup| &wakeup.cpus) {
        Some(WakeupCpus::All) => None,
        Some(WakeupCpus::These(cpus)) => Some(cpus.len()),
        Some(WakeupCpus::Anywhere) | None => Some(1),
    }
}

/// Returns the family of an address with a port.
pub fn family_of(address: &str) -> Family {
    if address.starts_with('[') { Family::Ipv6 } else { Family::Ipv4 }
}

/// The heading that the summaries of `runs` will have.
pub fn planned_heading<'a>(runs: impl IntoIterator<Item = &'a RunSpec>) -> String {
    let headlines = runs.into_iter().map(|run| Headline {
        kind: run.kind(),
        spec: run,
        family: run.family(),
        threads: threads(run),
        measured: None,
    });
    heading(&headlines.collect::<Vec<_>>())
}

/// The properties that all runs have in common.
pub(super) fn heading(runs: &[Headline]) -> String {
    let is_partial = runs.iter().any(|run| run.measured.is_some());
    let length = |run: &Headline| match runs {
        [_] => run.length(run.measured),
        _ => run.length(None).map(|length| if is_partial { format!("{length} planned") } else { length }),
    };
    let have_one_target = runs.windows(2).all(|pair| pair[0].spec.target == pair[1].spec.target);
    // Runs of one kind with several targets have the word of the kind in common.
    let what = |run: &Headline| if have_one_target { run.target() } else { run.kind.word().to_owned() };
    let parts = |run: &Headline| {
        let factors = run.spec.heading(run.family);
        std::iter::once(Some(what(run))).chain(factors).chain([length(run)]).collect::<Vec<_>>()
    };
    let of_each: Vec<_> = runs.iter().map(parts).collect();
    let Some((first, others)) = of_each.split_first() else { return String::new() };
    let common = first.iter().enumerate().filter(|(place, part)| others.iter().all(|other| other[*place] == **part));
    common.filter_map(|(_, part)| part.clone()).collect::<Vec<_>>().join(" · ")
}

/// Whether all runs are of one kind and have the same main metric.
pub(super) fn are_of_one_kind(summaries: &[Summary]) -> bool {
    summaries.windows(2).all(|pair| (pair[0].kind, pair[0].metric) == (pair[1].kind, pair[1].metric))
}

/// Returns the name of each run among the others of its kind, behind the word of the kind if there are several.
pub(super) fn names(summaries: &[Summary]) -> Vec<String> {
    let are_of_one_kind = are_of_one_kind(summaries);
    let mut names = vec![String::new(); summaries.len()];
    for kind in Kind::ALL {
        let of_kind = summaries.iter().enumerate().filter(|(_, summary)| summary.kind == kind);
        let (places, of_kind): (Vec<usize>, Vec<&Summary>) = of_kind.unzip();
        for (place, name) in places.into_iter().zip(names_in_kind(&of_kind)) {
            names[place] = match (are_of_one_kind, name.is_empty()) {
                (true, _) => name,
                (false, true) => kind.word().into(),
                (false, false) => format!("{} · {name}", kind.word()),
            };
        }
    }
    names
}

/// Returns the name of each run: the factors in which they differ, with the short id of the recording where several runs
/// have the same; the directory if nothing differs; nothing for a single run.
fn names_in_kind(summaries: &[&Summary]) -> Vec<String> {
    if let [_] = summaries {
        return vec![String::new()];
    }
    distinct_names(labels(summaries), &summaries.iter().map(|summary| directory(summary)).collect::<Vec<_>>())
}

/// The name of each run of a page: that of its condition in `labels`, with the short id of the recording where several runs
/// have the same; as [`names`] if the conditions have no names.
pub(super) fn names_by_condition(summaries: &[Summary], labels: Vec<String>) -> Vec<String> {
    match summaries {
        several if several.len() > 1 && labels.len() == several.len() && !labels.iter().all(String::is_empty) => {
            distinct_names(labels, &several.iter().map(directory).collect::<Vec<_>>())
        }
        _ => names(summaries),
    }
}

/// The conditions of the runs of one experiment, else the factors in which the runs differ.
fn labels(summaries: &[&Summary]) -> Vec<String> {
    let of_experiment: Option<Vec<_>> = summaries.iter().map(|summary| summary.experiment.as_ref()).collect();
    match of_experiment {
        Some(runs) if runs.windows(2).all(|pair| pair[0].experiment == pair[1].experiment) => conditions(&runs),
        _ => RunSpec::labels(&summaries.iter().map(|summary| &summary.spec).collect::<Vec<_>>()),
    }
}

/// The condition of each run as far as the runs differ in it.
fn conditions(runs: &[&ExperimentFacts]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut common = first.factors.clone();
    common.retain(|factor, level| runs.iter().all(|run| run.factors.get(factor) == Some(level)));
    let label = |run: &&ExperimentFacts| {
        let mut own = run.factors.clone();
        own.retain(|factor, level| common.get(factor) != Some(level));
        let words = (!own.is_empty()).then(|| levels_words(&own));
        words.into_iter().chain(run.warmup.then(|| "warm-up".into())).collect::<Vec<_>>().join(" · ")
    };
    runs.iter().map(label).collect()
}

/// The title of a table of the run with this name, which a single run does not have.
pub(super) fn title_of_run(name: &str, title: &str) -> String {
    if name.is_empty() { title.to_owned() } else { format!("{name} · {title}") }
}

fn directory(summary: &Summary) -> String {
    summary.recording.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::StopWhen;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed, cpu_load, probes_of};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::plan::{Target, TransportKind};
    use crate::recording::manifest::RunEnding;

    fn run(id: &str, load: &str, warmup: bool) -> Summary {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        summary.recording = format!("x/runs/20261121T021500Z-ping-{id}");
        let factors = [("load", load), ("size", "24")].map(|(factor, level)| (factor.to_owned(), level.to_owned()));
        summary.experiment = Some(ExperimentFacts {
            experiment: "0123456789abcdef".into(),
            condition: 1,
            factors: factors.into(),
            block: 1,
            round: None,
            position: 1,
            boot_id: None,
            warmup,
        });
        summary
    }

    #[test]
    fn the_heading_of_a_run_that_ended_early_says_how_much_was_measured() {
        let mut one = run("7f3a", "none", false);
        one.spec.stop = StopWhen { count: Some(1_000), duration_ns: Some(Nanos::from_secs(60)) };
        (one.ending, one.duration_ns) = (RunEnding::Completed, Nanos::from_millis(2_500));
        let end = |runs: &[Summary]| {
            let heading = heading(&runs.iter().map(Headline::of).collect::<Vec<_>>());
            heading.rsplit(" · ").next().map(str::to_owned).expect("a part")
        };
        assert_eq!(end(std::slice::from_ref(&one)), "1,000 probes or 60 s");
        let early = Summary { ending: RunEnding::Interrupted, ..one.clone() };
        assert_eq!(end(std::slice::from_ref(&early)), "1 of 1,000 probes in 2.5 s of 60 s");
        let mut late = Headline::of(&early);
        let stopped = Some(StoppedAt { slot: 58, limit: Nanos::from_micros(10) });
        late.measured = late.measured.map(|part| MeasuredPart { stopped, ..part });
        assert_eq!(late.length(late.measured).as_deref(), Some("stopped at wake-up 58, later than 10 µs"));
        assert_eq!(end(&[one, early]), "1,000 probes or 60 s planned");
    }

    #[test]
    fn the_heading_of_runs_with_several_targets_begins_with_their_kind() {
        let mut runs = [run("7f3a", "none", false), run("81aa", "none", false)];
        let begin = |runs: &[Summary]| {
            let heading = heading(&runs.iter().map(Headline::of).collect::<Vec<_>>());
            heading.split(" · ").next().map(str::to_owned).expect("a part")
        };
        assert_eq!(begin(&runs), "ping local");
        runs[1].spec.target = Target::Log { tool: "irtt".into() };
        assert_eq!(begin(&runs), "ping");
    }

    #[test]
    fn a_count_of_wake_ups_is_that_of_each_thread() {
        let mut one = run("7f3a", "none", false);
        let stop = StopWhen { count: Some(500), duration_ns: None };
        let part = MeasuredPart { rows: 700, duration: Nanos::ZERO, stopped: None };
        let kind = Kind::Wakeup;
        for (threads, measured, words) in [
            (Some(1), None, "500 wake-ups"),
            (Some(2), None, "500 wake-ups on each of 2 CPUs"),
            (Some(2), Some(part), "700 of 1,000 wake-ups on 2 CPUs"),
            (None, None, "500 wake-ups on each CPU"),
        ] {
            one.spec.stop = stop;
            let headline = Headline { kind, threads, ..Headline::of(&one) };
            assert_eq!(headline.length(measured).as_deref(), Some(words));
        }
    }

    #[test]
    fn runs_of_an_experiment_are_named_by_their_conditions() {
        let runs = [run("7f3a", "none", true), run("81aa", "none", false), run("0d2e", "cpu=80%", false)];
        assert_eq!(names(&runs), ["load=none · warm-up", "load=none", "cpu=80%"]);
        assert_eq!(
            names(&[&runs[1..], &runs[1..2]].concat())[..2],
            ["load=none · 20261121T021500Z-ping-81aa", "cpu=80%"]
        );
        let repeated = [run("7f3a", "none", false), run("81aa", "none", false), run("0d2e", "cpu=80%", false)];
        assert_eq!(names(&repeated), ["load=none · 7f3a", "load=none · 81aa", "cpu=80%"]);
        let mut larger = runs[2].clone();
        larger.experiment.as_mut().and_then(|it| it.factors.insert("size".into(), "512".into()));
        assert_eq!(names(&[runs[1].clone(), larger]), ["load=none, size=24", "cpu=80%, size=512"]);
        assert_eq!(names(&repeated[..1]), [""]);
        assert_eq!(names(&repeated[..2]), ["20261121T021500Z-ping-7f3a", "20261121T021500Z-ping-81aa"]);
    }

    #[test]
    fn runs_of_named_conditions_have_these_names_and_others_their_own() {
        let runs = [run("7f3a", "none", false), run("81aa", "none", false), run("0d2e", "cpu=80%", false)];
        let of = |labels: &[&str]| names_by_condition(&runs, labels.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(of(&["idle", "idle", "busy"]), ["idle · 7f3a", "idle · 81aa", "busy"]);
        for labels in [&[""; 3][..], &["idle"], &[]] {
            assert_eq!(of(labels), names(&runs));
        }
        assert_eq!(names_by_condition(&runs[..1], vec!["idle".into()]), [""]);
    }

    #[test]
    fn runs_of_several_kinds_are_named_among_those_of_their_kind() {
        let mut runs = [run("7f3a", "none", false), run("81aa", "none", false), run("0d2e", "none", false)];
        runs.iter_mut().for_each(|run| run.experiment = None);
        runs[1].kind = Kind::Wakeup;
        probes_of(&mut runs[2].spec).size_bytes = 1_024;
        assert_eq!(names(&runs), ["ping · 64 B", "wakeup", "ping · 1,024 B"]);
    }

    #[test]
    fn other_runs_are_named_by_what_differs_between_them() {
        let mut runs = [run("7f3a", "none", false), run("81aa", "none", false), run("0d2e", "none", false)];
        runs.iter_mut().for_each(|run| run.experiment = None);
        runs[1].spec.loads = vec![cpu_load(0.8)];
        runs[2].spec.tags.insert("build".into(), "4f2a".into());
        assert_eq!(names(&runs), ["no load", "cpu=80%", "no load · build=4f2a"]);
        probes_of(&mut runs[0].spec).transport = TransportKind::Tcp;
        assert_eq!(names(&runs), ["tcp · no load", "udp · cpu=80%", "udp · no load · build=4f2a"]);
    }
}
