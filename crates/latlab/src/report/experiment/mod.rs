//! An experiment as text and JSON: its plan, and what its runs show.

pub mod aa_test;
pub mod plan;
pub mod published;
pub mod published_document;
pub mod recipes;
pub mod remedies;
pub mod single_condition;
pub mod spread;
pub mod timeout_slack;
