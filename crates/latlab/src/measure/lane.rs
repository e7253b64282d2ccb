//! One run of a plan, open: its path, its session, its recording. Lanes take turns, slice by slice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::conduct_wakeup::ring_events;
use super::host_watch::HasRecording;
use super::live::LiveRates;
use super::manifest::{closing_facts, opening_manifest};
use super::probe_path::ProbePath;
use super::run_lane::MeasuredRun;
use super::sleepers::{TimerThread, sleep_beside};
use super::{CpuOf, Ends, MeasureError, Peer, ProbeSequence, Slice, ping};
use crate::clock::{Clock, Monotonic};
use crate::facts::{ExperimentFacts, ReflectorReport, WakeupFacts};
use crate::plan::{ConcurrentWakeups, Protocol, RunSpec, defaults};
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::{EventLog, Finished, RecordingWriter, Store};
use crate::session::{self, EchoCodec, NativeSession, PreSharedKey, SessionParams, random_bytes};
use crate::transport::udp::WaitStrategy;
use crate::units::{Nanos, SenderClock, Stamp};

/// Where recordings go.
#[derive(Clone, Copy, Debug)]
pub struct RecordingTarget<'a> {
    /// The store.
    pub store: &'a Store,
    /// The directory that `--output` names; none: one of the store's own naming.
    pub directory: Option<&'a Path>,
    /// The place of these runs in an experiment; none where they are none of one.
    pub experiment: Option<&'a ExperimentFacts>,
    /// Who watches the rates of a stream while it runs.
    pub live: Option<&'a Arc<LiveRates>>,
}

/// How long a session must last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLifetime {
    /// As long as the plan with all its lanes may take; none where nobody knows.
    pub(crate) whole: Option<Nanos>,
    /// A lane may wait so long for its next turn; none where there is only one.
    pub(crate) turns: Option<Nanos>,
}

/// How the plan of a lane came to its end.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub(crate) ending: RunEnding,
    /// Why, where it did not end by its own rule.
    pub(crate) reason: Option<String>,
    /// How latlab's own reflector process died, where it did.
    pub(crate) reflector_died: Option<String>,
    /// The other end has fallen silent: no lane says anything to it any more.
    pub(crate) peer_is_silent: bool,
}

/// What the two ends say to each other in this lane.
enum ProbeSender {
    Native(Box<NativeSession>),
    Echo(Box<EchoCodec>),
}

/// A run between its opening and its closing.
pub(super) struct PingRun<P> {
    spec: RunSpec,
    transport: P,
    talk: ProbeSender,
    course: ProbeSequence,
    writer: RecordingWriter,
    log: EventLog,
    /// Where threads sleep beside the sender; empty: none does.
    beds: Vec<TimerThread>,
    /// What they saw of the kernel.
    wakeup: Mutex<WakeupFacts>,
    /// What the socket reported about earlier datagrams while probes were measured: setting up, warming up and closing
    /// are not what the summary is about.
    socket_errors: BTreeMap<String, u64>,
    /// When the last slice stopped listening.
    listened_until: Option<Stamp<SenderClock>>,
}

impl<P: ProbePath> PingRun<P> {
    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let cpu = self.spec.here.cpu.map_or(CpuOf::Running, CpuOf::Pinned);
        let PingRun { spec, transport, talk, course, log, beds, wakeup, .. } = self;
        let ping = spec.ping();
        let outcome = sleep_beside(beds, slice.phase, wakeup, || match talk {
            ProbeSender::Native(session) => {
                ping::run(&mut Ends::new(transport, &Monotonic, &mut **session, log, cpu), course, slice, ping, stop)
            }
            ProbeSender::Echo(echo) => {
                ping::run(&mut Ends::new(transport, &Monotonic, &mut **echo, log, cpu), course, slice, ping, stop)
            }
        })?;
        let now = Monotonic.now();
        self.listened_until = Some(match outcome {
            Ok(()) => now,
            Err(_) => self.transport.listened_until(now, self.spec.ping().timeout_ns),
        });
        outcome.map_err(|source| MeasureError::Socket { peer: self.transport.ends().peer.to_string(), source })
    }
}

