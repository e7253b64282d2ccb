//! Figures of rates whose intervals have different lengths, by brute force.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::AvailableFigures;
use crate::comparison::ObservedRun;
use crate::estimand::parse_estimand;
use crate::in_memory::InMemory;
use crate::probe::Phase;
use crate::stats::{DescribeOptions, Interval, describe, plain};
use crate::{SummaryOptions, ValueGates, summarise};

/// A packet of the streams of these tests.
const PACKET_BITS: f64 = 1_000.0;
/// Packets of each interval that did not arrive.
const MISSED: u64 = 7;
/// Intervals of a receiver that got its CPU now and then, in ms, with the packets in each: long ones are slow.
const STRETCHED: [(i64, u64); 8] =
    [(100, 40_000), (716, 81_000), (56, 31_000), (100, 0), (324, 60_500), (100, 41_000), (610, 90_100), (70, 33_000)];

/// Intervals of `flow` at both ends, one after the other from `start_ms` on; the ends have clocks of their own.
fn intervals(flow: u16, start_ms: i64, phase: Phase, lengths: &[(i64, u64)]) -> Vec<StreamInterval> {
    let mut end_ms = start_ms;
    let of_length = |(length_ms, packets): &(i64, u64)| {
        let begin_ms = end_ms;
        end_ms += length_ms;
        let row = |clock_ms: i64, seen| StreamInterval {
            flow,
            phase,
            start_ns: (clock_ms + begin_ms) * 1_000_000,
            end_ns: (clock_ms + end_ms) * 1_000_000,
            cpu: None,
            seen,
        };
        let counted = IntervalCounts::Counted {
            polled: packets + MISSED,
            delivered: *packets,
            reordered: 0,
            duplicates: 0,
            outside_window: 0,
            socket_drops: None,
        };
        [row(0, IntervalCounts::Offered { packets: packets + MISSED, refused: 0, skipped: 0 }), row(90_000, counted)]
    };
    lengths.iter().flat_map(of_length).collect()
}

fn measured(flow: u16, start_ms: i64, lengths: &[(i64, u64)]) -> Vec<StreamInterval> {
    intervals(flow, start_ms, Phase::Measure, lengths)
}

/// A stream, and what it has by hand.
struct Case {
    name: &'static str,
    flows: u16,
    rows: Vec<Vec<StreamInterval>>,
    levels: u64,
    delivered: u64,
    time_ms: i64,
}

impl Case {
    fn one_flow(name: &'static str, rows: Vec<Vec<StreamInterval>>, levels: u64, delivered: u64, time_ms: i64) -> Case {
        Case { name, flows: 1, rows, levels, delivered, time_ms }
    }

    /// `packets` over the time, in bits a second.
    fn rate(&self, packets: u64) -> f64 {
        packets as f64 / Nanos::from_millis(self.time_ms).as_secs_f64() * PACKET_BITS
    }

    /// Asserts that the rate of the run, and the mean of `metric` in a summary, a comparison and a gate are `expected`.
    fn expect_mean(&self, metric: Metric, expected: f64) {
        let source = InMemory::of_stream(self.flows, self.rows.concat());
        let statistic = format!("{} mean", metric.name());
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory");
        let gates = ValueGates::parse(&[format!("{statistic} >= 1kbit/s")], true).expect("a gate");
        gates.judge(&mut summary, &AvailableFigures::of(&source.manifest.spec, None));
        let estimand = parse_estimand(None, &statistic).expect("a statistic");
        let run = ObservedRun::of(&source, &[estimand]).expect("rows in memory");
        let rates = summary.stream.as_ref().expect("a stream").rates;
        let of_run = if metric == Metric::OfferedRate { rates.offered_bps } else { rates.delivered_bps };
        let described = &summary.metrics[&metric];
        assert_eq!(
            [of_run, described.mean, run.figures[0].value(), summary.gates[0].value],
            [Some(expected); 4],
            "{}: {statistic}",
            self.name
        );
        assert_eq!(described.n, self.levels, "{}", self.name);
        let [min, max] = [described.min, described.max].map(|end| end.expect("a level"));
        assert!((min - 0.5..=max + 0.5).contains(&expected), "{}: {described:?}", self.name);
    }
}

