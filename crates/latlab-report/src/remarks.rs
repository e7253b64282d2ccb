//! Labelled lines on probes, packets, loads, settings and the cost of the instrument.

use std::net::SocketAddr;

use super::figures::{duration, sure};
use super::rare_levels;
use super::stream_tables::{LOST_AT_LEAST, properties};
use super::view::RemarkView;
use crate::analysis::{Kind, Lateness, NoBareLoop, Summary, UnexplainedDelay, Via};
use crate::facts::{BareConditions, Instrument, LoadReport, XdpEnds, XdpFacts};
use crate::plan::WaitMode;
use crate::plan::defaults::SIZE_BYTES;
use crate::stats::Interval;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, grouped, load_figure, percent, significant, span, typed_size};

/// Formats a line for a run; `None` if not applicable.
type Line = fn(&Summary) -> Option<String>;

/// The label of what is shown for each run if the runs differ.
const OF_EACH: &str = "lateness";

/// Returns the labelled lines; for several runs, lines common to all of them and the range of instrument costs.
pub(super) fn remarks(summaries: &[Summary], names: &[String]) -> Vec<RemarkView> {
    let Some(first) = summaries.first() else { return Vec::new() };
    let packets_or_samples = format!("{}s", properties(summaries).message);
    let lines: [(&str, Line); 12] = [
        (&packets_or_samples, packets),
        ("sending", sending),
        ("lateness", lateness),
        ("remedies", remedies),
        ("resources", resources),
        ("ends", ends),
        ("settings", settings),
        ("xdp", |summary| past_the_stack(&summary.xdp)),
        ("fates", fates),
        ("deadline", deadline),
        ("time-outs", time_outs),
        ("pauses", pauses),
    ];
    let remark = |label: &str, text: String| RemarkView { label: label.into(), text };
    let common = lines.into_iter().flat_map(|(label, line)| {
        let texts: Vec<_> = summaries.iter().map(line).collect();
        let are_alike = texts.windows(2).all(|pair| pair[0] == pair[1]);
        let of_each = |(name, text): (&String, Option<String>)| Some(format!("{name}: {}", text?));
        let shown: Vec<String> = if are_alike {
            texts.into_iter().flatten().take(1).collect()
        } else if label == OF_EACH {
            names.iter().zip(texts).filter_map(of_each).collect()
        } else {
            Vec::new()
        };
        shown.into_iter().map(move |text| remark(label, text)).collect::<Vec<_>>()
    });
    let extremes = summaries.iter().zip(names).filter_map(|(summary, name)| rare_levels::refusal(summary, name));
    let alike = summaries.iter().all(|summary| summary.loads == first.loads);
    let loads = if alike { load_remarks(&first.loads) } else { Vec::new() };
    let discovery = discovery(summaries).map(|text| remark("discovery", text));
    // The cost of another tool is not known.
    let is_measured = summaries.iter().any(|summary| !summary.is_imported);
    let instrument = is_measured.then(|| remark("instrument", instrument(summaries)));
    loads.into_iter().chain(common).chain(extremes).chain(discovery).chain(instrument).collect()
}

/// Formats the time in which DDS ends found each other: of one run, or the range over several.
fn discovery(summaries: &[Summary]) -> Option<String> {
    let spans = || summaries.iter().filter_map(|summary| summary.discovery_ns);
    let (least, most) = (spans().min()?, spans().max()?);
    let range = if least == most { span(most) } else { format!("{} to {}", span(least), span(most)) };
    Some(format!("{range} until both ends had discovered each other, before the warm-up"))
}

