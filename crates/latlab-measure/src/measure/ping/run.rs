//! A run of probes: opens path, session and recording, runs the hot loop in slices, and closes them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::probe_loop::{SessionSender, run_slice};
use super::sent_probes::SentProbes;
use super::sequence::ProbeSequence;
use crate::clock::{Clock, Monotonic};
use crate::facts::{ReflectorReport, WakeupFacts};
use crate::measure::manifest::{add_closing_facts, opening_manifest};
use crate::measure::run::{
    MeasuredRun, RunContext, RunEnd, SessionOptions, SessionTraffic, open_placed, whole_packet_bytes,
};
use crate::measure::stop_signal::StopSignal;
use crate::measure::wakeup::{TimerThread, measure_wakeups_during};
use crate::measure::{CpuSource, MeasureError, Slice};
use crate::plan::{ConcurrentWakeups, PingSpec, Protocol, RunSpec, defaults};
use crate::recording::manifest::ANSWERED_FROM;
use crate::recording::{EventLog, Finished, RecordingWriter, SpoolEvent};
use crate::session::{EchoCodec, NativeSession, random_bytes};
use crate::transport::{
    PathOptions, PathTransport, SendModeError, Transport, TransportFamily, WaitStrategy, answering_instead,
};
use crate::units::{SenderClock, Stamp};

/// An open run of probes.
pub(crate) struct PingRun<F: TransportFamily> {
    spec: RunSpec,
    transport: F::Path,
    codec: SenderCodec,
    sequence: ProbeSequence,
    writer: RecordingWriter,
    log: EventLog,
    stamps: Option<SentProbes>,
    /// The threads that measure wake-ups during the run.
    timers: Vec<TimerThread>,
    /// Timer slack and niceness of these threads.
    wakeup: Mutex<WakeupFacts>,
    /// Errors of earlier datagrams that the socket reported in measured slices, without those of the handshake, the warm-up
    /// and the close.
    socket_errors: BTreeMap<String, u64>,
    /// The end of the last slice: answers were received until then.
    listened_until: Option<Stamp<SenderClock>>,
}

impl<F: TransportFamily> PingRun<F> {
    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let cpu = self.spec.here.cpu.map_or(CpuSource::Running, CpuSource::Pinned);
        let PingRun { spec, transport, codec, sequence, log, stamps, timers, wakeup, .. } = self;
        let ping = spec.expect_ping();
        let outcome = measure_wakeups_during(timers, slice.phase, wakeup, || match codec {
            SenderCodec::Native(session) => {
                let mut sender =
                    SessionSender::new(transport, &Monotonic, &mut **session, log, cpu).with_stamps(stamps.as_mut());
                run_slice(&mut sender, sequence, slice, ping, stop)
            }
            SenderCodec::Echo(echo) => {
                let mut sender =
                    SessionSender::new(transport, &Monotonic, &mut **echo, log, cpu).with_stamps(stamps.as_mut());
                run_slice(&mut sender, sequence, slice, ping, stop)
            }
        })?;
        let now = Monotonic.now();
        // A probe that was unanswered when its connection ended can no longer be answered.
        let is_final = outcome.is_err() && F::KIND.is_connection_oriented();
        self.listened_until = Some(if is_final { now + self.spec.expect_ping().timeout_ns } else { now });
        outcome.map_err(|source| MeasureError::Socket { peer: self.transport.path().peer.to_string(), source })
    }
}

