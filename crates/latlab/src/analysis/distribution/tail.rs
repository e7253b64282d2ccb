//! The tail and the histogram of a run, from its sorted delays.

use super::edges::edges;
use crate::stats::Bucket;

/// Most points of a tail.
const POINTS: usize = 512;
/// So many of the largest delays are points of their own.
const EXACT: usize = 100;
/// Most bins of a histogram.
const BINS: usize = 160;

/// A point of a complementary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailPoint {
    /// The share of all probes, lost ones included, whose delay is at least as large: in (0, 1].
    pub tail: f64,
    /// The delay in ns.
    pub value_ns: f64,
}

/// The complementary distribution of ascending `finite` delays, of `n` probes in all: ranks at equal distances on a
/// logarithmic axis of shares, then every one of the largest. Equal delays are one point.
pub(super) fn tail(finite: &[i64], n: u64) -> Vec<TailPoint> {
    let exact_from = finite.len().saturating_sub(EXACT);
    let spaced = (POINTS - EXACT).min(exact_from);
    let (most, least) = ((n as f64).ln(), (n as f64 - exact_from as f64).ln());
    let rank = |step: usize| {
        let larger = (most + (least - most) * step as f64 / spaced as f64).exp();
        ((n as f64 - larger).round() as usize).min(exact_from)
    };
    let mut points: Vec<TailPoint> = Vec::new();
    for value in (0..spaced).map(rank).chain(exact_from..finite.len()).map(|rank| finite[rank]) {
        if points.last().is_none_or(|last| last.value_ns < value as f64) {
            let smaller = finite.partition_point(|other| *other < value) as u64;
            points.push(TailPoint { tail: (n - smaller) as f64 / n as f64, value_ns: value as f64 });
        }
    }
    points
}

/// The histogram of ascending `finite` delays.
pub(super) fn histogram(finite: &[i64]) -> Vec<Bucket> {
    let (Some(min), Some(max)) = (finite.first(), finite.last()) else { return Vec::new() };
    let mut before = 0;
    let bucket = |pair: [i64; 2]| {
        let until = finite.partition_point(|value| *value < pair[1]);
        let count = (until - std::mem::replace(&mut before, until)) as u64;
        Bucket { low_ns: pair[0], high_ns: pair[1], count }
    };
    edges(*min, *max, BINS).windows(2).map(|pair| [pair[0], pair[1]]).map(bucket).collect()
}
