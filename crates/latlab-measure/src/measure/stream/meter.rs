//! The windows of a stream: due times of POLLs, and rates computed from TALLYs. Pure.

use crate::facts::WindowedRate;
use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::StreamTally;

/// The most POLLs without an answer, a power of two: those of 5 s, the longest wait for an answer, one every 25 ms; over a
/// connection those of 30 s, one every 125 ms. After a deep queue the first of them may be answered.
const POLLS_MAX: usize = 256;
/// A shorter window, which a repeated POLL causes, is joined to the next one.
const WINDOW_MIN: Nanos = Nanos(defaults::STREAM_WINDOW.0 / 2);

/// The state of the sender when it sent a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The time of the POLL.
    pub at: Stamp<SenderClock>,
    /// Packets that the kernel had taken by then.
    pub packets: u64,
}

/// The counts of both ends at a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterPoint {
    pub sent: Sent,
    pub tally: StreamTally,
}

/// The counts of both ends in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    pub sent: u64,
    /// Packets that had arrived when the last POLL was answered.
    pub delivered: u64,
    /// The time of sending, on the sender's clock.
    pub sending: Nanos,
    /// The time from the first TALLY to the last, on the receiver's clock, less the pause before the first packet.
    pub counting: Nanos,
}

/// The meter of one part of a stream. Nothing in here allocates.
#[derive(Clone, Debug)]
pub struct StreamMeter {
    asked: [(u64, Sent); POLLS_MAX],
    newest: u64,
    /// When the next POLL is due.
    next_poll: Stamp<SenderClock>,
    /// The time after which an unanswered POLL is repeated …
    repeat_after: Nanos,
    /// … which doubles with each repetition, up to this.
    repeat_after_max: Nanos,
    /// The begin of the current window on the regular grid.
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
    /// The meter of a part that begins at `now`. The first POLL is due at once.
    pub fn new(now: Stamp<SenderClock>) -> StreamMeter {
        StreamMeter {
            asked: [(0, Sent { at: now, packets: 0 }); POLLS_MAX],
            newest: 0,
            next_poll: now,
            repeat_after: defaults::STREAM_POLL_AGAIN,
            repeat_after_max: defaults::STREAM_POLL_AGAIN,
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

    /// The meter of a part over a connection, which loses no POLL. On a slow path a POLL is queued behind seconds of
    /// packets, and too many repetitions would overwrite it before its answer arrives.
    pub(crate) fn over_a_connection(now: Stamp<SenderClock>) -> StreamMeter {
        let repeat_after = Nanos(defaults::STREAM_POLL_AGAIN.0 * 5);
        StreamMeter { repeat_after, repeat_after_max: repeat_after, ..StreamMeter::new(now) }
    }

    /// A meter for the packets in flight after the last one; its first POLL is due at once. Since no more packets are
    /// queued, an unanswered POLL is repeated soon, and then less and less often: the counting ends with the answer, and 25
    /// ms are 2.5 % of a second. The time without an answer continues from this meter.
    pub fn after_last_packet(&self, now: Stamp<SenderClock>) -> StreamMeter {
        let (repeat_after_max, answered_at) = (self.repeat_after_max, self.answered_at);
        StreamMeter { repeat_after: defaults::STREAM_POLL_SOON, repeat_after_max, answered_at, ..StreamMeter::new(now) }
    }

    /// The time until a POLL is due; zero or less if it is due now.
    #[inline]
    pub(crate) fn poll_in(&self, now: Stamp<SenderClock>) -> Nanos {
        self.next_poll - now
    }

    pub fn asked(&mut self, number: u64, sent: Sent) {
        self.asked[number as usize % POLLS_MAX] = (number, sent);
        self.newest = number;
        self.next_poll = sent.at + self.repeat_after;
        self.repeat_after = Nanos(self.repeat_after.0 * 2).min(self.repeat_after_max);
    }

    /// `tally` was received at `now`. Answers to overwritten POLLs, and to older ones than the latest answered, are ignored.
    pub fn answered(&mut self, tally: StreamTally, now: Stamp<SenderClock>) {
        let (number, sent) = self.asked[tally.number as usize % POLLS_MAX];
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

    /// The time since the latest answer, or since the begin of the part.
    pub(crate) fn silent_for(&self, now: Stamp<SenderClock>) -> Nanos {
        now - self.answered_at
    }

    pub fn origin(&self) -> Option<&MeterPoint> {
        self.origin.as_ref()
    }

    pub fn last(&self) -> Option<&MeterPoint> {
        self.last.as_ref()
    }

    /// The number of whole windows.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// The total length of the whole windows, on the reflector's clock; `None` without a whole window.
    pub fn measured(&self) -> Option<Nanos> {
        let end = self.window.filter(|_| self.windows > 0)?;
        Some(end.tally.at - self.origin?.tally.at)
    }

    /// The sent and the delivered rate, with `packet_bits` for each packet; `None` without a whole window.
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

    /// A meter after POLLs at these milliseconds, with so many sent packets, each answered with so many counted packets.
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
    fn an_answer_to_the_first_poll_is_accepted_until_the_time_out() {
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
    fn the_rate_of_each_end_is_computed_on_its_clock() {
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
    fn polls_are_regular_and_repeated_without_an_answer() {
        let mut meter = StreamMeter::new(at(0));
        assert_eq!(meter.poll_in(at(0)), Nanos::ZERO);
        meter.asked(1, Sent { at: at(0), packets: 0 });
        assert_eq!(meter.poll_in(at(1)), Nanos::from_millis(24));
        meter.answered(tally(1, 1, 0), at(2));
        assert_eq!(meter.poll_in(at(2)), Nanos::from_millis(98));
        meter.asked(2, Sent { at: at(100), packets: 0 });
        assert_eq!(meter.silent_for(at(900)), Nanos::from_millis(898));
        // After a very late answer the grid begins again, so that two POLLs do not follow each other.
        meter.answered(tally(2, 850, 0), at(900));
        assert_eq!(meter.poll_in(at(900)), Nanos::ZERO);
    }

    #[test]
    fn polls_after_the_last_packet_are_repeated_less_and_less_often() {
        let mut meter = metered(&[]).after_last_packet(at(0));
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
