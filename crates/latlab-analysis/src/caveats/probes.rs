//! Caveats of probes and wake-ups: their fates, the schedule, sockets and connection, the CPUs of the ends.

use super::remedies::{any_of, cpu_for_each_end, fifo, own_cpu, peer_here, reflector_cpu, share_a_cpu};
use super::rule::Rule;
use super::run::Run;
use crate::counts::EndOfAnswers;
use crate::diagnostics::Severity;
use crate::diagnostics::Severity::{Fatal, Note, Warning};
use crate::limits::{BEHIND, BEHIND_INTERVALS, BEHIND_SPAN, OWN_DROPS, PLACEMENT_CONTRAST, SCHEDULE_LOST, SLIPPED};
use crate::plan::{DdsSpec, WaitMode, defaults};
use crate::recording::manifest::ANSWERED_FROM;
use crate::units::Nanos;
use crate::units::human::{errno, grouped, percent, span};

/// The number of Linux for a time-out.
const EAGAIN: i64 = 11;
/// From this share of the probes on, the 99th percentile consists of retransmissions.
const MANY_RETRANSMISSIONS: f64 = 0.01;
/// From this share on, losses are a warning: they determine p99.
pub(super) const MANY_LOSSES: f64 = 0.01;
/// From this share on, slips are a warning: they determine p99.9.
const MANY_SLIPS: f64 = 0.001;

