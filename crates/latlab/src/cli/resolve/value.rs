//! Parsing and range checks of single values.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::plan::defaults;
use crate::units::Nanos;
use crate::units::human::{self, ParseError};

/// Parses a duration above 0 and at most `longest`.
pub(super) fn span(option: &'static str, typed: &str, longest: Nanos) -> Result<Nanos, RequestError> {
    let read = human::parse_duration(typed).map_err(|source| unreadable(option, source))?;
    if read <= Nanos::ZERO {
        return Err(unusable(
            option,
            typed,
            "it must be longer than 0",
            format!("longer than 0, up to {}", human::typed_span(longest)),
        ));
    }
    if read > longest {
        let cause = format!("it is longer than {}", human::typed_span(longest));
        return Err(unusable(option, typed, cause, format!("up to {}; check the unit", human::typed_span(longest))));
    }
    Ok(read)
}

/// Parses an integer within `limits`.
pub(super) fn whole(option: &'static str, typed: &str, limits: RangeInclusive<u64>) -> Result<u64, RequestError> {
    let hint = |source: ParseError| match *limits.end() {
        u64::MAX => source,
        _ => ParseError { hint: format!("a whole number {}", range(&limits)), ..source },
    };
    let read = human::parse_count(typed).map_err(|source| unreadable(option, hint(source)))?;
    within(option, typed, read, limits)
}

fn range(limits: &RangeInclusive<u64>) -> String {
    match (limits.start(), limits.end()) {
        (least, &u64::MAX) => format!("{least} or more"),
        (least, most) => format!("from {least} to {most}"),
    }
}

/// Parses the payload size of a probe in bytes.
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

/// Parses a port number other than 0.
pub(super) fn port(option: &'static str, typed: &str) -> Result<u16, RequestError> {
    whole(option, typed, 1..=u64::from(u16::MAX)).map(|port| port as u16)
}

/// Parses a CPU number that a mask can hold, without a check against the host.
pub(super) fn cpu(option: &'static str, typed: &str) -> Result<u16, RequestError> {
    if human::parse_cpus(typed, defaults::CPU_MAX).is_ok_and(|cpus| cpus.len() > 1) {
        let hint = format!("the number of one CPU, from 0 to {}", defaults::CPU_MAX);
        return Err(unusable(option, typed, "it names several CPUs, and the thread is pinned to one", hint));
    }
    whole(option, typed, 0..=u64::from(defaults::CPU_MAX)).map(|cpu| cpu as u16)
}

fn within(option: &'static str, typed: &str, read: u64, limits: RangeInclusive<u64>) -> Result<u64, RequestError> {
    let (least, most) = (*limits.start(), *limits.end());
    let cause = match read {
        _ if limits.contains(&read) => return Ok(read),
        _ if read < least => format!("the least is {least}"),
        _ => format!("the most is {most}"),
    };
    Err(unusable(option, typed, cause, range(&limits)))
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

/// A contradictory, out-of-range or malformed request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The value is not a duration, count or size.
    #[error("{source} for `{option}`")]
    Unreadable { option: &'static str, source: ParseError },
    /// The value is well-formed but not allowed.
    #[error("`{option}` cannot be `{value}`")]
    Unusable {
        /// Name of the option, or `TARGET`.
        option: &'static str,
        value: String,
        cause: String,
        hint: String,
    },
    /// An address other than loopback requires a key.
    #[error("`{target}` needs a key")]
    KeyNeeded {
        /// Target or address as typed.
        target: String,
        hint: &'static str,
    },
    /// An option does not apply to the target or conflicts with another option.
    #[error("`{option}` cannot go with `{with}`")]
    OutOfPlace {
        option: &'static str,
        /// The conflicting target or option.
        with: String,
        cause: &'static str,
        hint: &'static str,
    },
    /// An option requires another option.
    #[error("`{option}` needs `{needed}`")]
    Alone { option: &'static str, needed: &'static str, cause: &'static str, hint: &'static str },
    /// The combinations of the options exceed a limit.
    #[error("{count} {noun} are too many for one command")]
    TooMany {
        count: usize,
        /// Unit of the number: `runs`, `sessions` or `quantiles`.
        noun: &'static str,
        limit: usize,
        cause: &'static str,
        hint: &'static str,
    },
}

impl Explain for RequestError {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        match self {
            RequestError::Unreadable { source, .. } => failure.because(&source.cause).hint(&source.hint),
            RequestError::Unusable { cause, hint, .. } => failure.because(cause).hint(hint),
            RequestError::KeyNeeded { hint, .. } => {
                failure.because("without a key only loopback is measured and served").hint(*hint)
            }
            RequestError::OutOfPlace { cause, hint, .. } | RequestError::Alone { cause, hint, .. } => {
                failure.because(*cause).hint(*hint)
            }
            RequestError::TooMany { limit, cause, hint, .. } => {
                failure.because(format!("{cause}; the limit is {limit}")).hint(*hint)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive() {
        assert_eq!(size("--size", "24"), Ok(24));
        assert_eq!(size("--size", "65507"), Ok(65_507));
        assert_eq!(port("--source-port", "65535"), Ok(65_535));
        assert_eq!(cpu("--cpu", "0"), Ok(0));
        assert_eq!(span("--timeout", "60s", defaults::TIMEOUT_MAX), Ok(defaults::TIMEOUT_MAX));
        assert_eq!(whole("--count", "50k", 1..=u64::MAX), Ok(50_000));
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_bound() {
        let refused = [
            (size("--size", "23").err(), "23", "24"),
            (size("--size", "70000").err(), "70000", "65507"),
            (port("--source-port", "0").map(u32::from).err(), "0", "1"),
            (port("--source-port", "65536").map(u32::from).err(), "65536", "65535"),
            (cpu("--cpu", "1024").map(u32::from).err(), "1024", "1023"),
            (cpu("--cpu", "0-1").map(u32::from).err(), "0-1", "the number of one CPU"),
            (cpu("--cpu", "2,4").map(u32::from).err(), "2,4", "the number of one CPU"),
            (whole("--count", "0", 1..=u64::MAX).map(|_| 0).err(), "0", "1 or more"),
            (span("--timeout", "61s", defaults::TIMEOUT_MAX).map(|_| 0).err(), "61s", "up to 1m"),
            (span("--timeout", "0", defaults::TIMEOUT_MAX).map(|_| 0).err(), "0", "longer than 0, up to 1m"),
        ];
        for (error, typed, bound) in refused {
            let error = error.expect(typed);
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
            assert!(error.explain().hint.is_some_and(|hint| hint.contains(bound)), "{error:?}");
            assert!(error.explain().cause.is_some());
        }
    }
}
