//! The round trip between a Raspberry Pi 4 and a Pi 3, idle and under load.

use super::published::{Column, FiguresOf, Published, PublishedRow};
use super::{Recipe, alike};
use crate::metric::Metric;

pub(super) const RECIPE: Recipe = Recipe {
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
    words_of_target: alike,
    published: Some(&PUBLISHED),
};

const PUBLISHED: Published = Published {
    heading: "round trip delay",
    metric: Metric::RoundTripDelay,
    own_units: 1e3,
    unit: "µs",
    decimals: 1,
    half: false,
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
        PublishedRow {
            label: "idle",
            factors: &[("load", "none"), ("count", "50000")],
            published: &[Some(170.0), Some(3256.0), Some(296.0), None, None, None],
            recomputed: &[None, None, Some(281.4), Some(283.0), Some(334.0), Some(693.0)],
            against_first: None,
        },
        PublishedRow {
            label: "network load",
            factors: &[("load", "net=90Mbit/s@both"), ("count", "50000")],
            published: &[Some(147.0), Some(3699.0), Some(288.0), None, None, None],
            recomputed: &[None, None, Some(278.7), Some(276.0), Some(327.0), Some(612.0)],
            against_first: None,
        },
        PublishedRow {
            label: "CPU load",
            factors: &[("load", "cpu=80%@both"), ("count", "50000")],
            published: &[Some(160.0), Some(12267.0), Some(414.0), None, None, None],
            recomputed: &[None, None, Some(288.4), Some(249.0), Some(1010.0), Some(8886.0)],
            against_first: None,
        },
        PublishedRow {
            label: "idle, 500,000",
            factors: &[("load", "none"), ("count", "500000")],
            published: &[Some(167.0), Some(3688.0), Some(340.0), None, None, None],
            recomputed: &[],
            against_first: None,
        },
    ],
    implied: &[("count", "50000")],
};
