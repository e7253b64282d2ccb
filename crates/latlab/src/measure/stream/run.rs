//! A run of a stream between its opening and its closing: a thread for each flow while a slice is measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::concurrent_probes::{ConcurrentProbes, ProbeSession};
use super::flow::{FlowCounts, FlowSlice};
use super::flow_opening::{AnyFlow, FlowOptions, ReadyFlow};
use super::sender::{Awaiting, StreamError};
use crate::clock::{Clock, Monotonic};
use crate::facts::{ConnectionFacts, StageFacts, StreamFacts};
use crate::measure::host_sampling::HasRecording;
use crate::measure::manifest::{closing_facts, opening_manifest};
use crate::measure::run::{MeasuredRun, RunEnd, SessionLifetime};
use crate::measure::{LiveRates, MeasureError, Peer, RecordingTarget, Slice};
use crate::plan::{Family, PacketSize, RunSpec, SendMode, Setting, StreamRunSpec, Work, defaults};
use crate::probe::Phase;
use crate::recording::manifest::{Manifest, RunFacts};
use crate::recording::{EventLog, Finished, RecordingError, RecordingWriter};
use crate::session::PreSharedKey;
use crate::transport::{OpenPath, SendModeError, TransportFamily};
use crate::units::{Nanos, SenderClock, Stamp};

/// A run of a stream, open.
pub(crate) struct StreamRun<F: TransportFamily> {
    spec: RunSpec,
    flows: Vec<AnyFlow<F>>,
    /// None while they are sent.
    probes: Option<ConcurrentProbes>,
    writer: RecordingWriter,
    live: Option<Arc<LiveRates>>,
    /// The path of the first flow.
    path: OpenPath,
    settled: bool,
}

/// What it means that the receiver does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilenceMeaning {
    /// There is no stream any more.
    IsTheEnd,
    /// This pace was too much.
    IsLoss {
        /// What the question before the first packet waits for.
        before: Awaiting,
        /// What those behind it wait for.
        behind: Awaiting,
    },
}

/// What a stage holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StageRate {
    /// Nothing at all; the questions meanwhile are awaiting that.
    Nothing(Awaiting),
    /// So many packets a second; none: as fast as sends go.
    Rate(Option<f64>),
}

impl<F: TransportFamily> StreamRun<F> {
    /// The stream that is measured.
    pub(crate) fn stream(&self) -> Option<&StreamRunSpec> {
        self.spec.stream()
    }

    /// Whether probes are sent beside it.
    pub(crate) fn has_probes(&self) -> bool {
        self.spec.concurrent_probes().is_some()
    }

    /// What the manifest tells of the run.
    pub(crate) fn facts_mut(&mut self) -> &mut RunFacts {
        &mut self.writer.manifest_mut().run
    }

    /// Writes down what the manifest knows.
    pub(crate) fn save(&mut self) {
        self.writer.save();
    }

    /// The probes, to be sent by another thread than the one that holds this.
    pub(crate) fn lend_probes(&mut self) -> Option<ConcurrentProbes> {
        self.probes.take()
    }

    /// Takes them back.
    pub(crate) fn return_probes(&mut self, probes: Option<ConcurrentProbes>) {
        self.probes = probes;
    }

