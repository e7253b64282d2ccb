//! Tests of complete text reports of known figures.

use super::Style;
use super::report_view;
use super::text::render;
use super::text::width;
use super::view::Showing;
use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, probes_of, scheduled};
use crate::analysis::{Summary, SummaryOptions, summarise};
use crate::diagnostics::{Caveat, Colour, Severity};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::stats::{Bucket, Description, Interval, QuantileEstimate};
use crate::units::Nanos;

const USUAL: Showing = Showing { half: false, every_metric: false, kept: true, wide: false, of_store: false };

fn around(value: f64, below: f64, above: f64) -> Option<Interval> {
    Some(Interval { low: Some(value - below), high: Some(value + above), confidence: 0.95 })
}

fn estimate(q: f64, value: f64, interval: Option<Interval>) -> QuantileEstimate {
    QuantileEstimate {
        q,
        value: Some(value),
        lost: false,
        interval,
        supported: true,
        lower_bound: None,
        bound_is_lost: false,
    }
}

/// A closed-loop run with the figures of the example in the documentation.
fn sketched() -> Summary {
    let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
    let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
    let unsupported =
        QuantileEstimate { supported: false, lower_bound: Some(310_400.0), ..estimate(0.9999, 1_210_000.0, None) };
    let described = Description {
        n: 203_118,
        lost: 0,
        min: Some(44_210.0),
        max: Some(4_183_000.0),
        mean: Some(48_930.0),
        stddev: Some(6_120.0),
        effective_n: Some(120_000.0),
        mean_interval: around(48_930.0, 190.0, 200.0),
        slow_changes: None,
        rare_bursts: None,
        step: 0.0,
        quantiles: vec![
            estimate(0.5, 48_700.0, around(48_700.0, 200.0, 200.0)),
            estimate(0.9, 55_010.0, around(55_010.0, 300.0, 310.0)),
            estimate(0.99, 61_900.0, around(61_900.0, 600.0, 600.0)),
            estimate(0.999, 74_300.0, around(74_300.0, 6_300.0, 7_100.0)),
            unsupported,
        ],
    };
    summary.counts.sent = 203_118;
    summary.counts.answered = 203_118;
    summary.ratios.loss_interval = Some(Interval { low: Some(0.0), high: Some(0.000_018_9), confidence: 0.95 });
    summary.metrics.insert(Metric::RoundTripDelay, described);
    summary.histogram = [(44_000, 3), (46_000, 18_204), (48_000, 184_841), (64_000, 70)]
        .map(|(low_ns, count)| Bucket { low_ns, high_ns: low_ns * 2, count })
        .into();
    summary.caveats.retain(|caveat| caveat.code == "idle-states");
    let (governor, hint) = ("the frequency governor of this host is `ondemand`", "`--set governor=performance`");
    summary.caveats.push(Caveat::new(Severity::Note, "governor", governor, "CPUs run slower", hint));
    summary
}

fn shown(summaries: &[Summary], showing: Showing) -> String {
    let view = report_view(summaries, showing);
    let plain = render(&view, Style::PLAIN);
    let coloured = render(&view, Style { colour: Colour::marked(7), ..Style::PLAIN });
    assert_eq!(without_colour(&coloured), plain, "colour adds nothing but colour");
    for line in plain.lines() {
        assert!(width(line) <= 80 && line.trim_end() == line, "`{line}`");
    }
    plain
}

/// Removes escape sequences from `text`.
fn without_colour(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn asymmetric_intervals_show_both_ends() {
    let mut summary = sketched();
    let described = summary.metrics.get_mut(&Metric::RoundTripDelay).expect("sketched");
    described.quantiles[3].interval = around(74_300.0, 6_300.0, 66_000.0);
    described.quantiles[2].interval = Some(Interval { low: Some(61_000.0), high: None, confidence: 0.95 });
    let text = shown(&[summary.clone()], USUAL);
    assert!(text.contains(" 68.0–140") && text.contains(" 61.0–∞"), "{text}");
    // `±` would show only the longer side, although the other is a third shorter.
    let described = summary.metrics.get_mut(&Metric::RoundTripDelay).expect("sketched");
    described.quantiles[2].interval = around(61_900.0, 2_000.0, 3_000.0);
    described.quantiles[1].interval = around(55_010.0, 200.0, 300.0);
    described.quantiles[0].interval = around(48_700.0, 20.0, 30.0);
    let text = shown(&[summary], USUAL);
    assert!(text.contains(" 59.9–64.9") && text.contains(" 54.8–55.3") && text.contains(" ±0.030"), "{text}");
}

#[test]
fn a_mean_whose_interval_begins_below_the_smallest_value_shows_the_upper_end() {
    let mut summary = sketched();
    let described = summary.metrics.get_mut(&Metric::RoundTripDelay).expect("sketched");
    described.mean_interval = around(48_930.0, 60_000.0, 61_000.0);
    let text = shown(&[summary], USUAL);
    assert!(text.contains(" ≤ 110 ") && !text.contains('−'), "{text}");
}

fn on_schedule(losing: u64) -> Summary {
    let row = |seq: u64| scheduled(seq, seq as i64 * 1_000, 3, 50 + (seq * seq % 23) as i64);
    let fate = |seq: u64| if seq % losing == 5 { Fate::Lost } else { Fate::Answered };
    let source = InMemory::of(EVERY_MS, (0..3_000).map(|seq| but(row(seq), fate(seq))).collect());
    let mut options = SummaryOptions::of(&source.manifest.spec);
    options.judging.window_ns = Some(Nanos::from_millis(500));
    options.judging.deadline_ns = Some(Nanos::from_millis(1));
    summarise(&source, &options).expect("six windows")
}

#[test]
fn probes_that_were_never_sent_are_not_among_those_of_which_none_was_lost() {
    // No number divided by 5 leaves 5.
    let mut summary = on_schedule(5);
    summary.counts.not_sent = 97_000;
    let text = shown(&[summary], USUAL);
    let fates = text.split_once("fates ").expect("fates").1.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "sent 3,000 of 100,000 due · answered 3,000 · not sent 97,000 · of those none lost: ";
    assert!(fates.starts_with(expected), "{fates}");
}

#[test]
fn unsent_probes_count_in_the_n_of_the_response_time() {
    let row = |seq: u64| scheduled(seq, seq as i64 * 1_000, 3, 50);
    let fate = |seq: u64| if seq % 10 == 5 { Fate::NotSent } else { Fate::Answered };
    let run = |size_bytes: u32| {
        let source = InMemory::of(EVERY_MS, (0..3_000).map(|seq| but(row(seq), fate(seq))).collect());
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        probes_of(&mut summary.spec).size_bytes = size_bytes;
        summary
    };
    let text = shown(&[run(64), run(128)], USUAL);
    let headings: Vec<_> = text.lines().filter(|line| line.split_whitespace().any(|word| word == "n")).collect();
    assert_eq!(
        headings.iter().flat_map(|line| line.split_whitespace()).filter(|word| *word == "n").count(),
        2,
        "{text}"
    );
    let rows: Vec<_> = text.lines().filter(|line| line.trim_start().starts_with("64 B")).collect();
    assert!(rows.iter().any(|row| row.contains("2,700")) && rows.iter().any(|row| row.contains("3,000")), "{text}");
}