pub(super) const RULES: &[Rule<Run<'_>>] = &[
    Rule {
        code: "answers-ended",
        raise: |run| {
            let how = run.manifest.run.reflector_died.as_ref()?;
            Some((Fatal, format!("the reflector process of this run ended before the run did: {how}")))
        },
        effect: "every probe after that is lost, and the probes shortly before may be slow for the same reason",
        hint: |_| "`journalctl -k` or `dmesg` may show the reason (out of memory, a crash); then measure again".into(),
    },
    Rule {
        code: "answers-ended",
        // No lossy path explains answers that end in the middle of the run.
        raise: |run| {
            let is_unknown = run.manifest.run.reflector_died.is_none() && !run.was_ended_by_silence();
            let EndOfAnswers { after, sending, probes } = run.counts.filter(|_| is_unknown)?.end_of_answers()?;
            let message = format!(
                "no probe was answered after the first {} of {}: all {} that were sent later are lost",
                span(after),
                span(sending),
                grouped(probes)
            );
            Some((Fatal, message))
        },
        effect: "the loss is that of a reflector or path that failed; quantiles contain it",
        hint: |_| "see whether the reflector still runs, and measure again".into(),
    },
    Rule {
        code: "observed",
        raise: |run| {
            let cost = Nanos(run.manifest.run.stamps?.cost_ns.max(0));
            Some((Note, format!("stamps of the kernel add about {} to each passage", span(cost))))
        },
        effect: "a round trip has two passages; compare it with runs that have stamps too",
        hint: |_| "leave out `--stamps` where the delay itself matters".into(),
    },
    Rule {
        code: "observed",
        raise: |run| {
            let words = |cost_ns: i64| span(Nanos(cost_ns.max(0)));
            let cost = words(run.manifest.run.trace_cost_ns?);
            let there = run.manifest.run.peer_trace_cost_ns.map(|cost_ns| format!(", {} at the peer", words(cost_ns)));
            Some((Note, format!("tracing adds about {cost} to each wake-up of a thread{}", there.unwrap_or_default())))
        },
        effect: "a round trip has up to two wake-ups; compare it with runs that are traced too",
        hint: |_| "leave out `--trace` where the delay itself matters".into(),
    },
    Rule {
        code: "nothing-measured",
        raise: |run| {
            let row = run.manifest.kind.rows().trim_end_matches('s');
            (run.counts()?.due() == 0).then(|| (Warning, format!("no {row} was measured")))
        },
        effect: "there are no statistics to show",
        hint: |_| "a longer `--duration`, a shorter `--warmup`, or a longer `--break`, if that ended the run".into(),
    },
    Rule {
        code: "no-answer",
        raise: |run| {
            let (due, answered) = (run.counts()?.due(), run.counts()?.answered);
            (due > 0 && answered == 0)
                .then(|| (Warning, format!("none of {} probes was answered in time", grouped(due))))
        },
        effect: "there are no statistics to show",
        hint: silence_hint,
    },
    Rule {
        code: "schedule-lost",
        raise: |run| {
            let (share, message) = not_sent(run)?;
            (share >= SCHEDULE_LOST).then_some((Fatal, message))
        },
        effect: "the round trips belong to a slower schedule; response time counts the missing probes as infinite",
        hint: schedule_hint,
    },
    Rule {
        code: "schedule-lost",
        // A sender that stays behind its schedule sets the pace itself, even if it skips no probe.
        raise: |run| {
            let share = run.counts?.behind as f64 / run.counts()?.sent.max(1) as f64;
            let is_not_sent = not_sent(run).is_some_and(|(share, _)| share >= SCHEDULE_LOST);
            let limit = BEHIND_SPAN.max(run.manifest.spec.schedule().interval()?.saturating_mul(BEHIND_INTERVALS));
            let probes = of_probes(run.counts?.behind, run.counts()?.sent);
            let message = format!("{probes} ({}) left more than {} after they were due", percent(share), span(limit));
            (share >= BEHIND && !is_not_sent).then_some((Fatal, message))
        },
        effect: "the sender's speed, not the schedule, decided when probes left: the round trips belong to another schedule",
        hint: schedule_hint,
    },
    Rule {
        code: "send-failed",
        raise: |run| {
            let (share, message) = not_sent(run)?;
            (share < SCHEDULE_LOST).then_some((Warning, message))
        },
        effect: "they are in no round trip; response time counts them as infinite",
        hint: schedule_hint,
    },
    Rule {
        code: "send-failed",
        raise: |run| {
            let severity = if run.counts()?.send_failed_share() >= SCHEDULE_LOST { Fatal } else { Warning };
            Some((severity, send_failed(run)?))
        },
        effect: "they are in no round trip; on a schedule response time counts them as infinite",
        hint: |run| match run.is_over_library() {
            true if gave_up_waiting(run) => "check that the reflector still runs; a CPU of its own for it".into(),
            true => "the warnings of the library are in the recording: `run.dds.warnings`".into(),
            false => "check the route, the send buffer and `--size`; no `--df`".into(),
        },
    },
    Rule {
        code: "overrun-slots",
        raise: |run| overrun(run.wakeups?.overrun_slots, run.counts()?.answered),
        effect: "no wake-up is skipped: each waits for those before it, as a periodic task would",
        hint: |run| any_of([Some("a longer `--interval`"), fifo(run.manifest)]),
    },
    Rule {
        code: "overrun-slots",
        raise: |run| overrun(run.watched?.overrun, run.watched?.n),
        effect: "these threads delay each other, and may delay probes on their CPU",
        hint: |_| "a longer interval of `--with-wakeup`".into(),
    },
    Rule {
        code: "overrun-slots",
        raise: |run| {
            let given_up = run.wakeups?.not_slept?;
            let message = || {
                let (given_up, backlog) = (grouped(given_up), span(defaults::MAX_BACKLOG));
                let why = format!("{backlog} after the last one was due, their threads had not reached them");
                format!("{given_up} wake-ups were given up: {why}")
            };
            (given_up > 0).then(|| (Warning, message()))
        },
        effect: "they would have been later than every measured one: the true quantiles lie above those shown",
        hint: |_| "a longer `--interval`".into(),
    },
    Rule {
        code: "broke",
        raise: |run| {
            let late = run.wakeups?.broke?;
            let cpu = late.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
            let lateness = span(Nanos(late.woke_ns - late.due_ns));
            Some((Note, format!("wake-up {} was {lateness} late{cpu}, which ended the run (`--break`)", late.seq)))
        },
        effect: "the results cover the part before it, whose length depends on the late wake-up",
        // Without a trace another caveat says why it is missing, and how to have it.
        hint: |run| {
            let trace = run.manifest.run.trace_cost_ns;
            trace.map(|_| "`latlab explain` shows what ran then".into()).unwrap_or_default()
        },
    },
    Rule {
        code: "broke",
        raise: |run| {
            run.wakeups?.cut_short.then(|| (Note, "a late wake-up of a concurrent run ended both runs".to_owned()))
        },
        effect: "the results cover the part before it",
        hint: |_| "omit `--break` to measure whole runs".into(),
    },
    Rule {
        code: "socket-drops",
        raise: |run| {
            let drops = run.manifest.run.socket_drops?;
            dropped(run, drops, |drops| format!("the socket of this host dropped {drops} datagrams"), "answer")
        },
        effect: "probes whose answers are among them count as lost, although these reached this host",
        hint: |run| {
            any_of([Some("a larger buffer (`sysctl net.core.rmem_max`)"), own_cpu(run.manifest), Some("a lower rate")])
        },
    },
    Rule {
        code: "socket-drops",
        raise: |run| {
            let drops = run.manifest.run.reflector.as_ref()?.socket_drops?;
            let message = |drops| format!("the reflector's own socket dropped {drops} datagrams of all its sessions");
            dropped(run, drops, message, "measured probe")
        },
        effect: "the probes among them count as lost, although they reached the reflector's host",
        hint: |run| {
            let buffer = Some("a larger buffer there (`sysctl net.core.rmem_max`)");
            any_of([buffer, reflector_cpu(run.manifest), Some("a lower rate")])
        },
    },
    Rule {
        code: "socket-errors",
        raise: |run| {
            run.counts?;
            let errors = &run.manifest.run.socket_errors;
            let total: u64 = errors.values().sum();
            let kinds: Vec<_> = errors.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect();
            let message = || format!("the network refused {} measured probes: {}", grouped(total), kinds.join(", "));
            (total > 0).then(|| (Warning, message()))
        },
        effect: "they count as lost",
        hint: |_| "check that the reflector runs and that no firewall rejects its port".into(),
    },
    Rule {
        code: "spin-on-one-cpu",
        raise: |run| Some((Warning, spin_on_one_cpu(run)?)),
        effect: "delays contain time slices of the scheduler, which last milliseconds",
        hint: |run| any_of([Some("`--wait block`"), cpu_for_each_end(run.manifest), Some("stop the other processes")]),
    },
    Rule {
        code: "unpinned-placement",
        raise: |run| {
            let severity = if run.placed?.contrast() >= PLACEMENT_CONTRAST { Warning } else { Note };
            let words = run.placed?.words();
            let placed = if words.is_empty() { ", and their CPUs are not known" } else { "; of the probes " };
            Some((severity, format!("the ends were not both pinned{placed}{words}")))
        },
        effect: "in another run they may be on other CPUs, and its round trips then differ",
        hint: |run| run.placed.map(|placed| placed.pins()).unwrap_or_default(),
    },
    Rule {
        code: "send-slip",
        raise: |run| {
            let (slipped, sent) = (run.counts?.slipped, run.counts()?.sent);
            let severity = if slipped as f64 >= MANY_SLIPS * sent as f64 { Warning } else { Note };
            let message = format!("{} left more than {} after they were due", of_probes(slipped, sent), span(SLIPPED));
            (slipped > 0).then_some((severity, message))
        },
        effect: "the round trip does not include how late a probe left: high quantiles may be too low; response time includes it",
        hint: |run| {
            let keeping = run.spin().map(|_| "`--wait spin` (takes one core)");
            let concurrent = run.manifest.spec.concurrent_wakeups();
            let longer = concurrent.map(|_| "longer intervals of the probes and of `--with-wakeup`");
            match any_of([keeping, longer, own_cpu(run.manifest), fifo(run.manifest)]) {
                none if none.is_empty() => "stop the other processes on the sender's CPU".into(),
                remedies => remedies,
            }
        },
    },
    Rule {
        code: "lost",
        // A run without an answer has a caveat that says so.
        raise: |run| {
            let counts = run.counts().filter(|counts| counts.lost > 0 && counts.answered > 0)?;
            let share = counts.lost as f64 / counts.sent as f64;
            let waited = run.manifest.run.timed_out_ns;
            let cost = match counts.late {
                _ if waited.0 <= 0 => String::new(),
                0 => format!("; waiting for them took {}", span(waited)),
                _ => format!("; waiting for them and for late answers took {}", span(waited)),
            };
            let probes = of_probes(counts.lost, counts.sent);
            let severity = if share >= MANY_LOSSES { Warning } else { Note };
            Some((severity, format!("{probes} ({}) were lost{cost}", percent(share))))
        },
        effect: "quantiles count them as infinite; min, mean, stddev and max leave them out",
        hint: |run| match run.is_over_library() {
            _ if run.manifest.run.connection.is_some() => {
                "over TCP probes are lost only if the connection ends: see how the run ended".into()
            }
            true => {
                "`--reliability reliable` sends lost samples again, with `--history keep-all` at both ends all".into()
            }
            false => "look for drops: `ip -s link`, `nstat -az UdpRcvbufErrors`, and the reflector's counters".into(),
        },
    },
    Rule {
        code: "late",
        raise: |run| {
            let counts = run.counts().filter(|counts| counts.late > 0)?;
            let timeout = span(run.manifest.spec.ping()?.timeout_ns);
            let probes = of_probes(counts.late, counts.sent);
            Some((Warning, format!("{probes} were answered after the time-out of {timeout}")))
        },
        effect: "quantiles count them as infinite although their answers came",
        hint: |_| "a longer `--timeout` makes them count as answered".into(),
    },
    Rule {
        code: "tcp-retransmits",
        raise: |run| {
            let (connection, sent) = (run.manifest.run.connection.as_ref()?, run.counts()?.sent);
            let again = connection.retransmitted;
            let share = again as f64 / sent.max(1) as f64;
            let message = format!(
                "segments that this end sent again: {}, with {} probes ({}); those of the other end are not known",
                grouped(again),
                grouped(sent),
                percent(share)
            );
            let severity = if share >= MANY_RETRANSMISSIONS { Warning } else { Note };
            (again > 0).then_some((severity, message))
        },
        effect: "over UDP their probes would be lost; over TCP they and the probes queued behind them are late, by up to a \
                 retransmission time-out",
        hint: |_| {
            "`--transport udp` shows the loss itself; `nstat -az TcpRetransSegs` and `ip -s link` show where it occurs"
                .into()
        },
    },
    Rule {
        code: "reordered",
        raise: |run| {
            let counts = run.counts().filter(|counts| counts.reordered > 0)?;
            Some((Note, format!("{} were overtaken by a later one", of_probes(counts.reordered, counts.sent))))
        },
        effect: "probes take different queues or paths; differences between successive probes include that",
        hint: |_| "look for several queues, CPUs or paths; over UDP `--source-port sweep` shows several paths".into(),
    },
    Rule {
        code: "duplicates",
        raise: |run| {
            let duplicates = run.counts()?.duplicates;
            (duplicates > 0).then(|| (Note, format!("{} answers came more than once", grouped(duplicates))))
        },
        effect: "only the first answer of each probe counts",
        hint: |_| "look for a bridge loop or a mirroring port on the path".into(),
    },
    Rule {
        code: "strays",
        raise: |run| {
            run.counts?;
            let strays = &run.manifest.run.strays;
            let total: u64 = strays.values().sum();
            let reasons: Vec<_> =
                strays.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
            let (total, reasons) = ((total > 0).then(|| grouped(total))?, reasons.join(", "));
            Some((Note, format!("{total} received datagrams were not answers of this session: {reasons}")))
        },
        effect: "they are not counted; each took one receive call",
        hint: |_| "look for another sender to this port, or for a device that changes packets on the path".into(),
    },
];

