//! Caveats of streams: rates, losses, buffers; of rate searches, stages and concurrent probes; and of packets on the path.

use super::probes::MANY_LOSSES;
use super::remedies::{any_of, own_cpu, reflector_cpu};
use super::rule::Rule;
use super::run::Run;
use crate::diagnostics::Severity::{Note, Warning};
use crate::facts::SearchEnding;
use crate::limits::RATE_REACHED;
use crate::plan::{Direction, Pace, RateSearchSpec, Schedule, SendMode, StreamSpec, Target, defaults};
use crate::recording::manifest::UNFRAGMENTED_BYTES;
use crate::stream::{GoalEnd, GoalFigures, SearchFigures, StageFigures, StreamTotals};
use crate::units::Nanos;
use crate::units::human::{bit_rate, bytes, grouped, percent, span, typed_size};

/// Probes affect the result above this share of the stream's rate: half of the relative width of a search's bounds.
const PROBES: f64 = 0.01;
/// Rounding error of a computed share.
const ROUNDING: f64 = 1e-9;
/// The payload of an Ethernet frame, used if the MTU of the path is unknown.
const USUAL_MTU: u32 = 1_500;
/// The longest message of the DDS library, unless it is configured.
const DDS_MESSAGE_BYTES: u32 = 14_720;

const LONGER_SEARCH: &str = "more time (`-d 5m`), fewer goals in `--search`, or fewer other processes on this host";

