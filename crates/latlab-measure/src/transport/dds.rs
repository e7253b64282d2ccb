//! DDS: the domain of both ends, and the path of a sender. Each message is one sample (docs/dds.md).

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use latlab_dds::{IMPLEMENTATION, Participant, Qos, TopicType, policy_name};
use latlab_sys::scheduler;
use rustix::io::Errno;

use super::error::TransportError;
use super::interface::{BurstTransport, OpenPath, Packets, PathReport, PathTransport, Transport, send_each};
use super::udp::path_towards;
use super::wait::WaitStrategy;
use crate::clock::{Clock, Monotonic};
use crate::facts::DdsFacts;
use crate::plan::{DdsSpec, History, PathSpec, Reliability, SendMode, SenderSocketOptions, defaults};
use crate::units::{Nanos, SenderClock, Stamp};

pub use latlab_dds::{DdsError, Reader, Receiving, Writer, are_matched};

/// A partner is searched for as long as HELLOs are sent over UDP.
const DISCOVERY_TIMEOUT: Nanos = Nanos::from_secs(3);
/// How often the search looks whether a partner was found.
const DISCOVERY_STEP: Duration = Duration::from_millis(2);
/// A reliable writer that keeps all waits for acknowledgements as long as a full socket.
const MAX_BLOCKING: Duration = Duration::from_millis(100);
/// Participants of one host that are found without multicast: ROS 2 starts one for each process.
const PARTICIPANTS: u32 = 100;
/// Longer samples than those of latlab are dropped by the library: others could fill the memory with them.
const SAMPLE_BYTES: u32 = 66_000;
/// A thread for each socket waits in the receive call; one for all would wait for any of them first. The environment may
/// say otherwise.
const RECEIVING: &str = "<Internal><MultipleReceiveThreads>true</MultipleReceiveThreads></Internal>";
/// What RTPS adds to a fragment in a message of a reliable writer.
const FRAGMENT_OVERHEAD_BYTES: u16 = 84;
/// The instance of every message whose type has a key.
pub const KEY: u32 = 1;

/// How a thread gets the samples of its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// A thread of the library takes them as they come: no thread has to be woken first.
    Listener,
    /// The thread itself takes them, after the library has woken it. A writer that keeps all may wait for acknowledgements,
    /// for which the threads of the library must be free.
    Wakeup,
    /// The thread itself takes them again and again.
    Poll,
}

impl Delivery {
    pub(super) fn new(spins: bool, history: History) -> Delivery {
        match (spins, history) {
            (true, _) => Delivery::Poll,
            (false, History::KeepAll) => Delivery::Wakeup,
            (false, History::KeepLast(_)) => Delivery::Listener,
        }
    }
}

/// The names of the two topics, by type: probes and answers.
pub const fn topics(keyed: bool) -> [&'static str; 2] {
    if keyed { ["latlab_keyed_probes", "latlab_keyed_answers"] } else { ["latlab_probes", "latlab_answers"] }
}

pub const fn topic_type(keyed: bool) -> TopicType {
    if keyed { TopicType::KeyedMessage } else { TopicType::Message }
}

pub fn qos(reliability: Reliability, history: History) -> Qos {
    Qos {
        batches: false,
        reliability: match reliability {
            Reliability::BestEffort => latlab_dds::Reliability::BestEffort,
            Reliability::Reliable => latlab_dds::Reliability::Reliable { max_blocking: MAX_BLOCKING },
        },
        history: match history {
            History::KeepLast(depth) => latlab_dds::History::KeepLast(u32::from(depth)),
            History::KeepAll => latlab_dds::History::KeepAll,
        },
    }
}

/// The partition of a sender with a number of its own, or `*`, for the reflector at `address`: another host's reflector
/// with the same port must not answer. The reliability is a part of it, since a reader with best effort would also get the
/// samples of reliable writers.
pub(super) fn partition(address: SocketAddr, reliability: Reliability, sender: &str) -> String {
    let (ip, port) = (address.ip().to_canonical(), address.port());
    format!("latlab/{ip}/{port}/{}/{sender}", reliability.word())
}

