//! The armed loop and the loop of the reflector over real sockets, with every schedule, way of waiting and fate of a probe.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use latlab::clock::Monotonic;
use latlab::measure::ping::{ProbeSequence, SessionSender, run_slice};
use latlab::measure::{CpuSource, Slice};
use latlab::plan::Schedule;
use latlab::plan::{PingSpec, WaitMode};
use latlab::probe::Phase;
use latlab::recording::manifest::RunEnding;
use latlab::recording::{EventLog, RecordingWriter, Store};
use latlab::session::{
    EchoCodec, PreSharedKey, ProbeCodec, ReflectorLimits, Requests, SessionParams, SessionReflector, open, serve,
};
use latlab::transport::{
    BatchBuffer, ReceivingThreads, ReflectorSocket, SocketReport, Transport, UdpReflector, UdpTransport, WaitStrategy,
};
use latlab::units::Nanos;
use latlab::wire::SocketTerms;

use crate::{calls_of, calls_so_far, runs};

/// Probes of each slice, of which a tenth is lost.
pub(crate) const PROBES: u64 = 200;
/// Probes of a slice in which none is answered.
const FEW: u64 = 10;
/// The time that a lost probe costs a closed loop.
const TIMEOUT: Nanos = Nanos::from_millis(10);
/// HELLO, OPEN and the POLL that confirms the session precede the first probe and must not be lost.
pub(crate) const SETUP_DATAGRAMS: u64 = 3;

pub(crate) const SCHEDULES: [Schedule; 3] = [
    Schedule::Closed,
    Schedule::Periodic { interval_ns: Nanos(50_000) },
    Schedule::Poisson { mean_ns: Nanos(50_000), seed: 7 },
];

pub(crate) fn ping_spec(schedule: Schedule, max_backlog: Nanos) -> PingSpec {
    PingSpec { timeout_ns: TIMEOUT, max_backlog_ns: max_backlog, ..PingSpec::on(schedule) }
}

fn path_to(peer: SocketAddr, wait: WaitMode, ping: &PingSpec) -> UdpTransport {
    let waiting = WaitStrategy::new(wait, ping.schedule, ping.timeout_ns);
    UdpTransport::open(&ping.path, peer, waiting).expect("a path over loopback")
}

/// A socket that loses every tenth datagram after the session was opened, and counts the allocations of the thread that uses it.
struct Lossy {
    socket: UdpReflector,
    received: u64,
    calls: u64,
}

impl ReflectorSocket for Lossy {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        // Before the first call the loop has allocated its buffer; every later call counts.
        self.calls = calls_so_far();
        let received = self.socket.receive(buffer)?;
        self.received += u64::from(received.is_some());
        Ok(received.filter(|_| self.received <= SETUP_DATAGRAMS || !self.received.is_multiple_of(10)))
    }

    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.reply(datagram, to)
    }

    fn report(&self) -> SocketReport {
        self.socket.report()
    }

    fn supported_terms(&self) -> SocketTerms {
        self.socket.supported_terms()
    }

    fn configure(&mut self, terms: SocketTerms) {
        self.socket.configure(terms);
    }

    /// Batches are not lost here.
    fn receive_batch(&mut self, buffer: &mut BatchBuffer, may_pause: bool) -> io::Result<usize> {
        self.calls = calls_so_far();
        self.socket.receive_batch(buffer, may_pause)
    }

    fn set_reply_source(&mut self, local: Option<IpAddr>, merged: bool) {
        self.socket.set_reply_source(local, merged);
    }
}

/// Calls to the allocator while reflecting; probes answered.
pub(crate) type Reflected = (u64, u64);

/// A socket of a reflector that counts allocations from the first to the last probe. Those up to the end of the set-up do not
/// count: a connection gets its buffer when it is accepted, a sender over DDS its writer when it is found.
pub(crate) struct Watched<S> {
    socket: S,
    /// The calls to the allocator so far that count.
    calls_so_far: fn() -> u64,
    pub(crate) received: u64,
    setup_calls: u64,
    pub(crate) calls: u64,
}

