//! Where to cut a distribution into rows so that both its body and its tail can be seen.
//!
//! Delays have a floor, a body close above it and a long tail: edges stand at offsets from the floor that grow by a
//! constant factor. Signed variations are spread to both sides of the middle: edges grow to both sides. Each edge then
//! moves to the roundest number nearby.

/// Rows that a side is cut into, where its reach allows.
const RUNGS: i32 = 8;
/// The least factor between two offsets: less would only repeat rows.
const FACTOR_MIN: f64 = 1.6;
/// How far an edge may move on the way to a round number, as a share of the gap to its neighbour.
const LEEWAY: f64 = 0.3;
/// How far below the minimum the first edge may lie, as a share of it.
const FOOT_LEEWAY: f64 = 0.05;

/// Edges for values whose ascending excerpt is `sorted` (not empty) and whose extremes are `min` and `max`: the
/// first is at most `min`, the last above `max`, each larger than the one before.
pub(super) fn edges(sorted: &[i64], min: i64, max: i64) -> Vec<i64> {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize] as f64;
    let (bottom, middle, top) = (at(0.01), at(0.5), at(0.99));
    let (floor, ceiling) = (min as f64, max as f64);
    let mut raw = Vec::new();
    if middle - bottom < (top - middle) / 3.0 || middle - floor <= (ceiling - middle) / 20.0 {
        let step = (at(0.75) - bottom) / 3.0;
        raw.extend(ladder(bottom - floor, step, 2).into_iter().rev().map(|offset| bottom - offset));
        raw.push(bottom);
        raw.extend(ladder(ceiling - bottom, step, RUNGS).into_iter().map(|offset| bottom + offset));
    } else {
        let step = (at(0.75) - at(0.25)) / 3.0;
        raw.extend(ladder(middle - floor, step, RUNGS / 2).into_iter().rev().map(|offset| middle - offset));
        raw.push(middle);
        raw.extend(ladder(ceiling - middle, step, RUNGS / 2).into_iter().map(|offset| middle + offset));
    }
    rounded(&raw, min, max)
}

/// Offsets below `reach` that start at `step` and grow by a constant factor, `rungs` at most.
fn ladder(reach: f64, step: f64, rungs: i32) -> Vec<f64> {
    let step = step.max(1.0);
    let factor = (reach / step).powf(1.0 / f64::from(rungs)).max(FACTOR_MIN);
    (0..rungs).map(|rung| step * factor.powi(rung)).take_while(|offset| *offset < reach).collect()
}

/// Inner edges moved to round numbers, with an outer one below `min` and one above `max`.
fn rounded(raw: &[f64], min: i64, max: i64) -> Vec<i64> {
    let (low, high) = (min as f64, max as f64);
    let inner: Vec<f64> = raw.iter().copied().filter(|edge| *edge > low && *edge < high).collect();
    // the first edge is read as the minimum: 5 µs must not become 0 because the next edge is far away
    let first_gap = ((inner.first().unwrap_or(&high) - low) * LEEWAY).min(low.abs() * FOOT_LEEWAY);
    let last_gap = (high - inner.last().unwrap_or(&low)) * LEEWAY;
    let mut edges = vec![roundest(i128::from(min) - first_gap as i128, i128::from(min))];
    for (place, edge) in inner.iter().enumerate() {
        let before = if place == 0 { low } else { inner[place - 1] };
        let after = inner.get(place + 1).copied().unwrap_or(high);
        let leeway = (edge - before).min(after - edge) * LEEWAY;
        let candidate = roundest((edge - leeway).ceil() as i128, (edge + leeway).floor() as i128);
        let previous = edges[edges.len() - 1];
        if candidate > previous && candidate > i128::from(min) && candidate <= i128::from(max) {
            edges.push(candidate);
        }
    }
    edges.push(roundest(i128::from(max) + 1, i128::from(max) + 1 + last_gap as i128));
    let representable = |edge: i128| edge.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    edges.into_iter().map(representable).collect()
}

/// The number between `low` and `high` that is a multiple of the largest 1, 2 or 5 times a power of ten, the one
/// nearest to their middle; `low` where they cross.
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
    fn round_numbers_are_found_where_they_are() {
        for (low, high, expected) in
            [(43, 46, 45), (44_100, 44_200, 44_200), (-3, 5, 0), (97, 103, 100), (-1_900, -1_100, -1_500), (7, 7, 7)]
        {
            assert_eq!(roundest(low, high), expected, "{low}..={high}");
        }
    }

    #[test]
    fn edges_enclose_every_value_and_rise() {
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
