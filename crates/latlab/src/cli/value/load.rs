//! The parser of `--load`.

use super::{Refusal, refusal, whole};
use crate::plan::{LoadKind, LoadSpec, Pace, Side, StreamSpec, defaults};
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate, ParseError, nearest};

const FLAGS: [&str; 2] = ["wire", "spin"];
/// The kinds of loads as typed.
pub const LOAD_KINDS: [&str; 5] = ["cpu", "heaters", "mem", "net", "none"];

/// Parses `KIND=VALUE[@PLACE][:key=value,…]`; `None` if no load is asked for.
pub fn load(typed: &str) -> Result<Option<LoadSpec>, Refusal> {
    if typed == "none" {
        return Ok(None);
    }
    let parts = Parts::of(typed)?;
    Ok(Some(LoadSpec { kind: kind(&parts)?, at: parts.place }))
}

fn kind(parts: &Parts<'_>) -> Result<LoadKind, Refusal> {
    let kind = match parts.kind {
        "cpu" => cpu(parts),
        "heaters" => heaters(parts),
        "mem" => memory(parts),
        "net" => net(parts),
        "none" => Err(refusal("`none` takes no value", "`--load none`")),
        unknown => Err(refusal(format!("`{unknown}` is not a kind of load"), meant(unknown, &LOAD_KINDS, FORMS))),
    }?;
    kind.exceeded().map_or(Ok(kind), |(cause, hint)| Err(refusal(cause, hint)))
}

/// What ends the kind of a load that was typed without `=`.
const SEPARATORS: [char; 3] = ['@', ':', ' '];
/// A load of each kind, for hints.
const USUAL: [&str; 4] = ["cpu=80%", "heaters=30", "mem=2GB/s", "net=100Mbit/s"];
const FORMS: &str = "loads are `cpu=80%`, `heaters=30`, `mem=2GB/s`, `net=100Mbit/s` and `none`";

fn cpu(parts: &Parts<'_>) -> Result<LoadKind, Refusal> {
    let share = human::parse_percent(parts.value).map_err(|source| {
        let with_unit = format!("{}%", parts.value);
        let hint = match human::parse_percent(&with_unit) {
            Ok(share) if share <= 1.0 => format!("did you mean `cpu={with_unit}`?"),
            _ => "such as `cpu=80%`".into(),
        };
        refusal(source.cause, hint)
    })?;
    parts.know_only(&["cpus", "period"])?;
    Ok(LoadKind::Cpu { share, cpus: parts.cpus()?, period_ns: parts.period()? })
}

fn heaters(parts: &Parts<'_>) -> Result<LoadKind, Refusal> {
    let workers = human::parse_count(parts.value)?.try_into().unwrap_or(u32::MAX);
    parts.know_only(&["cpus"])?;
    Ok(LoadKind::Heaters { workers, cpus: parts.cpus()? })
}

fn memory(parts: &Parts<'_>) -> Result<LoadKind, Refusal> {
    let bytes_per_second = human::parse_byte_rate(parts.value)?;
    parts.know_only(&["cpus", "period", "buffer"])?;
    Ok(LoadKind::Memory {
        bytes_per_second,
        cpus: parts.cpus()?,
        period_ns: parts.period()?,
        buffer_bytes: parts.parsed("buffer", defaults::MEMORY_LOAD_BUFFER_BYTES, human::parse_size)?,
    })
}

/// The parts of a load as typed.
struct Parts<'a> {
    kind: &'a str,
    value: &'a str,
    place: Side,
    extras: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn of(typed: &'a str) -> Result<Parts<'a>, Refusal> {
        let refuse = |cause: String, hint: String| refusal(cause, hint);
        let split = typed.split_once('=').filter(|(kind, _)| !kind.contains(SEPARATORS));
        let (kind, rest) = split.ok_or_else(|| {
            let word = typed.split(SEPARATORS).next().unwrap_or(typed);
            let cause =
                if typed.contains('=') { format!("it has no `=` behind `{word}`") } else { "it has no `=`".into() };
            let hint = match corrected(typed, word) {
                Some(load) => format!("did you mean `{load}`? {FORMS}"),
                None if LOAD_KINDS.contains(&word) => FORMS.into(),
                None => meant(word, &LOAD_KINDS, FORMS),
            };
            refuse(cause, hint)
        })?;
        let (head, extras) = rest.split_once(':').map_or((rest, None), |(head, extras)| (head, Some(extras)));
        let (value, place) = head.split_once('@').map_or((head, None), |(value, place)| (value, Some(place)));
        let words = Side::ALL.map(Side::word);
        let place = match place {
            None => Side::Local,
            Some(word) => Side::from_word(word).ok_or_else(|| {
                refuse(
                    format!("`@{word}` is not a place"),
                    meant(word, &words, "places are `@local`, `@peer` and `@both`"),
                )
            })?,
        };
        let extras = extras.map_or(Ok(Vec::new()), split_extras).map_err(|part| {
            refuse(format!("`{part}` is not `key=value`"), "such as `cpu=80%:cpus=0-1,period=10ms`".into())
        })?;
        Ok(Parts { kind, value, place, extras })
    }

    /// Refuses keys other than `known` and repeated keys.
    fn know_only(&self, known: &[&str]) -> Result<(), Refusal> {
        for (number, (key, _)) in self.extras.iter().enumerate() {
            if !known.contains(key) {
                let all = format!("`{}=` knows `{}`", self.kind, known.join("`, `"));
                return Err(refusal(format!("`{}` loads have no `{key}`", self.kind), meant(key, known, &all)));
            }
            if self.extras[..number].iter().any(|(before, _)| before == key) {
                return Err(refusal(format!("`{key}` was given twice"), "give it once"));
            }
        }
        Ok(())
    }

    /// Returns true if the key `flag` was given without a value.
    fn flag(&self, flag: &str) -> Result<bool, Refusal> {
        match self.extra(flag) {
            None => Ok(false),
            Some("") => Ok(true),
            Some(_) => Err(refusal(format!("`{flag}` takes no value"), format!("`:{flag}`"))),
        }
    }

    fn extra(&self, key: &str) -> Option<&'a str> {
        self.extras.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The value of `key`, or else `usual`.
    fn parsed<T>(&self, key: &str, usual: T, parse: impl Fn(&str) -> Result<T, ParseError>) -> Result<T, Refusal> {
        Ok(self.extra(key).map_or(Ok(usual), parse)?)
    }

    /// Returns an empty list for all CPUs that latlab may use.
    fn cpus(&self) -> Result<Vec<u16>, Refusal> {
        self.parsed("cpus", Vec::new(), |list| human::parse_cpus(list, defaults::CPU_MAX))
    }

    fn period(&self) -> Result<Nanos, Refusal> {
        self.parsed("period", defaults::LOAD_PERIOD, human::parse_duration)
    }
}