#[test]
fn every_mean_is_the_total_over_the_time() {
    let stretched_ms = STRETCHED.iter().map(|(length_ms, _)| length_ms).sum::<i64>();
    let packets = STRETCHED.iter().map(|(_, packets)| packets).sum::<u64>();
    let stretched = measured(0, 0, &STRETCHED);
    let warmup = intervals(0, -500, Phase::Warmup, &[(300, 900_000), (200, 0)]);
    let rest = measured(0, 0, &[(100, 50), (300, 90), (13, 40)]);
    let slices = vec![measured(0, 0, &[(130, 60), (20, 40)]), measured(0, 9_000, &[(200, 70)])];
    let cases = [
        Case::one_flow("stretched", vec![stretched.clone()], 8, packets, stretched_ms),
        Case::one_flow("after a warm-up", vec![warmup, stretched.clone()], 8, packets, stretched_ms),
        Case::one_flow("a rest", vec![rest], 2, 180, 413),
        Case::one_flow("a rest only", vec![measured(0, 0, &[(13, 40)])], 1, 40, 13),
        Case::one_flow("slices", slices, 2, 170, 350),
        Case::one_flow("an idle interval", vec![measured(0, 0, &[(716, 0), (100, 1)])], 2, 1, 816),
        // From the first begin to the last end: the third flow goes on for 124 ms alone.
        Case {
            name: "flows",
            flows: 3,
            rows: vec![
                stretched,
                measured(1, 30, &[(700, 4_000), (56, 9_000)]),
                measured(2, 1_900, &[(270, 41), (30, 9)]),
            ],
            levels: 9,
            delivered: packets + 13_050,
            time_ms: 2_200,
        },
    ];
    for case in cases {
        case.expect_mean(Metric::DeliveredRate, case.rate(case.delivered));
        let rows = case.rows.iter().flatten().filter(|row| is_sent_and_measured(row)).count() as u64;
        case.expect_mean(Metric::OfferedRate, case.rate(case.delivered + MISSED * rows));
    }
}

fn is_sent_and_measured(row: &StreamInterval) -> bool {
    row.phase == Phase::Measure && matches!(row.seen, IntervalCounts::Offered { .. })
}

/// The series of one flow with these intervals.
fn series(lengths: &[(i64, u64)]) -> RateSeries {
    let counted = |row: &StreamInterval| matches!(row.seen, IntervalCounts::Counted { .. });
    let rows: Vec<StreamInterval> = measured(0, 0, lengths).into_iter().filter(counted).collect();
    RateSeries::of(&BTreeMap::from([(0, rows)]), PACKET_BITS)
}

fn described(series: &RateSeries, quantiles: &[f64]) -> Description {
    let bits: f64 = series.levels.iter().map(|level| level.bits).sum();
    let mean = (series.time_ns() > 0.0).then(|| bits * 1e9 / series.time_ns());
    series.described(Metric::DeliveredRate, mean, &|sample| plain(sample, quantiles, true))
}

#[test]
fn intervals_of_one_length_are_alike() {
    let packets = [40, 90, 10, 70, 30, 20, 80, 60];
    let series = series(&packets.map(|packets| (100, packets)));
    let rates = packets.map(|packets| packets as i64 * 10_000);
    assert_eq!((series.means_of_parts(), series.rates_in_parts()), (rates.to_vec(), rates.to_vec()));
    let quantiles = [0.01, 0.1, 0.25, 0.5, 0.9];
    let (here, alike) =
        (described(&series, &quantiles), plain(&Sample::new(Metric::DeliveredRate, rates.to_vec()), &quantiles, true));
    assert_eq!((here.n, here.min, here.max, here.mean), (alike.n, alike.min, alike.max, alike.mean));
    let close = |one: Option<f64>, other: Option<f64>| (one.zip(other)).is_some_and(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close(here.stddev, alike.stddev), "{here:?}");
    for (here, alike) in here.quantiles.iter().zip(&alike.quantiles) {
        assert!(close(here.value, alike.value), "{here:?}, not {alike:?}");
    }
}

