//! Caveats of a stream: a rate that was not reached, packets lost at the receiver's own socket or on the way,
//! retransmissions, and small buffers.

use super::figures::{StreamFigures, StreamTotals};
use super::search_caveats::{faster_ways, search_caveats};
use crate::analysis::caveats::{any_of, own_cpu, reflector_cpu};
use crate::analysis::limits::RATE_REACHED;
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{DdsSpec, Direction, SendMode, defaults};
use crate::recording::manifest::Manifest;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{bit_rate, grouped, percent, quantile, typed_size, typed_span};

/// The caveats of a stream and of its search; `delivered` is the delivered rate. Of an imported stream those alone that name no
/// option of latlab.
pub(crate) fn caveats(manifest: &Manifest, stream: &StreamFigures, delivered: Option<&Description>) -> Vec<Caveat> {
    if manifest.spec.import().is_some() {
        return undecided_of_import(manifest, &stream.total).into_iter().collect();
    }
    let transport = manifest.spec.transport().unwrap_or_default().properties();
    let (slow_receiver, lost) = match transport.has_own_threads {
        false => (slow_receiver(manifest, stream), lost(stream)),
        true => (None, lost_by_library(manifest, stream)),
    };
    let message = transport.message;
    let of_packets = [
        nothing(stream, message),
        beyond_reach(manifest, stream, message),
        slow_receiver,
        lost,
        undecided(&stream.total, message),
        refused(manifest, &stream.total),
        reordered(&stream.total, message),
        duplicates(&stream.total, message),
        small_buffers(stream),
        unchecked(manifest),
        software_checksums(manifest),
        delivered.and_then(|delivered| few_intervals(manifest, delivered)),
    ];
    let of_search = search_caveats(manifest, stream);
    of_packets.into_iter().flatten().chain(of_search).chain(retransmissions(manifest)).collect()
}

/// `412 of 60,000 packets (0.687 %)`
fn of_packets(some: u64, all: u64) -> String {
    of_messages(some, all, "packet")
}

fn of_messages(some: u64, all: u64, message: &str) -> String {
    format!("{} of {} {message}s ({})", grouped(some), grouped(all), percent(some as f64 / all.max(1) as f64))
}

fn nothing(stream: &StreamFigures, message: &str) -> Option<Caveat> {
    let total = &stream.total;
    // A search without a rate has a caveat of its own; one with a rate has sent packets, and if it ended before its last
    // stage, that has a caveat too.
    if stream.search.as_ref().is_some_and(|search| search.found_pps.is_none() || total.sent == 0) {
        return None;
    }
    let effect = "there are no rates to show";
    if total.sent == 0 && !total.is_of_receiver_alone() {
        let hint = "a longer `--duration`, or a shorter `--warmup`";
        return Some(Caveat::new(Severity::Warning, "no-packet-sent", format!("no {message} was sent"), effect, hint));
    }
    (total.delivered == 0 && total.decided > 0).then(|| {
        let message = format!("none of {} {message}s arrived", grouped(total.decided));
        let hint = "check the path, or use a lower `--rate`";
        Caveat::new(Severity::Warning, "none-delivered", message, effect, hint)
    })
}

fn beyond_reach(manifest: &Manifest, stream: &StreamFigures, message: &str) -> Option<Caveat> {
    let (asked, reached) = stream.asked_pps.zip(offered_by_flows(stream))?;
    // If the receiver stopped counting, packets were held back, which is not a limit of this end.
    if manifest.run.stream.as_ref().is_some_and(|facts| !facts.settled) {
        return None;
    }
    let share = reached / asked;
    (share < RATE_REACHED).then(|| {
        let rate = |pps: f64| bit_rate(pps * f64::from(stream.size_bytes) * 8.0);
        let skipped = match stream.total.skipped {
            0 => String::new(),
            skipped => format!("; {} {message}s were skipped, since they were more than 100 ms late", grouped(skipped)),
        };
        Caveat::new(
            Severity::Warning,
            "rate-unreached",
            format!(
                "{} of payload was requested, {} ({}) was sent{skipped}",
                rate(asked),
                rate(reached),
                percent(share)
            ),
            "all figures belong to the rate that was reached",
            faster_options(manifest, asked),
        )
    })
}

