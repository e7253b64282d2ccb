//! Caveats of probes: fates, schedule slip, drops at sockets, retransmissions, and samples too small for the requested
//! quantiles.

use super::coincidence::Coincidence;
use crate::analysis::caveats::{
    any_of, fifo, own_cpu, reflector_cpu, silence_hint, spin, timeout_of, was_ended_by_silence,
};
use crate::analysis::counts::{Counts, RunCounts, SendErrors};
use crate::analysis::limits::{BEHIND, BEHIND_INTERVALS, BEHIND_SPAN, OWN_DROPS, SCHEDULE_LOST, SLIPPED};
use crate::analysis::wakeup::overrun_slots;
use crate::diagnostics::{Caveat, Severity};
use crate::facts::XdpFacts;
use crate::plan::{DdsSpec, Reliability};
use crate::recording::manifest::Manifest;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{errno, grouped, percent, quantile, span};

/// The number of Linux for a time-out.
const EAGAIN: i64 = 11;
/// From this share of the probes on, the 99th percentile consists of retransmissions.
const MANY_RETRANSMISSIONS: f64 = 0.01;

/// The caveats of the counts, and of `described`, the main metric. `is_contended`: this end had to share its CPU.
pub(crate) fn caveats(
    manifest: &Manifest,
    run: &RunCounts,
    errors: &SendErrors,
    described: Option<&Description>,
    is_contended: bool,
) -> Vec<Caveat> {
    let counts = &run.counts;
    let schedule_hint = schedule_hint(manifest, errors, is_contended);
    [
        nothing(manifest, counts),
        not_sent(manifest, counts, &schedule_hint),
        behind(manifest, run, &schedule_hint),
        send_slip(manifest, run, is_contended),
        send_failed(manifest, counts, errors),
        lost(manifest, counts),
        late(manifest, counts),
        reordered(manifest, counts),
        duplicates(counts),
        strays(manifest),
        socket_errors(manifest),
        described.and_then(few_observations),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The caveats of the sockets and of the connection.
pub(crate) fn socket_caveats(manifest: &Manifest, counts: &Counts) -> impl Iterator<Item = Caveat> {
    [own_drops(manifest, counts), reflector_drops(manifest, counts), retransmissions(manifest, counts)]
        .into_iter()
        .flatten()
}

/// The caveat of concurrent wake-ups that could not keep their interval.
pub(crate) fn overrun_caveat(found: &Coincidence) -> Option<Caveat> {
    let effect = "these threads delay each other, and may delay probes on their CPU";
    overrun_slots(found.overrun_slots, found.wakeup_latency.n, effect, "a longer interval of `--with-wakeup`")
}

/// `412 of 60,000 probes`
fn of_probes(some: u64, all: u64) -> String {
    format!("{} of {} probes", grouped(some), grouped(all))
}

fn nothing(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let effect = "there are no statistics to show";
    if counts.due() == 0 {
        let hint = match manifest.run.wakeup.as_ref().is_some_and(|facts| facts.cut_short) {
            true => "a longer time for `--break`: it ended a concurrent run, and this one with it",
            false => "a longer `--duration`, or a shorter `--warmup`",
        };
        let message = format!("no {} was measured", manifest.kind.rows().trim_end_matches('s'));
        Some(Caveat::new(Severity::Warning, "no-probe-measured", message, effect, hint))
    } else if counts.answered == 0 && !was_ended_by_silence(manifest) {
        let message = format!("none of {} probes was answered in time", grouped(counts.due()));
        let hint = match counts.sent {
            0 => "the other caveats say why no probe was sent",
            _ => silence_hint(manifest),
        };
        Some(Caveat::new(Severity::Warning, "none-answered", message, effect, hint))
    } else {
        None
    }
}

/// Whether a writer gave up waiting for acknowledgements: its time-out is EAGAIN.
fn gave_up_waiting(manifest: &Manifest, errors: &SendErrors) -> bool {
    let waits = manifest.spec.path().and_then(|path| path.dds).is_some_and(DdsSpec::waits_for_readers);
    waits && errors.0.contains_key(&EAGAIN)
}

/// The remedies for a sender that cannot keep its schedule.
fn schedule_hint(manifest: &Manifest, errors: &SendErrors, is_contended: bool) -> String {
    let longer = Some("a longer `--interval`");
    if gave_up_waiting(manifest, errors) {
        let remedies = any_of([longer, own_cpu(manifest), reflector_cpu(manifest)]);
        return format!("{remedies}; the writer waited for acknowledgements: check that the reflector still runs");
    }
    any_of([longer, spin(manifest, is_contended), own_cpu(manifest)])
}

fn not_sent(manifest: &Manifest, counts: &Counts, hint: &str) -> Option<Caveat> {
    if counts.not_sent == 0 {
        return None;
    }
    let share = counts.not_sent as f64 / counts.due() as f64;
    let message = format!(
        "{} ({}) were never sent: the sender was more than {} behind its schedule",
        of_probes(counts.not_sent, counts.due()),
        percent(share),
        span(manifest.spec.ping().map_or(Nanos::ZERO, |ping| ping.max_backlog_ns))
    );
    let effect = "the round trips belong to a slower schedule; response time counts the missing probes as infinite";
    Some(if share >= SCHEDULE_LOST {
        Caveat::new(Severity::Fatal, "schedule-lost", message, effect, hint)
    } else {
        Caveat::new(Severity::Warning, "not-sent", message, effect, hint)
    })
}

/// A sender that stays behind its schedule sets the pace itself, even if it skips no probe.
fn behind(manifest: &Manifest, run: &RunCounts, hint: &str) -> Option<Caveat> {
    let counts = &run.counts;
    let is_not_sent = counts.not_sent as f64 >= SCHEDULE_LOST * counts.due() as f64 && counts.not_sent > 0;
    let share = run.behind as f64 / counts.sent.max(1) as f64;
    let interval = manifest.spec.schedule().interval()?;
    (share >= BEHIND && !is_not_sent).then(|| {
        Caveat::new(
            Severity::Fatal,
            "schedule-lost",
            format!(
                "{} ({}) left more than {} after they were due",
                of_probes(run.behind, counts.sent),
                percent(share),
                span(BEHIND_SPAN.max(interval.saturating_mul(BEHIND_INTERVALS)))
            ),
            "the sender's speed, not the schedule, decided when probes left: the round trips belong to another schedule",
            hint,
        )
    })
}

fn send_slip(manifest: &Manifest, run: &RunCounts, is_contended: bool) -> Option<Caveat> {
    (run.slipped > 0).then(|| {
        let share = run.slipped as f64 / run.counts.sent.max(1) as f64;
        // A slip affects a quantile only if more probes slipped than lie beyond it.
        let severity = if share >= 0.001 { Severity::Warning } else { Severity::Note };
        let concerned = match run.slipped * 2 <= run.counts.sent {
            true => format!("quantiles above {}", quantile_below(run.slipped, run.counts.sent)),
            false => "most quantiles".into(),
        };
        let keeping = spin(manifest, is_contended).map(|_| "`--wait spin` (takes one core)");
        let longer = manifest.spec.concurrent_wakeups().map(|_| "longer intervals of the probes and of `--with-wakeup`");
        Caveat::new(
            severity,
            "send-slip",
            format!("{} left more than {} after they were due", of_probes(run.slipped, run.counts.sent), span(SLIPPED)),
            format!(
                "the round trip does not include how late a probe left: {concerned} may be too low; response time includes it"
            ),
            match any_of([keeping, longer, own_cpu(manifest), fifo(manifest)]) {
                none if none.is_empty() => "stop the other processes on the sender's CPU".into(),
                remedies => remedies,
            },
        )
    })
}

/// The quantile above which `some` of `all` probes lie, rounded down to two significant digits of its complement: 7 of
/// 1,000 lie above p99.3, 412 of 60,000 above p99.31. In integers, since the binary 1 − 0.07 is less than 0.93.
fn quantile_below(some: u64, all: u64) -> String {
    let (some, all) = (u128::from(some), u128::from(all));
    let mut scale = 100;
    while some * scale < 10 * all && scale < 1_000_000_000 {
        scale *= 10;
    }
    quantile(((all - some) * scale / all) as f64 / scale as f64)
}

fn send_failed(manifest: &Manifest, counts: &Counts, errors: &SendErrors) -> Option<Caveat> {
    let (number, _) = errors.0.iter().max_by_key(|(_, count)| **count)?;
    let paused = manifest.run.refused_pause_ns;
    let cost = if paused.0 > 0 {
        format!("; the sender paused for {} in all after them", span(paused))
    } else {
        String::new()
    };
    let probes = of_probes(counts.send_failed, counts.due());
    // The library has errors without a number of the kernel.
    let reason = if *number == 0 { "an error without a number".to_owned() } else { errno(*number as i32) };
    let (message, hint) = match is_of_datagrams(manifest) {
        true => (
            format!("the kernel refused {probes}, mostly with: {reason}{cost}"),
            match manifest.spec.path().is_some_and(|path| path.dont_fragment) {
                true => "a smaller `--size`, or no `--df`; check the route and the send buffer",
                false => "check the route and the send buffer",
            },
        ),
        false if *number == EAGAIN && gave_up_waiting(manifest, errors) => (
            format!(
                "the writer gave up {probes} after waiting 100 ms for acknowledgements, mostly with: {reason}{cost}"
            ),
            "check that the reflector still runs; a CPU of its own for it (`--peer-cpu`, `serve --cpu`)",
        ),
        false => (
            format!("the DDS library refused {probes}, mostly with: {reason}{cost}"),
            "the warnings of the library are in the recording: `run.dds.warnings`",
        ),
    };
    Some(Caveat::new(
        Severity::Warning,
        "send-failed",
        message,
        match manifest.spec.schedule().interval() {
            Some(_) => "they are in no round trip; response time counts them as infinite",
            None => "they are in no round trip",
        },
        hint,
    ))
}

/// A run without an answer has a caveat that says so.
fn lost(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    (counts.lost > 0 && counts.answered > 0).then(|| {
        let share = counts.lost as f64 / counts.sent as f64;
        let waited = manifest.run.timed_out_ns;
        let cost = match counts.late {
            _ if waited.0 <= 0 => String::new(),
            0 => format!("; waiting for them took {}", span(waited)),
            _ => format!("; waiting for them and for late answers took {}", span(waited)),
        };
        Caveat::new(
            if share >= 0.01 { Severity::Warning } else { Severity::Note },
            "lost",
            format!("{} ({}) were lost{cost}", of_probes(counts.lost, counts.sent), percent(share)),
            "quantiles count them as infinite; min, mean, stddev and max leave them out",
            match manifest.run.reflector.as_ref().and_then(|report| report.socket_drops) {
                _ if manifest.run.connection.is_some() => {
                    "over TCP probes are lost only if the connection ends: see how the run ended".to_owned()
                }
                drops if !is_of_datagrams(manifest) => lost_samples(manifest, drops),
                Some(0) => {
                    "look for drops on the path with `ip -s link`; the reflector's socket dropped none".to_owned()
                }
                Some(drops) => {
                    format!("the reflector's socket dropped {} datagrams: look there first", grouped(drops))
                }
                None => {
                    "look for drops: `ip -s link`, `nstat -az UdpRcvbufErrors`, and the reflector's counters".to_owned()
                }
            },
        )
    })
}

/// A hint about lost samples; `drops`: datagrams dropped at the sockets of the reflector's library.
fn lost_samples(manifest: &Manifest, drops: Option<u64>) -> String {
    let path = manifest.spec.path().and_then(|path| path.dds).unwrap_or_default();
    let way = match path.reliability {
        Reliability::BestEffort => "`--reliability reliable` sends lost samples again",
        Reliability::Reliable if path.waits_for_readers() => {
            "check that the reflector still runs, and has `--history keep-all` too"
        }
        Reliability::Reliable => "a larger `--history`, or `keep-all`, at both ends",
    };
    match drops {
        Some(drops) if drops > 0 => {
            format!("{way}; the sockets of the reflector's library dropped {} datagrams", grouped(drops))
        }
        _ => way.into(),
    }
}

fn late(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    (counts.late > 0).then(|| {
        let timeout = span(timeout_of(manifest));
        Caveat::new(
            Severity::Warning,
            "late",
            format!("{} were answered after the time-out of {timeout}", of_probes(counts.late, counts.sent)),
            "quantiles count them as infinite although their answers came",
            "a longer `--timeout` makes them count as answered",
        )
    })
}

fn reordered(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    (counts.reordered > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "reordered",
            format!("{} were overtaken by a later one", of_probes(counts.reordered, counts.sent)),
            "probes take different queues or paths; differences between successive probes include that",
            match is_of_datagrams(manifest) && manifest.spec.path().is_some_and(|path| path.source_port.is_none()) {
                true => "`--source-port sweep` shows whether there are several paths",
                false => "look for several queues, CPUs or paths between the ends",
            },
        )
    })
}

