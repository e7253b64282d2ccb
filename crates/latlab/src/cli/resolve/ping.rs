//! Resolution of `latlab ping`: probes, transport and concurrent wake-ups.

use super::measuring::{self, rounds};
use super::{Environment, KeySource, MeasureJob, dds, path};
use crate::cli::args::{PingArgs, ScheduleArgs};
use crate::cli::value::{WakeupsBeside, too_many, unusable};
use crate::diagnostics::Failure;
use crate::plan::{
    ConcurrentWakeups, EndSpec, PathSpec, PingSpec, Plan, Protocol, RunSpec, Schedule, WakeupCpus, Work, defaults,
};
use crate::units::human::typed_span;

/// Resolves the arguments and checks them against each other.
pub fn ping(typed: &PingArgs, environment: &Environment) -> Result<MeasureJob, Failure> {
    let protocol = typed.probes.protocol.unwrap_or(Protocol::Native);
    let transport = typed.probes.transport.unwrap_or_default();
    let target = dds::target(path::target(typed.target.as_ref(), protocol), transport, protocol);
    let key = path::key(&typed.path.way.key, &target, protocol)?;
    let here = typed.ends.end();
    let ping = PingSpec {
        transport,
        protocol,
        path: path::path(&typed.path.way, &typed.dds, &typed.xdp, transport, &target)?,
        size_bytes: defaults::SIZE_BYTES,
        schedule: schedule(&typed.schedule, environment),
        timeout_ns: typed.schedule.timeout.unwrap_or(defaults::TIMEOUT),
        max_backlog_ns: typed.schedule.max_backlog.unwrap_or(defaults::MAX_BACKLOG),
        with_wakeup: typed.with_wakeup.map(|typed| wakeups_beside(typed, here)).transpose()?,
    };
    let base = RunSpec {
        stop: typed.stop.stop(),
        warmup: typed.stop.warmup(),
        here,
        peer: path::peer_end(&target, typed.peer.peer_cpu, here),
        authenticated: key != KeySource::None,
        ..measuring::run(&typed.measuring, Work::Ping(ping.clone()), target)?
    };
    let runs = runs(typed, &base, &ping)?;
    let rounds = rounds(&runs);
    Ok(MeasureJob::of(Plan { runs, rounds }, key, 1, &typed.measuring, environment))
}

/// Combines every size with every source port, in the order typed.
fn runs(typed: &PingArgs, base: &RunSpec, ping: &PingSpec) -> Result<Vec<RunSpec>, Failure> {
    let sizes = if typed.probes.size.is_empty() { &[defaults::SIZE_BYTES][..] } else { &typed.probes.size };
    let swept = typed.path.source_port.clone().map(|ports| ports.map(Some).collect::<Vec<_>>());
    let ports = swept.unwrap_or_else(|| vec![None]);
    let count = sizes.len() * ports.len();
    if count > defaults::RUNS_MAX {
        let cause = "every size makes a run with every source port";
        return Err(too_many(
            count,
            "runs",
            defaults::RUNS_MAX,
            cause,
            "give fewer sizes, or one source port at a time",
        ));
    }
    let pairs = sizes.iter().flat_map(|size| ports.iter().map(move |port| (*size, *port)));
    let run = |(size_bytes, source_port)| {
        let path = PathSpec { source_port, ..ping.path.clone() };
        RunSpec { work: Work::Ping(PingSpec { size_bytes, path, ..ping.clone() }), ..base.clone() }
    };
    Ok(pairs.map(run).collect())
}

fn schedule(typed: &ScheduleArgs, environment: &Environment) -> Schedule {
    match typed.interval {
        None => Schedule::Closed,
        Some(mean_ns) if typed.poisson => Schedule::Poisson { mean_ns, seed: typed.seed.unwrap_or(environment.seed) },
        Some(interval_ns) => Schedule::Periodic { interval_ns },
    }
}

