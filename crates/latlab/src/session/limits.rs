//! What a reflector grants at most (rule R4). The upper bounds are compiled in; below them its owner chooses.

use crate::plan::defaults::{self, SIZE_MIN_BYTES};
use crate::transport::connections::ConnectionCaps;
use crate::units::Nanos;

/// Connections that may be there beside those with a session.
const SPARE_CONNECTIONS: u16 = 16;

/// A reflector's caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectorLimits {
    /// Sessions at a time. Each has 8 KiB of replay window.
    pub sessions: u16,
    /// Sessions at a time from one /24 (IPv4) or /64 (IPv6); loopback is exempt.
    pub sessions_per_prefix: u16,
    /// New sessions per second, from all together.
    pub new_sessions_per_second: u32,
    /// COOKIE messages per second: the only thing said to strangers.
    pub cookies_per_second: u32,
    /// The longest a session lasts.
    pub duration: Nanos,
    /// The longest a session lasts without a probe.
    pub idle: Nanos,
    /// The largest probe.
    pub size_bytes: u32,
    /// Bits of UDP payload a second that a down-stream may have; 0: there are none.
    pub down_bps: u64,
}

impl ReflectorLimits {
    /// What `serve` grants unless told otherwise.
    pub const DEFAULT: ReflectorLimits = ReflectorLimits {
        sessions: defaults::SERVE_SESSIONS,
        sessions_per_prefix: defaults::SERVE_SESSIONS_PER_PREFIX,
        new_sessions_per_second: defaults::SERVE_NEW_SESSIONS,
        cookies_per_second: defaults::SERVE_COOKIES,
        duration: defaults::SERVE_DURATION,
        idle: defaults::SERVE_IDLE,
        size_bytes: defaults::SIZE_MAX_BYTES,
        // A reflector that sends on its own is of use to others than its owner.
        down_bps: 0,
    };

    /// The most that can be granted.
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

    /// What a reflector grants that latlab starts for one command of its own: as many sessions as that has runs.
    pub fn own(sessions: u16) -> ReflectorLimits {
        ReflectorLimits { sessions, sessions_per_prefix: sessions, down_bps: 0, ..ReflectorLimits::MAX }
    }

    /// How many connections a listener takes with these limits: a few more than there may be sessions, since each comes
    /// without one; and as many in a second as COOKIEs, since each may ask for one.
    pub fn connections(&self) -> ConnectionCaps {
        let within = self.within_bounds();
        ConnectionCaps {
            connections: within.sessions + SPARE_CONNECTIONS,
            per_prefix: within.sessions_per_prefix + SPARE_CONNECTIONS,
            per_second: within.cookies_per_second,
        }
    }

    /// The stricter of these limits and the compiled-in bounds, one by one.
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

    /// These limits, if each lies between 1 (a probe's: 24 bytes) and the compiled-in bound.
    ///
    /// # Errors
    /// [`LimitError`] names the first that does not.
    pub fn check(self) -> Result<ReflectorLimits, LimitError> {
        let max = ReflectorLimits::MAX;
        let rows: [(&'static str, i64, i64, i64); 8] = [
            ("sessions", i64::from(self.sessions), 1, i64::from(max.sessions)),
            ("sessions per prefix", i64::from(self.sessions_per_prefix), 1, i64::from(max.sessions_per_prefix)),
            (
                "new sessions per second",
                i64::from(self.new_sessions_per_second),
                1,
                i64::from(max.new_sessions_per_second),
            ),
            ("cookies per second", i64::from(self.cookies_per_second), 1, i64::from(max.cookies_per_second)),
            ("duration in ns", self.duration.0, 1, max.duration.0),
            ("idle time in ns", self.idle.0, 1, max.idle.0),
            ("probe size in bytes", i64::from(self.size_bytes), i64::from(SIZE_MIN_BYTES), i64::from(max.size_bytes)),
            ("down-streams in bits a second", i64::try_from(self.down_bps).unwrap_or(i64::MAX), 0, max.down_bps as i64),
        ];
        match rows.into_iter().find(|(_, value, low, high)| value < low || value > high) {
            None => Ok(self),
            Some((limit, value, low, high)) => Err(LimitError { limit, value, low, high }),
        }
    }
}

/// A limit outside of the compiled-in bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot limit {limit} to `{value}`")]
pub struct LimitError {
    /// Which.
    pub limit: &'static str,
    /// The value asked for.
    pub value: i64,
    /// The least possible.
    pub low: i64,
    /// The most possible.
    pub high: i64,
}

impl LimitError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        Some(format!("the bounds {} to {} are compiled in", self.low, self.high))
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        Some("choose a value within the bounds".into())
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_bounds_hold_and_nothing_beyond() {
        let (limits, max) = (ReflectorLimits::DEFAULT, ReflectorLimits::MAX);
        assert_eq!(limits.check(), Ok(limits));
        assert_eq!(max.check(), Ok(max));
        assert_eq!(limits.within_bounds(), limits);
        let boundless = ReflectorLimits {
            sessions: u16::MAX,
            sessions_per_prefix: u16::MAX,
            new_sessions_per_second: u32::MAX,
            cookies_per_second: u32::MAX,
            duration: Nanos::MAX,
            idle: Nanos::MAX,
            size_bytes: u32::MAX,
            down_bps: u64::MAX,
        };
        assert_eq!(boundless.within_bounds(), max);
        for wrong in [
            ReflectorLimits { sessions: 1_025, ..limits },
            ReflectorLimits { sessions: 0, ..limits },
            ReflectorLimits { sessions_per_prefix: 0, ..limits },
            ReflectorLimits { new_sessions_per_second: 1_001, ..limits },
            ReflectorLimits { cookies_per_second: 0, ..limits },
            ReflectorLimits { duration: Nanos(0), ..limits },
            ReflectorLimits { idle: Nanos::MAX, ..limits },
            ReflectorLimits { size_bytes: 23, ..limits },
            ReflectorLimits { size_bytes: 65_508, ..limits },
            ReflectorLimits { down_bps: u64::MAX, ..limits },
        ] {
            let error = wrong.check().expect_err("out of bounds");
            assert!(error.to_string().contains(&format!("`{}`", error.value)));
        }
    }
}
