//! Explanations of slow probes as parts of a report and as `latlab.explain/1` (docs/schemas/explain-1.json).

mod activity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::json;

use super::json::pretty;
use super::view::{ColumnView, Part, RemarkView, RowView, TableView};
use crate::analysis::explain::{
    CommonCause, CommonTest, Explanation, HostDeviation, HostSignal, RanThen, StageShares, WatchedWakeups, WorstEpisode,
};
use crate::plan::Side;
use crate::units::Nanos;
use crate::units::human::{ABSENT, counted, grouped, percent, significant, span};

/// Episodes that a screen shows, unless all details are asked for.
const EPISODES: usize = 10;
/// Moments of the host that a screen shows.
const MOMENTS: usize = 3;

/// Renders the JSON document of the runs with a final newline.
pub fn json(explanations: &[Explanation]) -> String {
    pretty(&json!({ "schema": "latlab.explain/1", "runs": explanations }))
}

/// The parts of a run with this `heading`, which may be empty, with every episode and test if `in_full`.
pub fn parts(found: &Explanation, heading: &str, in_full: bool) -> Vec<Part> {
    let heading = (!heading.is_empty()).then(|| Part::Heading(heading.to_owned()));
    let mut parts: Vec<Part> = heading.into_iter().chain([Part::Notes(vec![answer(found)])]).collect();
    if found.answered == 0 {
        return parts;
    }
    parts.extend(stage_table(found).map(Part::Table));
    parts.extend(worst_table(found, if in_full { usize::MAX } else { EPISODES }).map(Part::Table));
    parts.push(Part::Remarks(remarks(found, in_full)));
    parts
}

/// What delays are of: `round trip`, `wake-up`.
fn noun(found: &Explanation) -> &'static str {
    if found.kind == "wakeup" { "wake-up latency" } else { "round trip" }
}

fn ns(value: i64) -> String {
    span(Nanos(value))
}

/// Where most of the tail is, in a sentence.
fn answer(found: &Explanation) -> String {
    if found.answered == 0 {
        return "nothing to explain: no probe was answered".into();
    }
    let figures = format!(
        "{} of {}{}: median {}, p99 {}, worst {}",
        noun(found),
        counted(found.answered as usize, if found.kind == "wakeup" { "wake-up" } else { "answered probe" }),
        if found.lost > 0 { format!(" ({} more were lost)", grouped(found.lost)) } else { String::new() },
        ns(found.median_ns),
        ns(found.p99_ns),
        ns(found.worst_ns)
    );
    let most = found.stages.iter().max_by(|one, other| one.excess_ns.total_cmp(&other.excess_ns));
    let excess: f64 = found.stages.iter().map(|stage| stage.excess_ns).sum();
    let of = |most: &StageShares| {
        let share = percent((most.excess_ns / excess).min(1.0));
        format!("; from p99 on {share} of what is beyond the median is in: {}", most.stage.name)
    };
    let most = most.filter(|most| most.excess_ns > 0.0 && excess > 0.0);
    format!("{figures}{}", most.map(of).unwrap_or_default())
}

fn stage_table(found: &Explanation) -> Option<TableView> {
    let stages = &found.stages;
    let error = found.stamp_error_ns.unwrap_or_default();
    let median = |stage: &StageShares| match stage.is_below_error {
        true => format!("< {}", ns(error)),
        false => ns(stage.median_ns),
    };
    let share = |of: fn(&StageShares) -> f64| stages.iter().map(move |stage| percent(of(stage)));
    let columns = vec![
        ColumnView::figures("median", stages.iter().map(median)),
        ColumnView::figures("of p50", share(|stage| stage.share_of_median)),
        ColumnView::figures("of p99 on", share(|stage| stage.share_of_p99)),
        ColumnView::figures("of the worst", share(|stage| stage.share_of_worst)),
    ];
    let rows = stages.iter().map(|stage| RowView::of(stage.stage.name)).collect();
    let table = TableView::of("where the time went", rows, columns);
    let left_out = format!("left out for want of a stamp: {}", counted(found.left_out as usize, "probe"));
    let legend = if found.left_out > 0 { left_out } else { String::new() };
    (!stages.is_empty()).then_some(TableView { legend, ..table })
}

