//! Figures' data of whole runs, in numbers that a reader can compute.

use super::*;
use crate::facts::{CpuReadings, HostReadings, HostSample, IntervalCounts, StreamInterval};
use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, logged, scheduled, stream_interval};
use crate::plan::{Target, Work};
use crate::probe::{Fate, ProbeRecord};

fn of(source: &InMemory) -> RunDistribution {
    distribution(source, source.manifest.metric()).expect("rows in memory")
}

/// A closed loop of these delays in µs, a probe each ms; 0 is a lost probe.
fn of_delays(delays_us: impl IntoIterator<Item = i64>) -> RunDistribution {
    let row = |(seq, delay): (usize, i64)| {
        let row = closed(seq as u64, 5_000 + seq as i64 * 1_000, delay);
        if delay == 0 { but(row, Fate::Lost) } else { row }
    };
    of(&InMemory { batch: 1_000, ..InMemory::of(CLOSED, delays_us.into_iter().enumerate().map(row).collect()) })
}

fn tail_us(run: &RunDistribution) -> Vec<(f64, f64)> {
    run.tail.iter().map(|point| (point.tail, point.value_ns / 1e3)).collect()
}

#[test]
fn a_tail_is_the_share_of_all_probes_that_are_at_least_as_large() {
    let run = of_delays([30, 10, 0, 20, 20]);
    assert_eq!((run.n, run.lost, run.metric), (5, 1, Metric::RoundTripDelay));
    assert_eq!(tail_us(&run), [(1.0, 10.0), (0.8, 20.0), (0.4, 30.0)]);
    assert_eq!((run.statistics.p50, run.statistics.p99, run.statistics.mean), (Some(20_000.0), None, Some(20_000.0)));
    assert_eq!(run.duration_ns, Nanos::from_millis(4));
}

#[test]
fn a_large_run_keeps_few_points_and_each_of_the_largest() {
    let run = of_delays((0..200_000).map(|index| 10 + (index * 7_919) % 200_000));
    assert!(run.tail.len() <= 512 && run.tail.len() > 400, "{}", run.tail.len());
    let tail = tail_us(&run);
    assert_eq!((tail[0], tail[tail.len() - 1]), ((1.0, 10.0), (1.0 / 200_000.0, 200_009.0)));
    for (beyond, (share, value)) in tail.iter().rev().take(100).enumerate() {
        assert_eq!((*value, (share * 200_000.0).round()), (200_009.0 - beyond as f64, beyond as f64 + 1.0));
    }
    let steps = tail[..300].windows(2).map(|pair| pair[0].0 / pair[1].0);
    assert!(steps.clone().all(|step| (1.01..1.03).contains(&step)), "{:?}", steps.collect::<Vec<_>>());
    assert!(run.histogram.len() <= 160);
    assert_eq!(run.histogram.iter().map(|bin| bin.count).sum::<u64>(), 200_000);
    let grid = run.over_time.expect("measured probes");
    assert!(grid.columns <= 240 && grid.edges_ns.len() <= 97 && grid.cells.len() <= 8_000, "{}", grid.cells.len());
    assert_eq!(grid.cells.iter().map(|cell| cell.count).sum::<u64>(), 200_000);
    assert!(grid.column_ns.0 * grid.columns as i64 >= run.duration_ns.0);
}

#[test]
fn bins_join_at_whole_nanoseconds_and_hold_every_delay() {
    let log = of_delays([10, 20, 40, 80, 160, 320, 640, 1_280]).histogram;
    assert_eq!((log[0].low_ns, log[log.len() - 1].high_ns), (10_000, 1_280_001));
    let ratios = log[1..log.len() - 1].iter().map(|bin| bin.high_ns as f64 / bin.low_ns as f64);
    assert!(ratios.clone().all(|ratio| (1.04..1.05).contains(&ratio)), "{:?}", ratios.collect::<Vec<_>>());
    let narrow = of_delays([10, 11, 12, 13]).histogram;
    for bins in [&log, &narrow] {
        assert!(bins.len() > 80 && bins.windows(2).all(|pair| pair[0].high_ns == pair[1].low_ns));
        assert!(bins[0].count == 1 && bins[bins.len() - 1].count == 1);
    }
}

