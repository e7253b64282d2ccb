//! Collects all caveats of one run, and raises those of its recording: a run that ended early, missing rows.

use super::clocks::same_machine;
use super::host_samples::is_contended;
use super::wording::Wording;
use super::{clocks, host_samples, hosts, loads};
use crate::analysis::host_samples::HostAccumulators;
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{Kind, Side};
use crate::recording::manifest::{Manifest, RunEnding};
use crate::units::Nanos;
use crate::units::human::{grouped, span};

/// The caveats raised while the run was measured, those of its recording, `of_kind`, and those of hosts, settings and
/// loads; worst first.
pub(in crate::analysis) fn of_run(
    manifest: &Manifest,
    samples: &HostAccumulators,
    of_kind: impl IntoIterator<Item = Caveat>,
) -> Vec<Caveat> {
    let mut caveats = manifest.caveats.clone();
    caveats.extend(of_recording(manifest));
    caveats.extend(of_kind);
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
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

/// The caveats of the recording of `manifest`.
fn of_recording(manifest: &Manifest) -> impl Iterator<Item = Caveat> {
    // Probes during a stream only accompany what it measures.
    let has_probes = manifest.kind != Kind::Stream;
    let of_probes = if has_probes { [undecided(manifest), orphans(manifest)] } else { [None, None] };
    [ended(manifest), gap(manifest)].into_iter().chain(of_probes).chain([unreadable(manifest)]).flatten()
}

fn ended(manifest: &Manifest) -> Option<Caveat> {
    let why = |message: &str| match &manifest.reason {
        Some(reason) => format!("{message}: {reason}"),
        None => message.into(),
    };
    let part = "the figures are about the part that was measured";
    let again = "measure again for the full length";
    match manifest.ending {
        RunEnding::Completed => None,
        RunEnding::Measuring => {
            Some(Caveat::new(Severity::Warning, "unfinished", why("the run has not ended"), part, "wait for its end"))
        }
        RunEnding::Interrupted => {
            let message = why("the run was interrupted before its planned end");
            Some(Caveat::new(Severity::Note, "interrupted", message, part, again))
        }
        RunEnding::Failed => {
            let message = why("the run ended before its planned end");
            Some(Caveat::new(Severity::Warning, "ended-early", message, part, again))
        }
        RunEnding::Recovered => {
            let message = why("the run died; the recording was finished from its spool");
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
        let is_full = ["(ENOSPC)", "(EDQUOT)"].iter().any(|name| reason.contains(name));
        let (why, hint) = match is_full {
            true => ("the disk was full", "free some space, or name another place with `--store`"),
            false => ("the disk did not keep up", "a faster disk for `--store` (a tmpfs will do), or a lower rate"),
        };
        Caveat::new(
            Severity::Warning,
            "recording-gap",
            format!("{} events were thrown away: {why}", grouped(events)),
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
            format!("probes still in flight when the run stopped listening: {}", grouped(probes)),
            format!("they are counted nowhere: nobody waited the time-out of {timeout} for their answers"),
            "none for an interrupted run; a shorter `--timeout` leaves fewer of them",
        )
    })
}

/// The time-out of probes; 0 for a run that sends none.
pub(in crate::analysis) fn timeout_of(manifest: &Manifest) -> Nanos {
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
            format!("answers to probes that the recording does not know: {}", grouped(answers)),
            "these probes are in no count, though they were sent and answered",
            match explained {
                true => "what tore the recording is told beside this",
                false => "nothing explains it: please report it with the recording's manifest",
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
            format!("places of the spool that held no event: {}", grouped(events)),
            Wording::of(manifest.kind).rows_missing,
            "expected after a power cut; else check the disk under `--store`, and measure again",
        )
    })
}
