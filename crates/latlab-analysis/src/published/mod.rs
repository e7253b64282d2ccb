//! Published figures against the raw data: which hold, and which mistake reproduces those that do not. What is tried and
//! how: docs/check-published.md. Pure.

mod check;
mod claim;
mod data;
mod mistake;
mod numbers;

pub use check::{CheckedClaim, ClaimVerdict, ExplainedGroup, FigureCheck, check_figures};
pub use claim::{FigureClaim, PublishedUnit, parse_claims};
pub use data::{Halving, PublishedData};
pub use mistake::by_mistake;