#[test]
fn histograms_of_runs_are_joined_without_dividing_a_bin() {
    let runs = [of_delays([41, 42, 42, 43, 44]), of_delays([40, 0, 90_000]), of_delays([0])];
    let joined = on_common_bins(&runs.iter().map(|run| run.histogram.as_slice()).collect::<Vec<_>>());
    let [narrow, wide, none] = joined.as_slice() else { panic!("a histogram of each run") };
    let counts = |bins: &[Bucket], low_us: i64, high_us: i64| -> u64 {
        let is_inside = |bin: &&Bucket| bin.high_ns > low_us * 1_000 && bin.low_ns < high_us * 1_000;
        bins.iter().filter(is_inside).map(|bin| bin.count).sum()
    };
    assert!(wide.len() <= 80 && narrow.iter().map(|bin| bin.low_ns).eq(wide.iter().map(|bin| bin.low_ns)));
    assert_eq!((counts(narrow, 40, 46), counts(wide, 40, 46), counts(wide, 89_000, 90_001)), (5, 1, 1));
    assert!(none.iter().all(|bin| bin.count == 0));
    let edges = |run: &RunDistribution| run.histogram.iter().map(|bin| bin.low_ns).collect::<Vec<_>>();
    let inner = wide.iter().map(|bin| bin.low_ns).filter(|low| (41_001..44_000).contains(low));
    assert!(inner.clone().count() > 0 || narrow.len() < 80);
    assert!(inner.into_iter().all(|edge| edges(&runs[0]).contains(&edge)));
}

#[test]
fn every_probe_is_in_the_cell_of_its_time_and_delay() {
    let rows = vec![
        scheduled(0, 1_000, 0, 10),
        scheduled(1, 1_100, 900, 10), // sent later, due in the same place
        but(scheduled(2, 2_000, 0, 0), Fate::Lost),
        but(scheduled(3, 3_000, 0, 0), Fate::NotSent),
        but(scheduled(4, 4_000, 0, 9_000), Fate::Late),
        scheduled(5, 241_000, 0, 40),
    ];
    let grid = of(&InMemory::of(EVERY_MS, rows)).over_time.expect("measured probes");
    assert_eq!((grid.columns, grid.column_ns), (240, Nanos(1_000_001)));
    assert_eq!((grid.edges_ns[0], grid.edges_ns[grid.edges_ns.len() - 1]), (10_000, 40_001));
    let cell = |column, row, count| GridCell { column, row, count };
    assert_eq!(grid.cells, [cell(0, 0, 2), cell(239, grid.edges_ns.len() - 2, 1)]);
    assert_eq!((&grid.lost[..3], grid.lost.iter().sum::<u64>()), (&[1, 0, 1][..], 2));
}

#[test]
fn a_wake_up_counts_from_its_due_time() {
    let mut source = InMemory::of(EVERY_MS, Vec::new());
    source.manifest.kind = Kind::Wakeup;
    let mut rows: Vec<ProbeRecord> = (0..3).map(|seq| scheduled(seq, seq as i64 * 1_000, 0, 50)).collect();
    rows[2] = scheduled(2, 2_000, 7, 50);
    source.rows = rows;
    let run = of(&source);
    assert_eq!((run.metric, tail_us(&run)), (Metric::WakeupLatency, vec![(1.0, 50.0), (1.0 / 3.0, 57.0)]));
    let grid = run.over_time.expect("measured wake-ups");
    assert_eq!((grid.edges_ns[0], grid.edges_ns[grid.edges_ns.len() - 1]), (50_000, 57_001));
}

#[test]
fn runs_without_a_distribution_are_empty_and_bounded() {
    let none = of(&InMemory::of(EVERY_MS, Vec::new()));
    assert_eq!((none.n, none.tail.len(), none.histogram.len(), none.over_time), (0, 0, 0, None));
    let lost = of_delays([0; 500]);
    assert_eq!((lost.n, lost.lost, lost.tail.len(), lost.histogram.len()), (500, 500, 0, 0));
    let grid = lost.over_time.expect("lost probes were measured");
    assert!(grid.edges_ns.is_empty() && grid.cells.is_empty());
    assert_eq!(grid.lost.iter().sum::<u64>(), 500);
    let one = of_delays([42]);
    assert_eq!((tail_us(&one), one.histogram.len()), (vec![(1.0, 42.0)], 1));
    let grid = one.over_time.expect("one probe");
    assert_eq!((grid.columns, grid.cells.len(), one.duration_ns), (1, 1, Nanos::ZERO));
    let equal = of_delays([7; 1_000]);
    assert_eq!((tail_us(&equal), equal.histogram[0].count), (vec![(1.0, 7.0)], 1_000));
    // Delays of zero or less, as clocks that step give them.
    let signed = of_delays([-20, 5, -3, 9]);
    assert_eq!(tail_us(&signed), [(1.0, -20.0), (0.75, -3.0), (0.5, 5.0), (0.25, 9.0)]);
    assert_eq!(signed.histogram.iter().map(|bin| bin.count).sum::<u64>(), 4);
}