fn duplicates(counts: &Counts) -> Option<Caveat> {
    (counts.duplicates > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "duplicates",
            format!("{} answers came more than once", grouped(counts.duplicates)),
            "only the first answer of each probe counts",
            "look for a bridge loop or a mirroring port on the path",
        )
    })
}

fn strays(manifest: &Manifest) -> Option<Caveat> {
    let strays = &manifest.run.strays;
    let total: u64 = strays.values().sum();
    (total > 0).then(|| {
        let reasons: Vec<_> = strays.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
        Caveat::new(
            Severity::Note,
            "strays",
            format!("{} received datagrams were not answers of this session: {}", grouped(total), reasons.join(", ")),
            "they are not counted; each took one receive call",
            "look for another sender to this port, or for a device that changes packets on the path",
        )
    })
}

fn socket_errors(manifest: &Manifest) -> Option<Caveat> {
    let errors = &manifest.run.socket_errors;
    let total: u64 = errors.values().sum();
    (total > 0).then(|| {
        let kinds: Vec<_> = errors.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect();
        Caveat::new(
            Severity::Warning,
            "socket-errors",
            format!("the network refused {} measured probes: {}", grouped(total), kinds.join(", ")),
            "they count as lost",
            "check that the reflector runs and that no firewall rejects its port",
        )
    })
}