pub(super) const RULES: &[Rule<Run<'_>>] = &[
    Rule {
        code: "nothing-measured",
        raise: |run| {
            let total = shown_total(run)?;
            let is_nothing = total.sent == 0 && !total.is_of_receiver_alone();
            is_nothing.then(|| (Warning, format!("no {} was sent", run.message())))
        },
        effect: "there are no rates to show",
        hint: |_| "a longer `--duration`, or a shorter `--warmup`".into(),
    },
    Rule {
        code: "no-answer",
        raise: |run| {
            let total = shown_total(run)?;
            let message = || format!("none of {} {}s arrived", grouped(total.decided), run.message());
            (total.delivered == 0 && total.decided > 0).then(|| (Warning, message()))
        },
        effect: "there are no rates to show",
        hint: |_| "check the path, or use a lower `--rate`".into(),
    },
    Rule {
        code: "rate-unreached",
        raise: |run| {
            let stream = run.stream?;
            // The sum of what each flow sent over its own time, since flows do not begin together.
            let flows = stream.flows.iter().filter(|flow| flow.sending > Nanos::ZERO);
            let reached =
                flows.map(|flow| flow.sent as f64 / flow.sending.as_secs_f64()).reduce(|sum, pps| sum + pps)?;
            // If the receiver stopped counting, packets were held back, which is not a limit of this end.
            let asked =
                stream.asked_pps.filter(|_| run.manifest.run.stream.as_ref().is_none_or(|facts| facts.settled))?;
            let rate = |pps: f64| bit_rate(pps * f64::from(stream.size_bytes) * 8.0);
            let skipped = match stream.total.skipped {
                0 => String::new(),
                skipped => {
                    let skipped = grouped(skipped);
                    format!("; {skipped} {}s were skipped, since they were more than 100 ms late", run.message())
                }
            };
            let (asked_rate, reached_rate, share) = (rate(asked), rate(reached), percent(reached / asked));
            let message = format!("{asked_rate} of payload was requested, {reached_rate} ({share}) was sent{skipped}");
            (reached / asked < RATE_REACHED).then_some((Warning, message))
        },
        effect: "all results belong to the rate that was reached",
        hint: faster,
    },
    Rule {
        code: "rate-unreached",
        // The last stage is the run.
        raise: |run| {
            let stages = &run.stream?.stages;
            let short = stages.iter().filter(|stage| stage.is_short && stage.share.is_some_and(|share| share < 1.0));
            let words = |stage: &StageFigures| {
                let (share, asked, sent) = (stage.share?, stage.asked_pps?, stage.offered_pps?);
                let (sent, asked, message) = (grouped(sent as u64), grouped(asked as u64), run.message());
                Some(format!("{sent} of {asked} {message}s/s at {}", percent(share)))
            };
            let words = listed(short.filter_map(words))?;
            Some((Warning, format!("stages sent less than their share of the found rate: {words}")))
        },
        effect: "their delays belong to the rate that was sent",
        hint: |_| "a CPU that the sender does not share (`--cpu`), or fewer other processes".into(),
    },
    Rule {
        code: "socket-drops",
        // Packets dropped at the receiver's socket were not lost on the way. The socket also receives polls, and may receive
        // from other senders: the number of its drops is therefore limited to the number of missing packets.
        raise: |run| {
            let (stream, lost) = (run.stream?, run.stream?.total.lost());
            let drops = stream.socket_drops.filter(|drops| *drops > 0 && lost > 0 && !run.is_over_library())?;
            let dropped = if stream.drops_are_merged {
                format!("at least {} merged buffers, each of one or more packets", grouped(drops))
            } else {
                of_messages(drops.min(lost), stream.total.decided, "packet")
            };
            Some((Warning, format!("the receiver's own socket dropped {dropped}")))
        },
        effect: "they reached the receiver's host: their loss shows the limit of that end, not of the network",
        hint: |run| {
            let buffer = Some("a larger buffer there (`sysctl net.core.rmem_max`)");
            any_of([own_cpu_of_receiver(run), buffer, Some("a lower `--rate`")])
        },
    },
    Rule {
        code: "lost",
        raise: |run| {
            let stream = run.stream?;
            let (lost, all) = (stream.total.lost(), stream.total.decided);
            let (lost, how) = match stream.socket_drops {
                _ if run.is_over_library() => (lost, "did not reach the receiver"),
                None => (lost, "were lost; how many of them at the receiver's own socket is not known"),
                Some(drops) if stream.drops_are_merged && drops > 0 => {
                    (lost, "were lost, at the receiver's socket or on the path")
                }
                Some(drops) => (lost.saturating_sub(drops), "were lost on the path, not at the receiver's socket"),
            };
            let severity = if stream.total.lost() as f64 >= MANY_LOSSES * all as f64 { Warning } else { Note };
            (lost > 0).then(|| (severity, format!("{} {how}", of_messages(lost, all, run.message()))))
        },
        effect: "the delivered rate does not include them",
        hint: |run| {
            match run.is_over_library() {
            true => "`--reliability reliable --history keep-all` at both ends, a larger buffer (`sysctl net.core.rmem_max` and \
                     SocketReceiveBufferSize in CYCLONEDDS_URI), or a lower `--rate`"
                .into(),
            false => "look for drops on the path: `ip -s link`, `nstat -az UdpRcvbufErrors`, `tc -s qdisc`".into(),
        }
        },
    },
    Rule {
        code: "undecided",
        raise: |run| {
            let total = &run.stream?.total;
            let undecided = total.sent.saturating_sub(total.decided);
            let packets = of_messages(undecided, total.sent, run.message());
            (undecided > 0).then(|| (Warning, format!("{packets} were sent after the last report of the receiver")))
        },
        effect: "whether they arrived is not known: they count neither as delivered nor as lost",
        hint: |_| "check that the target still runs".into(),
    },
    Rule {
        code: "send-failed",
        raise: |run| {
            let refused = run.stream.map(|stream| stream.total.refused).filter(|refused| *refused > 0).map(grouped)?;
            let message = if run.is_over_library() {
                format!("{refused} times the writer waited 100 ms for acknowledgements that did not come")
            } else {
                format!("the kernel had no buffer space for a packet {refused} times")
            };
            Some((Note, message))
        },
        effect: "such a packet is sent again: a queue of this host, or a slow reader, limits the rate",
        hint: |_| "a lower `--rate`; `tc -s qdisc` and `ip -s link` show the queue".into(),
    },
    Rule {
        code: "send-failed",
        raise: |run| {
            let unsent: u64 = run.stream?.stages.iter().map(|stage| stage.unsent_probes).sum();
            let message =
                || format!("{} probes during the stream were skipped or refused by the kernel", grouped(unsent));
            (unsent > 0).then(|| (Warning, message()))
        },
        effect: "the delays are those of the probes that left",
        hint: |_| "a longer `--probe`, or a CPU that the stream does not use (`--cpu`)".into(),
    },
    Rule {
        code: "no-rate-found",
        raise: |run| Some((Warning, none_found(run.stream?.search.as_ref()?, run.message())?)),
        effect: "there is no rate to measure at, and no delay under load",
        hint: |run| {
            let search = run.stream.and_then(|stream| stream.search.as_ref());
            let hint = match search.map(|search| (search.ending, search.late_at_least.is_some())) {
                Some((SearchEnding::Silent, _)) => {
                    "check that the target still runs; `--rate` limits the rates of the search"
                }
                Some((SearchEnding::CutShort, _)) => {
                    "wait for the end of the search: it states at its start how long it takes"
                }
                Some((_, true)) => "a smaller `--size`, or more time (`-d 5m`)",
                _ => "allow more loss (`--search 1%`), or look for drops on the path: `ip -s link`, `tc -s qdisc`",
            };
            hint.into()
        },
    },
    Rule {
        code: "search-undecided",
        raise: |run| {
            let search = run.stream?.search.as_ref()?;
            let has_stopped = matches!(search.ending, SearchEnding::Silent | SearchEnding::CutShort);
            let goals = losses(search, |goal| goal.end == GoalEnd::Undecided)?;
            let message = format!(
                "after {} the bounds for a loss of up to {goals} were too wide, or not confirmed",
                span(search.took)
            );
            // Another caveat says why no rate was found.
            (search.found_pps.is_some() || !has_stopped).then_some((Warning, message))
        },
        effect: "the rate lies between the bounds shown, if there are two",
        hint: |_| LONGER_SEARCH.into(),
    },
    Rule {
        code: "search-undecided",
        // The stage at the found rate is judged as trials are.
        raise: |run| {
            let search = run.stream?.search.as_ref()?;
            let goal = search.goals.iter().find(|goal| goal.bounds.lower_pps == search.found_pps)?.goal;
            let last = run.stream?.stages.last().filter(|stage| stage.share == Some(1.0))?;
            let missing = last.not_carried_ratio.filter(|missing| *missing > goal.loss_ratio)?;
            let not_sent = last.not_sent_ratio.unwrap_or(0.0);
            let lost = last.loss_ratio.unwrap_or(1.0) * (1.0 - not_sent);
            let late = Some(missing - lost - not_sent).filter(|late| *late > ROUNDING).unwrap_or(0.0);
            let [missing, lost, late, not_sent] = [missing, lost, late, not_sent].map(percent);
            let parts = format!("{lost} lost, {late} late, {not_sent} not sent");
            let what = format!("{missing} was not delivered in time: {parts}");
            Some((Warning, format!("the found rate did not hold in the last stage: {what}")))
        },
        effect: "the trials met the goal; the path changes, loses packets rarely, or does not carry the probes as well",
        hint: |_| "longer trials (`-d 5m`), or a stream at a slightly lower `--rate`".into(),
    },
    Rule {
        code: "search-undecided",
        // A search with concurrent probes has all stages, unless its trials took the time of some.
        raise: |run| {
            let (stages, search) = (&run.stream?.stages, run.stream?.search.as_ref()?);
            stages.last().filter(|stage| stage.share == Some(1.0) && stage.round_trip.is_some())?;
            let is_missing = |share: &&f64| stages.iter().all(|stage| stage.share != Some(**share));
            let shares = listed(RateSearchSpec::SHARES.iter().filter(is_missing).map(|share| percent(*share)))?;
            let (took, within) = (span(search.took), span(search.within));
            Some((Warning, format!("the trials took {took} of {within}: no time was left for the stages at {shares}")))
        },
        effect: "their delays are not known",
        hint: |_| LONGER_SEARCH.into(),
    },
    Rule {
        code: "search-undecided",
        // The highest rate is limited by this end, not by the path.
        raise: |run| {
            let goals = losses(run.stream?.search.as_ref()?, |goal| goal.end == GoalEnd::AtCeiling)?;
            Some((Note, format!("even the highest rate that was tried kept the loss within {goals}")))
        },
        effect: "the rate is the limit of this end, or `--rate`; the path may carry more",
        hint: |run| format!("{}; or a higher `--rate`, if there is one", faster(run)),
    },
    Rule {
        code: "probes-load",
        raise: |run| {
            let (probes_bps, stream_bps, rate) = loads_of_probes(run)?;
            let share = probes_bps / stream_bps;
            let [probes, stream] = [probes_bps, stream_bps].map(bit_rate);
            let message = || {
                let share = percent(share);
                format!("the probes take {probes} on the wire in each direction, {share} of {rate} ({stream})")
            };
            (share > PROBES * (1.0 + ROUNDING)).then(|| (Warning, message()))
        },
        effect: "the path carries both in the run and its stages; trials of a search had no probes",
        hint: |_| "a longer `--probe`, or `--probe off`".into(),
    },
    Rule {
        code: "reordered",
        raise: |run| {
            let total = run.stream.map(|stream| &stream.total).filter(|total| total.reordered > 0)?;
            let messages = of_messages(total.reordered, total.delivered, run.message());
            Some((Note, format!("{messages} arrived after one that was sent later")))
        },
        effect: "packets take different queues or paths",
        hint: |_| "look for several queues, CPUs or paths between the ends".into(),
    },
    Rule {
        code: "duplicates",
        raise: |run| {
            let duplicates = run.stream?.total.duplicates;
            (duplicates > 0).then(|| (Note, format!("{} {}s came more than once", grouped(duplicates), run.message())))
        },
        effect: "each counts once",
        hint: |_| "look for a bridge loop or a mirroring port on the path".into(),
    },
    Rule {
        code: "small-buffers",
        // The kernel doubles the requested size, for its own bookkeeping (socket(7), SO_RCVBUF).
        raise: |run| {
            let asked = defaults::STREAM_BUFFER_BYTES.saturating_mul(2);
            let stream = run.stream?;
            let ends = [("sending", stream.send_buffer_bytes), ("receiving", stream.receive_buffer_bytes)];
            let small = ends.into_iter().filter_map(|(end, bytes)| Some((end, bytes.filter(|bytes| *bytes < asked)?)));
            let granted: Vec<_> = small.map(|(end, bytes)| format!("for {end} {}", typed_size(bytes))).collect();
            let (granted, asked) = (granted.join(" and "), typed_size(asked));
            let message = format!("the kernel granted buffers of {granted}; {asked} were requested");
            (!granted.is_empty()).then_some((Note, message))
        },
        effect: "packets are lost if an end stops for a shorter time",
        hint: |_| "run as root, or `--set socket-buffer=4MiB`".into(),
    },
    Rule {
        code: "tcp-retransmits",
        // Segments of a stream are not counted, so their share is unknown.
        raise: |run| {
            run.stream?;
            let again = run.manifest.run.connection.as_ref()?.retransmitted;
            (again > 0).then(|| (Note, format!("segments that this end sent again: {}", grouped(again))))
        },
        effect: "losses limit the rate: each slows the congestion control of TCP down",
        hint: |_| {
            "`--transport udp` with a `--rate` shows the loss itself; `nstat -az TcpRetransSegs` shows where it occurs"
                .into()
        },
    },
];

