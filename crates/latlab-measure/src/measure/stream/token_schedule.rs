//! The due times of a stream's packets, computed from its start and its rate so that errors do not add up. Pure.

use crate::units::{Nanos, SenderClock, Stamp};

/// The burst of a stream without a rate, between two readings of the clock.
const BURST_UNPACED: u64 = 32;
/// A late stream sends the packets of this time at once, …
const BURST: Nanos = Nanos::from_millis(1);
/// … but at most this many, so that at an unreachable rate the clock is read every 16 ms, at 4 µs a packet, …
const BURST_PACKETS: u64 = 4_096;
/// … and skips packets that are later than this, the window of the reported rates.
const BACKLOG: Nanos = Nanos::from_millis(100);

/// A stream with limited bursts sleeps only if a burst lasts longer than this: a sleep ends about 50 µs late, when no more
/// than a burst must be due.
const SLEEP_MIN: Nanos = Nanos::from_micros(150);

/// The packets that are due at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Now {
        /// The number to send now, at least 1.
        packets: u64,
        /// Whether more than those are due: the loop then pauses between bursts.
        behind: bool,
    },
    /// The next packet is due after this time.
    In(Nanos),
}

/// Packet k is due k gaps after the start, independent of when the packets before it were sent: delays do not add up.
#[derive(Clone, Debug)]
pub struct TokenSchedule {
    start: Stamp<SenderClock>,
    /// Tokens of a packet, and tokens a second; `None`: a packet is always due.
    rate: Option<(u64, u64)>,
    /// The most packets of one burst; `None` for a load, whose bursts are limited by time.
    burst_max: Option<u64>,
    taken: u64,
    skipped: u64,
}

impl TokenSchedule {
    /// A schedule from `start` on with `tokens_per_second` tokens, of which each packet takes `tokens_per_packet`: bits, or
    /// thousandths of a packet.
    pub fn new(start: Stamp<SenderClock>, tokens_per_packet: u64, tokens_per_second: u64) -> TokenSchedule {
        let rate = Some((tokens_per_packet.max(1), tokens_per_second.max(1)));
        TokenSchedule { start, rate, burst_max: None, taken: 0, skipped: 0 }
    }

    /// A schedule from `start` on with this rate, rounded to thousandths; `None`: a packet is always due.
    pub fn at_rate(start: Stamp<SenderClock>, packets_per_second: Option<f64>) -> TokenSchedule {
        match packets_per_second {
            Some(pps) => TokenSchedule::new(start, 1_000, (pps * 1_000.0).round().max(1.0) as u64),
            None => TokenSchedule::unpaced(start),
        }
    }

    /// A schedule in which a packet is always due.
    pub fn unpaced(start: Stamp<SenderClock>) -> TokenSchedule {
        TokenSchedule { start, rate: None, burst_max: None, taken: 0, skipped: 0 }
    }

    /// The same schedule in bursts of `packets` at most, between which the clock is read.
    #[must_use]
    pub fn in_bursts_of(self, packets: u16) -> TokenSchedule {
        TokenSchedule { burst_max: Some(u64::from(packets.max(1))), ..self }
    }

    /// Whether the loop can sleep until packets are due; otherwise it must read the clock continuously.
    #[inline]
    pub fn sleeps(&self) -> bool {
        self.burst_max.is_none_or(|most| self.within(SLEEP_MIN) < most)
    }

    /// The packets that are due at `now`. Skips those that are too late.
    pub fn due(&mut self, now: Stamp<SenderClock>) -> Due {
        if self.rate.is_none() {
            return Due::Now { packets: self.burst_max.unwrap_or(BURST_UNPACED), behind: false };
        }
        let due = self.within(now - self.start) + 1;
        if due <= self.taken {
            return Due::In(self.due_at(self.taken) - now);
        }
        let burst = self.burst_max.unwrap_or_else(|| self.within(BURST).clamp(1, BURST_PACKETS));
        if due - self.taken > self.within(BACKLOG).max(burst) {
            let skipped = due - self.taken - burst;
            self.taken += skipped;
            self.skipped += skipped;
        }
        let waiting = due - self.taken;
        Due::Now { packets: waiting.min(burst), behind: waiting > burst }
    }

    /// Takes `packets` of the due ones as sent.
    #[inline]
    pub fn take(&mut self, packets: u64) {
        self.taken += packets;
    }

    /// The number of skipped packets.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The number of whole gaps in `span`.
    fn within(&self, span: Nanos) -> u64 {
        let Some((packet, second)) = self.rate else { return 0 };
        let tokens = span.0.max(0) as u128 * u128::from(second);
        u64::try_from(tokens / (u128::from(packet) * 1_000_000_000)).unwrap_or(u64::MAX - 1)
    }

