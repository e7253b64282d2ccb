//! The rate of COOKIEs and its division between networks, so that a flood of HELLOs from some networks does not keep
//! senders of other networks out. Pure; time and chance are arguments.
//!
//! No HELLO waits: it is answered or dropped at once. The more HELLOs of a network came lately, the fuller the token
//! bucket has to be for its next one. Under a flood the level of the bucket settles where the flooding networks are just
//! answered, and what is below is left to networks with fewer HELLOs. A network with a recent session counts for less.

use std::net::IpAddr;

use super::admission::TokenBucket;
use crate::transport::prefix_of;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::TagKey;

/// HELLOs are counted in periods of this length: those of the current and of the previous one matter.
const PERIOD: Nanos = Nanos::from_secs(4);
/// Rows and columns of the counts. With 10,000 flooding networks each counter of another network is shared with one of
/// them with a probability of 26 %, and all four of a row with 0.5 %.
const ROWS: usize = 4;
const COLUMN_BITS: usize = 15;
const COLUMNS: usize = 1 << COLUMN_BITS;
/// Networks with a session that are remembered, and for how long.
const KNOWN_NETWORKS: usize = 1_024;
const KNOWN_LIFETIME: Nanos = Nanos::from_secs(3_600);
/// So many HELLOs of a network that had a session count as one of a network without: one lab may have many senders.
const KNOWN_WEIGHT: u32 = 16;

/// The limit on COOKIEs in a second.
pub(super) struct CookieRate {
    /// Of other hosts, by network.
    bucket: TokenBucket,
    /// Of this host: neither does it take from others, nor others from it.
    loopback: TokenBucket,
    recent: PrefixCounts,
    known: KnownPrefixes,
}

impl CookieRate {
    /// A limit of `rate_per_second` for other hosts, and the same again for this host. `seed` must be secret: from it
    /// follows which networks share counters.
    pub(super) fn new(rate_per_second: u32, seed: &[u8; 32]) -> CookieRate {
        let bucket = TokenBucket::new(rate_per_second);
        CookieRate {
            loopback: bucket.clone(),
            bucket,
            recent: PrefixCounts::new(seed),
            known: KnownPrefixes::new(seed),
        }
    }

    /// Counts a HELLO that came from `from` at `now`, and returns whether it gets a COOKIE.
    pub(super) fn take(&mut self, from: IpAddr, now: Stamp<ReflectorClock>) -> bool {
        match prefix_of(from) {
            None => self.loopback.take(now),
            Some(prefix) => {
                let count = self.recent.add(prefix, now);
                let weight = if self.known.contains(prefix, now) { KNOWN_WEIGHT } else { 1 };
                self.bucket.take_within(share(count.div_ceil(weight)), now)
            }
        }
    }

    /// A sender at `from` has proved the key at `now`.
    pub(super) fn set_known(&mut self, from: IpAddr, now: Stamp<ReflectorClock>) {
        if let Some(prefix) = prefix_of(from) {
            self.known.insert(prefix, now);
        }
    }
}

/// The part of a full bucket that a network with `count` recent HELLOs may have used up, in thousandths: all for the
/// first one, and half for very many, so that a network without competitors can open many sessions at once.
const fn share(count: u32) -> u32 {
    let count = if count == 0 { 1 } else { count };
    500 + 500 / count
}

/// Recent HELLOs by network, in memory of fixed size: a count-min sketch with conservative update (Cormode and
/// Muthukrishnan 2005; Estan and Varghese 2002). A count is never too low, and is too high if all counters of a network are
/// shared with others; each period shares them otherwise.
struct PrefixCounts {
    key: TagKey,
    period: i64,
    /// [`ROWS`] × [`COLUMNS`], saturating.
    current: Box<[u8]>,
    previous: Box<[u8]>,
}

impl PrefixCounts {
    fn new(seed: &[u8; 32]) -> PrefixCounts {
        let counts = || vec![0; ROWS * COLUMNS].into_boxed_slice();
        let key = key_of(seed, b"counts of prefixes");
        PrefixCounts { key, period: 0, current: counts(), previous: counts() }
    }

    /// Counts one more for `prefix` at `now` and returns its count.
    fn add(&mut self, prefix: u64, now: Stamp<ReflectorClock>) -> u32 {
        self.set_period(now);
        let cells = self.cells(prefix, self.period);
        let current = minimum(&self.current, cells);
        for cell in cells {
            self.current[cell] = self.current[cell].max(current.saturating_add(1));
        }
        let before = self.cells(prefix, self.period.wrapping_sub(1));
        u32::from(current) + 1 + u32::from(minimum(&self.previous, before))
    }