/// Of messages on the path that do not fit into a packet.
pub(super) const OF_PATH: &[Rule<Run<'_>>] = &[
    Rule {
        code: "fragmentation",
        raise: |run| {
            let (max_bytes, is_known) = unfragmented_bytes(run)?;
            let surely = if is_known { "are" } else { "are probably" };
            let size_bytes =
                run.manifest.spec.size_bytes().filter(|size| *size > max_bytes && !run.is_over_library())?;
            let [size, max] = [size_bytes, max_bytes].map(|size| bytes(size.into()));
            let message = format!("datagrams of {size} {surely} cut into IP fragments: a packet carries up to {max}");
            Some((Warning, message))
        },
        effect: "one lost fragment loses the datagram, and reassembly takes time",
        hint: |run| unfragmented_bytes(run).map(|(max, _)| format!("`--size {max}`")).unwrap_or_default(),
    },
    Rule {
        code: "fragmentation",
        // The DDS library puts samples, or parts of long ones, into datagrams.
        raise: |run| {
            let dds = run.manifest.spec.path()?.dds?;
            let (max_bytes, _) = unfragmented_bytes(run)?;
            let (datagram_bytes, size_bytes) = (dds.datagram_bytes(max_bytes), run.manifest.spec.size_bytes()?);
            let stream = run.manifest.spec.stream();
            let batch = stream.filter(|stream| stream.sending.mode == SendMode::Batch);
            let batch = batch.map_or(1, |stream| u32::from(stream.sending.batch));
            let fit = dds.samples_in(datagram_bytes, size_bytes);
            let (what, fit) = match size_bytes > max_bytes {
                true => (format!("samples of {}", bytes(size_bytes.into())), bytes(max_bytes.into())),
                false if batch > fit => (format!("batches of up to {batch} samples"), fit.to_string()),
                false => return None,
            };
            let most_bytes = dds.message_bytes.map_or(DDS_MESSAGE_BYTES, u32::from);
            // Settings of the library may keep datagrams short, or make them longer.
            let configuration = run.manifest.run.dds.as_ref().map_or(&[][..], |dds| &dds.configuration);
            let sets_size = |line: &String| line.contains("MessageSize/") || line.contains("FragmentSize/");
            let is_set = dds.message_bytes.is_none() && configuration.iter().any(sets_size);
            let message = format!("{what} may be cut into IP fragments: a packet carries {fit}");
            (most_bytes > datagram_bytes || is_set).then_some((if is_set { Note } else { Warning }, message))
        },
        effect: "one lost fragment loses its samples, or delays reliable ones, and reassembly takes time",
        hint: |_| "a smaller `--size` or `--batch`, or `--dds-message-size` at both ends (docs/dds.md)".into(),
    },
];