    /// What each flow came to in the last slice, and whether its receiver answered.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (FlowCounts, bool)> {
        self.flows.iter().map(|flow| (flow.stretch(), flow.is_settled()))
    }

    /// That the receiver has not answered for `span`.
    pub(crate) fn fell_silent(&self, span: Nanos) -> MeasureError {
        MeasureError::of_stream(StreamError::Silent { span }, self.path.peer)
    }

    /// The pace that was asked for, all flows together, in packets a second; none: as fast as sends go.
    pub(crate) fn pps_of_all(&self) -> Option<f64> {
        let stream = self.stream()?;
        let of_a_flow = stream.packets_per_second_of_a_flow(stream.size.known()?, self.path.peer.is_ipv6());
        of_a_flow.map(|pps| pps * f64::from(stream.flows.max(1)))
    }

    /// Measures all flows at once for a slice, at so many packets a second all together.
    pub(crate) fn hold(
        &mut self,
        (phase, span): (Phase, Nanos),
        pps: Option<f64>,
        silence: SilenceMeaning,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let Some(stream) = self.spec.stream() else { return Ok(()) };
        let size_bytes = stream.size.known().unwrap_or(0);
        let (before, behind) = match silence {
            SilenceMeaning::IsTheEnd => (Awaiting::Answer, Awaiting::Answer),
            SilenceMeaning::IsLoss { before, behind } => (before, behind),
        };
        let slice = FlowSlice {
            phase,
            span,
            packets_per_second: pps.map(|pps| pps / f64::from(stream.flows.max(1))),
            size_bytes,
            burst_packets: stream.sending.burst_packets(size_bytes),
            exact_timers: !self.spec.settings.iter().any(|spec| matches!(spec.setting, Setting::TimerSlack(_))),
            before,
            behind,
            live: self.live.as_deref(),
        };
        // One flow's end is the end of all: what the others would measure alone is another run.
        let end = |ran: Result<(), StreamError>| match ran {
            Err(StreamError::Silent { .. }) if silence != SilenceMeaning::IsTheEnd => Ok(()),
            ran => ran.inspect_err(|_| stop.store(true, Ordering::Relaxed)),
        };
        let ran = each_of(&mut self.flows, self.path, |flow| end(flow.run(&slice, stop)));
        if silence == SilenceMeaning::IsTheEnd {
            self.settled &= self.flows.iter().all(AnyFlow::is_settled);
        }
        ran
    }

    /// Measures a stage: the stream at its pace, and probes beside it where there are any.
    pub(crate) fn stage(
        &mut self,
        share: Option<f64>,
        (phase, span): (Phase, Nanos),
        pace: StageRate,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        // It is written down before it begins: whatever ends it, its probes are in no other stage.
        let until = (begin + span).as_nanos();
        self.facts_mut().stages.push(StageFacts { share, begin_ns: begin.as_nanos(), end_ns: until, stream: None });
        self.save();
        let mut probes = self.lend_probes();
        let ran = thread::scope(|scope| {
            let probing = probes.as_mut().map(|probes| probes.spawn(scope, (phase, span), stop)).transpose();
            let probing = probing.map_err(MeasureError::Thread)?;
            let held = match pace {
                StageRate::Rate(pps) => self.hold((phase, span), pps, SilenceMeaning::IsTheEnd, stop),
                StageRate::Nothing(awaiting) => self.rest(span, awaiting, stop),
            };
            let end = match pace {
                StageRate::Rate(_) => Monotonic.now(),
                StageRate::Nothing(_) => begin + span,
            };
            let probed = probing.map(thread::ScopedJoinHandle::join).transpose();
            let probed = probed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            held.and(probed.unwrap_or(Ok(()))).map(|()| end)
        });
        self.return_probes(probes);
        let stream = match (&ran, pace) {
            (Ok(_), StageRate::Rate(pps)) => Some(self.trial_facts(pps, span)),
            // What a receiver that fell silent did not count is not lost: there is nothing to say.
            (Err(_), _) | (_, StageRate::Nothing(_)) => None,
        };
        let end: Stamp<SenderClock> = *ran.as_ref().unwrap_or(&Monotonic.now());
        if let Some(stage) = self.facts_mut().stages.last_mut() {
            (stage.end_ns, stage.stream) = (end.as_nanos(), stream);
        }
        ran.map(drop)
    }

    /// Sends nothing for `span`; a receiver that is gone by then is found out.
    pub(crate) fn rest(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), MeasureError> {
        let end = |rested: Result<(), StreamError>| rested.inspect_err(|_| stop.store(true, Ordering::Relaxed));
        let rested = each_of(&mut self.flows, self.path, |flow| end(flow.rest(span, awaiting, stop)));
        self.settled &= self.flows.iter().all(AnyFlow::is_settled);
        rested
    }
}

