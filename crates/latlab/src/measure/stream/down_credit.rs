//! How much credit a down-stream gets, and when it is asked for more. Pure.

use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};

/// A stream that keeps its pace is given credit for three windows, so that a lost POLL or two stop nothing.
const AHEAD: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3);
/// Any other for what passes in two windows: what was given cannot be taken back, and is sent also after the end.
const AHEAD_OF_OTHERS: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 2);
/// It begins with so many packets: a path of 20 Mbit/s carries them in 40 ms …
const PACKETS_MIN: u64 = 64;
/// … and has up to so many times as many each time …
const GROWTH: u64 = 2;
/// … that half of them have passed, which is seen so soon at the earliest. 600,000 packets a second are reached in 15 ms.
const SOONEST: Nanos = Nanos::from_millis(2);
/// A stream that has a pace begins with what that makes of a tenth of the slice, and of a window at most: so a path that
/// carries a tenth of it is not sent to beyond the end, and one that throws the rest away is offered all of it.
const SLICE_PARTS: i64 = 10;
/// Near the end of a slice credit is given for so much more than what is left of it: that much of it is under way.
const UNDER_WAY: Nanos = defaults::STREAM_WINDOW;

/// The credit of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCredit {
    gap: Nanos,
    /// So many packets are ahead of those that passed, while nothing else forbids it.
    ahead: u64,
    /// When it was given last, and what had passed then.
    given_at: Stamp<SenderClock>,
    passed: u64,
    /// So many packets were it then.
    given: u64,
    is_first: bool,
    /// So long nothing more is given, unless half of it is used up.
    wait: Nanos,
    has_pace: bool,
    /// A window ago, or two, and since then at most a window ago.
    marks: [Mark; 2],
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Stamp<SenderClock>,
    passed: u64,
    arrived: u64,
}

impl StreamCredit {
    /// Of a stream whose packets are `gap` apart at least.
    pub(crate) fn new(now: Stamp<SenderClock>, gap: Nanos) -> StreamCredit {
        let marks = [Mark { at: now, passed: 0, arrived: 0 }; 2];
        StreamCredit {
            gap: gap.max(Nanos(1)),
            ahead: PACKETS_MIN,
            given_at: now,
            passed: 0,
            given: 0,
            is_first: true,
            wait: Nanos::ZERO,
            has_pace: false,
            marks,
        }
    }

    /// A slice begins, of length `span`, where the gap is a pace that was asked for or only the least: what is known of the
    /// path still holds, as far as the slice is long enough.
    pub(crate) fn begin(&mut self, now: Stamp<SenderClock>, span: Nanos, has_pace: bool) {
        let windows = span.0 as f64 / AHEAD_OF_OTHERS.0 as f64;
        self.ahead = self.ahead.min((self.ahead as f64 * windows) as u64).max(PACKETS_MIN);
        if has_pace {
            let part = Nanos(span.0 / SLICE_PARTS).min(defaults::STREAM_WINDOW);
            self.ahead = self.ahead.max(self.paced(part));
        }
        (self.given_at, self.given, self.is_first, self.has_pace) = (now, 0, true, has_pace);
    }

    /// How long until credit is given again, where `passed` packets passed by `now`: a window after the last time, and sooner
    /// where half of it is used up.
    #[inline]
    pub(crate) fn due_in(&self, now: Stamp<SenderClock>, passed: u64) -> Nanos {
        let wait = match self.is_first {
            true => Nanos::ZERO,
            false if (passed - self.passed) * 2 >= self.given.max(1) => SOONEST,
            false => self.wait,
        };
        self.given_at + wait - now
    }

    /// Credit is given at `now`, where `passed` packets passed, of which `arrived` arrived: for so many more, of a slice of
    /// which `left` is left.
    pub(crate) fn give(&mut self, now: Stamp<SenderClock>, passed: u64, arrived: u64, left: Nanos) -> u64 {
        let mark = Mark { at: now, passed, arrived };
        self.mark(mark);
        // The first time nothing is known of this slice.
        let more = if self.is_first { 0 } else { passed.saturating_sub(self.passed) };
        let took = (now - self.given_at).max(Nanos(1));
        let within = |span: Nanos| (more as f64 * span.0 as f64 / took.0 as f64).ceil() as u64;
        let grows = more * 2 >= self.ahead;
        if grows {
            // An end that was kept from its CPU makes a fast path look slow for once: credit shrinks in steps.
            let carried = within(AHEAD_OF_OTHERS).max(self.ahead / 8 * 7);
            self.ahead = (self.ahead * GROWTH).min(carried).min(self.carried(mark));
        } else if took >= defaults::STREAM_WINDOW {
            // On a long way what was given at once comes at once, and nothing for some windows.
            self.ahead = (more * GROWTH).max(self.ahead / 8 * 7);
        }
        self.ahead = self.ahead.max(PACKETS_MIN);
        let keeps_pace = more > 0 && more as f64 * self.gap.0 as f64 >= took.0 as f64 * 0.9;
        let mut packets = self.ahead;
        if keeps_pace {
            packets = packets.max(self.paced(AHEAD));
        } else if more > 0 && left < AHEAD {
            // Behind its pace: no more than what comes until the end, if it goes on as it did.
            packets = packets.min(within(left));
        }
        packets = packets.min(self.paced(AHEAD)).min(self.paced(left + UNDER_WAY)).max(1);
        // What a queue threw away does not come: by then half has left, and the answer tells. Once that was no news, it waits.
        let half = Nanos(self.gap.saturating_mul(i64::try_from(packets).unwrap_or(i64::MAX)).0 / 2);
        let is_soon = grows || self.is_first;
        self.wait = if is_soon { half.max(SOONEST).min(defaults::STREAM_WINDOW) } else { defaults::STREAM_WINDOW };
        (self.given_at, self.passed, self.given, self.is_first) = (now, passed, packets, false);
        packets
    }

