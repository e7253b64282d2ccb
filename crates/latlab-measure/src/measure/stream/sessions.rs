//! The sessions of a stream run: one for each flow, up or down, and one for probes during the stream.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::down_receiver::DownReceiver;
use super::flow::{DownFlow, StreamFlow, UpFlow};
use super::sender::StreamSender;
use crate::clock::{Clock, Monotonic};
use crate::host::placement::AffinityGuard;
use crate::measure::ping::{ProbeSequence, SessionSender, run_slice};
use crate::measure::run::{RunContext, SessionOptions, SessionTraffic, open_placed};
use crate::measure::{CpuSource, MeasureError, Slice};
use crate::plan::{Direction, PathSpec, PingSpec, RunSpec, SenderSocketOptions, StreamRunSpec, WaitMode, defaults};
use crate::recording::EventLog;
use crate::session::{DownStream, NativeSession, UpStream};
use crate::transport::{OpenPath, PathOptions, PathTransport, TransportFamily, UdpTransport, WaitStrategy};
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::SocketTerms;

/// The time to wait for answers to probes if a stream is ended early, or its receiver no longer answers; probes without an
/// answer by then have no row. With the 1.75 s after which the stream notices the silence (`sender.rs`) this is less than
/// the 2 s within which its command must end.
const LINGER: Nanos = Nanos::from_millis(50);

/// The open path of a flow, without a session.
pub(super) enum FlowPath<F: TransportFamily> {
    Up(F::Stream),
    Down(F::Path),
}

impl<F: TransportFamily> FlowPath<F> {
    pub(super) fn path(&self) -> OpenPath {
        match self {
            FlowPath::Up(transport) => transport.path(),
            FlowPath::Down(transport) => transport.path(),
        }
    }
}

/// A flow with a session, without a log.
pub(super) enum ReadyFlow<F: TransportFamily> {
    Up(Box<StreamSender<F::Stream, Monotonic>>),
    Down(Box<DownReceiver<F::Path, Monotonic>>),
}

impl<F: TransportFamily> ReadyFlow<F> {
    /// Flow `number`, which records to `log`.
    pub(super) fn armed(self, number: u16, log: EventLog) -> Box<dyn StreamFlow> {
        match self {
            ReadyFlow::Up(stream) => Box::new(UpFlow::new(number, *stream, log)),
            ReadyFlow::Down(receiver) => Box::new(DownFlow::new(*receiver, log)),
        }
    }

    /// The gap between packets that the reflector grants; `None` if this end sends.
    pub(super) fn granted_gap(&self) -> Option<Nanos> {
        match self {
            ReadyFlow::Up(_) => None,
            ReadyFlow::Down(receiver) => Some(receiver.gap()),
        }
    }

    pub(super) fn close(self) {
        match self {
            ReadyFlow::Up(stream) => _ = stream.close(),
            ReadyFlow::Down(receiver) => _ = receiver.close(),
        }
    }
}

/// The parameters that the flows of a run have in common.
pub(super) struct FlowOptions<'a> {
    pub spec: &'a RunSpec,
    pub peer: SocketAddr,
    pub sessions: SessionOptions<'a>,
}

