//! What a comparison says.

use super::scale::FigureScale;
use super::wishes::Quantity;
use crate::stats::Interval;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate is lower.
    Lower,
    /// The candidate is higher.
    Higher,
    /// The difference is proven to lie within the margin.
    Equivalent,
    /// The runs do not say.
    Undecided,
}

/// Why a comparison is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// The runs differ too much, or the difference is too small; with so many further runs of each group it would be
    /// decided, as far as can be told.
    Unsure {
        /// Further runs of each group; none where no sensible number would do.
        runs_needed: Option<u32>,
    },
    /// One run against one run.
    SingleRuns,
    /// Even if every run of one group lay beyond every run of the other, it would not be enough.
    TooFewRuns {
        /// Further runs of each group with which it would be.
        runs_needed: Option<u32>,
    },
    /// Too few boots to say something about boots.
    TooFewBoots {
        /// So many there are.
        boots: usize,
        /// So many are needed.
        needed: usize,
    },
    /// No block has runs of both groups at the same levels of the other factors.
    NoCommonBlock,
    /// A group has no run at all that can be judged.
    NoRun {
        /// The baseline is one.
        baseline: bool,
        /// The candidate is one.
        candidate: bool,
    },
    /// Not proven, and the margin is a share of a baseline that is 0.
    ZeroBaseline,
    /// The figures are so large that their sums are no numbers.
    Overflow,
    /// The figure fell among the lost in so many runs.
    Lost {
        /// Of the baseline.
        baseline: usize,
        /// Of the candidate.
        candidate: usize,
    },
    /// So many runs had nothing to compute it from.
    NoFigure {
        /// Of both groups.
        runs: usize,
    },
}

/// A difference with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The candidate less the baseline.
    pub value: f64,
    /// Where it may lie.
    pub interval: Interval,
}

/// What a row rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Runs of the baseline and of the candidate.
    pub runs: (usize, usize),
    /// Blocks with runs of both.
    pub blocks: usize,
    /// What runs were exchanged inside of: blocks, in each the levels of the factors that are not compared.
    pub strata: usize,
    /// Boots that they ran in, where that is known.
    pub boots: usize,
    /// Exchanges of names that were looked at; 0 where there was no test.
    pub exchanges: u64,
    /// Whether those were all there are.
    pub exact: bool,
}

/// One row: a quantity of a candidate against that of a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is compared.
    pub quantity: Quantity,
    /// The places of the two groups.
    pub baseline: usize,
    /// That of the candidate.
    pub candidate: usize,
    /// On which scale.
    pub scale: FigureScale,
    /// The typical figure of the baseline and of the candidate over common blocks: geometric means where logarithms
    /// are compared, else means.
    pub centres: Option<(f64, f64)>,
    /// The difference in the unit of the figures.
    pub difference: Option<Effect>,
    /// The difference as a share of the baseline, or of its size where figures are compared as they are; none of shares,
    /// and where the baseline is 0.
    pub relative: Option<Effect>,
    /// The margin within which a difference counts as none.
    pub margin: Option<f64>,
    /// The answer.
    pub verdict: Verdict,
    /// Why there is no other one.
    pub undecided: Option<UndecidedReason>,
    /// Of no difference; none where there was no test.
    pub p_value: Option<f64>,
    /// The same by Holm, over all rows with a test.
    pub adjusted_p_value: Option<f64>,
    /// Of a difference beyond the margin; none where there is no margin, or none that can be told.
    pub p_equivalent: Option<f64>,
    /// The same by Holm, in the same family.
    pub adjusted_p_equivalent: Option<f64>,
    /// What it rests on.
    pub rests: Evidence,
}

impl Comparison {
    /// The change as gates and margins are told: of shares in points, of everything else as a share of the baseline.
    pub const fn judged_change(&self) -> Option<Effect> {
        if self.quantity.is_share() { self.difference } else { self.relative }
    }

    /// The adjusted p value that its verdict rests on.
    pub fn deciding_p_value(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Equivalent => self.adjusted_p_equivalent,
            Verdict::Lower | Verdict::Higher | Verdict::Undecided => self.adjusted_p_value,
        }
    }
}

impl Verdict {
    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        }
    }
}

impl UndecidedReason {
    /// The code in documents.
    pub const fn code(self) -> &'static str {
        match self {
            UndecidedReason::Unsure { .. } => "unsure",
            UndecidedReason::SingleRuns => "single-runs",
            UndecidedReason::TooFewRuns { .. } => "too-few-runs",
            UndecidedReason::TooFewBoots { .. } => "too-few-boots",
            UndecidedReason::NoCommonBlock => "no-common-block",
            UndecidedReason::NoRun { .. } => "no-run",
            UndecidedReason::ZeroBaseline => "zero-baseline",
            UndecidedReason::Overflow => "overflow",
            UndecidedReason::Lost { .. } => "lost",
            UndecidedReason::NoFigure { .. } => "no-figure",
        }
    }

    /// Further runs of each group that would decide, where that is known.
    pub const fn runs_needed(self) -> Option<u32> {
        match self {
            UndecidedReason::Unsure { runs_needed } | UndecidedReason::TooFewRuns { runs_needed } => runs_needed,
            _ => None,
        }
    }
}
