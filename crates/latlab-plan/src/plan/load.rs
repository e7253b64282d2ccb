//! The loads of a run: `--load KIND=VALUE[@WHERE][:KEY=VALUE,…]`.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::defaults;
use super::setting::Side;
use super::stream::{PaceError, StreamSpec};
use crate::units::Nanos;
use crate::units::human::{typed_byte_rate, typed_cpus, typed_percent, typed_size, typed_span};

/// An artificial load during a measurement, and its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    #[serde(flatten)]
    pub kind: LoadKind,
    /// The end of the load; always [`Side::Local`] if both ends are on one host.
    pub at: Side,
}

/// A load. An empty list of CPUs stands for all that latlab may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadKind {
    /// A share of the time of each of `cpus`, in bursts.
    Cpu {
        /// Share of the time of each CPU, above 0 and at most 1.
        share: f64,
        cpus: Vec<u16>,
        /// Period of a burst and the pause after it.
        period_ns: Nanos,
    },
    /// Threads that compute hashes without pause.
    Heaters {
        workers: u32,
        /// CPUs on which they may run.
        cpus: Vec<u16>,
    },
    /// A rate of traffic between CPUs and memory, in bursts.
    #[serde(rename = "mem")]
    Memory {
        /// Sum of the bytes read and written in a second on all of `cpus` together.
        bytes_per_second: f64,
        cpus: Vec<u16>,
        /// Period of a burst and the pause after it.
        period_ns: Nanos,
        /// Size of its buffers, on all of its CPUs together.
        buffer_bytes: u32,
    },
    /// A stream on the measured path.
    Net(StreamSpec),
}

impl LoadKind {
    pub const fn word(&self) -> &'static str {
        match self {
            LoadKind::Cpu { .. } => "cpu",
            LoadKind::Heaters { .. } => "heaters",
            LoadKind::Memory { .. } => "mem",
            LoadKind::Net(_) => "net",
        }
    }

    /// The first limit that is exceeded by what was typed, or by what an agent is asked for: cause and hint.
    pub fn exceeded(&self) -> Option<(&'static str, String)> {
        self.limits().into_iter().find_map(|(is_exceeded, cause, hint)| is_exceeded.then_some((cause, hint)))
    }

    fn limits(&self) -> Vec<(bool, &'static str, String)> {
        let (mut limits, cpus, period) = match self {
            LoadKind::Cpu { share, cpus, period_ns } => {
                let hint = format!("from `cpu={}` to `cpu=100%`", typed_percent(defaults::CPU_LOAD_MIN));
                let or_none = format!("{hint}; use `--load none` for no load");
                let limits = vec![
                    (*share == 0.0, "a load of 0 is not a load", or_none),
                    (*share < defaults::CPU_LOAD_MIN, "it is less than the accuracy of a CPU load", hint.clone()),
                    (*share > 1.0, "it is a share of CPU time, at most 100 %", hint),
                ];
                (limits, &cpus[..], Some(*period_ns))
            }
            LoadKind::Heaters { workers, cpus } => {
                let range = 1..=defaults::HEATERS_MAX;
                let cause = "there is at least one, and too many keep each other waiting";
                let hint = format!("from {} to {}", range.start(), range.end());
                (vec![(!range.contains(workers), cause, hint)], &cpus[..], None)
            }
            LoadKind::Memory { bytes_per_second, cpus, period_ns, buffer_bytes } => {
                let (least, most) = (defaults::MEMORY_LOAD_MIN_BPS, defaults::MEMORY_LOAD_MAX_BPS);
                let hint = format!("from `mem={}` to `mem={}`", typed_byte_rate(least), typed_byte_rate(most));
                let least_buffer = defaults::MEMORY_LOAD_BUFFER_MIN_BYTES;
                let larger = format!("{} or more, so that it does not fit into a cache", typed_size(least_buffer));
                let limits = vec![
                    (*bytes_per_second < least, "it is too little to be a load", hint.clone()),
                    (*bytes_per_second > most, "it is more than any memory can do", hint),
                    (*buffer_bytes < least_buffer, "so small a buffer cannot be shared among many CPUs", larger),
                    (*buffer_bytes > 1 << 30, "a larger buffer only takes memory", "at most `buffer=1024MiB`".into()),
                ];
                (limits, &cpus[..], Some(*period_ns))
            }
            LoadKind::Net(stream) => {
                let (least, most) = (defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES);
                let is_beyond = stream.size_bytes.is_some_and(|size| !(least..=most).contains(&size));
                let size = (is_beyond, "no packet has that size", format!("from `size={least}` to `size={most}`"));
                let pace = stream.check().err().map(|error| match error {
                    PaceError::TooSlow(least) => {
                        let cause = "it is too slow to be a load: each 100 ms is to have a packet";
                        (true, cause, format!("the minimum is `net={least}`"))
                    }
                    PaceError::TooFast(most) => {
                        (true, "it is more than any path carries", format!("the maximum is `net={most}`"))
                    }
                });
                (std::iter::once(size).chain(pace).collect(), stream.cpu.as_slice(), None)
            }
        };
        let highest = format!("the highest CPU number is {}", defaults::CPU_MAX);
        limits.push((cpus.iter().any(|cpu| *cpu > defaults::CPU_MAX), "there are no such CPUs", highest));
        let is_repeated = cpus.iter().collect::<BTreeSet<_>>().len() < cpus.len();
        limits.push((is_repeated, "a CPU occurs twice", "name each once".into()));
        let range = defaults::LOAD_PERIOD_MIN..=defaults::LOAD_PERIOD_MAX;
        let cause = "bursts of this length would consist of waking up, or be loads of their own";
        let hint = format!("from {} to {}", typed_span(*range.start()), typed_span(*range.end()));
        limits.push((period.is_some_and(|period| !range.contains(&period)), cause, hint));
        limits
    }

    fn value(&self) -> String {
        match self {
            LoadKind::Cpu { share, .. } => typed_percent(*share),
            LoadKind::Heaters { workers, .. } => workers.to_string(),
            LoadKind::Memory { bytes_per_second, .. } => typed_byte_rate(*bytes_per_second),
            LoadKind::Net(stream) => stream.pace.to_string(),
        }
    }

    /// The parameters that are not at their defaults, as `key=value`.
    fn extras(&self) -> Vec<String> {
        let on = |cpus: &[u16]| (!cpus.is_empty()).then(|| format!("cpus={}", typed_cpus(cpus)));
        let every = |period: Nanos| (period != defaults::LOAD_PERIOD).then(|| format!("period={}", typed_span(period)));
        let through =
            |bytes: u32| (bytes != defaults::MEMORY_LOAD_BUFFER_BYTES).then(|| format!("buffer={}", typed_size(bytes)));
        let extras = match self {
            LoadKind::Cpu { cpus, period_ns, .. } => [on(cpus), every(*period_ns), None],
            LoadKind::Heaters { cpus, .. } => [on(cpus), None, None],
            LoadKind::Memory { cpus, period_ns, buffer_bytes, .. } => {
                [on(cpus), every(*period_ns), through(*buffer_bytes)]
            }
            LoadKind::Net(stream) => return stream.extras(),
        };
        extras.into_iter().flatten().collect()
    }

    fn write(&self, out: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
        write!(out, "{}={}{place}", self.word(), self.value())?;
        for (number, extra) in self.extras().iter().enumerate() {
            write!(out, "{}{extra}", if number == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// As typed, without its end: `cpu=80%:cpus=0-1`. Parameters at their defaults are left out.
impl fmt::Display for LoadKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, "")
    }
}

