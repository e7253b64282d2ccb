//! A run of a stream. During each slice there is a thread for each flow, and one for concurrent probes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latlab_sys::process::OwnDescriptors;

use super::flow::{FlowSlice, StreamFlow};
use super::meter::FlowCounts;
use super::sender::{Awaiting, StreamError};
use super::sessions::{ConcurrentProbes, FlowOptions, ProbeSession, ReadyFlow};
use crate::clock::{Clock, Monotonic};
use crate::facts::{ConnectionFacts, DdsFacts, StageFacts, StreamFacts};
use crate::measure::manifest::{add_closing_facts, opening_manifest};
use crate::measure::run::{MeasuredRun, RunContext, RunEnd, SessionOptions, whole_packet_bytes};
use crate::measure::stop_signal::StopSignal;
use crate::measure::{LiveProgress, MeasureError, Peer, Slice};
use crate::plan::{Family, PacketSize, RunSpec, SendMode, StreamRunSpec, Work, defaults};
use crate::probe::Phase;
use crate::recording::manifest::RunFacts;
use crate::recording::{Finished, RecordingWriter};
use crate::transport::{self, FamilyVisitor, OpenPath, SendModeError, TransportFamily};
use crate::units::{Nanos, Stamp};

/// An open run of a stream.
pub(crate) struct StreamRun {
    spec: RunSpec,
    flows: Vec<Box<dyn StreamFlow>>,
    /// `None` while they are sent.
    probes: Option<ConcurrentProbes>,
    writer: RecordingWriter,
    live: Option<Arc<LiveProgress>>,
    /// The path of the first flow.
    path: OpenPath,
    settled: bool,
}

/// The meaning of silence of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSilence {
    Fail,
    /// The rate was too high: the packets count as lost.
    CountAsLoss {
        /// The answer that the POLL before the first packet awaits.
        before: Awaiting,
        /// The answer that all later POLLs await.
        after: Awaiting,
    },
}

/// The pace of a stream in a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StagePace {
    /// It sends no packets; its POLLs await this.
    Pause(Awaiting),
    /// Packets a second; `None`: as fast as possible.
    Rate(Option<f64>),
}

impl StreamRun {
    pub(crate) fn stream(&self) -> Option<&StreamRunSpec> {
        self.spec.stream()
    }

    /// Whether probes are sent during the stream.
    pub(crate) fn has_probes(&self) -> bool {
        self.spec.concurrent_probes().is_some()
    }

    /// The facts about the run in the manifest.
    pub(crate) fn facts_mut(&mut self) -> &mut RunFacts {
        &mut self.writer.manifest_mut().run
    }

    /// Writes the present manifest to the disk.
    pub(crate) fn save(&mut self) {
        self.writer.save();
    }

    /// The counts of each flow in the last slice, and whether the receiver answered at its end.
    pub(crate) fn flow_counts(&self) -> impl Iterator<Item = (FlowCounts, bool)> {
        self.flows.iter().map(|flow| (flow.counts(), flow.is_settled()))
    }

    /// The error that the receiver has not answered for `span`.
    pub(crate) fn silent_for(&self, span: Nanos) -> MeasureError {
        MeasureError::of_stream(StreamError::Silent { span }, self.path.peer)
    }

    /// The offered rate of all flows together in packets a second; `None`: as fast as possible.
    pub(crate) fn pps_of_all(&self) -> Option<f64> {
        let stream = self.stream()?;
        let of_a_flow = stream.packets_per_second_of_a_flow(stream.size.known()?, self.path.peer.is_ipv6());
        of_a_flow.map(|pps| pps * f64::from(stream.flows.max(1)))
    }

    /// Measures a slice of all flows at the same time, with `pps` packets a second in total.
    pub(crate) fn run_flows(
        &mut self,
        slice: &Slice,
        pps: Option<f64>,
        on_silence: OnSilence,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let Some(stream) = self.spec.stream() else { return Ok(()) };
        let size_bytes = stream.size.known().unwrap_or(0);
        let (before, after) = match on_silence {
            OnSilence::Fail => (Awaiting::Answer, Awaiting::Answer),
            OnSilence::CountAsLoss { before, after } => (before, after),
        };
        let slice = FlowSlice {
            phase: slice.phase,
            span: slice.duration,
            packets_per_second: pps.map(|pps| pps / f64::from(stream.flows.max(1))),
            size_bytes,
            burst_packets: stream.sending.burst_packets(size_bytes),
            before,
            after,
            live: self.live.as_deref(),
        };
        let ran = on_each_flow(&mut self.flows, self.path.peer, stop, |flow| match flow.run(&slice, stop) {
            Err(StreamError::Silent { .. }) if on_silence != OnSilence::Fail => Ok(()),
            ran => ran,
        });
        if on_silence == OnSilence::Fail {
            self.settled &= self.flows.iter().all(|flow| flow.is_settled());
        }
        ran
    }