/// Has a thread for each of `flows`, which go along `path`, do `work`.
fn each_of<F: TransportFamily, W>(flows: &mut [AnyFlow<F>], path: OpenPath, work: W) -> Result<(), MeasureError>
where
    W: Fn(&mut AnyFlow<F>) -> Result<(), StreamError> + Sync,
{
    let work = &work;
    let ended: Vec<_> = thread::scope(|scope| {
        let begun = flows.iter_mut().map(|flow| {
            let working = move || work(flow);
            thread::Builder::new().name("flow".into()).spawn_scoped(scope, working)
        });
        let begun: Vec<_> = begun.collect();
        begun.into_iter().map(|begun| begun.map(thread::ScopedJoinHandle::join)).collect()
    });
    ended.into_iter().try_for_each(|ended| {
        let worked = ended.map_err(MeasureError::Thread)?.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.map_err(|error| MeasureError::of_stream(error, path.peer))
    })
}

impl<F: TransportFamily> MeasuredRun for StreamRun<F> {
    fn open(
        spec: &RunSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        place: RecordingTarget<'_>,
        lasting: SessionLifetime,
        stop: &Arc<AtomicBool>,
    ) -> Result<StreamRun<F>, MeasureError> {
        let opening = FlowOptions { peer: peer.address(), key, lasting, stop };
        let first = opening.path::<F>(spec, 0)?;
        let path = first.path();
        let spec = settled(spec, path)?;
        let manifest = opening_manifest(&spec, peer, path)?;
        let facts = facts(&spec, peer, path);
        let streams = opening.streams(&spec, first)?;
        let facts = StreamFacts { granted_gap_ns: streams.first().and_then(ReadyFlow::granted_gap), ..facts };
        let probes = match spec.concurrent_probes().map(|probes| opening.probes(probes, peer)).transpose() {
            Ok(probes) => probes,
            Err(error) => {
                streams.into_iter().for_each(ReadyFlow::close);
                return Err(error);
            }
        };
        let manifest = Manifest { run: RunFacts { stream: Some(facts), ..manifest.run }, ..manifest };
        match begin_recording(manifest, place, (streams.len(), probes.is_some()), stop) {
            Ok((writer, logs)) => {
                let mut logs = logs.into_iter();
                let flows = (0..).zip(streams).zip(logs.by_ref());
                let flows: Vec<_> = flows.map(|((number, flow), log)| flow.armed(number, log)).collect();
                let probes = probes.zip(logs.next()).map(|(probes, log)| probes.armed(log));
                let live = place.live.cloned();
                Ok(StreamRun { spec, flows, probes, writer, live, path, settled: true })
            }
            Err(error) => {
                streams.into_iter().for_each(ReadyFlow::close);
                probes.into_iter().for_each(ProbeSession::close);
                Err(error.into())
            }
        }
    }

    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), MeasureError> {
        if let Some(span) = self.spec.warmup.duration_ns {
            self.hold((Phase::Warmup, span), self.pps_of_all(), SilenceMeaning::IsTheEnd, stop)?;
        }
        match self.stream().and_then(|stream| stream.search.clone()) {
            Some(search) => self.search(&search, stop),
            None => Ok(()),
        }
    }

    fn measure(&mut self, round: u32, rounds: u32, stop: &AtomicBool) -> Result<(), MeasureError> {
        if let Some(search) = self.stream().and_then(|stream| stream.search.clone()) {
            return self.hold_shares(&search, stop);
        }
        let slice = Slice::measuring(&self.spec.stop, round, rounds);
        let (slice, pps) = ((slice.phase, slice.duration), self.pps_of_all());
        match self.has_probes() {
            true => self.stage(None, slice, StageRate::Rate(pps), stop),
            false => self.hold(slice, pps, SilenceMeaning::IsTheEnd, stop),
        }
    }

    fn discard(self) {
        let logs = self.flows.into_iter().map(|flow| flow.close(false).log);
        let logs = logs.chain(self.probes.map(|probes| probes.close(false)));
        self.writer.discard(logs.collect::<Vec<_>>());
    }

    fn close(self, outcome: RunEnd) -> Result<Finished, MeasureError> {
        let StreamRun { flows, probes, mut writer, path, settled, .. } = self;
        let drops_are_merged = flows.iter().any(AnyFlow::drops_are_merged);
        let (mut errors, mut logs, mut connection) = (BTreeMap::new(), Vec::new(), None);
        for flow in flows.into_iter().map(|flow| flow.close(outcome.peer_is_silent)) {
            for (kind, count) in flow.errors {
                *errors.entry(kind).or_default() += count;
            }
            connection = ConnectionFacts::together(connection, flow.connection);
            logs.push(flow.log);
        }
        if let Some(probes) = probes {
            writer.manifest_mut().run.listened_until_ns = probes.listened_until().map(Stamp::as_nanos);
            logs.push(probes.close(outcome.peer_is_silent));
        }
        closing_facts(writer.manifest_mut(), path, None, BTreeMap::new(), errors);
        let run = &mut writer.manifest_mut().run;
        (run.reflector_died, run.connection) = (outcome.reflector_died, connection);
        if let Some(facts) = &mut run.stream {
            (facts.settled, facts.drops_are_merged) = (settled, drops_are_merged);
        }
        Ok(writer.finish_logs(logs, outcome.ending, outcome.reason)?)
    }
}

