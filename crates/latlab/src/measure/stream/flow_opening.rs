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
use crate::measure::path::OpenPath;
use crate::measure::run::SessionLifetime;
use crate::measure::{MeasureError, Peer};
use crate::plan::{
    Direction, PathSpec, PingSpec, RunSpec, Schedule, SenderSocketOptions, TransportKind, WaitMode, defaults,
};
use crate::recording::EventLog;
use crate::session::{
    self, DownStream, NativeSession, PreSharedKey, SessionError, SessionParams, UpStream, random_bytes,
};
use crate::transport;
use crate::transport::tcp::TcpTransport;
use crate::transport::udp::{UdpTransport, WaitStrategy};
use crate::transport::udp_stream::UdpStream;
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// The path of a flow.
pub(crate) enum FlowPath {
    /// This end sends.
    Up(UdpStream),
    /// This end sends over a connection.
    Connected(TcpTransport),
    /// The other end does.
    Down(UdpTransport),
}

/// A flow with its session.
pub(crate) enum ReadyFlow {
    Up(StreamSender<UdpStream, Monotonic>),
    Connected(StreamSender<TcpTransport, Monotonic>),
    Down(Box<DownReceiver<UdpTransport, Monotonic>>),
}

/// A flow that tells what it sees.
pub(crate) enum AnyFlow {
    Up(Flow<UdpStream, Monotonic>),
    Connected(Flow<TcpTransport, Monotonic>),
    Down(Box<DownFlow>),
}

/// What a flow leaves behind.
pub(crate) struct FlowEnd {
    /// What the socket reported of earlier datagrams, where that is known.
    pub(crate) errors: BTreeMap<String, u64>,
    /// What the kernel tells of its connection, where there is one that is not broken.
    pub(crate) connection: Option<ConnectionFacts>,
    pub(crate) log: EventLog,
}

impl FlowPath {
    /// As the manifest tells of it.
    pub(crate) fn told(&self) -> OpenPath {
        match self {
            FlowPath::Up(path) => path.into(),
            FlowPath::Connected(path) => path.into(),
            FlowPath::Down(path) => path.into(),
        }
    }
}

impl ReadyFlow {
    /// Flow `number`, which tells `log` what it sees.
    pub(crate) fn armed(self, number: u16, log: EventLog) -> AnyFlow {
        match self {
            ReadyFlow::Up(stream) => AnyFlow::Up(Flow::new(number, stream, log)),
            ReadyFlow::Connected(stream) => AnyFlow::Connected(Flow::new(number, stream, log)),
            ReadyFlow::Down(down) => AnyFlow::Down(Box::new(DownFlow::new(*down, log))),
        }
    }

    /// From one packet to the next, where the other end sends them.
    pub(crate) fn granted_gap(&self) -> Option<Nanos> {
        match self {
            ReadyFlow::Down(down) => Some(down.gap()),
            ReadyFlow::Up(_) | ReadyFlow::Connected(_) => None,
        }
    }

    /// SessionSender the session.
    pub(crate) fn close(self) {
        match self {
            ReadyFlow::Up(stream) => _ = stream.close(),
            ReadyFlow::Connected(stream) => _ = stream.close(),
            ReadyFlow::Down(down) => _ = down.close(),
        }
    }
}