impl<S> Watched<S> {
    pub(crate) fn new(socket: S, calls_so_far: fn() -> u64) -> Watched<S> {
        Watched { socket, calls_so_far, received: 0, setup_calls: 0, calls: 0 }
    }

    /// The reply to the last message of the set-up was sent before the next call.
    fn note_set_up(&mut self) {
        if self.received == SETUP_DATAGRAMS {
            self.setup_calls = (self.calls_so_far)();
        }
    }

    fn count(&mut self, received: u64) {
        if received > 0 {
            self.received += received;
            self.calls = (self.calls_so_far)().saturating_sub(self.setup_calls);
        }
    }
}

impl<S: ReflectorSocket> ReflectorSocket for Watched<S> {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        self.note_set_up();
        let received = self.socket.receive(buffer)?;
        self.count(received.is_some().into());
        Ok(received)
    }

    fn receive_batch(&mut self, buffer: &mut BatchBuffer, may_pause: bool) -> io::Result<usize> {
        self.note_set_up();
        let received = self.socket.receive_batch(buffer, may_pause)?;
        self.count(received as u64);
        Ok(received)
    }

    fn supported_terms(&self) -> SocketTerms {
        self.socket.supported_terms()
    }

    fn configure(&mut self, terms: SocketTerms) {
        self.socket.configure(terms);
    }

    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.reply(datagram, to)
    }

    fn dedicate_to(&mut self, peer: SocketAddr) {
        self.socket.dedicate_to(peer);
    }

    fn receiving_threads(&self) -> Option<Box<dyn ReceivingThreads>> {
        self.socket.receiving_threads()
    }

    fn is_of_library(&self) -> bool {
        self.socket.is_of_library()
    }

    fn has_connection_work(&self) -> bool {
        self.socket.has_connection_work()
    }

    fn next_closed(&mut self) -> Option<SocketAddr> {
        self.socket.next_closed()
    }

    fn close_idle(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        self.socket.close_idle(has_session);
    }
}

pub(crate) fn reflect<'scope>(
    scope: &'scope Scope<'scope, '_>,
    socket: UdpReflector,
    key: Option<&'scope PreSharedKey>,
    stop: &'scope AtomicBool,
) -> std::thread::ScopedJoinHandle<'scope, Reflected> {
    scope.spawn(move || {
        let mut socket = Lossy { socket, received: 0, calls: 0 };
        let mut reflector = SessionReflector::new(ReflectorLimits::own(1), key, [7; 32]);
        let never = AtomicBool::new(false);
        let requests = Requests { stop, counters: &never };
        let cpu = latlab_sys::scheduler::current_cpu;
        serve(&mut socket, &mut reflector, &Monotonic, requests, cpu, |_| {}).expect("the socket works");
        let answered = reflector.counters(latlab::units::Stamp::from_nanos(0)).answered;
        (socket.calls, answered)
    })
}

/// Runs `story` with the log of a temporary recording.
pub(crate) fn logged(story: impl FnOnce(&mut EventLog)) {
    let store = Store::temporary().expect("store");
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000000a110c")).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    story(&mut log);
    writer.finish(log, RunEnding::Completed, None).expect("finished");
}

/// Calls to the allocator in a warm-up and a measuring slice of `probes` each.
pub(crate) fn slices(
    transport: &mut impl Transport,
    dialogue: &mut impl ProbeCodec,
    log: &mut EventLog,
    ping: &PingSpec,
    probes: u64,
) -> u64 {
    let never = AtomicBool::new(false);
    let mut course = ProbeSequence::new(ping);
    [Phase::Warmup, Phase::Measure]
        .into_iter()
        .map(|phase| {
            let slice = Slice { phase, count: probes, duration: Nanos::from_secs(20) };
            let mut ends = SessionSender::new(transport, &Monotonic, dialogue, log, CpuSource::Running);
            calls_of(|| run_slice(&mut ends, &mut course, &slice, ping, &never).expect("the socket works"))
        })
        .sum()
}