/// The longest message that is one packet, and whether it is known or that of Ethernet; `None` if nothing can be cut.
fn unfragmented_bytes(run: &Run<'_>) -> Option<(u32, bool)> {
    let path = run.manifest.spec.path()?;
    let transport = run.manifest.spec.transport().unwrap_or_default().properties();
    let facts = &run.manifest.run;
    let known: Option<u32> = facts.conditions.get(UNFRAGMENTED_BYTES).and_then(|bytes| bytes.parse().ok());
    // Loopback is not Ethernet: if its MTU is unknown, it is usually 65,536.
    let is_loopback = known.is_none() && run.manifest.spec.target == Target::Local;
    let is_version_6 = facts.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
    let datagram_bytes = USUAL_MTU - if is_version_6 { 48 } else { 28 };
    let usual = path.dds.map_or(datagram_bytes, |dds| dds.sample_bytes(datagram_bytes));
    let is_cut = !path.dont_fragment && !transport.connection_oriented && !is_loopback;
    is_cut.then_some((known.unwrap_or(usual), known.is_some()))
}

/// `412 of 60,000 packets (0.687 %)`
pub(super) fn of_messages(some: u64, all: u64, message: &str) -> String {
    format!("{} of {} {message}s ({})", grouped(some), grouped(all), percent(some as f64 / all.max(1) as f64))
}

