//! Collects all caveats of one run, and raises those of its recording (a run that ended early, missing rows) and those of
//! what a single run does not show, however many probes it has: what a slow change does next, and how frequent rare bursts
//! are (docs/statistics.md, "What no single run can know").

use super::clocks::same_machine;
use super::host_samples::is_contended;
use super::wording::{Wording, effect_order};
use super::{clocks, host_samples, hosts, loads};
use crate::analysis::counts::{EndOfAnswers, RunCounts};
use crate::analysis::host_samples::HostAccumulators;
use crate::analysis::logged;
use crate::diagnostics::{Caveat, Severity, names_full_disk};
use crate::plan::{Kind, RunSpec, Side};
use crate::recording::manifest::{FormatVersion, Manifest, RunEnding};
use crate::stats::{DescribedFigure, Description, Share};
use crate::units::Nanos;
use crate::units::human::{grouped, percent, quantile, significant, span};

/// The caveats raised while the run was measured, those of its recording, `of_kind`, and those of hosts, settings and
/// loads; worst first.
pub(crate) fn of_run(
    manifest: &Manifest,
    samples: &HostAccumulators,
    of_kind: impl IntoIterator<Item = Caveat>,
) -> Vec<Caveat> {
    let mut caveats = manifest.caveats.clone();
    caveats.extend(of_recording(manifest));
    caveats.extend(of_kind);
    if manifest.spec.import().is_some() {
        caveats.extend(logged::caveats(manifest));
        caveats.sort_by_key(effect_order);
        return caveats;
    }
    caveats.extend(clocks::caveats(manifest));
    caveats.extend(hosts::caveats(manifest, is_contended(manifest, samples, Side::Local)));
    let is_far_host_known = manifest.spec.target.has_agent() && !same_machine(manifest);
    if is_far_host_known {
        caveats.extend(hosts::of_far_host(manifest, is_contended(manifest, samples, Side::Peer)));
    }
    caveats.extend(host_samples::caveats(manifest, samples));
    // Samples show steal more precisely than the facts before and after the run, which are used without samples.
    if !samples.contains_key(&Side::Local) {
        caveats.extend(hosts::steal(manifest.kind, "this host", &manifest.here));
    }
    if is_far_host_known && !samples.contains_key(&Side::Peer) {
        caveats.extend(hosts::steal(manifest.kind, "the reflector's host", &manifest.peer));
    }
    caveats.extend(hosts::of_settings(manifest));
    caveats.extend(loads::unreached_loads(&manifest.loads));
    caveats.extend(without_checksums(manifest));
    caveats.sort_by_key(effect_order);
    caveats
}

/// The caveats of the recording of `manifest`.
fn of_recording(manifest: &Manifest) -> impl Iterator<Item = Caveat> {
    // Probes during a stream only accompany what it measures.
    let has_probes = manifest.kind != Kind::Stream;
    let of_probes = if has_probes { [undecided(manifest), orphans(manifest)] } else { [None, None] };
    let of_files = [unreadable(manifest), unchecked(manifest)];
    [ended(manifest), gap(manifest)].into_iter().chain(of_probes).chain(of_files).flatten()
}

fn ended(manifest: &Manifest) -> Option<Caveat> {
    let why = |message: &str| match &manifest.reason {
        Some(reason) => format!("{message}: {reason}"),
        None => message.into(),
    };
    let part = "the figures cover the part that was measured";
    let again = "measure again for the full length";
    match manifest.ending {
        // Without an answer it has a caveat of its own.
        RunEnding::Completed => None,
        RunEnding::Measuring => {
            Some(Caveat::new(Severity::Warning, "unfinished", why("the run has not ended"), part, "wait for its end"))
        }
        RunEnding::Interrupted => {
            let message = why("the run was interrupted before its planned end");
            Some(Caveat::new(Severity::Warning, "interrupted", message, part, again))
        }
        RunEnding::Failed => {
            let message = why("the run ended before its planned end");
            Some(Caveat::new(Severity::Warning, "ended-early", message, part, again))
        }
        RunEnding::Recovered => {
            let message = why("the process of the run was killed; a later command completed the recording");
            Some(Caveat::new(Severity::Warning, "recovered", message, Wording::of(manifest.kind).cut_off, again))
        }
    }
}

