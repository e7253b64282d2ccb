//! The intervals of a down-stream, from the counts of both ends at each TALLY. Pure.

use super::down_receiver::TallyPoint;
use super::meter::FlowCounts;
use crate::facts::IntervalCounts;
use crate::plan::defaults;
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};
use crate::wire::StreamTally;

/// The shortest row: a row ends with the first TALLY this long after the row before, since TALLYs arrive at uneven
/// intervals.
const ROW_MIN: Nanos = Nanos(defaults::STREAM_WINDOW.0 / 4 * 3);

/// A stream kept its pace if its packets, at that pace, fill this share of the time until the POLL after the last one.
const PACE_KEPT: f64 = 0.8;

/// The cost of counting at this end up to a TALLY.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountingCost {
    /// Datagrams that its socket dropped; `None` if the kernel does not report it.
    pub drops: Option<u64>,
    /// CPU time of its thread.
    pub cpu: Nanos,
}

/// One interval of one end, on that end's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DownRow {
    pub start_ns: i64,
    pub end_ns: i64,
    pub cpu: Option<Nanos>,
    pub seen: IntervalCounts,
}

/// Counts of the packets sent in a slice, as the reflector reported them.
#[derive(Clone, Copy, Debug)]
struct SenderReport {
    /// The TALLY after which the first packet could be sent.
    origin: StreamTally,
    latest: StreamTally,
    /// The end of the time of sending of the packets of `latest`.
    until: Stamp<ReflectorClock>,
}

impl From<StreamTally> for SenderReport {
    fn from(tally: StreamTally) -> SenderReport {
        SenderReport { origin: tally, latest: tally, until: tally.at }
    }
}

/// Counts of the packets that this end received in a slice.
#[derive(Clone, Copy, Debug)]
struct Counting {
    origin: TallyPoint,
    begin: Stamp<SenderClock>,
    until: Stamp<SenderClock>,
    last: TallyPoint,
    cost: CountingCost,
    polled: u64,
    delivered: u64,
    outside_window: u64,
    /// Whether no packet has arrived yet, and none is known to be sent.
    is_waiting: bool,
}

/// The intervals of both ends in a slice. A row of either end lies between two TALLYs. Packets that arrived after the
/// latest one are in no row yet, since it is unknown how many were sent after it; so at any end of a recording the
/// delivered packets are at most the sent ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownIntervals {
    gap: Nanos,
    sending: SenderReport,
    counting: Counting,
    /// The largest number of packets of the slice.
    most: u64,
    /// Whether the first and the last packet of the slice are sent.
    has_begun: bool,
    is_complete: bool,
}

impl DownIntervals {
    /// The intervals of a slice of at most `most` packets with this `gap`, which begins at `begin`. `ready`: the counts
    /// before it.
    pub(super) fn new(
        gap: Nanos,
        most: u64,
        begin: Stamp<SenderClock>,
        ready: TallyPoint,
        cost: CountingCost,
    ) -> DownIntervals {
        let counting = Counting {
            origin: ready,
            begin,
            until: begin,
            last: ready,
            cost,
            polled: 0,
            delivered: 0,
            outside_window: 0,
            is_waiting: true,
        };
        DownIntervals {
            gap,
            sending: SenderReport::from(ready.tally),
            counting,
            most,
            has_begun: false,
            is_complete: false,
        }
    }

    /// A TALLY from this instant on ends a row, or reports that no packet has been sent yet.
    pub(super) fn due(&self) -> Stamp<SenderClock> {
        match (self.has_begun, self.is_complete) {
            (_, true) => Stamp::from_nanos(i64::MAX),
            (true, _) => self.counting.until + ROW_MIN,
            (false, _) => self.counting.until + Nanos(1),
        }
    }

    /// The counts up to the latest row.
    pub(super) fn totals(&self) -> FlowCounts {
        let SenderReport { origin, latest, until } = self.sending;
        let Counting { begin, until: counted, delivered, .. } = self.counting;
        FlowCounts {
            sent: latest.packets.saturating_sub(origin.packets),
            delivered,
            sending: until - origin.at,
            counting: counted - begin,
        }
    }

