//! Many comparisons at once.

/// Holm's step-down adjustment (1979): refusing where the adjusted p is at most α makes one false difference or more
/// among all of them in at most a share α of tables, whatever the dependence. In the order of `p`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (smaller, place) in order.into_iter().enumerate() {
        let tried = (p.len() - smaller) as f64;
        largest = largest.max((p[place] * tried).min(1.0));
        adjusted[place] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::holm;

    #[test]
    fn adjusted_by_hand_and_as_r_does() {
        // R 4.5: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and p.adjust(c(0.6, 0.04, 0.5, 0.02, 0.02), "holm")
        for (p, expected) in [
            (vec![0.01, 0.04, 0.03, 0.005], vec![0.03, 0.06, 0.06, 0.02]),
            (vec![0.6, 0.04, 0.5, 0.02, 0.02], vec![1.0, 0.12, 1.0, 0.1, 0.1]),
            (vec![0.05], vec![0.05]),
            (vec![], vec![]),
        ] {
            let got = holm(&p);
            let close = got.iter().zip(&expected).all(|(got, expected): (&f64, &f64)| (got - expected).abs() < 1e-12);
            assert!(close && got.len() == expected.len(), "{p:?}: {got:?}, expected {expected:?}");
        }
    }
}