fn worst_table(found: &Explanation, most: usize) -> Option<TableView> {
    let worst = &found.worst[..most.min(found.worst.len())];
    let words =
        |heading: &str, cell: &dyn Fn(&WorstEpisode) -> String| ColumnView::words(heading, worst.iter().map(cell));
    let figures =
        |heading: &str, cell: &dyn Fn(&WorstEpisode) -> String| ColumnView::figures(heading, worst.iter().map(cell));
    let probe = |episode: &WorstEpisode| match episode.probes {
        1 => grouped(episode.seq),
        probes => format!("{} ×{}", grouped(episode.seq), grouped(probes)),
    };
    // A line has 80 columns.
    let short = |stage: &str| stage.replace("path and kernels", "path").replace("stack and ", "");
    let mostly = |episode: &WorstEpisode| {
        let stage = episode.stage.map(|stage| format!("{} ", short(stage))).unwrap_or_default();
        format!("{stage}+{}", ns(episode.beyond_ns))
    };
    let columns = [
        words("probe", &probe),
        figures(noun(found), &|episode| ns(episode.delay_ns)),
        words("mostly", &mostly),
        words("CPUs", &cpus),
    ];
    let has_cells = |column: &ColumnView| column.cells.iter().any(|cell| !cell.is_empty());
    let rows = worst.iter().map(|episode| RowView::of(at(episode.start_ns))).collect();
    let title = format!("the worst of {}", counted(found.episodes as usize, "slow episode"));
    let note = format!("slow: {} from {} on", counted(found.slow as usize, "probe"), ns(found.slow_from_ns));
    let table = TableView::of(title, rows, columns.into_iter().filter(has_cells).collect());
    (!worst.is_empty()).then_some(TableView { note, corner: "after".into(), ..table })
}

/// A time since the start, to the millisecond.
fn at(start_ns: i64) -> String {
    format!("{:.3} s", start_ns as f64 / 1e9)
}

/// `0 1 0`: of the send call, the reflector and the receive call; empty if none is known.
fn cpus(episode: &WorstEpisode) -> String {
    let known = [episode.sent_cpu, episode.reflector_cpu, episode.received_cpu];
    let shown: Vec<String> = known.iter().flatten().map(ToString::to_string).collect();
    shown.join(" ")
}

fn deviation(of: &HostDeviation) -> String {
    let value = of.value;
    match of.signal {
        HostSignal::Interrupts => format!("{}/s interrupts", significant(value)),
        HostSignal::Softirqs => format!("{}/s softirqs", significant(value)),
        HostSignal::ContextSwitches => format!("{}/s switches", significant(value)),
        HostSignal::Drops => counted(value as usize, "drop"),
        HostSignal::Steal => format!("steal {}", percent(value)),
        HostSignal::Others => format!("others {}", percent(value)),
        HostSignal::Latlab => format!("latlab {}", percent(value)),
        HostSignal::Slowdown => format!("CPU at {}", percent(1.0 / value)),
    }
}

fn remarks(found: &Explanation, in_full: bool) -> Vec<RemarkView> {
    let remark = |label: &str, text: String| RemarkView { label: label.into(), text };
    let mut remarks: Vec<RemarkView> = Vec::new();
    let shown = found.common.iter().filter(|cause| cause.is_claimed || in_full);
    remarks.extend(shown.map(|cause| remark("in common", cause_words(cause))));
    if !found.common.iter().any(|cause| cause.is_claimed) {
        remarks.push(remark("in common", nothing(found)));
    }
    let moments = if in_full { usize::MAX } else { MOMENTS };
    let unusual = found.worst.iter().filter(|episode| !episode.around.is_empty());
    remarks.extend(unusual.take(moments).map(|episode| {
        let signals: Vec<String> = episode.around.iter().map(deviation).collect();
        remark("host then", format!("{}: {}", at(episode.start_ns), signals.join(", ")))
    }));
    let traced: Vec<&WorstEpisode> = found.worst.iter().filter(|episode| !episode.ran.is_empty()).collect();
    remarks.extend(longest(&traced).map(|text| remark("ran instead", text)));
    remarks.extend(
        traced
            .iter()
            .take(moments)
            .map(|episode| remark("ran then", format!("{}: {}", at(episode.start_ns), ran(&episode.ran)))),
    );
    remarks.extend(found.wakeups.as_ref().map(|wakeups| remark("wake-ups", wakeup_words(wakeups))));
    remarks.extend(activity::words(&found.cpu_activity).map(|text| remark("CPU activity", text)));
    if !found.next.command.is_empty() {
        remarks.push(remark("next", format!("`{}`: {}", found.next.command, found.next.why)));
    }
    remarks
}

