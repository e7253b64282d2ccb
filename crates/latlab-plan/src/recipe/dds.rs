//! DDS round trips: two test beds, four combinations of policies, nine sizes.

use super::definition::{Column, FiguresOf, Published, PublishedRow, Recipe, no_words};
use crate::metric::Metric;

pub(super) const PING_PONG: Recipe = Recipe {
    name: "dds-pingpong",
    title: "DDS round trips by reliability, key and size, beside UDP",
    origin: "RTI Perftest 3.0 with RTI Connext DDS over 1 Gbit/s: two Xeon-class hosts (3.33 GHz, I350, CentOS 7.1), and two \
             Raspberry Pi 4; a sample there and back, one at a time; the figures are round trips divided by 2. Here the DDS is \
             Eclipse Cyclone DDS",
    lesson: "What the publication calls latency is half of a round trip: the line `round trip` has the whole. Its 99.99 % is \
             printed whatever the number of samples is; here a quantile that the runs do not support is in brackets. The UDP \
             rows were measured in the same blocks, and the comparison with them is the price of DDS itself: of its library, \
             its encoding and its fragments.",
    template: include_str!("../../recipes/dds-pingpong.toml"),
    words: [
        &[
            ("COUNT", "1_000"),
            ("WARMUP", "50ms"),
            ("RUNS", "2"),
            ("BLOCKS", "1"),
            ("SETTLE", "0s"),
            ("SIZES", "[32, 63000]"),
        ],
        &[
            ("COUNT", "10_000"),
            ("WARMUP", "200ms"),
            ("RUNS", "3"),
            ("BLOCKS", "2"),
            ("SETTLE", "200ms"),
            ("SIZES", SIZES),
        ],
        &[("COUNT", "100_000"), ("WARMUP", "1s"), ("RUNS", "4"), ("BLOCKS", "3"), ("SETTLE", "1s"), ("SIZES", SIZES)],
    ],
    usual_target: "local",
    words_of_target: no_words,
    published: Some(&FIGURES),
};

const SIZES: &str = "[32, 64, 128, 256, 512, 1024, 4096, 8192, 63000]";

/// A row: its label, reliability, key and size, and the figures of both test beds.
macro_rules! cell {
    ($label:literal, $reliability:literal, $keyed:literal, $size:literal, [$($xeon:literal),*], [$($pi:literal),*]) => {
        PublishedRow {
            label: $label,
            factors: &[("transport", "dds"), ("reliability", $reliability), ("keyed", $keyed), ("size", $size)],
            published: &[$(Some($xeon)),*],
            recomputed: &[$(Some($pi)),*],
            against_first: None,
        }
    };
}

