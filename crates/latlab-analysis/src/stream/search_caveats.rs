//! Caveats of a rate search, of its stages and of concurrent probes: no rate found, undecided bounds, a rate limited by
//! this end, a rate that did not hold.

use super::figures::StreamFigures;
use super::stages::{GoalEnd, GoalFigures, SearchFigures, StageFigures};
use crate::analysis::caveats::{any_of, own_cpu, reflector_cpu, spin};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::SearchEnding;
use crate::plan::{Direction, Pace, RateSearchSpec, Schedule, SendMode, StreamSpec, defaults};
use crate::recording::manifest::Manifest;
use crate::units::Nanos;
use crate::units::human::{bit_rate, grouped, percent, span, typed_span};

/// Probes affect the result above this share of the stream's rate: half of the relative width of a search's bounds.
const PROBES: f64 = 0.01;
/// Rounding error of a computed share.
const ROUNDING: f64 = 1e-9;

/// The caveats of a search, if there was one, of stages and of concurrent probes.
pub(super) fn search_caveats(manifest: &Manifest, stream: &StreamFigures) -> Vec<Caveat> {
    let stages = stream.stages.as_slice();
    let message = manifest.spec.transport().unwrap_or_default().properties().message;
    let of_search = stream.search.iter().flat_map(|search| {
        let rates = [none_found(search, message), undecided(search), at_ceiling(manifest, search)];
        rates.into_iter().chain([not_held(search, stages), left_out(search, stages)]).flatten()
    });
    of_search.chain(not_offered(stages, message)).chain(unsent(stages)).chain(probes_load(manifest, stream)).collect()
}

/// `0 %`, `0 % and 0.5 %`
fn losses(search: &SearchFigures, is_meant: impl Fn(&GoalFigures) -> bool) -> Option<String> {
    let meant = search.goals.iter().filter(|goal| is_meant(goal)).map(|goal| percent(goal.goal.loss_ratio));
    meant.reduce(|all, one| format!("{all} and {one}"))
}

fn none_found(search: &SearchFigures, message: &str) -> Option<Caveat> {
    let trials = || grouped(search.trials as u64);
    let (text, hint): (_, String) = match search.ending {
        _ if search.found_pps.is_some() => return None,
        SearchEnding::Silent => (
            format!("the target stopped answering after {} trials of the search, before a rate was found", trials()),
            "check that the target still runs; `--rate` limits the rates of the search".into(),
        ),
        SearchEnding::CutShort if search.trials == 0 => (
            "the run ended during the first trial of the search".into(),
            "wait for the end of the search: it states at its start how long it takes".into(),
        ),
        SearchEnding::CutShort => (
            format!("the run ended after {} trials of the search, before a rate was found", trials()),
            "wait for the end of the search: it states at its start how long it takes".into(),
        ),
        SearchEnding::Settled | SearchEnding::TimeUp if search.late_at_least.is_some() => (
            late_at_least(search, message)?,
            format!("smaller {message}s (`-s`), or more time (`-d`): the lowest rate is ten {message}s in a trial"),
        ),
        SearchEnding::Settled | SearchEnding::TimeUp => (
            format!(
                "at every rate more than {} was lost, in {} trials",
                losses(search, |_| true).unwrap_or_default(),
                trials()
            ),
            "allow more loss (`--search 1%`), or look for drops on the path: `ip -s link`, `tc -s qdisc`".to_owned(),
        ),
    };
    let effect = "there is no rate to measure at, and no delay under load";
    Some(Caveat::new(Severity::Warning, "no-rate-found", text, effect, hint))
}

/// Packets held in a queue are late, not lost.
fn late_at_least(search: &SearchFigures, message: &str) -> Option<String> {
    let late = search.late_at_least?;
    Some(format!(
        "at every rate {message}s arrived too late, in {} trials: at the lowest, {} {message}s/s, none was lost, but those sent \
         in {} took {} to arrive",
        grouped(search.trials as u64),
        grouped(late.asked_pps.unwrap_or_default() as u64),
        span(late.sending_ns),
        span(late.counting_ns)
    ))
}

fn undecided(search: &SearchFigures) -> Option<Caveat> {
    let goals = losses(search, |goal| goal.end == GoalEnd::Undecided)?;
    let hint = match search.ending {
        // The caveat `no-rate-found` has the reason.
        SearchEnding::Silent | SearchEnding::CutShort if search.found_pps.is_none() => return None,
        SearchEnding::Silent => "check that the target still runs",
        SearchEnding::CutShort => "wait for the end of the search: it states at its start how long it takes",
        SearchEnding::Settled | SearchEnding::TimeUp => "more time (`-d 5m`), or fewer goals in `--search`",
    };
    Some(Caveat::new(
        Severity::Warning,
        "search-undecided",
        format!("after {} the bounds for a loss of up to {goals} were wider than requested", span(search.took)),
        "the rate lies between the bounds shown, if there are two",
        hint,
    ))
}

