//! Single values: read, held to their limits, or refused with the value and a hint.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::plan::defaults;
use crate::units::Nanos;
use crate::units::human::{self, ParseError};

/// A time longer than none and at most `longest`.
pub(super) fn span(option: &'static str, typed: &str, longest: Nanos) -> Result<Nanos, RequestError> {
    let read = human::parse_duration(typed).map_err(|source| unreadable(option, source))?;
    if read <= Nanos::ZERO {
        return Err(unusable(
            option,
            typed,
            "nothing happens in no time",
            format!("longer than 0, up to {}", human::typed_span(longest)),
        ));
    }
    if read > longest {
        let cause = format!("it is longer than {}", human::typed_span(longest));
        return Err(unusable(option, typed, cause, format!("up to {}; see the unit", human::typed_span(longest))));
    }
    Ok(read)
}

/// A whole number within `limits`.
pub(super) fn whole(option: &'static str, typed: &str, limits: RangeInclusive<u64>) -> Result<u64, RequestError> {
    let read = human::parse_count(typed).map_err(|source| unreadable(option, source))?;
    within(option, typed, read, limits)
}

/// A payload that a probe can have.
pub(super) fn size(option: &'static str, typed: &str) -> Result<u32, RequestError> {
    let read = human::parse_size(typed).map_err(|source| unreadable(option, source))?;
    let (least, most) = (defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES);
    if read < least {
        let cause = format!("the smallest probe has {least} bytes: its header and its tag");
        return Err(unusable(option, typed, cause, size_hint()));
    }
    if read > most {
        let cause = format!("the largest UDP payload over IPv4 has {most} bytes");
        return Err(unusable(option, typed, cause, size_hint()));
    }
    Ok(read)
}

fn size_hint() -> String {
    format!("from {} to {} bytes", defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES)
}

/// A UDP port that can be named.
pub(super) fn port(option: &'static str, typed: &str) -> Result<u16, RequestError> {
    whole(option, typed, 1..=u64::from(u16::MAX)).map(|port| port as u16)
}

/// A CPU number that a mask can hold; whether this host has it is for the host to say.
pub(super) fn cpu(option: &'static str, typed: &str) -> Result<u16, RequestError> {
    whole(option, typed, 0..=u64::from(defaults::CPU_MAX)).map(|cpu| cpu as u16)
}

fn within(option: &'static str, typed: &str, read: u64, limits: RangeInclusive<u64>) -> Result<u64, RequestError> {
    let (least, most) = (*limits.start(), *limits.end());
    let cause = match read {
        _ if limits.contains(&read) => return Ok(read),
        _ if read < least => format!("the least is {least}"),
        _ => format!("the most is {most}"),
    };
    let hint = if most == u64::MAX { format!("{least} or more") } else { format!("from {least} to {most}") };
    Err(unusable(option, typed, cause, hint))
}

pub(super) fn unreadable(option: &'static str, source: ParseError) -> RequestError {
    RequestError::Unreadable { option, source }
}

pub(super) fn unusable(
    option: &'static str,
    value: impl Display,
    cause: impl Into<String>,
    hint: impl Into<String>,
) -> RequestError {
    RequestError::Unusable { option, value: value.to_string(), cause: cause.into(), hint: hint.into() }
}

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
            RequestError::Unreadable { source, .. } => Some(source.cause.clone()),
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
            RequestError::Unreadable { source, .. } => return Some(source.hint.clone()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_part_of_the_range() {
        assert_eq!(size("--size", "24"), Ok(24));
        assert_eq!(size("--size", "65507"), Ok(65_507));
        assert_eq!(port("--source-port", "65535"), Ok(65_535));
        assert_eq!(cpu("--cpu", "0"), Ok(0));
        assert_eq!(span("--timeout", "60s", defaults::TIMEOUT_MAX), Ok(defaults::TIMEOUT_MAX));
        assert_eq!(whole("--count", "50k", 1..=u64::MAX), Ok(50_000));
    }

    #[test]
    fn what_lies_outside_is_refused_with_the_value_and_the_bound() {
        let refused = [
            (size("--size", "23").err(), "23", "24"),
            (size("--size", "70000").err(), "70000", "65507"),
            (port("--source-port", "0").map(u32::from).err(), "0", "1"),
            (port("--source-port", "65536").map(u32::from).err(), "65536", "65535"),
            (cpu("--cpu", "1024").map(u32::from).err(), "1024", "1023"),
            (whole("--count", "0", 1..=u64::MAX).map(|_| 0).err(), "0", "1 or more"),
            (span("--timeout", "61s", defaults::TIMEOUT_MAX).map(|_| 0).err(), "61s", "up to 1m"),
            (span("--timeout", "0", defaults::TIMEOUT_MAX).map(|_| 0).err(), "0", "longer than 0, up to 1m"),
        ];
        for (error, typed, bound) in refused {
            let error = error.expect(typed);
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains(bound)), "{error:?}");
            assert!(error.cause().is_some());
        }
    }
}