    /// The rows of both ends up to `point`, if it is late enough to end a row, or no further one `is_to_follow`. `None`
    /// before the first packet, while the reflector waits for credit. `came`: when the first and the latest packet of the
    /// slice arrived.
    pub(super) fn up_to(
        &mut self,
        point: TallyPoint,
        cost: CountingCost,
        came: Option<(Stamp<SenderClock>, Stamp<SenderClock>)>,
        is_to_follow: bool,
    ) -> Option<[DownRow; 2]> {
        if point.tally.number <= self.sending.latest.number {
            return None;
        }
        if point.tally.packets == self.sending.origin.packets {
            self.sending = SenderReport::from(point.tally);
            let counting = &mut self.counting;
            (counting.begin, counting.until, counting.last, counting.cost) = (point.at, point.at, point, cost);
            return None;
        }
        // The row of the last packet includes its gap: it ends with the slice.
        self.has_begun = true;
        self.is_complete = point.tally.packets.saturating_sub(self.sending.origin.packets) >= self.most;
        if is_to_follow && point.at < self.due() {
            return None;
        }
        self.find_begin(point);
        let sent = self.sent(point.tally, point.tally.at);
        Some([sent, self.counted(point, cost, came, point.at)])
    }

    /// The rows up to the `last` TALLY of a slice, at `now`. The last packet was sent between two TALLYs, at the pace of
    /// those before; counting ended a gap after it arrived, when a further one would have been due.
    pub(super) fn last(
        &mut self,
        last: TallyPoint,
        cost: CountingCost,
        came: Option<(Stamp<SenderClock>, Stamp<SenderClock>)>,
        now: Stamp<SenderClock>,
    ) -> [Option<DownRow>; 2] {
        self.find_begin(last);
        let more = last.tally.packets.saturating_sub(self.sending.latest.packets);
        let sent = (more > 0).then(|| self.sent(last.tally, self.last_sent(last.tally)));
        let due = self.counting.until + self.gap.max(Nanos(1)).saturating_mul(i64::try_from(more).unwrap_or(i64::MAX));
        let until = came.map_or(now, |(_, latest)| (latest + self.gap).max(due)).min(now);
        let late = last.counts.packets.saturating_sub(self.counting.last.counts.packets);
        let counted = (more + late > 0).then(|| self.counted(last, cost, came, until));
        [sent, counted]
    }

    /// Sets the begin of sending if the first TALLY of the slice arrived after its first packet, which was sent after the
    /// begin of the slice at this end. Computed from time spans on the two clocks, without comparing their instants.
    fn find_begin(&mut self, point: TallyPoint) {
        let SenderReport { origin, latest, until } = &mut self.sending;
        if latest.number == self.counting.origin.tally.number {
            let begin = point.tally.at - (point.at - self.counting.begin);
            *until = begin.max(*until);
            (origin.at, latest.at) = (*until, *until);
        }
    }

    /// When the last packet was sent: by the granted gap, or by the pace of those before if that is slower.
    fn last_sent(&self, now: StreamTally) -> Stamp<ReflectorClock> {
        let SenderReport { origin, latest, until } = self.sending;
        let all = now.packets.saturating_sub(origin.packets);
        let before = latest.packets.saturating_sub(origin.packets);
        let granted = self.gap.saturating_mul(i64::try_from(all).unwrap_or(i64::MAX));
        let took = match before {
            // The pace is unknown, unless it was the granted one.
            0 if granted.0 as f64 >= (now.at - origin.at).0 as f64 * PACE_KEPT => granted,
            0 => now.at - origin.at,
            before => granted.max(Nanos(((latest.at - origin.at).0 as f64 * all as f64 / before as f64) as i64)),
        };
        let left = (origin.at + took).min(now.at + self.gap);
        if left > until { left } else { now.at }
    }

    fn sent(&mut self, now: StreamTally, until: Stamp<ReflectorClock>) -> DownRow {
        let from = std::mem::replace(&mut self.sending.latest, now);
        let start = std::mem::replace(&mut self.sending.until, until);
        DownRow {
            start_ns: start.as_nanos(),
            end_ns: until.as_nanos(),
            cpu: from.cpu.zip(now.cpu).map(|(from, now)| now - from),
            seen: IntervalCounts::Offered { packets: now.packets.saturating_sub(from.packets), refused: 0, skipped: 0 },
        }
    }

