//! Caveats of runs whose log was imported: what the log does not say, or says wrongly.

use super::rule::Rule;
use super::run::Run;
use super::streams::of_messages;
use crate::diagnostics::Severity::{Note, Warning};
use crate::units::human::grouped;

pub(super) const RULES: &[Rule<Run<'_>>] = &[
    Rule {
        code: "log-contradicts-itself",
        raise: |run| {
            let contradictions = &run.manifest.run.import.as_ref()?.contradictions;
            let message = || format!("the log states {}", contradictions.join("; "));
            (!contradictions.is_empty()).then(|| (Warning, message()))
        },
        effect: "lines are missing or the tool prints a wrong total: results here are those of the rows",
        hint: |_| "compare the log with that of the other end, or measure again".into(),
    },
    Rule {
        code: "skipped-lines",
        raise: |run| {
            let facts = run.manifest.run.import.as_ref().filter(|facts| facts.skipped_lines > 0)?;
            let (lines, first) = (grouped(facts.skipped_lines), facts.first_skipped.as_deref().unwrap_or("unknown"));
            Some((Warning, format!("malformed lines of the log, which were skipped: {lines}; the first: {first}")))
        },
        effect: "the values of these lines are in no result",
        hint: |_| "repair the log and import it again without `--skip-bad`".into(),
    },
    Rule {
        code: "lost",
        raise: |run| {
            let lost = run.manifest.run.import.as_ref()?.lost_without_row;
            let message = || format!("the totals of the log count {} more lost probes than its rows", grouped(lost));
            (lost > 0).then(|| (Warning, message()))
        },
        effect: "they count as lost in quantiles and in the loss ratio, at an unknown place: no interval within the run",
        hint: |_| "a log with a row for each probe shows when they were lost".into(),
    },
    Rule {
        code: "irregular-ids",
        raise: |run| {
            let missing = run.manifest.run.import.as_ref()?.missing_ids;
            let message = || format!("numbers without a row between the first and the last one: {}", grouped(missing));
            (missing > 0).then(|| (Warning, message()))
        },
        effect: "the log does not say whether these probes were lost: they are in no result, and the loss ratio is unknown",
        hint: |_| "look for the number of sent probes in the output of the tool".into(),
    },
    Rule {
        code: "irregular-ids",
        raise: |run| {
            let irregular = run.manifest.run.import.as_ref()?.irregular_ids;
            (irregular > 0).then(|| (Warning, format!("numbers that repeat or run backwards: {}", grouped(irregular))))
        },
        effect: "these rows are numbered in the order of the log; some may be duplicates, or of several runs",
        hint: |_| "import each run from a log of its own".into(),
    },
    Rule {
        code: "negative-delays",
        raise: |run| {
            let negative = run.manifest.run.import.as_ref()?.negative_delays;
            let message = || format!("delays below zero: {}; they are kept as they are", grouped(negative));
            (negative > 0).then(|| (Warning, message()))
        },
        effect: "the clock was set during the run, or the instants are of two clocks: other delays are wrong as well",
        hint: |_| "take both instants from one monotonic clock; see whether the timer of the tool is exact".into(),
    },
    Rule {
        code: "values-unordered",
        raise: |run| {
            let import = run.manifest.spec.import()?;
            let message = "the log does not have the order of its values";
            (import.metric.is_some() && !import.ordered).then(|| (Note, message.into()))
        },
        effect: "their dependence is unknown: no intervals within the run, and quantiles count as supported if independent \
                 values would support them",
        hint: |_| "use a log with single values in their order, or compare several runs".into(),
    },
    Rule {
        code: "unit-assumed",
        raise: |run| {
            let message =
                "the log does not state the unit of its values, which were taken in the usual unit of its tool";
            run.manifest.spec.import()?.unit_assumed.then(|| (Warning, message.into()))
        },
        effect: "if the tool ran with an option that changes the unit, every value is wrong by a factor of 1,000",
        hint: |_| "import it again with `--unit`".into(),
    },
    Rule {
        code: "values-converted",
        raise: |run| {
            let message = "the log has half round trips, which were doubled";
            run.manifest.spec.import()?.halves_doubled.then(|| (Note, message.into()))
        },
        effect: "values are twice those that the tool prints",
        hint: |_| "`--half` adds columns of the round trip / 2".into(),
    },
    Rule {
        code: "values-converted",
        raise: |run| {
            let notes = &run.manifest.run.import.as_ref()?.notes;
            (!notes.is_empty()).then(|| (Warning, format!("of the log: {}", notes.join("; "))))
        },
        effect: "results can differ from those that the tool prints",
        hint: |_| "docs/import.md says why".into(),
    },
    Rule {
        code: "undecided",
        // A log may state its losses although some packets are undecided: the zeros of its ends differ (iperf3 with `--omit`).
        raise: |run| {
            let total = &run.stream?.total;
            let undecided = total.sent.saturating_sub(total.decided);
            let packets = of_messages(undecided, total.sent, "packet");
            let severity = if run.manifest.spec.knows_losses() { Note } else { Warning };
            (undecided > 0).then(|| (severity, format!("{packets} were counted by the sender and not by its receiver")))
        },
        effect: "whether they arrived is not known: they count neither as delivered nor as lost",
        hint: |_| {
            "look at the last intervals of the receiver: the path or the receiver may have stopped before the sender"
                .into()
        },
    },
    Rule {
        code: "imported",
        raise: |run| {
            let is_dated = run.manifest.run.import.as_ref().is_some_and(|facts| facts.start_known);
            let when = if is_dated { "" } else { "; its date is that of the import" };
            Some((Note, format!("{} measured, and its log was imported{when}", run.manifest.software.name)))
        },
        effect: "host, settings, loads, due times and often losses are unknown: no caveat is raised about them",
        hint: |_| "measure with latlab to record them".into(),
    },
];