/// Formats how packets passed the network stack by, such as `sender: AF_XDP, generic, queue 0 of eth0`; `None` if they did not.
pub(super) fn past_the_stack(ends: &XdpEnds) -> Option<String> {
    let end = |name: &str, facts: &XdpFacts| {
        let mode = match (facts.zero_copy, facts.native) {
            (true, _) => "zero copy",
            (_, true) => "native",
            _ => "generic",
        };
        let place = match facts.queue {
            Some(queue) => format!("AF_XDP, {mode}, queue {queue} of"),
            None => format!("XDP_TX, {mode}, at"),
        };
        format!("{name}: {place} {}", facts.interface)
    };
    let sender = ends.sender.as_ref().map(|facts| end("sender", facts));
    let reflector = ends.reflector.as_ref().map(|facts| end("reflector", facts));
    sender.into_iter().chain(reflector).reduce(|all, one| format!("{all} · {one}"))
}

/// Formats the memory of the largest execution, and means of what the kernel counted.
fn resources(summary: &Summary) -> Option<String> {
    let figures = summary.executions.as_ref()?;
    let mean = |name| figures.means.get(name).map(|mean| significant(*mean));
    let (largest, own) = (figures.max_resident_bytes, figures.own_resident_bytes);
    let resident = match own.filter(|own| largest <= *own) {
        Some(own) => format!("not above that of latlab, {}", memory(own)),
        None => format!("up to {}", memory(largest)),
    };
    Some(format!(
        "resident memory {resident} · on average {} voluntary and {} involuntary switches, {} minor and {} major faults",
        mean("voluntary_switches")?,
        mean("involuntary_switches")?,
        mean("minor_faults")?,
        mean("major_faults")?,
    ))
}

/// `1.75 MiB`
fn memory(bytes: i64) -> String {
    format!("{} MiB", significant(bytes as f64 / f64::from(1 << 20)))
}

/// Formats how executions ended, unless all have the exit code 0.
fn ends(summary: &Summary) -> Option<String> {
    let figures = summary.executions.as_ref()?;
    let counted = |name: &str, (code, n): (&i64, &u64)| format!("{name} {code}: {}", grouped(*n));
    let codes = figures.exit_codes.iter().map(|one| counted("exit code", one));
    let signals = figures.signals.iter().map(|one| counted("signal", one));
    let late = (figures.timed_out > 0).then(|| format!("timed out: {}", grouped(figures.timed_out)));
    let all: Vec<String> = codes.chain(signals).chain(late).collect();
    let is_usual = all.iter().all(|one| one.starts_with("exit code 0:"));
    (!is_usual).then(|| all.join(" · "))
}

/// Formats the known causes of the median lateness and possible causes of the remainder.
fn lateness(summary: &Summary) -> Option<String> {
    let wakeups = summary.wakeups.as_ref()?;
    let lateness = &wakeups.lateness;
    let allowed = lateness.allowed_ns?;
    let by = match (lateness.via, lateness.real_time, lateness.stretch) {
        (Via::Spin, ..) => return Some("no sleep: the rest is the clock read and the loop".into()),
        (_, true, _) => "SCHED_FIFO: no timer slack".to_owned(),
        _ if lateness.timer_slack_ns == Some(Nanos::ZERO) => "no timer slack: the kernel reports 0".to_owned(),
        (via, ..) if !via.has_slack() => format!("{}: no timer slack", via.word()),
        (via, _, Some(share)) if lateness.timer_slack_ns < Some(allowed) => {
            let source = "select_estimate_accuracy, fs/select.c";
            format!(
                "{} may lengthen its time-out by {} ({source}): up to {}",
                via.word(),
                percent(share),
                span(allowed)
            )
        }
        _ => format!("timer slack: up to {}", span(allowed)),
    };
    let cause = if wakeups.is_backlog(summary.counts.answered) {
        "backlog: most wake-ups were due before their thread was ready"
    } else {
        "interrupt, idle exit, scheduling"
    };
    let rest = match lateness.rest {
        UnexplainedDelay::Unknown => String::new(),
        UnexplainedDelay::BeforeTheLimit => {
            " · the median wake-up came before the kernel's limit: the rest is not known".into()
        }
        UnexplainedDelay::Known(rest) => format!(" · rest of the median: {} ({cause})", duration(rest)),
    };
    Some(format!("{by}{}{rest}", rounding(lateness)))
}