fn gap(manifest: &Manifest) -> Option<Caveat> {
    let events = manifest.run.gap_events;
    (events > 0).then(|| {
        // A disk that refused to write is named in the reason, as `errno::explain` words it; a faster disk would have
        // refused as well.
        let reason = manifest.reason.as_deref().filter(|_| manifest.ending == RunEnding::Failed).unwrap_or_default();
        let (why, hint) = match names_full_disk(reason) {
            true => ("the disk was full", "free some space, or choose another disk with `--store`"),
            false => (
                "the buffer was full, since its writer got too little CPU time or the disk was too slow",
                "fewer other processes, a faster disk for `--store` (or a tmpfs), or a lower rate",
            ),
        };
        Caveat::new(
            Severity::Warning,
            "recording-gap",
            format!("{} events were discarded: {why}", grouped(events)),
            Wording::of(manifest.kind).rows_missing,
            hint,
        )
    })
}

fn undecided(manifest: &Manifest) -> Option<Caveat> {
    let probes = manifest.run.undecided_probes;
    (probes > 0).then(|| {
        let timeout = span(timeout_of(manifest));
        Caveat::new(
            Severity::Note,
            "undecided-probes",
            format!("probes still on their way when the run stopped receiving: {}", grouped(probes)),
            format!("they are in no count, since their time-out of {timeout} had not passed"),
            "normal for an interrupted run; a shorter `--timeout` leaves fewer of them",
        )
    })
}

/// The caveat of a run that ended without an answer, or whose answers end in the middle.
pub(crate) fn answers_ended(manifest: &Manifest, counts: &RunCounts) -> Option<Caveat> {
    no_answer(manifest, counts).or_else(|| end_of_answers(manifest, counts))
}

/// Whether its silent target ended the run, which then is complete and has a reason.
pub(crate) fn was_ended_by_silence(manifest: &Manifest) -> bool {
    manifest.ending == RunEnding::Completed && manifest.reason.is_some()
}

/// What to do about a target that answers no probe.
pub(crate) fn silence_hint(manifest: &Manifest) -> &'static str {
    match manifest.spec.answers_in_driver() {
        true => {
            "try `--reflect socket`; the program in the driver answers no packet with an unfinished checksum (virtual \
             interfaces: `ethtool -K IFACE tx off` at the sender), and some drivers cannot send back (docs/xdp.md)"
        }
        false => {
            "check that the target runs and that no firewall drops the packets; `--timeout` sets how long an answer may \
             take"
        }
    }
}

/// Probes that were under way when silence ended the run may be answered in time.
fn no_answer(manifest: &Manifest, counts: &RunCounts) -> Option<Caveat> {
    let reason = manifest.reason.as_ref().filter(|_| was_ended_by_silence(manifest))?;
    let (code, effect) = match counts.counts.answered {
        0 => ("no-answer", "all probes that it sent count as lost: there are no statistics to show"),
        _ => ("ended-early", "the figures cover the part that was measured, in which answers had only begun"),
    };
    Some(Caveat::new(
        Severity::Warning,
        code,
        format!("the run ended before its planned end: {reason}"),
        effect,
        silence_hint(manifest),
    ))
}

/// Answers that end in the middle of the run, which no lossy path explains. A reflector process that died is known, and has
/// a caveat of its own.
fn end_of_answers(manifest: &Manifest, counts: &RunCounts) -> Option<Caveat> {
    let EndOfAnswers { after, sending, probes } =
        counts.end_of_answers().filter(|_| manifest.run.reflector_died.is_none())?;
    Some(Caveat::new(
        Severity::Fatal,
        "answers-ended",
        format!(
            "no probe was answered after the first {} of {}: all {} that were sent later are lost",
            span(after),
            span(sending),
            grouped(probes)
        ),
        "the loss is that of a reflector or path that failed; quantiles contain it",
        "see whether the reflector still runs, and measure again",
    ))
}

