//! The limits of a reflector (rule R4). Their upper bounds are compiled in; below them its owner chooses.

use crate::plan::defaults;
use crate::transport::ConnectionCaps;
use crate::units::Nanos;

/// Connections permitted in addition to those with a session.
const SPARE_CONNECTIONS: u16 = 16;

/// The limits of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectorLimits {
    /// Sessions at a time. Each has 8 KiB of replay window.
    pub sessions: u16,
    /// Sessions at a time from one /24 (IPv4) or /64 (IPv6); loopback is exempt.
    pub sessions_per_prefix: u16,
    /// New sessions per second, of all senders together.
    pub new_sessions_per_second: u32,
    /// COOKIEs per second: the only replies to senders that have not proved their address.
    pub cookies_per_second: u32,
    /// The longest duration of a session.
    pub duration: Nanos,
    /// The longest time of a session without a probe.
    pub idle: Nanos,
    /// The largest probe.
    pub size_bytes: u32,
    /// The rate of a down-stream, in bits of UDP payload a second; 0: no down-streams.
    pub down_bps: u64,
}

impl ReflectorLimits {
    /// The defaults of `serve`.
    pub const DEFAULT: ReflectorLimits = ReflectorLimits {
        sessions: defaults::SERVE_SESSIONS,
        sessions_per_prefix: defaults::SERVE_SESSIONS_PER_PREFIX,
        new_sessions_per_second: defaults::SERVE_NEW_SESSIONS,
        cookies_per_second: defaults::SERVE_COOKIES,
        duration: defaults::SERVE_DURATION,
        idle: defaults::SERVE_IDLE,
        size_bytes: defaults::SIZE_MAX_BYTES,
        // A reflector that sends on its own could be abused.
        down_bps: 0,
    };

    /// The compiled-in bounds.
    pub const MAX: ReflectorLimits = ReflectorLimits {
        sessions: defaults::SERVE_SESSIONS_MAX,
        sessions_per_prefix: defaults::SERVE_SESSIONS_MAX,
        new_sessions_per_second: defaults::SERVE_NEW_SESSIONS_MAX,
        cookies_per_second: defaults::SERVE_COOKIES_MAX,
        duration: defaults::SERVE_DURATION_MAX,
        idle: defaults::SERVE_IDLE_MAX,
        size_bytes: defaults::SIZE_MAX_BYTES,
        down_bps: defaults::STREAM_RATE_MAX_BPS,
    };

    /// The limits of a reflector that latlab starts for one command with so many sessions.
    pub fn own(sessions: u16) -> ReflectorLimits {
        ReflectorLimits { sessions, sessions_per_prefix: sessions, down_bps: 0, ..ReflectorLimits::MAX }
    }

    /// The limits of a listener's connections: a few more than sessions, since each begins without one, and as many a
    /// second as COOKIEs, since each may request one.
    pub fn connections(&self) -> ConnectionCaps {
        let within = self.within_bounds();
        ConnectionCaps {
            connections: within.sessions + SPARE_CONNECTIONS,
            per_prefix: within.sessions_per_prefix + SPARE_CONNECTIONS,
            per_second: within.cookies_per_second,
        }
    }

    /// The stricter of these limits and the compiled-in bounds, for each limit.
    pub fn within_bounds(self) -> ReflectorLimits {
        let max = ReflectorLimits::MAX;
        ReflectorLimits {
            sessions: self.sessions.min(max.sessions),
            sessions_per_prefix: self.sessions_per_prefix.min(max.sessions_per_prefix),
            new_sessions_per_second: self.new_sessions_per_second.min(max.new_sessions_per_second),
            cookies_per_second: self.cookies_per_second.min(max.cookies_per_second),
            duration: self.duration.min(max.duration),
            idle: self.idle.min(max.idle),
            size_bytes: self.size_bytes.min(max.size_bytes),
            down_bps: self.down_bps.min(max.down_bps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_above_the_bounds_are_reduced_to_them() {
        let (limits, max) = (ReflectorLimits::DEFAULT, ReflectorLimits::MAX);
        assert_eq!(limits.within_bounds(), limits);
        let unlimited = ReflectorLimits {
            sessions: u16::MAX,
            sessions_per_prefix: u16::MAX,
            new_sessions_per_second: u32::MAX,
            cookies_per_second: u32::MAX,
            duration: Nanos::MAX,
            idle: Nanos::MAX,
            size_bytes: u32::MAX,
            down_bps: u64::MAX,
        };
        assert_eq!(unlimited.within_bounds(), max);
    }
}
