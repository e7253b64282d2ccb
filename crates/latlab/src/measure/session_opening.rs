//! The one place where this end opens sessions: of probes, streams, probes during a stream, and network loads.

use std::sync::atomic::AtomicBool;

use super::MeasureError;
use crate::clock::Monotonic;
use crate::plan::{PingSpec, Schedule, defaults};
use crate::session::{self, NativeSession, PreSharedKey, SessionParams, random_bytes};
use crate::transport::PathTransport;
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// How long a session must last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLifetime {
    /// The longest that the plan can take with all its runs; `None` if it has no bound.
    pub(crate) duration: Option<Nanos>,
    /// The longest wait of a run for its next slice; `None` if the plan has one run only.
    pub(crate) idle: Option<Nanos>,
}

impl SessionLifetime {
    /// A lifetime for a session that may rest during the whole plan.
    pub(crate) fn resting(self) -> SessionLifetime {
        let idle = self.idle.or(self.duration).unwrap_or_default().min(defaults::SERVE_IDLE);
        SessionLifetime { idle: Some(idle), ..self }
    }
}

/// What travels in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTraffic {
    /// Payload of each packet.
    pub(crate) size_bytes: u32,
    /// When packets leave.
    pub(crate) schedule: Schedule,
    /// How late answers may be.
    pub(crate) timeout: Nanos,
    /// How packets of a stream leave and are received.
    pub(crate) stream: StreamTerms,
    /// For a stream that the peer sends: the least gap between its packets.
    pub(crate) down_gap: Option<Nanos>,
}

impl SessionTraffic {
    /// The probes of `ping`.
    pub(crate) fn probes(ping: &PingSpec) -> SessionTraffic {
        SessionTraffic { schedule: ping.schedule, timeout: ping.timeout_ns, ..SessionTraffic::packets(ping.size_bytes) }
    }

    /// Packets of a stream.
    pub(crate) fn packets(size_bytes: u32) -> SessionTraffic {
        let (schedule, timeout) = (Schedule::Closed, Nanos::from_secs(1));
        SessionTraffic { size_bytes, schedule, timeout, stream: StreamTerms::NONE, down_gap: None }
    }
}

/// What every session of a run is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOptions<'a> {
    /// The key that both ends share.
    pub(crate) key: Option<&'a PreSharedKey>,
    pub(crate) lifetime: SessionLifetime,
    /// Gives up as soon as it is set.
    pub(crate) stop: &'a AtomicBool,
}

impl SessionOptions<'_> {
    /// Opens a session for `traffic` over `transport`.
    ///
    /// # Errors
    /// The peer does not answer or refuses, `stop` was set, or there is no randomness for the nonce.
    pub(crate) fn open(
        &self,
        transport: &mut impl PathTransport,
        traffic: SessionTraffic,
    ) -> Result<NativeSession, MeasureError> {
        let SessionTraffic { size_bytes, schedule, timeout, stream, down_gap } = traffic;
        let (peer, duration) = (transport.path().peer.to_string(), self.lifetime.duration);
        let params = SessionParams::new(peer, random_bytes()?, size_bytes, schedule, duration, timeout);
        let mut params = params.with_stream(stream);
        if let Some(gap) = down_gap {
            params = params.with_down_stream(gap);
        }
        params.terms.idle = params.terms.idle.max(self.lifetime.idle.unwrap_or_default());
        Ok(session::open(transport, &Monotonic, self.key, &params, self.stop)?)
    }
}
