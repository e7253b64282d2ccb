//! Caveats of runs whose log was imported.

use crate::diagnostics::Severity;
use crate::facts::{ImportFacts, IntervalCounts, LoggedValue, StreamEnd};
use crate::in_memory::{logged, stream_interval};
use crate::metric::Metric;
use crate::plan::{Kind, Work};
use crate::{SummaryOptions, import_caveats, summarise};

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
    let codes: Vec<String> = import_caveats(&source.manifest).into_iter().map(|caveat| caveat.code).collect();
    assert_eq!(codes, ["skipped-lines", "irregular-ids", "negative-delays", "values-unordered", "imported"]);
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
        assert_eq!((caveat.code.as_str(), caveat.severity), ("undecided", severity));
        assert!(
            caveat.message.starts_with("154 of 300 packets (51.3 %) were counted by the sender"),
            "{}",
            caveat.message
        );
        assert!(!caveat.hint.contains('`') && !caveat.hint.contains("target"), "{}", caveat.hint);
    }
}