impl FlowOptions<'_> {
    /// Opens the path of flow `number`.
    ///
    /// # Errors
    /// The socket cannot be opened with these options, or the connection is refused.
    pub(super) fn path<F: TransportFamily>(&self, number: u16) -> Result<FlowPath<F>, MeasureError> {
        let path = self.spec.expect_path();
        let path = &PathSpec { source_port: path.source_port.map(|first| first + number), ..path.clone() };
        let (wait, stop) = (WaitStrategy::of_stream(self.spec.here.wait), self.sessions.stop);
        let options = PathOptions { path, peer: self.peer, wait, stop };
        Ok(match self.spec.stream().map(|stream| stream.direction) {
            Some(Direction::Down) => FlowPath::Down(open_placed::<F, _>(&self.spec.here, || F::open_down(&options))?),
            _ => {
                let open = || F::open_stream(&options, self.sending());
                FlowPath::Up(open_placed::<F, _>(&self.spec.here, open)?)
            }
        })
    }

    /// Opens the sessions of all flows, the first over an open path. After an error none stays open.
    ///
    /// # Errors
    /// The reflector refuses a session or a feature that the stream needs, or a path cannot be opened.
    pub(super) fn flows<F: TransportFamily>(&self, first: FlowPath<F>) -> Result<Vec<ReadyFlow<F>>, MeasureError> {
        let mut flows = vec![self.flow(first)?];
        for number in 1..self.spec.sessions() {
            match self.path(number).and_then(|path| self.flow(path)) {
                Ok(flow) => flows.push(flow),
                Err(error) => {
                    flows.into_iter().for_each(ReadyFlow::close);
                    return Err(error);
                }
            }
        }
        Ok(flows)
    }

    fn flow<F: TransportFamily>(&self, path: FlowPath<F>) -> Result<ReadyFlow<F>, MeasureError> {
        match path {
            FlowPath::Up(transport) => self.up::<F>(transport).map(|stream| ReadyFlow::Up(Box::new(stream))),
            FlowPath::Down(transport) => self.down::<F>(transport).map(Box::new).map(ReadyFlow::Down),
        }
    }

    fn up<F: TransportFamily>(
        &self,
        mut transport: F::Stream,
    ) -> Result<StreamSender<F::Stream, Monotonic>, MeasureError> {
        let sending = self.sending();
        let (is_connection, unchecked) = (F::KIND.is_connection_oriented(), !sending.checksum);
        let socket = SocketTerms { batched: !is_connection, unchecked, stamped: false };
        let session = self.sessions.open(&mut transport, SessionTraffic { socket, ..self.traffic() })?;
        if unchecked && self.peer.is_ipv6() && !session.terms().socket.unchecked {
            let _ = session.close(&mut transport, &Monotonic);
            return Err(MeasureError::ChecksumNeeded { peer: self.peer.to_string() });
        }
        let up = UpStream::with_options(session, sending);
        if is_connection {
            return Ok(StreamSender::connected(transport, Monotonic, up));
        }
        StreamSender::measured(transport, Monotonic, up).map_err(|error| MeasureError::of_stream(error, self.peer))
    }

    fn down<F: TransportFamily>(
        &self,
        mut transport: F::Path,
    ) -> Result<DownReceiver<F::Path, Monotonic>, MeasureError> {
        let traffic = self.traffic();
        let of_a_flow =
            |stream: &StreamRunSpec| stream.packets_per_second_of_a_flow(traffic.size_bytes, self.peer.is_ipv6());
        let rate = self.spec.stream().and_then(of_a_flow);
        let gap = rate.map_or(Nanos::ZERO, |pps| Nanos((1e9 / pps).round() as i64));
        let session = self.sessions.open(&mut transport, SessionTraffic { down_gap: Some(gap), ..traffic })?;
        match DownStream::new(session) {
            Some(down) => Ok(DownReceiver::new(transport, Monotonic, down)),
            None => Err(MeasureError::NoDownStream { peer: self.peer.to_string() }),
        }
    }

    fn sending(&self) -> SenderSocketOptions {
        self.spec.stream().map_or(SenderSocketOptions::PLAIN, |stream| stream.sending)
    }

    fn traffic(&self) -> SessionTraffic {
        let size_bytes = self.spec.stream().and_then(|stream| stream.size.known());
        SessionTraffic::packets(size_bytes.unwrap_or(defaults::SIZE_MIN_BYTES))
    }
}

/// An open session for probes.
pub(super) struct ProbeSession {
    spec: PingSpec,
    transport: UdpTransport,
    session: Box<NativeSession>,
    /// The CPUs of the thread that opened it, before the sender is pinned.
    affinity: AffinityGuard,
}

/// Probes during a stream, ready to be sent in a session, a socket and a thread of their own.
pub(super) struct ConcurrentProbes {
    open: ProbeSession,
    sequence: ProbeSequence,
    log: EventLog,
    listened_until: Option<Stamp<SenderClock>>,
}

impl ProbeSession {
    /// Opens a session for the probes of `spec`, which is idle during a rate search and between slices. It always waits in
    /// the kernel: spinning would take a CPU from the measured stream.
    pub(super) fn open(spec: &PingSpec, context: &RunContext<'_>) -> Result<ProbeSession, MeasureError> {
        let waiting = WaitStrategy::new(WaitMode::Block, spec.schedule, spec.timeout_ns);
        let mut transport = UdpTransport::open(&spec.path, context.peer().probe_address(), waiting)?;
        let options = SessionOptions { lifetime: context.lifetime.resting(), ..context.sessions() };
        let session = Box::new(options.open(&mut transport, SessionTraffic::probes(spec))?);
        Ok(ProbeSession { spec: spec.clone(), transport, session, affinity: AffinityGuard::save(false) })
    }

    /// Makes the probes ready; they record to `log`.
    pub(super) fn armed(self, log: EventLog) -> ConcurrentProbes {
        let sequence = ProbeSequence::lingering(&self.spec, LINGER);
        ConcurrentProbes { open: self, sequence, log, listened_until: None }
    }

    pub(super) fn close(mut self) {
        // The reflector's report does not concern the stream.
        let _ = self.session.close(&mut self.transport, &Monotonic);
    }
}

impl ConcurrentProbes {
    /// Sends the probes of `slice` and receives their answers on a thread of `scope`.
    pub(super) fn spawn<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        slice: Slice,
        stop: &'scope AtomicBool,
    ) -> io::Result<ScopedJoinHandle<'scope, Result<(), MeasureError>>> {
        Builder::new().name("probes".into()).spawn_scoped(scope, move || self.run(&slice, stop))
    }

    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let ConcurrentProbes {
            open: ProbeSession { spec, transport, session, affinity },
            sequence,
            log,
            listened_until,
        } = self;
        affinity.restore();
        let mut sender = SessionSender::new(transport, &Monotonic, &mut **session, log, CpuSource::Running);
        let ran = run_slice(&mut sender, sequence, slice, spec, stop);
        *listened_until = Some(Monotonic.now());
        ran.map_err(|source| MeasureError::Socket { peer: transport.peer_address().to_string(), source })
    }

    /// The end of the last slice: answers were received until then.
    pub(super) fn listened_until(&self) -> Option<Stamp<SenderClock>> {
        self.listened_until
    }

    /// Closes the session, unless the peer `is_gone`, and returns the log.
    pub(super) fn close(self, is_gone: bool) -> EventLog {
        if !is_gone {
            self.open.close();
        }
        self.log
    }
}
