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

const USUAL: Showing =
    Showing { half: false, every_metric: false, kept: true, like: None, wide: false, of_store: false };
const HALF: Showing = Showing { half: true, every_metric: false, kept: true, like: None, wide: false, of_store: false };

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
        min: Some(44_210),
        max: Some(4_183_000),
        mean: Some(48_930.0),
        stddev: Some(6_120.0),
        effective_n: Some(120_000.0),
        mean_interval: around(48_930.0, 190.0, 200.0),
        slow_changes: None,
        rare_bursts: None,
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
fn one_closed_loop_run_has_a_complete_report() {
    let expected = "\
ping local · udp ipv4 · 64 B · closed loop · 10 s

round trip delay                                              n 203,118 · lost 0
     min    mean  stddev     p50     p90     p99   p99.9  p99.99     max
    44.2   48.9     6.12   48.7    55.0    61.9     74.3  (1,210)  4,180  µs
           ±0.20           ±0.20   ±0.31   ±0.60    ±7.1   ≥ 310
( ) too few effective observations beyond it · ≥ lower bound (95 %)

     44 µs ▕███▎                                3
     46 µs ▕██████████████████████▋        18,204
     48 µs ▕████████████████████████████  184,841   bars are logarithmic
     64 µs ▕█████████▉                         70

fates        none lost: loss ratio ≤ 0.0019 % (95 %) if the losses are
             independent
instrument   clock 23.4 ns per read in steps of 1 ns · bare loop on these pins
             p50 48.1 µs
caveats      1  the frequency governor of this host is `ondemand`
                hint: `--set governor=performance`
recording    latlab-runs/20261121T021500Z-ping-7f3a
";
    assert_eq!(shown(&[sketched()], USUAL), expected);
}

#[test]
fn half_a_round_trip_is_not_called_a_latency() {
    let text = shown(&[sketched()], HALF);
    let mut table = text.lines().skip_while(|line| !line.starts_with("round trip / 2")).skip(2);
    let half = table.next().expect("a row of figures");
    assert!(half.contains("22.1") && half.contains("(605)") && half.ends_with("2,090  µs"), "{half}");
    assert!(table.next().is_some_and(|below| below.ends_with("≥ 155")), "{text}");
    assert_eq!(text.matches("too few effective").count(), 1, "one explanation is enough: {text}");
    assert!(!text.replace("cpu-dma-latency", "").contains("latency"), "{text}");
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
fn a_scheduled_run_shows_response_time_and_round_trip() {
    let text = shown(&[on_schedule(60)], USUAL);
    let headings = text.lines().nth(2).expect("headings");
    let words: Vec<_> = headings.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    assert_eq!(words, ["round trip delay", "response time", "send slip"]);
    let row = |label: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(label)).expect(label);
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("n "), ["n", "3,000", "3,000", "3,000"]);
    assert_eq!(row("lost "), ["lost", "50", "50", "0"]);
    assert!(
        text.contains("\nround trip delay, response time: min, mean, stddev, max of the 2,950 answered\n"),
        "{text}"
    );
    assert_eq!(row("p99 ")[1..3], ["lost", "lost"]);
    assert_eq!(row("p99.9 ")[1..], ["lost", "lost", "(3.00)", "≥", "3.00"], "what lies beyond a lost quantile is lost");
    let fates =
        "fates        sent 3,000 · answered 2,950 · lost 50 · loss ratio 1.67 %\n             (95 %: 1.27–2.19 %)\n";
    assert!(text.contains(fates), "{text}");
    assert!(text.contains("deadline     1 ms missed by 50 of 3,000 due probes: 1.67 % (95 %: 1."), "{text}");
    assert_eq!(row("500 ms")[..4], ["500", "ms", "500", "8"]);
    assert_eq!(text.lines().filter(|line| line.contains(" ms ") && line.contains("500 ")).count(), 6, "{text}");
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
fn several_runs_share_one_table() {
    let mut larger = sketched();
    probes_of(&mut larger.spec).size_bytes = 1_024;
    larger.recording = "latlab-runs/20261121T021500Z-ping-0815".into();
    larger.caveats.clear();
    let text = shown(&[sketched(), larger.clone()], HALF);
    assert!(text.contains("(1,210)") && text.contains("(605)") && text.contains("≥ 155"), "{text}");
    let figures: Vec<_> = text.lines().filter(|line| line.trim_start().starts_with("1,024 B ")).collect();
    assert!(figures[0].contains("203,118") && figures[0].contains("48.7"), "{text}");
    let below: Vec<_> = text.lines().skip_while(|line| *line != figures[0]).nth(1).into_iter().collect();
    assert_eq!(below.concat().split_whitespace().collect::<Vec<_>>(), ["≥", "310"], "{text}");
    assert!(text.contains("round trip delay, µs") && text.contains("round trip / 2, µs"), "{text}");
    assert!(text.starts_with("ping local · udp ipv4 · closed loop · 10 s\n"), "{text}");
    assert!(text.contains("1  64 B: the frequency governor"), "a caveat of one run says of which: {text}");
    assert!(!text.contains('█'), "a histogram is of one run");
    assert!(text.ends_with("-7f3a\n             latlab-runs/20261121T021500Z-ping-0815\n"), "{text}");

    // The cost of a clock read is measured for each run and differs between runs.
    larger.instrument.clock_read_ns = Some(25.14);
    larger.instrument.bare_loop = None;
    let unlike = shown(&[sketched(), larger.clone()], USUAL);
    let instrument = "instrument   clock 23.4–25.1 ns per read in steps of 1 ns · bare loop on these\n             \
                      pins p50 48.1 µs\n";
    assert!(unlike.contains(instrument), "{unlike}");

    probes_of(&mut larger.spec).size_bytes = 64;
    let alike = shown(&[sketched(), larger], USUAL);
    assert!(alike.contains("20261121T021500Z-ping-0815 "), "runs alike go by their directory: {alike}");
}