fn listed(words: impl Iterator<Item = String>) -> Option<String> {
    words.reduce(|all, one| format!("{all}, {one}"))
}

/// The totals of a stream; `None` of a search without a rate, or that ended before its last stage, which has other caveats.
fn shown_total<'a>(run: &Run<'a>) -> Option<&'a StreamTotals> {
    let stream = run.stream?;
    let is_of_search = |search: &SearchFigures| search.found_pps.is_none() || stream.total.sent == 0;
    (!stream.search.as_ref().is_some_and(is_of_search)).then_some(&stream.total)
}

/// `0 %`, `0 % and 0.5 %`
fn losses(search: &SearchFigures, is_meant: impl Fn(&GoalFigures) -> bool) -> Option<String> {
    let meant = search.goals.iter().filter(|goal| is_meant(goal)).map(|goal| percent(goal.goal.loss_ratio));
    meant.reduce(|all, one| format!("{all} and {one}"))
}

fn none_found(search: &SearchFigures, message: &str) -> Option<String> {
    if search.found_pps.is_some() {
        return None;
    }
    let trials = grouped(search.trials as u64);
    Some(match (search.ending, search.late_at_least) {
        (SearchEnding::Silent, _) => {
            format!("the target stopped answering after {trials} trials of the search, before a rate was found")
        }
        (SearchEnding::CutShort, _) => {
            format!("the run ended after {trials} trials of the search, before a rate was found")
        }
        // Packets held in a queue are late, not lost.
        (_, Some(late)) => {
            let lowest = grouped(late.asked_pps.unwrap_or_default() as u64);
            let (sending, counting) = (span(late.sending_ns), span(late.counting_ns));
            format!(
                "at every rate {message}s arrived too late, in {trials} trials: at the lowest, {lowest} {message}s/s, none \
                 was lost, but those sent in {sending} took {counting} to arrive"
            )
        }
        (_, None) => {
            let goals = losses(search, |_| true).unwrap_or_default();
            format!("no rate kept the loss within {goals} for long enough, in {trials} trials")
        }
    })
}

