//! Admission of senders to a reflector: limits with compiled-in upper bounds (rule R4), rate limits, and cookies, which
//! prove the address of a sender without state at the reflector.

use std::net::SocketAddr;

use crate::plan::defaults;
use crate::transport::ConnectionCaps;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{CookieToken, Nonce};

/// Connections permitted in addition to those with a session.
const SPARE_CONNECTIONS: u16 = 16;

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
    pub size_bytes: u32,
    /// The rate of a down-stream, in bits of UDP payload a second; 0: no down-streams.
    pub down_bps: u64,
}

impl ReflectorLimits {
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
    pub(crate) fn within_bounds(self) -> ReflectorLimits {
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

/// A secret makes tokens for so long, and is accepted for as long again.
const ROTATION: Nanos = Nanos::from_secs(30);

/// Makes and checks cookie tokens: a keyed hash of address, nonce and a secret that rotates. All randomness comes from
/// the seed.
#[derive(Clone)]
pub(super) struct CookieJar {
    seed: [u8; 32],
    period: i64,
    current: [u8; 32],
    previous: [u8; 32],
}

impl CookieJar {
    pub(super) fn new(seed: [u8; 32]) -> CookieJar {
        let secret = |period| secret_of(&seed, period);
        CookieJar { seed, period: 0, current: secret(0), previous: secret(-1) }
    }

    /// The token for `from` and `nonce`, valid for 30 to 60 s.
    pub(super) fn token(&mut self, from: SocketAddr, nonce: &Nonce, now: Stamp<ReflectorClock>) -> CookieToken {
        self.rotate(now);
        token_under(&self.current, from, nonce)
    }

    /// Whether `token` is a valid token for `from` and `nonce`.
    pub(super) fn verify(
        &mut self,
        token: &CookieToken,
        from: SocketAddr,
        nonce: &Nonce,
        now: Stamp<ReflectorClock>,
    ) -> bool {
        self.rotate(now);
        [self.current, self.previous].iter().any(|secret| {
            // Whole words are compared, so that the time does not depend on where they differ.
            let expected = u128::from_be_bytes(token_under(secret, from, nonce));
            std::hint::black_box(expected ^ u128::from_be_bytes(*token)) == 0
        })
    }

    fn rotate(&mut self, now: Stamp<ReflectorClock>) {
        let period = now.as_nanos().div_euclid(ROTATION.0);
        if period != self.period {
            self.period = period;
            self.current = secret_of(&self.seed, period);
            self.previous = secret_of(&self.seed, period.wrapping_sub(1));
        }
    }
}

fn secret_of(seed: &[u8; 32], period: i64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(seed);
    hasher.update(b"cookie").update(&period.to_be_bytes());
    *hasher.finalize().as_bytes()
}

fn token_under(secret: &[u8; 32], from: SocketAddr, nonce: &Nonce) -> CookieToken {
    let address = match from.ip() {
        std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(address) => address.octets(),
    };
    let mut input = [0; 34];
    input[..16].copy_from_slice(&address);
    input[16..18].copy_from_slice(&from.port().to_be_bytes());
    input[18..].copy_from_slice(nonce);
    let hash = blake3::keyed_hash(secret, &input);
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// A token bucket: a rate limit that permits a burst of one second's worth. Pure; the time is an argument.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    interval: Nanos,
    depth: Nanos,
    /// When the bucket will be full again.
    full_at: Option<Stamp<ReflectorClock>>,
}

impl TokenBucket {
    /// A full bucket for `rate_per_second`, at least 1.
    pub(super) fn new(rate_per_second: u32) -> TokenBucket {
        let interval = Nanos(1_000_000_000 / i64::from(rate_per_second.max(1)));
        TokenBucket { interval, depth: Nanos::from_secs(1), full_at: None }
    }

    pub(super) fn put_back(&mut self) {
        self.full_at = self.full_at.map(|full_at| full_at - self.interval);
    }

    /// Takes a token, if there is one at `now`.
    pub(super) fn take(&mut self, now: Stamp<ReflectorClock>) -> bool {
        self.take_within(1_000, now)
    }

    /// Takes a token, if afterwards at most `thousandths` of the tokens of a full bucket are missing. A full bucket always
    /// gives one.
    pub(super) fn take_within(&mut self, thousandths: u32, now: Stamp<ReflectorClock>) -> bool {
        let from = self.full_at.filter(|full_at| *full_at > now).unwrap_or(now);
        let full_at = from + self.interval;
        let missing_max = Nanos(self.depth.0 / 1_000 * i64::from(thousandths)).max(self.interval);
        let has_token = full_at - now <= missing_max;
        if has_token {
            self.full_at = Some(full_at);
        }
        has_token
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

    #[test]
    fn a_token_is_valid_for_its_address_and_nonce_until_its_secret_expires() {
        let at = |seconds| Stamp::from_nanos(Nanos::from_secs(seconds).0);
        let mut jar = CookieJar::new([1; 32]);
        let from = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let nonce = [5; 16];
        let token = jar.token(from, &nonce, at(1_000));
        assert!(jar.verify(&token, from, &nonce, at(1_000)));
        assert!(jar.verify(&token, from, &nonce, at(1_030)), "under the previous secret");
        assert!(!jar.verify(&token, from, &nonce, at(1_080)), "expired");
        assert!(jar.verify(&token, from, &nonce, at(1_000)), "the secrets depend on the clock alone");
        assert!(!jar.verify(&token, SocketAddr::from(([192, 0, 2, 1], 4_001)), &nonce, at(1_000)));
        assert!(!jar.verify(&token, SocketAddr::from(([192, 0, 2, 2], 4_000)), &nonce, at(1_000)));
        assert!(!jar.verify(&token, from, &[6; 16], at(1_000)));
        assert!(!CookieJar::new([2; 32]).verify(&token, from, &nonce, at(1_000)));
    }

    #[test]
    fn a_bucket_permits_a_second_s_worth_at_once_and_then_the_rate() {
        let mut bucket = TokenBucket::new(10);
        let at = |millis| Stamp::from_nanos(Nanos::from_millis(millis).0);
        let taken = |bucket: &mut TokenBucket, millis| (0..100).filter(|_| bucket.take(at(millis))).count();
        assert_eq!(taken(&mut bucket, 0), 10);
        assert_eq!(taken(&mut bucket, 99), 0);
        assert_eq!(taken(&mut bucket, 100), 1);
        assert_eq!(taken(&mut bucket, 600), 5);
        assert_eq!(taken(&mut bucket, 1_000_000), 10);
        (0..3).for_each(|_| bucket.put_back());
        assert_eq!(taken(&mut bucket, 1_000_000), 3);
    }
}