/// Drops at a socket, which other senders reach too, and the warm-up: as many of the dropped datagrams belong to measured
/// probes as were lost, at most.
fn dropped(run: &Run<'_>, drops: u64, message: impl Fn(String) -> String, noun: &str) -> Option<(Severity, String)> {
    let counts = run.counts().filter(|_| drops > 0 && !run.is_over_library())?;
    let ours = drops.min(counts.lost);
    let share = ours as f64 / counts.sent.max(1) as f64;
    let (severity, among) = match ours {
        0 => (Note, format!("none of them {} {noun}", if noun == "answer" { "an" } else { "a" })),
        _ => (Warning, format!("up to {} of them {noun}s ({} of the probes)", grouped(ours), percent(share))),
    };
    let severity = if share >= OWN_DROPS { Fatal } else { severity };
    Some((severity, format!("{}: {among}", message(grouped(drops)))))
}

/// `412 of 60,000 probes`
fn of_probes(some: u64, all: u64) -> String {
    format!("{} of {} probes", grouped(some), grouped(all))
}

/// What to do about a target that answers no probe.
fn silence_hint(run: &Run<'_>) -> String {
    if let Some(from) = run.manifest.run.conditions.get(ANSWERED_FROM) {
        return format!(
            "answers came from another address or port: `{from}`, where none is expected; measure to that, or make the service \
             there answer from the address that is asked (`latlab serve --bind ADDR`)"
        );
    }
    let hint = match run.counts().map_or(0, |counts| counts.sent) {
        0 => "the other caveats say why no probe was sent",
        _ if run.manifest.spec.answers_in_driver() => {
            "try `--reflect socket`; the program in the driver answers no packet with an unfinished checksum (virtual \
             interfaces: `ethtool -K IFACE tx off` at the sender), and some drivers cannot send back (docs/xdp.md)"
        }
        _ => {
            "check that the target runs and that no firewall drops the packets; `--timeout` sets how long an answer may \
             take"
        }
    };
    hint.into()
}

