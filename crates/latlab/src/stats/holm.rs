//! Adjustment of p values for multiple comparisons.

/// The p values of the claims of one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// Of the claim of a difference.
    pub different: f64,
    /// Of the claim that the difference lies within a margin, if one was stated. At most one of the two null hypotheses is
    /// true: without a difference there is none beyond the margin.
    pub equivalent: Option<f64>,
}

/// The step-down adjustment of Holm (1979) over all claims of all `rows`: with claims at adjusted p ≤ α the probability of
/// any false claim, of a difference or of an equivalence, is at most α under arbitrary dependence. A p value is multiplied
/// by the number of null hypotheses that can still be true together (Shaffer 1986): one for each row that is not yet
/// rejected entirely. Without margins this is Holm's procedure.
pub fn holm(rows: &[Claims]) -> Vec<Claims> {
    let mut open: Vec<(f64, usize, bool)> = Vec::new();
    for (row, claims) in rows.iter().enumerate() {
        open.push((claims.different, row, false));
        open.extend(claims.equivalent.map(|p| (p, row, true)));
    }
    open.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left: Vec<u8> = rows.iter().map(|claims| 1 + u8::from(claims.equivalent.is_some())).collect();
    let mut adjusted = rows.to_vec();
    let mut largest = 0.0_f64;
    let mut possible = rows.len();
    for (p, row, is_equivalence) in open {
        largest = largest.max((p * possible as f64).min(1.0));
        match is_equivalence {
            true => adjusted[row].equivalent = Some(largest),
            false => adjusted[row].different = largest,
        }
        left[row] -= 1;
        possible -= usize::from(left[row] == 0);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::{Claims, holm};

    fn close(got: &[f64], expected: &[f64]) -> bool {
        got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-12)
    }

    #[test]
    fn adjusted_p_values_agree_with_r() {
        // R 4.5: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and p.adjust(c(0.6, 0.04, 0.5, 0.02, 0.02), "holm")
        for (p, expected) in [
            (vec![0.01, 0.04, 0.03, 0.005], vec![0.03, 0.06, 0.06, 0.02]),
            (vec![0.6, 0.04, 0.5, 0.02, 0.02], vec![1.0, 0.12, 1.0, 0.1, 0.1]),
            (vec![0.05], vec![0.05]),
            (vec![], vec![]),
        ] {
            let rows: Vec<Claims> = p.iter().map(|p| Claims { different: *p, equivalent: None }).collect();
            let got: Vec<f64> = holm(&rows).iter().map(|claims| claims.different).collect();
            assert!(close(&got, &expected), "{p:?}: {got:?}, expected {expected:?}");
        }
    }

    #[test]
    fn a_row_counts_once_until_both_of_its_claims_are_made() {
        let rows = [(0.3, 0.004), (0.01, 0.012), (0.9, 0.04)];
        let rows = rows.map(|(different, equivalent)| Claims { different, equivalent: Some(equivalent) });
        let got = holm(&rows);
        // 0.004, 0.01 and 0.012 times three, since no row is rejected entirely before them; 0.04 and 0.3 times two; 0.9 once.
        let expected = [(0.6, 0.012), (0.03, 0.036), (0.9, 0.08)];
        for (got, (different, equivalent)) in got.iter().zip(expected) {
            let equivalent_got = got.equivalent.expect("asked for");
            assert!(close(&[got.different, equivalent_got], &[different, equivalent]), "{got:?}");
        }
    }

    /// Twenty rows whose true differences are 0 or lie exactly on their margins: the worst case, with one true null
    /// hypothesis in each.
    #[test]
    fn the_family_wise_error_rate_is_at_most_alpha() {
        let mut random = Pcg64Mcg::seed_from_u64(11);
        let mut uniform = || (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
        let tables = 20_000;
        let mut false_ones = 0;
        for _ in 0..tables {
            let row = |place: usize, truth: f64| match place % 2 {
                0 => Claims { different: truth, equivalent: Some(1e-9) },
                _ => Claims { different: 1e-9, equivalent: Some(truth) },
            };
            let rows: Vec<Claims> = (0..20).map(|place| row(place, uniform())).collect();
            let is_false = |(place, claims): (usize, &Claims)| {
                (if place % 2 == 0 { claims.different } else { claims.equivalent.unwrap_or(1.0) }) <= 0.05
            };
            false_ones += u32::from(holm(&rows).iter().enumerate().any(is_false));
        }
        // 1 − (1 − 0.05/20)^20 = 4.9 %; three standard errors are 0.46 points.
        let share = f64::from(false_ones) / f64::from(tables);
        assert!((0.044..=0.0536).contains(&share), "{share}");
    }
}