#[test]
fn quantiles_and_the_standard_deviation_are_of_time() {
    let series = series(&STRETCHED);
    // Each rate once for each ms of its interval.
    let of_time: Vec<i64> =
        series.levels.iter().flat_map(|level| vec![level.rate(); (level.span.0 / 1_000_000) as usize]).collect();
    let quantiles = [0.02, 0.3, 0.5, 0.6, 0.7];
    let (here, expected) =
        (described(&series, &quantiles), plain(&Sample::new(Metric::DeliveredRate, of_time.clone()), &quantiles, true));
    assert_eq!((here.n, here.min, here.max), (8, expected.min, expected.max));
    let n = of_time.len() as f64;
    let stddev = expected.stddev.expect("many") * ((n - 1.0) / n * 8.0 / 7.0).sqrt();
    assert!((here.stddev.expect("eight") / stddev - 1.0).abs() < 1e-3, "{here:?}, not {stddev}");
    let mut rates: Vec<i64> = series.levels.iter().map(Level::rate).collect();
    rates.sort_unstable();
    for (here, expected) in here.quantiles.iter().zip(&expected.quantiles) {
        let (value, expected) = (here.value.expect("finite"), expected.value.expect("finite"));
        // Interpolation leads at most to a neighbour.
        let place = rates.iter().position(|rate| *rate as f64 == expected).expect("a level");
        let neighbours = rates[place.saturating_sub(1)] as f64..=rates[(place + 1).min(7)] as f64;
        assert!(neighbours.contains(&value), "{here:?}, not {expected}");
    }
    let half = here.quantiles[2].value.expect("finite");
    assert!((113e6..187e6).contains(&half), "half of the time the rate was that of the long intervals: {half}");
    // As often as the middles of eight parts of 259.5 ms fall into the intervals.
    let repeated = [400, 113, 113, 187, 148, 148, 148, 471];
    let shown: Vec<i64> = series.rates_in_parts().iter().map(|rate| rate / 1_000_000).collect();
    assert_eq!(shown.len(), repeated.len(), "{shown:?}");
    let total: f64 = series.means_of_parts().iter().map(|rate| *rate as f64).sum::<f64>() / 8.0;
    assert!((total / here.mean.expect("some") - 1.0).abs() < 1e-7, "{total}");
}

#[test]
fn short_intervals_are_joined_to_their_neighbours() {
    let spans = |lengths: &[(i64, u64)]| -> Vec<i64> {
        series(lengths).levels.iter().map(|level| level.span.0 / 1_000_000).collect()
    };
    assert_eq!(spans(&[(100, 1), (49, 1), (70, 1), (50, 1), (20, 1)]), [100, 119, 70]);
    assert_eq!(spans(&[(30, 1), (30, 1), (30, 1), (30, 1)]), [60, 60]);
    assert_eq!(spans(&[(20, 1)]), [20]);
    assert_eq!((spans(&[]), series(&[]).spans(), described(&series(&[]), &[0.5]).n), (vec![], None, 0));
}

/// Slow intervals are long, as under a starved receiver: 200 ms to 716 ms at 100 to 300 Mbit/s, and as many of 60 ms to
/// 140 ms at 500 to 700 Mbit/s.
fn simulated(intervals: usize, random: &mut Pcg64Mcg) -> Vec<(i64, u64)> {
    let mut between = |low: f64, high: f64| low + (high - low) * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let interval = |_| {
        let is_slow = between(0.0, 1.0) < 0.5;
        let (length_ms, mbps) = if is_slow {
            (between(200.0, 716.0).round(), between(100.0, 300.0))
        } else {
            (between(60.0, 140.0).round(), between(500.0, 700.0))
        };
        // 1 Mbit/s is a packet each millisecond.
        (length_ms as i64, (mbps * length_ms).round() as u64)
    };
    (0..intervals).map(interval).collect()
}

#[test]
fn intervals_of_confidence_cover_the_total_over_the_time() {
    // The shares of time of both kinds are as 100 to 458.
    let mean = (100.0 * 600e6 + 458.0 * 200e6) / 558.0;
    let median = 100e6 + 200e6 * 0.5 * 558.0 / 458.0;
    let mut random = Pcg64Mcg::seed_from_u64(16);
    for n in [30, 100, 400] {
        let (replicates, mut of_mean, mut of_median, mut of_alike) = (400, 0, 0, 0);
        for _ in 0..replicates {
            let series = series(&simulated(n, &mut random));
            let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: true };
            let bits: f64 = series.levels.iter().map(|level| level.bits).sum();
            let own = Some(bits * 1e9 / series.time_ns());
            let here = series.described(Metric::DeliveredRate, own, &|sample| describe(sample, &options));
            let rates = series.levels.iter().map(Level::rate).collect();
            let alike = describe(&Sample::new(Metric::DeliveredRate, rates), &options);
            let covers = |interval: Option<Interval>, truth: f64| {
                let [low, high] = interval.map_or([None; 2], |interval| [interval.low, interval.high]);
                // A missing end bounds nothing: few intervals may leave the median without one.
                u64::from(low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high))
            };
            of_mean += covers(here.mean_interval, mean);
            of_median += covers(here.quantiles[0].interval, median);
            of_alike += covers(alike.mean_interval, mean);
        }
        let share = |covered: u64| covered as f64 / replicates as f64;
        assert!(share(of_mean) >= 0.9 && share(of_median) >= 0.9, "{n}: {of_mean}, {of_median} of {replicates}");
        assert!(share(of_alike) <= 0.2, "the mean of the intervals' rates is another quantity: {of_alike}");
    }
}
