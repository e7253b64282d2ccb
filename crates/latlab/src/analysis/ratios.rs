//! Shares of probes, and how sure two of them are. In words: docs/metrics.md and docs/statistics.md.

use super::summary::{Deadline, SummaryOptions};
use super::tally::Counts;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::plan::defaults;
use crate::recording::manifest::Manifest;
use crate::sample::{INFINITE, Sample};
use crate::stats::{Interval, Share, share};
use crate::units::Nanos;

/// Shares of probes; none where there was nothing to take a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratios {
    /// Not answered within the time-out, of those sent (RFC 6673: late answers are losses).
    pub loss: Option<f64>,
    /// Answered after the time-out, of those sent.
    pub late: Option<f64>,
    /// Overtaken by the answer to a later probe, of those answered at all (RFC 4737).
    pub reordered: Option<f64>,
    /// Further answers, for each probe answered at all (RFC 5560).
    pub duplicate: Option<f64>,
    /// Not answered within the deadline, of all due.
    pub deadline_miss: Option<f64>,
    /// Where the loss ratio of more such probes would lie; none where no intervals were asked for.
    pub loss_interval: Option<Interval>,
    /// The same of the deadline's.
    pub deadline_miss_interval: Option<Interval>,
}

impl Ratios {
    pub(super) fn of(counts: &Counts, deadline: Option<Deadline>, intervals: &ShareIntervals) -> Ratios {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let arrived = counts.answered + counts.late;
        // Of as many probes as were counted: in a closed loop a refused probe misses the deadline without a round trip.
        let of_all = |share: &Share| deadline.is_some_and(|all| (share.hits, share.n) == (all.missed, all.due));
        Ratios {
            loss: share(counts.unanswered(), counts.sent),
            late: share(counts.late, counts.sent),
            reordered: share(counts.reordered, arrived),
            duplicate: share(counts.duplicates, arrived),
            deadline_miss: deadline.and_then(|deadline| share(deadline.missed, deadline.due)),
            loss_interval: intervals.lost.and_then(|share| share.interval),
            deadline_miss_interval: intervals.missed.filter(of_all).and_then(|share| share.interval),
        }
    }
}

/// Shares with their intervals, gathered from the samples while each is in memory: losses come in bursts, and only
/// their order tells how much a probe is worth.
pub(super) struct ShareIntervals {
    wished: bool,
    /// The metric that the recording is about.
    main: Metric,
    /// The deadline, and the metric that is held against it.
    deadline: Option<(Nanos, Metric)>,
    lost: Option<Share>,
    missed: Option<Share>,
}

impl ShareIntervals {
    /// Those that `wishes` ask of the run of `manifest`.
    pub(super) fn wished(wishes: &SummaryOptions, manifest: &Manifest) -> ShareIntervals {
        let judged = match (manifest.kind, manifest.spec.schedule().interval()) {
            (Kind::Ping, Some(_)) => Metric::ResponseTime,
            (kind, _) => kind.metric(),
        };
        let deadline = wishes.judging.deadline_ns.map(|deadline| (deadline, judged));
        ShareIntervals { wished: wishes.intervals, main: manifest.kind.metric(), deadline, lost: None, missed: None }
    }

    /// None: nobody knows in which order packets were lost.
    pub(super) fn none() -> ShareIntervals {
        ShareIntervals { wished: false, main: Metric::DeliveredRate, deadline: None, lost: None, missed: None }
    }