/// The time-out of probes; 0 for a run that sends none.
pub(crate) fn timeout_of(manifest: &Manifest) -> Nanos {
    manifest.spec.ping().map_or(Nanos::ZERO, |ping| ping.timeout_ns)
}

/// A gap explains orphans, and has a caveat of its own.
fn orphans(manifest: &Manifest) -> Option<Caveat> {
    let answers = manifest.run.orphan_answers;
    let explained = manifest.run.gap_events > 0 || manifest.run.unreadable_events > 0;
    (answers > 0).then(|| {
        Caveat::new(
            if explained { Severity::Note } else { Severity::Warning },
            "orphan-answers",
            format!("answers to probes that are not in the recording: {}", grouped(answers)),
            "these probes are in no count, though they were sent and answered",
            match explained {
                true => "another caveat names what damaged the recording",
                false => "the reason is unknown: please report this with the recording's manifest",
            },
        )
    })
}

fn unreadable(manifest: &Manifest) -> Option<Caveat> {
    let events = manifest.run.unreadable_events;
    (events > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "unreadable-events",
            format!("places of the event log with no event or a damaged one: {}", grouped(events)),
            Wording::of(manifest.kind).rows_missing,
            "normal after a power cut; otherwise check the disk of `--store`, and measure again",
        )
    })
}

fn unchecked(manifest: &Manifest) -> Option<Caveat> {
    let events = manifest.run.unchecked_events;
    (events > 0).then(|| {
        Caveat::new(
            Severity::Note,
            "unchecked-events",
            format!("last events of the log without a checksum: {}", grouped(events)),
            "damage to these events would not be detected",
            "nothing to do: the process was killed, or the disk was full, while it wrote them",
        )
    })
}

/// Checksums came with format 1.6.
fn without_checksums(manifest: &Manifest) -> Option<Caveat> {
    let FormatVersion { major, minor } = manifest.format;
    manifest.lacks_checksums().then(|| {
        Caveat::new(
            Severity::Note,
            "no-checksums",
            format!("the recording cannot be checked: format {major}.{minor} has no checksums"),
            "damage that leaves plausible values would not be detected",
            "keep it on a reliable disk; recordings of this latlab have checksums",
        )
    })
}

/// Fewer hits are too few to call them a burst.
const HITS_MIN: u64 = 10;
/// Fewer bursts do not show how frequent they are.
const BURSTS_MIN: f64 = 3.5;
/// Values that are worth more than this share of their number are not said to be worth less.
const NEARLY_ALL: f64 = 0.95;

/// The remedy of dependence within a run of `spec`.
const fn several_runs(spec: &RunSpec) -> &'static str {
    match spec.import() {
        Some(_) => "import logs of several runs, and compare them (`latlab compare`): they show how much runs differ",
        None => "measure several runs (`latlab run`, `latlab compare`): they show how much runs differ",
    }
}

/// The caveats of `described`, the main metric of a run of `spec`, and of its `lost` probes. More metrics would raise more
/// of them by chance.
pub(crate) fn of_one_run(spec: &RunSpec, described: Option<&Description>, lost: Option<Share>) -> Vec<Caveat> {
    let slow = described.and_then(|described| slow_changes(spec, described));
    // Slow changes look like bursts, and have the same remedy.
    let bursts = || rare_bursts(spec, described.filter(|_| slow.is_none())?);
    let bursts = lost.and_then(|lost| bursts_of_losses(spec, lost)).or_else(bursts);
    // More values, the remedy of a wide interval, do not end slow changes.
    let wide = described.filter(|_| slow.is_none()).and_then(|described| wide_mean(spec, described));
    slow.into_iter().chain(bursts).chain(wide).collect()
}