/// Formats remedies for the timer slack; `None` if the slack is negligible.
fn remedies(summary: &Summary) -> Option<String> {
    let lateness = &summary.wakeups.as_ref()?.lateness;
    let allowed = lateness.allowed_ns.filter(|allowed| *allowed > Nanos::from_micros(1))?;
    let remedy = if lateness.timer_slack_ns < Some(allowed) {
        "`--via clock_nanosleep` has no such delay"
    } else {
        "`--set timer-slack=1ns` or `--fifo` removes the slack"
    };
    Some(format!("{remedy}; `--try-remedies` measures the effect of each"))
}

/// Formats the lateness due to the resolution of the call's time-out.
fn rounding(lateness: &Lateness) -> String {
    let whole = if lateness.via.grain() < Nanos::from_millis(1) { "microseconds" } else { "milliseconds" };
    match lateness.rounding_ns {
        Some(0.0) => String::new(),
        Some(rounding) => format!(" · rounding up to whole {whole}: {}", duration(rounding)),
        None => format!(" · rounding up to whole {whole}: up to {}", span(lateness.via.grain())),
    }
}

/// Formats the settings applied during the run.
fn settings(summary: &Summary) -> Option<String> {
    let settings = summary.spec.settings.iter().map(|set| format!("{}={}", set.place(), set.setting));
    settings.reduce(|all, one| format!("{all} · {one}"))
}

/// Formats counts of probes, unless all were answered normally, and what the data say of their loss ratio.
fn fates(summary: &Summary) -> Option<String> {
    if summary.kind != Kind::Ping {
        return None;
    }
    let counts = &summary.counts;
    let odd = [
        ("late", counts.late),
        ("lost", counts.lost),
        ("send failed", counts.send_failed),
        ("not sent", counts.not_sent),
        ("duplicates", counts.duplicates),
        ("reordered", counts.reordered),
    ];
    let counted = |(word, count): (&str, u64)| format!("{word} {}", grouped(count));
    let odd: Vec<_> = odd.into_iter().filter(|(_, count)| *count > 0).map(counted).collect();
    let due = counts.sent + counts.send_failed + counts.not_sent;
    // A loss ratio of 0 says nothing about probes that were never sent.
    let (sent, none_lost) = match counts.not_sent {
        0 => (counted(("sent", counts.sent)), "none lost"),
        _ => (format!("sent {} of {} due", grouped(counts.sent), grouped(due)), "of those none lost"),
    };
    let usual = [sent, counted(("answered", counts.answered))];
    let words = usual.into_iter().filter(|_| !odd.is_empty()).chain(odd.iter().cloned());
    let loss = match summary.ratios.loss {
        Some(0.0) => {
            none_of("losses", summary.ratios.loss_interval).map(|most| format!("{none_lost}: loss ratio {most}"))
        }
        loss => loss.map(|loss| format!("loss ratio {}", sure(loss, summary.ratios.loss_interval))),
    };
    words.chain(loss).reduce(|all, one| format!("{all} · {one}"))
}

/// Formats the upper end of the interval of a ratio of 0 as `≤ 0.019 % (95 %) if losses are single`: nothing is known of
/// bursts.
fn none_of(events: &str, interval: Option<Interval>) -> Option<String> {
    let Interval { high, confidence, .. } = interval?;
    let most = 100.0 * high?;
    // Two significant digits: of a million probes the ratio is 0.00038 %.
    let decimals = (1.0 - most.log10().floor()).max(0.0) as usize;
    Some(format!("≤ {most:.decimals$} % ({}) if the {events} are independent", percent(confidence)))
}

fn deadline(summary: &Summary) -> Option<String> {
    let deadline = summary.deadline?;
    let ratios = &summary.ratios;
    let interval = ratios.deadline_miss_interval;
    let share = match ratios.deadline_miss {
        Some(0.0) => none_of("misses", interval),
        share => share.map(|share| sure(share, interval)),
    };
    let share = share.map(|share| format!(": {share}")).unwrap_or_default();
    Some(format!(
        "{} missed by {} of {} due probes{share}",
        span(deadline.deadline_ns),
        grouped(deadline.missed),
        grouped(deadline.due)
    ))
}

