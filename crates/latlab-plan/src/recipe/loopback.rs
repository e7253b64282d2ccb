//! UDP throughput over loopback: IPv4 and IPv6, with and without offload, with and without checksums.

use super::definition::{Column, FiguresOf, Published, PublishedRow, Recipe, RecipeText};
use crate::metric::Metric;
use crate::stats::MeanDifference;

pub(super) const MATRIX: Recipe = Recipe {
    name: "udp-loopback-matrix",
    title: "UDP throughput over loopback: IPv4 and IPv6, checksum offload, checksums",
    origin: "netperf UDP_STREAM over lo0 of FreeBSD: three reboots, after each a warm-up run and ten recorded runs of every \
             cell, shown by ministat; IPv6 keeps its checksums. Every run is one observation, its mean rate as it was \
             delivered",
    lesson: "The text says that without checksums UDP still performs best, while its own test finds no difference between the \
             first three cells and their medians stand in the other order. On lo0 of FreeBSD these three are one: offload \
             there means that nobody computes or checks a checksum (lo(4)), and without checksums there is nothing to \
             offload. Only `no offload` makes the kernel compute them, twice. In `lab` it is the same: a virtual pair that \
             offloads checksums leaves them out, and one that does not has the kernel compute and check them. `lo` of \
             Linux cannot switch, so there those cells are not possible. Ten runs inside of one boot are not ten \
             independent ones: runs are compared inside of blocks, and `--reboots` makes each block a boot.",
    template: include_str!("../../recipes/udp-loopback-matrix.toml"),
    words: [
        &[("DURATION", "400ms"), ("WARMUP", "100ms"), ("RUNS", "5"), ("BLOCKS", "1"), ("SETTLE", "0s")],
        &[("DURATION", "5s"), ("WARMUP", "500ms"), ("RUNS", "10"), ("BLOCKS", "3"), ("SETTLE", "500ms")],
        // netperf's own duration
        &[("DURATION", "10s"), ("WARMUP", "1s"), ("RUNS", "10"), ("BLOCKS", "3"), ("SETTLE", "1s")],
    ],
    usual_target: "lab",
    words_of_target: of_target,
    published: Some(&PUBLISHED),
};

/// netperf sends the largest message of a socket, on FreeBSD 9,216 bytes, and lo0 carries 16,384 in one packet. On an
/// Ethernet path larger packets would be fragmented, and the kernel computes the checksums of fragments in any case.
const fn of_target(target: &str) -> RecipeText {
    match target.as_bytes() {
        b"lab" => &[
            ("SIZE", "9216              # as netperf does on FreeBSD, in one packet of a pair like its lo0"),
            ("OFFLOAD", "[\"mtu=16384\", \"offload@both=as-found\"]"),
            ("NO_OFFLOAD", "[\"mtu=16384\", \"offload@both=tx-checksum:off,rx-checksum:off\"]"),
        ],
        b"local" => &[
            ("SIZE", "9216              # as netperf does on FreeBSD"),
            ("OFFLOAD", "\"offload@both=as-found\""),
            ("NO_OFFLOAD", "\"offload@both=tx-checksum:off,rx-checksum:off\""),
        ],
        _ => &[
            ("SIZE", "1452              # an Ethernet packet of IPv6"),
            ("OFFLOAD", "\"offload@both=as-found\""),
            ("NO_OFFLOAD", "\"offload@both=tx-checksum:off,rx-checksum:off\""),
        ],
    }
}

const PUBLISHED: Published = Published {
    heading: "delivered rate, one observation a run",
    metric: Metric::DeliveredRate,
    own_units: 1e6,
    unit: "10⁶ bit/s",
    decimals: 1,
    half: false,
    sources: Published::FROM_RAW_DATA,
    whole: None,
    figures_of: FiguresOf::Runs,
    columns: &[Column::Min, Column::Max, Column::Median, Column::Mean, Column::Stddev],
    rows: &[
        row(
            "v4, no checksum",
            &[V4, OFF, OFFLOAD],
            &[Some(4117.36), Some(8328.19), Some(6137.8), Some(6236.2927), Some(1136.704)],
            None,
        ),
        row(
            "v4, no offload, no checksum",
            &[V4, OFF, NO_OFFLOAD],
            &[Some(5005.63), Some(8235.45), Some(6465.39), Some(6562.7983), Some(931.47838)],
            Some(MeanDifference::NotProven),
        ),
        row(
            "v4",
            &[V4, ON, OFFLOAD],
            &[Some(4484.1), Some(8755.31), Some(6528.77), Some(6582.2703), Some(1061.2698)],
            Some(MeanDifference::NotProven),
        ),
        row(
            "v4, no offload",
            &[V4, ON, NO_OFFLOAD],
            &[Some(3406.81), Some(4680.59), Some(3697.94), Some(3769.4827), Some(256.3195)],
            lower(39.6, 6.8),
        ),
        row(
            "v6",
            &[V6, ON, OFFLOAD],
            &[Some(3683.22), Some(6583.07), Some(5112.01), Some(5195.592), Some(787.95379)],
            lower(16.7, 8.1),
        ),
        row(
            "v6, no offload",
            &[V6, ON, NO_OFFLOAD],
            &[Some(3098.59), Some(5689.79), Some(3355.83), Some(3551.4927), Some(594.82049)],
            lower(43.1, 7.5),
        ),
    ],
    implied: &[],
};

const V4: (&str, &str) = ("ipv6", "false");
const V6: (&str, &str) = ("ipv6", "true");
const OFF: (&str, &str) = ("checksum", "off");
const ON: (&str, &str) = ("checksum", "on");
const OFFLOAD: (&str, &str) = ("set", "offload@both=as-found");
const NO_OFFLOAD: (&str, &str) = ("set", "offload@both=tx-checksum:off,rx-checksum:off");

/// A difference below the first row.
const fn lower(percent: f64, margin_percent: f64) -> Option<MeanDifference> {
    Some(MeanDifference::Proven { percent: -percent, margin_percent })
}

const fn row(
    label: &'static str,
    factors: &'static [(&'static str, &'static str)],
    published: &'static [Option<f64>],
    against_first: Option<MeanDifference>,
) -> PublishedRow {
    PublishedRow { label, factors, published, recomputed: &[], against_first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Between, RecipeScale};

    #[test]
    fn the_file_has_every_row_on_every_target_and_no_other() {
        for (target, size) in [("lab", "9216"), ("local", "9216"), ("ssh:pi3", "1452")] {
            let file = MATRIX.file(target, RecipeScale::Usual, Between::AsItsFileSays);
            assert!(file.contains(&format!("\nsize = {size} ")), "{file}");
            for (_, value) in [OFFLOAD, NO_OFFLOAD] {
                assert_eq!(file.matches(&format!("{value}\"")).count(), 1, "{file}");
            }
            // an interface of the host keeps its MTU
            assert_eq!(file.contains("mtu="), target == "lab", "{file}");
        }
    }
}
