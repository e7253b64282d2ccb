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

pub use agenda::Agenda;
pub use answer::{Comparison, Effect, Rests, Undecided, Verdict};
pub use compare::{Comparisons, compare};
pub use gate::{Doubt, Gate, GateError, GateState, Gated};
pub use group::{GroupingError, RunGroup, RunGroups, expect_one_kind};
pub use observed_run::{LeftOut, ObservedRun, Place, RunFigure};
pub use precision::is_precise;
pub use row::boots_needed;
pub use scale::Scale;
pub use wishes::{ComparisonWishes, Over, Quantity, SubjectError, default_subjects, subject_named};

#[cfg(test)]
mod tests;
