//! A histogram of a few rows for a terminal, with round edges that show both the body and the tail of a distribution.
//!
//! Delays have a minimum, a body close above it and a long tail: edges lie at offsets from the minimum that grow by a
//! constant factor. The edges of signed variations grow from the median to both sides. Each edge is then moved to the
//! roundest number nearby.

use super::moments::Extent;
use crate::sample::{INFINITE, Sample};

/// Edges are chosen from at most this many singletons; counts are over all.
const EXCERPT: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lower edge, in ns.
    pub low_ns: i64,
    /// Upper edge, exclusive, in ns.
    pub high_ns: i64,
    pub count: u64,
}

/// The finite singletons of `sample` in at most twelve adjoining buckets with round edges, which are narrow where the mass
/// is and wide along the tail; empty if no singleton is finite. The first and the last bucket are never empty.
pub fn histogram(sample: &Sample) -> Vec<Bucket> {
    let Some(extent) = Extent::of(&sample.singletons) else { return Vec::new() };
    let stride = sample.singletons.len().div_ceil(EXCERPT);
    let finite = |value: &i64| *value != INFINITE;
    let excerpt: Vec<i64> = sample.singletons.iter().copied().step_by(stride).filter(finite).collect();
    let edges = edges_of(excerpt, extent.min, extent.max);
    let mut counts = vec![0; edges.len() - 1];
    let inner = &edges[1..edges.len() - 1];
    for value in sample.singletons.iter().filter(|value| finite(value)) {
        // A dozen comparisons without branches are faster than a binary search with unpredictable ones.
        let place: usize = inner.iter().map(|edge| usize::from(edge <= value)).sum();
        counts[place] += 1;
    }
    let bounds = edges.windows(2);
    bounds.zip(counts).map(|(bound, count)| Bucket { low_ns: bound[0], high_ns: bound[1], count }).collect()
}

/// Edges for values between `min` and `max`, of which `excerpt` are some.
pub(super) fn edges_of(mut excerpt: Vec<i64>, min: i64, max: i64) -> Vec<i64> {
    excerpt.extend([min, max]);
    excerpt.sort_unstable();
    edges(&excerpt, min, max)
}

/// The most edges above the 1 % quantile in a one-sided histogram, or on both sides of the median in a two-sided one.
const STEPS: i32 = 8;
/// The least factor between two offsets: below it rows would look alike.
const FACTOR_MIN: f64 = 1.6;
/// How far an edge may be moved to a round number, as a share of the gap to its neighbour.
const ROUNDING: f64 = 0.3;
/// How far below the minimum the first edge may lie, as a share of it.
const FIRST_EDGE_ROUNDING: f64 = 0.05;

/// Edges for values whose ascending excerpt is `sorted` (not empty) and whose extremes are `min` and `max`: the
/// first is at most `min`, the last above `max`, each larger than the one before.
fn edges(sorted: &[i64], min: i64, max: i64) -> Vec<i64> {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize] as f64;
    let (bottom, middle, top) = (at(0.01), at(0.5), at(0.99));
    let (lowest, highest) = (min as f64, max as f64);
    let mut raw = Vec::new();
    if middle - bottom < (top - middle) / 3.0 || middle - lowest <= (highest - middle) / 20.0 {
        let step = (at(0.75) - bottom) / 3.0;
        raw.extend(offsets(bottom - lowest, step, 2).into_iter().rev().map(|offset| bottom - offset));
        raw.push(bottom);
        raw.extend(offsets(highest - bottom, step, STEPS).into_iter().map(|offset| bottom + offset));
    } else {
        let step = (at(0.75) - at(0.25)) / 3.0;
        raw.extend(offsets(middle - lowest, step, STEPS / 2).into_iter().rev().map(|offset| middle - offset));
        raw.push(middle);
        raw.extend(offsets(highest - middle, step, STEPS / 2).into_iter().map(|offset| middle + offset));
    }
    rounded(&raw, min, max)
}

