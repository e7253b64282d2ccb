//! The windows of a stream: when to ask the reflector, and what its tallies mean. Pure.

use crate::facts::WindowedRate;
use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::StreamTally;

/// POLLs that may be unanswered at a time, a power of two: of datagrams those of 5 s, the longest wait for an answer, each
/// repeated after 25 ms; over a connection those of 30 s, each repeated after 125 ms. The one that a deep queue answers may
/// be the first.
const ASKED: usize = 256;
/// A shorter window is joined to the next one: a repeated POLL cuts them unevenly.
const WINDOW_MIN: Nanos = Nanos(defaults::STREAM_WINDOW.0 / 2);

/// The state of the sender when it sent a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Stamp<SenderClock>,
    /// Packets that the kernel had taken.
    pub packets: u64,
}

/// Both ends at one POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterPoint {
    /// The sender's.
    pub sent: Sent,
    /// The reflector's.
    pub tally: StreamTally,
}

/// What both ends have counted in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    /// Packets that left.
    pub(crate) sent: u64,
    /// Packets that had arrived when the last question was answered.
    pub(crate) delivered: u64,
    /// How long sending took, on the sender's clock.
    pub(crate) sending: Nanos,
    /// From the first answer to the last, less the pause before the first packet, on the receiver's clock.
    pub(crate) counting: Nanos,
}

/// Follows one part of a stream. Nothing in here allocates.
#[derive(Clone, Debug)]
pub struct StreamMeter {
    asked: [(u64, Sent); ASKED],
    newest: u64,
    /// When the next POLL is due.
    next_poll: Stamp<SenderClock>,
    /// How long after an unanswered POLL the next one is sent …
    again: Nanos,
    /// … which doubles each time, up to this.
    again_max: Nanos,
    /// The begin of the current window, on the grid of windows.
    grid: Stamp<SenderClock>,
    answered_at: Stamp<SenderClock>,
    origin: Option<MeterPoint>,
    window: Option<MeterPoint>,
    last: Option<MeterPoint>,
    sent: Extremes,
    delivered: Extremes,
    windows: u64,
}

#[derive(Clone, Copy, Debug)]
struct Extremes {
    min_pps: f64,
    max_pps: f64,
}

impl Extremes {
    const NONE: Extremes = Extremes { min_pps: f64::INFINITY, max_pps: 0.0 };

    fn take(&mut self, pps: f64) {
        self.min_pps = self.min_pps.min(pps);
        self.max_pps = self.max_pps.max(pps);
    }

    fn over(self, mean_pps: f64, packet_bits: u64) -> WindowedRate {
        let bps = |pps: f64| pps * packet_bits as f64;
        WindowedRate { mean_bps: bps(mean_pps), min_bps: bps(self.min_pps), max_bps: bps(self.max_pps) }
    }
}

impl StreamMeter {
    /// A part that begins at `now`: the first POLL is due at once.
    pub fn new(now: Stamp<SenderClock>) -> StreamMeter {
        StreamMeter {
            asked: [(0, Sent { at: now, packets: 0 }); ASKED],
            newest: 0,
            next_poll: now,
            again: defaults::STREAM_POLL_AGAIN,
            again_max: defaults::STREAM_POLL_AGAIN,
            grid: now,
            answered_at: now,
            origin: None,
            window: None,
            last: None,
            sent: Extremes::NONE,
            delivered: Extremes::NONE,
            windows: 0,
        }
    }

    /// The same over a connection, which loses no POLL: on a slow path a POLL waits behind seconds of packets, and repeated
    /// ones would push it out of the memory before its answer comes.
    pub fn over_a_connection(now: Stamp<SenderClock>) -> StreamMeter {
        let again = Nanos(defaults::STREAM_POLL_AGAIN.0 * 5);
        StreamMeter { again, again_max: again, ..StreamMeter::new(now) }
    }

    /// A meter for the packets in flight behind the last one: its first POLL is due at once. No packet is added to a full
    /// queue any more, so that an unanswered POLL is repeated soon, and then less and less often. The count ends when the
    /// receiver answers: 25 ms too late would be 2.5 % of a second. Silence that has begun goes on.
    pub fn behind_the_last(&self, now: Stamp<SenderClock>) -> StreamMeter {
        let (again_max, answered_at) = (self.again_max, self.answered_at);
        StreamMeter { again: defaults::STREAM_POLL_SOON, again_max, answered_at, ..StreamMeter::new(now) }
    }

