//! One run of a plan, open: its path, its session, its recording. Lanes take turns, slice by slice.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::probe_loop::{SessionSender, run_slice};
use super::sequence::ProbeSequence;
use crate::clock::{Clock, Monotonic};
use crate::facts::{ReflectorReport, WakeupFacts};
use crate::measure::host_sampling::HasRecording;
use crate::measure::manifest::{closing_facts, opening_manifest};
use crate::measure::run::{MeasuredRun, RunEnd, SessionLifetime};
use crate::measure::wakeup::{TimerThread, ring_events, sleep_during};
use crate::measure::{CpuSource, MeasureError, Peer, RecordingTarget, Slice};
use crate::plan::{ConcurrentWakeups, Protocol, RunSpec, defaults};
use crate::recording::manifest::Manifest;
use crate::recording::{EventLog, Finished, RecordingWriter};
use crate::session::{self, EchoCodec, NativeSession, PreSharedKey, SessionParams, random_bytes};
use crate::transport::{PathOptions, PathTransport, Transport, TransportFamily, WaitStrategy};
use crate::units::{SenderClock, Stamp};

/// What the two ends say to each other in this lane.
enum ProbeSender {
    Native(Box<NativeSession>),
    Echo(Box<EchoCodec>),
}

/// A run between its opening and its closing.
pub(crate) struct PingRun<F: TransportFamily> {
    spec: RunSpec,
    transport: F::Path,
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

impl<F: TransportFamily> PingRun<F> {
    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let cpu = self.spec.here.cpu.map_or(CpuSource::Running, CpuSource::Pinned);
        let PingRun { spec, transport, talk, course, log, beds, wakeup, .. } = self;
        let ping = spec.expect_ping();
        let outcome = sleep_during(beds, slice.phase, wakeup, || match talk {
            ProbeSender::Native(session) => run_slice(
                &mut SessionSender::new(transport, &Monotonic, &mut **session, log, cpu),
                course,
                slice,
                ping,
                stop,
            ),
            ProbeSender::Echo(echo) => run_slice(
                &mut SessionSender::new(transport, &Monotonic, &mut **echo, log, cpu),
                course,
                slice,
                ping,
                stop,
            ),
        })?;
        let now = Monotonic.now();
        // A probe without an answer when its connection ended cannot be answered any more.
        let is_final = outcome.is_err() && F::KIND.is_connection_oriented();
        self.listened_until = Some(if is_final { now + self.spec.expect_ping().timeout_ns } else { now });
        outcome.map_err(|source| MeasureError::Socket { peer: self.transport.path().peer.to_string(), source })
    }
}

impl<F: TransportFamily> MeasuredRun for PingRun<F> {
    fn open(
        spec: &RunSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        place: RecordingTarget<'_>,
        lasting: SessionLifetime,
        stop: &Arc<AtomicBool>,
    ) -> Result<PingRun<F>, MeasureError> {
        let ping = spec.expect_ping();
        let wait = WaitStrategy::new(spec.here.wait, ping.schedule, ping.timeout_ns);
        let mut transport = F::open(&PathOptions { path: &ping.path, peer: peer.address(), wait, stop })?;
        let talk = ProbeSender::open(spec, &mut transport, key, lasting, stop)?;
        let manifest = opening_manifest(spec, peer, transport.path());
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
        let before = self.transport.report().socket_errors;
        let outcome = self.run(&Slice::measuring(&self.spec.stop, round, rounds), stop);
        for (kind, count) in self.transport.report().socket_errors {
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
        closing_facts(writer.manifest_mut(), transport.path(), report, strays, socket_errors);
        let (run, report) = (&mut writer.manifest_mut().run, transport.report());
        (run.socket_drops, run.connection) = (report.socket_drops, report.connection);
        run.listened_until_ns = listened_until.map(Stamp::as_nanos);
        run.reflector_died = outcome.reflector_died;
        run.wakeup = (!beds.is_empty()).then(|| wakeup.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(writer.finish_logs(logs(log, beds), outcome.ending, outcome.reason)?)
    }
}

impl<F: TransportFamily> HasRecording for PingRun<F> {
    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }
}

impl ProbeSender {
    fn open(
        spec: &RunSpec,
        transport: &mut impl PathTransport,
        key: Option<&PreSharedKey>,
        lasting: SessionLifetime,
        stop: &AtomicBool,
    ) -> Result<ProbeSender, MeasureError> {
        let ping = spec.expect_ping();
        if ping.protocol == Protocol::Echo {
            return Ok(ProbeSender::Echo(Box::new(EchoCodec::new(ping.size_bytes, random_bytes()?))));
        }
        let peer = transport.path().peer.to_string();
        let mut params =
            SessionParams::new(peer, random_bytes()?, ping.size_bytes, ping.schedule, lasting.whole, ping.timeout_ns);
        if let Some(turns) = lasting.turns {
            params.terms.idle = params.terms.idle.max(turns);
        }
        let opened = session::open(transport, &Monotonic, key, &params, stop)?;
        Ok(ProbeSender::Native(Box::new(opened)))
    }

    fn strays(&self) -> BTreeMap<String, u64> {
        match self {
            ProbeSender::Native(session) => session.strays(),
            ProbeSender::Echo(echo) => echo.strays(),
        }
    }

    fn close(self, transport: &mut impl PathTransport) -> Option<ReflectorReport> {
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
    let beside = manifest.spec.concurrent_wakeups().map(ConcurrentWakeups::spec);
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