    /// Takes from `sample` what it can tell.
    pub(super) fn gather(&mut self, sample: &Sample) {
        if !self.wished {
            return;
        }
        if sample.metric == self.main {
            self.lost = Some(share(sample, defaults::CONFIDENCE, |value| value == INFINITE));
        }
        if let Some((deadline, _)) = self.deadline.filter(|(_, judged)| *judged == sample.metric) {
            self.missed = Some(share(sample, defaults::CONFIDENCE, |value| value > deadline.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{EVERY_MS, InMemory, but, closed, scheduled};
    use crate::analysis::summarise;
    use crate::plan::Schedule;
    use crate::probe::{Fate, ProbeRecord};
    use crate::stats::ratio;

    fn ratios(schedule: Schedule, rows: Vec<ProbeRecord>, intervals: bool) -> Ratios {
        let source = InMemory::of(schedule, rows);
        let mut wishes = SummaryOptions { intervals, ..SummaryOptions::of(&source.manifest.spec) };
        wishes.judging.deadline_ns = Some(Nanos::from_micros(60));
        summarise(&source, &wishes).expect("no windows asked for").ratios
    }

    #[test]
    fn ratios_are_over_what_they_say() {
        let fates = [Fate::Answered, Fate::Answered, Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent];
        let mut rows: Vec<_> =
            fates.iter().zip(0..).map(|(fate, seq)| but(scheduled(seq, 1_000, 10, 30), *fate)).collect();
        rows[0].duplicates = 3;
        rows[2].reordered = true;
        let source = InMemory::of(EVERY_MS, rows);
        let mut wishes = SummaryOptions::of(&source.manifest.spec);
        wishes.judging.deadline_ns = Some(Nanos::from_micros(35));
        let summary = summarise(&source, &wishes).expect("no windows asked for");
        let expected = Ratios {
            loss: Some(0.5),
            late: Some(0.25),
            reordered: Some(1.0 / 3.0),
            duplicate: Some(1.0),
            deadline_miss: Some(1.0),
            // Four probes say little, six that all missed a little more.
            loss_interval: summary.ratios.loss_interval,
            deadline_miss_interval: ratio(6, 6, 0.95).interval,
        };
        assert_eq!(summary.ratios, expected);
        let loss = summary.ratios.loss_interval.and_then(|interval| interval.low.zip(interval.high)).expect("bounded");
        assert!(loss.0 < 0.3 && loss.1 > 0.7, "{loss:?}");
        assert_eq!(summary.deadline, Some(Deadline { deadline_ns: Nanos(35_000), missed: 6, due: 6 }));
    }

    #[test]
    fn nothing_lost_and_nothing_missed_have_an_upper_end() {
        let on_time = |seq: u64| scheduled(seq, seq as i64 * 1_000, 3, 50);
        let in_turn = |seq: u64| closed(seq, seq as i64 * 60, 50);
        for (schedule, rows) in
            [(EVERY_MS, (0..200).map(on_time).collect::<Vec<_>>()), (Schedule::Closed, (0..200).map(in_turn).collect())]
        {
            let found = ratios(schedule, rows.clone(), true);
            let expected = ratio(0, 200, 0.95).interval;
            assert_eq!((found.loss_interval, found.deadline_miss_interval), (expected, expected));
            let found = ratios(schedule, rows, false);
            assert_eq!((found.loss, found.loss_interval, found.deadline_miss_interval), (Some(0.0), None, None));
        }
    }

    #[test]
    fn losses_in_a_burst_are_less_sure_than_scattered_ones() {
        let width = |is_lost: fn(u64) -> bool| {
            let fate = |seq| if is_lost(seq) { Fate::Lost } else { Fate::Answered };
            let rows = (0..10_000).map(|seq| but(closed(seq, seq as i64 * 60, 50), fate(seq)));
            let interval = ratios(Schedule::Closed, rows.collect(), true).loss_interval.expect("asked for");
            interval.high.expect("bounded") - interval.low.expect("bounded")
        };
        assert!(width(|seq| seq % 1_000 < 50) > 2.0 * width(|seq| seq % 20 == 0));
    }

    #[test]
    fn a_refused_probe_of_a_closed_loop_leaves_the_deadline_without_an_interval() {
        let fate = |seq| if seq == 7 { Fate::SendFailed } else { Fate::Answered };
        let rows = (0..100).map(|seq| but(closed(seq, seq as i64 * 60, 50), fate(seq))).collect();
        let found = ratios(Schedule::Closed, rows, true);
        assert_eq!((found.deadline_miss, found.deadline_miss_interval), (Some(0.01), None));
        assert!(found.loss_interval.is_some());
    }
}