    /// How long until a POLL is due; zero or less: now.
    #[inline]
    pub fn poll_in(&self, now: Stamp<SenderClock>) -> Nanos {
        self.next_poll - now
    }

    /// POLL `number` leaves.
    pub fn asked(&mut self, number: u64, sent: Sent) {
        self.asked[number as usize % ASKED] = (number, sent);
        self.newest = number;
        self.next_poll = sent.at + self.again;
        self.again = Nanos(self.again.0 * 2).min(self.again_max);
    }

    /// `tally` arrived at `now`. Answers to forgotten POLLs, or to older ones than the latest answered, are ignored.
    pub fn answered(&mut self, tally: StreamTally, now: Stamp<SenderClock>) {
        let (number, sent) = self.asked[tally.number as usize % ASKED];
        if number != tally.number || self.last.is_some_and(|last| tally.number <= last.tally.number) {
            return;
        }
        self.answered_at = now;
        if number == self.newest {
            self.grid = (self.grid + defaults::STREAM_WINDOW).max(now);
            self.next_poll = self.grid;
        }
        let point = MeterPoint { sent, tally };
        self.last = Some(point);
        match self.window {
            None => (self.origin, self.window) = (Some(point), Some(point)),
            Some(begin) if tally.at - begin.tally.at >= WINDOW_MIN && sent.at > begin.sent.at => {
                self.sent.take(sent_pps(begin, point));
                self.delivered.take(delivered_pps(begin, point));
                self.windows += 1;
                self.window = Some(point);
            }
            Some(_) => {}
        }
    }

    /// The time since the latest answer, or since the begin.
    pub fn silent_for(&self, now: Stamp<SenderClock>) -> Nanos {
        now - self.answered_at
    }

    /// The first point.
    pub fn origin(&self) -> Option<&MeterPoint> {
        self.origin.as_ref()
    }

    /// The latest point.
    pub fn last(&self) -> Option<&MeterPoint> {
        self.last.as_ref()
    }

    /// Whole windows.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// The length of the whole windows together, on the reflector's clock; `None` without one.
    pub fn measured(&self) -> Option<Nanos> {
        let end = self.window.filter(|_| self.windows > 0)?;
        Some(end.tally.at - self.origin?.tally.at)
    }

    /// The rates sent and delivered, with `packet_bits` for each packet; `None` without a whole window.
    pub fn rates(&self, packet_bits: u64) -> Option<(WindowedRate, WindowedRate)> {
        let (origin, end) = (self.origin?, self.window.filter(|_| self.windows > 0)?);
        let sent = self.sent.over(sent_pps(origin, end), packet_bits);
        Some((sent, self.delivered.over(delivered_pps(origin, end), packet_bits)))
    }
}

fn sent_pps(from: MeterPoint, to: MeterPoint) -> f64 {
    to.sent.packets.saturating_sub(from.sent.packets) as f64 / (to.sent.at - from.sent.at).as_secs_f64()
}

