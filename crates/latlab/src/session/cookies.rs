//! Tokens that prove an address, without remembering anybody: a keyed hash of address, nonce and a secret that
//! rotates.

use std::net::SocketAddr;

use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{CookieToken, Nonce};

/// A secret makes tokens for so long and is honoured as long again.
const ROTATION: Nanos = Nanos::from_secs(30);

/// Makes and checks tokens. All chance comes from the seed.
#[derive(Clone)]
pub(super) struct CookieJar {
    seed: [u8; 32],
    period: i64,
    current: [u8; 32],
    previous: [u8; 32],
}

impl CookieJar {
    /// A jar whose secrets follow from `seed`.
    pub(super) fn new(seed: [u8; 32]) -> CookieJar {
        let secret = |period| secret_of(&seed, period);
        CookieJar { seed, period: 0, current: secret(0), previous: secret(-1) }
    }

    /// The token for `from` and `nonce`, good for 30 to 60 s.
    pub(super) fn token(&mut self, from: SocketAddr, nonce: &Nonce, now: Stamp<ReflectorClock>) -> CookieToken {
        self.turn(now);
        token_under(&self.current, from, nonce)
    }

    /// Whether `token` was given to `from` for `nonce`, not long ago.
    pub(super) fn honours(
        &mut self,
        token: &CookieToken,
        from: SocketAddr,
        nonce: &Nonce,
        now: Stamp<ReflectorClock>,
    ) -> bool {
        self.turn(now);
        [self.current, self.previous].iter().any(|secret| {
            // Whole words are compared, so that the time says nothing of where they differ.
            let wanted = u128::from_be_bytes(token_under(secret, from, nonce));
            std::hint::black_box(wanted ^ u128::from_be_bytes(*token)) == 0
        })
    }

    fn turn(&mut self, now: Stamp<ReflectorClock>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_for_its_address_and_nonce_and_for_a_while() {
        let at = |seconds| Stamp::from_nanos(Nanos::from_secs(seconds).0);
        let mut jar = CookieJar::new([1; 32]);
        let from = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let nonce = [5; 16];
        let token = jar.token(from, &nonce, at(1_000));
        assert!(jar.honours(&token, from, &nonce, at(1_000)));
        assert!(jar.honours(&token, from, &nonce, at(1_030)), "its secret is the one before");
        assert!(!jar.honours(&token, from, &nonce, at(1_080)), "stale");
        assert!(jar.honours(&token, from, &nonce, at(1_000)), "the secrets come from the clock alone");
        assert!(!jar.honours(&token, SocketAddr::from(([192, 0, 2, 1], 4_001)), &nonce, at(1_000)));
        assert!(!jar.honours(&token, SocketAddr::from(([192, 0, 2, 2], 4_000)), &nonce, at(1_000)));
        assert!(!jar.honours(&token, from, &[6; 16], at(1_000)));
        assert!(!CookieJar::new([2; 32]).honours(&token, from, &nonce, at(1_000)));
    }
}
