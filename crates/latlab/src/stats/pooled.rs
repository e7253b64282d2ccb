//! What is usually asked of two runs: are their probes different? Both tests take probes for independent observations,
//! which they are not; they stand here to show what that costs (`latlab run aa`), and judge nothing.

use super::deviate::{normal, student};

/// Whether Student's t with pooled variance (1908) finds the means of two runs' probes different.
pub fn student_differs(one: &[i64], other: &[i64], confidence: f64) -> bool {
    let (n, m) = (one.len() as f64, other.len() as f64);
    if n < 2.0 || m < 2.0 {
        return false;
    }
    let mean = |values: &[i64]| values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
    let squares = |values: &[i64], mean: f64| values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
    let (here, there) = (mean(one), mean(other));
    let freedom = n + m - 2.0;
    let variance = (squares(one, here) + squares(other, there)) / freedom;
    let error = (variance * (1.0 / n + 1.0 / m)).sqrt();
    (here - there).abs() > student(0.5 + confidence / 2.0, freedom) * error
}

/// Whether the test of Mann and Whitney (1947), in its normal approximation with ties, finds the ranks of two runs'
/// probes different.
pub fn ranks_differ(one: &[i64], other: &[i64], confidence: f64) -> bool {
    let (n, m) = (one.len() as f64, other.len() as f64);
    if n < 1.0 || m < 1.0 {
        return false;
    }
    let mut all: Vec<(i64, bool)> =
        one.iter().map(|value| (*value, true)).chain(other.iter().map(|value| (*value, false))).collect();
    all.sort_unstable();
    let (mut before, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|one, other| one.0 == other.0) {
        let size = equal.len() as f64;
        let own = equal.iter().filter(|(_, own)| *own).count() as f64;
        rank_sum += own * (before + (size + 1.0) / 2.0);
        ties += size * (size * size - 1.0);
        before += size;
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    let distance = (rank_sum - n * (total + 1.0) / 2.0).abs();
    distance > normal(0.5 + confidence / 2.0) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_decide_as_their_p_values_say() {
        // Simpson's rule over the density of t with 14 degrees of freedom; erfc of z/√2 with midranks counted by hand.
        let base = [12, 15, 11, 18, 14, 15, 13, 17];
        for (other, t_p, u_p) in [
            ([12, 15, 11, 18, 14, 15, 13, 17], 1.0, 1.0),
            ([14, 17, 13, 20, 16, 17, 15, 19], 0.1159, 0.1385),
            ([15, 18, 14, 21, 17, 18, 16, 20], 0.0248, 0.0343),
            ([13, 13, 13, 14, 14, 14, 15, 60], 0.3959, 0.9148),
        ] {
            for confidence in [0.8, 0.9, 0.95, 0.98] {
                let told = (student_differs(&base, &other, confidence), ranks_differ(&base, &other, confidence));
                assert_eq!(told, (t_p < 1.0 - confidence, u_p < 1.0 - confidence), "{other:?} {confidence}");
            }
        }
    }

    #[test]
    fn too_few_probes_differ_in_nothing() {
        assert!(!student_differs(&[1], &[2, 3], 0.95) && !ranks_differ(&[], &[2, 3], 0.95));
        assert!(!student_differs(&[5; 9], &[5; 9], 0.95) && !ranks_differ(&[5; 9], &[5; 9], 0.95));
    }
}