/// Joins the domain of `spec` at `local`. `peer`: the host that is asked for its participants, which may be this one. The
/// threads of the library get the pin and the priority of the calling thread; if that `spins`, see
/// `set_policy_of_library`.
pub fn join(spec: DdsSpec, local: IpAddr, peer: IpAddr, spins: bool) -> Result<Participant, TransportError> {
    if spec.multicast && local.is_loopback() {
        // Its sockets receive at every address.
        return Err(TransportError::LoopbackMulticast);
    }
    let configuration = configuration(spec, local, peer);
    // With multicast a socket must receive what is sent to the group.
    let address = (!spec.multicast).then_some((local, 0));
    let refused = |error: io::Error| TransportError::Dds { domain: spec.domain, cause: error.to_string() };
    let priority = scheduler::fifo_priority().map_err(refused)?;
    let yields = spins && scheduler::is_normal().map_err(refused)?;
    // Its threads inherit from the one that joins.
    let joined = thread::scope(|scope| {
        let join = || {
            set_policy_of_library(priority, yields).map_err(refused)?;
            let joined = Participant::join(u32::from(spec.domain), &configuration, address);
            joined.map_err(dds_error(spec.domain))
        };
        let joining = thread::Builder::new().name("join".into()).spawn_scoped(scope, join).map_err(refused)?;
        joining.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    let participant = joined?;
    let interfaces = participant.configuration().iter().filter(|line| line.contains("/NetworkInterface[@"));
    match interfaces.count() {
        0 | 1 => Ok(participant),
        _ => Err(TransportError::OtherInterfaces { local }),
    }
}

/// Sets the policy of the calling thread, which is to start those of the library. With a real-time priority they have the
/// same. Beside a thread that `yields`, polling with normal scheduling, they have SCHED_BATCH: a receiving thread that is
/// woken on the CPU of the poller then runs at the poller's next `sched_yield`, and not after an interrupt that has to
/// preempt it, which takes longer.
fn set_policy_of_library(priority: Option<u8>, yields: bool) -> io::Result<()> {
    match priority {
        Some(priority) => scheduler::set_inherited_fifo(priority),
        None if yields => scheduler::set_inherited_batch(),
        None => Ok(()),
    }
}

pub(super) fn dds_error(domain: u16) -> impl Fn(DdsError) -> TransportError {
    move |error| TransportError::Dds { domain, cause: error.to_string() }
}

/// The configuration of the library: that of the environment after [`RECEIVING`], and what the options say.
fn configuration(spec: DdsSpec, local: IpAddr, peer: IpAddr) -> String {
    let transport = if local.is_ipv6() { "<Transport>udp6</Transport>" } else { "" };
    let multicast = spec.multicast;
    let sizes = spec.message_bytes.map_or_else(String::new, |most| {
        let fragment = most.saturating_sub(FRAGMENT_OVERHEAD_BYTES);
        format!(
            "<MaxMessageSize>{most}B</MaxMessageSize><MaxRexmitMessageSize>{most}B</MaxRexmitMessageSize>\
             <FragmentSize>{fragment}B</FragmentSize>"
        )
    });
    let own = format!(
        "<General>{transport}{sizes}<Interfaces><NetworkInterface address=\"{local}\"/></Interfaces>\
         <AllowMulticast>{multicast}</AllowMulticast></General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex>\
         <MaxAutoParticipantIndex>{PARTICIPANTS}</MaxAutoParticipantIndex><Peers><Peer address=\"{peer}\"/></Peers></Discovery>\
         <Internal><MaxSampleSize>{SAMPLE_BYTES}B</MaxSampleSize></Internal>\
         <Tracing><Category>config</Category><OutputFile>stderr</OutputFile></Tracing>"
    );
    match environment() {
        Some(others) => format!("{RECEIVING},{others},{own}"),
        None => format!("{RECEIVING},{own}"),
    }
}

fn environment() -> Option<String> {
    env::var("CYCLONEDDS_URI").ok().filter(|value| !value.trim().is_empty())
}

/// The kernel's word for a refusal of the library.
pub(super) fn io_error(error: DdsError) -> io::Error {
    if error.is_timeout { Errno::AGAIN.into() } else { io::Error::other(error) }
}

/// A participant with a writer of probes and a reader of answers.
#[derive(Debug)]
pub struct DdsTransport {
    // Fields are dropped in this order.
    writer: Writer,
    reader: Reader,
    participant: Participant,
    receiving: Receiving,
    delivery: Delivery,
    /// The writer collects samples until it is flushed.
    batches: bool,
    received_at: Option<Stamp<SenderClock>>,
    path: OpenPath,
    discovery: Nanos,
    /// Drops at the sockets of the participant, which other paths may have used, when this one was opened.
    drops_before: u64,
}

impl DdsTransport {
    /// Joins the domain and waits until the readers and writers at `peer` are known; with port 0 these are of a plain echo
    /// in the default partition. When `stop` is set the attempt ends at once. Samples leave as `sending` says: one by one, or
    /// in batches.
    ///
    /// # Errors
    /// The library refuses the configuration or the address, or no partner is found within 3 s.
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        wait: WaitStrategy,
        stop: &AtomicBool,
        sending: SenderSocketOptions,
    ) -> Result<DdsTransport, TransportError> {
        let batches = sending.mode == SendMode::Batch;
        let spec = path.dds.unwrap_or_default();
        let start = Monotonic.now();
        let OpenPath { local, unfragmented_bytes, .. } = path_towards(path, peer)?;
        let local = local.ip();
        let delivery = Delivery::new(wait == WaitStrategy::Spin, spec.history);
        let participant = join(spec, local, peer.ip(), delivery == Delivery::Poll)?;
        let partition = match peer.port() {
            0 => String::new(),
            _ => partition(peer, spec.reliability, &format!("{:016x}", fresh_number())),
        };
        let ([probes, answers], kind, qos) =
            (topics(spec.keyed), topic_type(spec.keyed), qos(spec.reliability, spec.history));
        let (receiving, refused) = (Receiving::default(), dds_error(spec.domain));
        let reader = participant.reader(answers, kind, qos, &partition, &receiving).map_err(&refused)?;
        let writer = participant.writer(probes, kind, Qos { batches, ..qos }, &partition).map_err(&refused)?;
        let mut transport = DdsTransport {
            writer,
            reader,
            participant,
            receiving,
            delivery,
            batches,
            received_at: None,
            path: OpenPath {
                local: SocketAddr::new(local, 0),
                peer,
                unfragmented_bytes: unfragmented_bytes.map(|bytes| spec.sample_bytes(bytes)),
                send_buffer_bytes: None,
            },
            discovery: Nanos::ZERO,
            drops_before: 0,
        };
        transport.drops_before = transport.participant.socket_drops().unwrap_or_default();
        transport.await_partner(spec, start, stop)?;
        Ok(transport)
    }

    /// Waits until both directions are known.
    fn await_partner(
        &mut self,
        spec: DdsSpec,
        start: Stamp<SenderClock>,
        stop: &AtomicBool,
    ) -> Result<(), TransportError> {
        let refused = dds_error(spec.domain);
        while !are_matched(&self.writer, &self.reader).map_err(&refused)? {
            if stop.load(Ordering::Relaxed) {
                return Err(TransportError::Interrupted { peer: self.path.peer });
            }
            if Monotonic.now() - start > DISCOVERY_TIMEOUT {
                return Err(self.unmatched(spec.domain));
            }
            thread::sleep(DISCOVERY_STEP);
        }
        self.receiving.take_matched();
        self.discovery = Monotonic.now() - start;
        Ok(())
    }

    fn unmatched(&self, domain: u16) -> TransportError {
        let refused = [self.writer.refused_policy(), self.reader.refused_policy()];
        let id = refused.into_iter().flatten().flatten().next();
        let policy = id.map(|id| policy_name(id).unwrap_or("policy"));
        TransportError::Unmatched { peer: self.path.peer, domain, policy, within: DISCOVERY_TIMEOUT }
    }

    fn facts(&self) -> DdsFacts {
        DdsFacts {
            implementation: IMPLEMENTATION.into(),
            discovery_ns: self.discovery,
            environment: environment(),
            configuration: self.participant.configuration().to_vec(),
            samples_lost: self.reader.lost().map_or(0, u64::from),
            warnings: self.participant.warnings(),
        }
    }

    /// Takes a sample in the thread of the library that receives it, and reads the clock there.
    #[inline]
    fn listen(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        let (reader, receiving) = (&mut self.reader, &self.receiving);
        let mut taken = Ok(None);
        let mut received_at = None;
        receiving.run_within(nap(max_wait), &mut || {
            taken = reader.take(buffer);
            received_at = Some(Monotonic.now());
            !matches!(taken, Ok(None))
        });
        self.received_at = received_at;
        match taken.map_err(io_error)? {
            Some(sample) => Ok(Some(sample.bytes)),
            None => {
                // Otherwise the next wait would end at once.
                receiving.take_matched();
                Ok(None)
            }
        }
    }

    #[inline]
    fn flush(&mut self) -> Result<(), DdsError> {
        if self.batches { self.writer.flush() } else { Ok(()) }
    }

    #[inline]
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.reader.take(buffer).map_err(io_error)?.map(|sample| sample.bytes))
    }
}

