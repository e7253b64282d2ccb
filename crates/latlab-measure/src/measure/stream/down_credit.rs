//! The credit of a down-stream: how many packets the reflector may send, and when more is granted. Pure.

use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};

/// A stream that keeps its pace gets credit for three windows, so that one or two lost POLLs do not stop it.
const AHEAD: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3);
/// Any other stream gets credit for the packets of two windows, since granted credit cannot be revoked and is used also
/// after the end.
const AHEAD_UNPACED: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 2);
/// The first credit: a path of 20 Mbit/s carries these packets in 40 ms.
const PACKETS_MIN: u64 = 64;
/// The factor by which the credit grows at most, …
const GROWTH: u64 = 2;
/// … each time that half of it is used, at this interval at the earliest. 600,000 packets a second are reached in 15 ms.
const INTERVAL_MIN: Nanos = Nanos::from_millis(2);
/// A stream with a requested pace begins with the packets of this part of the slice, and of a window at most. So a path that
/// carries only a tenth of the pace is not sent to after the end, and one that drops the rest is offered the whole pace.
const SLICE_PARTS: i64 = 10;
/// The time beyond the end of the slice for which credit is granted, since so much of it is in flight.
const IN_FLIGHT: Nanos = defaults::STREAM_WINDOW;

#[derive(Clone, Copy, Debug)]
pub(super) struct StreamCredit {
    gap: Nanos,
    /// The credit beyond the packets that passed, in packets, before further limits.
    ahead: u64,
    /// When credit was last granted, and the packets that had passed then.
    granted_at: Stamp<SenderClock>,
    passed: u64,
    /// The credit that was granted then.
    granted: u64,
    is_first: bool,
    /// The time until more is granted, unless half of the credit is used before.
    wait: Nanos,
    has_pace: bool,
    /// The counts of one or two windows ago, and of at most one window ago.
    marks: [Mark; 2],
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Stamp<SenderClock>,
    passed: u64,
    arrived: u64,
}

impl StreamCredit {
    /// The credit of a stream with at least `gap` between packets.
    pub(super) fn new(now: Stamp<SenderClock>, gap: Nanos) -> StreamCredit {
        let marks = [Mark { at: now, passed: 0, arrived: 0 }; 2];
        StreamCredit {
            gap: gap.max(Nanos(1)),
            ahead: PACKETS_MIN,
            granted_at: now,
            passed: 0,
            granted: 0,
            is_first: true,
            wait: Nanos::ZERO,
            has_pace: false,
            marks,
        }
    }

    /// Begins a slice of length `span`. `has_pace`: the gap is a requested pace, and not only the least gap. What earlier
    /// slices showed of the path is used, as far as the slice is long enough.
    pub(super) fn begin(&mut self, now: Stamp<SenderClock>, span: Nanos, has_pace: bool) {
        let windows = span.0 as f64 / AHEAD_UNPACED.0 as f64;
        self.ahead = self.ahead.min((self.ahead as f64 * windows) as u64).max(PACKETS_MIN);
        if has_pace {
            let part = Nanos(span.0 / SLICE_PARTS).min(defaults::STREAM_WINDOW);
            self.ahead = self.ahead.max(self.paced(part));
        }
        (self.granted_at, self.granted, self.is_first, self.has_pace) = (now, 0, true, has_pace);
    }

    /// The time until credit is granted again, if `passed` packets have passed by `now`: a window after the last time, or
    /// sooner if half of it is used.
    #[inline]
    pub(super) fn due_in(&self, now: Stamp<SenderClock>, passed: u64) -> Nanos {
        let wait = match self.is_first {
            true => Nanos::ZERO,
            false if (passed - self.passed) * 2 >= self.granted.max(1) => INTERVAL_MIN,
            false => self.wait,
        };
        self.granted_at + wait - now
    }