#[test]
fn several_runs_on_a_schedule_show_the_losses_of_each_metric() {
    let mut other = on_schedule(1_000);
    probes_of(&mut other.spec).size_bytes = 1_024;
    let text = shown(&[on_schedule(60), other], USUAL);
    let response = text.lines().skip_while(|line| !line.contains("response time, µs")).nth(1).expect("headings");
    assert!(response.split_whitespace().next() == Some("lost"), "{text}");
    assert_eq!(
        response.split_whitespace().filter(|word| *word == "n").count(),
        0,
        "n is that of the round trip: {text}"
    );
    assert!(text.contains("64 B · round trip delay by window of 500 ms, µs"), "{text}");
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

#[test]
fn a_run_without_probes_shows_dashes_and_the_reason() {
    for schedule in [CLOSED, EVERY_MS] {
        let source = InMemory::of(schedule, Vec::new());
        let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        let text = shown(&[summary], HALF);
        assert!(text.contains('–') && text.contains("warning: no probe was measured"), "{text}");
    }
}

#[test]
fn a_quantile_without_support_is_shown_with_its_bound() {
    let run = |n: u64, lost: u64| {
        let row = |seq: u64| closed(seq, seq as i64 * 60, 40 + (seq * 7 % 20) as i64);
        let fate = |seq: u64| if seq < lost { Fate::Lost } else { Fate::Answered };
        let source = InMemory::of(CLOSED, (0..n).map(|seq| but(row(seq), fate(seq))).collect());
        summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for")
    };
    for (n, lost, figures, below, explanation) in [
        (1, 0, "(40.0)  (40.0)  (40.0)", "n/a     n/a  ≥ 40.0", "beyond it · ≥ lower bound (95 %) · n/a: none\n"),
        (2_000, 0, "(59.0)   59.0", "≥ 59.0", "beyond it · ≥ lower bound (95 %)\n"),
        (
            2_000,
            3,
            "(lost)   lost",
            "≥ 59.0\n",
            "beyond it · ≥ lower bound (95 %)\nmin, mean, stddev, max of the 1,997 answered\n",
        ),
    ] {
        let text = shown(&[run(n, lost)], USUAL);
        for words in [figures, below, explanation] {
            assert!(text.contains(words), "{words} of {n} with {lost} lost:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn every_metric_can_be_shown() {
    let source = InMemory::of(CLOSED, (0..300).map(|seq| closed(seq, seq as i64 * 60, 50)).collect());
    let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
    let text = shown(
        &[summary],
        Showing { half: false, every_metric: true, kept: true, like: None, wide: false, of_store: false },
    );
    for metric in [Metric::RoundTripDelayLessDwell, Metric::ReflectorDwell, Metric::Pdv, Metric::Ipdv] {
        assert!(text.contains(metric.title()), "{}: {text}", metric.title());
    }
}