/// The rates on the wire of concurrent probes and of the stream beside them, and what the latter is.
fn loads_of_probes(run: &Run<'_>) -> Option<(f64, f64, &'static str)> {
    let (stream, probes) = (run.stream?, run.manifest.spec.concurrent_probes()?);
    let Schedule::Periodic { interval_ns } = probes.schedule else { return None };
    let (pps, rate) = match &stream.search {
        Some(search) => (search.found_pps?, "the found rate"),
        None => (stream.asked_pps?, "the requested rate"),
    };
    // A stage in which there was a stream.
    stream.stages.iter().find(|stage| stage.share != Some(0.0))?;
    let ipv6 = run.manifest.run.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
    let on_wire = StreamSpec { wire: true, ..StreamSpec::at(Pace::Max) };
    let bits = |size_bytes| on_wire.packet_bits(size_bytes, ipv6) as f64;
    Some((bits(probes.size_bytes) / interval_ns.as_secs_f64(), pps * bits(stream.size_bytes), rate))
}

/// A CPU of its own for the end that receives; `None` if it has a pin.
fn own_cpu_of_receiver(run: &Run<'_>) -> Option<&'static str> {
    match run.manifest.spec.stream()?.direction {
        Direction::Up => reflector_cpu(run.manifest),
        Direction::Down => own_cpu(run.manifest),
    }
}

/// Options that may raise the rate.
fn faster(run: &Run<'_>) -> String {
    let Some(stream) = run.manifest.spec.stream() else { return String::new() };
    let is_datagrams = !stream.transport.is_connection_oriented();
    let options = match stream.direction {
        Direction::Down => [Some("a larger RATE of `serve --allow-down`"), reflector_cpu(run.manifest), None],
        Direction::Up if run.is_over_library() => [Some("`--mode batch`"), Some("more `--flows`"), run.spin()],
        Direction::Up => {
            let has_mode = is_datagrams && stream.sending.mode != SendMode::Gso;
            [has_mode.then_some("`--mode gso`"), Some("more `--flows`"), run.spin().filter(|_| is_datagrams)]
        }
    };
    let larger = Some("a larger `--size`");
    format!("{}, unless the path limits the rate", any_of(options.into_iter().chain([larger])))
}
