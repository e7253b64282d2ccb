//! Probes during a stream: a ping in a session, a socket and a thread of its own.

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::clock::{Clock, Monotonic};
use crate::host::placement::AffinityGuard;
use crate::measure::ping::{ProbeSequence, SessionSender, run_slice};
use crate::measure::run::RunContext;
use crate::measure::session_opening::{SessionOptions, SessionTraffic};
use crate::measure::{CpuSource, MeasureError, Slice};
use crate::plan::{PingSpec, WaitMode};
use crate::recording::EventLog;
use crate::session::NativeSession;
use crate::transport::{UdpTransport, WaitStrategy};
use crate::units::{Nanos, SenderClock, Stamp};

/// A stream that is ended early, or whose receiver does not answer any more, waits no longer than this for the answers of
/// its probes; probes without an answer by then have neither a fate nor a row. With the 1.75 s after which the stream
/// notices the silence (`sender.rs`) that is less than the 2 s after which its command is to end.
const LINGER: Nanos = Nanos::from_millis(50);

/// A session for probes, open.
pub(crate) struct ProbeSession {
    spec: PingSpec,
    transport: UdpTransport,
    session: Box<NativeSession>,
    /// The CPUs of the thread that opened it, before any pin of the sender.
    affinity: AffinityGuard,
}

/// Probes that can be sent.
pub(crate) struct ConcurrentProbes {
    open: ProbeSession,
    sequence: ProbeSequence,
    log: EventLog,
    listened_until: Option<Stamp<SenderClock>>,
}

impl ProbeSession {
    /// Opens a session for the probes of `spec`, which rests while a rate is searched for and between slices. It waits in
    /// the kernel, whatever the stream does: probes that spin take a CPU from what they measure.
    pub(crate) fn open(spec: &PingSpec, context: &RunContext<'_>) -> Result<ProbeSession, MeasureError> {
        let waiting = WaitStrategy::new(WaitMode::Block, spec.schedule, spec.timeout_ns);
        let mut transport = UdpTransport::open(&spec.path, context.peer().probe_address(), waiting)?;
        let options = SessionOptions { lifetime: context.lifetime.resting(), ..context.sessions() };
        let session = Box::new(options.open(&mut transport, SessionTraffic::probes(spec))?);
        Ok(ProbeSession { spec: spec.clone(), transport, session, affinity: AffinityGuard::save(false) })
    }

    /// Makes it ready to send, with a log.
    pub(crate) fn armed(self, log: EventLog) -> ConcurrentProbes {
        let sequence = ProbeSequence::lingering(&self.spec, LINGER);
        ConcurrentProbes { open: self, sequence, log, listened_until: None }
    }

    /// Closes the session.
    pub(crate) fn close(mut self) {
        // The report of its reflector is not about the stream.
        let _ = self.session.close(&mut self.transport, &Monotonic);
    }
}

impl ConcurrentProbes {
    /// Sends the probes of `slice` from a thread of `scope`, and waits for their answers there.
    pub(crate) fn spawn<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        slice: Slice,
        stop: &'scope AtomicBool,
    ) -> io::Result<ScopedJoinHandle<'scope, Result<(), MeasureError>>> {
        Builder::new().name("probes".into()).spawn_scoped(scope, move || self.run(&slice, stop))
    }

    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let ConcurrentProbes {
            open: ProbeSession { spec, transport, session, affinity },
            sequence,
            log,
            listened_until,
        } = self;
        affinity.restore();
        let mut sender = SessionSender::new(transport, &Monotonic, &mut **session, log, CpuSource::Running);
        let ran = run_slice(&mut sender, sequence, slice, spec, stop);
        *listened_until = Some(Monotonic.now());
        ran.map_err(|source| MeasureError::Socket { peer: transport.peer_address().to_string(), source })
    }

    /// The end of the last slice, up to which answers were received.
    pub(crate) fn listened_until(&self) -> Option<Stamp<SenderClock>> {
        self.listened_until
    }

    /// Closes the session, unless the other end `is_gone`; returns the log.
    pub(crate) fn close(self, is_gone: bool) -> EventLog {
        if !is_gone {
            self.open.close();
        }
        self.log
    }
}