    /// Grants credit at `now`, if `passed` packets have passed, of which `arrived` arrived, and `left` of the slice remains.
    /// Returns the number of packets.
    pub(super) fn grant(&mut self, now: Stamp<SenderClock>, passed: u64, arrived: u64, left: Nanos) -> u64 {
        let mark = Mark { at: now, passed, arrived };
        self.mark(mark);
        // At the first time nothing is known of this slice.
        let more = if self.is_first { 0 } else { passed.saturating_sub(self.passed) };
        let took = (now - self.granted_at).max(Nanos(1));
        let within = |span: Nanos| (more as f64 * span.0 as f64 / took.0 as f64).ceil() as u64;
        let grows = more * 2 >= self.ahead;
        if grows {
            // A thread that had to wait for its CPU makes a fast path look slow once, so the credit shrinks in steps.
            let carried = within(AHEAD_UNPACED).max(self.ahead / 8 * 7);
            self.ahead = (self.ahead * GROWTH).min(carried).min(self.carried(mark));
        } else if took >= defaults::STREAM_WINDOW {
            // On a path with a long delay the packets of one grant arrive together, and none in the next windows.
            self.ahead = (more * GROWTH).max(self.ahead / 8 * 7);
        }
        self.ahead = self.ahead.max(PACKETS_MIN);
        let keeps_pace = more > 0 && more as f64 * self.gap.0 as f64 >= took.0 as f64 * 0.9;
        let mut packets = self.ahead;
        if keeps_pace {
            packets = packets.max(self.paced(AHEAD));
        } else if more > 0 && left < AHEAD {
            // Behind its pace: no more than what passes until the end at the present rate.
            packets = packets.min(within(left));
        }
        packets = packets.min(self.paced(AHEAD)).min(self.paced(left + IN_FLIGHT)).max(1);
        // Packets that a queue dropped do not arrive: when half have been sent, the next answer reports that. If the credit
        // did not grow, a whole window is waited for.
        let half = Nanos(self.gap.saturating_mul(i64::try_from(packets).unwrap_or(i64::MAX)).0 / 2);
        let is_soon = grows || self.is_first;
        self.wait = if is_soon { half.max(INTERVAL_MIN).min(defaults::STREAM_WINDOW) } else { defaults::STREAM_WINDOW };
        (self.granted_at, self.passed, self.granted, self.is_first) = (now, passed, packets, false);
        packets
    }

    /// The packets of `span` at the pace.
    fn paced(&self, span: Nanos) -> u64 {
        (span.0.max(0) / self.gap.0) as u64
    }

    fn mark(&mut self, now: Mark) {
        if self.is_first {
            self.marks = [now; 2];
        } else if now.at - self.marks[1].at >= defaults::STREAM_WINDOW {
            self.marks = [self.marks[1], now];
        }
    }

