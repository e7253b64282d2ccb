//! What a sender wants of a session.

use crate::plan::Schedule;
use crate::units::Nanos;
use crate::wire::{Nonce, StreamTerms, Terms};

/// A session to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionParams {
    /// How the peer is called in messages: `192.0.2.9:9862`.
    pub peer: String,
    /// Fresh for every session (`random_bytes`): what comes back without it is not meant for us.
    pub nonce: Nonce,
    /// What the session is for.
    pub terms: Terms,
}

impl SessionParams {
    /// Time around a run that its session must last as well: opening others, warming up, closing.
    pub const MARGIN: Nanos = Nanos::from_secs(30);

    /// A session with `peer` for probes of `size_bytes` on `schedule` over `duration`, warm-up included (none: as
    /// long as the peer grants), with answers up to `timeout` late.
    pub fn new(
        peer: impl Into<String>,
        nonce: Nonce,
        size_bytes: u32,
        schedule: Schedule,
        duration: Option<Nanos>,
        timeout: Nanos,
    ) -> SessionParams {
        let longest_gap = match schedule {
            Schedule::Closed => Nanos::ZERO,
            Schedule::Periodic { interval_ns } => interval_ns.saturating_mul(2),
            // Gaps are longer than ten times their mean once in 22,000.
            Schedule::Poisson { mean_ns, .. } => mean_ns.saturating_mul(10),
        };
        let terms = Terms {
            size_bytes,
            interval: schedule.interval().unwrap_or(Nanos::ZERO),
            duration: duration.map_or(Nanos::ZERO, |duration| duration + timeout + SessionParams::MARGIN),
            // A closed loop waits for its time-out.
            idle: timeout.max(longest_gap),
            stream: StreamTerms::NONE,
            down: false,
        };
        SessionParams { peer: peer.into(), nonce, terms }
    }

    /// The same for a measured stream. What the peer does not know it does not grant.
    #[must_use]
    pub fn streaming(mut self, stream: StreamTerms) -> SessionParams {
        self.terms.stream = stream;
        self
    }

    /// The same for a stream that the peer sends, a packet in each `gap`: it may make the gap longer. Zero: as fast as it
    /// allows.
    #[must_use]
    pub fn going_down(mut self, gap: Nanos) -> SessionParams {
        (self.terms.down, self.terms.interval) = (true, gap);
        self
    }
}