/// Refuses intervals of probes below [`defaults::INTERVAL_MIN`] in `runs` that are to begin. The resolution of a schedule
/// accepts them: experiments of versions without this limit are still read, compared and continued.
pub fn expect_feasible_intervals<'a>(runs: impl IntoIterator<Item = &'a RunSpec>) -> Result<(), Failure> {
    let mut intervals = runs.into_iter().filter_map(|run| run.ping()?.schedule.interval());
    let Some(interval) = intervals.find(|interval| *interval < defaults::INTERVAL_MIN) else { return Ok(()) };
    let least = typed_span(defaults::INTERVAL_MIN);
    let cause = format!("it is shorter than {least}: a host cannot send probes one by one that often");
    let hint = format!("{least} or longer; without it the next probe leaves when the last one was answered");
    Err(unusable("--interval", typed_span(interval), cause, hint))
}

/// Wake-ups beside a sender that has the settings `here`.
fn wakeups_beside(typed: WakeupsBeside, here: EndSpec) -> Result<ConcurrentWakeups, Failure> {
    let WakeupsBeside { interval_ns, late_ns } = typed;
    if here.fifo.is_some() && interval_ns < defaults::RESTLESS_INTERVAL {
        let cause = "at the sender's own FIFO priority a thread that rarely sleeps keeps the sender off its CPU";
        let hint = "50 us or more, such as `--with-wakeup 1ms`";
        return Err(unusable("--with-wakeup", typed_span(interval_ns), cause, hint));
    }
    // An unpinned sender may run on any CPU.
    let cpus = here.cpu.map_or(WakeupCpus::All, |cpu| WakeupCpus::These(vec![cpu]));
    Ok(ConcurrentWakeups { interval_ns, late_ns, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::resolve::OutputSpec;
    use crate::plan::{StopWhen, Target, TransportKind, WaitMode, Warmup};
    use crate::units::Nanos;

    fn resolve(line: &str) -> Result<MeasureJob, Failure> {
        let typed = ["latlab", "ping"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Ping(args) => ping(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn omitted_options_have_their_defaults() {
        let job = resolve("").expect("defaults hold together");
        let [run] = job.plan.runs.as_slice() else { panic!("{:?}", job.plan) };
        let end = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
        assert_eq!((run.here, run.peer, &run.target), (end, Some(end), &Target::Local));
        assert_eq!(run.stop, StopWhen { count: None, duration_ns: Some(defaults::DURATION) });
        assert_eq!(run.warmup, Warmup { count: Some(1_000), duration_ns: Some(Nanos::from_secs(1)) });
        assert_eq!((run.expect_ping().size_bytes, run.expect_ping().schedule), (64, Schedule::Closed));
        assert_eq!(
            (run.expect_ping().timeout_ns, run.expect_ping().max_backlog_ns),
            (defaults::TIMEOUT, defaults::MAX_BACKLOG)
        );
        assert_eq!(run.judging.quantiles, defaults::QUANTILES);
        assert_eq!((job.key, job.plan.rounds, run.authenticated), (KeySource::None, 1, false));
        assert_eq!(job.output, OutputSpec::InStore(defaults::STORE.into()));
    }

    #[test]
    fn sizes_and_ports_are_combined_and_interleaved() {
        let job = resolve("-s 32,1024 --source-port sweep").expect("32 runs");
        assert_eq!((job.plan.runs.len(), job.plan.rounds), (32, defaults::ROUNDS));
        let last = job.plan.runs[31].expect_ping();
        assert_eq!((last.size_bytes, last.path.source_port), (1_024, Some(30_015)));
        assert_eq!(resolve("-s 32,64 -n 3").expect("two runs").plan.rounds, 3);
        let error = resolve("-s 24,25,26,27,28 --source-port sweep").expect_err("80 runs");
        assert_eq!(error.message, "80 runs are too many for one command");
    }

    #[test]
    fn both_ends_are_set_if_latlab_starts_both() {
        let job = resolve("lab --wait spin --cpu 0 --peer-cpu 1 --fifo 5 --mlock").expect("well typed");
        let here = EndSpec { wait: WaitMode::Spin, cpu: Some(0), fifo: Some(5), mlock: true };
        assert_eq!(job.plan.runs[0].here, here);
        assert_eq!(job.plan.runs[0].peer, Some(EndSpec { cpu: Some(1), ..here }));
        assert_eq!((job.key, job.plan.runs[0].authenticated), (KeySource::Fresh, true));
        assert_eq!(resolve("127.0.0.1 --cpu 0").expect("well typed").plan.runs[0].peer, None);
        let job = resolve("ssh:pi@pi3 --wait spin --peer-cpu 3 --peer-addr 10.0.0.7").expect("well typed");
        assert_eq!(job.plan.runs[0].peer, Some(EndSpec { wait: WaitMode::Spin, cpu: Some(3), ..EndSpec::SYSTEM }));
        assert_eq!((job.key, job.plan.runs[0].authenticated), (KeySource::Fresh, true));
        assert_eq!(job.plan.runs[0].expect_ping().path.peer_address, "10.0.0.7".parse().ok());
    }

    #[test]
    fn options_set_the_fields_of_the_run() {
        for (word, wait) in [("block", WaitMode::Block), ("spin", WaitMode::Spin), ("busy-poll", WaitMode::BusyPoll)] {
            assert_eq!(resolve(&format!("--wait {word}")).expect(word).plan.runs[0].here.wait, wait);
        }
        let echo = resolve("pi3 --protocol echo --transport udp").expect("well typed");
        assert_eq!(echo.plan.runs[0].expect_ping().protocol, Protocol::Echo);
        let swept = resolve("--transport tcp --source-port sweep").expect("a connection each");
        assert!(swept.plan.runs.iter().all(|run| run.transport() == Some(TransportKind::Tcp)));
    }

    #[test]
    fn a_count_removes_the_default_duration() {
        let stop = |line: &str| resolve(line).expect(line).plan.runs[0].stop;
        let ten = Some(Nanos::from_secs(10));
        assert_eq!(stop("-n 5k"), StopWhen { count: Some(5_000), duration_ns: None });
        assert_eq!(stop("-n 5 -d 10s"), StopWhen { count: Some(5), duration_ns: ten });
    }

    #[test]
    fn an_interval_that_no_sender_keeps_is_read_and_refused_where_runs_begin() {
        let begin = |line: &str| expect_feasible_intervals(&resolve(line).expect(line).plan.runs);
        assert_eq!(begin("-i 1us"), Ok(()));
        assert!(begin("-i 10ns").is_err() && begin("-i 999ns").is_err());
    }

    #[test]
    fn the_environment_seeds_poisson_unless_a_seed_is_given() {
        let environment = Environment { seed: 99, ..Environment::default() };
        let mean_ns = Some(Nanos::from_millis(1));
        for (poisson, seed, expected) in [
            (false, None, Schedule::Periodic { interval_ns: Nanos::from_millis(1) }),
            (true, None, Schedule::Poisson { mean_ns: Nanos::from_millis(1), seed: 99 }),
            (true, Some(7), Schedule::Poisson { mean_ns: Nanos::from_millis(1), seed: 7 }),
        ] {
            let typed = ScheduleArgs { interval: mean_ns, poisson, seed, ..ScheduleArgs::default() };
            assert_eq!(schedule(&typed, &environment), expected);
        }
    }

    #[test]
    fn concurrent_wakeups_use_the_cpu_of_the_sender() {
        let beside = |here| {
            let typed = WakeupsBeside { interval_ns: Nanos::from_micros(20), late_ns: None };
            wakeups_beside(typed, here).map(|wakeups| wakeups.cpus)
        };
        assert_eq!(beside(EndSpec { cpu: Some(3), ..EndSpec::SYSTEM }), Ok(WakeupCpus::These(vec![3])));
        assert_eq!(beside(EndSpec::SYSTEM), Ok(WakeupCpus::All));
        assert!(beside(EndSpec { fifo: Some(5), ..EndSpec::SYSTEM }).is_err(), "it keeps the CPU of its sender");
    }
}
