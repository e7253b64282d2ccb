//! How the flows of a stream are opened, up or down: a path, a session, and what is armed with both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use super::concurrent_probes::ProbeSession;
use super::down_receiver::DownReceiver;
use super::flow::{DownFlow, Flow, FlowCounts, FlowSlice};
use super::sender::{Awaiting, StreamError, StreamSender};
use crate::clock::Monotonic;
use crate::facts::ConnectionFacts;
use crate::measure::run::SessionLifetime;
use crate::measure::{MeasureError, Peer};
use crate::plan::{Direction, PathSpec, PingSpec, RunSpec, Schedule, SenderSocketOptions, defaults};
use crate::recording::EventLog;
use crate::session::{self, DownStream, PreSharedKey, SessionParams, UpStream, random_bytes};
use crate::transport::{OpenPath, PathOptions, PathTransport, Transport, TransportFamily, WaitStrategy};
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// The open path of a flow.
pub(crate) enum FlowPath<F: TransportFamily> {
    /// This end sends.
    Up(F::Stream),
    /// The other end sends.
    Down(F::Path),
}

/// A flow with its session.
pub(crate) enum ReadyFlow<F: TransportFamily> {
    Up(StreamSender<F::Stream, Monotonic>),
    Down(Box<DownReceiver<F::Path, Monotonic>>),
}

/// A flow that tells what it sees.
pub(crate) enum AnyFlow<F: TransportFamily> {
    Up(Flow<F::Stream, Monotonic>),
    Down(Box<DownFlow<F::Path>>),
}

/// What a flow leaves behind.
pub(crate) struct FlowEnd {
    /// What the socket reported of earlier datagrams, where that is known.
    pub(crate) errors: BTreeMap<String, u64>,
    /// What the kernel tells of its connection, where there is one that is not broken.
    pub(crate) connection: Option<ConnectionFacts>,
    pub(crate) log: EventLog,
}

impl<F: TransportFamily> FlowPath<F> {
    /// Its two ends and its limits.
    pub(crate) fn path(&self) -> OpenPath {
        match self {
            FlowPath::Up(transport) => transport.path(),
            FlowPath::Down(transport) => transport.path(),
        }
    }
}

impl<F: TransportFamily> ReadyFlow<F> {
    /// Flow `number`, which tells `log` what it sees.
    pub(crate) fn armed(self, number: u16, log: EventLog) -> AnyFlow<F> {
        match self {
            ReadyFlow::Up(stream) => AnyFlow::Up(Flow::new(number, stream, log)),
            ReadyFlow::Down(down) => AnyFlow::Down(Box::new(DownFlow::new(*down, log))),
        }
    }

    /// From one packet to the next, where the other end sends them.
    pub(crate) fn granted_gap(&self) -> Option<Nanos> {
        match self {
            ReadyFlow::Down(down) => Some(down.gap()),
            ReadyFlow::Up(_) => None,
        }
    }

    /// Ends the session.
    pub(crate) fn close(self) {
        match self {
            ReadyFlow::Up(stream) => _ = stream.close(),
            ReadyFlow::Down(down) => _ = down.close(),
        }
    }
}

impl<F: TransportFamily> AnyFlow<F> {
    /// Measures a slice.
    pub(crate) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        match self {
            AnyFlow::Up(flow) => flow.run(slice, stop),
            AnyFlow::Down(flow) => flow.run(slice, stop),
        }
    }

    /// Sends nothing for `span`, and sees to it that the receiver is still there.
    pub(crate) fn rest(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), StreamError> {
        match self {
            AnyFlow::Up(flow) => flow.rest(span, awaiting, stop),
            // Its rate cannot be searched for: it never rests.
            AnyFlow::Down(_) => Ok(()),
        }
    }

    /// Whether both ends have told of all packets of the last slice.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            AnyFlow::Up(flow) => flow.is_settled(),
            AnyFlow::Down(flow) => flow.is_settled(),
        }
    }

    /// What the last slice came to.
    pub(crate) fn stretch(&self) -> FlowCounts {
        match self {
            AnyFlow::Up(flow) => flow.stretch(),
            AnyFlow::Down(flow) => flow.stretch(),
        }
    }

    /// Whether each drop at the receiver's socket may be many packets.
    pub(crate) fn drops_are_merged(&self) -> bool {
        match self {
            AnyFlow::Up(flow) => flow.drops_are_merged(),
            AnyFlow::Down(_) => false,
        }
    }

    /// Ends the session, unless the other end `is_gone`.
    pub(crate) fn close(self, is_gone: bool) -> FlowEnd {
        let (report, log) = match self {
            AnyFlow::Up(flow) => {
                let (transport, log) = flow.close(is_gone);
                (transport.map(|transport| transport.report()), log)
            }
            AnyFlow::Down(flow) => {
                let (transport, log) = flow.close(is_gone);
                (transport.map(|transport| transport.report()), log)
            }
        };
        let report = report.unwrap_or_default();
        FlowEnd { errors: report.socket_errors, connection: report.connection, log }
    }
}