/// Requested quantiles with fewer than ten effective observations beyond them. Slow changes have a caveat of their own:
/// more probes are no remedy.
fn few_observations(described: &Description) -> Option<Caveat> {
    if described.n == described.lost || described.slow_changes.is_some() {
        return None;
    }
    let enough = described.n_for_support()?;
    let weak: Vec<f64> = described.quantiles.iter().filter(|one| !one.supported).map(|one| one.q).collect();
    let scale = 10f64.powf(enough.log10().floor() - 1.0).max(1.0);
    Some(Caveat::new(
        Severity::Note,
        "few-observations",
        too_few_beyond(&weak),
        "the table shows these quantiles in parentheses, with a lower bound after `≥`, or with `n/a`",
        format!("about `-n {:.0}` would support all of them", (enough / scale).ceil() * scale),
    ))
}

/// Of these unsupported quantiles only the ones nearest to the median are known to have too few observations beyond
/// them; further out there may be enough, but those quantiles are not supported either.
fn too_few_beyond(weak: &[f64]) -> String {
    let side = |upper: bool| weak.iter().copied().filter(move |q| (*q >= 0.5) == upper);
    let nearest: Vec<f64> = side(false).reduce(f64::max).into_iter().chain(side(true).reduce(f64::min)).collect();
    let names = |wanted: bool| {
        let chosen = weak.iter().filter(|q| nearest.contains(q) == wanted);
        chosen.map(|q| quantile(*q)).collect::<Vec<_>>().join(", ")
    };
    let message = format!("fewer than 10 effective observations lie beyond {}", names(true));
    match names(false) {
        rest if rest.is_empty() => message,
        rest => format!("{message}; also not supported: {rest}"),
    }
}