/// A session over loopback against a reflector that loses every tenth probe, and then without a reflector.
fn native(wait: WaitMode, ping: &PingSpec, key: Option<&PreSharedKey>) {
    let what = format!("{wait:?}, {:?}, key: {}", ping.schedule, key.is_some());
    let socket = UdpReflector::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
    let mut transport = path_to(socket.local_address(), wait, ping);
    let stop = AtomicBool::new(false);
    logged(|log| {
        std::thread::scope(|scope| {
            let reflecting = reflect(scope, socket, key, &stop);
            let minute = Some(Nanos::from_secs(60));
            let params =
                SessionParams::new("loopback", [7; 16], ping.size_bytes, Schedule::Closed, minute, Nanos::from_secs(9));
            let session = open(&mut transport, &Monotonic, key, &params, &stop);
            let calls = session.map(|mut session| (slices(&mut transport, &mut session, log, ping, PROBES), session));
            stop.store(true, Ordering::Relaxed);
            let (reflector_calls, answered) = reflecting.join().expect("no panic");
            let (sender_calls, mut session) = calls.expect("a session");
            assert_eq!((sender_calls, reflector_calls), (0, 0), "{what}");
            assert!(answered > 0 && log.written() > 2 * PROBES, "answers come and are written down; {what}");
            // Without a reflector the host refuses every probe (ICMP), which is not an error of the loop.
            assert_eq!(slices(&mut transport, &mut session, log, ping, FEW), 0, "{what}");
            assert!(!transport.report().socket_errors.is_empty(), "{what}");
        });
    });
}

/// Every schedule with and without a key, with the wait mode `wait`.
fn every_schedule(wait: WaitMode) {
    let key = PreSharedKey::generate().expect("chance");
    for schedule in SCHEDULES {
        for key in [None, Some(&key)] {
            native(wait, &ping_spec(schedule, Nanos::from_secs(1)), key);
        }
    }
}

#[test]
fn blocking_ends_allocate_nothing() {
    every_schedule(WaitMode::Block);
}

#[test]
fn spinning_ends_allocate_nothing() {
    every_schedule(WaitMode::Spin);
}

#[test]
fn giving_up_probes_allocates_nothing() {
    let silent = UdpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block).expect("a port");
    // Probes are due every nanosecond, so that the loop is late by more than 1 ns at once.
    let ping = ping_spec(Schedule::Periodic { interval_ns: Nanos(1) }, Nanos(1));
    let mut transport = path_to(silent.local_address(), WaitMode::Block, &ping);
    let mut echo = EchoCodec::new(ping.size_bytes, [7; 8]);
    logged(|log| {
        assert_eq!(slices(&mut transport, &mut echo, log, &ping, PROBES), 0);
        assert_eq!(log.written(), 2 * PROBES, "every probe was sent or given up");
    });
}

#[test]
fn refused_probes_and_foreign_datagrams_allocate_nothing() {
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    // Larger than any datagram: the kernel refuses each.
    let ping = PingSpec { size_bytes: 70_000, ..ping_spec(Schedule::Closed, Nanos::ZERO) };
    let mut transport = path_to(stranger.local_addr().expect("bound"), WaitMode::Block, &ping);
    for _ in 0..FEW {
        stranger.send_to(b"none of ours", transport.local_address()).expect("sent");
    }
    let mut echo = EchoCodec::new(ping.size_bytes, [7; 8]);
    logged(|log| assert_eq!(slices(&mut transport, &mut echo, log, &ping, FEW), 0));
    assert_eq!(echo.strays(), [("foreign".to_owned(), FEW)].into());
}
