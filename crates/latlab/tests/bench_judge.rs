//! The benches' own statistics and readings: pure, so tested here rather than measured there.

#[path = "../benches/judge/options.rs"]
mod options;
#[path = "../benches/judge/paired.rs"]
mod paired;
#[path = "../benches/judge/rates.rs"]
mod rates;
#[path = "../benches/judge/readings.rs"]
mod readings;

use options::Options;
use paired::{Paired, ROUNDS_MAX, ROUNDS_MIN, Verdict, median};
use readings::Reading;

/// Rounds of ratios in arithmetic progression from `low` to `high`.
fn spread(rounds: usize, low: f64, high: f64) -> Paired {
    let step = (high - low) / (rounds - 1) as f64;
    let ours: Vec<f64> = (0..rounds).map(|round| 100.0 * (low + step * round as f64)).collect();
    Paired::of(&ours, &vec![100.0; rounds])
}

#[test]
fn the_interval_is_that_of_the_sign_test() {
    // Depth and coverage from binomial tables, p = 1/2: n, k, 1 − 2 P(X < k).
    for (rounds, k, coverage) in [(6, 1, 0.96875), (15, 4, 0.96484375), (25, 8, 0.956714), (100, 40, 0.964800)] {
        let ratios: Vec<f64> = (1..=rounds).map(f64::from).collect();
        let paired = Paired::of(&ratios, &vec![1.0; ratios.len()]);
        assert_eq!((paired.low, paired.high), (f64::from(k), f64::from(rounds + 1 - k)), "{rounds}");
        assert!((paired.coverage - coverage).abs() < 1e-5, "{rounds}: {}", paired.coverage);
    }
}