/// The sum of what each flow sent over its own time, since flows do not begin together; `None` if none sent.
fn offered_by_flows(stream: &StreamFigures) -> Option<f64> {
    let flows = stream.flows.iter().filter(|flow| flow.sending > Nanos::ZERO);
    flows.map(|flow| flow.sent as f64 / flow.sending.as_secs_f64()).reduce(|sum, pps| sum + pps)
}

/// The remedies for a rate that this stream did not reach.
fn faster_options(manifest: &Manifest, asked_pps: f64) -> String {
    let Some(stream) = manifest.spec.stream() else { return String::new() };
    let facts = manifest.run.stream.as_ref();
    let granted_pps = facts.and_then(|facts| facts.granted_gap_ns).map(|gap| 1.0 / gap.as_secs_f64());
    let is_limited = granted_pps.filter(|pps| pps / asked_pps < RATE_REACHED && stream.direction == Direction::Down);
    if let Some(pps) = is_limited {
        let granted = bit_rate(pps * f64::from(stream.size.known().unwrap_or(0)) * 8.0);
        return format!("the target allows {granted} at most: a larger RATE with `serve --allow-down RATE`");
    }
    match faster_ways(manifest) {
        none if none.is_empty() => "a lower `--rate`: this way of sending is no faster".into(),
        ways => format!("{ways}, unless the path limits the rate"),
    }
}

/// A CPU of its own for the end that receives; `None` if it has a pin.
fn own_cpu_of_receiver(manifest: &Manifest) -> Option<&'static str> {
    match manifest.spec.stream()?.direction {
        Direction::Up => reflector_cpu(manifest),
        Direction::Down => own_cpu(manifest),
    }
}

/// Packets dropped at the receiver's socket were not lost on the way. The socket also receives polls, and may receive
/// from other senders: the number of its drops is therefore limited to the number of missing packets.
fn slow_receiver(manifest: &Manifest, stream: &StreamFigures) -> Option<Caveat> {
    let drops = stream.socket_drops.filter(|drops| *drops > 0)?;
    let total = &stream.total;
    if total.lost() == 0 {
        return None;
    }
    let dropped = match stream.drops_are_merged {
        true => format!("at least {} merged buffers, each of one or more packets", grouped(drops)),
        false => of_packets(drops.min(total.lost()), total.decided),
    };
    Some(Caveat::new(
        Severity::Warning,
        "slow-receiver",
        format!("the receiver's own socket dropped {dropped}"),
        "they reached the receiver's host: their loss shows the limit of that end, not of the network",
        any_of([
            own_cpu_of_receiver(manifest),
            Some("a larger buffer there (`sysctl net.core.rmem_max`)"),
            Some("a lower `--rate`"),
        ]),
    ))
}

/// Samples that were lost between a writer and a reader: one is several datagrams, or one datagram several samples.
fn lost_by_library(manifest: &Manifest, stream: &StreamFigures) -> Option<Caveat> {
    let total = &stream.total;
    let drops = match stream.socket_drops {
        Some(drops) if drops > 0 => {
            format!("; the sockets of the receiver's library dropped {} datagrams", grouped(drops))
        }
        _ => String::new(),
    };
    let of_samples = of_messages(total.lost(), total.decided, "sample");
    let message = format!("{of_samples} did not reach the receiver{drops}");
    let waits = manifest.spec.path().and_then(|path| path.dds).is_some_and(DdsSpec::waits_for_readers);
    let hint = match (manifest.spec.stream().map(|spec| spec.direction), waits) {
        (Some(Direction::Down), true) => {
            "the reflector gives a sample up that finds no space within 100 ms (its counter `reply-failed`): a lower `--rate`"
        }
        (Some(Direction::Down), false) => {
            "a larger `--history` at this end, `--reliability reliable --history keep-all` at both, or a lower `--rate`"
        }
        (_, true) => "`serve --history keep-all`, or a lower `--rate`",
        (_, false) => {
            "`--reliability reliable --history keep-all` at both ends lets the writer wait; else a larger buffer (`sysctl \
             net.core.rmem_max` and SocketReceiveBufferSize in CYCLONEDDS_URI), or a lower `--rate`"
        }
    };
    (total.lost() > 0).then(|| lost_caveat(total, message, hint))
}