    /// The due time of packet `number`, rounded up to a nanosecond.
    fn due_at(&self, number: u64) -> Stamp<SenderClock> {
        let Some((packet, second)) = self.rate else { return self.start };
        let span = (u128::from(number) * u128::from(packet) * 1_000_000_000).div_ceil(u128::from(second));
        self.start + Nanos(i64::try_from(span).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i64) -> Stamp<SenderClock> {
        Stamp::from_nanos(nanos)
    }

    /// Sends due packets and sleeps otherwise; `stall` advances the clock before the n-th reading. Returns sent packets, the
    /// largest burst and skipped packets.
    fn simulate(mut schedule: TokenSchedule, until_ns: i64, stall: impl Fn(u64) -> i64) -> (u64, u64, u64) {
        let (mut now, mut sent, mut largest, mut looks) = (0, 0, 0, 0);
        while now < until_ns {
            looks += 1;
            now += stall(looks);
            match schedule.due(at(now)) {
                Due::In(span) => {
                    assert!(span.0 > 0, "no wait of length zero");
                    now += span.0;
                }
                Due::Now { packets, behind } => {
                    schedule.take(packets);
                    sent += packets;
                    largest = largest.max(packets);
                    now += if behind { 50_000 } else { 0 };
                }
            }
        }
        (sent, largest, schedule.skipped())
    }

    #[test]
    fn the_rate_is_exact_although_gaps_are_not_whole_nanoseconds() {
        for (packet, second, expected) in
            [(11_200, 100_000_000, 8_929), (12, 7, 1), (3, 1_000_000, 333_334), (1_000, 30_000, 30)]
        {
            let (sent, largest, skipped) = simulate(TokenSchedule::new(at(0), packet, second), 1_000_000_000, |_| 0);
            assert_eq!((sent, skipped), (expected, 0), "{second} tokens, {packet} each");
            assert!(largest <= 1.max(second / packet / 1_000));
        }
    }

    #[test]
    fn delays_do_not_add_up_and_bursts_are_bounded() {
        // 10,000 packets a second; every tenth reading of the clock is 3 ms late.
        let late = |look: u64| if look.is_multiple_of(10) { 3_000_000 } else { 0 };
        let (sent, largest, skipped) = simulate(TokenSchedule::new(at(0), 1, 10_000), 1_000_000_000, late);
        assert!((9_960..=10_000).contains(&sent), "{sent}");
        assert_eq!((largest, skipped), (10, 0));
    }

    #[test]
    fn bursts_are_bounded_at_an_unreachable_rate() {
        let mut schedule = TokenSchedule::new(at(0), 1_400 * 8, 10_000_000_000_000);
        for now in [1, 1_000_000, 5_000_000_000] {
            let Due::Now { packets, .. } = schedule.due(at(now)) else { panic!("always behind") };
            assert!(packets <= BURST_PACKETS, "{packets} at {now} ns");
            schedule.take(packets);
        }
        assert!(schedule.skipped() > 1_000_000);
    }

    #[test]
    fn packets_beyond_the_backlog_are_skipped_and_counted() {
        let stall = |look: u64| if look == 100 { 400_000_000 } else { 0 };
        let (sent, largest, skipped) = simulate(TokenSchedule::new(at(0), 1, 10_000), 1_000_000_000, stall);
        assert!(largest <= 10);
        assert!(skipped > 3_900 && sent + skipped >= 9_990, "{sent} sent, {skipped} skipped");
    }

    #[test]
    fn a_slow_stream_sends_one_at_a_time() {
        let (sent, largest, skipped) = simulate(TokenSchedule::new(at(0), 1, 2), 3_000_000_000, |_| 0);
        assert_eq!((sent, largest, skipped), (6, 1, 0));
    }

    #[test]
    fn bursts_are_within_a_batch_and_the_rate_is_kept_with_late_wake_ups() {
        for (pps, batch) in
            [1_000, 70_000, 350_000, 630_000].into_iter().flat_map(|pps| [(pps, 1), (pps, 16), (pps, 64)])
        {
            let mut schedule = TokenSchedule::new(at(0), 1_000, pps * 1_000).in_bursts_of(batch);
            let (mut now, mut sent, mut looks) = (0, 0, 0);
            while now < 1_000_000_000 {
                looks += 1;
                now += match schedule.due(at(now)) {
                    // As the loop of a stream: sleeps end 50 µs late, every hundredth 3 ms.
                    Due::In(span) if schedule.sleeps() => {
                        span.0.max(50_000) + if looks % 100 == 0 { 3_000_000 } else { 50_000 }
                    }
                    Due::In(_) => 100,
                    Due::Now { packets, behind } => {
                        assert!((1..=u64::from(batch)).contains(&packets), "{packets} at {pps} packets/s");
                        schedule.take(packets);
                        sent += packets;
                        packets as i64 * 1_200 + if behind && schedule.sleeps() { 50_000 } else { 0 }
                    }
                };
            }
            assert!(sent.abs_diff(pps) * 200 <= pps, "{sent} of {pps} packets, at most {batch} at a time");
            assert_eq!(schedule.skipped(), 0, "{pps} packets/s, at most {batch} at a time");
        }
    }

    #[test]
    fn without_a_rate_a_burst_is_always_due() {
        let mut schedule = TokenSchedule::unpaced(at(5));
        assert_eq!(schedule.due(at(5)), Due::Now { packets: 32, behind: false });
        assert_eq!(schedule.skipped(), 0);
    }
}