    /// Packets that the pace makes of `span`.
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

    /// Where a queue throws most packets away, what leaves as fast as sends go is no measure of the path: then it is what
    /// arrives.
    fn carried(&self, now: Mark) -> u64 {
        let [since, _] = self.marks;
        let (passed, arrived) = (now.passed - since.passed, now.arrived.saturating_sub(since.arrived));
        let took = (now.at - since.at).max(Nanos(1));
        match arrived * 2 < passed && !self.has_pace {
            true => (arrived as f64 * AHEAD_OF_OTHERS.0 as f64 / took.0 as f64).ceil() as u64,
            false => u64::MAX,
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

    /// What was sent by each step of 100 µs, over a path that carries `pps` after the first `burst` packets, each way of it
    /// `steps` long, in a slice of `millis` and half a second more; and the most credit that was left by then.
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
                all = all.max(passed + credit.give(at(now), passed, passed, slice - now));
                most = most.max(all - passed);
            }
            given.push(all);
            // Like a bucket: what was not used is capacity later.
            let paced = 1 + (now.0 / gap.0.max(1)) as u64;
            let carried = burst + pps * now.0 as u64 / 1_000_000_000;
            sent.push(carried.min(paced).min(back(&given, steps)).max(sent[step]));
        }
        (sent, most)
    }

    #[test]
    fn a_fast_path_is_at_its_rate_soon_and_a_slow_one_has_two_windows_of_credit_at_most() {
        // (packets a second, at once, ms by which half of the time was used, most credit, ms beyond the end)
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
    fn a_long_way_is_filled_in_some_round_trips() {
        for steps in [250, 1_000, 1_500] {
            let (sent, _) = sent(100_000, 0, Nanos(1), steps, 8_000);
            let last_second = sent[80_000] - sent[70_000];
            assert!(last_second > 50_000, "{steps} steps each way: {last_second}");
        }
    }

    #[test]
    fn who_keeps_a_pace_is_given_three_windows_whatever_came_before() {
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
    fn a_slow_path_is_known_in_the_next_slice() {
        let mut credit = StreamCredit::new(at(Nanos::ZERO), Nanos(1));
        credit.begin(at(Nanos::ZERO), Nanos::from_secs(1), false);
        for window in 0..10 {
            let now = Nanos(window * defaults::STREAM_WINDOW.0);
            let passed = 1_000 * window as u64;
            credit.give(at(now), passed, passed, Nanos::from_secs(10) - now);
        }
        for (millis, expected) in [(1_000, 2_000), (100, 1_000), (1, 64)] {
            let mut next = credit;
            next.begin(at(Nanos::from_secs(2)), Nanos::from_millis(millis), false);
            assert_eq!(next.due_in(at(Nanos::from_secs(2)), 10_000), Nanos::ZERO);
            let given = next.give(at(Nanos::from_secs(2)), 10_000, 10_000, Nanos::from_millis(millis));
            assert_eq!(given, expected, "{millis} ms");
        }
    }

    #[test]
    fn where_most_is_thrown_away_what_arrives_sets_the_credit() {
        // All credit leaves at once, and so many packets of a thousand arrive.
        for (arriving, least, most) in [(10, 64, 600), (600, 10_000, u64::MAX)] {
            let (mut credit, mut passed, mut given) = (StreamCredit::new(at(Nanos::ZERO), Nanos(1)), 0, 0);
            credit.begin(at(Nanos::ZERO), Nanos::from_secs(10), false);
            for millis in (0..1_000).step_by(2) {
                let now = at(Nanos::from_millis(millis));
                if credit.due_in(now, passed) <= Nanos::ZERO && passed < 1_000_000 {
                    given = credit.give(now, passed, passed * arriving / 1_000, Nanos::from_secs(9));
                    passed += given;
                }
            }
            assert!((least..=most).contains(&given), "{arriving} of 1,000: {given}");
        }
    }
}
