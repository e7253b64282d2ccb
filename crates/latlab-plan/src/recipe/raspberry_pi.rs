//! Measurements with Raspberry Pis: UDP under CPU load, and round trips.

use super::definition::{Column, FiguresOf, Published, PublishedRow, Recipe, no_words};
use crate::metric::Metric;

/// UDP between a Raspberry Pi 4 and a laptop, while the Pi's CPUs are loaded.
pub(super) const UDP_LOAD: Recipe = Recipe {
    name: "pi-udp-load",
    title: "UDP under CPU load, one packet a millisecond, over sockets and past the network stack",
    origin: "det-bypass: a Raspberry Pi 4 over 5 GHz WiFi to a laptop, plain sockets, 10,000 packets a row, 1 ms apart; \
             latency is ((t4 - t1) - (t3 - t2)) / 2, half of the round trip less the reflector's dwell",
    lesson: "The published statistics were taken over a table that still held the packet ids beside the latencies: every mean is \
             half the truth, every quantile is of the wrong population, and the smallest value is 1 ns, the first id. A statistic \
             is of one named metric of one sample, with n beside it. An earlier 80 % run lost 5 packets and had \
             p99.9 = 28.2 ms; the published row is the second try. Runs are repeated, and all of them are kept. The rows past \
             the network stack were measured in the same blocks. They need the rights of AF_XDP; an AF_XDP \
             reflector or an answer in the driver needs a `lab`, an `ssh:` or a `cmd:` target. On `local` AF_XDP goes over IPv6, so that `lab` compares better.",
    template: include_str!("../../recipes/pi-udp-load.toml"),
    words: [
        &[("COUNT", "500"), ("WARMUP", "100ms"), ("RUNS", "2"), ("BLOCKS", "1"), ("SETTLE", "0s")],
        // As many probes as half an hour on `lab` allows with enough runs for its comparisons: p99.9 takes 10,000.
        &[("COUNT", "14_000"), ("WARMUP", "1s"), ("RUNS", "4"), ("BLOCKS", "2"), ("SETTLE", "1s")],
        // p99.99 takes 100,000.
        &[("COUNT", "150_000"), ("WARMUP", "1s"), ("RUNS", "3"), ("BLOCKS", "3"), ("SETTLE", "1s")],
    ],
    usual_target: "local",
    words_of_target: no_words,
    published: Some(&UDP_LOAD_FIGURES),
};

const UDP_LOAD_FIGURES: Published = Published {
    heading: "round trip without reflector dwell, halved",
    metric: Metric::RoundTripDelayLessDwell,
    own_units: 1e6,
    unit: "ms",
    decimals: 3,
    half: true,
    sources: Published::FROM_RAW_DATA,
    whole: None,
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
            "UDP, no load",
            &[("load", "none"), ("transport", "udp"), ("reflect", "none")],
            &[None, Some(1.821), None, None, Some(11.026), Some(13.725), Some(14.723)],
            &[Some(1.442), Some(3.636), Some(3.490), Some(7.162), Some(12.030), Some(14.225), Some(14.723)],
        ),
        row(
            "UDP, CPU load 20 %",
            &[("load", "cpu=20%"), ("transport", "udp"), ("reflect", "none")],
            &[None, Some(1.690), None, None, Some(9.211), Some(16.067), Some(17.065)],
            &[Some(1.190), Some(3.375), Some(3.300), Some(6.465), Some(12.071), Some(16.566), Some(17.065)],
        ),
        row(
            "UDP, CPU load 50 %",
            &[("load", "cpu=50%"), ("transport", "udp"), ("reflect", "none")],
            &[None, Some(2.912), None, None, Some(66.592), Some(74.329), Some(75.325)],
            &[Some(1.149), Some(5.820), Some(3.633), Some(47.309), Some(70.336), Some(74.828), Some(75.325)],
        ),
        row(
            "UDP, CPU load 80 %",
            &[("load", "cpu=80%"), ("transport", "udp"), ("reflect", "none")],
            &[None, Some(1.823), None, None, Some(19.805), Some(24.226), Some(24.845)],
            &[Some(1.182), Some(3.642), Some(3.437), Some(9.024), Some(22.230), Some(24.346), Some(24.845)],
        ),
        row("AF_XDP, no load", &[("load", "none"), ("transport", "xdp"), ("reflect", "none")], &[], &[]),
        row("AF_XDP, CPU load 20 %", &[("load", "cpu=20%"), ("transport", "xdp"), ("reflect", "none")], &[], &[]),
        row("AF_XDP, CPU load 50 %", &[("load", "cpu=50%"), ("transport", "xdp"), ("reflect", "none")], &[], &[]),
        row("AF_XDP, CPU load 80 %", &[("load", "cpu=80%"), ("transport", "xdp"), ("reflect", "none")], &[], &[]),
        row("AF_XDP and XDP_TX, no load", &[("load", "none"), ("transport", "xdp"), ("reflect", "xdp-tx")], &[], &[]),
        row(
            "AF_XDP and XDP_TX, CPU load 20 %",
            &[("load", "cpu=20%"), ("transport", "xdp"), ("reflect", "xdp-tx")],
            &[],
            &[],
        ),
        row(
            "AF_XDP and XDP_TX, CPU load 50 %",
            &[("load", "cpu=50%"), ("transport", "xdp"), ("reflect", "xdp-tx")],
            &[],
            &[],
        ),
        row(
            "AF_XDP and XDP_TX, CPU load 80 %",
            &[("load", "cpu=80%"), ("transport", "xdp"), ("reflect", "xdp-tx")],
            &[],
            &[],
        ),
    ],
    // Experiments of an earlier form of the recipe had UDP sockets only.
    implied: &[("transport", "udp"), ("reflect", "none")],
};

