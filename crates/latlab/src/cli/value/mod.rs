//! The values of options: each parser turns one typed word into a value, and refuses what no command can use.

mod load;
mod log;
mod path;
mod printed;
mod setting;
mod summary;
mod target;

use std::fmt::Display;
use std::ops::RangeInclusive;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use thiserror::Error;

pub use load::{LOAD_KINDS, load};
pub use log::{direction, log_format, logged_metric};
pub use path::{Bind, address_in, bind, code_point, history, is_interface_name, listening, peer_address, source_ports};
pub use printed::printed;
pub use setting::setting;
pub use summary::{
    Confidence, Delimiters, NamedGlob, Tag, confidence, delimiters, instant, named_glob, percent, percent_word,
    quantile, tag,
};
pub use target::{TypedTarget, host_and_port, split_command, target};

use crate::diagnostics::Failure;
use crate::plan::{CommandOutput, Pace, TransportKind, Via, WakeupCpus, Warmup, defaults};
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate, ParseError, TimeUnit, typed_percent, typed_span};

/// Far more than devices have.
pub const QUEUE_MAX: u32 = 65_535;
/// The value of `--probe` that sends none; no probe is sent every 0 ns.
pub const NO_PROBES: Nanos = Nanos::ZERO;

/// Why a value cannot be used. `cli::error` adds the option and the value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{cause}")]
pub struct Refusal {
    pub cause: String,
    pub hint: String,
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Refusal {
        refusal(error.cause, error.hint)
    }
}

pub fn refusal(cause: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal { cause: cause.into(), hint: hint.into() }
}

/// The failure of a `value` that does not fit the other options.
pub fn unusable(option: &str, value: impl Display, cause: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure::request(format!("`{option}` cannot be `{value}`")).because(cause).hint(hint)
}

/// The failure of an `option` that has no meaning beside `with`.
pub fn out_of_place(option: &str, with: impl Display, cause: &str, hint: &str) -> Failure {
    Failure::request(format!("`{option}` cannot go with `{with}`")).because(cause).hint(hint)
}

/// The failure of what has no meaning alone.
pub fn alone(option: &str, needed: &str, cause: &str, hint: &str) -> Failure {
    Failure::request(format!("`{option}` needs `{needed}`")).because(cause).hint(hint)
}

/// A command that asks for `count` of something, of which it can have `limit`.
pub fn too_many(count: usize, noun: &str, limit: usize, cause: &str, hint: &str) -> Failure {
    Failure::request(format!("{count} {noun} are too many for one command"))
        .because(format!("{cause}; the limit is {limit}"))
        .hint(hint)
}

/// A parser of one of the words of `all`.
pub fn one_of<T>(all: &'static [T], word: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let find = move |typed: String| all.iter().copied().find(|one| word(*one) == typed).ok_or("unknown");
    PossibleValuesParser::new(all.iter().map(|one| word(*one))).try_map(find)
}

/// A parser of `on` and `off`.
pub fn switch() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|word| word == "on")
}

pub fn time_unit() -> impl TypedValueParser<Value = TimeUnit> {
    one_of(&TimeUnit::ALL, TimeUnit::word)
}

/// A parser of the transports, of which this binary may lack one.
pub fn transport() -> impl TypedValueParser<Value = TransportKind> {
    one_of(&TransportKind::ALL, TransportKind::word).try_map(|transport| {
        let cause = "this latlab was built without the feature `dds`, which needs a C compiler";
        let is_built = transport.is_built();
        is_built.then_some(transport).ok_or_else(|| refusal(cause, "`cargo build --release` builds it with DDS"))
    })
}

/// A parser of durations above 0 and at most `longest`.
pub fn span(longest: Nanos) -> impl Fn(&str) -> Result<Nanos, Refusal> + Clone {
    move |typed| {
        let read = human::parse_duration(typed)?;
        let most = typed_span(longest);
        match read {
            Nanos(..=0) => Err(refusal("it must be longer than 0", format!("longer than 0, up to {most}"))),
            read if read > longest => {
                Err(refusal(format!("it is longer than {most}"), format!("up to {most}; check the unit")))
            }
            read => Ok(read),
        }
    }
}