impl AnyFlow {
    /// Measures a slice.
    pub(crate) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        match self {
            AnyFlow::Up(flow) => flow.run(slice, stop),
            AnyFlow::Connected(flow) => flow.run(slice, stop),
            AnyFlow::Down(flow) => flow.run(slice, stop),
        }
    }

    /// Sends nothing for `span`, and sees to it that the receiver is still there.
    pub(crate) fn rest(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), StreamError> {
        match self {
            AnyFlow::Up(flow) => flow.rest(span, awaiting, stop),
            AnyFlow::Connected(flow) => flow.rest(span, awaiting, stop),
            // Its rate cannot be searched for: it never rests.
            AnyFlow::Down(_) => Ok(()),
        }
    }

    /// Whether both ends have told of all packets of the last slice.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            AnyFlow::Up(flow) => flow.is_settled(),
            AnyFlow::Connected(flow) => flow.is_settled(),
            AnyFlow::Down(flow) => flow.is_settled(),
        }
    }

    /// What the last slice came to.
    pub(crate) fn stretch(&self) -> FlowCounts {
        match self {
            AnyFlow::Up(flow) => flow.stretch(),
            AnyFlow::Connected(flow) => flow.stretch(),
            AnyFlow::Down(flow) => flow.stretch(),
        }
    }

    /// Whether each drop at the receiver's socket may be many packets.
    pub(crate) fn drops_are_merged(&self) -> bool {
        match self {
            AnyFlow::Up(flow) => flow.drops_are_merged(),
            AnyFlow::Connected(_) | AnyFlow::Down(_) => false,
        }
    }

    /// SessionSender the session, unless the other end `is_gone`.
    pub(crate) fn close(self, is_gone: bool) -> FlowEnd {
        let of_datagrams =
            |errors: Option<_>, log| FlowEnd { errors: errors.unwrap_or_default(), connection: None, log };
        match self {
            AnyFlow::Up(flow) => {
                let (path, log) = flow.close(is_gone);
                of_datagrams(path.map(|path| path.socket_errors()), log)
            }
            AnyFlow::Connected(flow) => {
                let (path, log) = flow.close(is_gone);
                FlowEnd { errors: BTreeMap::new(), connection: path.and_then(|path| path.facts()), log }
            }
            AnyFlow::Down(flow) => {
                let (path, log) = flow.close(is_gone);
                of_datagrams(path.map(|path| path.socket_errors()), log)
            }
        }
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
    pub(crate) fn path(&self, spec: &RunSpec, number: u16) -> Result<FlowPath, MeasureError> {
        let waiting = match spec.here.wait {
            WaitMode::Spin => WaitStrategy::Spin,
            wait => WaitStrategy::Until { busy_poll: wait == WaitMode::BusyPoll },
        };
        let sending = spec.stream().map_or(SenderSocketOptions::PLAIN, |stream| stream.sending);
        let first = spec.expect_path().source_port;
        let way = PathSpec { source_port: first.map(|first| first + number), ..spec.expect_path().clone() };
        Ok(match spec.stream().map(|stream| stream.direction) {
            _ if spec.transport() == Some(TransportKind::Tcp) => {
                FlowPath::Connected(TcpTransport::open(&way, self.peer, waiting, self.stop)?.for_a_stream()?)
            }
            Some(Direction::Down) => FlowPath::Down(UdpTransport::open(&way, self.peer, waiting)?),
            _ => FlowPath::Up(UdpStream::open(&way, self.peer, waiting, sending)?),
        })
    }

    /// A session for each flow, the first over the path that is open already; where one cannot be had, none is.
    pub(crate) fn streams(&self, spec: &RunSpec, first: FlowPath) -> Result<Vec<ReadyFlow>, MeasureError> {
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

    fn flow(&self, spec: &RunSpec, path: FlowPath) -> Result<ReadyFlow, MeasureError> {
        match path {
            FlowPath::Up(path) => self.up(spec, path).map(ReadyFlow::Up),
            FlowPath::Connected(path) => self.connected(spec, path).map(ReadyFlow::Connected),
            FlowPath::Down(path) => self.down(spec, path).map(Box::new).map(ReadyFlow::Down),
        }
    }

    fn up(&self, spec: &RunSpec, mut path: UdpStream) -> Result<StreamSender<UdpStream, Monotonic>, MeasureError> {
        let unchecked = !path.sending().checksum;
        let wishes = self.wishes(spec)?.streaming(StreamTerms { batched: true, unchecked });
        let opened = self.session(&mut path, &wishes, UdpStream::socket_errors)?;
        if unchecked && self.peer.is_ipv6() && !opened.terms().stream.unchecked {
            let _ = opened.close(&mut path, &Monotonic);
            return Err(MeasureError::ChecksumNeeded { peer: self.peer.to_string() });
        }
        let up = UpStream::sent_by(opened, path.sending());
        StreamSender::measured(path, Monotonic, up).map_err(|error| MeasureError::of_stream(error, self.peer))
    }

    fn connected(
        &self,
        spec: &RunSpec,
        mut path: TcpTransport,
    ) -> Result<StreamSender<TcpTransport, Monotonic>, MeasureError> {
        let wishes = self.wishes(spec)?;
        let opened = session::open(&mut path, &Monotonic, self.key, &wishes, self.stop);
        let opened = opened.map_err(SessionError::over_a_connection)?;
        Ok(StreamSender::connected(path, Monotonic, UpStream::new(opened)))
    }

    fn down(
        &self,
        spec: &RunSpec,
        mut path: UdpTransport,
    ) -> Result<DownReceiver<UdpTransport, Monotonic>, MeasureError> {
        let size_bytes = size_of(spec);
        let pace =
            spec.stream().and_then(|stream| stream.packets_per_second_of_a_flow(size_bytes, self.peer.is_ipv6()));
        let gap = pace.map_or(Nanos::ZERO, |pps| Nanos((1e9 / pps).round() as i64));
        let wishes = self.wishes(spec)?.going_down(gap);
        let opened = self.session(&mut path, &wishes, UdpTransport::socket_errors)?;
        match DownStream::new(opened) {
            Some(down) => Ok(DownReceiver::new(path, Monotonic, down)),
            None => Err(MeasureError::NoDownStream { peer: self.peer.to_string() }),
        }
    }

    fn wishes(&self, spec: &RunSpec) -> Result<SessionParams, MeasureError> {
        let (peer, second) = (self.peer.to_string(), Nanos::from_secs(1));
        let mut wishes =
            SessionParams::new(peer, random_bytes()?, size_of(spec), Schedule::Closed, self.lasting.whole, second);
        if let Some(turns) = self.lasting.turns {
            wishes.terms.idle = wishes.terms.idle.max(turns);
        }
        Ok(wishes)
    }

    /// The transport counts what ICMP said about earlier datagrams; here it is the reason.
    fn session<T: transport::Transport>(
        &self,
        path: &mut T,
        wishes: &SessionParams,
        errors: fn(&T) -> BTreeMap<String, u64>,
    ) -> Result<NativeSession, MeasureError> {
        let opened = session::open(path, &Monotonic, self.key, wishes, self.stop);
        Ok(opened.map_err(|error| error.told_by(errors(path).into_keys().next()))?)
    }
}

fn size_of(spec: &RunSpec) -> u32 {
    spec.stream().and_then(|stream| stream.size.known()).unwrap_or(defaults::SIZE_MIN_BYTES)
}