    fn set_period(&mut self, now: Stamp<ReflectorClock>) {
        let period = now.as_nanos().div_euclid(PERIOD.0);
        if period == self.period {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current.fill(0);
        if period != self.period.wrapping_add(1) {
            self.previous.fill(0);
        }
        self.period = period;
    }

    /// The counters of `prefix` in `period`, one in each row.
    fn cells(&self, prefix: u64, period: i64) -> [usize; ROWS] {
        let hash = self.key.tag(&[period as u64, prefix]);
        std::array::from_fn(|row| row * COLUMNS + ((hash >> (row * COLUMN_BITS)) as usize & (COLUMNS - 1)))
    }
}

/// Networks that had a session lately, in memory of fixed size: two networks may have the same place, and then the later
/// one has it.
struct KnownPrefixes {
    key: TagKey,
    places: Box<[Option<KnownPrefix>]>,
}

#[derive(Clone, Copy)]
struct KnownPrefix {
    prefix: u64,
    at: Stamp<ReflectorClock>,
}

impl KnownPrefixes {
    fn new(seed: &[u8; 32]) -> KnownPrefixes {
        let places = vec![None; KNOWN_NETWORKS].into_boxed_slice();
        KnownPrefixes { key: key_of(seed, b"known prefixes"), places }
    }

    fn insert(&mut self, prefix: u64, now: Stamp<ReflectorClock>) {
        let place = self.place(prefix);
        self.places[place] = Some(KnownPrefix { prefix, at: now });
    }

    fn contains(&self, prefix: u64, now: Stamp<ReflectorClock>) -> bool {
        let known = self.places[self.place(prefix)];
        known.is_some_and(|known| known.prefix == prefix && now - known.at <= KNOWN_LIFETIME)
    }

    fn place(&self, prefix: u64) -> usize {
        self.key.tag(&[prefix]) as usize % KNOWN_NETWORKS
    }
}

fn key_of(seed: &[u8; 32], purpose: &[u8]) -> TagKey {
    let hash = blake3::keyed_hash(seed, purpose);
    TagKey::new(&std::array::from_fn(|at| hash.as_bytes()[at]))
}

fn minimum(counts: &[u8], cells: [usize; ROWS]) -> u8 {
    cells.into_iter().map(|cell| counts[cell]).min().unwrap_or(0)
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
    fn opened(prefixes: u32, known: &[IpAddr], from: fn(u32) -> IpAddr) -> usize {
        let mut cookies = CookieRate::new(RATE, &[7; 32]);
        known.iter().for_each(|known| cookies.set_known(*known, at(0)));
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
            if !opened[opening as usize] && cookies.take(from(opening), at(now)) {
                opened[opening as usize] = true;
                cookies.set_known(from(opening), at(now));
            }
        }
        opened.into_iter().filter(|opened| *opened).count()
    }

    #[test]
    fn a_flood_does_not_keep_senders_of_other_networks_out() {
        for prefixes in [1, 100, 10_000] {
            let of_new_networks = opened(prefixes, &[], |opening| host(0xc000_0000, opening));
            assert!(of_new_networks >= 97, "{of_new_networks} of 100 against {prefixes} networks");
            let of_one_known = opened(prefixes, &[host(0xc000_0000, 0)], |_| host(0xc000_0000, 0));
            assert!(of_one_known >= 97, "{of_one_known} of 100 against {prefixes} networks");
            let of_this_host = opened(prefixes, &[], |_| IpAddr::from([127, 0, 0, 1]));
            assert_eq!(of_this_host, 100, "this host has a rate of its own");
        }
        let within_the_flood = opened(1, &[], |_| host(0x0a00_0000, 0));
        assert!(within_the_flood < 50, "all of the flooding network compete: {within_the_flood}");
    }

    #[test]
    fn a_flood_that_seems_to_come_from_a_known_network_leaves_tokens_to_others() {
        let opened = opened(1, &[host(0x0a00_0000, 0)], |opening| host(0xc000_0000, opening));
        assert!(opened >= 97, "{opened}");
    }

    #[test]
    fn a_network_is_known_for_an_hour_after_its_last_session() {
        let mut known = KnownPrefixes::new(&[7; 32]);
        known.insert(5, at(0));
        assert!(known.contains(5, at(KNOWN_LIFETIME.0)) && !known.contains(5, at(KNOWN_LIFETIME.0 + 1)));
        assert!(!known.contains(6, at(0)));
        (0..100_000).for_each(|prefix| known.insert(prefix, at(0)));
        assert!(known.contains(99_999, at(0)), "the last one replaces another one");
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

    #[test]
    fn counts_are_those_of_two_periods_and_never_too_low() {
        let mut counts = PrefixCounts::new(&[7; 32]);
        for prefix in 0..20_000 {
            for count in 1..=3 {
                assert!(counts.add(prefix, at(0)) >= count);
            }
        }
        let exact = (0..1_000u64).filter(|prefix| counts.add(*prefix, at(PERIOD.0)) == 4).count();
        assert!(exact > 900, "{exact}: few networks share all their counters");
        assert_eq!(counts.add(70_000, at(3 * PERIOD.0)), 1, "all of that is too long ago");
        for _ in 0..1_000 {
            counts.add(1, at(3 * PERIOD.0));
        }
        assert_eq!(counts.add(1, at(3 * PERIOD.0)), 256, "saturated");
    }
}
