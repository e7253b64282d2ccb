//! Resolution of `latlab ping`: probes, transport and concurrent wake-ups.

use super::environment::verbosity;
use super::{
    Environment, KeySource, OutputSpec, RequestError, dds, environment, load, path, schedule, setting, summary, target,
    value, xdp,
};
use crate::cli::args::{GateArgs, PingArgs, ProbeArgs};
use crate::console::Verbosity;
use crate::diagnostics::Explain;
use crate::plan::{
    ConcurrentWakeups, EndSpec, LoadKind, LoadSpec, PathSpec, PingSpec, Plan, Protocol, RunSpec, Target, TransportKind,
    WaitMode, WakeupCpus, Work, defaults,
};
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq)]
pub struct PingJob {
    /// Runs of every size with every source port.
    pub plan: Plan,
    /// Source of the pre-shared key.
    pub key: KeySource,
    /// What must hold; the analysis parses it.
    pub gates: GateArgs,
    pub output: OutputSpec,
    /// True for one JSON document instead of text.
    pub json: bool,
    /// True for the full-screen view meanwhile.
    pub live: bool,
    pub verbosity: Verbosity,
}

/// Resolves the arguments and checks them against each other.
pub fn ping(typed: &PingArgs, environment: &Environment) -> Result<PingJob, RequestError> {
    let protocol = typed.probes.protocol.unwrap_or(Protocol::Native);
    let transport = transport(typed.probes.transport.as_deref())?;
    let target = dds::target(target::target(typed.target.as_deref(), protocol)?, transport, protocol);
    echo_has_a_host(protocol, &target)?;
    let path = path::path(&typed.path.way, &target)?;
    path::address_needed(&path, &target)?;
    fits_a_connection(transport, protocol, &path)?;
    let key = path::key(&typed.path.way.key, &target, protocol)?;
    let loads = load::loads(&typed.loads, &target)?;
    echo_counts_nothing(protocol, &loads)?;
    let here = path::local_end(&typed.ends)?;
    let path = dds::path(&typed.dds, transport, path, here, &target)?;
    let path = xdp::path(&typed.xdp, transport, path, &target)?;
    let base = RunSpec {
        work: Work::Ping(PingSpec {
            transport,
            protocol,
            path,
            size_bytes: defaults::SIZE_BYTES,
            schedule: schedule::schedule(&typed.schedule, environment)?,
            timeout_ns: schedule::timeout(&typed.schedule)?,
            max_backlog_ns: schedule::max_backlog(&typed.schedule)?,
            with_wakeup: typed.with_wakeup.as_deref().map(|typed| with_wakeup(typed, here)).transpose()?,
        }),
        stop: schedule::stop(&typed.stop)?,
        warmup: schedule::warmup(&typed.stop)?,
        here,
        peer: path::peer_end_of(&target, &typed.peer, here)?,
        loads,
        settings: setting::settings(&typed.settings.set, &target)?,
        authenticated: key != KeySource::None,
        tags: environment::tags(&typed.output.tag)?,
        judging: summary::judging(&typed.judging)?,
        target,
    };
    let ports = path::source_ports(&typed.path)?;
    dds::no_ports(transport, typed.path.source_port.is_some())?;
    let runs = runs(&base, &sizes(&typed.probes)?, &ports)?;
    let output = environment::output_spec(&typed.output, runs.len(), environment);
    let rounds = rounds(&runs);
    Ok(PingJob {
        plan: Plan { runs, rounds },
        key,
        gates: typed.gates.clone(),
        output,
        json: typed.json.json,
        live: typed.live.live,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// Combines every size with every source port, in the order typed.
fn runs(base: &RunSpec, sizes: &[u32], ports: &[Option<u16>]) -> Result<Vec<RunSpec>, RequestError> {
    let count = sizes.len() * ports.len();
    if count > defaults::RUNS_MAX {
        return Err(RequestError::TooMany {
            count,
            noun: "runs",
            limit: defaults::RUNS_MAX,
            cause: "every size makes a run with every source port",
            hint: "give fewer sizes, or one source port at a time",
        });
    }
    let pairs = sizes.iter().flat_map(|size| ports.iter().map(move |port| (*size, *port)));
    Ok(pairs.map(|(size, port)| run(base, size, port)).collect())
}

fn run(base: &RunSpec, size_bytes: u32, source_port: Option<u16>) -> RunSpec {
    let ping = base.expect_ping();
    let path = PathSpec { source_port, ..ping.path.clone() };
    RunSpec { work: Work::Ping(PingSpec { size_bytes, path, ..ping.clone() }), ..base.clone() }
}

/// Returns the number of slices per run: 1 for a single run, else limited so that each slice has a probe.
pub(super) fn rounds(runs: &[RunSpec]) -> u32 {
    match runs {
        [_] => 1,
        several => {
            let fewest = several.iter().filter_map(|run| run.stop.count).min().unwrap_or(u64::MAX);
            u64::from(defaults::ROUNDS).min(fewest) as u32
        }
    }
}

fn sizes(typed: &ProbeArgs) -> Result<Vec<u32>, RequestError> {
    match typed.size.as_slice() {
        [] => Ok(vec![defaults::SIZE_BYTES]),
        sizes => sizes.iter().map(|size| value::size("--size", size)).collect(),
    }
}

pub(super) fn transport(typed: Option<&str>) -> Result<TransportKind, RequestError> {
    let Some(word) = typed else { return Ok(TransportKind::default()) };
    match TransportKind::ALL.into_iter().find(|transport| transport.word() == word) {
        Some(transport) if transport.is_built() => Ok(transport),
        // The words were checked when they were parsed.
        _ => Err(value::unusable(
            "--transport",
            word,
            "this latlab was built without the feature `dds`, which needs a C compiler",
            "`cargo build --release` builds it with DDS",
        )),
    }
}

/// Refuses options that do not apply to a connection.
pub(super) fn fits_a_connection(
    transport: TransportKind,
    protocol: Protocol,
    path: &PathSpec,
) -> Result<(), RequestError> {
    let with = format!("--transport {}", transport.word());
    let refuse = |option, cause, hint| Err(RequestError::OutOfPlace { option, with, cause, hint });
    match transport.is_connection_oriented() {
        true if path.dont_fragment => refuse(
            "--df",
            "TCP cuts its data into segments that fit the path, which are not fragmented",
            "leave it out; `--transport udp` measures single packets",
        ),
        true if protocol == Protocol::Echo => refuse(
            "--protocol echo",
            "a plain echo returns datagrams; over TCP single probes could not be recognised",
            "start `latlab serve --tcp` there and leave `--protocol echo` out",
        ),
        _ => Ok(()),
    }
}

/// Refuses `--protocol echo` with latlab's own reflector, which supports the native protocol only.
fn echo_has_a_host(protocol: Protocol, target: &Target) -> Result<(), RequestError> {
    match (protocol, target) {
        (Protocol::Echo, Target::Local | Target::Lab | Target::Ssh { .. } | Target::Command { .. }) => {
            Err(RequestError::OutOfPlace {
                option: "--protocol echo",
                with: target.to_string(),
                cause: "latlab's own reflector answers sessions and is not a plain echo",
                hint: "name the echo: `latlab ping HOST:PORT --protocol echo`",
            })
        }
        _ => Ok(()),
    }
}

/// Refuses network loads with `--protocol echo`, since an echo server counts no packets.
fn echo_counts_nothing(protocol: Protocol, loads: &[LoadSpec]) -> Result<(), RequestError> {
    match loads.iter().find(|load| matches!(load.kind, LoadKind::Net(_))) {
        Some(load) if protocol == Protocol::Echo => Err(RequestError::Unusable {
            option: "--load",
            value: load.to_string(),
            cause: "a plain echo, `--protocol echo`, counts no packets: it would not be known what arrived".into(),
            hint: "start `latlab serve` on that host and leave `--protocol echo` out".into(),
        }),
        _ => Ok(()),
    }
}

const WITH_WAKEUP: &str = "--with-wakeup";
const WITH_WAKEUP_HINT: &str = "`--with-wakeup 1ms`, or `--with-wakeup 1ms:late=200us`";

/// Resolves wake-ups concurrent with a sender that has the settings `here`.
pub(super) fn with_wakeup(typed: &str, here: EndSpec) -> Result<ConcurrentWakeups, RequestError> {
    if here.wait == WaitMode::Spin {
        let cause = "a spinning sender keeps its CPU: a thread there could not wake";
        return Err(value::unusable(WITH_WAKEUP, typed, cause, "`--wait block` or `--wait busy-poll`"));
    }
    let (interval, late) = match typed.split_once(':') {
        None => (typed, None),
        Some((interval, rest)) => (interval, Some(late(typed, rest)?)),
    };
    let interval_ns = value::span(WITH_WAKEUP, interval, defaults::INTERVAL_MAX)?;
    if here.fifo.is_some() && interval_ns < defaults::RESTLESS_INTERVAL {
        let cause = "at the sender's own FIFO priority a thread that rarely sleeps keeps the sender off its CPU";
        return Err(value::unusable(WITH_WAKEUP, typed, cause, "50 us or more, such as `--with-wakeup 1ms`"));
    }
    // An unpinned sender may run on any CPU.
    let cpus = here.cpu.map_or(WakeupCpus::All, |cpu| WakeupCpus::These(vec![cpu]));
    Ok(ConcurrentWakeups { interval_ns, late_ns: late, cpus })
}

fn late(typed: &str, rest: &str) -> Result<Nanos, RequestError> {
    let late = rest.strip_prefix("late=");
    let late = late.ok_or_else(|| {
        value::unusable(WITH_WAKEUP, typed, "after the interval only `late=T2` is known", WITH_WAKEUP_HINT)
    })?;
    value::span(WITH_WAKEUP, late, defaults::INTERVAL_MAX).map_err(|error| {
        let cause = format!("its `late=`: {}", error.explain().cause.unwrap_or_else(|| error.to_string()));
        value::unusable(WITH_WAKEUP, typed, cause, error.explain().hint.unwrap_or_else(|| WITH_WAKEUP_HINT.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::plan::{Schedule, StopWhen, Warmup};

    fn resolve(line: &str) -> Result<PingJob, RequestError> {
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
        assert_eq!(error.to_string(), "80 runs are too many for one command");
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
    fn impossible_requests_are_refused_with_their_value() {
        for (line, value) in [
            ("-n 0", "`0`"),
            ("-n -5", "`-5`"),
            ("-n 1.5", "`1.5`"),
            ("-d 10", "`10`"),
            ("-d -10s", "`-10s`"),
            ("--duration=-10s", "`-10s`"),
            ("-d 0s", "`0s`"),
            ("-d 25h", "`25h`"),
            ("-i 0", "`0`"),
            ("-i 0ms", "`0ms`"),
            ("-i -1ms", "`-1ms`"),
            ("-i 5", "`5`"),
            ("-i 2h", "`2h`"),
            ("-s 23", "`23`"),
            ("-s 70000", "`70000`"),
            ("-s 70_000", "`70_000`"),
            ("-s -1", "`-1`"),
            ("-s 64,,128", "``"),
            ("--timeout 0s", "`0s`"),
            ("--timeout 2m", "`2m`"),
            ("-i 1ms --max-backlog 0s", "`0s`"),
            ("-i 1ms --poisson --seed x", "`x`"),
            ("--poisson", "`--poisson`"),
            ("-i 1ms --seed 7", "`--seed`"),
            ("--max-backlog 1s", "`--max-backlog`"),
            ("--cpu 5000", "`5000`"),
            ("--cpu -1", "`-1`"),
            ("--peer-cpu zero", "`zero`"),
            ("127.0.0.1 --peer-cpu 1", "`127.0.0.1:9862`"),
            ("--fifo 0", "`0`"),
            ("--fifo 100", "`100`"),
            ("--dscp 64", "`64`"),
            ("--source-port 0", "`0`"),
            ("127.0.0.1:0", "`127.0.0.1:0`"),
            ("192.0.2.9", "`192.0.2.9:9862`"),
            ("ssh:", "`ssh:`"),
            ("ssh:-oProxyCommand=x", "`ssh:-oProxyCommand=x`"),
            ("cmd:", "`cmd:`"),
            ("cmd:latlab", "`cmd:`"),
            ("cmd:latlab --peer-addr pi3", "`pi3`"),
            ("ssh:pi3 --peer-addr fe80::1", "`fe80::1`"),
            ("ssh:pi3 --peer-addr 0.0.0.0", "`0.0.0.0`"),
            ("ssh:pi3 --peer-addr 10.0.0.1 -6", "`10.0.0.1`"),
            ("ssh:pi3 --psk-file k", "`ssh:pi3`"),
            ("ssh:pi3 --protocol echo", "`ssh:pi3`"),
            ("lab --peer-addr 10.0.0.1", "`lab`"),
            ("10.0.0.1 --peer-addr 10.0.0.1", "`10.0.0.1:9862`"),
            ("--queue 1", "`--queue`"),
            ("--transport xdp --reflect xdp", "`--reflect`"),
            ("127.0.0.1 --reflect xdp", "`--reflect`"),
            ("lab --transport tcp --reflect xdp", "`--reflect`"),
            ("lab --transport xdp --peer-queue 65536", "`65536`"),
            ("--transport tcp --df", "`--transport tcp`"),
            ("pi3 --transport tcp --protocol echo", "`--protocol echo`"),
            ("--protocol echo", "`local`"),
            ("pi3 --protocol echo --load net=10Mbit/s", "`net=10Mbit/s`"),
            ("--quantiles 0.5,1.5", "`1.5`"),
            ("--window 0s", "`0s`"),
            ("--deadline 5", "`5`"),
            ("--warmup -1", "`-1`"),
            ("--tag build", "`build`"),
        ] {
            let error = resolve(line).expect_err(line);
            assert!(error.to_string().contains(value), "{line}: {error}");
            assert!(error.explain().cause.is_some() && error.explain().hint.is_some(), "{line}: {error:?}");
        }
    }

    fn resolve_wakeups(typed: &str) -> Result<ConcurrentWakeups, RequestError> {
        with_wakeup(typed, EndSpec { cpu: Some(3), ..EndSpec::SYSTEM })
    }

    #[test]
    fn concurrent_wakeups_use_the_cpu_of_the_sender() {
        let expected =
            ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns: None, cpus: WakeupCpus::These(vec![3]) };
        assert_eq!(resolve_wakeups("1ms"), Ok(expected.clone()));
        let late = ConcurrentWakeups { late_ns: Some(Nanos::from_micros(200)), ..expected.clone() };
        assert_eq!(resolve_wakeups("1ms:late=200us"), Ok(late));
        assert_eq!(with_wakeup("1ms", EndSpec::SYSTEM), Ok(ConcurrentWakeups { cpus: WakeupCpus::All, ..expected }));
    }

    #[test]
    fn impossible_wakeups_are_refused_with_their_value() {
        for (typed, words) in [
            ("0ms", "longer than 0"),
            ("1", "unit"),
            ("2h", "up to"),
            ("1ms:200us", "late=200us"),
            ("1ms:late=", ""),
            ("1ms:late=0us", "longer than 0"),
            ("", ""),
        ] {
            let error = resolve_wakeups(typed).expect_err(typed);
            assert!(error.explain().hint.is_some_and(|hint| hint.contains(words)), "{typed}: {error:?}");
        }
        for late in ["0", "0us"] {
            let typed = format!("1ms:late={late}");
            let error = resolve_wakeups(&typed).expect_err(late);
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
            assert!(error.explain().cause.is_some_and(|cause| cause.contains("`late=`")), "{error:?}");
        }
        let fifo = EndSpec { fifo: Some(5), ..EndSpec::SYSTEM };
        let error = with_wakeup("20us", fifo).expect_err("a thread that keeps the CPU of its sender");
        assert!(
            error.to_string().contains("`20us`") && error.explain().hint.is_some_and(|hint| hint.contains("50 us"))
        );
        assert!(with_wakeup("50us", fifo).is_ok() && with_wakeup("20us", EndSpec::SYSTEM).is_ok());
        let spinning = EndSpec { wait: WaitMode::Spin, ..EndSpec::SYSTEM };
        let error = with_wakeup("1ms", spinning).expect_err("a spinning sender");
        assert!(error.to_string().contains("`1ms`") && error.explain().hint.is_some_and(|hint| hint.contains("block")));
    }
}