/// The highest rate is limited by this end, not by the path.
fn at_ceiling(manifest: &Manifest, search: &SearchFigures) -> Option<Caveat> {
    let goals = losses(search, |goal| goal.end == GoalEnd::AtCeiling)?;
    Some(Caveat::new(
        Severity::Note,
        "search-ceiling",
        format!("even the highest rate that was tried kept the loss within {goals}"),
        "the rate is the limit of this end, or `--rate`; the path may carry more",
        match faster_ways(manifest) {
            none if none.is_empty() => "a higher `--rate`, if there is one".into(),
            ways => format!("{ways}; or a higher `--rate`, if there is one"),
        },
    ))
}

/// The stage at the found rate is longer than the trials, and meets rarer events. It is judged as they are.
fn not_held(search: &SearchFigures, stages: &[StageFigures]) -> Option<Caveat> {
    let goal = search.goals.iter().find(|goal| goal.bounds.lower_pps == search.found_pps)?.goal;
    let last = stages.last().filter(|stage| stage.share == Some(1.0))?;
    let missing = last.not_carried_ratio.filter(|missing| *missing > goal.loss_ratio)?;
    let not_sent = last.not_sent_ratio.unwrap_or(0.0);
    let lost = last.loss_ratio.unwrap_or(1.0) * (1.0 - not_sent);
    let late = Some(missing - lost - not_sent).filter(|late| *late > ROUNDING).unwrap_or(0.0);
    let limit = if not_sent > 0.0 { " (the sender, not the path, may be the limit)" } else { "" };
    Some(Caveat::new(
        Severity::Warning,
        "found-rate-lossy",
        format!(
            "the found rate did not hold in the longer trial: {} was not delivered in time: {} lost, {} late, {} not \
             sent{limit}",
            percent(missing),
            percent(lost),
            percent(late),
            percent(not_sent)
        ),
        format!(
            "most trials of {} met the goal of {}; the longer run also contains rarer events",
            span(goal.final_trial_ns),
            percent(goal.loss_ratio)
        ),
        "longer trials (`-d 5m`), or a stream at a slightly lower `--rate`",
    ))
}

/// The last stage is the run, and has the caveat `rate-unreached`.
fn not_offered(stages: &[StageFigures], message: &str) -> Option<Caveat> {
    let short = stages.iter().filter(|stage| stage.is_short && stage.share.is_some_and(|share| share < 1.0));
    let words = short.filter_map(|stage| {
        let (share, asked, sent) = (stage.share?, stage.asked_pps?, stage.offered_pps?);
        Some(format!("{} of {} {message}s/s at {}", grouped(sent as u64), grouped(asked as u64), percent(share)))
    });
    let words = words.reduce(|all, one| format!("{all}, {one}"))?;
    Some(Caveat::new(
        Severity::Warning,
        "stage-unreached",
        format!("stages sent less than their share of the found rate: {words}"),
        "their delays belong to the rate that was sent",
        "a CPU that the sender does not share (`--cpu`), or fewer other processes",
    ))
}

/// A search with concurrent probes has all stages, unless its trials took the time of some.
fn left_out(search: &SearchFigures, stages: &[StageFigures]) -> Option<Caveat> {
    let last = stages.last().filter(|stage| stage.share == Some(1.0) && stage.round_trip.is_some())?;
    let is_missing = |share: &&f64| stages.iter().all(|stage| stage.share != Some(**share));
    let shares = RateSearchSpec::SHARES.iter().filter(is_missing).map(|share| percent(*share));
    let shares = shares.reduce(|all, one| format!("{all}, {one}"))?;
    Some(Caveat::new(
        Severity::Warning,
        "stages-left-out",
        format!(
            "the trials took {} of {}: no time was left for the stages at {shares}",
            span(search.took),
            span(search.within)
        ),
        match last.is_short {
            true => "their delays are not known, and the run itself was too slow",
            false => "their delays are not known",
        },
        "other work delayed this host: stop other processes, or use a longer `-d`",
    ))
}