/// The round trip between a Raspberry Pi 4 and a Pi 3, idle and under load.
pub(super) const ROUND_TRIP: Recipe = Recipe {
    name: "pi-roundtrip",
    title: "UDP round trips in a closed loop, idle and under load",
    origin: "DES course project: Raspberry Pi 4 to Pi 3, 24 bytes there and back, one at a time, 50,000 cycles a row",
    lesson: "The published mean is the mean of the distinct values: a table of values and counts was averaged, which is 44 % \
             too much under CPU load. Neighbouring samples are strongly correlated (lag 1: 0.23 to 0.80), so that comparing \
             two chunks of 1,000 of them from the same idle run by Student's t or Mann-Whitney finds a difference in 64 to 94 % of \
             cases. A run, not a probe, is the unit, and runs interleave.",
    template: include_str!("../../recipes/pi-roundtrip.toml"),
    words: [
        &[
            ("COUNT_IN_BASE", "count = 5_000\n"),
            ("COUNT_IN_FACTORS", ""),
            ("WARMUP", "100ms"),
            ("RUNS", "5"),
            ("BLOCKS", "1"),
            ("SETTLE", "0s"),
        ],
        &[
            ("COUNT_IN_BASE", "count = 50_000\n"),
            ("COUNT_IN_FACTORS", ""),
            ("WARMUP", "1s"),
            ("RUNS", "4"),
            ("BLOCKS", "3"),
            ("SETTLE", "1s"),
        ],
        &[
            ("COUNT_IN_BASE", ""),
            ("COUNT_IN_FACTORS", "count = [50_000, 500_000]\n"),
            ("WARMUP", "1s"),
            ("RUNS", "3"),
            ("BLOCKS", "3"),
            ("SETTLE", "1s"),
        ],
    ],
    usual_target: "local",
    words_of_target: no_words,
    published: Some(&ROUND_TRIP_FIGURES),
};

const ROUND_TRIP_FIGURES: Published = Published {
    heading: "round trip delay",
    metric: Metric::RoundTripDelay,
    own_units: 1e3,
    unit: "µs",
    decimals: 1,
    half: false,
    sources: Published::FROM_RAW_DATA,
    whole: None,
    figures_of: FiguresOf::Singletons,
    columns: &[
        Column::Min,
        Column::Max,
        Column::Mean,
        Column::Quantile(0.5),
        Column::Quantile(0.99),
        Column::Quantile(0.999),
    ],
    rows: &[
        row(
            "idle",
            &[("load", "none"), ("count", "50000")],
            &[Some(170.0), Some(3256.0), Some(296.0), None, None, None],
            &[None, None, Some(281.4), Some(283.0), Some(334.0), Some(693.0)],
        ),
        row(
            "network load",
            &[("load", "net=90Mbit/s@both"), ("count", "50000")],
            &[Some(147.0), Some(3699.0), Some(288.0), None, None, None],
            &[None, None, Some(278.7), Some(276.0), Some(327.0), Some(612.0)],
        ),
        row(
            "CPU load",
            &[("load", "cpu=80%@both"), ("count", "50000")],
            &[Some(160.0), Some(12267.0), Some(414.0), None, None, None],
            &[None, None, Some(288.4), Some(249.0), Some(1010.0), Some(8886.0)],
        ),
        row(
            "idle, 500,000",
            &[("load", "none"), ("count", "500000")],
            &[Some(167.0), Some(3688.0), Some(340.0), None, None, None],
            &[],
        ),
    ],
    implied: &[("count", "50000")],
};

const fn row(
    label: &'static str,
    factors: &'static [(&'static str, &'static str)],
    published: &'static [Option<f64>],
    recomputed: &'static [Option<f64>],
) -> PublishedRow {
    PublishedRow { label, factors, published, recomputed, against_first: None }
}