/// Delays cannot have a mean below the smallest of them, which symmetric intervals do not know. A shorter interval would hide
/// that the sample does not bound the mean from below.
fn wide_mean(spec: &RunSpec, described: &Description) -> Option<Caveat> {
    let interval = described.mean_interval.filter(|_| !spec.metric().is_rate())?;
    (interval.low? < described.min? as f64).then(|| {
        Caveat::new(
            Severity::Note,
            "wide-mean",
            format!(
                "the {} interval of the mean {} begins below the smallest value: too few independent values for so \
                 long a tail",
                percent(interval.confidence),
                spec.metric().title()
            ),
            "no mean is so low; the upper end may be too low as well",
            match spec.import() {
                Some(_) => "p50 depends less on the largest values".to_owned(),
                None => format!("more {} (`-n`); p50 depends less on the largest values", spec.kind().rows()),
            },
        )
    })
}

fn slow_changes(spec: &RunSpec, described: &Description) -> Option<Caveat> {
    let (figure, effective_n) = described.slow_changes?;
    let values = match figure {
        DescribedFigure::Mean => described.n - described.lost,
        DescribedFigure::Quantile(_) => described.n,
    };
    let seen = match effective_n < NEARLY_ALL * values as f64 {
        true => format!("{} values count as {} for {}", grouped(values), significant(effective_n), word(figure)),
        false => format!("seen in {}", word(figure)),
    };
    let metric = spec.metric().title();
    Some(Caveat::new(
        if described.quantiles.iter().all(|quantile| quantile.supported) { Severity::Note } else { Severity::Warning },
        "slow-changes",
        format!("the {metric} changed slowly: long parts of the run differ more than short ones do ({seen})"),
        "a quantile then needs 100 effective observations beyond it; the intervals hold for this run, not for the next one",
        match spec.kind() {
            Kind::Stream | Kind::Values => several_runs(spec).to_owned(),
            Kind::Ping | Kind::Wakeup => {
                format!("{}; `--window` shows the change within this one", several_runs(spec))
            }
        },
    ))
}

fn word(figure: DescribedFigure) -> String {
    match figure {
        DescribedFigure::Mean => "the mean".into(),
        DescribedFigure::Quantile(q) => quantile(q),
    }
}

fn rare_bursts(spec: &RunSpec, described: &Description) -> Option<Caveat> {
    let (figure, bursts) = described.rare_bursts?;
    let message = format!("{} of the {} comes from {}", word(figure), spec.metric().title(), about(bursts));
    Some(of_bursts(spec, message, "its interval may be too narrow"))
}

fn bursts_of_losses(spec: &RunSpec, lost: Share) -> Option<Caveat> {
    let rarer = lost.hits.min(lost.n - lost.hits);
    let bursts = lost.effective_n? * rarer as f64 / lost.n as f64;
    (rarer >= HITS_MIN && bursts < BURSTS_MIN).then(|| {
        let message = format!("{} probes without an answer in time came in {}", grouped(lost.hits), about(bursts));
        of_bursts(
            spec,
            message,
            "the interval of the loss ratio may be too narrow, and the next run may lose none or many more",
        )
    })
}

fn of_bursts(spec: &RunSpec, message: String, effect: &str) -> Caveat {
    let effect = format!("so few bursts do not show how often they occur: {effect}");
    Caveat::new(Severity::Warning, "rare-bursts", message, effect, several_runs(spec))
}

