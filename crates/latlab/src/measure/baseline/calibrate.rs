//! Measures the bare loop with given pins, for comparison with latlab's own figures.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::thread;

use latlab_sys::socket;
use serde::Serialize;

use super::bare::{self, Wait};
use super::{bare_schedule, bare_tcp};
use crate::clock;
use crate::facts::{BareConditions, BareLoop};
use crate::host::{HostRoot, facts, placement};
use crate::measure::MeasureError;
use crate::metric::Metric;
use crate::plan::{EndSpec, TransportKind};
use crate::recording::started_at;
use crate::sample::Sample;
use crate::session::{ReflectorProcess, ReflectorRequest};
use crate::stats::{DescribeOptions, describe};
use crate::units::Nanos;

/// Round trips of the warm-up.
const WARMUP: usize = 1_000;

/// A run of the bare loop on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareSpec {
    /// Transport of the messages.
    pub transport: TransportKind,
    /// The time between two messages, over UDP only; `None`: each follows the answer to the one before.
    pub interval_ns: Option<Nanos>,
    /// Number of round trips.
    pub count: usize,
    /// Payload size in bytes.
    pub size_bytes: u32,
    /// Settings of the sender.
    pub here: EndSpec,
    /// Settings of the reflector.
    pub peer: EndSpec,
}

/// The figures of a run of the bare loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareRoundTrips {
    /// Those that are kept as the floor of runs with the same placement.
    #[serde(flatten)]
    pub floor: BareLoop,
    /// 99.9th percentile of the round trip time.
    pub p999_ns: f64,
}

/// Measures the bare loop.
///
/// # Errors
/// The reflector or the sender could not be started or placed, or the socket failed.
pub fn calibrate(spec: &BareSpec) -> Result<BareRoundTrips, MeasureError> {
    let process = ReflectorProcess::start(&ReflectorRequest::bare(spec.transport, spec.size_bytes, spec.peer))?;
    let (address, spec) = (process.address(), *spec);
    let measuring = thread::Builder::new().name("measure".into()).spawn(move || -> Result<Vec<u32>, MeasureError> {
        placement::place(&spec.here)?;
        if spec.interval_ns.is_some() {
            placement::minimise_timer_slack();
        }
        measure(&spec, address).map_err(|source| MeasureError::Socket { peer: address.to_string(), source })
    });
    let measuring = measuring.map_err(MeasureError::Thread)?;
    let round_trips_ns = measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(figures(&round_trips_ns, &spec))
}

/// The bare loop over one kind of transport: both ends, with messages of a given size. Each function is called once for
/// many round trips.
#[derive(Clone, Copy, Debug)]
pub struct BareTransport {
    /// Opens the sender's socket.
    pub connect: fn(SocketAddr, Wait) -> io::Result<OwnedFd>,
    /// Sends so many messages of that size, each after the answer to the last; their round trips in ns.
    pub ping: fn(&OwnedFd, usize, Wait, usize) -> io::Result<Vec<u32>>,
    /// Opens the reflector's socket; port 0: the kernel's choice.
    pub bind: fn(SocketAddr, Wait) -> io::Result<OwnedFd>,
    /// The address of the reflector's socket.
    pub local_address: fn(BorrowedFd<'_>) -> io::Result<SocketAddr>,
    /// Returns messages of that size until the flag is set.
    pub reflect: fn(&OwnedFd, usize, Wait, &AtomicBool) -> io::Result<()>,
}

impl BareTransport {
    /// The bare loop over `kind`.
    pub fn of(kind: TransportKind) -> BareTransport {
        match kind {
            TransportKind::Udp => BareTransport {
                connect: bare::connect,
                ping: bare::ping,
                bind: bare::bind,
                local_address: socket::local_address,
                reflect: |socket, _, wait, stop| bare::reflect(socket, wait, stop),
            },
            TransportKind::Tcp => BareTransport {
                connect: bare_tcp::connect,
                ping: bare_tcp::ping,
                bind: |local, _| bare_tcp::bind(local),
                local_address: socket::local_address,
                reflect: bare_tcp::reflect,
            },
        }
    }
}

fn measure(spec: &BareSpec, peer: SocketAddr) -> io::Result<Vec<u32>> {
    let (bare, size, wait) = (BareTransport::of(spec.transport), spec.size_bytes as usize, spec.here.wait.into());
    let socket = (bare.connect)(peer, wait)?;
    (bare.ping)(&socket, size, wait, WARMUP)?;
    match spec.interval_ns {
        Some(interval) => bare_schedule::ping(&socket, size, wait, spec.count, interval.0),
        None => (bare.ping)(&socket, size, wait, spec.count),
    }
}

fn figures(round_trips_ns: &[u32], spec: &BareSpec) -> BareRoundTrips {
    let sample = Sample::new(Metric::RoundTripDelay, round_trips_ns.iter().map(|span| i64::from(*span)).collect());
    let options = DescribeOptions { quantiles: vec![0.5, 0.99, 0.999], confidence: 0.95, intervals: false };
    let described = describe(&sample, &options);
    let quantile = |at: usize| described.quantiles.get(at).and_then(|quantile| quantile.value).unwrap_or(f64::NAN);
    let floor = BareLoop {
        p50_ns: quantile(0),
        p99_ns: quantile(1),
        n: sample.n(),
        conditions: BareConditions {
            size_bytes: spec.size_bytes,
            wait: spec.here.wait.word().into(),
            cpu: spec.here.cpu,
            peer_cpu: spec.peer.cpu,
            fifo: spec.here.fifo,
        },
        measured_at: started_at(clock::anchor().realtime_ns),
        boot_id: facts::boot_id(&HostRoot::live()).ok(),
    };
    BareRoundTrips { floor, p999_ns: quantile(2) }
}