fn time_outs(summary: &Summary) -> Option<String> {
    let spent = summary.timed_out_ns;
    (spent.0 > 0).then(|| format!("{} spent waiting for answers that did not come", span(spent)))
}

fn pauses(summary: &Summary) -> Option<String> {
    let spent = summary.refused_pause_ns;
    (spent.0 > 0).then(|| format!("{} spent pausing after sends that the kernel refused", span(spent)))
}

/// Formats the instrument's costs, the lower bound of every figure; for several runs as ranges. A loopback path needs no
/// authentication, and only runs that a bare loop can match mention it.
fn instrument(summaries: &[Summary]) -> String {
    let all = |of: fn(&Instrument) -> Option<f64>| {
        let known: Vec<f64> = summaries.iter().filter_map(|summary| of(&summary.instrument)).collect();
        range(&known)
    };
    let step = summaries.iter().filter_map(|summary| summary.instrument.clock_resolution_ns).max();
    let step = step.map(|step| format!(" in steps of {}", span(step))).unwrap_or_default();
    let clock = all(|instrument| instrument.clock_read_ns);
    let clock = clock.map_or_else(|| "clock cost unknown".into(), |cost| format!("clock {cost} per read{step}"));
    let is_local = || summaries.iter().all(|summary| summary.is_imported || is_on_loopback(summary));
    let tag = match all(|instrument| instrument.tag_ns) {
        Some(cost) => Some(format!("authentication {cost}")),
        None if summaries.iter().any(|summary| summary.spec.authenticated) => {
            Some("authentication cost unknown".into())
        }
        None => (!is_local()).then(|| "not authenticated".into()),
    };
    let bare = all(|instrument| instrument.bare_loop.as_ref().map(|bare| bare.p50_ns));
    let bare = bare.map(|cost| format!("bare loop on these pins p50 {cost}")).or_else(|| without_bare_loop(summaries));
    // The bare loop measures round trips, and wake-ups have no authentication tag.
    let tag = tag.filter(|_| summaries.iter().any(|summary| summary.kind.has_target()));
    let bare = bare.filter(|_| summaries.iter().any(|summary| summary.kind.has_target() && summary.stream.is_none()));
    [tag, pins(summaries), bare].into_iter().flatten().fold(clock, |all, cost| format!("{all} · {cost}"))
}

/// `ends on CPU 0 and 1`, if both are pinned and alike in all runs.
fn pins(summaries: &[Summary]) -> Option<String> {
    let of = |summary: &Summary| Some((summary.spec.here.cpu?, summary.spec.peer.as_ref()?.cpu?));
    let (here, peer) = of(summaries.first()?)?;
    let is_same = summaries.iter().all(|summary| of(summary) == Some((here, peer)));
    is_same.then(|| format!("ends on CPU {here} and {peer}"))
}

/// `23.4 ns` or, if the costs differ, `23.4–25.1 ns`, in the unit that suits the largest; `None` without any.
fn range(costs_ns: &[f64]) -> Option<String> {
    let [least, most] = [f64::min, f64::max].map(|of| costs_ns.iter().copied().reduce(of));
    let unit = TimeUnit::suiting(most?);
    let (least, most) = (unit.figure(least?), unit.figure(most?));
    let range = if least == most { most } else { format!("{least}–{most}") };
    Some(format!("{range} {}", unit.symbol()))
}

fn is_on_loopback(summary: &Summary) -> bool {
    let address = summary.peer_address.as_deref().and_then(|address| address.parse::<SocketAddr>().ok());
    address.is_some_and(|address| address.ip().is_loopback())
}