/// Bursts differ in length, which makes their number a rough figure.
fn about(bursts: f64) -> String {
    match bursts.round() {
        ..2.0 => "about one burst".into(),
        several => format!("about {several:.0} bursts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, logged, spec};
    use crate::metric::Metric;
    use crate::sample::{INFINITE, Sample};
    use crate::stats::{DescribeOptions, describe, share};

    fn codes(value: impl Fn(i64) -> i64) -> Vec<String> {
        let sample = Sample::new(Metric::RoundTripDelay, (0..20_000).map(value).collect());
        let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: false };
        let lost = share(&sample, 0.95, |value| value == INFINITE);
        let found = of_one_run(&spec(CLOSED), Some(&describe(&sample, &options)), Some(lost));
        found.into_iter().map(|caveat| format!("{}: {}", caveat.code, caveat.message)).collect()
    }

    #[test]
    fn an_interval_of_the_mean_that_begins_below_the_smallest_delay_is_named() {
        let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: true };
        let of = |spec: &RunSpec, values: Vec<i64>| {
            let described = describe(&Sample::new(Metric::RoundTripDelay, values), &options);
            of_one_run(spec, Some(&described), None).into_iter().find(|caveat| caveat.code == "wide-mean")
        };
        let few = || vec![10, 10, 10, 10, 100];
        let (pings, stream) = (spec(CLOSED), InMemory::of_stream(1, Vec::new()).manifest.spec);
        let found = of(&pings, few()).expect("28 ± 50");
        assert!(found.message.starts_with("the 95 % interval of the mean round trip delay begins below"), "{found:?}");
        let log = logged(Vec::new(), true).manifest.spec;
        let of_log = of(&log, few()).expect("the same of a log");
        assert_eq!(
            (found.hint.as_str(), of_log.hint.as_str()),
            ("more probes (`-n`); p50 depends less on the largest values", "p50 depends less on the largest values",)
        );
        assert!(of_log.message.contains("of the mean delay begins"), "{of_log:?}");
        assert_eq!((of(&stream, few()), of(&pings, (0..1_000).map(noise).collect())), (None, None));
        let changing = Description {
            slow_changes: Some((DescribedFigure::Mean, 3.0)),
            ..describe(&Sample::new(Metric::RoundTripDelay, few()), &options)
        };
        let codes = of_one_run(&pings, Some(&changing), None).into_iter().map(|caveat| caveat.code);
        assert_eq!(codes.collect::<Vec<_>>(), ["slow-changes"]);
    }

    fn noise(place: i64) -> i64 {
        place.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64).rotate_left(31).rem_euclid(1_000)
    }

    #[test]
    fn drift_bursts_and_outages_are_named_and_noise_is_not() {
        assert_eq!(codes(noise), Vec::<String>::new());
        let drift = codes(|place| noise(place) + place / 20);
        assert!(drift.len() == 1 && drift[0].starts_with("slow-changes"), "{drift:?}");
        let outage = codes(|place| if (7_000..7_300).contains(&place) { INFINITE } else { noise(place) });
        assert_eq!(
            outage.last().expect("a caveat"),
            "rare-bursts: 300 probes without an answer in time came in about one burst"
        );
        let scattered = codes(|place| if noise(place) < 15 { INFINITE } else { noise(place) });
        assert_eq!(scattered, Vec::<String>::new());
        let bursts = codes(|place| noise(place) + if (place + 3_000) % 12_000 < 150 { 9_000 } else { 0 });
        assert_eq!(bursts, ["rare-bursts: p99 of the round trip delay comes from about one burst"]);
        assert_eq!(codes(|_| INFINITE), Vec::<String>::new(), "a run without an answer has a caveat of its own");
    }

    #[test]
    fn slow_changes_name_the_figure_that_shows_them() {
        let step = codes(|place| noise(place) + if place < 10_000 { 0 } else { 2_000 });
        assert!(step[0].starts_with("slow-changes: ") && step[0].contains("20,000 values count as "), "{step:?}");
        // An outage changes how many probes lie above p90, and leaves the mean of the answered ones.
        let outage = codes(|place| if (7_000..7_300).contains(&place) { INFINITE } else { noise(place) });
        assert!(outage[0].contains("for p90)"), "{outage:?}");
    }
}
