//! Resolution of experiment files (docs/experiments.md). Each condition becomes a command line, which is parsed and
//! resolved as if typed (decision 0012).

mod ab;
mod conditions;
mod design;
mod file;
mod hooks;
mod options;
mod settle;

pub use ab::TypedExperiment;
pub(super) use ab::{MeasuringCommand, RecipePart, typed_experiment};
pub use conditions::ConditionSelection;
pub use file::FileError;
pub use settle::{ExperimentJob, experiment, experiment_from};

#[cfg(test)]
mod tests;
