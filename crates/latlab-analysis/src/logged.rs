//! Caveats of runs whose log was imported: what the log does not say, or says wrongly.

use crate::diagnostics::{Caveat, Severity};
use crate::facts::ImportFacts;
use crate::metric::Metric;
use crate::plan::ImportSpec;
use crate::recording::manifest::Manifest;
use crate::units::human::grouped;

/// The caveats of the import of `manifest`; empty if latlab measured the run.
pub fn caveats(manifest: &Manifest) -> Vec<Caveat> {
    let Some(import) = manifest.spec.import() else { return Vec::new() };
    let facts = manifest.run.import.clone().unwrap_or_default();
    let found = [
        skipped(&facts),
        lost_without_row(&facts),
        missing_ids(&facts),
        irregular_ids(&facts),
        negative(&facts, import),
        unordered(import),
        assumed(import),
        doubled(import),
        Some(foreign(manifest, &facts)),
    ];
    found.into_iter().flatten().collect()
}

fn skipped(facts: &ImportFacts) -> Option<Caveat> {
    let first = facts.first_skipped.as_deref().unwrap_or("unknown");
    (facts.skipped_lines > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "skipped-lines",
            format!(
                "malformed lines of the log, which were skipped: {}; the first: {first}",
                grouped(facts.skipped_lines)
            ),
            "the values of these lines are in no figure",
            "repair the log and import it again without `--skip-bad`",
        )
    })
}

fn lost_without_row(facts: &ImportFacts) -> Option<Caveat> {
    (facts.lost_without_row > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "lost-without-row",
            format!("the totals of the log count {} more lost probes than its rows", grouped(facts.lost_without_row)),
            "they count as lost in quantiles and in the loss ratio, at an unknown place: no interval within the run",
            "a log with a row for each probe shows when they were lost",
        )
    })
}

fn missing_ids(facts: &ImportFacts) -> Option<Caveat> {
    (facts.missing_ids > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "missing-ids",
            format!("numbers without a row between the first and the last one: {}", grouped(facts.missing_ids)),
            "the log does not say whether these probes were lost: they are in no figure, and the loss ratio is unknown",
            "look for the number of sent probes in the output of the tool",
        )
    })
}

fn irregular_ids(facts: &ImportFacts) -> Option<Caveat> {
    (facts.irregular_ids > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "irregular-ids",
            format!("numbers that repeat or run backwards: {}", grouped(facts.irregular_ids)),
            "these rows are numbered in the order of the log; some may be duplicates, or of several runs",
            "import each run from a log of its own",
        )
    })
}

fn negative(facts: &ImportFacts, import: &ImportSpec) -> Option<Caveat> {
    let signed = import.metric.is_some_and(|metric| metric == Metric::WakeupLatency);
    let hint = match signed {
        true => "use a monotonic clock; see whether the timer of the tool is exact",
        false => "take both instants from one monotonic clock",
    };
    (facts.negative_delays > 0).then(|| {
        Caveat::new(
            Severity::Warning,
            "negative-delays",
            format!("delays below zero: {}; they are kept as they are", grouped(facts.negative_delays)),
            "the clock was set during the run, or the instants are of two clocks: other delays are wrong as well",
            hint,
        )
    })
}

fn unordered(import: &ImportSpec) -> Option<Caveat> {
    let has_values = import.metric.is_some();
    (has_values && !import.ordered).then(|| {
        Caveat::new(
            Severity::Note,
            "values-unordered",
            "the log does not have the order of its values",
            "their dependence is unknown: no intervals within the run, and quantiles count as supported if independent \
             values would support them",
            "use a log with single values in their order, or compare several runs",
        )
    })
}

fn assumed(import: &ImportSpec) -> Option<Caveat> {
    import.unit_assumed.then(|| {
        Caveat::new(
            Severity::Warning,
            "unit-assumed",
            "the log does not state the unit of its values, which were taken in the usual unit of its tool",
            "if the tool ran with an option that changes the unit, every figure is wrong by a factor of 1,000",
            "import it again with `--unit`",
        )
    })
}

fn doubled(import: &ImportSpec) -> Option<Caveat> {
    import.halves_doubled.then(|| {
        Caveat::new(
            Severity::Note,
            "halves-doubled",
            "the log has half round trips, which were doubled",
            "figures are twice those that the tool prints",
            "`--half` adds columns of the round trip / 2",
        )
    })
}

fn foreign(manifest: &Manifest, facts: &ImportFacts) -> Caveat {
    let when = if facts.start_known { "" } else { "; its date is that of the import" };
    Caveat::new(
        Severity::Note,
        "imported",
        format!("{} measured, and its log was imported{when}", manifest.software.name),
        match manifest.spec.knows_losses() {
            true => "host, settings, loads and due times are unknown: no caveat is raised about them",
            false => "host, settings, loads, due times and losses are unknown: no caveat is raised about them",
        },
        "measure with latlab to record them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::logged;
    use crate::analysis::{SummaryOptions, summarise};
    use crate::facts::LoggedValue;
    use crate::plan::Work;

    #[test]
    fn losses_in_the_totals_alone_are_infinite_and_unknown_ones_are_no_figure() {
        let value = |seq: u64| LoggedValue { seq: Some(seq), value_ns: Some(seq as i64), count: 1 };
        let mut source = logged((0..98).map(value).collect(), true);
        source.manifest.run.import = Some(ImportFacts { lost_without_row: 2, ..ImportFacts::default() });
        for states_losses in [true, false] {
            if let Work::Import(import) = &mut source.manifest.spec.work {
                import.states_losses = states_losses;
            }
            let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("values");
            assert_eq!((summary.counts.sent, summary.counts.lost), (100, 2));
            assert_eq!(summary.ratios.loss, states_losses.then_some(0.02));
            let described = &summary.metrics[&Metric::Delay];
            assert_eq!((described.n, described.lost, described.effective_n), (100, 2, None));
            let p99 = described.quantiles.iter().find(|one| one.q == 0.99).expect("a quantile");
            assert!(p99.lost && !p99.supported, "{p99:?}");
        }
    }

    #[test]
    fn an_import_says_what_its_log_lacks() {
        let value = LoggedValue { seq: None, value_ns: Some(5), count: 1 };
        let mut source = logged(vec![value], false);
        source.manifest.run.import =
            Some(ImportFacts { skipped_lines: 2, negative_delays: 1, missing_ids: 3, ..ImportFacts::default() });
        let codes: Vec<String> = caveats(&source.manifest).into_iter().map(|caveat| caveat.code).collect();
        assert_eq!(codes, ["skipped-lines", "missing-ids", "negative-delays", "values-unordered", "imported"]);
    }
}