fn lost_caveat(total: &StreamTotals, message: String, hint: &str) -> Caveat {
    let share = total.lost() as f64 / total.decided.max(1) as f64;
    let severity = if share >= 0.01 { Severity::Warning } else { Severity::Note };
    Caveat::new(severity, "lost", message, "the delivered rate does not include them", hint)
}

fn lost(stream: &StreamFigures) -> Option<Caveat> {
    let total = &stream.total;
    let (lost, all) = (total.lost(), total.decided);
    let caveat = |message: String, hint: &str| Some(lost_caveat(total, message, hint));
    let look = "look for drops on the path: `ip -s link`, `nstat -az UdpRcvbufErrors`, `tc -s qdisc`";
    match stream.socket_drops {
        _ if lost == 0 => None,
        None => caveat(
            format!("{} were lost; how many of them at the receiver's own socket is not known", of_packets(lost, all)),
            look,
        ),
        Some(drops) if stream.drops_are_merged && drops > 0 => caveat(
            format!("{} were lost, at the receiver's socket or on the path", of_packets(lost, all)),
            "`--mode send` packets are not merged on the path, so that each drop is one packet",
        ),
        Some(drops) if drops >= lost => None,
        Some(drops) => caveat(
            format!("{} were lost on the path, not at the receiver's socket", of_packets(lost - drops, all)),
            look,
        ),
    }
}

fn undecided(total: &StreamTotals, message: &str) -> Option<Caveat> {
    let undecided = total.sent.saturating_sub(total.decided);
    (undecided > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "undecided-packets",
            format!("{} were sent after the last report of the receiver", of_messages(undecided, total.sent, message)),
            "whether they arrived is not known: they count neither as delivered nor as lost",
            "check that the target still runs",
        )
    })
}

/// A log states its losses although some packets are undecided if the zeros of its ends differ (iperf3 with `--omit`): a note.
fn undecided_of_import(manifest: &Manifest, total: &StreamTotals) -> Option<Caveat> {
    let hint =
        "look at the last intervals of the receiver: the path or the receiver may have stopped before the sender";
    let count = of_packets(total.sent.saturating_sub(total.decided), total.sent);
    undecided(total, "packet").map(|caveat| Caveat {
        message: format!("{count} were counted by the sender and not by its receiver"),
        severity: if manifest.spec.knows_losses() { Severity::Note } else { Severity::Warning },
        hint: hint.into(),
        ..caveat
    })
}

fn refused(manifest: &Manifest, total: &StreamTotals) -> Option<Caveat> {
    let times = grouped(total.refused);
    let by_library = manifest.spec.transport().unwrap_or_default().properties().has_own_threads;
    let [message, effect, hint] = match by_library {
        false => [
            format!("the kernel had no buffer space for a packet {times} times"),
            "such a packet is sent again: a queue of this host limits the rate".into(),
            "a lower `--rate`; `tc -s qdisc` and `ip -s link` show the queue".into(),
        ],
        true => [
            format!("{times} times the writer waited 100 ms for acknowledgements that did not come"),
            "such a sample is sent again: the reader limits the rate".into(),
            any_of([own_cpu_of_receiver(manifest), Some("a lower `--rate`")]),
        ],
    };
    (total.refused > 0).then(|| Caveat::new(Severity::Note, "send-refused", message, effect, hint))
}

fn reordered(total: &StreamTotals, message: &str) -> Option<Caveat> {
    (total.reordered > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "reordered",
            format!("{} arrived after one that was sent later", of_messages(total.reordered, total.delivered, message)),
            "packets take different queues or paths",
            "look for several queues, CPUs or paths between the ends",
        )
    })
}

fn duplicates(total: &StreamTotals, message: &str) -> Option<Caveat> {
    (total.duplicates > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "duplicates",
            format!("{} {message}s came more than once", grouped(total.duplicates)),
            "each counts once",
            "look for a bridge loop or a mirroring port on the path",
        )
    })
}

