//! Runs, settled: what each measures, for how long, and what is set up at each end.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::command::CommandSpec;
use super::defaults;
use super::import::ImportSpec;
use super::kind::Kind;
use super::load::{LoadKind, LoadSpec};
use super::path::{Family, PathSpec, Target};
use super::ping::{PingSpec, Schedule};
use super::setting::{Setting, SettingSpec};
use super::stream::StreamRunSpec;
use super::transport::TransportKind;
use super::wakeup::{ConcurrentWakeups, WakeupSpec};
use super::xdp::Reflect;
use crate::facts::BareConditions;
use crate::metric::Metric;
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One run per size and source port.
    pub runs: Vec<RunSpec>,
    /// Each run is cut into this many slices, and round k measures slice k of every run in turn, so that drift of the
    /// host spreads over all of them. 1 for a single run.
    pub rounds: u32,
}

impl Plan {
    /// The duration of all runs without losses, warm-up and the settling of loads included; `None` if only a count limits
    /// one of them.
    pub fn duration(&self) -> Option<Nanos> {
        let settling =
            if self.runs.iter().any(|run| !run.loads.is_empty()) { defaults::LOAD_SETTLE } else { Nanos::ZERO };
        self.runs.iter().map(RunSpec::duration).try_fold(settling, |sum, run| Some(sum + run?))
    }

    /// The longest duration of all runs; `None` if one has no bound.
    pub fn longest(&self) -> Option<Nanos> {
        self.runs.iter().map(|run| run.longest(self.rounds)).try_fold(Nanos::ZERO, |sum, run| Some(sum + run?))
    }
}

/// The kind of a run with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    Ping(PingSpec),
    /// Wake-ups of threads of this host.
    Wakeup(WakeupSpec),
    /// Executions of a command on this host.
    Command(CommandSpec),
    /// One-way rates: offered, delivered, lost.
    Stream(StreamRunSpec),
    /// Another tool measured, and its log was imported.
    Import(ImportSpec),
}

crate::worded! {
    /// How an end waits for a datagram.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitMode: word {
        Block = "block",
        /// Call in a loop without blocking, which takes a whole CPU.
        Spin = "spin",
        /// Block in the kernel, which polls the driver first (SO_BUSY_POLL).
        BusyPoll = "busy-poll",
    }
}

/// When a run ends: at the first of its limits, of which at least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopWhen {
    pub count: Option<u64>,
    /// Length of the measuring phase.
    pub duration_ns: Option<Nanos>,
}

/// When the warm-up ends: at the first of its limits. Without limits nothing is warmed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmup {
    pub count: Option<u64>,
    pub duration_ns: Option<Nanos>,
}

/// How the process at one end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSpec {
    pub wait: WaitMode,
    /// The CPU that its measuring thread is pinned to.
    pub cpu: Option<u16>,
    pub fifo: Option<u8>,
    /// Whether all memory is locked.
    pub mlock: bool,
}

impl EndSpec {
    /// Blocking, without any pinning, priority or locking.
    pub const SYSTEM: EndSpec = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
}

/// Defaults of the summary, on which the recorded facts do not depend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryDefaults {
    /// Quantiles in (0, 1), ascending.
    pub quantiles: Vec<f64>,
    /// A row for each period of this length.
    pub window_ns: Option<Nanos>,
    /// Probes slower than this miss their deadline.
    pub deadline_ns: Option<Nanos>,
    /// Whether `round trip / 2` is shown next to the round trip.
    pub half: bool,
}