impl<F: TransportFamily> HasRecording for StreamRun<F> {
    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }
}

/// `spec` with what only the open path tells: how large its packets are. What such a path cannot carry is refused.
fn settled(spec: &RunSpec, path: OpenPath) -> Result<RunSpec, MeasureError> {
    let mut spec = spec.clone();
    let family = if path.peer.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let Work::Stream(stream) = &mut spec.work else { return Ok(spec) };
    let size_bytes = stream.size.settled(family, path.unfragmented_bytes);
    stream.size = PacketSize::Bytes(size_bytes);
    // Else the first burst would say the same, when there is a recording already.
    match (stream.sending.mode, path.unfragmented_bytes) {
        (SendMode::Gso, Some(room)) if size_bytes > room => Err(SendModeError::SegmentOverMtu { size_bytes }.into()),
        (_, Some(room)) if size_bytes > room && stream.path.dont_fragment => {
            Err(SendModeError::TooLong { size_bytes }.into())
        }
        _ => Ok(spec),
    }
}

/// What is known of the two sockets before a packet is sent.
fn facts(spec: &RunSpec, peer: &Peer, path: OpenPath) -> StreamFacts {
    let facts = StreamFacts { unfragmented_bytes: path.unfragmented_bytes, ..StreamFacts::default() };
    if path.send_buffer_bytes.is_none() {
        return facts;
    }
    StreamFacts {
        send_buffer_bytes: path.send_buffer_bytes,
        receive_buffer_bytes: peer.receive_buffer_bytes(),
        burst_packets: spec.stream().map_or(0, |stream| {
            stream.sending.burst_packets(stream.size.known().unwrap_or(defaults::SIZE_MIN_BYTES)).into()
        }),
        ..facts
    }
}

fn begin_recording(
    mut manifest: Manifest,
    place: RecordingTarget<'_>,
    (flows, probes): (usize, bool),
    stop: &Arc<AtomicBool>,
) -> Result<(RecordingWriter, Vec<EventLog>), RecordingError> {
    manifest.experiment = place.experiment.cloned();
    let mut writer = RecordingWriter::create(place.store, place.directory, manifest)?;
    let mut rings = vec![defaults::STREAM_RING_EVENTS; flows];
    rings.extend(probes.then_some(defaults::STREAM_PROBE_RING_EVENTS));
    let logs = writer.start_logs(Arc::clone(stop), &rings)?;
    Ok((writer, logs))
}
