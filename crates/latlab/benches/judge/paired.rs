//! Paired ratios, and their verdict on a target (docs/design/0004-judging-our-own-cost.md).

/// Minimum number of rounds for a verdict.
pub(crate) const ROUNDS_MIN: usize = 15;
/// Maximum number of rounds if the machine does not become quiet.
pub(crate) const ROUNDS_MAX: usize = 200;

/// The median of paired ratios with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Paired {
    pub(crate) rounds: usize,
    pub(crate) median: f64,
    /// Ends of the interval; infinite if there are too few rounds.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Coverage of the interval: at least the requested one, since order statistics are discrete.
    pub(crate) coverage: f64,
}

/// Whether the rounds show that a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    NotMet,
    Undecided,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotMet => "**not met**",
            Verdict::Undecided => "undecided",
        }
    }
}

impl Paired {
    /// The median of the ratios ours / theirs of all rounds, with its 95 % interval.
    ///
    /// The interval of a median from order statistics: x(k) to x(n + 1 − k) misses the median when
    /// fewer than k of n fair coins show heads or fewer than k show tails.
    pub(crate) fn of(ours: &[f64], theirs: &[f64]) -> Paired {
        assert_eq!(ours.len(), theirs.len(), "rounds come in pairs");
        let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        let rounds = ratios.len();
        let (k, coverage) = depth(rounds, 0.95);
        let end = |index: Option<usize>, otherwise: f64| index.map_or(otherwise, |index| ratios[index]);
        let low = end(k.checked_sub(1), f64::NEG_INFINITY);
        let high = end((k > 0).then(|| rounds - k), f64::INFINITY);
        Paired { rounds, median: median(&ratios), low, high, coverage }
    }

    pub(crate) fn interval(&self) -> String {
        if self.low.is_finite() { format!("{:.3}–{:.3}", self.low, self.high) } else { "too few rounds".into() }
    }

    /// Whether `ratio ≤ target` holds; undecided on a machine that is not quiet.
    pub(crate) fn at_most(&self, target: f64, quiet: bool) -> Verdict {
        match () {
            () if !quiet || self.rounds < ROUNDS_MIN => Verdict::Undecided,
            () if self.high <= target => Verdict::Met,
            () if self.low > target => Verdict::NotMet,
            () => Verdict::Undecided,
        }
    }

    /// Whether `ratio ≥ target` holds, by the same rule.
    pub(crate) fn at_least(&self, target: f64, quiet: bool) -> Verdict {
        match () {
            () if !quiet || self.rounds < ROUNDS_MIN => Verdict::Undecided,
            () if self.low >= target => Verdict::Met,
            () if self.high < target => Verdict::NotMet,
            () => Verdict::Undecided,
        }
    }

    /// Whether `1 − margin ≤ ratio ≤ 1 + margin` holds, by the same rule: both contenders are equivalent.
    pub(crate) fn within(&self, margin: f64, quiet: bool) -> Verdict {
        match (self.at_least(1.0 - margin, quiet), self.at_most(1.0 + margin, quiet)) {
            (Verdict::Met, Verdict::Met) => Verdict::Met,
            (Verdict::NotMet, _) | (_, Verdict::NotMet) => Verdict::NotMet,
            _ => Verdict::Undecided,
        }
    }

    /// Whether the median is within `1 ± tolerance`, for the ratios of a program to itself.
    pub(crate) fn is_quiet(&self, tolerance: f64) -> bool {
        // Both ends are included; 1e-9 is more than the rounding error of 1 ± tolerance.
        (self.median - 1.0).abs() <= tolerance + 1e-9
    }
}

/// The largest k whose interval covers `confidence`, and its coverage; (0, 1) if there is none.
fn depth(n: usize, confidence: f64) -> (usize, f64) {
    let mut found = (0, 1.0);
    let mut mass = 0.5f64.powi(n as i32);
    let mut below = 0.0;
    for k in 1..=n / 2 {
        below += mass;
        if 1.0 - 2.0 * below < confidence {
            break;
        }
        found = (k, 1.0 - 2.0 * below);
        mass *= (n - k + 1) as f64 / k as f64;
    }
    found
}

/// The median of sorted values; NaN if there are none.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