/// The load that `typed` without `=` behind its kind `word` probably means: a value behind another sign, a part that follows
/// a value, or a list of CPUs. `None` if no such load can be resolved.
fn corrected(typed: &str, word: &str) -> Option<String> {
    let usual = USUAL.into_iter().find(|usual| usual.split('=').next() == Some(word))?;
    let rest = &typed[word.len()..];
    let value = rest.strip_prefix(SEPARATORS)?;
    let with_value = [format!("{word}={value}"), format!("{word}={value}%"), format!("{usual}{rest}")];
    let with_cpus = value.contains(['-', ',']).then(|| format!("{usual}:cpus={value}"));
    with_value.into_iter().chain(with_cpus).find(|load| Parts::of(load).and_then(|parts| kind(&parts)).is_ok())
}

/// Splits `key=value` parts. A part without `=` continues the previous value, since CPU lists contain commas.
fn split_extras(typed: &str) -> Result<Vec<(&str, &str)>, &str> {
    let mut extras: Vec<(&str, &str)> = Vec::new();
    let mut start = 0;
    for part in typed.split(',') {
        let end = start + part.len();
        match (part.split_once('='), extras.last_mut()) {
            (Some(extra), _) => extras.push(extra),
            (None, _) if FLAGS.contains(&part) => extras.push((part, "")),
            (None, Some((_, value))) => {
                let begin = start - value.len() - 1;
                *value = &typed[begin..end];
            }
            (None, None) => return Err(part),
        }
        start = end + 1;
    }
    Ok(extras)
}

/// Returns the hint `otherwise`, preceded by the closest word of `known` if one is close.
fn meant(typed: &str, known: &[&str], otherwise: &str) -> String {
    match nearest(typed, known) {
        Some(word) => format!("did you mean `{word}`? {otherwise}"),
        None => otherwise.to_owned(),
    }
}

const NET_KEYS: [&str; 4] = ["size", "wire", "cpu", "spin"];

fn net(parts: &Parts<'_>) -> Result<LoadKind, Refusal> {
    let pace = pace(parts)?;
    parts.know_only(&NET_KEYS)?;
    let usual = StreamSpec::at(pace);
    let size = parts.extra("size").map(human::parse_size).transpose()?;
    let cpu = parts.extra("cpu").map(whole::<u16>(0..=defaults::CPU_MAX)).transpose()?;
    let (wire, spin) = (parts.flag("wire")?, parts.flag("spin")?);
    Ok(LoadKind::Net(StreamSpec { size_bytes: size.or(usual.size_bytes), wire, cpu, spin, ..usual }))
}

fn pace(parts: &Parts<'_>) -> Result<Pace, Refusal> {
    if parts.value == "max" {
        return Ok(Pace::Max);
    }
    if parts.value.ends_with('%') {
        let share = human::parse_percent(parts.value)?;
        return Ok(Pace::Share { share });
    }
    Ok(match human::parse_network_rate(parts.value)? {
        NetworkRate::Bits(bps) => Pace::Rate { bps },
        NetworkRate::Packets(pps) => Pace::Packets { pps },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
        for (typed, words) in [
            ("cpu=80%", "cpu=80%"),
            ("cpu=0.8", "cpu=80%"),
            ("cpu=80%@both:cpus=0-1,period=10ms", "cpu=80%:cpus=0-1,period=10ms"),
            ("cpu=80%:cpus=0,2-3,5,period=1s", "cpu=80%:cpus=0,2-3,5,period=1s"),
            ("cpu=80%:period=10ms,cpus=3,1", "cpu=80%:cpus=1,3,period=10ms"),
            ("heaters=30@peer", "heaters=30"),
            ("heaters=1:cpus=0", "heaters=1:cpus=0"),
            ("mem=2GB/s", "mem=2GB/s"),
            ("mem=1GiB/s:buffer=64MiB", "mem=1.073742GB/s:buffer=64MiB"),
        ] {
            let load = load(typed).expect(typed).expect("a load");
            assert_eq!(LoadSpec { at: Side::Local, ..load }.to_string(), words, "{typed}");
        }
        assert_eq!(load("none"), Ok(None));
    }
}