const FIGURES: Published = Published {
    heading: "round trip / 2",
    metric: Metric::RoundTripDelay,
    own_units: 1e3,
    unit: "µs",
    decimals: 1,
    half: true,
    sources: ["Xeon, 1 GbE", "Pi 4, 1 GbE"],
    whole: Some("round trip"),
    figures_of: FiguresOf::Singletons,
    columns: &[
        Column::Mean,
        Column::Stddev,
        Column::Min,
        Column::Max,
        Column::Quantile(0.5),
        Column::Quantile(0.9),
        Column::Quantile(0.99),
        Column::Quantile(0.9999),
    ],
    rows: &[
        udp("UDP, 32 B", &[("transport", "udp"), ("size", "32")]),
        udp("UDP, 64 B", &[("transport", "udp"), ("size", "64")]),
        udp("UDP, 128 B", &[("transport", "udp"), ("size", "128")]),
        udp("UDP, 256 B", &[("transport", "udp"), ("size", "256")]),
        udp("UDP, 512 B", &[("transport", "udp"), ("size", "512")]),
        udp("UDP, 1,024 B", &[("transport", "udp"), ("size", "1024")]),
        udp("UDP, 4,096 B", &[("transport", "udp"), ("size", "4096")]),
        udp("UDP, 8,192 B", &[("transport", "udp"), ("size", "8192")]),
        udp("UDP, 63,000 B", &[("transport", "udp"), ("size", "63000")]),
        cell!(
            "best effort, unkeyed, 32 B",
            "best-effort",
            "false",
            "32",
            [24.0, 0.5, 23.0, 299.0, 24.0, 24.0, 25.0, 27.0],
            [64.0, 4.5, 61.0, 220.0, 64.0, 65.0, 78.0, 159.0]
        ),
        cell!(
            "best effort, unkeyed, 64 B",
            "best-effort",
            "false",
            "64",
            [25.0, 0.6, 23.0, 308.0, 25.0, 25.0, 26.0, 28.0],
            [67.0, 5.3, 61.0, 214.0, 65.0, 77.0, 80.0, 151.0]
        ),
        cell!(
            "best effort, unkeyed, 128 B",
            "best-effort",
            "false",
            "128",
            [26.0, 0.6, 24.0, 276.0, 26.0, 26.0, 27.0, 29.0],
            [68.0, 7.1, 63.0, 2093.0, 66.0, 79.0, 82.0, 155.0]
        ),
        cell!(
            "best effort, unkeyed, 256 B",
            "best-effort",
            "false",
            "256",
            [28.0, 0.6, 27.0, 316.0, 28.0, 28.0, 30.0, 32.0],
            [71.0, 5.9, 65.0, 262.0, 69.0, 81.0, 84.0, 172.0]
        ),
        cell!(
            "best effort, unkeyed, 512 B",
            "best-effort",
            "false",
            "512",
            [],
            [76.0, 5.6, 71.0, 221.0, 74.0, 87.0, 91.0, 162.0]
        ),
        cell!(
            "best effort, unkeyed, 1,024 B",
            "best-effort",
            "false",
            "1024",
            [43.0, 0.5, 42.0, 312.0, 43.0, 43.0, 44.0, 47.0],
            [88.0, 7.3, 81.0, 256.0, 85.0, 99.0, 106.0, 176.0]
        ),
        cell!(
            "best effort, unkeyed, 4,096 B",
            "best-effort",
            "false",
            "4096",
            [76.0, 0.8, 74.0, 434.0, 77.0, 77.0, 78.0, 81.0],
            []
        ),
        cell!(
            "best effort, unkeyed, 8,192 B",
            "best-effort",
            "false",
            "8192",
            [113.0, 0.7, 112.0, 360.0, 113.0, 114.0, 115.0, 118.0],
            [181.0, 11.5, 175.0, 1395.0, 180.0, 182.0, 210.0, 412.0]
        ),
        cell!(
            "best effort, unkeyed, 63,000 B",
            "best-effort",
            "false",
            "63000",
            [604.0, 1.3, 603.0, 790.0, 604.0, 606.0, 607.0, 624.0],
            [864.0, 43.0, 848.0, 2698.0, 860.0, 871.0, 893.0, 2149.0]
        ),
        cell!(
            "best effort, keyed, 32 B",
            "best-effort",
            "true",
            "32",
            [25.0, 0.6, 23.0, 83.0, 25.0, 25.0, 26.0, 28.0],
            [67.0, 5.6, 62.0, 274.0, 65.0, 78.0, 80.0, 160.0]
        ),
        cell!(
            "best effort, keyed, 64 B",
            "best-effort",
            "true",
            "64",
            [25.0, 0.5, 24.0, 295.0, 25.0, 25.0, 26.0, 28.0],
            [68.0, 5.7, 63.0, 223.0, 66.0, 79.0, 81.0, 162.0]
        ),
        cell!(
            "best effort, keyed, 128 B",
            "best-effort",
            "true",
            "128",
            [26.0, 0.5, 25.0, 80.0, 26.0, 27.0, 28.0, 30.0],
            [69.0, 5.5, 64.0, 225.0, 67.0, 80.0, 82.0, 160.0]
        ),
        cell!(
            "best effort, keyed, 256 B",
            "best-effort",
            "true",
            "256",
            [30.0, 0.7, 28.0, 316.0, 29.0, 30.0, 31.0, 33.0],
            [71.0, 5.5, 67.0, 232.0, 70.0, 83.0, 85.0, 158.0]
        ),
        cell!(
            "best effort, keyed, 512 B",
            "best-effort",
            "true",
            "512",
            [],
            [77.0, 5.7, 72.0, 245.0, 75.0, 88.0, 90.0, 165.0]
        ),
        cell!(
            "best effort, keyed, 1,024 B",
            "best-effort",
            "true",
            "1024",
            [44.0, 0.6, 43.0, 334.0, 44.0, 44.0, 46.0, 49.0],
            [89.0, 7.2, 83.0, 236.0, 86.0, 100.0, 103.0, 178.0]
        ),
        cell!(
            "best effort, keyed, 4,096 B",
            "best-effort",
            "true",
            "4096",
            [76.0, 1.0, 75.0, 360.0, 77.0, 77.0, 78.0, 81.0],
            []
        ),
        cell!(
            "best effort, keyed, 8,192 B",
            "best-effort",
            "true",
            "8192",
            [114.0, 0.8, 112.0, 363.0, 114.0, 114.0, 115.0, 118.0],
            [182.0, 8.6, 176.0, 635.0, 181.0, 183.0, 205.0, 405.0]
        ),
        cell!(
            "best effort, keyed, 63,000 B",
            "best-effort",
            "true",
            "63000",
            [605.0, 1.1, 603.0, 659.0, 605.0, 606.0, 608.0, 623.0],
            [865.0, 42.6, 849.0, 2138.0, 860.0, 872.0, 894.0, 2039.0]
        ),
        cell!(
            "reliable, unkeyed, 32 B",
            "reliable",
            "false",
            "32",
            [27.0, 1.4, 25.0, 559.0, 26.0, 29.0, 30.0, 33.0],
            [85.0, 5.6, 78.0, 276.0, 83.0, 91.0, 102.0, 200.0]
        ),
        cell!(
            "reliable, unkeyed, 64 B",
            "reliable",
            "false",
            "64",
            [28.0, 1.5, 25.0, 322.0, 26.0, 31.0, 32.0, 34.0],
            [87.0, 5.3, 79.0, 267.0, 86.0, 92.0, 103.0, 185.0]
        ),
        cell!(
            "reliable, unkeyed, 128 B",
            "reliable",
            "false",
            "128",
            [29.0, 1.5, 25.0, 317.0, 29.0, 31.0, 32.0, 35.0],
            [88.0, 5.1, 81.0, 270.0, 87.0, 93.0, 103.0, 215.0]
        ),
        cell!(
            "reliable, unkeyed, 256 B",
            "reliable",
            "false",
            "256",
            [32.0, 1.3, 30.0, 581.0, 32.0, 34.0, 35.0, 37.0],
            [90.0, 7.3, 82.0, 2149.0, 89.0, 95.0, 107.0, 218.0]
        ),
        cell!(
            "reliable, unkeyed, 512 B",
            "reliable",
            "false",
            "512",
            [],
            [96.0, 6.2, 88.0, 1713.0, 94.0, 100.0, 114.0, 180.0]
        ),
        cell!(
            "reliable, unkeyed, 1,024 B",
            "reliable",
            "false",
            "1024",
            [47.0, 1.2, 45.0, 342.0, 46.0, 49.0, 50.0, 52.0],
            [108.0, 9.8, 101.0, 2157.0, 105.0, 118.0, 131.0, 229.0]
        ),
        cell!(
            "reliable, unkeyed, 4,096 B",
            "reliable",
            "false",
            "4096",
            [80.0, 1.3, 78.0, 356.0, 79.0, 81.0, 83.0, 85.0],
            []
        ),
        cell!(
            "reliable, unkeyed, 8,192 B",
            "reliable",
            "false",
            "8192",
            [117.0, 1.5, 115.0, 546.0, 116.0, 119.0, 120.0, 123.0],
            [184.0, 11.0, 176.0, 478.0, 181.0, 190.0, 222.0, 420.0]
        ),
        cell!(
            "reliable, unkeyed, 63,000 B",
            "reliable",
            "false",
            "63000",
            [609.0, 1.2, 607.0, 662.0, 609.0, 611.0, 613.0, 625.0],
            [868.0, 43.5, 849.0, 2234.0, 863.0, 880.0, 905.0, 2040.0]
        ),
        cell!(
            "reliable, keyed, 32 B",
            "reliable",
            "true",
            "32",
            [27.0, 1.4, 25.0, 309.0, 27.0, 30.0, 31.0, 33.0],
            [87.0, 5.5, 79.0, 290.0, 86.0, 92.0, 101.0, 215.0]
        ),
        cell!(
            "reliable, keyed, 64 B",
            "reliable",
            "true",
            "64",
            [28.0, 1.9, 26.0, 590.0, 27.0, 31.0, 33.0, 35.0],
            [88.0, 5.1, 81.0, 259.0, 86.0, 92.0, 105.0, 196.0]
        ),
        cell!(
            "reliable, keyed, 128 B",
            "reliable",
            "true",
            "128",
            [30.0, 1.3, 27.0, 312.0, 29.0, 32.0, 33.0, 35.0],
            [89.0, 4.9, 81.0, 242.0, 88.0, 93.0, 105.0, 188.0]
        ),
        cell!(
            "reliable, keyed, 256 B",
            "reliable",
            "true",
            "256",
            [33.0, 1.3, 29.0, 313.0, 32.0, 35.0, 36.0, 39.0],
            [91.0, 5.0, 84.0, 274.0, 90.0, 96.0, 109.0, 211.0]
        ),
        cell!(
            "reliable, keyed, 512 B",
            "reliable",
            "true",
            "512",
            [],
            [96.0, 5.2, 89.0, 316.0, 95.0, 101.0, 113.0, 223.0]
        ),
        cell!(
            "reliable, keyed, 1,024 B",
            "reliable",
            "true",
            "1024",
            [47.0, 1.3, 45.0, 527.0, 47.0, 49.0, 50.0, 54.0],
            [109.0, 7.4, 101.0, 279.0, 106.0, 120.0, 131.0, 228.0]
        ),
        cell!(
            "reliable, keyed, 4,096 B",
            "reliable",
            "true",
            "4096",
            [80.0, 1.8, 78.0, 594.0, 80.0, 80.0, 82.0, 86.0],
            []
        ),
        cell!(
            "reliable, keyed, 8,192 B",
            "reliable",
            "true",
            "8192",
            [117.0, 1.8, 115.0, 605.0, 117.0, 119.0, 120.0, 123.0],
            [183.0, 9.8, 176.0, 518.0, 181.0, 189.0, 211.0, 432.0]
        ),
        cell!(
            "reliable, keyed, 63,000 B",
            "reliable",
            "true",
            "63000",
            [610.0, 1.3, 605.0, 667.0, 610.0, 612.0, 613.0, 628.0],
            [870.0, 45.2, 849.0, 2494.0, 865.0, 881.0, 904.0, 2363.0]
        ),
    ],
    implied: &[],
};

/// A row that the publication lacks.
const fn udp(label: &'static str, factors: &'static [(&'static str, &'static str)]) -> PublishedRow {
    PublishedRow { label, factors, published: &[], recomputed: &[], against_first: None }
}
