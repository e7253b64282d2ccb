//! Errors whose cause, hint and exit code are still inherent methods.

use crate::diagnostics::{Explain, Failure};

macro_rules! explains {
    ($($error:ty),+ $(,)?) => {$(
        impl Explain for $error {
            fn explain(&self) -> Failure {
                Failure {
                    message: self.to_string(),
                    cause: <$error>::cause(self),
                    hint: <$error>::hint(self),
                    exit_code: <$error>::exit_code(self),
                }
            }
        }
    )+};
}

explains!(
    crate::agent::AgentEnd,
    crate::cli::resolve::RequestError,
    crate::load::LoadError,
    crate::measure::MeasureError,
);
