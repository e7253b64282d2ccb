//! Comparing groups of runs: is there a difference, how big, how sure. The method and why it: decision 0011; its
//! formulas and what was measured of it: docs/statistics.md. Pure: the seed is an argument.

mod agenda;
mod answer;
mod caveats;
mod compare;
mod conditions;
mod gate;
mod group;
mod level;
mod observed_run;
mod precision;
mod row;
mod scale;
mod strata;
mod wishes;

pub use agenda::ComparisonRequest;
pub use answer::{Comparison, Effect, Evidence, UndecidedReason, Verdict};
pub use compare::{Comparisons, compare};
pub use gate::{
    Gate, GateError, GateRow, GateState, GateUndecidedReason, UndecidedGate, gates_outcome, undecided_gates,
};
pub use group::{GroupingError, RunGroup, RunGroups, expect_one_kind};
pub use observed_run::{ExclusionReason, ObservedRun, RunFigure, RunOrigin};
pub use precision::is_precise;
pub use row::boots_needed;
pub use scale::FigureScale;
pub use wishes::{ComparisonOptions, EstimandError, Quantity, QuestionScope, default_subjects, subject_named};

#[cfg(test)]
mod tests;
