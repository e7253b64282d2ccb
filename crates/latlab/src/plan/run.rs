//! One run, settled: what to do, how long, with what on each end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PingSpec, Target, defaults};
use crate::units::Nanos;

/// The kind of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Round trips.
    Ping,
}

impl Kind {
    /// The word in directory names and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Ping => "ping",
        }
    }
}

/// What one run measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// Round trips.
    Ping(PingSpec),
}

/// How an end waits for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMode {
    /// Sleep in the kernel until one arrives.
    Block,
    /// Ask again and again, never sleep: costs a core.
    Spin,
    /// Sleep in the kernel, which polls the driver first (SO_BUSY_POLL).
    BusyPoll,
}

/// When a run ends. Whichever comes first; at least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopWhen {
    /// After so many measured probes.
    pub count: Option<u64>,
    /// After so long a measuring phase.
    pub duration_ns: Option<Nanos>,
}

/// How long probes are sent before they count. Whichever comes first; both none: no warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmup {
    /// At most so many probes.
    pub count: Option<u64>,
    /// At most so long.
    pub duration_ns: Option<Nanos>,
}

/// How one end's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSpec {
    /// How it waits.
    pub wait: WaitMode,
    /// The CPU its measuring thread is pinned to.
    pub cpu: Option<u16>,
    /// SCHED_FIFO priority.
    pub fifo: Option<u8>,
    /// All memory locked.
    pub mlock: bool,
}

impl EndSpec {
    /// Blocking, and placed by the system.
    pub const SYSTEM: EndSpec = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
}

/// What the summary shall say unless told otherwise later; facts do not depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    /// Quantiles in (0, 1), ascending.
    pub quantiles: Vec<f64>,
    /// A row per so much time.
    pub window_ns: Option<Nanos>,
    /// Probes slower than this missed it.
    pub deadline_ns: Option<Nanos>,
    /// Show `round trip / 2` beside the round trip.
    pub half: bool,
}

/// One run, settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Against whom.
    pub target: Target,
    /// What.
    pub work: Work,
    /// How long.
    pub stop: StopWhen,
    /// How long before that.
    pub warmup: Warmup,
    /// This end.
    pub here: EndSpec,
    /// The other end; none where it is not ours to say (`HOST`).
    pub peer: Option<EndSpec>,
    /// Whether probes carry an authentication tag.
    pub authenticated: bool,
    /// The user's own words about the condition.
    pub tags: BTreeMap<String, String>,
    /// What the summary shall say.
    pub judging: Judging,
}

impl RunSpec {
    /// `ping` against `local`, with every other thing at its default.
    pub fn local(ping: PingSpec) -> RunSpec {
        RunSpec {
            target: Target::Local,
            work: Work::Ping(ping),
            stop: StopWhen { count: None, duration_ns: Some(defaults::DURATION) },
            warmup: Warmup { count: Some(defaults::WARMUP_PROBES), duration_ns: Some(defaults::WARMUP) },
            here: EndSpec::SYSTEM,
            peer: Some(EndSpec::SYSTEM),
            authenticated: false,
            tags: BTreeMap::new(),
            judging: Judging {
                quantiles: defaults::QUANTILES.to_vec(),
                window_ns: None,
                deadline_ns: None,
                half: false,
            },
        }
    }

    /// The kind of recording this run makes.
    pub const fn kind(&self) -> Kind {
        match self.work {
            Work::Ping(_) => Kind::Ping,
        }
    }

    /// How long it takes, warm-up included, if nothing is lost: its own limit, or a schedule's count of
    /// gaps; none for a closed loop that only a count limits.
    pub fn duration(&self) -> Option<Nanos> {
        let interval = self.ping().schedule.interval();
        let counted = |count: Option<u64>| Some(interval?.saturating_mul(i64::try_from(count?).unwrap_or(i64::MAX)));
        let shorter = |span: Option<Nanos>, count| [span, counted(count)].into_iter().flatten().min();
        let warmup = shorter(self.warmup.duration_ns, self.warmup.count).unwrap_or_default();
        Some(warmup + shorter(self.stop.duration_ns, self.stop.count)?)
    }

    /// The ping part. A match here, once, keeps later kinds from spreading over callers.
    pub const fn ping(&self) -> &PingSpec {
        match &self.work {
            Work::Ping(ping) => ping,
        }
    }
}