/// As typed: `cpu=80%@peer:cpus=0-1`. `@local`, the default, is left out.
impl fmt::Display for LoadSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Side::Local => self.kind.write(out, ""),
            at => self.kind.write(out, &format!("@{at}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Pace;

    #[test]
    fn every_kind_is_restored_from_json() {
        let period_ns = Nanos::from_millis(10);
        let cpus = vec![0, 1, 3];
        for (kind, words) in [
            (LoadKind::Cpu { share: 0.8, cpus: cpus.clone(), period_ns }, "cpu=80%@peer:cpus=0-1,3,period=10ms"),
            (LoadKind::Heaters { workers: 30, cpus: Vec::new() }, "heaters=30@peer"),
            (
                LoadKind::Memory { bytes_per_second: 2e9, cpus, period_ns, buffer_bytes: 64 << 20 },
                "mem=2GB/s@peer:cpus=0-1,3,period=10ms,buffer=64MiB",
            ),
            (LoadKind::Net(StreamSpec::at(Pace::Rate { bps: 100_000_000 })), "net=100Mbit/s@peer"),
            (
                LoadKind::Net(StreamSpec { size_bytes: Some(200), wire: true, ..StreamSpec::at(Pace::Max) }),
                "net=max@peer:size=200B,wire",
            ),
        ] {
            let load = LoadSpec { kind, at: Side::Peer };
            assert_eq!(load.to_string(), words);
            let kept = serde_json::to_string(&load).expect("plain data");
            assert!(kept.contains(&format!("\"kind\":\"{}\"", load.kind.word())), "{kept}");
            assert_eq!(serde_json::from_str::<LoadSpec>(&kept).expect(&kept), load);
        }
    }
}
