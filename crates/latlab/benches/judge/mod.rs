//! What the benches share: rounds, ratios, verdicts, contenders, accounts.

pub(crate) mod account;
pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod paired;
pub(crate) mod programs;
pub(crate) mod readings;
