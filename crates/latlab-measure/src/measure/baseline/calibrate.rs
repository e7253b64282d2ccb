//! Measures the bare loop with given pins, for comparison with latlab's own figures.

use std::io;
use std::net::SocketAddr;
use std::thread;

use super::bare;
use crate::clock;
use crate::facts::{BareConditions, BareLoop};
use crate::host::{HostRoot, facts, placement};
use crate::measure::MeasureError;
use crate::metric::Metric;
use crate::plan::EndSpec;
use crate::recording::started_at;
use crate::sample::Sample;
use crate::session::{ReflectorProcess, ReflectorRequest};
use crate::stats::{DescribeOptions, describe};

/// Round trips of the warm-up.
const WARMUP: usize = 1_000;
/// 500 lie beyond the p99, and they take a few seconds.
const ROUND_TRIPS: usize = 50_000;

/// A run of the bare loop on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareSpec {
    /// Payload of each message in bytes.
    pub size_bytes: u32,
    pub here: EndSpec,
    pub peer: EndSpec,
}

/// Measures the bare loop: the floor of runs with the same placement.
///
/// # Errors
/// The reflector or the sender could not be started or placed, or the socket failed.
pub fn calibrate(spec: &BareSpec) -> Result<BareLoop, MeasureError> {
    let process = ReflectorProcess::start(&ReflectorRequest::bare(spec.peer))?;
    let (peer, spec) = (process.address(), *spec);
    let measuring = thread::Builder::new().name("measure".into()).spawn(move || {
        placement::place(&spec.here)?;
        measure(&spec, peer).map_err(|source| MeasureError::Socket { peer: peer.to_string(), source })
    });
    let measured: Result<Vec<u32>, MeasureError> =
        measuring.map_err(MeasureError::Thread)?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(figures(&measured?, &spec))
}

fn measure(spec: &BareSpec, peer: SocketAddr) -> io::Result<Vec<u32>> {
    let (size, wait) = (spec.size_bytes as usize, spec.here.wait.into());
    let socket = bare::connect(peer, wait)?;
    bare::ping(&socket, size, wait, WARMUP)?;
    bare::ping(&socket, size, wait, ROUND_TRIPS)
}

fn figures(round_trips_ns: &[u32], spec: &BareSpec) -> BareLoop {
    let sample = Sample::new(Metric::RoundTripDelay, round_trips_ns.iter().map(|span| i64::from(*span)).collect());
    let options = DescribeOptions { quantiles: vec![0.5, 0.99], confidence: 0.95, intervals: false };
    let described = describe(&sample, &options);
    let quantile = |at: usize| described.quantiles.get(at).and_then(|quantile| quantile.value).unwrap_or(f64::NAN);
    BareLoop {
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
    }
}