/// Whether a datagram is a message; not over DDS, where a sample may be several datagrams that are sent again.
fn is_of_datagrams(manifest: &Manifest) -> bool {
    !manifest.spec.transport().is_some_and(|transport| transport.properties().has_own_threads)
}

fn own_drops(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    if !is_of_datagrams(manifest) {
        return None;
    }
    let drops = manifest.run.socket_drops.filter(|drops| *drops > 0)?;
    let share = drops as f64 / counts.sent.max(1) as f64;
    Some(Caveat::new(
        if share >= OWN_DROPS { Severity::Fatal } else { Severity::Warning },
        "socket-drops",
        format!("the socket of this host dropped {} datagrams ({} of the probes)", grouped(drops), percent(share)),
        "their probes count as lost, although the answers reached this host",
        match manifest.run.xdp {
            None => {
                any_of([Some("a larger buffer (`sysctl net.core.rmem_max`)"), own_cpu(manifest), Some("a lower rate")])
            }
            Some(_) => {
                let remedies = any_of([own_cpu(manifest), Some("a lower rate")]);
                format!("{remedies}; the count includes packets with a wrong checksum")
            }
        },
    ))
}

/// The reflector's socket may also receive from other senders, and it received the warm-up. Of the datagrams that it
/// dropped, the number of measured probes of this run is at most the number of lost ones.
fn reflector_drops(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    if !is_of_datagrams(manifest) {
        return None;
    }
    let drops = manifest.run.reflector.as_ref()?.socket_drops.filter(|drops| *drops > 0)?;
    let ours = drops.min(counts.lost);
    let share = ours as f64 / counts.sent.max(1) as f64;
    let among = match ours {
        0 => "none of them a measured probe".to_owned(),
        ours if ours < drops => format!("up to {} of them measured probes ({})", grouped(ours), percent(share)),
        _ => format!("{} of the probes", percent(share)),
    };
    Some(Caveat::new(
        match ours {
            0 => Severity::Note,
            _ if share >= OWN_DROPS => Severity::Fatal,
            _ => Severity::Warning,
        },
        "socket-drops",
        format!("the reflector's own socket dropped {} datagrams of all its sessions: {among}", grouped(drops)),
        match ours {
            0 => "none on this run: they belonged to its warm-up or to other sessions",
            _ => "the probes among them count as lost, although they reached the reflector's host",
        },
        match manifest.run.xdp_reflector {
            Some(XdpFacts { queue: Some(_), .. }) => {
                let remedies = any_of([reflector_cpu(manifest), Some("a lower rate")]);
                format!("{remedies}; the count includes packets with a wrong checksum")
            }
            _ => any_of([
                Some("a larger buffer there (`sysctl net.core.rmem_max`)"),
                reflector_cpu(manifest),
                Some("a lower rate"),
            ]),
        },
    ))
}

/// Over TCP loss becomes delay.
fn retransmissions(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let again =
        manifest.run.connection.as_ref().map(|connection| connection.retransmitted).filter(|again| *again > 0)?;
    let share = again as f64 / counts.sent.max(1) as f64;
    Some(Caveat::new(
        if share >= MANY_RETRANSMISSIONS { Severity::Warning } else { Severity::Note },
        "tcp-retransmits",
        format!(
            "segments that this end sent again: {}, with {} probes ({}); those of the other end are not known",
            grouped(again),
            grouped(counts.sent),
            percent(share)
        ),
        "over UDP their probes would be lost; over TCP they and the probes queued behind them are late, by up to a \
         retransmission time-out",
        "`--transport udp` shows the loss itself; `nstat -az TcpRetransSegs` and `ip -s link` show where it occurs",
    ))
}