#[test]
fn too_few_rounds_have_no_interval() {
    let paired = Paired::of(&[1.0; 5], &[1.0; 5]);
    assert_eq!((paired.low, paired.high), (f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(paired.at_most(2.0, true), Verdict::Undecided);
    assert_eq!(paired.interval(), "too few rounds");
    assert_eq!(spread(15, 1.0, 1.14).interval(), "1.030–1.110");
    assert!(Paired::of(&[], &[]).median.is_nan());
}

#[test]
fn ratios_are_taken_within_rounds() {
    // The machine slows down tenfold, the ratio stays.
    let theirs: Vec<f64> = (0..20).map(|round| 10.0 + 5.0 * f64::from(round)).collect();
    let ours: Vec<f64> = theirs.iter().map(|value| value * 1.02).collect();
    let paired = Paired::of(&ours, &theirs);
    assert!((paired.low - 1.02).abs() < 1e-12 && (paired.high - 1.02).abs() < 1e-12);
}

#[test]
fn equivalence_takes_both_ends_of_the_interval() {
    for (low, high, quiet, expected) in [
        (0.98, 1.02, true, Verdict::Met),
        (0.98, 1.02, false, Verdict::Undecided),
        (0.90, 1.10, true, Verdict::Undecided),
        (1.00, 1.10, true, Verdict::Undecided),
        (0.80, 0.90, true, Verdict::NotMet),
        (1.10, 1.20, true, Verdict::NotMet),
    ] {
        assert_eq!(spread(15, low, high).within(0.03, quiet), expected, "{low}–{high}");
    }
}

#[test]
fn verdicts_follow_the_interval() {
    let cases = [
        (spread(15, 1.00, 1.02), 1.03, true, Verdict::Met),
        (spread(15, 1.04, 1.08), 1.03, true, Verdict::NotMet),
        (spread(15, 1.00, 1.06), 1.03, true, Verdict::Undecided),
        (spread(15, 1.00, 1.02), 1.03, false, Verdict::Undecided),
        (spread(15, 1.04, 1.08), 1.03, false, Verdict::Undecided),
        (spread(14, 1.00, 1.02), 1.03, true, Verdict::Undecided),
    ];
    for (paired, target, quiet, verdict) in cases {
        assert_eq!(paired.at_most(target, quiet), verdict, "{paired:?} at most {target}, quiet: {quiet}");
    }
    let words = [Verdict::Met, Verdict::NotMet, Verdict::Undecided].map(Verdict::word);
    assert_eq!(words, ["met", "**not met**", "undecided"]);
}

#[test]
fn one_wild_round_moves_nothing() {
    let (mut ours, theirs) = (vec![1.01; 15], vec![1.0; 15]);
    ours[7] = 300.0;
    assert_eq!(Paired::of(&ours, &theirs).at_most(1.03, true), Verdict::Met);
}

#[test]
fn the_band_of_quiet_includes_its_ends() {
    let of = |ratio: f64| Paired::of(&[ratio; 15], &[1.0; 15]);
    assert!(of(1.01).is_quiet(0.01) && of(0.99).is_quiet(0.01) && of(1.03).is_quiet(0.03));
    assert!(!of(1.011).is_quiet(0.01) && !of(0.989).is_quiet(0.01) && !of(f64::NAN).is_quiet(0.03));
}

#[test]
fn the_interval_covers_the_median_as_often_as_it_says() {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(20);
    let trials = 4_000;
    let mut covered = 0;
    for _ in 0..trials {
        // Lognormal-like heavy tail around a median of 1: the exponential of a symmetric variable.
        let draw = |rng: &mut rand_pcg::Pcg64Mcg| ((rng.next_u64() as f64 / u64::MAX as f64 - 0.5) * 8.0).exp();
        let ours: Vec<f64> = (0..ROUNDS_MIN).map(|_| draw(&mut rng)).collect();
        let paired = Paired::of(&ours, &[1.0; ROUNDS_MIN]);
        covered += usize::from(paired.low <= 1.0 && 1.0 <= paired.high);
    }
    let share = covered as f64 / f64::from(trials);
    assert!((0.955..0.975).contains(&share), "covered {share}, 0.965 expected");
}

#[test]
fn medians() {
    for (values, expected) in [(&[3.0][..], 3.0), (&[1.0, 2.0], 1.5), (&[1.0, 5.0, 9.0], 5.0)] {
        assert_eq!(median(values), expected);
    }
}

#[test]
fn contenders_are_read() {
    let summary = r#"{"sent": 5, "answered": 5, "metrics": {"round_trip_delay": {"quantiles": [
        {"q": 0.5, "value": 48700.0}, {"q": 0.99, "value": 61900.5}, {"q": 0.999, "value": 80000.0}]}}}"#;
    let expected = Reading { p50_ns: 48_700.0, p99_ns: 61_900.5, p999_ns: Some(80_000.0) };
    assert_eq!(readings::latlab(summary), Ok(expected));
    let bare = r#"{"p50_ns": 9250, "p99_ns": 11000, "p999_ns": 15000, "n": 50000}"#;
    let expected = Reading { p50_ns: 9_250.0, p99_ns: 11_000.0, p999_ns: Some(15_000.0) };
    assert_eq!(readings::bare(bare), Ok(expected));
    let sockperf = "sockperf: Summary: Round trip is 17.772 usec\nsockperf: ---> percentile 99.900 = 2826.970\n\
                    sockperf: ---> percentile 99.000 =   17.906\nsockperf: ---> percentile 50.000 =   11.156\n";
    let read = readings::sockperf(sockperf).expect("readable");
    assert!((read.p50_ns - 11_156.0).abs() < 1e-6 && (read.p99_ns - 17_906.0).abs() < 1e-6);
    assert!(read.p999_ns.is_some_and(|p999_ns| (p999_ns - 2_826_970.0).abs() < 1e-3));
}

#[test]
fn readings_that_mean_something_else_are_refused() {
    let lossy = r#"{"sent": 5, "answered": 4, "metrics": {"round_trip_delay": {"quantiles": []}}}"#;
    assert!(readings::latlab(lossy).is_err_and(|error| error.contains("losses")));
    let infinite =
        r#"{"sent": 5, "answered": 5, "metrics": {"round_trip_delay": {"quantiles": [{"q": 0.5, "value": null}]}}}"#;
    assert!(readings::latlab(infinite).is_err() && readings::latlab("").is_err());
    assert!(readings::bare("{}").is_err());
    assert!(readings::sockperf("Summary: Latency is 8.604 usec\npercentile 50.000 = 5.593").is_err());
    assert!(readings::sockperf("Summary: Round trip is 8 usec").is_err());
    let ddsperf = "[7] 1.001  vm:8 size 32 mean 40.1us min 12.7us 50% 39.4us 90% 46.3us 99% 55.9us max 1391.9us cnt 16256\n\
                   [7] 2.001  vm:8 size 32 mean 30.7us min 12.7us 50% 29.4us 90% 36.3us 99% 45.9us max 1391.9us cnt 16256\n\
                   [7] 2.001  rss:3.1MB vcsw:16248 ivcsw:31 recv:8%+31%\n";
    let read = readings::ddsperf(ddsperf).expect("readable");
    assert_eq!((read.p50_ns.round(), read.p99_ns.round(), read.p999_ns), (58_800.0, 91_800.0, None));
    assert!(readings::ddsperf("[7] 2.001  rss:3.1MB").is_err());
}

