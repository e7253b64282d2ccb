//! What the counts say: losses, slips, holes, and samples too small for what was asked of them.

use super::kept::timeout_of;
use super::limits::{BEHIND, BEHIND_INTERVALS, BEHIND_SPAN, SCHEDULE_LOST};
use crate::analysis::tally::{Counts, Refusals, RunCounts, SLIPPED};
use crate::diagnostics::{Caveat, Severity};
use crate::recording::manifest::Manifest;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{errno, grouped, percent, quantile, span};

/// The caveats of the counts.
pub(super) fn derive(manifest: &Manifest, tally: &RunCounts, refusals: &Refusals) -> Vec<Caveat> {
    let counts = &tally.counts;
    [
        nothing(manifest, counts),
        not_sent(manifest, counts),
        behind(manifest, tally),
        send_slip(manifest, tally),
        send_failed(manifest, counts, refusals),
        lost(manifest, counts),
        late(manifest, counts),
        reordered(counts),
        duplicates(counts),
        strays(manifest),
        socket_errors(manifest),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `412 of 60,000 probes`
fn of_probes(some: u64, all: u64) -> String {
    format!("{} of {} probes", grouped(some), grouped(all))
}

fn nothing(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let effect = "there are no statistics to show";
    if counts.due() == 0 {
        let hint = match manifest.run.wakeup.as_ref().is_some_and(|facts| facts.cut_short) {
            true => "a longer time for `--break`: a run beside this one was ended by it",
            false => "a longer `--duration`, or a shorter `--warmup`",
        };
        let message = format!("no {} was measured", manifest.kind.rows().trim_end_matches('s'));
        Some(Caveat::new(Severity::Warning, "no-probe-measured", message, effect, hint))
    } else if counts.answered == 0 {
        let message = format!("none of {} probes was answered in time", grouped(counts.due()));
        let hint = match counts.sent {
            0 => "see why none of them was sent",
            _ => "check the path, or raise `--timeout`",
        };
        Some(Caveat::new(Severity::Warning, "none-answered", message, effect, hint))
    } else {
        None
    }
}

fn not_sent(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
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
    let effect = "the round trips are those of another schedule; response time counts them as infinite";
    let hint = "a longer `--interval`, `--wait spin`, or a CPU of its own with `--cpu`";
    Some(if share >= SCHEDULE_LOST {
        Caveat::new(Severity::Fatal, "schedule-lost", message, effect, hint)
    } else {
        Caveat::new(Severity::Warning, "not-sent", message, effect, hint)
    })
}

/// A sender that never caught up set the pace itself, even where it gave no probe up.
fn behind(manifest: &Manifest, tally: &RunCounts) -> Option<Caveat> {
    let counts = &tally.counts;
    let told_already = counts.not_sent as f64 >= SCHEDULE_LOST * counts.due() as f64 && counts.not_sent > 0;
    let share = tally.behind as f64 / counts.sent.max(1) as f64;
    let interval = manifest.spec.schedule().interval()?;
    (share >= BEHIND && !told_already).then(|| {
        Caveat::new(
            Severity::Fatal,
            "schedule-lost",
            format!(
                "{} ({}) left more than {} after they were due",
                of_probes(tally.behind, counts.sent),
                percent(share),
                span(BEHIND_SPAN.max(interval.saturating_mul(BEHIND_INTERVALS)))
            ),
            "the sender set the pace, not the schedule: the round trips are those of another one",
            "a longer `--interval`, `--wait spin`, or a CPU of its own with `--cpu`",
        )
    })
}

fn send_slip(manifest: &Manifest, tally: &RunCounts) -> Option<Caveat> {
    (tally.slipped > 0).then(|| {
        let share = tally.slipped as f64 / tally.counts.sent.max(1) as f64;
        // a late sender hides from a quantile only where more slipped than lie beyond the quantile
        let severity = if share >= 0.001 { Severity::Warning } else { Severity::Note };
        let hiding = match tally.slipped * 2 <= tally.counts.sent {
            true => format!("round trips above {}", quantile_below(tally.slipped, tally.counts.sent)),
            false => "most round trips".into(),
        };
        Caveat::new(
            severity,
            "send-slip",
            format!(
                "{} left more than {} after they were due",
                of_probes(tally.slipped, tally.counts.sent),
                span(SLIPPED)
            ),
            format!("{hiding} may hide what was not sent in time; response time does not"),
            match manifest.spec.concurrent_wakeups() {
                None => "`--wait spin` keeps the schedule at the cost of one core",
                Some(_) => "`--wait spin` without `--with-wakeup` keeps the schedule; or a longer interval of both",
            },
        )
    })
}

/// The quantile below which `some` of `all` do not reach, rounded down to the two digits of it that mean something: 7 of
/// 1,000 leave p99.3, 412 of 60,000 leave p99.31. In whole numbers, since the binary 1 − 0.0001 is less than 0.9999.
fn quantile_below(some: u64, all: u64) -> String {
    let (some, all) = (u128::from(some), u128::from(all));
    let mut scale = 100;
    while some * scale < 10 * all && scale < 1_000_000_000 {
        scale *= 10;
    }
    quantile(((all - some) * scale / all) as f64 / scale as f64)
}

fn send_failed(manifest: &Manifest, counts: &Counts, refusals: &Refusals) -> Option<Caveat> {
    let (number, _) = refusals.0.iter().max_by_key(|(_, count)| **count)?;
    let paused = manifest.run.refused_pause_ns;
    let cost = if paused.0 > 0 { format!("; pausing after them took {}", span(paused)) } else { String::new() };
    Some(Caveat::new(
        Severity::Warning,
        "send-failed",
        format!(
            "the kernel refused {}, mostly with: {}{cost}",
            of_probes(counts.send_failed, counts.due()),
            errno(*number as i32)
        ),
        match manifest.spec.schedule().interval() {
            Some(_) => "they are in no round trip; response time counts them as infinite",
            None => "they are in no round trip",
        },
        "check route, `--size` with `--df`, and the send buffer",
    ))
}

fn lost(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    (counts.lost > 0).then(|| {
        let share = counts.lost as f64 / counts.sent as f64;
        let waited = manifest.run.timed_out_ns;
        let cost = if waited.0 > 0 { format!("; waiting in vain took {}", span(waited)) } else { String::new() };
        Caveat::new(
            if share >= 0.01 { Severity::Warning } else { Severity::Note },
            "lost",
            format!("{} ({}) were lost{cost}", of_probes(counts.lost, counts.sent), percent(share)),
            "quantiles count them as infinite; min, mean, stddev and max leave them out",
            match manifest.run.reflector.as_ref().and_then(|report| report.socket_drops) {
                _ if manifest.run.connection.is_some() => {
                    "over TCP only the end of the connection loses probes: see how the run ended".to_owned()
                }
                Some(0) => {
                    "look for drops on the way: `ip -s link`; the reflector's socket had room for all".to_owned()
                }
                Some(drops) => {
                    format!("the reflector's socket threw {} datagrams away: see there first", grouped(drops))
                }
                None => {
                    "look for drops: `ip -s link`, `nstat -az UdpRcvbufErrors`, and the reflector's counters".to_owned()
                }
            },
        )
    })
}

fn late(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    (counts.late > 0).then(|| {
        let timeout = span(timeout_of(manifest));
        Caveat::new(
            Severity::Warning,
            "late",
            format!("{} were answered after the time-out of {timeout}", of_probes(counts.late, counts.sent)),
            "quantiles count them as infinite although their answers came",
            "a longer `--timeout` turns them into figures",
        )
    })
}

fn reordered(counts: &Counts) -> Option<Caveat> {
    (counts.reordered > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "reordered",
            format!("{} were overtaken by a later one", of_probes(counts.reordered, counts.sent)),
            "the path is not one queue; variation between neighbours is not that of one path",
            "`--source-port sweep` shows whether there are several paths",
        )
    })
}