/// A parser of whole numbers within `limits`.
pub fn whole<T: TryFrom<u64>>(
    limits: RangeInclusive<impl Into<u64> + Copy>,
) -> impl Fn(&str) -> Result<T, Refusal> + Clone {
    let (least, most): (u64, u64) = ((*limits.start()).into(), (*limits.end()).into());
    move |typed| {
        let range = match most {
            u64::MAX => format!("{least} or more"),
            most => format!("from {least} to {most}"),
        };
        let read = human::parse_count(typed).map_err(|error| match most {
            u64::MAX => error.into(),
            _ => refusal(error.cause, format!("a whole number {range}")),
        })?;
        let out_of_range = || {
            let cause = if read < least { format!("the minimum is {least}") } else { format!("the maximum is {most}") };
            refusal(cause, range.clone())
        };
        let within = (least..=most).contains(&read).then(|| T::try_from(read).ok()).flatten();
        within.ok_or_else(out_of_range)
    }
}

/// Parses the payload size of a probe in bytes.
pub fn size(typed: &str) -> Result<u32, Refusal> {
    let (least, most) = (defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES);
    let cause = match human::parse_size(typed)? {
        bytes if bytes < least => format!("the smallest probe has {least} bytes: its header and its tag"),
        bytes if bytes > most => format!("the largest UDP payload over IPv4 has {most} bytes"),
        bytes => return Ok(bytes),
    };
    Err(refusal(cause, format!("from {least} to {most} bytes")))
}

/// Parses a CPU number that a mask can hold, without a check against the host.
pub fn cpu(typed: &str) -> Result<u16, Refusal> {
    if human::parse_cpus(typed, defaults::CPU_MAX).is_ok_and(|cpus| cpus.len() > 1) {
        let hint = format!("the number of one CPU, from 0 to {}", defaults::CPU_MAX);
        return Err(refusal("it names several CPUs, and the thread is pinned to one", hint));
    }
    whole(0..=defaults::CPU_MAX)(typed)
}

/// Where the measuring thread of an end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Wherever the scheduler puts it.
    Any,
    Cpu(u16),
}

impl Pin {
    pub const fn cpu(self) -> Option<u16> {
        match self {
            Pin::Any => None,
            Pin::Cpu(cpu) => Some(cpu),
        }
    }
}

/// Parses a pin: `any`, or a CPU number without a check against the host.
pub fn pin(typed: &str) -> Result<Pin, Refusal> {
    if typed == "any" { Ok(Pin::Any) } else { cpu(typed).map(Pin::Cpu) }
}

/// Parses the CPUs of threads that sleep.
pub fn wakeup_cpus(typed: &str) -> Result<WakeupCpus, Refusal> {
    match typed {
        "all" => Ok(WakeupCpus::All),
        list => Ok(WakeupCpus::These(human::parse_cpus(list, defaults::CPU_MAX)?)),
    }
}

/// Parses a word of a command, which the kernel takes up to its first NUL.
pub fn without_null(typed: &str) -> Result<String, Refusal> {
    match typed.contains('\0') {
        true => Err(refusal("it has a NUL character", "leave it out")),
        false => Ok(typed.to_owned()),
    }
}

/// Parses where the output of a command goes.
pub fn command_output(typed: &str) -> Result<CommandOutput, Refusal> {
    match typed {
        "null" => Ok(CommandOutput::Null),
        "inherit" => Ok(CommandOutput::Inherit),
        "" => Err(refusal("it has no name", "`null`, `inherit` or a file")),
        path => Ok(CommandOutput::File(path.to_owned())),
    }
}

pub fn via(typed: &str) -> Result<Via, Refusal> {
    let words = Via::ALL.map(Via::word);
    let via = Via::ALL.into_iter().find(|via| via.word() == typed);
    via.ok_or_else(|| refusal("latlab knows no such way to sleep", human::suggestion(typed, &words)))
}

/// Parses a warm-up: a count or a time. 0 is none.
pub fn warmup(typed: &str) -> Result<Warmup, Refusal> {
    if let Ok(count) = human::parse_count(typed) {
        return Ok(Warmup { count: Some(count).filter(|count| *count > 0), duration_ns: None });
    }
    let is_none = human::parse_duration(typed) == Ok(Nanos::ZERO);
    let duration_ns = if is_none { None } else { Some(span(defaults::DURATION_MAX)(typed)?) };
    Ok(Warmup { count: None, duration_ns })
}

/// Parses the warm-up of a stream, whose rate of packets is not known beforehand.
pub fn stream_warmup(typed: &str) -> Result<Warmup, Refusal> {
    match warmup(typed)? {
        Warmup { count: Some(_), .. } => Err(refusal("a stream is limited by time", "such as `1s`, or `0`")),
        warmup => Ok(warmup),
    }
}

/// `--with-wakeup T[:late=T2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeupsBeside {
    pub interval_ns: Nanos,
    pub late_ns: Option<Nanos>,
}