    /// The limit of the credit if a queue drops most packets: then the arriving packets, and not the sent ones, measure the
    /// path.
    fn carried(&self, now: Mark) -> u64 {
        let [since, _] = self.marks;
        let (passed, arrived) = (now.passed - since.passed, now.arrived.saturating_sub(since.arrived));
        let took = (now.at - since.at).max(Nanos(1));
        if arrived * 2 < passed && !self.has_pace {
            (arrived as f64 * AHEAD_UNPACED.0 as f64 / took.0 as f64).ceil() as u64
        } else {
            u64::MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Nanos = Nanos::from_micros(100);

    fn at(span: Nanos) -> Stamp<SenderClock> {
        Stamp::from_nanos(span.0)
    }

    /// The packets sent until each step of 100 µs in a slice of `millis` and 0.5 s more, and the largest unused credit. The
    /// path carries `pps` after the first `burst` packets, with a delay of `steps` in each direction.
    fn sent(pps: u64, burst: u64, gap: Nanos, steps: usize, millis: i64) -> (Vec<u64>, u64) {
        let slice = Nanos::from_millis(millis);
        let mut credit = StreamCredit::new(at(Nanos::ZERO), gap);
        credit.begin(at(Nanos::ZERO), slice, false);
        let (mut given, mut sent, mut most) = (vec![0], vec![0], 0);
        for step in 0..(millis as usize + 500) * 10 {
            let now = Nanos(step as i64 * STEP.0);
            let back = |row: &[u64], steps: usize| step.checked_sub(steps).map_or(0, |then| row[then]);
            let passed = back(&sent, steps);
            let mut all = given[step];
            if now < slice && credit.due_in(at(now), passed) <= Nanos::ZERO {
                all = all.max(passed + credit.grant(at(now), passed, passed, slice - now));
                most = most.max(all - passed);
            }
            given.push(all);
            // As a token bucket: unused capacity is available later.
            let paced = 1 + (now.0 / gap.0.max(1)) as u64;
            let carried = burst + pps * now.0 as u64 / 1_000_000_000;
            sent.push(carried.min(paced).min(back(&given, steps)).max(sent[step]));
        }
        (sent, most)
    }

    #[test]
    fn a_fast_path_reaches_its_rate_soon_and_the_credit_of_a_slow_one_is_two_windows() {
        // (packets a second, burst, ms until the rate is reached, largest credit, ms beyond the end)
        for (pps, burst, half_by, most, beyond) in [
            (600_000, 0, 40, 130_000, 20),
            (100_000, 0, 20, 22_000, 20),
            (1_667, 22, 20, 340, 60),
            (1_667, 700, 20, 1_300, 100),
            (200, 0, 20, 64, 60),
        ] {
            let (sent, given) = sent(pps, burst, Nanos(1), 1, 1_000);
            assert!(given <= most, "{pps} + {burst}: {given}");
            let by = sent[half_by * 10];
            assert!(by * 2 >= pps * half_by as u64 / 1_000, "{pps} + {burst}: {by} by {half_by} ms");
            let all = *sent.last().expect("steps");
            let last = sent.iter().position(|sent| *sent == all).expect("the last");
            assert!(last <= 10_000 + beyond * 10, "{pps} + {burst}: the last one left after {last} steps");
            assert!(all * 100 >= pps * 95, "{pps} + {burst}: {all} in all");
        }
    }

    #[test]
    fn a_path_with_a_long_delay_is_filled_within_some_round_trips() {
        for steps in [250, 1_000, 1_500] {
            let (sent, _) = sent(100_000, 0, Nanos(1), steps, 8_000);
            let last_second = sent[80_000] - sent[70_000];
            assert!(last_second > 50_000, "{steps} steps each way: {last_second}");
        }
    }

    #[test]
    fn a_stream_that_keeps_its_pace_gets_three_windows() {
        let gap = Nanos::from_millis(1);
        let (sent, most) = sent(100_000, 0, gap, 5, 2_000);
        assert_eq!(most, 300);
        assert!((1_990..=2_110).contains(sent.last().expect("steps")), "{:?}", sent.last());
        assert!(
            sent[..20_000].windows(30).all(|pair| pair[29] > pair[0] || pair[29] == 0),
            "it never waits for credit"
        );
    }

    #[test]
    fn the_next_slice_begins_with_the_credit_of_a_slow_path() {
        let mut credit = StreamCredit::new(at(Nanos::ZERO), Nanos(1));
        credit.begin(at(Nanos::ZERO), Nanos::from_secs(1), false);
        for window in 0..10 {
            let now = Nanos(window * defaults::STREAM_WINDOW.0);
            let passed = 1_000 * window as u64;
            credit.grant(at(now), passed, passed, Nanos::from_secs(10) - now);
        }
        for (millis, expected) in [(1_000, 2_000), (100, 1_000), (1, 64)] {
            let mut next = credit;
            next.begin(at(Nanos::from_secs(2)), Nanos::from_millis(millis), false);
            assert_eq!(next.due_in(at(Nanos::from_secs(2)), 10_000), Nanos::ZERO);
            let given = next.grant(at(Nanos::from_secs(2)), 10_000, 10_000, Nanos::from_millis(millis));
            assert_eq!(given, expected, "{millis} ms");
        }
    }

    #[test]
    fn arriving_packets_limit_the_credit_if_most_are_dropped() {
        // All credit is used at once, and `arriving` of 1,000 packets arrive.
        for (arriving, least, most) in [(10, 64, 600), (600, 10_000, u64::MAX)] {
            let (mut credit, mut passed, mut given) = (StreamCredit::new(at(Nanos::ZERO), Nanos(1)), 0, 0);
            credit.begin(at(Nanos::ZERO), Nanos::from_secs(10), false);
            for millis in (0..1_000).step_by(2) {
                let now = at(Nanos::from_millis(millis));
                if credit.due_in(now, passed) <= Nanos::ZERO && passed < 1_000_000 {
                    given = credit.grant(now, passed, passed * arriving / 1_000, Nanos::from_secs(9));
                    passed += given;
                }
            }
            assert!((least..=most).contains(&given), "{arriving} of 1,000: {given}");
        }
    }
}
