//! The result of a comparison: effects on a scale, verdicts, and reasons for undecided ones.

use super::request::Quantity;
use crate::stats::Interval;

crate::worded! {
    /// Whether and how a candidate differs from the baseline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict: word {
        Lower = "lower",
        Higher = "higher",
        /// The difference is proven to lie within the margin.
        Equivalent = "equivalent",
        /// The ratio is 0 in every run of both groups.
        None = "none",
        /// The runs do not decide.
        Undecided = "undecided",
    }
}

/// Why a comparison is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// The runs vary too much, or the difference is too small.
    Unsure,
    /// The row is significant alone, but not after Holm's adjustment over its family.
    Corrected {
        comparisons: usize,
    },
    /// What the answered probes show does not hold if each unanswered one counts as its time-out.
    Losses,
    SingleRuns,
    /// Not even complete separation of the two groups would be significant.
    TooFewRuns,
    /// Too few boots to generalise to boots.
    TooFewBoots {
        boots: usize,
        needed: usize,
    },
    /// No block has runs of both groups at the same levels of the other factors.
    NoCommonBlock,
    /// A group has no run that can be judged.
    NoRun {
        /// Whether the baseline has none.
        baseline: bool,
        /// Whether the candidate has none.
        candidate: bool,
    },
    /// Undecided, and the margin is a share of a baseline that is 0.
    NotPositive,
    /// The figures are so large that their sums overflow.
    Overflow,
    /// The figure is infinite in every run of both groups.
    Infinite,
    /// Some runs have nothing to compute the figure from.
    NoFigure {
        runs: usize,
    },
}

/// A difference with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The candidate less the baseline.
    pub value: f64,
    pub interval: Interval,
}

/// How a comparison was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonMethod {
    #[default]
    None,
    Shift,
    /// The test of placements, since some figures are infinite.
    Placements,
    /// Without a test: every run of one group is infinite or unanswered, and the other group has no such run.
    Separated,
}

/// The runs and permutations behind a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Runs of the baseline and of the candidate.
    pub runs: (usize, usize),
    /// Runs of the baseline and of the candidate with an infinite figure.
    pub infinite: (usize, usize),
    /// Runs of the baseline and of the candidate without any answer.
    pub unanswered: (usize, usize),
    /// Runs of the baseline and of the candidate that have nothing to compute the figure from.
    pub without_figure: (usize, usize),
    /// Whether its runs are means of consecutive lines of a file.
    pub of_means: bool,
    /// The larger standard deviation within blocks over the smaller one, infinite if one group is constant; `None` if both
    /// are, or if they cannot be estimated.
    pub spread_ratio: Option<f64>,
    /// Blocks with runs of both.
    pub blocks: usize,
    /// Strata with runs of both groups: blocks or rounds, and in each the levels of the factors that are not compared.
    pub strata: usize,
    /// Whether strata are rounds of blocks.
    pub by_round: bool,
    /// Boots in which they ran, if known.
    pub boots: usize,
    /// Permutations evaluated; 0 without a test.
    pub permutations: u64,
    /// Whether those were all permutations.
    pub exact: bool,
    /// Whether lost probes were also counted as their time-out: the interval then spans both readings.
    pub reads_losses: bool,
    /// Whether that makes the interval more than twice as wide.
    pub losses_widen: bool,
}

/// One quantity of a candidate group, compared with that of a baseline group.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The compared quantity: an estimand of runs, or the values of files of numbers.
    pub quantity: Quantity,
    /// Index of the baseline group.
    pub baseline: usize,
    /// Index of the candidate group.
    pub candidate: usize,
    pub scale: FigureScale,
    /// Centres of the baseline and of the candidate over common blocks: geometric means on a logarithmic scale,
    /// otherwise means.
    pub centres: Option<(f64, f64)>,
    /// The difference in the unit of the figures.
    pub difference: Option<Effect>,
    /// The difference as a share of the baseline, on a linear scale of its absolute value; `None` for ratios, and if the
    /// baseline is 0.
    pub relative: Option<Effect>,
    pub margin: Option<f64>,
    pub verdict: Verdict,
    /// Why the verdict is undecided.
    pub undecided: Option<UndecidedReason>,
    pub method: ComparisonMethod,
    /// Whether latlab added the row: the losses behind the others. Such rows are a family of tests of their own.
    pub added: bool,
    /// p value of no difference; `None` without a test.
    pub p_value: Option<f64>,
    /// The same adjusted by Holm's method, over all rows with a test that were asked for, or over all that latlab added.
    pub adjusted_p_value: Option<f64>,
    /// p value of a difference beyond the margin; `None` without a margin, or if it is a share of 0.
    pub p_equivalent: Option<f64>,
    /// The same adjusted by Holm's method, in the same family.
    pub adjusted_p_equivalent: Option<f64>,
    /// The runs and permutations behind it.
    pub evidence: Evidence,
}

impl Comparison {
    /// The change in the unit of gates and margins: percentage points of ratios, otherwise a share of the baseline.
    pub const fn judged_change(&self) -> Option<Effect> {
        if self.quantity.is_share() { self.difference } else { self.relative }
    }