/// Formats the command that measures the bare loop of these runs, or why they have none; `None` for ends that are not pinned
/// or on two hosts.
fn without_bare_loop(summaries: &[Summary]) -> Option<String> {
    let mut commands = summaries.iter().filter_map(|summary| summary.spec.bare_conditions().ok()).map(calibration);
    if let Some(first) = commands.next() {
        let others = if commands.all(|other| other == first) { "" } else { ", similar for the others" };
        return Some(format!("bare loop not measured (`{first}`{others})"));
    }
    match summaries.first().map(|summary| summary.spec.bare_conditions()) {
        Some(Err(NoBareLoop::Conditions)) => {
            Some("bare loop: only for a closed loop over UDP and IPv4, without loads and settings".into())
        }
        _ => None,
    }
}

/// The command that measures and keeps the bare loop in these conditions.
fn calibration(conditions: BareConditions) -> String {
    let BareConditions { size_bytes, wait, cpu, peer_cpu, fifo } = conditions;
    let options = [
        cpu.map(|cpu| format!("--cpu {cpu}")),
        peer_cpu.map(|cpu| format!("--peer-cpu {cpu}")),
        (size_bytes != SIZE_BYTES).then(|| format!("--size {size_bytes}")),
        (wait != WaitMode::Block.word()).then(|| format!("--wait {wait}")),
        fifo.map(|priority| format!("--fifo {priority}")),
    ];
    options.into_iter().flatten().fold("latlab doctor --calibrate".into(), |all, option| format!("{all} {option}"))
}

/// Formats counts of packets; `None` if all were delivered normally.
pub(super) fn packets(summary: &Summary) -> Option<String> {
    let stream = summary.stream.as_ref()?;
    let total = &stream.total;
    let drops = match (stream.socket_drops, stream.drops_are_merged) {
        (Some(drops), true) if drops > 0 => {
            Some(format!("at the receiver's socket at least {} buffers", grouped(drops)))
        }
        // One sample is several datagrams, or one datagram several samples.
        (Some(drops), false) if total.lost() > 0 && properties(std::slice::from_ref(summary)).has_own_threads => {
            (drops > 0).then(|| format!("datagrams dropped at the receiver's sockets {}", grouped(drops)))
        }
        (Some(drops), false) if total.lost() > 0 => {
            Some(format!("at the receiver's socket {}", grouped(drops.min(total.lost()))))
        }
        _ => None,
    };
    let odd = [
        (if summary.knows_losses { "lost" } else { LOST_AT_LEAST }, total.lost()),
        ("reordered", total.reordered),
        ("duplicates", total.duplicates),
        ("too late to be recognised as new", total.outside_window),
        ("undecided", total.sent.saturating_sub(total.decided)),
        ("refused and sent again", total.refused),
        ("skipped", total.skipped),
    ];
    let words =
        odd.into_iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{word} {}", grouped(count)));
    words.chain(drops).reduce(|all, one| format!("{all} · {one}"))
}

/// Formats burst and buffer sizes of the sender.
pub(super) fn sending(summary: &Summary) -> Option<String> {
    let stream = summary.stream.as_ref()?;
    let message = properties(std::slice::from_ref(summary)).message;
    let bursts = (stream.burst_packets > 0).then(|| match stream.burst_packets {
        1 => format!("one {message} at a time"),
        burst => format!("bursts of at most {} {message}s", grouped(burst)),
    });
    let buffer =
        |what: &str, granted: Option<u32>| granted.map(|granted| format!("{what} buffer {}", typed_size(granted)));
    let (send, receive) = (stream.send_buffer_bytes, stream.receive_buffer_bytes);
    let parts = bursts.into_iter().chain(buffer("send", send)).chain(buffer("receive", receive));
    parts.reduce(|all, one| format!("{all} · {one}"))
}

/// Returns a line for each load: `cpu=80% → 79.8 % (78.1 % to 81.2 % over 100 ms)`.
pub(super) fn load_remarks(loads: &[LoadReport]) -> Vec<RemarkView> {
    let label = |number: usize| if number == 0 { "load".to_owned() } else { String::new() };
    let lines =
        loads.iter().enumerate().map(|(number, load)| RemarkView { label: label(number), text: load_line(load) });
    lines.collect()
}

