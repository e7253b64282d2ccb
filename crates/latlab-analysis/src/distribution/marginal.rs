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

/// Finite delays by their rank.
pub(super) trait RankedDelays {
    fn count(&self) -> u64;
    /// The delay of `rank`, from 0 to one less than their number.
    fn at(&self, rank: u64) -> i64;
    /// How many are below `bound`.
    fn below(&self, bound: i64) -> u64;

    /// The smallest and the largest.
    fn extremes(&self) -> Option<(i64, i64)> {
        let last = self.count().checked_sub(1)?;
        Some((self.at(0), self.at(last)))
    }
}

impl RankedDelays for [i64] {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn at(&self, rank: u64) -> i64 {
        self[rank as usize]
    }

    fn below(&self, bound: i64) -> u64 {
        self.partition_point(|value| *value < bound) as u64
    }
}

impl RankedDelays for CountedSample {
    fn count(&self) -> u64 {
        self.finite()
    }

    fn at(&self, rank: u64) -> i64 {
        CountedSample::at(self, rank)
    }

    fn below(&self, bound: i64) -> u64 {
        CountedSample::below(self, bound)
    }
}

/// The complementary distribution of `finite` delays, of `n` probes in all: ranks at equal distances on a
/// logarithmic axis of shares, then every one of the largest. Equal delays are one point.
pub(super) fn tail(finite: &(impl RankedDelays + ?Sized), n: u64) -> Vec<TailPoint> {
    let exact_from = finite.count().saturating_sub(EXACT);
    let spaced = (POINTS - EXACT).min(exact_from);
    let (most, least) = ((n as f64).ln(), (n as f64 - exact_from as f64).ln());
    let rank = |step: u64| {
        let larger = (most + (least - most) * step as f64 / spaced as f64).exp();
        ((n as f64 - larger).round() as u64).min(exact_from)
    };
    let mut points: Vec<TailPoint> = Vec::new();
    for value in (0..spaced).map(rank).chain(exact_from..finite.count()).map(|rank| finite.at(rank)) {
        if points.last().is_none_or(|last| last.value_ns < value as f64) {
            let smaller = finite.below(value);
            points.push(TailPoint { tail: (n - smaller) as f64 / n as f64, value_ns: value as f64 });
        }
    }
    points
}

/// The histogram of `finite` delays.
pub(super) fn histogram(finite: &(impl RankedDelays + ?Sized)) -> Vec<Bucket> {
    let Some((min, max)) = finite.extremes() else { return Vec::new() };
    let mut before = 0;
    let bucket = |pair: [i64; 2]| {
        let until = finite.below(pair[1]);
        let count = until - std::mem::replace(&mut before, until);
        Bucket { low_ns: pair[0], high_ns: pair[1], count }
    };
    edges(min, max, BINS).windows(2).map(|pair| [pair[0], pair[1]]).map(bucket).collect()
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