    /// The adjusted p value behind the verdict.
    pub fn deciding_p_value(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Equivalent => self.adjusted_p_equivalent,
            Verdict::Lower | Verdict::Higher | Verdict::Undecided => self.adjusted_p_value,
            Verdict::None => None,
        }
    }
}

impl UndecidedReason {
    pub const fn code(self) -> &'static str {
        match self {
            UndecidedReason::Unsure => "unsure",
            UndecidedReason::Corrected { .. } => "corrected",
            UndecidedReason::Losses => "losses",
            UndecidedReason::SingleRuns => "single-runs",
            UndecidedReason::TooFewRuns => "too-few-runs",
            UndecidedReason::TooFewBoots { .. } => "too-few-boots",
            UndecidedReason::NoCommonBlock => "no-common-block",
            UndecidedReason::NoRun { .. } => "no-run",
            UndecidedReason::NotPositive => "not-positive",
            UndecidedReason::Overflow => "overflow",
            UndecidedReason::Infinite => "infinite",
            UndecidedReason::NoFigure { .. } => "no-figure",
        }
    }
}

/// The scale on which figures are compared (decision 0011.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureScale {
    /// Logarithms: an effect is a factor.
    Logarithmic,
    /// Unchanged: an effect is a difference.
    Linear,
}

impl FigureScale {
    /// Logarithmic if all figures are positive and not ratios, which may be 0.
    pub fn of(values: impl Iterator<Item = f64>, is_share: bool) -> FigureScale {
        let mut values = values;
        if !is_share && values.all(|value| value > 0.0) { FigureScale::Logarithmic } else { FigureScale::Linear }
    }

    /// The mean of figures, infinite if one is; `None` of none.
    pub fn mean(self, values: &[f64]) -> Option<f64> {
        let sum: f64 = values.iter().map(|value| self.place(*value)).sum();
        (!values.is_empty()).then(|| self.to_figure(sum / values.len() as f64))
    }

    pub fn place(self, value: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => value.ln(),
            FigureScale::Linear => value,
        }
    }

    pub fn to_figure(self, value: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => value.exp(),
            FigureScale::Linear => value,
        }
    }

    /// A difference on this scale as a share of the baseline's figure; `None` on a linear scale, where the interval would
    /// take the baseline as known.
    pub fn relative(self, difference: f64) -> Option<f64> {
        (self == FigureScale::Logarithmic).then(|| difference.exp_m1())
    }

    /// A difference on this scale in the unit of the figures, given the baseline's figure.
    pub fn absolute(self, difference: f64, baseline: f64) -> f64 {
        match self {
            // The factor of two finite figures may be infinite.
            FigureScale::Logarithmic if difference > 1.0 => (baseline.ln() + difference).exp() - baseline,
            FigureScale::Logarithmic => baseline * difference.exp_m1(),
            FigureScale::Linear => difference,
        }
    }

    /// The half-width on this scale of an interval around figures of this size, given as a share of it; a factor's
    /// lower side is a little wider.
    pub fn half_width(self, share: f64, size: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => share.ln_1p(),
            FigureScale::Linear => share * size,
        }
    }

    /// The difference on this scale of figures that differ by `step`, of which the smallest is `least`; a little more, since
    /// groups that differ by just this are not to be decided by rounding.
    pub fn step(self, step: f64, least: f64) -> f64 {
        let difference = match self {
            FigureScale::Logarithmic => (step / least).ln_1p(),
            FigureScale::Linear => step,
        };
        difference * (1.0 + 1e-9)
    }

    /// The lowest and the highest difference within `margin`: a share of figures, of ratios a difference.
    pub fn margin(self, margin: f64) -> (f64, f64) {
        match self {
            FigureScale::Logarithmic => ((1.0 - margin).max(0.0).ln(), margin.ln_1p()),
            FigureScale::Linear => (-margin, margin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FigureScale;

    #[test]
    fn differences_of_logarithms_are_shares_of_the_baseline() {
        assert_eq!(FigureScale::Linear.margin(0.03), (-0.03, 0.03), "of ratios");
        assert_eq!(FigureScale::Linear.relative(0.5), None);
        assert_eq!(FigureScale::Linear.half_width(0.03, 200.0), 6.0);
        let (low, high) = FigureScale::Logarithmic.margin(0.25);
        assert!((low - 0.75_f64.ln()).abs() < 1e-15 && (high - 1.25_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn a_difference_is_finite_even_if_the_factor_is_not() {
        let factor = 1e300_f64.ln() - 1e-300_f64.ln();
        assert!(FigureScale::Logarithmic.relative(factor).is_some_and(f64::is_infinite));
        assert!((FigureScale::Logarithmic.absolute(factor, 1e-300) / 1e300 - 1.0).abs() < 1e-9);
        assert!((FigureScale::Logarithmic.absolute(2_f64.ln(), 3.0) - 3.0).abs() < 1e-12);
    }
}
