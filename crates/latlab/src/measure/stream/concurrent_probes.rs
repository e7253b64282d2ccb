//! Probes beside a stream: a ping in a session, a socket and a thread of its own, while the stream is measured.

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::clock::{Clock, Monotonic};
use crate::host::placement::AffinityGuard;
use crate::measure::ping::{ProbeSequence, SessionSender, run_slice};
use crate::measure::{CpuSource, MeasureError, Peer, Slice};
use crate::plan::{PingSpec, WaitMode, defaults};
use crate::probe::Phase;
use crate::recording::EventLog;
use crate::session::{self, NativeSession, PreSharedKey, SessionParams, random_bytes};
use crate::transport::{UdpTransport, WaitStrategy};
use crate::units::{Nanos, SenderClock, Stamp};

/// A stream that was told to stop, or whose receiver fell silent, does not wait for the answers of its probes longer than
/// this: what nobody waited for has no fate and no row. With the 1.75 s after which the stream knows of the silence
/// (`stream.rs`) it is less than the 2 s after which its command is to end.
const LINGER: Nanos = Nanos::from_millis(50);

/// A session for probes, open.
pub(crate) struct ProbeSession {
    spec: PingSpec,
    transport: UdpTransport,
    session: Box<NativeSession>,
    /// Where this thread stood, which no pin of the sender's had reached yet.
    footing: AffinityGuard,
}

/// Probes that can be sent.
pub(crate) struct ConcurrentProbes {
    open: ProbeSession,
    course: ProbeSequence,
    log: EventLog,
    listened_until: Option<Stamp<SenderClock>>,
}

impl ProbeSession {
    /// Opens it towards `peer`, for `lasting`. It waits in the kernel, whatever the stream does: a probe that spins takes a
    /// CPU from what it measures.
    pub(crate) fn open(
        spec: &PingSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        (lasting, turns): (Option<Nanos>, Option<Nanos>),
        stop: &AtomicBool,
    ) -> Result<ProbeSession, MeasureError> {
        let waiting = WaitStrategy::new(WaitMode::Block, spec.schedule, spec.timeout_ns);
        let mut transport = UdpTransport::open(&spec.path, peer.probed_at(), waiting)?;
        let name = transport.peer_address().to_string();
        let (size_bytes, timeout) = (spec.size_bytes, spec.timeout_ns);
        let mut params = SessionParams::new(name, random_bytes()?, size_bytes, spec.schedule, lasting, timeout);
        // It rests while a rate is searched for, and between the turns of several sizes.
        let rests = turns.or(lasting).unwrap_or_default().min(defaults::SERVE_IDLE);
        params.terms.idle = params.terms.idle.max(rests);
        let session = session::open(&mut transport, &Monotonic, key, &params, stop)?;
        Ok(ProbeSession {
            spec: spec.clone(),
            transport,
            session: Box::new(session),
            footing: AffinityGuard::before(false),
        })
    }

    /// Ready to send, telling `log`.
    pub(crate) fn armed(self, log: EventLog) -> ConcurrentProbes {
        let course = ProbeSequence::lingering(&self.spec, LINGER);
        ConcurrentProbes { open: self, course, log, listened_until: None }
    }

    /// SessionSender the session.
    pub(crate) fn close(mut self) {
        // What its reflector would say is not about the stream.
        let _ = self.session.close(&mut self.transport, &Monotonic);
    }
}

impl ConcurrentProbes {
    /// Sends probes for `span` from a thread of `scope`, and waits for their answers there.
    pub(crate) fn spawn<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        (phase, span): (Phase, Nanos),
        stop: &'scope AtomicBool,
    ) -> io::Result<ScopedJoinHandle<'scope, Result<(), MeasureError>>> {
        let slice = Slice { phase, count: u64::MAX, duration: span };
        Builder::new().name("probes".into()).spawn_scoped(scope, move || self.run(&slice, stop))
    }

    fn run(&mut self, slice: &Slice, stop: &AtomicBool) -> Result<(), MeasureError> {
        let ConcurrentProbes { open: ProbeSession { spec, transport, session, footing }, course, log, listened_until } =
            self;
        footing.stand();
        let mut ends = SessionSender::new(transport, &Monotonic, &mut **session, log, CpuSource::Running);
        let ran = run_slice(&mut ends, course, slice, spec, stop);
        *listened_until = Some(Monotonic.now());
        ran.map_err(|source| MeasureError::Socket { peer: transport.peer_address().to_string(), source })
    }

    /// Until when answers were listened to.
    pub(crate) fn listened_until(&self) -> Option<Stamp<SenderClock>> {
        self.listened_until
    }

    /// SessionSender the session, unless the other end `is_gone`; the log comes back.
    pub(crate) fn close(self, is_gone: bool) -> EventLog {
        if !is_gone {
            self.open.close();
        }
        self.log
    }
}