/// The kernel doubles the requested size, for its own bookkeeping (socket(7), SO_RCVBUF).
fn small_buffers(stream: &StreamFigures) -> Option<Caveat> {
    let asked = defaults::STREAM_BUFFER_BYTES.saturating_mul(2);
    let small = |granted: Option<u32>| granted.filter(|granted| *granted < asked);
    let (send, receive) = (small(stream.send_buffer_bytes), small(stream.receive_buffer_bytes));
    let of = |what: &str, granted: Option<u32>| granted.map(|granted| format!("{what} {}", typed_size(granted)));
    let granted: Vec<String> = of("for sending", send).into_iter().chain(of("for receiving", receive)).collect();
    (!granted.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "small-buffers",
            format!("the kernel granted buffers of {}; {} were requested", granted.join(" and "), typed_size(asked)),
            "packets are lost if an end stops for a shorter time",
            "run as root, or `--set socket-buffer=4MiB`",
        )
    })
}

fn unchecked(manifest: &Manifest) -> Option<Caveat> {
    let unchecked = manifest.spec.stream().is_some_and(|stream| !stream.sending.checksum);
    unchecked.then(|| {
        Caveat::new(
            Severity::Note,
            "no-checksum",
            "packets carry no UDP checksum",
            "a damaged packet is delivered and counted as well",
            "omit `--checksum off`, unless its cost is what you measure (docs/stream.md)",
        )
    })
}

/// GSO through a device without checksum offload: EIO before Linux 6.11; later kernels compute checksums.
fn software_checksums(manifest: &Manifest) -> Option<Caveat> {
    let stream = manifest.spec.stream().filter(|stream| stream.sending.mode == SendMode::Gso)?;
    let interface = manifest.here.before.as_ref()?.network.interface.as_ref()?;
    let offloads = interface.offloads.as_ref()?;
    let mut checksums = offloads.iter().filter(|(name, _)| name.starts_with("tx-checksum")).peekable();
    let none = checksums.peek().is_some() && checksums.all(|(_, on)| !on);
    (none && stream.sending.checksum).then(|| {
        let name = &interface.name;
        Caveat::new(
            Severity::Note,
            "software-checksums",
            format!("`{name}` computes no checksums: the kernel computed those of all packets"),
            "the sender's CPU reads each payload once more than with the offload",
            "`--set offload=tx-checksum:on`, if the device can",
        )
    })
}

/// Requested quantiles with fewer than ten effective intervals beyond them.
fn few_intervals(manifest: &Manifest, delivered: &Description) -> Option<Caveat> {
    let weak: Vec<String> = delivered
        .quantiles
        .iter()
        .filter(|estimate| !estimate.supported)
        .map(|estimate| quantile(estimate.q))
        .collect();
    (delivered.n > 0 && delivered.slow_changes.is_none() && !weak.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "few-observations",
            format!(
                "fewer than 10 effective intervals (of {}) lie beyond {} of the delivered rate",
                grouped(delivered.n),
                weak.join(", ")
            ),
            "the table shows these quantiles in parentheses, with a lower bound after `≥`, or with `n/a`",
            // The duration of a search is not that of the run.
            match delivered.n_for_support().filter(|_| manifest.run.search.is_none()) {
                Some(enough) => longer(manifest, enough),
                None => "a longer `--duration`".into(),
            },
        )
    })
}

/// The duration of so many intervals, if a run may take so long.
fn longer(manifest: &Manifest, intervals: f64) -> String {
    let Some(duration) = duration_of(intervals) else {
        return "quantiles nearer to p50: no run may take as long as these need".into();
    };
    match manifest.experiment {
        None => format!("about `-d {duration}` would support all of them"),
        Some(_) => format!("about `duration = \"{duration}\"` in `[base]` would support all of them"),
    }
}