#[test]
fn options_are_read() {
    let parse = |words: &[&str]| Options::parse(words.iter().map(|word| word.to_string()));
    let default = parse(&["--bench"]).expect("defaults");
    assert_eq!((default.rounds, default.rounds_max, default.cpus), (ROUNDS_MIN, ROUNDS_MAX, (0, 1)));
    let given = parse(&["--rounds", "40", "--cpus", "2,3", "spinning"]).expect("given");
    assert_eq!((given.rounds, given.rounds_max, given.cpus), (40, ROUNDS_MAX, (2, 3)));
    assert!(given.wants("spinning, 64 B") && !given.wants("blocking, 64 B") && default.wants("anything"));
    assert!(parse(&["--quick"]).expect("quick").rounds < ROUNDS_MIN);
    for wrong in [&["--rounds"][..], &["--rounds", "x"], &["--cpus", "1"], &["--fast"]] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_target_from_below_is_judged_by_the_lower_end() {
    let cases = [
        (spread(15, 0.98, 1.02), 0.97, true, Verdict::Met),
        (spread(15, 0.90, 0.94), 0.97, true, Verdict::NotMet),
        (spread(15, 0.94, 1.02), 0.97, true, Verdict::Undecided),
        (spread(15, 0.98, 1.02), 0.97, false, Verdict::Undecided),
        (spread(14, 0.98, 1.02), 0.97, true, Verdict::Undecided),
    ];
    for (paired, target, quiet, verdict) in cases {
        assert_eq!(paired.at_least(target, quiet), verdict, "{paired:?}");
    }
}

#[test]
fn delivered_rates_are_read_from_what_each_prints() {
    assert_eq!(rates::latlab(r#"{"rates": {"delivered_bps": 4.4e9, "offered_bps": 5e9}}"#), Ok(4.4e9));
    assert_eq!(rates::bare(r#"{"sent_packets": 1, "delivered_bps": 1000.0}"#), Ok(1000.0));
    let newer = r#"{"end": {"sum_received": {"bits_per_second": 3e9}, "sum": {"bits_per_second": 4e9}}}"#;
    assert_eq!(rates::iperf3(newer), Ok(3e9));
    let older = r#"{"end": {"sum": {"bits_per_second": 4e9, "lost_percent": 25.0}}}"#;
    assert_eq!(rates::iperf3(older), Ok(3e9));
    let netperf =
        "212992    1472   1.00      387000      0    4557.31\n212992           1.00      386000           4545.53\n\n";
    assert_eq!(rates::netperf(netperf), Ok(4_545.53e6));
    for nothing in [r#"{"rates": {"delivered_bps": 0}}"#, r#"{"rates": {"delivered_bps": null}}"#, "{}", ""] {
        assert!(rates::latlab(nothing).is_err() && rates::iperf3(nothing).is_err(), "{nothing}");
        assert!(rates::bare(nothing).is_err() && rates::netperf(nothing).is_err(), "{nothing}");
    }
}

#[test]
fn cyclictest_is_read_in_nanoseconds_with_latlabs_quantiles() {
    let text = |overflows: u64| {
        format!(
            "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\n018107 000002\n020000 000001\n\
             030000 000001\n# Total: 000000004\n# Histogram Overflows: {overflows:05}\n# Thread 0:\n"
        )
    };
    // 18107, 18107, 20000, 30000: numpy's median and 99th percentile.
    let read = readings::cyclictest(&text(0)).expect("a histogram");
    assert_eq!((read.p50_ns, read.p99_ns), (19_053.5, 29_700.0));
    let beyond = readings::cyclictest(&text(4)).expect_err("the 99th percentile is among the overflows");
    assert!(beyond.contains("beyond"), "{beyond}");
    assert!(readings::cyclictest("error: no right").is_err());
}

#[test]
fn wake_ups_are_read_from_their_own_metric() {
    let text = r#"{"sent": 5, "answered": 5, "metrics": {"wakeup_latency": {"quantiles": [
        {"q": 0.5, "value": 1000.0}, {"q": 0.99, "value": 2000.5}]}}}"#;
    assert_eq!(readings::latlab_wakeup(text), Ok(Reading { p50_ns: 1_000.0, p99_ns: 2_000.5, p999_ns: None }));
    assert!(readings::latlab(text).is_err());
}
