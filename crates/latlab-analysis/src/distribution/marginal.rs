//! The distribution of delays without their times: its tail and its histogram, from sorted delays, and the edges of bins.

use crate::stats::{Bucket, CountedSample};

/// Most points of a tail.
const POINTS: u64 = 512;
/// So many of the largest delays are points of their own.
const EXACT: u64 = 100;
/// Most bins of a histogram.
const BINS: usize = 160;
/// From this ratio of the largest to the smallest value on, bins and axes are logarithmic: over less, a logarithmic axis
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
/// exclusive. Bins are equally wide, or equally wide on a logarithmic axis if the values suit one.
pub(super) fn edges(min: i64, max: i64, count: usize) -> Vec<i64> {
    let end = max.saturating_add(1);
    let (low, high) = (min as f64, end as f64);
    let place = |step: usize| {
        let share = step as f64 / count as f64;
        if suits_logarithm(low, max as f64) {
            (low * (high / low).powf(share)).round() as i64
        } else {
            // In 128 bits, since the values may be as far apart as 64 bits allow.
            let width = i128::from(end) - i128::from(min);
            (i128::from(min) + width * step as i128 / count as i128) as i64
        }
    };
    let mut edges = vec![min];
    for edge in (1..count).map(place) {
        if edge > edges[edges.len() - 1] && edge < end {
            edges.push(edge);
        }
    }
    edges.push(end);
    edges
}

/// The index of the bin that `value` is in; `edges` start at or below it.
#[inline]
pub(super) fn bin_of(edges: &[i64], value: i64) -> usize {
    edges.partition_point(|edge| *edge <= value).saturating_sub(1).min(edges.len().saturating_sub(2))
}
