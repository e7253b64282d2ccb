//! Armed loops over DDS, each end in a process of its own: within one process the library passes samples on without a
//! socket. Counted are the calls of Rust code, in the threads of the library too; those of the library go to the C library.

use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latlab::clock::Monotonic;
use latlab::plan::{DdsSpec, History, PathSpec, PingSpec, Reliability, Schedule, WaitMode};
use latlab::session::{ReflectorLimits, Requests, SessionParams, SessionReflector, open, serve};
use latlab::transport::{Dds, ListenAddress, ListenOptions, PathOptions, TransportFamily, WaitStrategy};
use latlab::units::Nanos;

use crate::armed::{PROBES, SCHEDULES, Watched, logged, ping_spec, slices};
use crate::{calls_of_all_threads, calls_of_library_threads};

/// Set for a copy of this test binary that reflects: its wait mode and history.
const ROLE: &str = "LATLAB_TEST_DDS_REFLECTOR";
const DOMAIN: u16 = 61;

fn spec(history: History) -> DdsSpec {
    DdsSpec { domain: DOMAIN, reliability: Reliability::Reliable, history, ..DdsSpec::default() }
}

/// The reflector of [`Reflector`]: prints its address, and at the end of its input its allocations and received samples.
#[test]
fn play_the_reflector() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let wait = if role.starts_with("spin") { WaitMode::Spin } else { WaitMode::Block };
    let history = if role.ends_with("all") { History::KeepAll } else { History::KeepLast(16) };
    let options = ListenOptions {
        address: ListenAddress::One(([127, 0, 0, 1], 0).into()),
        wait,
        caps: ReflectorLimits::own(1).connections(),
        single_sender: false,
        dds: spec(history),
        queue: 0,
        in_driver: false,
    };
    let bound = Dds::listen(&options).expect("a port");
    #[expect(clippy::disallowed_methods, reason = "the parent reads it")]
    let mut out = io::stdout();
    writeln!(out, "\nat {}", bound.address).and_then(|()| out.flush()).expect("a reader");
    let mut socket = Watched::new(bound.socket, calls_of_all_threads);
    let mut reflector = SessionReflector::new(ReflectorLimits::own(1), None, [7; 32]);
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            _ = io::stdin().lines().next();
            stop.store(true, Ordering::Relaxed);
        });
        let requests = Requests { stop: &stop, counters: &never };
        let cpu = latlab_sys::scheduler::current_cpu;
        serve(&mut socket, &mut reflector, &Monotonic, requests, cpu, |_| {}).expect("the library works");
    });
    writeln!(out, "\ncounted {} {}", socket.calls, socket.received).expect("a reader");
}

/// A reflector in a process of its own, which is killed when this is dropped.
struct Reflector {
    child: Child,
    input: Option<ChildStdin>,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Reflector {
    fn start(wait: WaitMode, history: History) -> (Reflector, SocketAddr) {
        let wait = if wait == WaitMode::Spin { "spin" } else { "block" };
        let history = if history == History::KeepAll { "all" } else { "last" };
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "dds::play_the_reflector", "--nocapture"])
            .env(ROLE, format!("{wait} {history}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let input = child.stdin.take();
        let mut reflector = Reflector { child, input, lines: Box::new(lines) };
        let address = reflector.line("at ").parse().expect("an address");
        (reflector, address)
    }

    /// The rest of its next line that begins with `start`.
    fn line(&mut self, start: &str) -> String {
        self.lines.find_map(|line| line.strip_prefix(start).map(str::to_owned)).expect("it says so")
    }

    /// Ends it: its allocations and received samples.
    fn counts(mut self) -> (u64, u64) {
        self.input.take();
        let counted = self.line("counted ");
        let (calls, received) = counted.split_once(' ').expect("two numbers");
        (calls.parse().expect("a number"), received.parse().expect("a number"))
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("killed");
    }
}

fn measured(wait: WaitMode, history: History, schedule: Schedule) {
    let what = format!("{wait:?}, {history:?}, {schedule:?}");
    let ping = PingSpec {
        path: PathSpec { dds: Some(spec(history)), ..PathSpec::SYSTEM },
        ..ping_spec(schedule, Nanos::from_secs(1))
    };
    let (reflector, peer) = Reflector::start(wait, history);
    let stop = AtomicBool::new(false);
    let waiting = WaitStrategy::new(wait, schedule, ping.timeout_ns);
    let options = PathOptions { path: &ping.path, peer, wait: waiting, stop: &stop };
    logged(|log| {
        let mut transport = Dds::open(&options).expect("a path");
        let (minute, limit) = (Some(Nanos::from_secs(60)), Nanos::from_secs(9));
        let params = SessionParams::new("loopback", [7; 16], ping.size_bytes, Schedule::Closed, minute, limit);
        let mut session = open(&mut transport, &Monotonic, None, &params, &stop).expect("a session");
        let before = calls_of_library_threads();
        let calls = slices(&mut transport, &mut session, log, &ping, PROBES);
        let of_threads = calls_of_library_threads() - before;
        assert_eq!((calls, of_threads), (0, 0), "{what}");
        assert!(log.written() >= PROBES, "{what}");
    });
    let (calls, received) = reflector.counts();
    assert_eq!(calls, 0, "{what}");
    // On a busy machine a burst overwrites samples that wait to be read, but for KEEP_ALL.
    let fewest = if history == History::KeepAll { PROBES } else { PROBES / 10 };
    assert!(received > fewest, "probes came: {received}, {what}");
}

#[test]
fn ends_over_dds_allocate_nothing_of_their_own() {
    for wait in [WaitMode::Block, WaitMode::Spin] {
        for history in [History::KeepLast(16), History::KeepAll] {
            for schedule in SCHEDULES {
                measured(wait, history, schedule);
            }
        }
    }
}