    /// Sends no packets for `span`; fails if the receiver does not answer POLLs.
    fn pause_flows(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), MeasureError> {
        let paused = on_each_flow(&mut self.flows, self.path.peer, stop, |flow| flow.pause(span, awaiting, stop));
        self.settled &= self.flows.iter().all(|flow| flow.is_settled());
        paused
    }

    /// Measures a stage: the stream at its pace, and concurrent probes if the run has any.
    pub(crate) fn measure_stage(
        &mut self,
        share: Option<f64>,
        slice: Slice,
        pace: StagePace,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        // Recorded before it begins, so that its probes belong to no other stage however it ends.
        let planned_end = begin + slice.duration;
        let (begin_ns, end_ns) = (begin.as_nanos(), planned_end.as_nanos());
        self.facts_mut().stages.push(StageFacts { share, begin_ns, end_ns, stream: None });
        self.save();
        let mut probes = self.probes.take();
        let ran = thread::scope(|scope| {
            let probing = probes.as_mut().map(|probes| probes.spawn(scope, slice, stop)).transpose();
            let probing = probing.map_err(MeasureError::Thread)?;
            let (ran, end) = match pace {
                StagePace::Rate(pps) => (self.run_flows(&slice, pps, OnSilence::Fail, stop), Monotonic.now()),
                StagePace::Pause(awaiting) => (self.pause_flows(slice.duration, awaiting, stop), planned_end),
            };
            let probed = probing.map(thread::ScopedJoinHandle::join).transpose();
            let probed = probed.unwrap_or_else(|panic| resume_unwind(panic)).transpose();
            ran.and(probed.map(|_| end))
        });
        self.probes = probes;
        let stream = match (&ran, pace) {
            (Ok(_), StagePace::Rate(pps)) => Some(self.trial_facts(pps, slice.duration)),
            // Packets that a silent receiver did not count are not known to be lost.
            (Err(_), _) | (_, StagePace::Pause(_)) => None,
        };
        let end = *ran.as_ref().unwrap_or(&Monotonic.now());
        if let Some(stage) = self.facts_mut().stages.last_mut() {
            (stage.end_ns, stage.stream) = (end.as_nanos(), stream);
        }
        ran.map(drop)
    }
}

/// Does `work` with each of `flows` to `peer`, on a thread for each. An error of one ends the others by `stop`, since fewer
/// flows are a different measurement.
fn on_each_flow<W>(
    flows: &mut [Box<dyn StreamFlow>],
    peer: SocketAddr,
    stop: &AtomicBool,
    work: W,
) -> Result<(), MeasureError>
where
    W: Fn(&mut dyn StreamFlow) -> Result<(), StreamError> + Sync,
{
    let work = &work;
    let ended: Vec<_> = thread::scope(|scope| {
        let begun = flows.iter_mut().map(|flow| {
            let work = move || {
                // Sending takes 1.7 % less time; where this is forbidden it takes longer. A flow opens and closes nothing.
                let _own = OwnDescriptors::copy();
                work(flow.as_mut()).inspect_err(|_| stop.store(true, Ordering::Relaxed))
            };
            thread::Builder::new().name("flow".into()).spawn_scoped(scope, work)
        });
        let begun: Vec<_> = begun.collect();
        begun.into_iter().map(|begun| begun.map(thread::ScopedJoinHandle::join)).collect()
    });
    ended.into_iter().try_for_each(|ended| {
        let worked = ended.map_err(MeasureError::Thread)?.unwrap_or_else(|panic| resume_unwind(panic));
        worked.map_err(|error| MeasureError::of_stream(error, peer))
    })
}

impl MeasuredRun for StreamRun {
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<StreamRun, MeasureError> {
        transport::visit(spec.transport().unwrap_or_default(), OpenStreamRun { spec, context })
    }

    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }

    fn warm_up(&mut self, stop: &StopSignal) -> Result<(), MeasureError> {
        if let Some(span) = self.spec.warmup.duration_ns {
            let slice = Slice::lasting(Phase::Warmup, span);
            self.run_flows(&slice, self.pps_of_all(), OnSilence::Fail, stop.requested())?;
        }
        match self.stream().and_then(|stream| stream.search.clone()) {
            Some(search) => self.search(&search, stop.requested()),
            None => Ok(()),
        }
    }

    fn measure(&mut self, round: u32, rounds: u32, stop: &StopSignal) -> Result<(), MeasureError> {
        if let Some(search) = self.stream().and_then(|stream| stream.search.clone()) {
            return self.measure_stages(&search, stop.requested());
        }
        let slice = Slice::measuring(&self.spec.stop, round, rounds);
        let pps = self.pps_of_all();
        if self.has_probes() {
            self.measure_stage(None, slice, StagePace::Rate(pps), stop.requested())
        } else {
            self.run_flows(&slice, pps, OnSilence::Fail, stop.requested())
        }
    }

    fn discard(self) {
        let logs = self.flows.into_iter().map(|flow| flow.close(false).log);
        let logs = logs.chain(self.probes.map(|probes| probes.close(false)));
        self.writer.discard(logs.collect::<Vec<_>>());
    }

    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError> {
        let StreamRun { flows, probes, mut writer, path, settled, .. } = self;
        let drops_are_merged = flows.iter().any(|flow| flow.drops_are_merged());
        let (mut errors, mut logs, mut connection, mut dds, mut xdp) = (BTreeMap::new(), Vec::new(), None, None, None);
        for flow in flows.into_iter().map(|flow| flow.close(end.peer_is_silent)) {
            for (kind, count) in flow.errors {
                *errors.entry(kind).or_default() += count;
            }
            connection = ConnectionFacts::together(connection, flow.connection);
            dds = DdsFacts::together(dds, flow.dds);
            xdp = flow.xdp;
            logs.push(flow.log);
        }
        if let Some(probes) = probes {
            writer.manifest_mut().run.listened_until_ns = probes.listened_until().map(Stamp::as_nanos);
            logs.push(probes.close(end.peer_is_silent));
        }
        add_closing_facts(writer.manifest_mut(), Some(path));
        let run = &mut writer.manifest_mut().run;
        run.reflector_died = end.reflector_died.map(str::to_owned);
        (run.socket_errors, run.connection, run.dds, run.xdp) = (errors, connection, dds, xdp);
        if let Some(facts) = &mut run.stream {
            (facts.settled, facts.drops_are_merged) = (settled, drops_are_merged);
        }
        Ok(writer.finish_logs(logs, end.ending, end.reason.map(str::to_owned))?)
    }
}

