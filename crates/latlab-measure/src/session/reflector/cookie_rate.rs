//! The rate of COOKIEs and its division between networks, so that a flood of HELLOs from some networks does not keep
//! senders of other networks out. Pure; time and chance are arguments.
//!
//! No HELLO waits: it is answered or dropped at once. The more HELLOs of a network came lately, the fuller the token
//! bucket has to be for its next one. Under a flood the level of the bucket settles where the flooding networks are just
//! answered, and what is below is left to networks with fewer HELLOs.

use std::net::IpAddr;

use super::admission::TokenBucket;
use crate::transport::prefix_of;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::TagKey;

/// The count of a network halves in each period.
const PERIOD: Nanos = Nanos::from_secs(4);
/// Counts of networks. With 10,000 flooding networks the count of another one is shared with one of them with a
/// probability of 14 %.
const COUNTS: usize = 1 << 16;

/// The limit on COOKIEs in a second.
pub(super) struct CookieRate {
    /// Of other hosts.
    bucket: TokenBucket,
    /// Of this host: neither does it take from others, nor others from it.
    loopback: TokenBucket,
    counts: Box<[RecentHellos]>,
    key: TagKey,
}

#[derive(Clone, Copy)]
struct RecentHellos {
    count: u32,
    period: u32,
}

impl CookieRate {
    /// A limit of `rate_per_second` for other hosts, and the same again for this host. `seed` must be secret: from it
    /// follows which networks share a count.
    pub(super) fn new(rate_per_second: u32, seed: &[u8; 32]) -> CookieRate {
        let bucket = TokenBucket::new(rate_per_second);
        let hash = blake3::keyed_hash(seed, b"counts of networks");
        CookieRate {
            loopback: bucket.clone(),
            bucket,
            counts: vec![RecentHellos { count: 0, period: 0 }; COUNTS].into_boxed_slice(),
            key: TagKey::new(&std::array::from_fn(|at| hash.as_bytes()[at])),
        }
    }

    /// Counts a HELLO that came from `from` at `now`, and returns whether it gets a COOKIE.
    pub(super) fn take(&mut self, from: IpAddr, now: Stamp<ReflectorClock>) -> bool {
        let Some(prefix) = prefix_of(from) else { return self.loopback.take(now) };
        let period = now.as_nanos().div_euclid(PERIOD.0) as u32;
        let recent = &mut self.counts[self.key.tag(&[prefix]) as usize % COUNTS];
        let halvings = period.wrapping_sub(recent.period);
        let count = recent.count.checked_shr(halvings).unwrap_or(0).saturating_add(1);
        *recent = RecentHellos { count, period };
        self.bucket.take_within(share(count), now)
    }
}

/// The part of a full bucket that a network with `count` recent HELLOs may have used up, in thousandths: all for the
/// first one, and half for very many, so that a network without competitors can open many sessions at once.
const fn share(count: u32) -> u32 {
    500 + 500 / count
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const RATE: u32 = 1_000;
    /// When a sender repeats its HELLO.
    const ATTEMPTS_AT_MS: [i64; 5] = [0, 200, 600, 1_200, 2_000];

    fn at(nanos: i64) -> Stamp<ReflectorClock> {
        Stamp::from_nanos(nanos)
    }

    fn host(network: u32, prefixes: u32) -> IpAddr {
        Ipv4Addr::from_bits(network + (prefixes << 8) + 7).into()
    }

    /// The number of 100 openings, one each 150 ms, that get a COOKIE within their five attempts, while a flood of 50,000 a
    /// second comes from `prefixes` networks in turn. `from`: the address of an opening.
    fn opened(prefixes: u32, from: fn(u32) -> IpAddr) -> usize {
        let mut cookies = CookieRate::new(RATE, &[7; 32]);
        let mut attempts: Vec<(i64, u32)> = (0..100)
            .flat_map(|opening| ATTEMPTS_AT_MS.map(|after| ((i64::from(opening) * 150 + after) * 1_000_000, opening)))
            .collect();
        attempts.sort_unstable();
        let (mut opened, mut flooded) = ([false; 100], 0u32);
        for (now, opening) in attempts {
            while i64::from(flooded) * 20_000 <= now {
                cookies.take(host(0x0a00_0000, flooded % prefixes), at(i64::from(flooded) * 20_000));
                flooded += 1;
            }
            opened[opening as usize] = opened[opening as usize] || cookies.take(from(opening), at(now));
        }
        opened.into_iter().filter(|opened| *opened).count()
    }

    #[test]
    fn a_flood_does_not_keep_senders_of_other_networks_out() {
        for (prefixes, least) in [(1, 97), (100, 97), (10_000, 75)] {
            let of_new_networks = opened(prefixes, |opening| host(0xc000_0000, opening));
            assert!(of_new_networks >= least, "{of_new_networks} of 100 against {prefixes} networks");
            if prefixes <= 100 {
                let of_one_network = opened(prefixes, |_| host(0xc000_0000, 0));
                assert!(of_one_network >= least, "{of_one_network} of 100 against {prefixes} networks");
            }
            let of_this_host = opened(prefixes, |_| IpAddr::from([127, 0, 0, 1]));
            assert_eq!(of_this_host, 100, "this host has a rate of its own");
        }
        let within_the_flood = opened(1, |_| host(0x0a00_0000, 0));
        assert!(within_the_flood < 50, "all of the flooding network compete: {within_the_flood}");
    }

    #[test]
    fn the_rate_and_the_burst_stay_limited_however_many_networks_send() {
        for prefixes in [1, 3, 50_000] {
            let mut cookies = CookieRate::new(RATE, &[7; 32]);
            let mut granted = |from_ms: i64, to_ms: i64| {
                let hellos = (from_ms * 50..to_ms * 50).map(|hello| (hello as u32 % prefixes, at(hello * 20_000)));
                hellos.filter(|(prefix, now)| cookies.take(host(0x0a00_0000, *prefix), *now)).count()
            };
            let first = granted(0, 2_000);
            assert!((2_000..=3_001).contains(&first), "a second's worth at once, and then the rate: {first}");
            let later = granted(2_000, 12_000);
            assert!((9_400..=10_600).contains(&later), "{later} of {prefixes} networks");
        }
    }

    #[test]
    fn a_network_without_competitors_can_use_half_a_second_s_worth_at_once() {
        let mut cookies = CookieRate::new(RATE, &[7; 32]);
        let burst = (0..2_000).filter(|_| cookies.take(host(0xc000_0000, 1), at(0))).count();
        assert!((500..=510).contains(&burst), "{burst}");
        let mut slow = CookieRate::new(1, &[7; 32]);
        let each_second = (0..10).filter(|second| slow.take(host(0xc000_0000, 1), at(second * 1_000_000_000))).count();
        assert_eq!(each_second, 10, "a full bucket is enough for any network");
    }
}