/// Concurrent probes use the path too, each way, and trials had none.
fn probes_load(manifest: &Manifest, stream: &StreamFigures) -> Option<Caveat> {
    let probes = manifest.spec.concurrent_probes()?;
    let Schedule::Periodic { interval_ns } = probes.schedule else { return None };
    let (pps, rate) = match &stream.search {
        Some(search) => (search.found_pps?, "the found rate"),
        None => (stream.asked_pps?, "the requested rate"),
    };
    // A stage in which there was a stream.
    stream.stages.iter().find(|stage| stage.share != Some(0.0))?;
    let ipv6 = manifest.run.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
    let on_wire = StreamSpec { wire: true, ..StreamSpec::at(Pace::Max) };
    let probe_bits = on_wire.packet_bits(probes.size_bytes, ipv6) as f64;
    let stream_bps = pps * on_wire.packet_bits(stream.size_bytes, ipv6) as f64;
    let probes_bps = probe_bits / interval_ns.as_secs_f64();
    let share = probes_bps / stream_bps;
    (share > PROBES * (1.0 + ROUNDING)).then(|| {
        let enough = round_interval(probe_bits / (PROBES * stream_bps)).filter(|span| *span <= defaults::WARMUP);
        let hint = match enough {
            Some(span) => {
                format!("`--probe {}` (then at most {}), or `--probe off`", typed_span(span), percent(PROBES))
            }
            None => "`--probe off`".into(),
        };
        Caveat::new(
            Severity::Warning,
            "probes-load",
            format!(
                "the probes take {} on the wire in each direction, {} of {rate} ({})",
                bit_rate(probes_bps),
                percent(share),
                bit_rate(stream_bps)
            ),
            match stream.search {
                Some(_) => "the trials had no probes: in the stages and the run the path carries both",
                None => "the path carries both in the run",
            },
            hint,
        )
    })
}

/// `seconds` rounded up to 1, 2 or 5 of a decade, to be typed.
fn round_interval(seconds: f64) -> Option<Nanos> {
    let nanos = seconds * 1e9;
    let decades = (0..18).map(|decade| 10i64.pow(decade));
    let mut round = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    round.find(|round| *round as f64 >= nanos * (1.0 - ROUNDING)).map(Nanos)
}

fn unsent(stages: &[StageFigures]) -> Option<Caveat> {
    let unsent: u64 = stages.iter().map(|stage| stage.unsent_probes).sum();
    (unsent > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "unsent-probes",
            format!("{} probes during the stream were skipped or refused by the kernel", grouped(unsent)),
            "the delays are those of the probes that left",
            "a longer `--probe`, or a CPU that the stream does not use (`--cpu`)",
        )
    })
}

/// Options that may raise the rate, of those that such a stream takes and does not have; empty without any.
pub(super) fn faster_ways(manifest: &Manifest) -> String {
    let Some(stream) = manifest.spec.stream() else { return String::new() };
    let size_bytes = stream.size.known().unwrap_or(0);
    let is_connection = stream.transport.is_connection_oriented();
    // Larger datagrams would be fragmented.
    let unfragmented_bytes = manifest.run.stream.as_ref().and_then(|facts| facts.unfragmented_bytes);
    let max_bytes = unfragmented_bytes.filter(|_| !is_connection).unwrap_or(defaults::SIZE_MAX_BYTES);
    let size = (size_bytes < max_bytes).then_some("a larger `--size`");
    if stream.direction == Direction::Down {
        return any_of([size, own_cpu_of_sender(manifest)]);
    }
    let takes_gso = stream.sending.checksum && size_bytes <= max_bytes;
    let mode = match stream.sending.mode {
        _ if is_connection => None,
        SendMode::Send if stream.transport.properties().has_own_threads => Some("`--mode batch`"),
        SendMode::Send if takes_gso => Some("`--mode sendmmsg` or `gso`"),
        SendMode::Send => Some("`--mode sendmmsg`"),
        SendMode::Batch => None,
        SendMode::Sendmmsg => takes_gso.then_some("`--mode gso`"),
        SendMode::Gso => None,
    };
    let flows = (stream.flows < defaults::STREAM_FLOWS_MAX).then_some("more `--flows`");
    any_of([mode, flows, size, spin(manifest, false).filter(|_| !is_connection)])
}

/// A CPU of its own for the end that sends; `None` if it has a pin.
fn own_cpu_of_sender(manifest: &Manifest) -> Option<&'static str> {
    match manifest.spec.stream()?.direction {
        Direction::Up => own_cpu(manifest),
        Direction::Down => reflector_cpu(manifest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_rounded_up_to_one_two_or_five() {
        for (seconds, typed) in
            [(0.001, "1ms"), (0.0010001, "2ms"), (0.0049, "5ms"), (0.0051, "10ms"), (0.3, "500ms"), (0.7, "1s")]
        {
            assert_eq!(round_interval(seconds).map(typed_span), Some(typed.into()), "{seconds}");
        }
    }
}