/// Why no bare loop that `latlab doctor --calibrate` measures is the lower limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBareLoop {
    /// It has no round trips, an end is not pinned, or the path is not loopback.
    Ends,
    /// It is not a closed loop over UDP and IPv4, or it has loads, settings or concurrent wake-ups.
    Conditions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub target: Target,
    /// The kind of the run with its parameters.
    pub work: Work,
    pub stop: StopWhen,
    /// When the warm-up before it ends.
    pub warmup: Warmup,
    pub here: EndSpec,
    /// The far end; `None` if latlab does not start it (`HOST`).
    pub peer: Option<EndSpec>,
    #[serde(default)]
    pub loads: Vec<LoadSpec>,
    /// Settings of the hosts for the time of the run.
    #[serde(default)]
    pub settings: Vec<SettingSpec>,
    /// Whether probes carry an authentication tag.
    pub authenticated: bool,
    /// Whether what the CPUs ran around the slowest is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace: bool,
    pub tags: BTreeMap<String, String>,
    pub judging: SummaryDefaults,
}

impl RunSpec {
    /// `ping` against `local`, with every other parameter at its default.
    pub fn local(ping: PingSpec) -> RunSpec {
        RunSpec { peer: Some(EndSpec::SYSTEM), ..RunSpec::here(Work::Ping(ping)) }
    }

