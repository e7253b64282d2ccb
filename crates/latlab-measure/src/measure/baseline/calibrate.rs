//! Measures the bare loop with given pins, for comparison with latlab's own figures.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::thread;

use latlab_sys::socket;
use serde::Serialize;

use super::bare::{self, Wait};
#[cfg(feature = "dds")]
use super::bare_dds::BareDds;
use super::bare_xdp::BareXdp;
use super::{bare_schedule, bare_tcp};
use crate::clock;
use crate::facts::{BareConditions, BareLoop};
use crate::host::{HostRoot, Lab, facts, placement};
use crate::measure::MeasureError;
use crate::metric::Metric;
use crate::plan::{DdsSpec, EndSpec, TransportKind};
use crate::recording::started_at;
use crate::sample::Sample;
use crate::session::{ReflectorProcess, ReflectorRequest};
use crate::stats::{DescribeOptions, describe};
use crate::units::Nanos;

/// Round trips of the warm-up.
const WARMUP: usize = 1_000;

/// A run of the bare loop: on loopback, past the network stack between two private namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareSpec {
    pub transport: TransportKind,
    /// Domain and policies over DDS.
    pub dds: DdsSpec,
    /// The time between two messages, over UDP only; `None`: each follows the answer to the one before.
    pub interval_ns: Option<Nanos>,
    pub count: usize,
    /// Payload size in bytes.
    pub size_bytes: u32,
    pub here: EndSpec,
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
    let spec = *spec;
    let request = ReflectorRequest::bare(spec.transport, spec.dds, spec.size_bytes, spec.peer);
    let round_trips_ns = with_peer(request, spec.here, move |peer| {
        if spec.interval_ns.is_some() {
            placement::minimise_timer_slack();
        }
        measure(&spec, peer)
    })?;
    Ok(figures(&round_trips_ns, &spec))
}

/// Starts the process of `request` and calls `measure` with its address on a thread that is placed as `here` says. Both
/// ends are on loopback, over AF_XDP in two private namespaces.
///
/// # Errors
/// One of them could not be started or placed, or the socket failed.
pub fn with_peer<T: Send + 'static>(
    request: ReflectorRequest,
    here: EndSpec,
    measure: impl FnOnce(SocketAddr) -> io::Result<T> + Send + 'static,
) -> Result<T, MeasureError> {
    let lab = (request.transport == TransportKind::Xdp).then(Lab::set_up).transpose()?;
    let process = start(request, lab.as_ref())?;
    let address = process.address();
    let measuring = thread::Builder::new().name("measure".into()).spawn(move || -> Result<T, MeasureError> {
        let _namespace = lab.as_ref().map(Lab::enter_sender).transpose()?;
        placement::place(&here)?;
        measure(address).map_err(|source| MeasureError::Socket { peer: address.to_string(), source })
    });
    let measuring = measuring.map_err(MeasureError::Thread)?;
    measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn start(request: ReflectorRequest, lab: Option<&Lab>) -> Result<ReflectorProcess, MeasureError> {
    let Some(lab) = lab else { return Ok(ReflectorProcess::start(&request)?) };
    let _namespace = lab.enter_reflector()?;
    Ok(ReflectorProcess::start(&ReflectorRequest { bind: SocketAddr::new(lab.reflector_ipv4(), 0), ..request })?)
}

/// One end of the bare loop.
#[derive(Debug)]
pub enum BareEnd {
    Udp(OwnedFd),
    /// A TCP connection, or a listener.
    Tcp(OwnedFd),
    Xdp(BareXdp),
    /// A writer and a reader of DDS.
    #[cfg(feature = "dds")]
    Dds(Box<BareDds>),
}

impl BareEnd {
    /// Opens the sender's end.
    ///
    /// # Errors
    /// The kernel or the library refused.
    pub fn connect(kind: TransportKind, peer: SocketAddr, wait: Wait, dds: DdsSpec) -> io::Result<BareEnd> {
        match kind {
            TransportKind::Udp => bare::connect(peer, wait).map(BareEnd::Udp),
            TransportKind::Tcp => bare_tcp::connect(peer, wait).map(BareEnd::Tcp),
            TransportKind::Xdp => BareXdp::connect(peer).map(BareEnd::Xdp).map_err(io::Error::other),
            #[cfg(feature = "dds")]
            TransportKind::Dds => BareDds::connect(peer, dds, wait).map(Box::new).map(BareEnd::Dds),
            #[cfg(not(feature = "dds"))]
            TransportKind::Dds => Err(unsupported(dds)),
        }
    }

    /// Opens the reflector's end; port 0: the kernel's choice.
    ///
    /// # Errors
    /// As [`BareEnd::connect`].
    pub fn bind(kind: TransportKind, local: SocketAddr, wait: Wait, dds: DdsSpec) -> io::Result<BareEnd> {
        match kind {
            TransportKind::Udp => bare::bind(local, wait).map(BareEnd::Udp),
            TransportKind::Tcp => bare_tcp::bind(local).map(BareEnd::Tcp),
            TransportKind::Xdp => BareXdp::bind(local).map(BareEnd::Xdp).map_err(io::Error::other),
            #[cfg(feature = "dds")]
            TransportKind::Dds => BareDds::bind(local, dds, wait).map(Box::new).map(BareEnd::Dds),
            #[cfg(not(feature = "dds"))]
            TransportKind::Dds => Err(unsupported(dds)),
        }
    }

    /// The address of the reflector's end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            BareEnd::Udp(socket) | BareEnd::Tcp(socket) => socket::local_address(socket.as_fd()),
            BareEnd::Xdp(end) => Ok(end.address()),
            #[cfg(feature = "dds")]
            BareEnd::Dds(end) => Ok(end.address()),
        }
    }

    /// Sends `count` messages of `size` bytes, each after the answer to the last; their round trips in ns.
    fn ping(&mut self, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
        match self {
            BareEnd::Udp(socket) => bare::ping(socket, size, wait, count),
            BareEnd::Tcp(socket) => bare_tcp::ping(socket, size, wait, count),
            BareEnd::Xdp(end) => end.ping(size, wait, count),
            #[cfg(feature = "dds")]
            BareEnd::Dds(end) => end.ping(size, wait, count),
        }
    }

    /// The same, one every `interval`, over UDP.
    fn ping_every(&self, interval: Nanos, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
        match self {
            BareEnd::Udp(socket) => bare_schedule::ping(socket, size, wait, count, interval.0),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns messages of `size` bytes until `stop` is set.
    ///
    /// # Errors
    /// The socket or the library failed.
    pub fn reflect(&mut self, size: usize, wait: Wait, stop: &AtomicBool) -> io::Result<()> {
        match self {
            BareEnd::Udp(socket) => bare::reflect(socket, wait, stop),
            BareEnd::Tcp(socket) => bare_tcp::reflect(socket, size, wait, stop),
            BareEnd::Xdp(end) => end.reflect(wait, stop),
            #[cfg(feature = "dds")]
            BareEnd::Dds(end) => end.reflect(size, wait, stop),
        }
    }
}

#[cfg(not(feature = "dds"))]
fn unsupported(_: DdsSpec) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

fn measure(spec: &BareSpec, peer: SocketAddr) -> io::Result<Vec<u32>> {
    let (size, wait) = (spec.size_bytes as usize, spec.here.wait.into());
    let mut end = BareEnd::connect(spec.transport, peer, wait, spec.dds)?;
    end.ping(size, wait, WARMUP)?;
    match spec.interval_ns {
        Some(interval) => end.ping_every(interval, size, wait, spec.count),
        None => end.ping(size, wait, spec.count),
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