/// Whether a writer gave up waiting for acknowledgements: its time-out is EAGAIN.
fn gave_up_waiting(run: &Run<'_>) -> bool {
    let waits = run.manifest.spec.path().and_then(|path| path.dds).is_some_and(DdsSpec::waits_for_readers);
    waits && run.errors.is_some_and(|errors| errors.0.contains_key(&EAGAIN))
}

/// The remedies for a sender that cannot keep its schedule.
fn schedule_hint(run: &Run<'_>) -> String {
    let waiting = gave_up_waiting(run).then(|| reflector_cpu(run.manifest)).flatten();
    any_of([Some("a longer `--interval`"), run.spin(), own_cpu(run.manifest), waiting])
}

/// The share of the probes that were never sent, and a message about them; `None` if all were.
fn not_sent(run: &Run<'_>) -> Option<(f64, String)> {
    let counts = run.counts().filter(|counts| counts.not_sent > 0)?;
    let share = counts.not_sent as f64 / counts.due() as f64;
    let (probes, share_word) = (of_probes(counts.not_sent, counts.due()), percent(share));
    let behind = span(run.manifest.spec.ping().map_or(Nanos::ZERO, |ping| ping.max_backlog_ns));
    Some((
        share,
        format!("{probes} ({share_word}) were never sent: the sender was more than {behind} behind its schedule"),
    ))
}