impl<P: ProbePath> MeasuredRun for PingRun<P> {
    fn open(
        spec: &RunSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        place: RecordingTarget<'_>,
        lasting: SessionLifetime,
        stop: &Arc<AtomicBool>,
    ) -> Result<PingRun<P>, MeasureError> {
        let ping = spec.ping();
        let waiting = WaitStrategy::settle(spec.here.wait, ping.schedule, ping.timeout_ns);
        let mut transport = P::open(&ping.path, peer.address(), waiting, stop)?;
        let talk = ProbeSender::open(spec, &mut transport, key, lasting, stop)?;
        let manifest = opening_manifest(spec, peer, transport.ends());
        let (writer, log, beds) = match manifest.and_then(|manifest| begin_recording(manifest, place, stop)) {
            Ok(begun) => begun,
            Err(error) => {
                talk.close(&mut transport);
                return Err(error);
            }
        };
        Ok(PingRun {
            spec: spec.clone(),
            transport,
            talk,
            course: ProbeSequence::new(ping),
            writer,
            log,
            beds,
            wakeup: Mutex::default(),
            socket_errors: BTreeMap::new(),
            listened_until: None,
        })
    }

    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), MeasureError> {
        match Slice::warmup(&self.spec.warmup) {
            Some(slice) => self.run(&slice, stop),
            None => Ok(()),
        }
    }

    fn measure(&mut self, round: u32, rounds: u32, stop: &AtomicBool) -> Result<(), MeasureError> {
        let before = self.transport.socket_errors();
        let outcome = self.run(&Slice::measuring(&self.spec.stop, round, rounds), stop);
        for (kind, count) in self.transport.socket_errors() {
            let more = count - before.get(&kind).copied().unwrap_or(0);
            if more > 0 {
                *self.socket_errors.entry(kind).or_default() += more;
            }
        }
        outcome
    }

    fn discard(self) {
        let PingRun { mut transport, talk, writer, log, beds, .. } = self;
        talk.close(&mut transport);
        writer.discard(logs(log, beds));
    }

    fn close(self, outcome: RunEnd) -> Result<Finished, MeasureError> {
        let PingRun { mut transport, talk, mut writer, log, beds, wakeup, socket_errors, listened_until, .. } = self;
        let strays = talk.strays();
        let report = talk.close(&mut transport);
        closing_facts(writer.manifest_mut(), transport.ends(), report, strays, socket_errors);
        let run = &mut writer.manifest_mut().run;
        (run.socket_drops, run.connection) = (transport.socket_drops(), transport.connection());
        run.listened_until_ns = listened_until.map(Stamp::as_nanos);
        run.reflector_died = outcome.reflector_died;
        run.wakeup = (!beds.is_empty()).then(|| wakeup.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(writer.finish_logs(logs(log, beds), outcome.ending, outcome.reason)?)
    }
}

impl<P: ProbePath> HasRecording for PingRun<P> {
    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }
}

impl ProbeSender {
    fn open(
        spec: &RunSpec,
        transport: &mut impl ProbePath,
        key: Option<&PreSharedKey>,
        lasting: SessionLifetime,
        stop: &AtomicBool,
    ) -> Result<ProbeSender, MeasureError> {
        let ping = spec.ping();
        if ping.protocol == Protocol::Echo {
            return Ok(ProbeSender::Echo(Box::new(EchoCodec::new(ping.size_bytes, random_bytes()?))));
        }
        let peer = transport.ends().peer.to_string();
        let mut wishes =
            SessionParams::new(peer, random_bytes()?, ping.size_bytes, ping.schedule, lasting.whole, ping.timeout_ns);
        if let Some(turns) = lasting.turns {
            wishes.terms.idle = wishes.terms.idle.max(turns);
        }
        let opened = session::open(transport, &Monotonic, key, &wishes, stop);
        Ok(ProbeSender::Native(Box::new(opened.map_err(|error| transport.explained(error))?)))
    }

    fn strays(&self) -> BTreeMap<String, u64> {
        match self {
            ProbeSender::Native(session) => session.strays(),
            ProbeSender::Echo(echo) => echo.strays(),
        }
    }

    fn close(self, transport: &mut impl ProbePath) -> Option<ReflectorReport> {
        match self {
            ProbeSender::Native(session) => session.close(transport, &Monotonic),
            ProbeSender::Echo(_) => None,
        }
    }
}

fn begin_recording(
    mut manifest: Manifest,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<(RecordingWriter, EventLog, Vec<TimerThread>), MeasureError> {
    manifest.experiment = place.experiment.cloned();
    let end = manifest.spec.here;
    let beside = manifest.spec.beside().map(ConcurrentWakeups::spec);
    let mut writer = RecordingWriter::create(place.store, place.directory, manifest)?;
    let places = beside.as_ref().map_or(&[][..], |wakeup| wakeup.cpus.known());
    let mut rings = vec![defaults::RING_EVENTS];
    rings.extend(beside.iter().flat_map(|wakeup| places.iter().map(|_| ring_events(wakeup))));
    let mut logs = writer.start_logs(Arc::clone(stop), &rings)?.into_iter();
    let log = logs.next().expect("the first ring is the sender's");
    let beds = beside.iter().flat_map(|wakeup| places.iter().map(move |cpu| (wakeup, *cpu)));
    let beds = beds.zip(logs).map(|((wakeup, cpu), log)| TimerThread::new(wakeup, end, Some(cpu), log)).collect();
    Ok((writer, log, beds))
}

/// Those of the sender and of the threads beside it.
fn logs(log: EventLog, beds: Vec<TimerThread>) -> Vec<EventLog> {
    std::iter::once(log).chain(beds.into_iter().map(TimerThread::into_log)).collect()
}

/// The CPUs that measure on this host, the sender's first.
pub(crate) fn measuring_cpus(spec: &RunSpec) -> Vec<u16> {
    let neighbour = spec.peer.filter(|_| spec.target.is_this_host());
    [spec.here.cpu, neighbour.and_then(|end| end.cpu)].into_iter().flatten().collect()
}
