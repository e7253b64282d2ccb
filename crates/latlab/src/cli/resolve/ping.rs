//! Resolution of `latlab ping`: probes, transport and concurrent wake-ups.

use super::measuring::{self, remedy_runs, rounds};
use super::{Environment, MeasureJob};
use crate::cli::args::{PingArgs, ScheduleArgs};
use crate::cli::options::{KeySource, dds, path};
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
    let (here, peer) = typed.ends.ends(typed.peer.peer_cpu, &target, environment.cores);
    let ping = PingSpec {
        transport,
        protocol,
        path: path::path(&typed.path.way, &typed.dds, &typed.xdp, transport, &target)?,
        size_bytes: defaults::SIZE_BYTES,
        schedule: schedule(&typed.schedule, environment),
        timeout_ns: typed.schedule.timeout.unwrap_or(defaults::TIMEOUT),
        max_backlog_ns: typed.schedule.max_backlog.unwrap_or(defaults::MAX_BACKLOG),
        with_wakeup: typed.with_wakeup.map(|typed| wakeups_beside(typed, here)).transpose()?,
        stamps: typed.probes.stamps,
    };
    let base = RunSpec {
        stop: typed.stop.stop(),
        warmup: typed.stop.warmup(),
        trace: typed.trace.trace,
        here,
        peer,
        authenticated: key != KeySource::None,
        ..measuring::run(&typed.measuring, Work::Ping(ping.clone()), target)?
    };
    let runs = runs(typed, &base, &ping)?;
    let (runs, recordings) = remedy_runs(runs, typed.remedies, &typed.stop, "several sizes or source ports")?;
    let rounds = rounds(&runs);
    Ok(MeasureJob::of(Plan { runs, rounds }, key, recordings, &typed.measuring, environment))
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
    use crate::plan::{Kind, Remedy, WaitMode};

    fn resolve(line: &str) -> Result<MeasureJob, Failure> {
        let typed = ["latlab", "ping"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Ping(args) => ping(&args, &Environment { cores: Some([2, 3]), ..Environment::default() }),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_ends_on_this_host_have_a_core_each() {
        let cases = [
            ("local", [Some(2), Some(3)]),
            ("local --cpu 3", [Some(3), None]),
            ("local --peer-cpu 7", [None, Some(7)]),
            ("local --cpu 1 --peer-cpu 1", [Some(1), Some(1)]),
            ("local --cpu any --peer-cpu any", [None, None]),
            ("ssh:pi3", [None, None]),
        ];
        for (line, expected) in cases {
            let job = resolve(line).expect(line);
            let run = &job.plan.runs[0];
            assert_eq!([run.here.cpu, run.peer.and_then(|peer| peer.cpu)], expected, "{line}");
        }
    }

    #[test]
    fn spinners_under_fifo_leave_a_cpu_free() {
        let usable = crate::host::placement::allowed_cpus().len();
        let refused = |line: &str| measuring::expect_a_free_cpu(&resolve(line).expect(line).plan.runs).is_err();
        assert_eq!(refused("local --cpu 0 --peer-cpu 1 --wait spin --fifo 5"), usable <= 2);
        assert_eq!(refused("127.0.0.1 --wait spin --fifo 5"), usable <= 1);
        assert!(!refused("local --wait spin") && !refused("local --fifo 5"));
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
    fn a_remedy_equals_its_options() {
        for target in ["local", "ssh:pi3", "127.0.0.1"] {
            let run = resolve(target).expect(target).plan.runs[0].clone();
            for remedy in Remedy::of(Kind::Ping) {
                let typed = resolve(&format!("{target} {}", remedy.words())).expect(target).plan.runs[0].clone();
                assert_eq!(remedy.applied(&run), Ok(typed), "{target} {remedy:?}");
            }
        }
    }
}