/// Tasks and interrupts of a CPU that a moment shows.
const SHOWN_OF_CPU: usize = 4;

/// Tasks that are not named: what ran is what did not let those of latlab run.
const NOT_INSTEAD: [&str; 4] = ["measure", "probes", "sleep", "latlab"];

/// What ran the longest in the slowest stage of most of `traced`.
fn longest(traced: &[&WorstEpisode]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for episode in traced {
        let longest = episode.ran.iter().filter(|ran| !NOT_INSTEAD.contains(&&*ran.what)).max_by_key(|ran| ran.ns);
        longest.into_iter().for_each(|ran| *counts.entry(&ran.what).or_default() += 1);
    }
    let longest = counts.into_iter().max_by_key(|(_, count)| *count);
    longest.map(|(what, most)| format!("`{what}` the longest in {most} of the {} traced", traced.len()))
}

/// `CPU 1: stress-ng 3.9 ms, timer interrupt ×4 12 us`, with the longest of each CPU.
fn ran(all: &[RanThen]) -> String {
    let words = |ran: &RanThen| {
        let times = if ran.is_interrupt { format!(" ×{}", grouped(ran.times)) } else { String::new() };
        format!("{}{times} {}", ran.what, ns(ran.ns))
    };
    let cpu = |of: &[RanThen]| {
        let shown: Vec<String> = of.iter().take(SHOWN_OF_CPU).map(words).collect();
        let whose = if of[0].at == Side::Peer { "peer's " } else { "" };
        format!("{whose}CPU {}: {}", of[0].cpu, shown.join(", "))
    };
    all.chunk_by(|one, next| one.cpu == next.cpu).map(cpu).collect::<Vec<_>>().join(" · ")
}

/// What was tested without a claim.
fn nothing(found: &Explanation) -> String {
    let tested = found.common.iter().filter(|cause| cause.p_value.is_some()).count();
    let aliased = |cause: &&CommonCause| cause.test == CommonTest::Period && cause.p_value.is_none();
    let periods: Vec<String> =
        found.common.iter().filter(aliased).filter_map(|cause| Some(span(cause.period_ns?))).collect();
    let not_tested = if periods.is_empty() {
        String::new()
    } else {
        format!("; cannot be tested: periods of {}", periods.join(", "))
    };
    match found.common.is_empty() {
        true => format!("not tested: {}, and 10 are needed", counted(found.episodes as usize, "slow episode")),
        false => format!("nothing beyond chance, of {}{not_tested}", counted(tested, "test")),
    }
}

fn cause_words(cause: &CommonCause) -> String {
    let p = match cause.adjusted_p_value {
        Some(p) if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p {}", p.map_or(ABSENT.into(), significant)),
    };
    let count = grouped(cause.episodes);
    let period = cause.period_ns.map(|period| format!("period of {}: ", span(period))).unwrap_or_default();
    match (cause.hits, cause.expected) {
        (Some(hits), Some(expected)) => {
            format!("{} of the {count} worst {}; {} expected ({p})", grouped(hits), cause.what, significant(expected))
        }
        _ if cause.p_value.is_none() => format!("{period}{}", cause.what),
        _ => format!("{period}the {count} worst cluster, {} ({p})", cause.what),
    }
}

fn wakeup_words(found: &WatchedWakeups) -> String {
    let on = match found.cpus.as_slice() {
        [] => String::new(),
        [one] => format!(" on CPU {one}, the sender's"),
        several => format!(" on CPUs {}", several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let late = match found.late_from_ns {
        Some(from) => format!("later than {}", span(from)),
        None => "late: beyond p99 of their CPU".into(),
    };
    let [p50, p99, max] = [found.p50_ns, found.p99_ns, found.max_ns].map(ns);
    let (interval, n, number) = (span(found.interval_ns), grouped(found.n), grouped(found.late));
    format!("every {interval}{on} · n {n} · p50 {p50} · p99 {p99} · max {max} · {number} {late}")
}
