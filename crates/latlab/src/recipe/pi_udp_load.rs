//! UDP between a Raspberry Pi 4 and a laptop, while the Pi's CPUs are loaded.

use super::published::{Column, FiguresOf, Published, PublishedRow};
use super::{Recipe, alike};
use crate::metric::Metric;

pub(super) const RECIPE: Recipe = Recipe {
    name: "pi-udp-load",
    title: "UDP under CPU load, one packet a millisecond",
    origin: "det-bypass: a Raspberry Pi 4 over 5 GHz WiFi to a laptop, plain sockets, 10,000 packets a row, 1 ms apart; \
             latency is ((t4 - t1) - (t3 - t2)) / 2, half of the round trip less the reflector's dwell",
    lesson: "The published statistics were taken over a table that still held the packet ids beside the latencies: every mean is \
             half the truth, every quantile is of the wrong population, and the smallest value is 1 ns, the first id. A statistic \
             is of one named metric of one sample, with n beside it. An earlier 80 % run lost 5 packets and had \
             p99.9 = 28.2 ms; the published row is the second try. Runs are repeated, and all of them are kept.",
    template: include_str!("../../recipes/pi-udp-load.toml"),
    words: [
        &[("COUNT", "500"), ("WARMUP", "100ms"), ("RUNS", "5"), ("BLOCKS", "1"), ("SETTLE", "0s")],
        &[("COUNT", "10_000"), ("WARMUP", "1s"), ("RUNS", "4"), ("BLOCKS", "3"), ("SETTLE", "1s")],
        &[("COUNT", "10_000"), ("WARMUP", "1s"), ("RUNS", "10"), ("BLOCKS", "3"), ("SETTLE", "1s")],
    ],
    usual_target: "local",
    words_of_target: alike,
    published: Some(&PUBLISHED),
};

const PUBLISHED: Published = Published {
    heading: "round trip less dwell / 2",
    metric: Metric::RoundTripDelayLessDwell,
    own_units: 1e6,
    unit: "ms",
    decimals: 3,
    half: true,
    figures_of: FiguresOf::Singletons,
    columns: &[
        Column::Min,
        Column::Mean,
        Column::Quantile(0.5),
        Column::Quantile(0.99),
        Column::Quantile(0.999),
        Column::Quantile(0.9999),
        Column::Max,
    ],
    rows: &[
        row(
            "no load",
            &[("load", "none")],
            &[None, Some(1.821), None, None, Some(11.026), Some(13.725), Some(14.723)],
            &[Some(1.442), Some(3.636), Some(3.490), Some(7.162), Some(12.030), Some(14.225), Some(14.723)],
        ),
        row(
            "CPU load 20 %",
            &[("load", "cpu=20%")],
            &[None, Some(1.690), None, None, Some(9.211), Some(16.067), Some(17.065)],
            &[Some(1.190), Some(3.375), Some(3.300), Some(6.465), Some(12.071), Some(16.566), Some(17.065)],
        ),
        row(
            "CPU load 50 %",
            &[("load", "cpu=50%")],
            &[None, Some(2.912), None, None, Some(66.592), Some(74.329), Some(75.325)],
            &[Some(1.149), Some(5.820), Some(3.633), Some(47.309), Some(70.336), Some(74.828), Some(75.325)],
        ),
        row(
            "CPU load 80 %",
            &[("load", "cpu=80%")],
            &[None, Some(1.823), None, None, Some(19.805), Some(24.226), Some(24.845)],
            &[Some(1.182), Some(3.642), Some(3.437), Some(9.024), Some(22.230), Some(24.346), Some(24.845)],
        ),
    ],
    implied: &[],
};

const fn row(
    label: &'static str,
    factors: &'static [(&'static str, &'static str)],
    published: &'static [Option<f64>],
    recomputed: &'static [Option<f64>],
) -> PublishedRow {
    PublishedRow { label, factors, published, recomputed, against_first: None }
}