/// The longest wait that still notices a stop in time.
pub(super) fn nap(max_wait: Nanos) -> Duration {
    Duration::from_nanos(max_wait.min(defaults::NAP).0.max(0) as u64)
}

/// A number for the partition of a sender, other than those of other processes and runs.
fn fresh_number() -> u64 {
    RandomState::new().hash_one(Monotonic.now().as_nanos())
}

impl Transport for DdsTransport {
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.writer.write(message, KEY).and_then(|()| self.flush()).map_err(io_error)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        match self.delivery {
            Delivery::Listener if max_wait > Nanos::ZERO => return self.listen(buffer, max_wait),
            Delivery::Wakeup if max_wait > Nanos::ZERO => {
                if let Some(bytes) = self.take(buffer)? {
                    return Ok(Some(bytes));
                }
                if !self.receiving.wait(nap(max_wait)) {
                    // Otherwise the next wait would end at once.
                    self.receiving.take_matched();
                }
            }
            _ => {}
        }
        self.received_at = None;
        let taken = self.take(buffer)?;
        if taken.is_none() && self.delivery == Delivery::Poll {
            // The threads of the library may be pinned to the same CPU.
            thread::yield_now();
        }
        Ok(taken)
    }

    #[inline]
    fn received_at(&self) -> Option<Stamp<SenderClock>> {
        self.received_at
    }

    fn report(&self) -> PathReport {
        PathReport {
            // Each count is modulo 2^32.
            socket_drops: self
                .participant
                .socket_drops()
                .map(|drops| u64::from((drops as u32).wrapping_sub(self.drops_before as u32))),
            dds: Some(self.facts()),
            ..PathReport::default()
        }
    }
}

impl BurstTransport for DdsTransport {
    #[inline]
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        if !self.batches {
            return send_each(self, packets);
        }
        let mut written = 0;
        for packet in packets.iter() {
            match self.writer.write(packet, KEY).map_err(io_error) {
                Err(error) if written == 0 => return Err(error),
                // The next burst begins with it.
                Err(_) => break,
                Ok(()) => written += 1,
            }
        }
        self.flush().map_err(io_error)?;
        Ok(written)
    }
}

impl PathTransport for DdsTransport {
    fn path(&self) -> OpenPath {
        self.path
    }
}