    fn counted(
        &mut self,
        now: TallyPoint,
        cost: CountingCost,
        came: Option<(Stamp<SenderClock>, Stamp<SenderClock>)>,
        until: Stamp<SenderClock>,
    ) -> DownRow {
        let counting = &mut self.counting;
        if std::mem::take(&mut counting.is_waiting) {
            // Each packet represents a gap: the last row ends a gap after the arrival of the last packet.
            let first = came.map_or(counting.begin, |(first, _)| first);
            counting.begin = counting.begin.max(first).min(until - Nanos(1));
            counting.until = counting.begin;
        }
        let (origin, since) = (counting.origin, std::mem::replace(&mut counting.last, now));
        let more = |count: fn(&TallyPoint) -> u64| count(&now).saturating_sub(count(&since));
        let in_all = |count: fn(&TallyPoint) -> u64| count(&now).saturating_sub(count(&origin));
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let polled = in_all(|point| point.tally.packets).saturating_sub(counting.polled);
        counting.polled += polled;
        // Packets that overtook the TALLY were sent after it: they belong to the next row.
        let undecided = counting.polled - counting.delivered - counting.outside_window;
        let delivered = in_all(|point| point.counts.packets).saturating_sub(counting.delivered).min(undecided);
        let outside = in_all(|point| point.counts.left_window).saturating_sub(counting.outside_window);
        let outside_window = outside.min(undecided - delivered);
        counting.delivered += delivered;
        counting.outside_window += outside_window;
        let before = std::mem::replace(&mut counting.cost, cost);
        let start = std::mem::replace(&mut counting.until, until);
        DownRow {
            start_ns: start.as_nanos(),
            end_ns: until.as_nanos(),
            cpu: Some(cost.cpu - before.cpu),
            seen: IntervalCounts::Counted {
                polled,
                delivered,
                reordered: narrow(more(|point| point.counts.reordered)),
                duplicates: narrow(more(|point| point.counts.seen_before)),
                outside_window: narrow(outside_window),
                // Counted modulo 2^32.
                socket_drops: before.drops.zip(cost.drops).map(|(from, now)| (now as u32).wrapping_sub(from as u32)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::DownCounts;

    const COST: CountingCost = CountingCost { drops: None, cpu: Nanos::ZERO };
    const GAP: Nanos = Nanos::from_millis(1);

    fn at(millis: i64) -> Stamp<SenderClock> {
        Stamp::from_nanos(Nanos::from_millis(millis).0)
    }

    /// The counts of both ends at a TALLY that arrived at `millis`; the reflector's clock is 7,000 s ahead.
    fn point(number: u64, millis: i64, sent: u64, arrived: u64) -> TallyPoint {
        let tally = StreamTally::plain(number, Stamp::from_nanos(Nanos::from_millis(millis + 7_000_000).0), sent);
        TallyPoint { at: at(millis), counts: DownCounts { packets: arrived, ..DownCounts::default() }, tally }
    }

    /// Before the slice 500 packets were sent and 490 counted.
    fn rows() -> DownIntervals {
        DownIntervals::new(GAP, 10_000, at(0), point(10, -50, 500, 490), COST)
    }

    fn packets(row: &DownRow) -> (u64, u64) {
        match row.seen {
            IntervalCounts::Offered { packets, .. } => (packets, 0),
            IntervalCounts::Counted { polled, delivered, .. } => (polled, delivered),
        }
    }

    #[test]
    fn delivered_packets_never_exceed_sent_ones() {
        // Packets that are sent after a TALLY may overtake it; none is lost.
        let points = [(11, 0, 500, 490), (12, 100, 600, 593), (13, 200, 700, 690), (14, 300, 800, 799)];
        let (mut rows, came) = (rows(), Some((at(1), at(299))));
        let (mut sent, mut decided, mut delivered, mut until) = (0, 0, 0, None);
        for (number, millis, reported, arrived) in points {
            let Some([offered, counted]) = rows.up_to(point(number, millis, reported, arrived), COST, came, true)
            else {
                assert_eq!(reported, 500, "before the first packet there is no row");
                continue;
            };
            sent += packets(&offered).0;
            decided += packets(&counted).0;
            delivered += packets(&counted).1;
            assert!(delivered <= decided && decided <= sent && sent == reported - 500, "{offered:?} {counted:?}");
            assert!(until.is_none_or(|until| until == counted.start_ns), "{counted:?}");
            until = Some(counted.end_ns);
            assert!(rows.up_to(point(number, millis, reported, arrived + 1), COST, came, true).is_none(), "once only");
        }
        assert_eq!((sent, decided, delivered), (300, 300, 300));
        let [offered, counted] = rows.last(point(15, 330, 810, 800), COST, Some((at(1), at(310))), at(400));
        let (offered, counted) = (offered.expect("10 more"), counted.expect("10 more"));
        assert_eq!((packets(&offered), packets(&counted)), ((10, 0), (10, 10)));
        assert_eq!(rows.totals().sent, rows.totals().delivered);
    }

    #[test]
    fn rows_keep_their_length_if_the_first_tally_is_lost() {
        for (first, expected) in [(Some(point(11, 1, 500, 490)), 99), (None, 100)] {
            let mut rows = rows();
            assert_eq!(rows.due(), at(0) + Nanos(1));
            assert!(first.is_none_or(|first| rows.up_to(first, COST, None, true).is_none()));
            let soon = point(12, 50, 550, 540);
            let mut ended = rows;
            assert!(ended.up_to(soon, COST, Some((at(1), at(50))), false).is_some(), "the last one of all");
            assert!(rows.up_to(soon, COST, Some((at(1), at(50))), true).is_none(), "too short for a row");
            let [offered, _] = rows.up_to(point(13, 100, 600, 590), COST, Some((at(1), at(100))), true).expect("a row");
            assert_eq!(offered.end_ns - offered.start_ns, Nanos::from_millis(expected).0);
            assert_eq!(rows.due(), at(175));
        }
    }

    #[test]
    fn losses_at_the_end_are_counted() {
        let mut lossy = rows();
        let came = Some((at(1), at(100)));
        assert!(lossy.up_to(point(11, 0, 500, 490), COST, None, true).is_none());
        lossy.up_to(point(12, 100, 600, 590), COST, came, true).expect("a row");
        let [_, counted] = lossy.last(point(13, 150, 640, 590), COST, came, at(200));
        let counted = counted.expect("40 were sent");
        assert_eq!((packets(&counted), counted.end_ns - counted.start_ns), ((40, 0), 40_000_000));
        let mut idle = rows();
        assert!(idle.up_to(point(11, 0, 500, 490), COST, None, true).is_none());
        assert_eq!(idle.last(point(12, 100, 500, 490), COST, None, at(200)), [None, None]);
        assert_eq!(idle.totals(), FlowCounts::default());
    }

    #[test]
    fn the_time_of_sending_includes_the_gap_of_the_last_packet() {
        // (sent packets at TALLYs at these ms, with a gap of 20 ms; the last TALLY; total ms of sending)
        let gap = Nanos::from_millis(20);
        for (points, last, expected) in [
            (vec![(100, 5), (200, 10)], (320, 15), 300),
            // A packet was sent just before the POLL, and none after it.
            (vec![(100, 6), (200, 11)], (320, 15), 300),
            (vec![], (120, 5), 100),
            (vec![(100, 6), (200, 11), (281, 15)], (281, 15), 300),
            // At half of the granted rate.
            (vec![(200, 5)], (420, 10), 400),
            (vec![], (200, 5), 200),
        ] {
            let mut rows = DownIntervals::new(gap, 15, at(0), point(10, -50, 500, 500), COST);
            assert!(rows.up_to(point(11, 0, 500, 500), COST, None, true).is_none());
            for (number, (millis, sent)) in (12..).zip(&points) {
                let came = Some((at(1), at(millis - 1)));
                rows.up_to(point(number, *millis, 500 + sent, 500 + sent), COST, came, true);
            }
            let (millis, sent) = last;
            let came = Some((at(1), at(millis - 40)));
            rows.last(point(20, millis, 500 + sent, 500 + sent), COST, came, at(millis + 50));
            assert_eq!(rows.totals().sending, Nanos::from_millis(expected), "{points:?} {last:?}");
        }
    }

    #[test]
    fn every_row_has_a_length() {
        for gap in [Nanos::ZERO, Nanos(1), GAP, Nanos::from_millis(100)] {
            for (sent, arrived) in [(1, 0), (1, 1), (2, 1), (3, 3)] {
                for has_row in [false, true] {
                    let mut rows = DownIntervals::new(gap, 15, at(0), point(10, -50, 500, 500), COST);
                    assert!(rows.up_to(point(11, 0, 500, 500), COST, None, true).is_none());
                    let came = (arrived > 0).then_some((at(100), at(100)));
                    let row =
                        has_row.then(|| rows.up_to(point(12, 100, 500 + sent - 1, 500), COST, came, true)).flatten();
                    let last = rows.last(point(13, 200, 500 + sent, 500 + arrived), COST, came, at(250));
                    for row in row.into_iter().flatten().chain(last.into_iter().flatten()) {
                        assert!(row.end_ns > row.start_ns, "{gap:?} {sent} {arrived} {has_row}: {row:?}");
                    }
                }
            }
        }
    }
}
