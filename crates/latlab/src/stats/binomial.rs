//! How many of N independent observations lie below a quantile: what ranks of order statistics rest on.

/// Weights this far below the largest one cannot move a sum of doubles.
const NEGLIGIBLE: f64 = 1e-22;

/// The distribution of the number of successes in `trials`, tabulated where it has any weight.
pub(super) struct Binomial {
    trials: u64,
    first: u64,
    cumulative: Vec<f64>,
}

impl Binomial {
    /// Of `trials` with chance `q` in (0, 1) each; the work grows with the square root of `trials`.
    ///
    /// Weights are followed outward from the mode by their ratio and then normalised: no factorial is ever computed.
    pub(super) fn new(trials: u64, q: f64) -> Binomial {
        let n = trials as f64;
        let odds = q / (1.0 - q);
        let mode = (((n + 1.0) * q).floor() as u64).min(trials);
        let mut weights = Vec::new();
        let (mut weight, mut k) = (1.0, mode);
        while k > 0 {
            weight *= k as f64 / ((n - k as f64 + 1.0) * odds);
            if weight < NEGLIGIBLE {
                break;
            }
            k -= 1;
            weights.push(weight);
        }
        let first = k;
        weights.reverse();
        weights.push(1.0);
        (weight, k) = (1.0, mode);
        while k < trials {
            weight *= (n - k as f64) / (k as f64 + 1.0) * odds;
            if weight < NEGLIGIBLE {
                break;
            }
            k += 1;
            weights.push(weight);
        }
        let total: f64 = weights.iter().sum();
        let mut below = 0.0;
        for weight in &mut weights {
            below += *weight / total;
            *weight = below;
        }
        Binomial { trials, first, cumulative: weights }
    }

    /// The probability of fewer than `k` successes.
    pub(super) fn fewer_than(&self, k: u64) -> f64 {
        match k.checked_sub(self.first + 1) {
            None => 0.0,
            Some(index) => self.cumulative.get(index as usize).copied().unwrap_or(1.0).min(1.0),
        }
    }

    /// The largest rank (from 1) whose order statistic exceeds the quantile with probability at most `risk`.
    pub(super) fn low_rank(&self, risk: f64) -> Option<u64> {
        let acceptable = self.cumulative.partition_point(|below| *below <= risk) as u64;
        // fewer_than(first + acceptable) is the last one within the risk
        match self.first + acceptable {
            0 => None,
            rank => Some(rank.min(self.trials)),
        }
    }

    /// The smallest rank whose order statistic falls below the quantile with probability at most `risk`.
    pub(super) fn high_rank(&self, risk: f64) -> Option<u64> {
        let short = self.cumulative.partition_point(|below| *below < 1.0 - risk) as u64;
        let rank = self.first + short + 1;
        (rank <= self.trials).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binom.cdf(k, n, q)`, SciPy 1.17.
    #[test]
    fn probabilities_agree_with_scipy() {
        let cases = [
            (10, 0.5, 1, 0.0107421875),
            (10_000, 0.99, 9879, 0.022114487837461512),
            (10_000_000, 0.5, 4_996_900, 0.024980603516305024),
            (7, 0.9999, 6, 0.0006997900349964232),
        ];
        for (n, q, k, expected) in cases {
            let got = Binomial::new(n, q).fewer_than(k + 1);
            assert!((got - expected).abs() < 1e-9, "P(X <= {k}) = {got} for n {n}, q {q}, expected {expected}");
        }
    }

    #[test]
    fn ranks_keep_their_risk_and_are_the_best_that_do() {
        for (n, q) in [(1, 0.5), (5, 0.5), (6, 0.5), (30, 0.9), (1000, 0.99), (1000, 0.001), (100_000, 0.9)] {
            let binomial = Binomial::new(n, q);
            let low = binomial.low_rank(0.025).unwrap_or(0);
            assert!(low == 0 || binomial.fewer_than(low) <= 0.025, "n {n}, q {q}: low {low}");
            assert!(low == n || binomial.fewer_than(low + 1) > 0.025, "n {n}, q {q}: low {low} could be higher");
            let high = binomial.high_rank(0.025).unwrap_or(n + 1);
            assert!(high == n + 1 || binomial.fewer_than(high) >= 0.975, "n {n}, q {q}: high {high}");
            assert!(high == 1 || binomial.fewer_than(high - 1) < 0.975, "n {n}, q {q}: high {high} could be lower");
        }
        assert_eq!(Binomial::new(5, 0.5).low_rank(0.025), None, "0.5 to the fifth is 3.1 %");
        assert_eq!(Binomial::new(6, 0.5).low_rank(0.025), Some(1), "0.5 to the sixth is 1.6 %");
    }
}
