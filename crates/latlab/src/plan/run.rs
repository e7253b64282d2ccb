//! One run, settled: what to do, how long, with what on each end.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::{
    CompatOutput, ConcurrentWakeups, Family, Kind, LoadKind, LoadSpec, PathSpec, PingSpec, SettingSpec, StreamRunSpec,
    Target, TransportKind, WakeupSpec, defaults,
};
use crate::plan::Schedule;
use crate::units::Nanos;

/// What one run measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// Round trips.
    Ping(PingSpec),
    /// How late a timer wakes this host's user code.
    Wakeup(WakeupSpec),
    /// One-way rates: offered, delivered, lost.
    Stream(StreamRunSpec),
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

impl WaitMode {
    /// The word of `--wait`.
    pub const fn word(self) -> &'static str {
        match self {
            WaitMode::Block => "block",
            WaitMode::Spin => "spin",
            WaitMode::BusyPoll => "busy-poll",
        }
    }
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
    /// Show the lines of this tool as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<CompatOutput>,
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
    /// Work made beside it.
    #[serde(default)]
    pub loads: Vec<LoadSpec>,
    /// What is set on the hosts for the time of the run.
    #[serde(default)]
    pub settings: Vec<SettingSpec>,
    /// Whether probes carry an authentication tag.
    pub authenticated: bool,
    /// The user's own words about the condition.
    pub tags: BTreeMap<String, String>,
    /// What the summary shall say.
    pub judging: Judging,
}

impl RunSpec {
    /// How many loads this end puts on the measured path.
    pub fn network_loads(&self) -> usize {
        self.loads.iter().filter(|load| load.at.is_local() && matches!(load.kind, LoadKind::Net(_))).count()
    }

    /// The loads that are made by an agent, on the peer's host.
    pub fn far_loads(&self) -> impl Iterator<Item = &LoadSpec> {
        self.loads.iter().filter(|load| load.at.is_peer())
    }

    /// `ping` against `local`, with every other thing at its default.
    pub fn local(ping: PingSpec) -> RunSpec {
        RunSpec { peer: Some(EndSpec::SYSTEM), ..RunSpec::here(Work::Ping(ping)) }
    }

    /// `work` on this host alone, with every other thing at its default.
    pub fn here(work: Work) -> RunSpec {
        RunSpec {
            target: Target::Local,
            work,
            stop: StopWhen { count: None, duration_ns: Some(defaults::DURATION) },
            warmup: Warmup { count: Some(defaults::WARMUP_PROBES), duration_ns: Some(defaults::WARMUP) },
            here: EndSpec::SYSTEM,
            peer: None,
            loads: Vec::new(),
            settings: Vec::new(),
            authenticated: false,
            tags: BTreeMap::new(),
            judging: Judging {
                quantiles: defaults::QUANTILES.to_vec(),
                window_ns: None,
                deadline_ns: None,
                half: false,
                like: None,
            },
        }
    }

    /// How many sessions it opens at its reflector.
    pub fn sessions(&self) -> u16 {
        self.stream().map_or(1, |stream| stream.flows)
    }

    /// The kind of recording this run makes.
    pub const fn kind(&self) -> Kind {
        match self.work {
            Work::Ping(_) => Kind::Ping,
            Work::Wakeup(_) => Kind::Wakeup,
            Work::Stream(_) => Kind::Stream,
        }
    }

    /// When its probes leave, or its threads are to be woken.
    pub const fn schedule(&self) -> Schedule {
        match &self.work {
            Work::Ping(ping) => ping.schedule,
            Work::Wakeup(wakeup) => Schedule::Periodic { interval_ns: wakeup.interval_ns },
            // The pace of a stream is a rate, not a schedule of probes.
            Work::Stream(_) => Schedule::Closed,
        }
    }

    /// The family of its path, where that is certain before a name is resolved.
    pub fn family(&self) -> Option<Family> {
        let path = self.path()?;
        let asked = path.family;
        match &self.target {
            Target::Local | Target::Lab => asked.or(Some(Family::Ipv4)),
            Target::Host { host, .. } if host.contains(':') => Some(Family::Ipv6),
            Target::Host { host, .. } => asked.or_else(|| host.parse::<Ipv4Addr>().is_ok().then_some(Family::Ipv4)),
            Target::Ssh { .. } | Target::Command { .. } => {
                let of = |peer: IpAddr| if peer.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
                asked.or_else(|| path.peer_address.map(of))
            }
        }
    }

    /// How long it takes, warm-up included, if nothing is lost: its own limit, or a schedule's count of
    /// gaps; none for a closed loop that only a count limits.
    pub fn duration(&self) -> Option<Nanos> {
        let interval = self.schedule().interval();
        let counted = |count: Option<u64>| Some(interval?.saturating_mul(i64::try_from(count?).unwrap_or(i64::MAX)));
        let shorter = |span: Option<Nanos>, count| [span, counted(count)].into_iter().flatten().min();
        let warmup = shorter(self.warmup.duration_ns, self.warmup.count).unwrap_or_default();
        Some(warmup + shorter(self.stop.duration_ns, self.stop.count)?)
    }