    /// `work` without a peer process, with every other parameter at its default.
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
            trace: false,
            tags: BTreeMap::new(),
            judging: SummaryDefaults {
                quantiles: defaults::QUANTILES.to_vec(),
                window_ns: None,
                deadline_ns: None,
                half: false,
            },
        }
    }

    /// A run of `tool`, whose log was imported: nothing is known of it but what `import` says.
    pub fn imported(import: ImportSpec, tool: &str, tags: BTreeMap<String, String>) -> RunSpec {
        let nothing = RunSpec::here(Work::Import(import));
        RunSpec {
            target: Target::Log { tool: tool.to_owned() },
            stop: StopWhen { count: None, duration_ns: None },
            warmup: Warmup { count: None, duration_ns: None },
            tags,
            ..nothing
        }
    }

    /// The kind of recording this run makes.
    pub const fn kind(&self) -> Kind {
        match &self.work {
            Work::Ping(_) => Kind::Ping,
            Work::Wakeup(_) => Kind::Wakeup,
            Work::Command(_) => Kind::Command,
            Work::Stream(_) => Kind::Stream,
            Work::Import(import) => import.rows,
        }
    }

    /// The main metric of its recording.
    pub fn metric(&self) -> Metric {
        self.import().and_then(|import| import.metric).unwrap_or_else(|| self.kind().metric())
    }

    /// Every metric of its recording.
    pub fn metrics(&self) -> Vec<Metric> {
        self.kind().metrics().iter().copied().chain(self.printed_metrics()).collect()
    }

    /// Those of the numbers that a command prints.
    fn printed_metrics(&self) -> impl Iterator<Item = Metric> {
        let printed = self.command().into_iter().flat_map(|command| &command.printed);
        printed.map(|printed| Metric::Printed(printed.metric()))
    }

    /// The metrics and statistics that a comparison of its runs shows by default: of a command the numbers that were asked
    /// for.
    pub fn compared(&self) -> Vec<(Metric, &'static str)> {
        let printed: Vec<_> = self.printed_metrics().map(|metric| (metric, "p50")).collect();
        let usual = self.kind().compared_statistics().map(|statistic| (self.metric(), statistic));
        if printed.is_empty() { usual.into() } else { printed }
    }

    /// What is known of a run whose log was imported.
    pub const fn import(&self) -> Option<&ImportSpec> {
        if let Work::Import(import) = &self.work { Some(import) } else { None }
    }

    /// Whether it is known what it lost: a log of another tool may state answers only.
    pub fn knows_losses(&self) -> bool {
        self.import().is_none_or(|import| import.states_losses)
    }

    /// The parameters of a run of probes.
    pub const fn ping(&self) -> Option<&PingSpec> {
        if let Work::Ping(ping) = &self.work { Some(ping) } else { None }
    }

    /// The parameters of a run of probes.
    ///
    /// # Panics
    /// In a run of another kind.
    pub const fn expect_ping(&self) -> &PingSpec {
        self.ping().expect("a run of probes")
    }

    pub const fn stream(&self) -> Option<&StreamRunSpec> {
        if let Work::Stream(stream) = &self.work { Some(stream) } else { None }
    }

    /// The parameters of a run of wake-ups.
    pub const fn wakeup(&self) -> Option<&WakeupSpec> {
        if let Work::Wakeup(wakeup) = &self.work { Some(wakeup) } else { None }
    }

    /// The parameters of a run of a command.
    pub const fn command(&self) -> Option<&CommandSpec> {
        if let Work::Command(command) = &self.work { Some(command) } else { None }
    }

    /// The wake-ups that are measured during its probes.
    pub const fn concurrent_wakeups(&self) -> Option<&ConcurrentWakeups> {
        if let Work::Ping(ping) = &self.work { ping.with_wakeup.as_ref() } else { None }
    }

    /// The conditions of the bare loop that is the lower limit of its round trips.
    ///
    /// # Errors
    /// Why there is none.
    pub fn bare_conditions(&self) -> Result<BareConditions, NoBareLoop> {
        let ends = self.peer.filter(|_| self.target == Target::Local).zip(self.ping());
        let (peer, ping) = ends.ok_or(NoBareLoop::Ends)?;
        let conditions = BareConditions {
            size_bytes: ping.size_bytes,
            wait: self.here.wait.word().into(),
            cpu: self.here.cpu,
            peer_cpu: peer.cpu,
            fifo: self.here.fifo,
        };
        let is_alike = ping.schedule == Schedule::Closed
            && ping.transport == TransportKind::Udp
            && ping.path.family != Some(Family::Ipv6);
        // A busy CPU is in no idle state, so that round trips under load may even be shorter than the bare loop's.
        let is_plain = self.loads.is_empty()
            && self.settings.is_empty()
            && ping.with_wakeup.is_none()
            && ping.stamps.is_none()
            && !self.trace;
        if !conditions.is_pinned() {
            Err(NoBareLoop::Ends)
        } else if is_alike && is_plain {
            Ok(conditions)
        } else {
            Err(NoBareLoop::Conditions)
        }
    }

    /// Whether what the CPUs ran around the slowest is kept: asked for, or of a run that ends at a late wake-up.
    pub fn is_traced(&self) -> bool {
        self.trace || self.wakeup().is_some_and(|wakeup| wakeup.break_ns.is_some())
    }

    /// Whether the measuring thread takes the smallest timer slack: a run that sends does, unless `--set` states the slack
    /// of this end. Threads that measure wake-ups inherit it, so beside them the slack stays as it is.
    pub fn minimises_timer_slack(&self) -> bool {
        let one_host = self.target.is_this_host();
        let is_stated =
            |spec: &SettingSpec| matches!(spec.setting, Setting::TimerSlack(_)) && spec.ends(one_host).is_local();
        self.path().is_some() && self.concurrent_wakeups().is_none() && !self.settings.iter().any(is_stated)
    }

    /// The probes that are sent during its stream.
    pub const fn concurrent_probes(&self) -> Option<&PingSpec> {
        if let Work::Stream(stream) = &self.work { stream.probes.as_ref() } else { None }
    }

    /// Whether its probes are answered in the reflector's network driver.
    pub fn answers_in_driver(&self) -> bool {
        self.path().and_then(|path| path.xdp).is_some_and(|xdp| xdp.reflect == Reflect::XdpTx)
    }

    /// The transport of its packets; `None` if it sends none.
    pub const fn transport(&self) -> Option<TransportKind> {
        match &self.work {
            Work::Ping(ping) => Some(ping.transport),
            Work::Stream(stream) => Some(stream.transport),
            Work::Wakeup(_) | Work::Command(_) | Work::Import(_) => None,
        }
    }

    /// The path of its packets; `None` if it sends none.
    pub const fn path(&self) -> Option<&PathSpec> {
        match &self.work {
            Work::Ping(ping) => Some(&ping.path),
            Work::Stream(stream) => Some(&stream.path),
            Work::Wakeup(_) | Work::Command(_) | Work::Import(_) => None,
        }
    }

    /// The path of its packets.
    ///
    /// # Panics
    /// In a run that sends none.
    pub const fn expect_path(&self) -> &PathSpec {
        self.path().expect("a run that sends packets")
    }

    /// The transport payload of its packets; `None` if it sends none, or if the size depends on the path.
    pub const fn size_bytes(&self) -> Option<u32> {
        match &self.work {
            Work::Ping(ping) => Some(ping.size_bytes),
            Work::Stream(stream) => stream.size.known(),
            Work::Wakeup(_) | Work::Command(_) => None,
            Work::Import(import) => import.size_bytes,
        }
    }

    /// When its probes leave, or its threads are to be woken. A stream has a pace instead, and counts as closed, as does a run
    /// whose log was imported: logs have no due times.
    pub const fn schedule(&self) -> Schedule {
        match &self.work {
            Work::Ping(ping) => ping.schedule,
            Work::Wakeup(wakeup) => Schedule::Periodic { interval_ns: wakeup.interval_ns },
            Work::Stream(_) | Work::Command(_) | Work::Import(_) => Schedule::Closed,
        }
    }

    /// The family of its path, if it is known before a name is resolved.
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
            Target::Log { .. } => None,
        }
    }

    /// The number of sessions that it opens at its reflector, without that of concurrent probes.
    pub fn sessions(&self) -> u16 {
        self.stream().map_or(1, |stream| stream.flows)
    }

    /// The number of network loads of this end.
    pub fn network_loads(&self) -> usize {
        self.loads.iter().filter(|load| load.at.is_local() && matches!(load.kind, LoadKind::Net(_))).count()
    }

    /// The loads on the host of the peer, which an agent makes.
    pub fn far_loads(&self) -> impl Iterator<Item = &LoadSpec> {
        self.loads.iter().filter(|load| load.at.is_peer())
    }

    /// Its duration without losses, warm-up included: its own limit, or the count of a schedule with an interval. `None`
    /// for a closed loop that only a count limits.
    pub fn duration(&self) -> Option<Nanos> {
        let interval = self.schedule().interval();
        let counted = |count: Option<u64>| Some(interval?.saturating_mul(i64::try_from(count?).unwrap_or(i64::MAX)));
        let shorter = |span: Option<Nanos>, count| [span, counted(count)].into_iter().flatten().min();
        let warmup = shorter(self.warmup.duration_ns, self.warmup.count).unwrap_or_default();
        Some(warmup + shorter(self.stop.duration_ns, self.stop.count)?)
    }

    /// Its longest duration if each of its `rounds` and its warm-up end as late as they may: with a time-out of the last
    /// answer, and a backlog that is sent after the end. `None` for a closed loop or a Poisson schedule that only a count
    /// limits.
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
        let slices = i64::from(rounds) + 1;
        Some(match &self.work {
            Work::Wakeup(_) | Work::Import(_) => due,
            // The last execution of a slice may begin just before its end.
            Work::Command(command) => due + command.timeout_ns?.saturating_mul(slices),
            Work::Ping(ping) => {
                due + ping.timeout_ns.saturating_mul(slices) + ping.max_backlog_ns.saturating_mul(slices).min(due)
            }
            Work::Stream(stream) => due + stream.settles().saturating_mul(slices),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Side, Via, WakeupCpus};

    fn run(schedule: Schedule, count: Option<u64>, duration: Option<Nanos>) -> RunSpec {
        let ping =
            PingSpec { timeout_ns: Nanos::from_secs(5), max_backlog_ns: Nanos::from_secs(3), ..PingSpec::on(schedule) };
        RunSpec { stop: StopWhen { count, duration_ns: duration }, ..RunSpec::here(Work::Ping(ping)) }
    }

    #[test]
    fn the_longest_duration_counts_time_outs_and_backlogs() {
        let periodic = Schedule::Periodic { interval_ns: Nanos::from_millis(100) };
        let poisson = Schedule::Poisson { mean_ns: Nanos::from_millis(100), seed: 1 };
        let ten = Some(Nanos::from_secs(10));
        for (schedule, count, duration, rounds, seconds) in [
            (Schedule::Closed, None, ten, 1, Some(10 + 1 + 2 * 5 + 2 * 3)),
            // A backlog is at most as long as the schedule.
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

    #[test]
    fn a_bare_loop_is_the_limit_only_of_runs_in_its_conditions() {
        let pinned = |cpu| EndSpec { cpu: Some(cpu), fifo: Some(50), ..EndSpec::SYSTEM };
        let with = |ping| RunSpec { here: pinned(0), peer: Some(pinned(1)), ..RunSpec::local(ping) };
        let closed = || PingSpec::on(Schedule::Closed);
        let known = with(closed()).bare_conditions().expect("pinned on loopback");
        assert_eq!((known.cpu, known.peer_cpu, known.size_bytes, known.fifo), (Some(0), Some(1), 64, Some(50)));
        let path = |family| PathSpec { family: Some(family), ..PathSpec::SYSTEM };
        assert_eq!(with(PingSpec { path: path(Family::Ipv4), ..closed() }).bare_conditions(), Ok(known));
        let cpus = WakeupCpus::Anywhere;
        let with_wakeup = Some(ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns: None, cpus });
        let heaters = LoadSpec { kind: LoadKind::Heaters { workers: 1, cpus: Vec::new() }, at: Side::Local };
        let slack = SettingSpec { setting: Setting::TimerSlack(1), interface: None, side: Some(Side::Local) };
        for other in [
            with(PingSpec::on(Schedule::Periodic { interval_ns: Nanos::from_millis(1) })),
            with(PingSpec { transport: TransportKind::Tcp, ..closed() }),
            with(PingSpec { path: path(Family::Ipv6), ..closed() }),
            with(PingSpec { with_wakeup, ..closed() }),
            RunSpec { loads: vec![heaters], ..with(closed()) },
            RunSpec { settings: vec![slack], ..with(closed()) },
        ] {
            assert_eq!(other.bare_conditions(), Err(NoBareLoop::Conditions), "{other:?}");
        }
        for other in [
            RunSpec { here: EndSpec::SYSTEM, ..with(closed()) },
            RunSpec { peer: Some(EndSpec::SYSTEM), ..with(closed()) },
            RunSpec { target: Target::Lab, ..with(closed()) },
        ] {
            assert_eq!(other.bare_conditions(), Err(NoBareLoop::Ends), "{other:?}");
        }
    }

    #[test]
    fn a_thread_that_sends_has_the_smallest_slack_unless_its_slack_is_stated_or_threads_sleep_beside_it() {
        let ping = || RunSpec::local(PingSpec::on(Schedule::Closed));
        let with_slack = |side| {
            let settings = vec![SettingSpec { setting: Setting::TimerSlack(50_000), interface: None, side }];
            RunSpec { settings, ..ping() }
        };
        let cpus = WakeupCpus::Anywhere;
        let with_wakeup = Some(ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns: None, cpus });
        let beside = PingSpec { with_wakeup, ..PingSpec::on(Schedule::Closed) };
        let (via, cpus, interval_ns) = (Via::ClockNanosleep, WakeupCpus::Anywhere, Nanos::from_millis(1));
        let wakeup = WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: None };
        for (run, expected) in [
            (ping(), true),
            (with_slack(None), false),
            (with_slack(Some(Side::Local)), false),
            (with_slack(Some(Side::Peer)), true),
            (RunSpec::local(beside), false),
            (RunSpec::here(Work::Wakeup(wakeup)), false),
        ] {
            assert_eq!(run.minimises_timer_slack(), expected, "{run:?}");
        }
    }
}