impl<F: TransportFamily> MeasuredRun for PingRun<F> {
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<PingRun<F>, MeasureError> {
        let ping = spec.expect_ping();
        let wait = WaitStrategy::new(spec.here.wait, ping.schedule, ping.timeout_ns);
        let (path, peer, stop) = (&ping.path, context.peer().address(), context.stop);
        let options = PathOptions { path, peer, wait, stop };
        let mut transport = open_placed::<F, _>(&spec.here, || F::open(&options))?;
        match whole_packet_bytes(&ping.path, transport.path()) {
            Some(most_bytes) if ping.size_bytes > most_bytes => {
                return Err(SendModeError::TooLongForXdp { size_bytes: ping.size_bytes, most_bytes }.into());
            }
            _ => {}
        }
        let options = SessionOptions { xdp: spec.path().and_then(|path| path.xdp), ..context.sessions() };
        let codec = SenderCodec::open(ping, &mut transport, &options)?;
        let stamps = ping.stamps.map(|layer| SentProbes::request(&mut transport, layer, spec.here.wait)).transpose();
        let recording = stamps.and_then(|stamps| {
            let manifest = opening_manifest(spec, context, Some(transport.path()))?;
            let wakeups = spec.concurrent_wakeups().map(ConcurrentWakeups::spec);
            let timer_rings = wakeups.iter().flat_map(TimerThread::rings);
            let rings: Vec<usize> = std::iter::once(defaults::RING_EVENTS).chain(timer_rings).collect();
            let (writer, mut logs) = context.start_recording(manifest, &rings)?;
            let log = logs.remove(0);
            let timers = wakeups.map(|wakeups| TimerThread::on_each_cpu(&wakeups, spec.here, logs));
            Ok((writer, log, stamps, timers.unwrap_or_default()))
        });
        let (writer, log, stamps, timers) = match recording {
            Ok(recording) => recording,
            Err(error) => {
                codec.close(&mut transport);
                return Err(error);
            }
        };
        Ok(PingRun {
            spec: spec.clone(),
            transport,
            codec,
            sequence: ProbeSequence::new(ping),
            writer,
            log,
            stamps,
            timers,
            wakeup: Mutex::default(),
            socket_errors: BTreeMap::new(),
            listened_until: None,
        })
    }

    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }

    fn warm_up(&mut self, stop: &StopSignal) -> Result<(), MeasureError> {
        match Slice::warmup(&self.spec.warmup) {
            Some(slice) => self.run(&slice, stop.requested()),
            None => Ok(()),
        }
    }

    fn measure(&mut self, round: u32, rounds: u32, stop: &StopSignal) -> Result<(), MeasureError> {
        let before = self.transport.report().socket_errors;
        let outcome = self.run(&Slice::measuring(&self.spec.stop, round, rounds), stop.requested());
        for (kind, count) in self.transport.report().socket_errors {
            let more = count - before.get(&kind).copied().unwrap_or(0);
            if more > 0 {
                *self.socket_errors.entry(kind).or_default() += more;
            }
        }
        outcome
    }

    fn discard(self) {
        let PingRun { mut transport, codec, writer, log, timers, .. } = self;
        codec.close(&mut transport);
        writer.discard(all_logs(log, timers));
    }

    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError> {
        let PingRun { mut transport, codec, mut writer, mut log, stamps, timers, .. } = self;
        let (wakeup, socket_errors, listened_until) = (self.wakeup, self.socket_errors, self.listened_until);
        let strays = codec.strays();
        let instead =
            matches!(&codec, SenderCodec::Echo(echo) if echo.is_silent()).then(|| answering_instead(&transport));
        let reflector = codec.close(&mut transport);
        add_closing_facts(writer.manifest_mut(), Some(transport.path()));
        let (run, report) = (&mut writer.manifest_mut().run, transport.report());
        (run.reflector, run.strays, run.socket_errors) = (reflector, strays, socket_errors);
        (run.socket_drops, run.connection) = (report.socket_drops, report.connection);
        (run.dds, run.xdp) = (report.dds, report.xdp);
        let instead = instead.flatten().map(|address| (ANSWERED_FROM.to_owned(), address.to_string()));
        run.conditions.extend(instead);
        run.stamps = stamps.map(|stamps| {
            stamps.rest().for_each(|rest| log.push(SpoolEvent::Stamped(rest)));
            stamps.facts()
        });
        run.listened_until_ns = listened_until.map(Stamp::as_nanos);
        run.reflector_died = end.reflector_died.map(str::to_owned);
        run.wakeup = (!timers.is_empty()).then(|| wakeup.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(writer.finish_logs(all_logs(log, timers), end.ending, end.reason.map(str::to_owned))?)
    }
}

/// The log of the sender and those of the timer threads.
fn all_logs(log: EventLog, timers: Vec<TimerThread>) -> Vec<EventLog> {
    std::iter::once(log).chain(timers.into_iter().map(TimerThread::into_log)).collect()
}

/// The codec of probes and answers, by protocol.
enum SenderCodec {
    Native(Box<NativeSession>),
    Echo(Box<EchoCodec>),
}

impl SenderCodec {
    fn open(
        ping: &PingSpec,
        transport: &mut impl PathTransport,
        options: &SessionOptions<'_>,
    ) -> Result<SenderCodec, MeasureError> {
        Ok(match ping.protocol {
            Protocol::Echo => SenderCodec::Echo(Box::new(EchoCodec::new(ping.size_bytes, random_bytes()?))),
            Protocol::Native => SenderCodec::Native(Box::new(options.open(transport, SessionTraffic::probes(ping))?)),
        })
    }

    fn strays(&self) -> BTreeMap<String, u64> {
        match self {
            SenderCodec::Native(session) => session.strays(),
            SenderCodec::Echo(echo) => echo.strays(),
        }
    }

    fn close(self, transport: &mut impl PathTransport) -> Option<ReflectorReport> {
        match self {
            SenderCodec::Native(session) => session.close(transport, &Monotonic),
            SenderCodec::Echo(_) => None,
        }
    }
}