fn duplicates(counts: &Counts) -> Option<Caveat> {
    (counts.duplicates > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "duplicates",
            format!("{} answers came more than once", grouped(counts.duplicates)),
            "the first answer counts",
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
            format!("{} datagrams were no answers of this session: {}", grouped(total), reasons.join(", ")),
            "none of them counts; each cost one receive call",
            "look for another sender on this port, or for answers changed on the way",
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

/// Quantiles that were asked for and rest on fewer than ten effective observations beyond them.
pub(super) fn few_observations(round_trip: Option<&Description>) -> Option<Caveat> {
    let described = round_trip.filter(|described| described.n > described.lost)?;
    let weak: Vec<_> = described.quantiles.iter().filter(|quantile| !quantile.supported).collect();
    let rarest = weak.iter().map(|weak| weak.q.min(1.0 - weak.q)).reduce(f64::min)?;
    // Dependent probes say less each: as many more are needed as the effective number falls short. That of the mean
    // is known; that of a tail which holds probes enough and is weak all the same must be smaller still.
    let n = described.n as f64;
    let of_mean = described.effective_n.map_or(1.0, |effective_n| effective_n / n);
    let of_tails = weak.iter().map(|weak| 10.0 / (n * weak.q.min(1.0 - weak.q)));
    let worth = of_tails.fold(of_mean, f64::min).clamp(1e-6, 1.0);
    // 1 − 0.9999 is a little less than 0.0001: not a probe more for that
    let enough = (10.0 / rarest / worth * (1.0 - 1e-9)).ceil();
    let scale = 10f64.powf(enough.log10().floor() - 1.0).max(1.0);
    Some(Caveat::new(
        Severity::Note,
        "few-observations",
        too_few_beyond(&weak.iter().map(|weak| weak.q).collect::<Vec<_>>()),
        "these quantiles are shown as `≥` their lower bound, or as `n/a`",
        format!("about `-n {:.0}` would support all of them", (enough / scale).ceil() * scale),
    ))
}

/// Of these unsupported quantiles only the ones nearest to the median are known to have too few beyond them: further
/// out there may be enough, but nothing is vouched for there either.
fn too_few_beyond(weak: &[f64]) -> String {
    let nearest = |outward: fn(&f64, &f64) -> bool, upper: bool| {
        let side = weak.iter().copied().filter(|q| (*q >= 0.5) == upper);
        side.reduce(|one, other| if outward(&one, &other) { one } else { other })
    };
    let first: Vec<f64> = [nearest(|one, other| one > other, false), nearest(|one, other| one < other, true)]
        .into_iter()
        .flatten()
        .collect();
    let names = |wanted: bool| {
        let chosen = weak.iter().filter(|q| first.contains(q) == wanted);
        chosen.map(|q| quantile(*q)).collect::<Vec<_>>().join(", ")
    };
    let message = format!("fewer than 10 effective observations lie beyond {}", names(true));
    match names(false) {
        rest if rest.is_empty() => message,
        rest => format!("{message}; what lies further out ({rest}) is not supported either"),
    }
}
