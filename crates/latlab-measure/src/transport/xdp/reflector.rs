//! The reflector's end below the network stack: an AF_XDP socket at the interface that has its address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use latlab_sys::sleep;
use latlab_sys::xdp::XdpSocket;

use super::headers::{Datagram, Flow, Hardware, HeaderTemplate};
use super::program::Match;
use super::queue::XdpQueue;
use super::route;
use crate::facts::XdpFacts;
use crate::plan::{WaitMode, defaults};
use crate::transport::error::TransportError;
use crate::transport::interface::{BatchBuffer, ReflectorSocket, SocketReport};
use crate::transport::wait::WaitStrategy;
use crate::units::Nanos;
use crate::wire::SocketTerms;

/// Frames for a tenth of a second of 5,000 packets a second.
const FIRST_FRAMES: u32 = 512;

/// A stream pauses as with a receive buffer that holds so many bytes, a kilobyte of bookkeeping for each packet included: the
/// ring has 1,024 entries.
const STREAM_BYTES: u32 = 1 << 20;
/// Senders whose headers are kept: as many as one batch can have.
const SENDERS_MAX: usize = 64;

/// A sender, and the headers of answers to it.
#[derive(Debug)]
struct Sender {
    flow: Flow,
    headers: HeaderTemplate,
    /// The number of the last datagram.
    last: u64,
}

/// The senders of the last datagrams, of which the one that was silent for longest is forgotten first.
#[derive(Debug)]
struct Senders {
    known: Vec<Sender>,
    newest: usize,
    datagrams: u64,
    /// Is never forgotten: a down-stream goes to it, also while it is silent.
    kept: Option<SocketAddr>,
}

impl Senders {
    fn new() -> Senders {
        Senders { known: Vec::with_capacity(SENDERS_MAX), newest: 0, datagrams: 0, kept: None }
    }

    /// Notes a datagram that is answered along `flow`.
    #[inline]
    fn note(&mut self, flow: &Flow) {
        self.datagrams += 1;
        if self.known.get(self.newest).is_none_or(|newest| newest.flow != *flow) {
            self.find(flow);
        }
        self.known[self.newest].last = self.datagrams;
    }

    #[cold]
    fn find(&mut self, flow: &Flow) {
        let is_full = self.known.len() == SENDERS_MAX;
        let place = self.known.iter().position(|known| known.flow.peer == flow.peer);
        let others = self.known.iter().enumerate().filter(|(_, known)| Some(known.flow.peer) != self.kept);
        let silent = others.min_by_key(|(_, known)| known.last).map(|(place, _)| place).filter(|_| is_full);
        let sender = || Sender { flow: *flow, headers: HeaderTemplate::new(flow, 0), last: 0 };
        match place.or(silent) {
            Some(place) => {
                if self.known[place].flow != *flow {
                    self.known[place] = sender();
                }
                self.newest = place;
            }
            None => {
                self.newest = self.known.len();
                self.known.push(sender());
            }
        }
    }

    #[inline]
    fn headers(&self, peer: SocketAddr) -> Option<&HeaderTemplate> {
        let is_its = |known: &&Sender| known.flow.peer == peer;
        let newest = self.known.get(self.newest).filter(is_its);
        newest.or_else(|| self.known.iter().find(is_its)).map(|known| &known.headers)
    }
}

/// Datagrams to one address and port, from any sender, that pass the network stack by.
#[derive(Debug)]
pub struct XdpReflector {
    queue: XdpQueue,
    wait: WaitStrategy,
    local: SocketAddr,
    local_hardware: Hardware,
    senders: Senders,
    /// Reserves address and port, so that the kernel gives them to no other socket.
    _reserved: UdpSocket,
}

impl XdpReflector {
    /// Answers at `local`; port 0: the kernel's choice.
    ///
    /// # Errors
    /// The address is not that of one interface, the port is in use, a permission is missing, or the queue does not exist or
    /// is in use.
    pub fn bind(local: SocketAddr, wait: WaitMode, queue: u32) -> Result<XdpReflector, TransportError> {
        let bind_error = |source| TransportError::Bind { local, source };
        route::refuse_ipv4_loopback(local.ip())?;
        let reserved = UdpSocket::bind(local).map_err(bind_error)?;
        let local = reserved.local_addr().map_err(bind_error)?;
        let interface = route::holding(local.ip()).map_err(bind_error)?;
        let wait = WaitStrategy::of_stream(wait);
        let steered = Match { to: local, from: None };
        let queue = XdpQueue::open(&interface, queue, &steered, wait.busy_polls(), FIRST_FRAMES)?;
        let local_hardware = interface.hardware;
        Ok(XdpReflector { queue, wait, local, local_hardware, senders: Senders::new(), _reserved: reserved })
    }