pub fn wakeups_beside(typed: &str) -> Result<WakeupsBeside, Refusal> {
    let span = span(defaults::INTERVAL_MAX);
    let (interval, late) = typed.split_once(':').map_or((typed, None), |(interval, late)| (interval, Some(late)));
    let late_ns = late.map(|typed| {
        let hint = "`--with-wakeup 1ms`, or `--with-wakeup 1ms:late=200us`";
        let late = typed.strip_prefix("late=");
        let late = late.ok_or_else(|| refusal("after the interval only `late=T2` is known", hint))?;
        span(late).map_err(|Refusal { cause, hint }| refusal(format!("its `late=`: {cause}"), hint))
    });
    Ok(WakeupsBeside { late_ns: late_ns.transpose()?, interval_ns: span(interval)? })
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamRate {
    pub pace: Pace,
    /// Whether bits are counted on the wire.
    pub wire: bool,
}

/// Parses `max`, `1Gbit/s` or `500kpps`.
pub fn rate(typed: &str) -> Result<StreamRate, Refusal> {
    let (number, wire) = typed.strip_suffix(":wire").map_or((typed, false), |number| (number, true));
    let pace = match number {
        "max" if wire => {
            return Err(refusal("`max` has no rate that could be counted on the wire", "leave out `:wire`"));
        }
        "max" => Pace::Max,
        share if share.ends_with('%') => {
            return Err(refusal("a share needs a rate", "such as `1Gbit/s`, `500kpps` or `max`"));
        }
        number => match human::parse_network_rate(number)? {
            NetworkRate::Bits(bps) => Pace::Rate { bps },
            NetworkRate::Packets(_) if wire => {
                return Err(refusal("packets per second are the same on the wire", "leave out `:wire`"));
            }
            NetworkRate::Packets(pps) => Pace::Packets { pps },
        },
    };
    Ok(StreamRate { pace, wire })
}

/// Parses a rate in bits per second above 0.
pub fn down_rate(typed: &str) -> Result<u64, Refusal> {
    let most = defaults::STREAM_RATE_MAX_BPS;
    match human::parse_network_rate(typed)? {
        NetworkRate::Bits(bps) if (1..=most).contains(&bps) => Ok(bps),
        _ => {
            let hint = format!("a rate such as 1Gbit/s, up to {}", human::typed_bit_rate(most));
            Err(refusal("it is not a rate in bits per second, or is out of range", hint))
        }
    }
}

/// Parses a loss ratio such as `0` or `0.5%`. A bare `0.5` is refused because it may mean 0.5 % or 50 %, and a loss of
/// 50 % defines no usable rate.
pub fn loss_ratio(typed: &str) -> Result<f64, Refusal> {
    let hint = "such as `--search 0,0.5%`; a TARGET stands before `--search`";
    match human::parse_percent(typed).map_err(|_| refusal("it is not a share of packets", hint))? {
        loss if loss > 0.0 && !typed.contains('%') => {
            let percent = if loss > 0.5 { String::new() } else { format!("write `{}` or ", typed_percent(loss)) };
            Err(refusal("without a `%` it is ambiguous", format!("{percent}`{typed}%`")))
        }
        loss if loss > 0.5 => Err(refusal("more than half of the packets would be lost", "up to `50%`")),
        loss => Ok(loss),
    }
}

/// Parses the interval of probes beside a stream; `off` is [`NO_PROBES`].
pub fn probe_interval(typed: &str) -> Result<Nanos, Refusal> {
    if typed == "off" {
        return Ok(NO_PROBES);
    }
    let least = defaults::STREAM_PROBE_INTERVAL_MIN;
    match span(defaults::WARMUP)(typed)? {
        interval if interval < least => {
            Err(refusal("so many probes would load the path", format!("{} or longer, or `off`", typed_span(least))))
        }
        interval => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warmup_is_a_count_or_a_time() {
        let none = Warmup { count: None, duration_ns: None };
        for (typed, expected) in [
            ("500", Warmup { count: Some(500), ..none }),
            ("1M", Warmup { count: Some(1_000_000), ..none }),
            ("1m", Warmup { duration_ns: Some(Nanos::from_secs(60)), ..none }),
            ("250ms", Warmup { duration_ns: Some(Nanos::from_millis(250)), ..none }),
            ("0", none),
            ("0s", none),
        ] {
            assert_eq!(warmup(typed), Ok(expected), "{typed}");
        }
        for typed in ["-1", "-1s", "soon", "25h", ""] {
            assert!(warmup(typed).is_err(), "{typed}");
        }
    }
}
