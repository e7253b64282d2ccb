use thiserror::Error;

use crate::units::human::ParseError;

/// A request that contradicts itself, a limit or the language of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The value is no duration, count or size.
    #[error("{source} for `{option}`")]
    Unreadable {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The value is readable and cannot be used.
    #[error("`{option}` cannot be `{value}`")]
    Unusable {
        /// The option, or `TARGET`.
        option: &'static str,
        /// As typed.
        value: String,
        /// Why not.
        cause: String,
        /// What could be.
        hint: String,
    },
    /// The contract knows it and this version does not.
    #[error("`{what}` is not in this version")]
    Later {
        /// As typed.
        what: String,
        /// What this version has instead.
        instead: &'static str,
    },
    /// A reflector that is not on loopback answers nobody without a key.
    #[error("`{target}` needs a key")]
    KeyNeeded {
        /// Target or address as typed.
        target: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// An option makes no sense for the target or beside another option.
    #[error("`{option}` cannot go with `{with}`")]
    OutOfPlace {
        /// The option.
        option: &'static str,
        /// The target or the other option.
        with: String,
        /// Why not.
        cause: &'static str,
        /// What to do about it.
        hint: &'static str,
    },
    /// An option says nothing without another.
    #[error("`{option}` needs `{needed}`")]
    Alone {
        /// The option.
        option: &'static str,
        /// What it needs beside it.
        needed: &'static str,
        /// Why.
        cause: &'static str,
        /// What to type.
        hint: &'static str,
    },
    /// What was asked multiplies to too many.
    #[error("{count} {noun} are too many for one command")]
    TooMany {
        /// How many would result.
        count: usize,
        /// Of what: `runs`, `sessions`.
        noun: &'static str,
        /// How many may.
        limit: usize,
        /// What makes so many.
        cause: &'static str,
        /// What to give less of.
        hint: &'static str,
    },
}

impl RequestError {
    /// Why, where the message does not say it all.
    pub fn cause(&self) -> Option<String> {
        match self {
            RequestError::Unreadable { source, .. } => source.cause(),
            RequestError::Unusable { cause, .. } => Some(cause.clone()),
            RequestError::Later { .. } => {
                Some(format!("this is latlab {}; it arrives in a later version", env!("CARGO_PKG_VERSION")))
            }
            RequestError::KeyNeeded { .. } => Some("without a key only loopback is measured and served".into()),
            RequestError::OutOfPlace { cause, .. } | RequestError::Alone { cause, .. } => Some((*cause).into()),
            RequestError::TooMany { limit, cause, .. } => Some(format!("{cause}, and {limit} is the limit")),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            RequestError::Unreadable { source, .. } => return source.hint(),
            RequestError::Unusable { hint, .. } => hint.clone(),
            RequestError::Later { instead, .. } => (*instead).into(),
            RequestError::KeyNeeded { hint, .. }
            | RequestError::OutOfPlace { hint, .. }
            | RequestError::Alone { hint, .. }
            | RequestError::TooMany { hint, .. } => (*hint).into(),
        })
    }

    /// The request is wrong.
    pub const fn exit_code(&self) -> u8 {
        2
    }
}
