//! The reflector's end over DDS: a reader of probes for each reliability and type, and a writer of answers for each sender.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;

use latlab_dds::{MatchedWriter, Participant, Reader, Receiving, Writer};

use super::dds::{Delivery, KEY, dds_error, io_error, join, nap, partition, qos, topic_type, topics};
use super::error::TransportError;
use super::interface::{ReceivingThreads, ReflectorSocket, SocketReport};
use crate::plan::{DdsSpec, Reliability, WaitMode};
use crate::units::Nanos;

/// The most senders at a time, and the most that one reader lists.
const SENDERS_MAX: usize = 1_024;
/// The most samples of one reader that one call ignores: it returns however fast others write. A listener ignores any
/// number: no sample is added while it runs, and the next call may come late.
const IGNORED_PER_CALL: usize = 1_024;
/// A thread that polls looks at readers without a sender this seldom.
const POLLS_BETWEEN_CHECKS: u32 = 1_024;

/// A participant that answers senders in partitions of one port.
#[derive(Debug)]
pub struct DdsReflector {
    // Fields are dropped in this order.
    senders: Vec<Sender>,
    readers: Vec<ProbeReader>,
    participant: Participant,
    receiving: Receiving,
    delivery: Delivery,
    spec: DdsSpec,
    address: SocketAddr,
    /// Reserves the port, so that two reflectors of one host have different ones.
    _port: UdpSocket,
    next_number: u16,
    /// The readers that have a sender: only these are asked.
    active: Vec<usize>,
    /// The place in `active` that is asked first, so that no reader has to wait for the others.
    turn: usize,
    /// The sender of the last sample.
    newest: usize,
    /// Samples of writers that are not senders.
    ignored: u64,
    empty_polls: u32,
    closed: Vec<SocketAddr>,
}

#[derive(Debug)]
struct ProbeReader {
    reader: Reader,
    reliability: Reliability,
    keyed: bool,
}

/// A writer of probes that was found, and the writer of the answers to it.
#[derive(Debug)]
struct Sender {
    handle: u64,
    reader: usize,
    address: SocketAddr,
    partition: String,
    answers: Writer,
}

impl DdsReflector {
    /// Joins the domain at `local`; port 0: a free one.
    ///
    /// # Errors
    /// The port is in use, the address is not local, or the library refuses it.
    pub fn bind(local: SocketAddr, wait: WaitMode, spec: DdsSpec) -> Result<DdsReflector, TransportError> {
        let bound = UdpSocket::bind(local).and_then(|port| Ok((port.local_addr()?, port)));
        let (address, port) = bound.map_err(|source| TransportError::Bind { local, source })?;
        let delivery = Delivery::new(wait == WaitMode::Spin, spec.history);
        let participant = join(spec, address.ip(), address.ip(), delivery == Delivery::Poll)?;
        let receiving = Receiving::default();
        let mut readers = Vec::new();
        for reliability in Reliability::ALL {
            for keyed in [false, true] {
                let partition = partition(address, reliability, "*");
                let (kind, qos) = (topic_type(keyed), qos(reliability, spec.history));
                let reader = participant.reader(topics(keyed)[0], kind, qos, &partition, &receiving);
                readers.push(ProbeReader { reader: reader.map_err(dds_error(spec.domain))?, reliability, keyed });
            }
        }
        Ok(DdsReflector {
            senders: Vec::new(),
            readers,
            participant,
            receiving,
            delivery,
            spec,
            address,
            _port: port,
            next_number: 0,
            active: Vec::new(),
            turn: 0,
            newest: 0,
            ignored: 0,
            empty_polls: 0,
            closed: Vec::new(),
        })
    }

    /// The address of the participant, and the port that senders name.
    pub const fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the oldest sample of a known sender from each reader in turn, and ignores `most` samples of a reader.
    fn take(&mut self, buffer: &mut [u8], most: usize) -> io::Result<Option<(usize, SocketAddr)>> {
        for step in 0..self.active.len() {
            let place = (self.turn + step) % self.active.len();
            let index = self.active[place];
            for _ in 0..most {
                let Some(sample) = self.readers[index].reader.take(buffer).map_err(io_error)? else { break };
                if let Some(newest) = self.position(|sender| sender.handle == sample.writer) {
                    (self.newest, self.turn) = (newest, place + 1);
                    return Ok(Some((sample.bytes, self.senders[newest].address)));
                }
                self.ignored += 1;
            }
        }
        self.empty_polls = self.empty_polls.wrapping_add(1);
        if self.delivery != Delivery::Poll || self.empty_polls.is_multiple_of(POLLS_BETWEEN_CHECKS) {
            self.drop_foreign(buffer)?;
        }
        Ok(None)
    }

    /// Takes the samples of readers without a sender, which would stay in memory.
    #[cold]
    fn drop_foreign(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for index in (0..self.readers.len()).filter(|index| !self.active.contains(index)) {
            for _ in 0..IGNORED_PER_CALL {
                if self.readers[index].reader.take(buffer).map_err(io_error)?.is_none() {
                    break;
                }
                self.ignored += 1;
            }
        }
        Ok(())
    }