    /// The address, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The socket, for the bare loop.
    pub const fn socket_mut(&mut self) -> &mut XdpSocket {
        self.queue.socket_mut()
    }

    pub const fn facts(&self) -> &XdpFacts {
        self.queue.facts()
    }
}

impl ReflectorSocket for XdpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        self.receive_within(buffer, defaults::NAP)
    }

    #[inline]
    fn receive_within(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        let XdpReflector { queue, wait, senders, local, local_hardware, .. } = self;
        queue.receive(*wait, max_wait, |datagram| {
            let bytes = datagram.payload.len();
            buffer.get_mut(..bytes)?.copy_from_slice(datagram.payload);
            senders.note(&datagram.answered_from(*local, *local_hardware));
            Some((bytes, datagram.from))
        })
    }

    #[inline]
    fn receive_batch(&mut self, buffer: &mut BatchBuffer, may_pause: bool) -> io::Result<usize> {
        let XdpReflector { queue, wait, senders, local, local_hardware, .. } = self;
        if buffer.should_pause(STREAM_BYTES) && *wait != WaitStrategy::Spin && may_pause {
            // A signal may end the pause early.
            let _ = sleep::clock_nanosleep_for(defaults::STREAM_RECEIVE_PAUSE.0);
        }
        buffer.fill_with(|batch, count| {
            let put = |datagram: &Datagram<'_>| {
                senders.note(&datagram.answered_from(*local, *local_hardware));
                batch.put(datagram.payload, datagram.from).then_some(())
            };
            // The first is waited for.
            let taken = if count == 0 { queue.receive(*wait, defaults::NAP, put)? } else { queue.take(put) };
            Ok(taken.is_some())
        })
    }

    /// Answers go to the host or router from which the last datagram of that sender came.
    #[inline]
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let XdpReflector { queue, senders, .. } = self;
        let headers = senders.headers(to).ok_or(io::ErrorKind::NotConnected)?;
        queue.send(|frame| headers.write(frame, datagram))
    }

    fn dedicate_to(&mut self, peer: SocketAddr) {
        self.senders.kept = Some(peer);
    }

    /// A burst is longer than what a reflector of probes has frames for.
    fn configure(&mut self, terms: SocketTerms) {
        if terms.batched {
            self.queue.socket_mut().give_all();
        }
    }

    /// The kernel merges no packets here, and those without a checksum are accepted over IPv4.
    fn supported_terms(&self) -> SocketTerms {
        SocketTerms { batched: true, unchecked: false, stamped: false }
    }

    fn report(&self) -> SocketReport {
        SocketReport { drops: self.queue.drops(), ..SocketReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16, hardware: u8) -> Flow {
        let at = |port| SocketAddr::from(([10, 98, 62, 1], port));
        Flow { local: at(9862), peer: at(port), local_hardware: [2; 6], peer_hardware: [hardware; 6] }
    }

    #[test]
    fn answers_go_to_each_of_the_last_senders() {
        let mut senders = Senders::new();
        let hardware = |senders: &Senders, port: u16| {
            let mut frame = [0; 128];
            let headers = senders.headers(flow(port, 0).peer)?;
            headers.write(&mut frame, b"answer");
            Some(frame[0])
        };
        for (port, router) in [(1, 10), (2, 20), (1, 10), (2, 21)] {
            senders.note(&flow(port, router));
        }
        let found = [1, 2, 3].map(|port| hardware(&senders, port));
        assert_eq!(found, [Some(10), Some(21), None], "the newest way of each");
        let allocated = senders.known.capacity();
        for port in 3..=SENDERS_MAX as u16 {
            senders.note(&flow(port, 30));
        }
        // A batch of two known senders and a new one: the one that was silent for longest is forgotten.
        for port in [2, 1, 1_000] {
            senders.note(&flow(port, 40));
        }
        let found = [2, 1, 1_000, 3].map(|port| hardware(&senders, port));
        assert_eq!(found, [Some(40), Some(40), Some(40), None]);
        senders.kept = Some(flow(2, 0).peer);
        for port in 2_000..2_100 {
            senders.note(&flow(port, 50));
        }
        assert_eq!([2, 1].map(|port| hardware(&senders, port)), [Some(40), None], "the only peer is kept");
        assert_eq!((senders.known.len(), senders.known.capacity()), (SENDERS_MAX, allocated));
    }
}
