//! The one failure that reaches the user, whatever room it came from.

use std::fmt;

/// What every room's error can tell beside its message.
pub trait Explain: std::error::Error {
    /// Why, where more is known than the message says.
    fn cause(&self) -> Option<String>;
    /// What to do about it.
    fn hint(&self) -> Option<String>;
    /// 2: the request is wrong. 3: the world refuses.
    fn exit_code(&self) -> u8;
}

/// A failure as the user meets it: what was attempted on what, why not, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was attempted, with the value in backticks.
    pub message: String,
    /// Why it failed.
    pub cause: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code of the process.
    pub exit_code: u8,
}

impl Failure {
    /// A request that cannot be understood or fulfilled whatever the world is like: exit code 2.
    pub fn request(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), cause: None, hint: None, exit_code: 2 }
    }

    /// The world refuses: exit code 3.
    pub fn world(message: impl Into<String>) -> Failure {
        Failure { exit_code: 3, ..Failure::request(message) }
    }

    /// With its cause.
    pub fn because(mut self, cause: impl Into<String>) -> Failure {
        self.cause = Some(cause.into());
        self
    }

    /// With what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// The message alone; [`crate::console::Console::failure`] prints all of it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure {
            message: error.to_string(),
            cause: Explain::cause(&error),
            hint: error.hint(),
            exit_code: error.exit_code(),
        }
    }
}

/// Rooms cannot see this floor, so their errors carry the three methods as their own and are named here.
macro_rules! explains {
    ($($error:ty),+ $(,)?) => {$(
        impl Explain for $error {
            fn cause(&self) -> Option<String> {
                <$error>::cause(self)
            }
            fn hint(&self) -> Option<String> {
                <$error>::hint(self)
            }
            fn exit_code(&self) -> u8 {
                <$error>::exit_code(self)
            }
        }
    )+};
}

explains!(
    crate::agent::AgentEnd,
    crate::analysis::FailIfError,
    crate::analysis::comparison::GateError,
    crate::analysis::comparison::GroupingError,
    crate::analysis::comparison::EstimandError,
    crate::cli::resolve::FileError,
    crate::cli::resolve::RequestError,
    crate::experiment::ExperimentError,
    crate::host::HostError,
    crate::load::LoadError,
    crate::measure::MeasureError,
    crate::numbers::NumbersError,
    crate::recording::RecordingError,
    crate::session::KeyError,
    crate::session::ServeError,
    crate::session::SessionError,
    crate::transport::refusal::TransportError,
    crate::units::human::ParseError
);

/// A failure to do `what` in this process, for the kernel's reason.
pub fn refused(what: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::world(format!("cannot {what}")).because(in_words(&error))
}

/// What the kernel said, in words and by name: never a bare `os error`.
pub fn in_words(error: &std::io::Error) -> String {
    latlab_sys::errno::explain(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_error_keeps_all_it_knows() {
        let error = crate::units::human::parse_duration("10").expect_err("no unit");
        let failure = Failure::from(error.clone());
        assert_eq!(failure.message, error.to_string());
        assert_eq!((failure.cause, failure.hint, failure.exit_code), (error.cause(), error.hint(), 2));
    }
}