/// What opening a flow needs beside the run's specification.
pub(crate) struct FlowOptions<'a> {
    pub(crate) peer: SocketAddr,
    pub(crate) key: Option<&'a PreSharedKey>,
    pub(crate) lasting: SessionLifetime,
    pub(crate) stop: &'a AtomicBool,
}

impl FlowOptions<'_> {
    /// The path of flow `number`.
    pub(crate) fn path<F: TransportFamily>(&self, spec: &RunSpec, number: u16) -> Result<FlowPath<F>, MeasureError> {
        let first = spec.expect_path().source_port;
        let path = &PathSpec { source_port: first.map(|first| first + number), ..spec.expect_path().clone() };
        let options =
            PathOptions { path, peer: self.peer, wait: WaitStrategy::of_stream(spec.here.wait), stop: self.stop };
        Ok(match spec.stream().map(|stream| stream.direction) {
            Some(Direction::Down) => FlowPath::Down(F::open(&options)?),
            _ => FlowPath::Up(F::open_stream(&options, sending_of(spec))?),
        })
    }

    /// A session for each flow, the first over the path that is open already; where one cannot be had, none is.
    pub(crate) fn streams<F: TransportFamily>(
        &self,
        spec: &RunSpec,
        first: FlowPath<F>,
    ) -> Result<Vec<ReadyFlow<F>>, MeasureError> {
        let mut flows = vec![self.flow(spec, first)?];
        for number in 1..spec.sessions() {
            match self.path(spec, number).and_then(|path| self.flow(spec, path)) {
                Ok(flow) => flows.push(flow),
                Err(error) => {
                    flows.into_iter().for_each(ReadyFlow::close);
                    return Err(error);
                }
            }
        }
        Ok(flows)
    }

    /// A session for `probes` beside them.
    pub(crate) fn probes(&self, probes: &PingSpec, peer: &Peer) -> Result<ProbeSession, MeasureError> {
        ProbeSession::open(probes, peer, self.key, (self.lasting.whole, self.lasting.turns), self.stop)
    }

    fn flow<F: TransportFamily>(&self, spec: &RunSpec, path: FlowPath<F>) -> Result<ReadyFlow<F>, MeasureError> {
        match path {
            FlowPath::Up(transport) => self.up::<F>(spec, transport).map(ReadyFlow::Up),
            FlowPath::Down(transport) => self.down::<F>(spec, transport).map(Box::new).map(ReadyFlow::Down),
        }
    }

    fn up<F: TransportFamily>(
        &self,
        spec: &RunSpec,
        mut transport: F::Stream,
    ) -> Result<StreamSender<F::Stream, Monotonic>, MeasureError> {
        let sending = sending_of(spec);
        let (is_connection, unchecked) = (F::KIND.is_connection_oriented(), !sending.checksum);
        let params = self.params(spec)?.with_stream(StreamTerms { batched: !is_connection, unchecked });
        let opened = session::open(&mut transport, &Monotonic, self.key, &params, self.stop)?;
        if unchecked && self.peer.is_ipv6() && !opened.terms().stream.unchecked {
            let _ = opened.close(&mut transport, &Monotonic);
            return Err(MeasureError::ChecksumNeeded { peer: self.peer.to_string() });
        }
        let up = UpStream::with_options(opened, sending);
        if is_connection {
            return Ok(StreamSender::connected(transport, Monotonic, up));
        }
        StreamSender::measured(transport, Monotonic, up).map_err(|error| MeasureError::of_stream(error, self.peer))
    }

    fn down<F: TransportFamily>(
        &self,
        spec: &RunSpec,
        mut transport: F::Path,
    ) -> Result<DownReceiver<F::Path, Monotonic>, MeasureError> {
        let size_bytes = size_of(spec);
        let pace =
            spec.stream().and_then(|stream| stream.packets_per_second_of_a_flow(size_bytes, self.peer.is_ipv6()));
        let gap = pace.map_or(Nanos::ZERO, |pps| Nanos((1e9 / pps).round() as i64));
        let params = self.params(spec)?.with_down_stream(gap);
        let opened = session::open(&mut transport, &Monotonic, self.key, &params, self.stop)?;
        match DownStream::new(opened) {
            Some(down) => Ok(DownReceiver::new(transport, Monotonic, down)),
            None => Err(MeasureError::NoDownStream { peer: self.peer.to_string() }),
        }
    }

    fn params(&self, spec: &RunSpec) -> Result<SessionParams, MeasureError> {
        let (peer, second) = (self.peer.to_string(), Nanos::from_secs(1));
        let mut params =
            SessionParams::new(peer, random_bytes()?, size_of(spec), Schedule::Closed, self.lasting.whole, second);
        if let Some(turns) = self.lasting.turns {
            params.terms.idle = params.terms.idle.max(turns);
        }
        Ok(params)
    }
}

fn sending_of(spec: &RunSpec) -> SenderSocketOptions {
    spec.stream().map_or(SenderSocketOptions::PLAIN, |stream| stream.sending)
}

fn size_of(spec: &RunSpec) -> u32 {
    spec.stream().and_then(|stream| stream.size.known()).unwrap_or(defaults::SIZE_MIN_BYTES)
}
