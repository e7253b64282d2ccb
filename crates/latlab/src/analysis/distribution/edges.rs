//! Edges of bins: whole nanoseconds between the smallest and the largest value.

/// From this ratio of the largest to the smallest value on, bins and axes are logarithmic: over less, a logarithmic axis
/// has no two round labels.
const LOGARITHMIC_FROM: f64 = 4.0;

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
