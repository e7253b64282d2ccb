//! The distribution of delays without their times: its tail and its histogram, from sorted delays, and the edges of bins.

use crate::stats::{Bucket, CountedSample};

/// Most points of a tail.
const POINTS: u64 = 512;
/// So many of the largest delays are points of their own.
const EXACT: u64 = 100;
/// Most bins of a histogram, and of those of several runs.
const BINS: usize = 160;
const COMMON_BINS: usize = 80;
/// From this ratio of the largest to the smallest value on, axes are logarithmic: over less, a logarithmic axis
/// has no two round labels.
const LOGARITHMIC_FROM: f64 = 4.0;

/// A point of a complementary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailPoint {
    /// The share of all probes, lost ones included, whose delay is at least as large: in (0, 1].
    pub tail: f64,
    /// The delay in ns.
    pub value_ns: f64,
}

/// The complementary distribution of `delays`: ranks at equal distances on a logarithmic axis of shares, then every one of
/// the largest. Equal delays are one point.
pub(super) fn tail(delays: &CountedSample) -> Vec<TailPoint> {
    let n = delays.n() as f64;
    let exact_from = delays.finite().saturating_sub(EXACT);
    let spaced = (POINTS - EXACT).min(exact_from);
    let (most, least) = (n.ln(), (n - exact_from as f64).ln());
    let rank = |step: u64| {
        let larger = (most + (least - most) * step as f64 / spaced as f64).exp();
        ((n - larger).round() as u64).min(exact_from)
    };
    let mut points: Vec<TailPoint> = Vec::new();
    for value in (0..spaced).map(rank).chain(exact_from..delays.finite()).map(|rank| delays.at(rank)) {
        if points.last().is_none_or(|last| last.value_ns < value as f64) {
            points.push(TailPoint { tail: (n - delays.below(value) as f64) / n, value_ns: value as f64 });
        }
    }
    points
}

/// The histogram of finite `delays`.
pub(super) fn histogram(delays: &CountedSample) -> Vec<Bucket> {
    let Some((min, max)) = delays.extremes() else { return Vec::new() };
    let count = |from: i64, to: i64| delays.below(to) - delays.below(from);
    let bucket = |pair: &[i64]| Bucket { low_ns: pair[0], high_ns: pair[1], count: count(pair[0], pair[1]) };
    edges(min, max, BINS).windows(2).map(bucket).collect()
}

/// Whether values between these limits are better shown on a logarithmic axis. Never if one of them is 0 or negative.
pub fn suits_logarithm(min: f64, max: f64) -> bool {
    min > 0.0 && max >= min * LOGARITHMIC_FROM
}

/// Ascending edges of at most `count` adjoining bins: the first is `min`, and the last `max` + 1, since upper edges are
/// exclusive. The others are powers of 2^(1/2^n) with an integer n, or of values of 0 and below multiples of 2^n: edges of
/// fewer bins, or between farther ends, are among those of more.
pub(super) fn edges(min: i64, max: i64, count: usize) -> Vec<i64> {
    let end = max.saturating_add(1);
    let mut edges = vec![min];
    let mut push = |edge: i64| {
        if edge > edges[edges.len() - 1] && edge < end {
            edges.push(edge);
        }
    };
    if min > 0 {
        let [from, to] = [min, end].map(|value| (value as f64).log2());
        // From 2^-1 to 2^30 bins in an octave.
        let fitting = (0..30).rev().map(|n| f64::from(1 << n)).find(|bins| ((to - from) * bins) as usize + 2 <= count);
        let bins = fitting.unwrap_or(0.5);
        let steps = (from * bins) as i64..=(to * bins) as i64;
        steps.for_each(|step| push((step as f64 / bins).exp2().round() as i64));
    } else {
        // In 128 bits, since the values may be as far apart as 64 bits allow.
        let [from, to] = [min, end].map(i128::from);
        let n = (0..64).find(|n| ((to - from) >> n) + 2 <= count as i128).unwrap_or(63);
        ((from >> n)..=(to >> n)).for_each(|step| push((step << n) as i64));
    }
    edges.push(end);
    edges
}

/// The `histograms` of runs on the same edges.
pub fn on_common_bins(histograms: &[&[Bucket]]) -> Vec<Vec<Bucket>> {
    let bins = || histograms.iter().copied().flatten();
    let ends = (bins().map(|bin| bin.low_ns).min(), bins().map(|bin| bin.high_ns).max());
    let (Some(min), Some(end)) = ends else { return vec![Vec::new(); histograms.len()] };
    let edges = edges(min, end - 1, if histograms.len() == 1 { BINS } else { COMMON_BINS });
    let empty = edges.windows(2).map(|pair| Bucket { low_ns: pair[0], high_ns: pair[1], count: 0 });
    let of_run = |own: &&[Bucket]| {
        let mut common: Vec<Bucket> = empty.clone().collect();
        own.iter().for_each(|bin| common[bin_of(&edges, bin.low_ns)].count += bin.count);
        common
    };
    histograms.iter().map(of_run).collect()
}

/// The index of the bin that `value` is in; `edges` start at or below it.
#[inline]
pub(super) fn bin_of(edges: &[i64], value: i64) -> usize {
    edges.partition_point(|edge| *edge <= value).saturating_sub(1).min(edges.len().saturating_sub(2))
}