pub(super) fn load_line(load: &LoadReport) -> String {
    let place = if load.at == "local" { String::new() } else { format!(" at {}", load.at) };
    let reached = match load.achieved {
        Some(achieved) => load_figure(&load.unit, achieved),
        None => "unknown".into(),
    };
    let range = load.min.zip(load.max).map(|(least, most)| {
        format!(" ({} to {} over 100 ms)", load_figure(&load.unit, least), load_figure(&load.unit, most))
    });
    format!("{}{place}{} → {reached}{}", load.load, share_of(load), range.unwrap_or_default())
}

/// Formats the rate of a share of the path as ` (90.0 Mbit/s of 100 Mbit/s)`; empty for other loads.
fn share_of(load: &LoadReport) -> String {
    let searched = load.stream.as_ref().and_then(|stream| stream.searched_bps);
    let both = load.offered.zip(searched);
    both.map_or(String::new(), |(offered, searched)| {
        format!(" ({} of {})", load_figure(&load.unit, offered), load_figure(&load.unit, searched))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, closed};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::plan::Schedule;
    use crate::recording::manifest::Manifest;

    /// A run of which no bare loop is recorded, after a change of its manifest.
    fn summary(schedule: Schedule, change: impl Fn(&mut Manifest)) -> Summary {
        let mut source = InMemory::of(schedule, vec![closed(0, 0, 50)]);
        source.manifest.instrument.bare_loop = None;
        change(&mut source.manifest);
        summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for")
    }

    #[test]
    fn a_missing_bare_loop_has_the_command_that_measures_it() {
        let plain = summary(CLOSED, |_| ());
        let command = "bare loop not measured (`latlab doctor --calibrate --cpu 0 --peer-cpu 1`)";
        assert!(instrument(std::slice::from_ref(&plain)).ends_with(command));
        let other = summary(CLOSED, |manifest| {
            (manifest.spec.here.wait, manifest.spec.here.fifo) = (WaitMode::Spin, Some(50));
        });
        let options = "bare loop not measured (`latlab doctor --calibrate --cpu 0 --peer-cpu 1 --wait spin --fifo 50`)";
        assert!(instrument(std::slice::from_ref(&other)).ends_with(options));
        assert!(instrument(&[plain, other]).ends_with("--cpu 0 --peer-cpu 1`, similar for the others)"));
    }

    #[test]
    fn a_run_that_no_bare_loop_matches_has_no_command() {
        let unpinned = summary(CLOSED, |manifest| manifest.spec.here.cpu = None);
        assert_eq!(instrument(&[unpinned]), "clock 23.4 ns per read in steps of 1 ns");
        let scheduled = summary(EVERY_MS, |_| ());
        let reason = "bare loop: only for a closed loop over UDP and IPv4, without loads and settings";
        assert!(instrument(&[scheduled]).ends_with(reason));
    }

    #[test]
    fn a_path_without_authentication_is_mentioned_unless_it_is_loopback() {
        let over = |address: &str| {
            let address = Some(address.to_owned());
            instrument(&[summary(CLOSED, |manifest| manifest.run.peer_address = address.clone())])
        };
        assert!(over("192.0.2.7:9862").contains(" · not authenticated"));
        assert!(!over("[::1]:9862").contains("authenticated"));
    }

    #[test]
    fn a_bare_loop_recorded_for_a_run_in_other_conditions_is_not_shown() {
        let recorded = |schedule| {
            let source = InMemory::of(schedule, vec![closed(0, 0, 50)]);
            let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
            instrument(&[summary])
        };
        assert!(recorded(CLOSED).ends_with("bare loop on these pins p50 48.1 µs"));
        assert!(!recorded(EVERY_MS).contains("48.1"));
    }
}
