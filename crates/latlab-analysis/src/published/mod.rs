//! Published figures against the raw data: which hold, and which mistake reproduces those that do not. What is tried and
//! how: docs/check-published.md. Pure.

mod check;
mod claim;
mod data;
mod mistake;
mod numbers;
mod order;

pub use check::{
    CheckedClaim, ClaimVerdict, ExplainedGroup, Explanation, FigureCheck, StretchPlace, UndecidedClaim, check_figures,
};
pub use claim::{PublishedUnit, StatedClaims};
pub use data::{Halving, PublishedData};
pub use order::{CheckedOrder, check_orders};
