//! The file of an experiment, settled: each condition is a command line that goes through the same parser and the same
//! settling as if it had been typed (decision 0012). Format: docs/experiments.md.

mod conditions;
mod design;
mod file;
mod options;
mod settle;

pub use conditions::ConditionSelection;
pub use file::FileError;
pub use settle::{ExperimentJob, experiment, experiment_from};

#[cfg(test)]
mod tests;