    /// The position of a sender, the newest one first.
    fn position(&self, is_it: impl Fn(&Sender) -> bool) -> Option<usize> {
        match self.senders.get(self.newest) {
            Some(sender) if is_it(sender) => Some(self.newest),
            _ => self.senders.iter().position(is_it),
        }
    }

    /// Makes a writer for each new sender, and removes those that have gone.
    fn match_senders(&mut self) -> Result<(), TransportError> {
        let refused = dds_error(self.spec.domain);
        for index in 0..self.readers.len() {
            let found = self.readers[index].reader.writers(SENDERS_MAX).map_err(&refused)?;
            let reader = &self.readers[index].reader;
            // Not by the list, which has a limit.
            let gone = |sender: &Sender| sender.reader == index && reader.writer(sender.handle).is_none();
            self.closed.extend(self.senders.iter().filter(|sender| gone(sender)).map(|sender| sender.address));
            self.senders.retain(|sender| !gone(sender));
            for handle in found {
                let is_known = self.senders.iter().any(|sender| sender.handle == handle);
                if !is_known && self.senders.len() < SENDERS_MAX {
                    // One that cannot be answered is not a sender: its samples are counted as ignored.
                    _ = self.add(index, handle);
                }
            }
        }
        self.newest = 0;
        let has_sender = |reader: &usize| self.senders.iter().any(|sender| sender.reader == *reader);
        self.active = (0..self.readers.len()).filter(has_sender).collect();
        Ok(())
    }

    /// Makes the writer of answers to a new sender, unless it is in several partitions, in a pattern of them or in that of
    /// another sender: then others would get its answers.
    fn add(&mut self, reader: usize, handle: u64) -> Result<(), TransportError> {
        let ProbeReader { reader: probes, reliability, keyed } = &self.readers[reader];
        let Some(matched) = probes.writer(handle) else { return Ok(()) };
        let [partition] = &matched.partitions[..] else { return Ok(()) };
        let is_taken = self.senders.iter().any(|sender| sender.partition == *partition);
        if is_taken || partition.contains(['*', '?', '[']) {
            return Ok(());
        }
        let qos = qos(*reliability, self.spec.history);
        let answers = self.participant.writer(topics(*keyed)[1], topic_type(*keyed), qos, partition);
        let answers = answers.map_err(dds_error(self.spec.domain))?;
        let address = self.next_address(&matched);
        self.senders.push(Sender { handle, reader, address, partition: partition.clone(), answers });
        Ok(())
    }

    /// An address for the rules of the session, which identify a sender by one: loopback for a reflector on loopback, else
    /// a unique local address (RFC 4193) whose bits are those of the participant's GUID. DDS does not say from
    /// which address a sample came.
    fn next_address(&mut self, matched: &MatchedWriter) -> SocketAddr {
        self.next_number = self.next_number.wrapping_add(1).max(1);
        let ip = match self.address.ip() {
            loopback if loopback.is_loopback() => loopback,
            _ => {
                let mut octets = [0; 16];
                octets[0] = 0xfd;
                octets[1..13].copy_from_slice(&matched.participant[..12]);
                IpAddr::V6(Ipv6Addr::from(octets))
            }
        };
        SocketAddr::new(ip, self.next_number)
    }
}

impl ReflectorSocket for DdsReflector {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let most = if self.delivery == Delivery::Listener { usize::MAX } else { IGNORED_PER_CALL };
        let received = self.take(buffer, most)?;
        if received.is_none() {
            match self.delivery {
                Delivery::Listener => {}
                Delivery::Wakeup => _ = self.receiving.wait(nap(Nanos::MAX)),
                Delivery::Poll => thread::yield_now(),
            }
        }
        Ok(received)
    }

    fn receive_within(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        if let Some(received) = self.take(buffer, IGNORED_PER_CALL)? {
            return Ok(Some(received));
        }
        match self.delivery {
            Delivery::Poll => thread::yield_now(),
            _ => _ = self.receiving.wait(nap(max_wait)),
        }
        self.take(buffer, IGNORED_PER_CALL)
    }

    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let position = self.position(|sender| sender.address == to).ok_or(io::ErrorKind::NotConnected)?;
        self.senders[position].answers.write(datagram, KEY).map_err(io_error)
    }

    fn report(&self) -> SocketReport {
        let (drops, ignored_samples) = (self.participant.socket_drops(), Some(self.ignored));
        SocketReport { drops, ignored_samples, ..SocketReport::default() }
    }

    fn receiving_threads(&self) -> Option<Box<dyn ReceivingThreads>> {
        (self.delivery == Delivery::Listener).then(|| Box::new(self.receiving.clone()) as _)
    }

    fn is_of_library(&self) -> bool {
        true
    }

    fn has_connection_work(&self) -> bool {
        self.receiving.is_matched() || !self.closed.is_empty()
    }

    fn next_closed(&mut self) -> Option<SocketAddr> {
        if self.receiving.take_matched() {
            // Senders that cannot be answered now are tried again when the next one comes.
            _ = self.match_senders();
        }
        self.closed.pop()
    }
}

impl ReceivingThreads for Receiving {
    fn run_within(&self, span: Nanos, work: &mut (dyn FnMut() + Send)) {
        Receiving::run_within(self, nap(span), &mut || {
            work();
            false
        });
    }
}