    /// How long it takes at most if each of its `rounds` and its warm-up end as late as they may, the last answer
    /// awaited in vain and a backlog sent after the end. None where nobody knows: a closed loop or a Poisson
    /// schedule that only a count limits.
    pub fn longest(&self, rounds: u32) -> Option<Nanos> {
        let bounded = |span: Option<Nanos>, count: Option<u64>| match (self.schedule(), count) {
            (Schedule::Periodic { interval_ns }, Some(count)) => {
                let gaps = interval_ns.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
                Some(span.map_or(gaps, |span| span.min(gaps)))
            }
            (_, Some(_)) => span,
            (_, None) => Some(span.unwrap_or_default()),
        };
        let due =
            bounded(self.warmup.duration_ns, self.warmup.count)? + bounded(self.stop.duration_ns, self.stop.count)?;
        if self.stream().is_some() {
            let answers = self.probes_beside().map_or(Nanos::ZERO, |probes| probes.timeout_ns);
            let settles = match self.transport() {
                Some(TransportKind::Tcp) => Nanos(defaults::STREAM_SETTLES_CONNECTED.0 * 2),
                _ => defaults::STREAM_SETTLES,
            };
            return Some(due + (settles + answers).saturating_mul(i64::from(rounds) + 1));
        }
        let Some(ping) = self.sending() else { return Some(due) };
        let pieces = i64::from(rounds) + 1;
        Some(due + ping.timeout_ns.saturating_mul(pieces) + ping.max_backlog_ns.saturating_mul(pieces).min(due))
    }

    /// The probes that it sends beside its stream; none where it sends none.
    pub const fn probes_beside(&self) -> Option<&PingSpec> {
        match &self.work {
            Work::Stream(stream) => stream.probes.as_ref(),
            Work::Ping(_) | Work::Wakeup(_) => None,
        }
    }

    /// The probes that it sends; none where it sends none.
    pub const fn sending(&self) -> Option<&PingSpec> {
        match &self.work {
            Work::Ping(ping) => Some(ping),
            Work::Wakeup(_) | Work::Stream(_) => None,
        }
    }

    /// The ping part, for the rooms that only a run of probes comes to.
    ///
    /// # Panics
    /// Where it sends none: see [`RunSpec::sending`].
    pub const fn ping(&self) -> &PingSpec {
        self.sending().expect("only a run of probes comes here")
    }

    /// How what it sends travels; none where it sends nothing.
    pub const fn transport(&self) -> Option<TransportKind> {
        match &self.work {
            Work::Ping(ping) => Some(ping.transport),
            Work::Stream(stream) => Some(stream.transport),
            Work::Wakeup(_) => None,
        }
    }

    /// How what it sends leaves this host; none where it sends nothing.
    pub const fn path(&self) -> Option<&PathSpec> {
        match &self.work {
            Work::Ping(ping) => Some(&ping.path),
            Work::Stream(stream) => Some(&stream.path),
            Work::Wakeup(_) => None,
        }
    }

    /// That way, for the rooms that only a run with a path comes to.
    ///
    /// # Panics
    /// Where it has none: see [`RunSpec::path`].
    pub const fn way(&self) -> &PathSpec {
        self.path().expect("only a run with a path comes here")
    }

    /// Its stream; none where it is about something else.
    pub const fn stream(&self) -> Option<&StreamRunSpec> {
        match &self.work {
            Work::Stream(stream) => Some(stream),
            Work::Ping(_) | Work::Wakeup(_) => None,
        }
    }

    /// How its threads sleep; none where it is about something else.
    pub const fn wakeup(&self) -> Option<&WakeupSpec> {
        match &self.work {
            Work::Ping(_) | Work::Stream(_) => None,
            Work::Wakeup(wakeup) => Some(wakeup),
        }
    }

    /// The wake-ups beside its probes, if any.
    pub const fn beside(&self) -> Option<&ConcurrentWakeups> {
        match &self.work {
            Work::Ping(ping) => ping.with_wakeup.as_ref(),
            Work::Wakeup(_) | Work::Stream(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PathSpec, Protocol};

    fn run(schedule: Schedule, count: Option<u64>, duration: Option<Nanos>) -> RunSpec {
        let end = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
        RunSpec {
            target: Target::Local,
            work: Work::Ping(PingSpec {
                transport: TransportKind::Udp,
                protocol: Protocol::Native,
                path: PathSpec::SYSTEM,
                size_bytes: 64,
                schedule,
                timeout_ns: Nanos::from_secs(5),
                max_backlog_ns: Nanos::from_secs(3),
                with_wakeup: None,
            }),
            stop: StopWhen { count, duration_ns: duration },
            warmup: Warmup { count: Some(1_000), duration_ns: Some(Nanos::from_secs(1)) },
            here: end,
            peer: None,
            loads: Vec::new(),
            settings: Vec::new(),
            authenticated: false,
            tags: BTreeMap::new(),
            judging: Judging { quantiles: Vec::new(), window_ns: None, deadline_ns: None, half: false, like: None },
        }
    }

    #[test]
    fn the_longest_counts_what_is_awaited_in_vain() {
        let periodic = Schedule::Periodic { interval_ns: Nanos::from_millis(100) };
        let poisson = Schedule::Poisson { mean_ns: Nanos::from_millis(100), seed: 1 };
        let ten = Some(Nanos::from_secs(10));
        for (schedule, count, duration, rounds, seconds) in [
            (Schedule::Closed, None, ten, 1, Some(10 + 1 + 2 * 5 + 2 * 3)),
            // A backlog is never longer than the schedule.
            (periodic, None, ten, 10, Some(10 + 1 + 11 * 5 + 11)),
            (periodic, Some(40), ten, 1, Some(4 + 1 + 2 * 5 + 5)),
            (periodic, Some(40), None, 1, Some(4 + 1 + 2 * 5 + 5)),
            (poisson, Some(40), ten, 1, Some(10 + 1 + 2 * 5 + 2 * 3)),
            (poisson, Some(40), None, 1, None),
            (Schedule::Closed, Some(40), None, 1, None),
        ] {
            let longest = run(schedule, count, duration).longest(rounds);
            assert_eq!(longest, seconds.map(Nanos::from_secs), "{schedule:?} {count:?} {duration:?} {rounds}");
        }
    }
}
