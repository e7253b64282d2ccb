//! Caveats of a run of any kind from its manifest: how it ended, what its recording lacks, its clock.

use super::rule::Rule;
use super::run::Run;
use crate::diagnostics::Severity::{Fatal, Note, Warning};
use crate::diagnostics::names_full_disk;
use crate::plan::Kind;
use crate::recording::manifest::{FormatVersion, RunEnding};
use crate::units::human::{grouped, significant, span};

/// A clock read through the vDSO takes about 20 ns; a system call takes several times that.
const SLOW_READ_NS: f64 = 150.0;
/// Longer steps of the clock show in the figures.
const COARSE_NS: i64 = 1_000;

const CLOCK_HINT: &str = "`latlab doctor` names a better clocksource if the kernel has one";

/// With more discarded events than this share of the probes, counts and quantiles are those of another run.
const MANY_DISCARDED: f64 = 0.01;

const FULL_BUFFER: &str = "the buffer was full, since its writer got too little CPU time or the disk was too slow";

pub(super) const RULES: &[Rule<Run<'_>>] = &[
    Rule {
        code: "ended-early",
        raise: |run| {
            let what = match run.manifest.ending {
                RunEnding::Completed => {
                    run.counts.filter(|_| run.was_ended_by_silence())?;
                    "the run ended before its planned end"
                }
                RunEnding::Measuring => "the run has not ended",
                RunEnding::Interrupted => "the run was interrupted before its planned end",
                RunEnding::Failed => "the run ended before its planned end",
                RunEnding::Recovered => "the process of the run was killed; a later command completed the recording",
            };
            let why = run.manifest.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Some((Warning, format!("{what}{why}")))
        },
        effect: "the results cover the part that was measured; of a killed process up to its last second is missing, \
                 and what was cut off its event log",
        hint: |_| "measure again for the full length".into(),
    },
    Rule {
        code: "recording-gap",
        raise: |run| {
            let events = run.manifest.run.gap_events;
            // A disk that refused to write is named in the reason, as `errno::explain` words it. What it lacks is the end.
            let reason = run.manifest.reason.as_deref().filter(|_| run.manifest.ending == RunEnding::Failed);
            let is_much = run.counts().is_some_and(|counts| events as f64 > MANY_DISCARDED * counts.due() as f64);
            let (severity, why) = match reason.is_some_and(names_full_disk) {
                true => (Warning, "the disk was full"),
                false if is_much => (Fatal, FULL_BUFFER),
                false => (Warning, FULL_BUFFER),
            };
            (events > 0).then(|| (severity, format!("{} events were discarded: {why}", grouped(events))))
        },
        effect: "they are missing in every count, also among the due ones of response time and deadlines, or answered probes \
                 count as lost",
        hint: |_| "free space or a faster disk for `--store`, fewer other processes, or a lower rate".into(),
    },
    Rule {
        code: "recording-gap",
        raise: |run| {
            let events = run.manifest.run.unreadable_events;
            let message = || format!("places of the event log with no event or a damaged one: {}", grouped(events));
            (events > 0).then(|| (Warning, message()))
        },
        effect: "they are missing in every count, or answered probes count as lost",
        hint: |_| "normal after a power cut; otherwise check the disk of `--store`, and measure again".into(),
    },
    Rule {
        code: "recording-gap",
        raise: |run| {
            let facts = &run.manifest.run;
            let is_explained = facts.gap_events > 0 || facts.unreadable_events > 0;
            let message =
                || format!("answers to probes that are not in the recording: {}", grouped(facts.orphan_answers));
            let is_of_probes = run.manifest.kind != Kind::Stream;
            (facts.orphan_answers > 0 && !is_explained && is_of_probes).then(|| (Warning, message()))
        },
        effect: "these probes are in no count, though they were sent and answered",
        hint: |_| "the reason is unknown: please report this with the recording's manifest".into(),
    },
    Rule {
        code: "undecided",
        raise: |run| {
            let probes = run.manifest.run.undecided_probes;
            let message = || format!("probes still on their way when the run stopped receiving: {}", grouped(probes));
            (probes > 0 && run.manifest.kind != Kind::Stream).then(|| (Note, message()))
        },
        effect: "they are in no count, since their time-out had not passed",
        hint: |_| "normal for an interrupted run; a shorter `--timeout` leaves fewer of them".into(),
    },
    Rule {
        code: "no-checksums",
        raise: |run| {
            let events = run.manifest.run.unchecked_events;
            (events > 0).then(|| (Note, format!("last events of the log without a checksum: {}", grouped(events))))
        },
        effect: "damage to these events would not be detected",
        hint: |_| "nothing to do: the process was killed, or the disk was full, while it wrote them".into(),
    },
    Rule {
        code: "no-checksums",
        raise: |run| {
            let FormatVersion { major, minor } = run.manifest.format;
            let message = || format!("the recording cannot be checked: format {major}.{minor} has no checksums");
            run.manifest.lacks_checksums().then(|| (Note, message()))
        },
        effect: "damage that leaves plausible values would not be detected",
        hint: |_| "keep it on a reliable disk; recordings of this latlab have checksums".into(),
    },
    Rule {
        code: "coarse-clock",
        raise: |run| {
            let cost = run.manifest.instrument.clock_read_ns.filter(|cost| *cost > SLOW_READ_NS)?;
            let facts = run.manifest.here.before.as_ref();
            let source = facts.and_then(|facts| facts.clocksource.as_deref()).unwrap_or("unknown");
            Some((Warning, format!("one clock read takes {} ns (clocksource {source})", significant(cost))))
        },
        effect: "each value contains such a read",
        hint: |_| CLOCK_HINT.into(),
    },
    Rule {
        code: "coarse-clock",
        raise: |run| {
            let resolution = run.manifest.instrument.clock_resolution_ns.filter(|step| step.0 > COARSE_NS)?;
            Some((Warning, format!("the clock ticks only every {}", span(resolution))))
        },
        effect: "values are rounded to that step",
        hint: |_| CLOCK_HINT.into(),
    },
];