/// The time that so many intervals take, to be typed: at least two digits of the seconds, minutes from 10 minutes on, hours
/// from 10 hours on. `None` if a run is never so long.
fn duration_of(intervals: f64) -> Option<String> {
    let seconds = (intervals * defaults::STREAM_WINDOW.as_secs_f64()).ceil();
    let step = match seconds {
        ..=600.0 => 10f64.powf(seconds.log10().floor() - 1.0).max(1.0),
        ..=36_000.0 => 60.0,
        _ => 3_600.0,
    };
    let duration = Nanos::from_secs(((seconds / step).ceil() * step) as i64);
    (duration <= defaults::DURATION_MAX).then(|| typed_span(duration))
}

/// Segments of a stream are not counted, so their share is unknown.
fn retransmissions(manifest: &Manifest) -> Option<Caveat> {
    let again =
        manifest.run.connection.as_ref().map(|connection| connection.retransmitted).filter(|again| *again > 0)?;
    Some(Caveat::new(
        Severity::Note,
        "tcp-retransmits",
        format!("segments that this end sent again: {}", grouped(again)),
        "losses limit the rate: each slows the congestion control of TCP down",
        "`--transport udp` with a `--rate` shows the loss itself; `nstat -az TcpRetransSegs` shows where it occurs",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::figures::StreamAccumulator;
    use super::*;
    use crate::analysis::in_memory::{InMemory, logged, stream_interval};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::facts::{IntervalCounts, StreamEnd, StreamFacts};
    use crate::plan::{
        History, Kind, Pace, PacketSize, PathSpec, Reliability, RunSpec, Schedule, SenderSocketOptions, StreamRunSpec,
        TransportKind, Work,
    };
    use crate::units::Nanos;

    #[test]
    fn the_duration_that_supports_all_quantiles_is_rounded_up_as_typed() {
        for (intervals, typed) in [(35.0, "4s"), (200.0, "20s"), (1_234.0, "130s"), (10_000.0, "17m"), (36_000.0, "1h")]
        {
            assert_eq!(duration_of(intervals).as_deref(), Some(typed));
        }
        assert_eq!(duration_of(500_000.0).as_deref(), Some("14h"));
        assert_eq!(duration_of(1_000_000.0), None, "a run takes 24 hours at most");
    }

    #[test]
    fn the_hint_names_only_options_that_the_stream_takes() {
        let usual = StreamRunSpec::at(Pace::Packets { pps: 1_000 });
        let by = |mode, checksum| SenderSocketOptions { mode, checksum, ..usual.sending };
        let (up, down, tcp) = (Direction::Up, Direction::Down, TransportKind::Tcp);
        let (all, udp) = (["`--mode sendmmsg`", "`gso`", "`--flows`", "`--size`", "`--wait spin`"], TransportKind::Udp);
        for (sending, size, flows, direction, transport, named) in [
            (by(SendMode::Send, true), 200, 1, up, udp, &all[..]),
            (
                by(SendMode::Send, false),
                200,
                1,
                up,
                udp,
                &["`--mode sendmmsg`", "`--flows`", "`--size`", "`--wait spin`"],
            ),
            (by(SendMode::Send, true), 4_000, 1, up, udp, &["`--mode sendmmsg`", "`--flows`", "`--wait spin`"]),
            (by(SendMode::Gso, true), 1_472, 64, up, udp, &["`--wait spin`"]),
            (by(SendMode::Send, true), 65_507, 64, up, tcp, &["a lower `--rate`"]),
            (by(SendMode::Send, true), 4_000, 1, up, tcp, &["`--flows`", "`--size`"]),
            (by(SendMode::Send, true), 1_472, 1, down, udp, &["`serve --cpu`"]),
        ] {
            let size = PacketSize::Bytes(size);
            let stream = StreamRunSpec { sending, size, flows, direction, transport, ..usual.clone() };
            let mut manifest = InMemory::of(Schedule::Closed, Vec::new()).manifest;
            manifest.spec = RunSpec::here(Work::Stream(stream));
            manifest.run.stream = Some(StreamFacts { unfragmented_bytes: Some(1_472), ..StreamFacts::default() });
            let hint = faster_options(&manifest, 2_000.0);
            let offers = |word: &&str| hint.contains(word);
            assert!(named.iter().all(offers), "{hint}");
            assert!(all.iter().filter(|word| !named.contains(word)).all(|word| !offers(word)), "{hint}");
        }
        let mut manifest = InMemory::of(Schedule::Closed, Vec::new()).manifest;
        manifest.spec = RunSpec::here(Work::Stream(StreamRunSpec { direction: down, ..usual }));
        let granted_gap_ns = Some(Nanos::from_millis(2));
        manifest.run.stream = Some(StreamFacts { granted_gap_ns, ..StreamFacts::default() });
        assert!(faster_options(&manifest, 2_000.0).contains("`serve --allow-down RATE`"));
    }

    #[test]
    fn an_imported_stream_has_the_caveat_of_undecided_packets_alone() {
        let seen = |end| match end {
            StreamEnd::Sender => IntervalCounts::Offered { packets: 300, refused: 1, skipped: 1 },
            StreamEnd::Receiver => IntervalCounts::Counted {
                polled: 146,
                delivered: 140,
                reordered: 1,
                duplicates: 1,
                outside_window: 0,
                socket_drops: None,
            },
        };
        let mut source = logged(Vec::new(), true);
        source.manifest.kind = Kind::Stream;
        source.intervals = [StreamEnd::Sender, StreamEnd::Receiver].map(|end| stream_interval(0, seen(end))).to_vec();
        for (states_losses, severity) in [(false, Severity::Warning), (true, Severity::Note)] {
            if let Work::Import(import) = &mut source.manifest.spec.work {
                (import.rows, import.states_losses) = (Kind::Stream, states_losses);
                import.size_bytes = Some(1_000);
            }
            let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("intervals");
            let found: Vec<_> = summary.caveats.iter().filter(|caveat| caveat.code != "imported").collect();
            let [caveat] = found[..] else { panic!("{found:?}") };
            assert_eq!((caveat.code.as_str(), caveat.severity), ("undecided-packets", severity));
            assert!(
                caveat.message.starts_with("154 of 300 packets (51.3 %) were counted by the sender"),
                "{}",
                caveat.message
            );
            assert!(!caveat.hint.contains('`') && !caveat.hint.contains("target"), "{}", caveat.hint);
        }
    }

    #[test]
    fn the_hint_about_lost_samples_names_the_end_that_lost_them() {
        let usual = StreamRunSpec::at(Pace::Packets { pps: 1_000 });
        let (up, down) = (Direction::Up, Direction::Down);
        let keeps_all = |reliability| DdsSpec { reliability, history: History::KeepAll, ..DdsSpec::default() };
        let (reliable, best_effort) = (keeps_all(Reliability::Reliable), keeps_all(Reliability::BestEffort));
        let keeps_last = DdsSpec { history: History::default(), ..reliable };
        for (dds, direction, drops, dropped, named) in [
            (reliable, up, Some(0), "", "`serve --history keep-all`"),
            (reliable, up, None, "", "`serve --history keep-all`"),
            (reliable, down, None, "", "`reply-failed`"),
            (
                keeps_last,
                up,
                Some(7),
                "; the sockets of the receiver's library dropped 7 datagrams",
                "lets the writer wait",
            ),
            (keeps_last, down, None, "", "a larger `--history` at this end"),
            (best_effort, up, None, "", "SocketReceiveBufferSize"),
            (best_effort, down, None, "", "at both, or a lower `--rate`"),
        ] {
            let path = PathSpec { dds: Some(dds), ..PathSpec::SYSTEM };
            let stream = StreamRunSpec { path, direction, transport: TransportKind::Dds, ..usual.clone() };
            let mut manifest = InMemory::of(Schedule::Closed, Vec::new()).manifest;
            manifest.spec = RunSpec::here(Work::Stream(stream));
            let mut figures = StreamAccumulator::default().figures(&manifest);
            figures.socket_drops = drops;
            assert_eq!(lost_by_library(&manifest, &figures), None);
            figures.total = StreamTotals { sent: 1_000, decided: 1_000, delivered: 900, ..StreamTotals::default() };
            let caveat = lost_by_library(&manifest, &figures).expect("samples were lost");
            assert_eq!(caveat.message, format!("100 of 1,000 samples (10 %) did not reach the receiver{dropped}"));
            assert!(caveat.hint.contains(named), "{dds:?} {direction:?}: {}", caveat.hint);
        }
    }
}