#[test]
fn edges_of_extreme_values_ascend() {
    for [min, max] in [[i64::MIN, i64::MAX - 1], [0, 0], [-5, -5], [1, i64::MAX - 1], [i64::MAX - 2, i64::MAX - 1]] {
        let edges = marginal::edges(min, max, 160);
        assert!(edges.len() <= 161 && edges.windows(2).all(|pair| pair[0] < pair[1]), "{min} {max}: {edges:?}");
        assert_eq!((edges[0], edges[edges.len() - 1]), (min, max + 1));
        assert_eq!((marginal::bin_of(&edges, min), marginal::bin_of(&edges, max)), (0, edges.len() - 2));
    }
}

/// Samples of CPUs 0 to 9 each 100 ms, of which CPU `n` is busy for `n` per cent, with 10 interrupts each time.
fn samples(count: i64) -> Vec<(Side, HostSample)> {
    let cpu = |seq: i64, cpu: u16| CpuReadings {
        busy_ns: Some(seq * i64::from(cpu) * 1_000_000),
        interrupts: Some(seq * 10),
        frequency_khz: Some(if seq == 7 { 600_000 } else { 1_500_000 }),
        ..CpuReadings::default()
    };
    let sample = |seq: i64| HostSample {
        seq: seq as u64,
        start_ns: seq * 100_000_000,
        end_ns: seq * 100_000_000,
        sampler_cpu: None,
        host: HostReadings::default(),
        cpus: (0..10).map(|number| (number, cpu(seq, number))).collect(),
    };
    (0..count).map(|seq| (Side::Local, sample(seq))).collect()
}

#[test]
fn the_pinned_and_the_busiest_cpus_are_shown_on_the_time_of_the_probes() {
    // Probes from 150 ms on; pinned to CPUs 0 and 1 by the manifest of these tests.
    let rows = vec![closed(0, 150_000, 40), closed(1, 1_150_000, 40)];
    let run = of(&InMemory { hosts: samples(20), ..InMemory::of(CLOSED, rows) });
    let cpus: Vec<_> = run.host.iter().filter(|it| it.quantity == HostQuantity::BusyShare).map(|it| it.cpu).collect();
    assert_eq!(cpus, [0, 1, 8, 9]);
    assert!(run.host.iter().all(|series| series.is_pinned == (series.cpu < 2)), "{:?}", run.host);
    let of_nine = |quantity| {
        let series = run.host.iter().find(|it| it.cpu == 9 && it.quantity == quantity).expect("a series");
        series.points.iter().map(|point| (point.at_ns / 1_000_000, point.value)).collect::<Vec<_>>()
    };
    let busy = of_nine(HostQuantity::BusyShare);
    assert_eq!((busy[0].0, busy[1].0, busy[busy.len() - 1].0), (0, 50, 1_000));
    assert!(busy.iter().all(|(_, share)| (share - 0.09).abs() < 1e-12), "{busy:?}");
    assert!(of_nine(HostQuantity::InterruptRate).iter().all(|(_, rate)| (rate - 100.0).abs() < 1e-9));
    let slow: Vec<_> = of_nine(HostQuantity::Frequency).into_iter().filter(|(_, khz)| *khz == 600_000_000.0).collect();
    assert_eq!(slow, [(550, 600_000_000.0)]);
}