/// At most `count` offsets below `reach` that start at `step` and grow by a constant factor.
fn offsets(reach: f64, step: f64, count: i32) -> Vec<f64> {
    let step = step.max(1.0);
    let factor = (reach / step).powf(1.0 / f64::from(count)).max(FACTOR_MIN);
    (0..count).map(|power| step * factor.powi(power)).take_while(|offset| *offset < reach).collect()
}

/// Inner edges, moved to round numbers, between an outer one at most `min` and one above `max`.
fn rounded(raw: &[f64], min: i64, max: i64) -> Vec<i64> {
    let (low, high) = (min as f64, max as f64);
    let inner: Vec<f64> = raw.iter().copied().filter(|edge| *edge > low && *edge < high).collect();
    // The first edge is read as the minimum: 5 µs must not become 0 because the next edge is far away.
    let first_gap = ((inner.first().unwrap_or(&high) - low) * ROUNDING).min(low.abs() * FIRST_EDGE_ROUNDING);
    let last_gap = (high - inner.last().unwrap_or(&low)) * ROUNDING;
    let mut edges = vec![roundest(i128::from(min) - first_gap as i128, i128::from(min))];
    for (place, edge) in inner.iter().enumerate() {
        let before = if place == 0 { low } else { inner[place - 1] };
        let after = inner.get(place + 1).copied().unwrap_or(high);
        let reach = (edge - before).min(after - edge) * ROUNDING;
        let candidate = roundest((edge - reach).ceil() as i128, (edge + reach).floor() as i128);
        let previous = edges[edges.len() - 1];
        if candidate > previous && candidate > i128::from(min) && candidate <= i128::from(max) {
            edges.push(candidate);
        }
    }
    edges.push(roundest(i128::from(max) + 1, i128::from(max) + 1 + last_gap as i128));
    let representable = |edge: i128| edge.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    edges.into_iter().map(representable).collect()
}

/// 0 if it is from `low` to `high`; else, of the multiples in this range of the largest possible step (1, 2 or 5 times
/// a power of ten), the one nearest to the middle. `low` if `low` is above `high`.
fn roundest(low: i128, high: i128) -> i128 {
    if low <= 0 && 0 <= high {
        return 0;
    }
    let middle = (low + high).div_euclid(2);
    let mut power = 10_i128.pow(19);
    while power > 0 {
        for step in [5 * power, 2 * power, power] {
            let nearest = (middle + step / 2).div_euclid(step) * step;
            for candidate in [nearest, nearest - step, nearest + step] {
                if (low..=high).contains(&candidate) {
                    return candidate;
                }
            }
        }
        power /= 10;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_number_of_a_range_is_found() {
        for (low, high, expected) in
            [(43, 46, 45), (44_100, 44_200, 44_200), (-3, 5, 0), (97, 103, 100), (-1_900, -1_100, -1_500), (7, 7, 7)]
        {
            assert_eq!(roundest(low, high), expected, "{low}..={high}");
        }
    }

    #[test]
    fn edges_ascend_and_enclose_every_value() {
        let tails: [&dyn Fn(i64) -> i64; 5] = [
            &|index| 48_000 + index % 977,
            &|index| 44_200 + (1_000_000_000 / (index % 10_000 + 1)),
            &|index| (index % 2001 - 1000).pow(3),
            &|_| 5,
            &|index| if index == 0 { i64::MIN } else { i64::MAX - 1 },
        ];
        for (case, value) in tails.iter().enumerate() {
            let mut values: Vec<i64> = (0..20_000).map(value).collect();
            values.sort_unstable();
            let (min, max) = (values[0], values[values.len() - 1]);
            let edges = edges(&values, min, max);
            assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "case {case}: {edges:?}");
            assert!(edges[0] <= min && max < edges[edges.len() - 1], "case {case}: {edges:?}");
            assert!(edges.len() <= 13, "case {case}: {edges:?}");
        }
    }
}
