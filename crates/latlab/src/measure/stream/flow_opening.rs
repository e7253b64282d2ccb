//! How the flows of a stream are opened, up or down: a path, a session, and the loop that takes both.

use std::net::SocketAddr;

use super::down_receiver::DownReceiver;
use super::flow::{DownFlow, StreamFlow, UpFlow};
use super::sender::StreamSender;
use crate::clock::Monotonic;
use crate::measure::MeasureError;
use crate::measure::session_opening::{SessionOptions, SessionTraffic};
use crate::plan::{Direction, PathSpec, RunSpec, SenderSocketOptions, StreamRunSpec, defaults};
use crate::recording::EventLog;
use crate::session::{DownStream, UpStream};
use crate::transport::{OpenPath, PathOptions, PathTransport, TransportFamily, WaitStrategy};
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// The open path of a flow, without a session.
pub(crate) enum FlowPath<F: TransportFamily> {
    /// This end sends.
    Up(F::Stream),
    /// The other end sends.
    Down(F::Path),
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

/// A flow with its session, without a log.
pub(crate) enum ReadyFlow<F: TransportFamily> {
    Up(Box<StreamSender<F::Stream, Monotonic>>),
    Down(Box<DownReceiver<F::Path, Monotonic>>),
}

impl<F: TransportFamily> ReadyFlow<F> {
    /// Flow `number`, which writes to `log`.
    pub(crate) fn armed(self, number: u16, log: EventLog) -> Box<dyn StreamFlow> {
        match self {
            ReadyFlow::Up(stream) => Box::new(UpFlow::new(number, *stream, log)),
            ReadyFlow::Down(receiver) => Box::new(DownFlow::new(*receiver, log)),
        }
    }

    /// The gap between packets that the reflector grants; `None` if this end sends.
    pub(crate) fn granted_gap(&self) -> Option<Nanos> {
        match self {
            ReadyFlow::Up(_) => None,
            ReadyFlow::Down(receiver) => Some(receiver.gap()),
        }
    }

    /// Closes the session.
    pub(crate) fn close(self) {
        match self {
            ReadyFlow::Up(stream) => _ = stream.close(),
            ReadyFlow::Down(receiver) => _ = receiver.close(),
        }
    }
}

/// What the flows of one run are opened with.
pub(crate) struct FlowOptions<'a> {
    pub(crate) spec: &'a RunSpec,
    pub(crate) peer: SocketAddr,
    pub(crate) sessions: SessionOptions<'a>,
}

impl FlowOptions<'_> {
    /// Opens the path of flow `number`.
    ///
    /// # Errors
    /// The socket cannot be opened as asked, or the connection is refused.
    pub(crate) fn path<F: TransportFamily>(&self, number: u16) -> Result<FlowPath<F>, MeasureError> {
        let path = self.spec.expect_path();
        let path = &PathSpec { source_port: path.source_port.map(|first| first + number), ..path.clone() };
        let (wait, stop) = (WaitStrategy::of_stream(self.spec.here.wait), self.sessions.stop);
        let options = PathOptions { path, peer: self.peer, wait, stop };
        Ok(match self.spec.stream().map(|stream| stream.direction) {
            Some(Direction::Down) => FlowPath::Down(F::open(&options)?),
            _ => FlowPath::Up(F::open_stream(&options, self.sending())?),
        })
    }

    /// Opens every flow, the first over the path that is open already; if one cannot be opened, none is left open.
    ///
    /// # Errors
    /// The reflector refuses a session or what the stream needs of it, or a path cannot be opened.
    pub(crate) fn flows<F: TransportFamily>(&self, first: FlowPath<F>) -> Result<Vec<ReadyFlow<F>>, MeasureError> {
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
        let stream = StreamTerms { batched: !is_connection, unchecked };
        let session = self.sessions.open(&mut transport, SessionTraffic { stream, ..self.traffic() })?;
        if unchecked && self.peer.is_ipv6() && !session.terms().stream.unchecked {
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