fn send_failed(run: &Run<'_>) -> Option<String> {
    let (number, _) = run.errors?.0.iter().max_by_key(|(_, count)| **count)?;
    let paused = run.manifest.run.refused_pause_ns;
    let cost = if paused.0 > 0 {
        format!("; the sender paused for {} in all after them", span(paused))
    } else {
        String::new()
    };
    let probes = of_probes(run.counts()?.send_failed, run.counts()?.due());
    // The library has errors without a number of the kernel.
    let reason = if *number == 0 { "an error without a number".to_owned() } else { errno(*number as i32) };
    let refused = match run.is_over_library() {
        true if gave_up_waiting(run) => format!("the writer waited 100 ms for acknowledgements and gave up {probes}"),
        true => format!("the DDS library refused {probes}"),
        false => format!("the kernel refused {probes}"),
    };
    Some(format!("{refused}, mostly with: {reason}{cost}"))
}

/// Slots that were due before their thread had returned from the one before.
fn overrun(slots: u64, measured: u64) -> Option<(Severity, String)> {
    let (share, count) = (percent(slots as f64 / measured.max(1) as f64), grouped(slots));
    let message = format!(
        "{count} of {} wake-ups ({share}) were due before their thread had returned from the previous one",
        grouped(measured)
    );
    (slots > 0).then_some((Warning, message))
}

/// How two ends, of which one spins, shared a CPU: by pins, by the choice of the scheduler, or, by the long round trips, with
/// other threads.
fn spin_on_one_cpu(run: &Run<'_>) -> Option<String> {
    let peer = peer_here(run.manifest);
    let spins = |there: WaitMode| run.manifest.spec.here.wait == WaitMode::Spin || there == WaitMode::Spin;
    if peer.is_some_and(|peer| spins(peer.wait) && share_a_cpu(run.manifest, peer)) {
        return Some("both ends share one CPU and at least one of them spins".into());
    }
    let shared = run.placed.and_then(|placed| placed.shared_by_spinning());
    let of_scheduler = |share| {
        format!("both ends shared one CPU for {} of the probes, and at least one of them spins", percent(share))
    };
    shared.map(of_scheduler).or_else(|| run.stalls?.words())
}