/// The arguments of [`StreamRun::open`], whose body is compiled for each transport.
struct OpenStreamRun<'a> {
    spec: &'a RunSpec,
    context: &'a RunContext<'a>,
}

impl FamilyVisitor for OpenStreamRun<'_> {
    type Output = Result<StreamRun, MeasureError>;

    fn visit<F: TransportFamily>(self) -> Self::Output {
        let OpenStreamRun { spec, context } = self;
        let xdp = spec.path().and_then(|path| path.xdp);
        let (peer, sessions) = (context.peer().address(), SessionOptions { xdp, ..context.sessions() });
        let first = FlowOptions { spec, peer, sessions }.path::<F>(0)?;
        let path = first.path();
        let spec = with_known_size(spec, path)?;
        let mut manifest = opening_manifest(&spec, context, Some(path))?;
        let flows = FlowOptions { spec: &spec, peer, sessions }.flows(first)?;
        let granted_gap_ns = flows.first().and_then(ReadyFlow::granted_gap);
        manifest.run.stream = Some(StreamFacts { granted_gap_ns, ..socket_facts(&spec, context.peer(), path) });
        let probes = match spec.concurrent_probes().map(|probes| ProbeSession::open(probes, context)).transpose() {
            Ok(probes) => probes,
            Err(error) => {
                flows.into_iter().for_each(ReadyFlow::close);
                return Err(error);
            }
        };
        let mut rings = vec![defaults::STREAM_RING_EVENTS; flows.len()];
        rings.extend(probes.is_some().then_some(defaults::STREAM_PROBE_RING_EVENTS));
        match context.start_recording(manifest, &rings) {
            Ok((writer, logs)) => {
                let mut logs = logs.into_iter();
                let flows = (0..).zip(flows).zip(logs.by_ref());
                let flows = flows.map(|((number, flow), log)| flow.armed(number, log)).collect();
                let probes = probes.zip(logs.next()).map(|(probes, log)| probes.armed(log));
                let live = context.target.live.cloned();
                Ok(StreamRun { spec, flows, probes, writer, live, path, settled: true })
            }
            Err(error) => {
                flows.into_iter().for_each(ReadyFlow::close);
                probes.into_iter().for_each(ProbeSession::close);
                Err(error.into())
            }
        }
    }
}

/// `spec` with the packet size, which may depend on the open path.
///
/// # Errors
/// The path cannot carry such packets: the first burst would fail, after a recording was created.
fn with_known_size(spec: &RunSpec, path: OpenPath) -> Result<RunSpec, MeasureError> {
    let mut spec = spec.clone();
    let family = if path.peer.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let Work::Stream(stream) = &mut spec.work else { return Ok(spec) };
    let size_bytes = stream.size.settled(family, path.unfragmented_bytes);
    stream.size = PacketSize::Bytes(size_bytes);
    if let Some(most_bytes) = whole_packet_bytes(&stream.path, path).filter(|most_bytes| size_bytes > *most_bytes) {
        return Err(SendModeError::TooLongForXdp { size_bytes, most_bytes }.into());
    }
    match (stream.sending.mode, path.unfragmented_bytes) {
        (SendMode::Gso, Some(most)) if size_bytes > most => Err(SendModeError::SegmentOverMtu { size_bytes }.into()),
        (_, Some(most)) if size_bytes > most && stream.path.dont_fragment => {
            Err(SendModeError::TooLong { size_bytes }.into())
        }
        _ => Ok(spec),
    }
}

/// The facts about the sockets of both ends before the first packet.
fn socket_facts(spec: &RunSpec, peer: &Peer, path: OpenPath) -> StreamFacts {
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
