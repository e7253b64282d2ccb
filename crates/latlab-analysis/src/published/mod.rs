//! Published figures against the raw data: which hold, and which mistake reproduces the digits of those that do not. What is
//! tried and how: docs/check-published.md. Pure.

mod check;
mod claim;
mod digits;
mod merged;
mod mistake;
mod order;
mod population;
mod raw_values;

pub use check::{CheckedClaim, ClaimVerdict, ExplainedGroup, Explanation, FigureCheck, check_figures};
pub use claim::{ClaimError, FigureClaim, OrderClaim, PublishedFigure, PublishedNumber, PublishedUnit, StatedClaims};
pub use digits::{FinerDigits, StretchPlace, Undecidable, UndecidedClaim, UnfitNumber, ValueScale};
pub use mistake::{Hypothesis, Mistake};
pub use order::{CheckedOrder, OrderError, OrderVerdict, check_orders};
pub use population::QuantileRule;
pub use raw_values::{Halving, PublishedData, SampleError, SampleRows, StatedValues, UnfitSample};