fn delivered_pps(from: MeterPoint, to: MeterPoint) -> f64 {
    to.tally.packets.saturating_sub(from.tally.packets) as f64 / (to.tally.at - from.tally.at).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(number: u64, at_ms: i64, packets: u64) -> StreamTally {
        StreamTally::plain(number, Stamp::from_nanos(Nanos::from_millis(at_ms + 7_000_000).0), packets)
    }

    fn at(millis: i64) -> Stamp<SenderClock> {
        Stamp::from_nanos(Nanos::from_millis(millis).0)
    }

    /// POLLs at these milliseconds with so many packets sent; each answered a millisecond later with so many counted.
    fn metered(rows: &[(i64, u64, Option<u64>)]) -> StreamMeter {
        let mut meter = StreamMeter::new(at(0));
        for (number, (millis, sent, counted)) in (1..).zip(rows) {
            meter.asked(number, Sent { at: at(*millis), packets: *sent });
            if let Some(counted) = counted {
                meter.answered(tally(number, millis + 1, *counted), at(millis + 2));
            }
        }
        meter
    }

    #[test]
    fn an_answer_is_known_as_late_as_a_stream_waits_for_it() {
        for (meter, silence) in [
            (StreamMeter::new(Stamp::from_nanos(0)), defaults::STREAM_PATIENCE),
            (StreamMeter::over_a_connection(Stamp::from_nanos(0)), defaults::STREAM_SETTLES_CONNECTED),
        ] {
            let (mut meter, mut now, mut number) = (meter, Stamp::from_nanos(0), 0);
            while now < Stamp::from_nanos(silence.0) {
                number += 1;
                meter.asked(number, Sent { at: now, packets: number });
                now = now + meter.poll_in(now).max(Nanos(1));
            }
            meter.answered(tally(1, 0, 0), now);
            assert_eq!(meter.last().map(|point| point.sent.packets), Some(1), "{number} questions in {silence:?}");
        }
    }

    #[test]
    fn the_rate_of_each_end_is_on_its_own_clock() {
        let meter = metered(&[(0, 0, Some(0)), (100, 100, Some(100)), (200, 300, Some(200)), (300, 400, Some(300))]);
        let (sent, delivered) = meter.rates(8).expect("three windows");
        assert_eq!((meter.windows(), sent.min_bps, sent.max_bps), (3, 8_000.0, 16_000.0));
        assert_eq!(meter.measured(), Some(Nanos::from_millis(300)));
        assert!((sent.mean_bps - 400.0 / 0.3 * 8.0).abs() < 1e-6);
        assert_eq!(delivered, WindowedRate { mean_bps: 8_000.0, min_bps: 8_000.0, max_bps: 8_000.0 });
    }

    #[test]
    fn windows_are_joined_after_a_lost_tally_and_a_repeated_poll() {
        let rows =
            [(0, 0, Some(0)), (100, 100, None), (125, 125, Some(125)), (150, 150, Some(150)), (200, 200, Some(200))];
        let meter = metered(&rows);
        assert_eq!(meter.windows(), 2, "125 ms, then 75 ms");
        assert_eq!(meter.rates(1).map(|(_, delivered)| delivered.mean_bps.round()), Some(1_000.0));
    }

    #[test]
    fn polls_keep_to_the_grid_and_are_repeated_without_an_answer() {
        let mut meter = StreamMeter::new(at(0));
        assert_eq!(meter.poll_in(at(0)), Nanos::ZERO);
        meter.asked(1, Sent { at: at(0), packets: 0 });
        assert_eq!(meter.poll_in(at(1)), Nanos::from_millis(24));
        meter.answered(tally(1, 1, 0), at(2));
        assert_eq!(meter.poll_in(at(2)), Nanos::from_millis(98));
        meter.asked(2, Sent { at: at(100), packets: 0 });
        assert_eq!(meter.silent_for(at(900)), Nanos::from_millis(898));
        // An answer long after its window: the grid starts anew, or two POLLs would follow each other.
        meter.answered(tally(2, 850, 0), at(900));
        assert_eq!(meter.poll_in(at(900)), Nanos::ZERO);
    }

    #[test]
    fn polls_behind_the_last_packet_are_repeated_less_and_less_often() {
        let mut meter = metered(&[]).behind_the_last(at(0));
        let mut asked_at = Vec::new();
        let mut now = at(0);
        for number in 1..=8 {
            now = now + meter.poll_in(now);
            asked_at.push((now - at(0)).0 / 1_000_000);
            meter.asked(number, Sent { at: now, packets: 9 });
        }
        assert_eq!(asked_at, [0, 1, 3, 7, 15, 31, 56, 81]);
        assert_eq!(meter.silent_for(now), Nanos::from_millis(81));
        meter.answered(tally(8, 90, 9), now);
        assert_eq!(meter.last().map(|point| point.sent.packets), Some(9));
    }

    #[test]
    fn old_and_unknown_answers_are_ignored() {
        let mut meter = metered(&[(0, 0, Some(0)), (100, 100, None), (125, 125, Some(125))]);
        let before = meter.last().copied();
        meter.answered(tally(2, 101, 100), at(140));
        meter.answered(tally(3, 126, 999), at(141));
        meter.answered(tally(77, 126, 999), at(142));
        assert_eq!(meter.last().copied(), before);
        assert!(metered(&[(0, 0, Some(0))]).rates(1).is_none());
    }
}
