//! Comparison of groups of runs: differences, their intervals, and verdicts. Method and reasons: decision 0011.
//! Formulas and their validation: docs/statistics.md. Pure: the seed is an argument.

pub(crate) mod caveats;
mod compare;
mod grouping_error;
mod groups;
mod numbers;
mod observed_run;
mod request;
mod row;
mod strata;
mod verdict;

pub use super::estimand::{EstimandError, RunFigure, default_estimands, parse_estimand};
pub use crate::stats::Look;
pub use caveats::{NOT_POSSIBLE, impossible_words, missing_runs};
pub(crate) use compare::is_precise;
pub use compare::{Comparisons, compare};
pub use grouping_error::{GroupingError, MISSING, RESTORE, RunsOfKind};
pub use groups::{RunGroup, RunGroups, expect_one_kind};
pub use numbers::{Lines, NumberFiles, independence_caveat};
pub use observed_run::{ExclusionReason, ObservedRun, RunOrigin, levels_of_run};
pub use request::{ComparisonOptions, ComparisonRequest, Quantity, QuestionScope};
pub use row::boots_needed;
pub use verdict::{Comparison, ComparisonMethod, Effect, Evidence, FigureScale, UndecidedReason, Verdict};

#[cfg(test)]
mod tests;