#[test]
fn a_pin_belongs_to_the_host_of_its_end() {
    let rows = vec![closed(0, 150_000, 40), closed(1, 1_150_000, 40)];
    let of_both =
        samples(20).into_iter().flat_map(|(_, sample)| [Side::Local, Side::Peer].map(|side| (side, sample.clone())));
    let mut source = InMemory { hosts: of_both.collect(), ..InMemory::of(CLOSED, rows) };
    source.manifest.spec.target = Target::Ssh { host: "pi".into() };
    let run = of(&source);
    let pinned = |side| -> Vec<u16> {
        let of_side = run.host.iter().filter(|it| it.side == side && it.quantity == HostQuantity::BusyShare);
        of_side.filter(|it| it.is_pinned).map(|it| it.cpu).collect()
    };
    assert_eq!((pinned(Side::Local), pinned(Side::Peer)), (vec![0], vec![1]));
}

#[test]
fn the_host_of_a_long_run_keeps_its_extremes_in_few_points() {
    let rows = vec![closed(0, 0, 40), closed(1, 999_900_000, 40)];
    let run = of(&InMemory { hosts: samples(10_000), ..InMemory::of(CLOSED, rows) });
    for series in &run.host {
        assert!(series.points.len() <= 480 && series.points.len() > 100, "{}", series.points.len());
        assert!(series.points.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        let is_slow = series.points.iter().any(|point| point.value == 600_000_000.0);
        assert_eq!(is_slow, series.quantity == HostQuantity::Frequency);
    }
}

#[test]
fn rates_of_a_stream_are_of_both_ends_from_their_own_beginning() {
    let offered = |packets| IntervalCounts::Offered { packets, refused: 0, skipped: 0 };
    let counted = |polled, delivered| IntervalCounts::Counted {
        polled,
        delivered,
        reordered: 0,
        duplicates: 0,
        outside_window: 0,
        socket_drops: None,
    };
    let intervals = vec![
        stream_interval(1_000, offered(200)),
        stream_interval(1_100, offered(100)),
        stream_interval(7_000, counted(200, 150)),
        stream_interval(7_100, counted(100, 100)),
    ];
    let run = of(&InMemory::of_stream(1, intervals));
    let rates = |run: &RunDistribution| {
        let points =
            |points: &[TimedValue]| points.iter().map(|it| (it.at_ns / 1_000_000, it.value)).collect::<Vec<_>>();
        [&run.rates.offered, &run.rates.delivered, &run.rates.lost].map(|rate| points(rate))
    };
    let [offered_rate, delivered_rate, lost_rate] = rates(&run);
    assert_eq!(offered_rate, [(0, 2e6), (100, 1e6), (200, 1e6)]);
    assert_eq!(delivered_rate, [(0, 1.5e6), (100, 1e6), (200, 1e6)]);
    assert_eq!(lost_rate, [(0, 0.5e6), (100, 0.0), (200, 0.0)]);
    assert_eq!((run.statistics.metric, run.statistics.mean), (Metric::DeliveredRate, Some(1.25e6)));
    assert_eq!((run.n, &run.over_time, run.duration_ns), (0, &None, Nanos::from_millis(200)));
    let mut source = logged(Vec::new(), true);
    source.manifest.kind = Kind::Stream;
    source.intervals = vec![stream_interval(0, offered(200)), stream_interval(0, counted(100, 100))];
    for (states_losses, lost) in [(true, vec![(0, 0.0), (100, 0.0)]), (false, vec![])] {
        if let Work::Import(import) = &mut source.manifest.spec.work {
            (import.rows, import.states_losses, import.size_bytes) = (Kind::Stream, states_losses, Some(125));
        }
        let expected = [vec![(0, 2e6), (100, 2e6)], vec![(0, 1e6), (100, 1e6)], lost];
        assert_eq!(rates(&of(&source)), expected, "a rate of 0 is a statement too");
    }
    // The receiver counted for 20 ms of the second bin, and the sender until the begin of the third.
    let last = StreamInterval { end_ns: 7_120_000_000, ..stream_interval(7_100, counted(20, 20)) };
    let unequal = vec![
        stream_interval(1_000, offered(200)),
        stream_interval(1_100, offered(100)),
        StreamInterval { end_ns: 1_210_000_000, ..stream_interval(1_200, offered(10)) },
        stream_interval(7_000, counted(200, 200)),
        last,
    ];
    let [offered_rate, delivered_rate, _] = rates(&of(&InMemory::of_stream(1, unequal)));
    assert_eq!(offered_rate, [(0, 2e6), (100, 1e6), (200, 1e6), (210, 1e6)]);
    assert_eq!(delivered_rate, [(0, 2e6), (100, 1e6), (120, 1e6)]);
}
