//! Counts of fates, and ratios of the counts with their intervals. Definitions: docs/metrics.md and docs/statistics.md.

use std::collections::BTreeMap;

use serde::Serialize;

use super::estimand::Ratio;
use super::limits::{
    BEHIND_INTERVALS, BEHIND_SPAN, BURST_CHANCE, BURST_CONTRAST, BURST_SHARE, BURST_SPAN, SCHEDULE_LOST, SLIPPED,
};
use super::source::{RowVisitor, for_each_measured, is_all_answered, value_at, values_of_all};
use crate::metric::Metric;
use crate::plan::defaults;
use crate::probe::Fate;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};
use crate::stats::{Interval, Share, share};
use crate::units::Nanos;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed to the network: answered + late + lost.
    pub sent: u64,
    pub answered: u64,
    pub late: u64,
    pub lost: u64,
    pub send_failed: u64,
    /// Given up because the backlog was past its limit.
    pub not_sent: u64,
    /// Further answers after the first, over all probes.
    pub duplicates: u64,
    /// Probes whose answer came after the answer to a later one.
    pub reordered: u64,
}

impl Counts {
    /// Every probe that should have been sent.
    pub fn due(&self) -> u64 {
        self.sent + self.send_failed + self.not_sent
    }

    /// The share of the due probes that the kernel refused.
    pub(crate) fn send_failed_share(&self) -> f64 {
        self.send_failed as f64 / self.due().max(1) as f64
    }

    /// Whether so many due probes never left, 1 % or more, that those that did belong to another schedule.
    pub(crate) fn lacks_due(&self) -> bool {
        (self.due() - self.sent) as f64 >= SCHEDULE_LOST * self.due().max(1) as f64
    }

    /// Sent and not answered in time.
    pub fn unanswered(&self) -> u64 {
        self.late + self.lost
    }

    fn add(&mut self, fate: Fate, probes: u64) {
        self.sent += if fate.was_sent() { probes } else { 0 };
        *match fate {
            Fate::Answered => &mut self.answered,
            Fate::Late => &mut self.late,
            Fate::Lost => &mut self.lost,
            Fate::SendFailed => &mut self.send_failed,
            Fate::NotSent => &mut self.not_sent,
        } += probes;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Deadline {
    /// The deadline, from the due time on; in a closed loop from sending on.
    pub deadline_ns: Nanos,
    /// Missed it, unanswered and unsent ones included.
    pub missed: u64,
    pub due: u64,
}

/// Ratios of the counts; `None` if the denominator is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Not answered within the time-out, of those sent (RFC 6673: late answers are losses).
    #[serde(rename = "loss_ratio")]
    pub loss: Option<f64>,
    /// Confidence interval of the loss ratio; `None` if no intervals were requested.
    #[serde(rename = "loss_ratio_interval")]
    pub loss_interval: Option<Interval>,
    /// Answered after the time-out, of those sent.
    #[serde(rename = "late_ratio")]
    pub late: Option<f64>,
    /// Overtaken by the answer to a later probe, of those answered at all (RFC 4737).
    #[serde(rename = "reordered_ratio")]
    pub reordered: Option<f64>,
    /// Further answers, for each probe answered at all (RFC 5560).
    #[serde(rename = "duplicate_ratio")]
    pub duplicate: Option<f64>,
    /// Not answered within the deadline, of all due.
    #[serde(rename = "deadline_miss_ratio")]
    pub deadline_miss: Option<f64>,
    #[serde(rename = "deadline_miss_ratio_interval")]
    pub deadline_miss_interval: Option<Interval>,
}

impl Ratios {
    pub(super) fn of(counts: &Counts, deadline: Option<Deadline>, intervals: &ShareIntervals) -> Ratios {
        let value = |ratio: Ratio| ratio_of(ratio, counts, deadline);
        // A refused probe of a closed loop misses the deadline without a round trip: then the sample is not of all due.
        let is_of_all_due = |share: &Share| deadline.is_some_and(|all| (share.hits, share.n) == (all.missed, all.due));
        Ratios {
            loss: value(Ratio::Loss),
            late: value(Ratio::Late),
            reordered: value(Ratio::Reordered),
            duplicate: value(Ratio::Duplicate),
            deadline_miss: value(Ratio::DeadlineMiss),
            loss_interval: intervals.lost.and_then(|share| share.interval),
            deadline_miss_interval: intervals.missed.filter(is_of_all_due).and_then(|share| share.interval),
        }
    }

    pub(super) fn get(&self, ratio: Ratio) -> Option<f64> {
        match ratio {
            Ratio::Loss => self.loss,
            Ratio::Late => self.late,
            Ratio::Reordered => self.reordered,
            Ratio::Duplicate => self.duplicate,
            Ratio::DeadlineMiss => self.deadline_miss,
        }
    }
}

/// The value of `ratio`; `None` if its denominator is 0, or no deadline was given.
pub(super) fn ratio_of(ratio: Ratio, counts: &Counts, deadline: Option<Deadline>) -> Option<f64> {
    let answered_at_all = counts.answered + counts.late;
    let (part, whole) = match ratio {
        Ratio::Loss => (counts.unanswered(), counts.sent),
        Ratio::Late => (counts.late, counts.sent),
        Ratio::Reordered => (counts.reordered, answered_at_all),
        Ratio::Duplicate => (counts.duplicates, answered_at_all),
        Ratio::DeadlineMiss => deadline.map_or((0, 0), |deadline| (deadline.missed, deadline.due)),
    };
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Ratios with their intervals, taken from each sample while it is in memory: losses come in bursts, and only their
/// order shows how many independent observations the probes are worth.
#[derive(Default)]
pub(super) struct ShareIntervals {
    /// The main metric of the recording; `None` if no intervals were requested.
    main: Option<Metric>,
    /// The deadline, and the metric that is compared with it.
    deadline: Option<(Nanos, Metric)>,
    lost: Option<Share>,
    missed: Option<Share>,
}

impl ShareIntervals {
    /// Intervals of a recording whose main metric is `main`; the deadline is compared with `waited`.
    pub(super) fn of(main: Metric, deadline: Option<Nanos>, waited: Metric) -> ShareIntervals {
        let deadline = deadline.map(|deadline| (deadline, waited));
        ShareIntervals { main: Some(main), deadline, ..ShareIntervals::default() }
    }

    /// The probes that were lost or late; `None` if no intervals were requested.
    pub(super) fn lost(&self) -> Option<Share> {
        self.lost
    }

    /// Takes from `sample` the ratios that it holds.
    pub(super) fn take(&mut self, sample: &Sample) {
        let Some(main) = self.main else { return };
        if sample.metric == main {
            self.lost = Some(share(sample, defaults::CONFIDENCE, |value| value == INFINITE));
        }
        if let Some((deadline, _)) = self.deadline.filter(|(_, waited)| *waited == sample.metric) {
            self.missed = Some(share(sample, defaults::CONFIDENCE, |value| value > deadline.0));
        }
    }
}

/// The counts of a run and its extent.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCounts {
    pub(super) counts: Counts,
    /// Sent more than [`SLIPPED`] after they were due.
    pub(super) slipped: u64,
    /// Sent so late that the schedule was not kept: [`BEHIND_INTERVALS`], [`BEHIND_SPAN`].
    pub(super) behind: u64,
    /// Missed the deadline, over all due probes.
    missed: u64,
    deadline: Option<Nanos>,
    behind_from: Nanos,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    /// The last arrival of an answer, late ones included.
    last_arrival_ns: Option<i64>,
    /// The last burst, which ends the run if no later probe was answered.
    burst: LossBurst,
    /// Probes of the longest burst before an answered probe.
    longest_burst: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LossBurst {
    probes: u64,
    first_sent_ns: i64,
    last_sent_ns: i64,
}

/// Answers that end before the run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndOfAnswers {
    /// From the first probe to the first one of those that were lost at the end.
    pub(super) after: Nanos,
    /// From the first probe to the last one.
    pub(super) sending: Nanos,
    pub(super) probes: u64,
}

impl RunCounts {
    /// No probes yet, of a run with this `deadline`, if it has one, and this `interval`, if it has a schedule.
    pub(super) fn new(deadline: Option<Nanos>, interval: Option<Nanos>) -> RunCounts {
        let behind_from = BEHIND_SPAN.max(interval.unwrap_or_default().saturating_mul(BEHIND_INTERVALS));
        RunCounts { deadline, behind_from, ..RunCounts::default() }
    }

    /// Those of a run without probes.
    pub(super) fn of_counts(counts: Counts, duration: Nanos) -> RunCounts {
        RunCounts { counts, first_ns: Some(0), last_ns: Some(duration.0), ..RunCounts::default() }
    }

    /// Adds probes that were lost and have no row.
    pub(super) fn add_lost(&mut self, probes: u64) {
        self.counts.sent = self.counts.sent.saturating_add(probes);
        self.counts.lost = self.counts.lost.saturating_add(probes);
        if self.deadline.is_some() {
            self.missed = self.missed.saturating_add(probes);
        }
    }

    /// From the first measured probe (due, or sent in a closed loop) to the last answer or send.
    pub(super) fn duration(&self) -> Nanos {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => Nanos(last.saturating_sub(first).max(0)),
            _ => Nanos::ZERO,
        }
    }

    /// Probes that missed `deadline_ns`, the deadline that this counted by.
    pub(super) fn deadline(&self, deadline_ns: Option<Nanos>) -> Option<Deadline> {
        deadline_ns.map(|deadline_ns| Deadline { deadline_ns, missed: self.missed, due: self.counts.due() })
    }

    /// The end of the answers, if the lost probes at the end of the run are not just some of many that the path loses.
    ///
    /// All of these are true of the burst at the end:
    ///
    /// - It has many more probes than the longest burst before: [`BURST_CONTRAST`].
    /// - It is improbable, if each of its probes was lost with the share of the probes before it (rule of succession, which
    ///   needs no lost one): [`BURST_CHANCE`].
    /// - While its probes were sent, no answer arrived for a considerable part of the run, not even a late one to a probe
    ///   before it: [`BURST_SHARE`], and [`BURST_SPAN`] or half of the probes.
    pub(super) fn end_of_answers(&self) -> Option<EndOfAnswers> {
        let LossBurst { probes, first_sent_ns, last_sent_ns } = self.burst;
        let first_ns = self.first_ns.filter(|_| self.counts.answered + self.counts.late > 0)?;
        let since_first = |at: i64| Nanos(at.saturating_sub(first_ns));
        let (after, sending) = (since_first(first_sent_ns), since_first(last_sent_ns));
        let before = self.counts.sent - probes;
        let lost_share = (self.counts.lost - probes + 1) as f64 / (before + 2) as f64;
        // Answers to earlier probes may still arrive while those of the burst are sent.
        let silent = sending - after.max(self.last_arrival_ns.map_or(Nanos::ZERO, since_first));
        let is_unlike_path =
            probes >= self.longest_burst * BURST_CONTRAST && lost_share.powf(probes as f64) <= BURST_CHANCE;
        let is_long = silent.0 as f64 >= BURST_SHARE * sending.0 as f64 && (silent >= BURST_SPAN || probes >= before);
        (is_unlike_path && is_long).then_some(EndOfAnswers { after, sending, probes })
    }

    fn count_in_burst(&mut self, fate: Fate, sent: Option<i64>) {
        match (fate, sent) {
            (Fate::Lost, Some(sent_ns)) => {
                let burst = &mut self.burst;
                let first_sent_ns = if burst.probes == 0 { sent_ns } else { burst.first_sent_ns };
                *burst = LossBurst { probes: burst.probes + 1, first_sent_ns, last_sent_ns: sent_ns };
            }
            (Fate::Answered | Fate::Late, _) => self.end_burst(),
            _ => {}
        }
    }

    fn end_burst(&mut self) {
        self.longest_burst = self.longest_burst.max(self.burst.probes);
        self.burst = LossBurst::default();
    }

    fn extend(&mut self, first: Option<i64>, last: Option<i64>) {
        self.first_ns = self.first_ns.or(first);
        self.last_ns = self.last_ns.max(last);
    }

    /// Whole columns at once if no value is missing.
    fn visit_columns(&mut self, batch: &ProbeBatch) -> bool {
        let sums = values_of_all(batch, &batch.duplicates).zip(values_of_all(batch, &batch.reordered));
        let stamps = values_of_all(batch, &batch.sent_ns).zip(values_of_all(batch, &batch.received_ns));
        let due = values_of_all(batch, &batch.due_ns);
        let is_closed_loop = batch.due_ns.values.is_empty() || has_no_due_time(batch);
        let (true, Some((duplicates, reordered)), Some((sent, received))) =
            (is_all_answered(batch) && (due.is_some() || is_closed_loop), sums, stamps)
        else {
            return false;
        };
        self.counts.add(Fate::Answered, batch.rows as u64);
        self.end_burst();
        self.counts.duplicates += duplicates.iter().sum::<i64>() as u64;
        self.counts.reordered += reordered.iter().sum::<i64>() as u64;
        // A closed loop waits from sending on.
        let start = due.unwrap_or(sent);
        let last_arrival_ns = received.iter().max().copied();
        self.last_arrival_ns = self.last_arrival_ns.max(last_arrival_ns);
        self.extend(start.first().copied(), last_arrival_ns);
        let longer =
            |end: &[i64], span: Nanos| start.iter().zip(end).filter(|(from, to)| **to - **from > span.0).count();
        self.slipped += longer(sent, SLIPPED) as u64;
        self.behind += longer(sent, self.behind_from) as u64;
        self.missed += self.deadline.map_or(0, |deadline| longer(received, deadline) as u64);
        true
    }

    fn visit_row(&mut self, batch: &ProbeBatch, row: usize, fate: Fate) {
        let [due, sent, received] = [&batch.due_ns, &batch.sent_ns, &batch.received_ns].map(|each| value_at(each, row));
        self.counts.add(fate, 1);
        self.count_in_burst(fate, sent);
        self.last_arrival_ns = self.last_arrival_ns.max(received);
        self.counts.duplicates += value_at(&batch.duplicates, row).unwrap_or(0) as u64;
        self.counts.reordered += value_at(&batch.reordered, row).unwrap_or(0) as u64;
        let start = due.or(sent);
        self.extend(start, sent.max(received));
        let slip = due.zip(sent).filter(|_| fate.was_sent()).map_or(0, |(due, sent)| sent - due);
        self.slipped += u64::from(slip > SLIPPED.0);
        self.behind += u64::from(slip > self.behind_from.0);
        let waited = start.zip(received).map(|(from, to)| to - from).filter(|_| fate == Fate::Answered);
        if self.deadline.is_some_and(|deadline| waited.is_none_or(|waited| waited > deadline.0)) {
            self.missed += 1;
        }
    }
}

fn has_no_due_time(batch: &ProbeBatch) -> bool {
    batch.due_ns.present.as_ref().is_some_and(|present| !present.contains(&true))
}

impl RowVisitor for RunCounts {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{DueNs, Duplicates, ReceivedNs, Reordered, SentNs};
        vec![DueNs, SentNs, ReceivedNs, Duplicates, Reordered]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        if !self.visit_columns(batch) {
            for_each_measured(batch, |row, fate| self.visit_row(batch, row, fate));
        }
    }
}

/// Refused sends: errno → count. Needs a pass of its own, made only if some were refused.
#[derive(Debug, Default)]
pub(super) struct SendErrors(pub(super) BTreeMap<i64, u64>);

impl RowVisitor for SendErrors {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::Error]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            if fate == Fate::SendFailed {
                *self.0.entry(value_at(&batch.error, row).unwrap_or(0)).or_default() += 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
    use crate::plan::Schedule;
    use crate::probe::{Phase, ProbeRecord};
    use crate::source::visit_rows;
    use crate::stats::ratio;
    use crate::{SummaryOptions, summarise};

    fn counted(rows: Vec<ProbeRecord>, batch: usize, deadline: Option<Nanos>) -> RunCounts {
        let source = InMemory { batch, ..InMemory::of(CLOSED, rows) };
        let mut counts = RunCounts::new(deadline, source.manifest.spec.schedule().interval());
        visit_rows(&source, &mut [&mut counts]).expect("rows in memory");
        counts
    }

    #[test]
    fn each_fate_is_counted_and_warm_up_is_left_out() {
        let mut rows = vec![scheduled(0, 0, 500, 1)];
        rows[0].phase = Phase::Warmup;
        let fates = [Fate::Answered, Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent, Fate::Answered];
        rows.extend(fates.iter().zip(1..).map(|(fate, seq)| but(scheduled(seq, seq as i64 * 100, 60, 30), *fate)));
        rows[1].duplicates = 2;
        rows[6].reordered = true;
        for batch in [1, 4, 7] {
            let found = counted(rows.clone(), batch, Some(Nanos::from_micros(90)));
            let expected = Counts {
                sent: 4,
                answered: 2,
                late: 1,
                lost: 1,
                send_failed: 1,
                not_sent: 1,
                duplicates: 2,
                reordered: 1,
            };
            assert_eq!(found.counts, expected, "batches of {batch}");
            // 60 µs of slip and 30 µs of round trip meet the deadline; every unanswered probe misses it.
            assert_eq!((found.slipped, found.missed), (4, 4), "batches of {batch}");
            assert_eq!(found.duration(), Nanos::from_micros(590), "batches of {batch}");
        }
    }

    #[test]
    fn a_closed_loop_is_timed_from_sending_and_has_no_slip() {
        let rows: Vec<_> = (0..4).map(|seq| closed(seq, seq as i64 * 100, 40 + seq as i64)).collect();
        for batch in [1, 4] {
            let found = counted(rows.clone(), batch, Some(Nanos::from_micros(41)));
            assert_eq!((found.missed, found.slipped, found.duration()), (2, 0, Nanos::from_micros(343)));
        }
    }

    #[test]
    fn a_run_without_rows_has_no_duration() {
        assert_eq!(counted(Vec::new(), 1, None).duration(), Nanos::ZERO);
    }

    /// One probe every 10 ms, lost where `is_lost` says so.
    fn end_of_answers(probes: u64, is_lost: impl Fn(u64) -> bool) -> Option<EndOfAnswers> {
        let fate = |seq| if is_lost(seq) { Fate::Lost } else { Fate::Answered };
        let rows = (0..probes).map(|seq| but(scheduled(seq, seq as i64 * 10_000, 0, 50), fate(seq)));
        counted(rows.collect(), 50, None).end_of_answers()
    }

    #[test]
    fn answers_that_end_in_the_middle_are_distinguished_from_losses_of_the_path() {
        let ended = |after, sending, probes| {
            let [after, sending] = [after, sending].map(Nanos::from_millis);
            Some(EndOfAnswers { after, sending, probes })
        };
        assert_eq!(end_of_answers(1_000, |seq| seq >= 370), ended(3_700, 9_990, 630));
        assert_eq!(end_of_answers(10, |seq| seq >= 4), ended(40, 90, 6), "few probes, most of them lost");
        // A late answer is an answer, a refused probe is none.
        let rows = |fate| {
            (0..1_000).map(move |seq| {
                let fate = if seq < 500 {
                    Fate::Answered
                } else if seq == 999 {
                    fate
                } else {
                    Fate::Lost
                };
                but(scheduled(seq, seq as i64 * 10_000, 0, 50), fate)
            })
        };
        assert_eq!(counted(rows(Fate::Late).collect(), 1_000, None).end_of_answers(), None);
        assert_eq!(counted(rows(Fate::SendFailed).collect(), 1_000, None).end_of_answers(), ended(5_000, 9_980, 499));
        // Half of the probes are lost, in no order, and at the end in bursts as before.
        let noise = |seq: u64| seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        for (probes, is_lost) in [
            (1_000, Box::new(move |seq| noise(seq).is_multiple_of(2)) as Box<dyn Fn(u64) -> bool>),
            (1_000, Box::new(|seq| seq % 400 < 200)),
            (1_000, Box::new(|seq| seq >= 990)),
            (1_000, Box::new(|seq| seq < 300)),
            (1_000, Box::new(|_| true)),
            (1_000, Box::new(|_| false)),
            (10, Box::new(|seq| seq >= 8)),
            (0, Box::new(|_| true)),
        ] {
            let lost = (0..probes).filter(|seq| is_lost(*seq)).count();
            assert_eq!(end_of_answers(probes, is_lost), None, "{lost} of {probes} lost");
        }
    }

    #[test]
    fn answers_have_not_ended_while_late_ones_still_arrive() {
        // Each answer takes 3 s, and the sender stops to receive 1 s after the last of 1,000 probes.
        let late_until = |lost_from: u64| {
            let fate = |seq| if seq < lost_from { Fate::Late } else { Fate::Lost };
            let rows = (0..1_000).map(|seq| but(scheduled(seq, seq as i64 * 10_000, 0, 3_000_000), fate(seq)));
            counted(rows.collect(), 50, None).end_of_answers()
        };
        assert_eq!(late_until(800), None, "the last answer arrived at 10.99 s");
        assert_eq!(late_until(650), None, "it arrived at 9.49 s");
        let (after, sending) = (Nanos::from_secs(3), Nanos::from_millis(9_990));
        assert_eq!(late_until(300), Some(EndOfAnswers { after, sending, probes: 700 }), "it arrived at 5.99 s");
        // Answers within the time-out, whose columns are visited at once.
        let rows = (0..1_000).map(|seq| {
            let fate = if seq < 800 { Fate::Answered } else { Fate::Lost };
            but(scheduled(seq, seq as i64 * 10_000, 0, 1_500_000), fate)
        });
        assert_eq!(counted(rows.collect(), 50, None).end_of_answers(), None, "it arrived at 9.49 s");
    }

    #[test]
    fn answers_of_a_closed_loop_end_after_few_time_outs() {
        // 3.7 s of round trips, and then one probe each second.
        let rows = (0..37_000).map(|seq| closed(seq, seq as i64 * 100, 50));
        let lost = (0..7).map(|late| but(closed(37_000 + late, 3_700_000 + late as i64 * 1_000_000, 50), Fate::Lost));
        let found = counted(rows.chain(lost).collect(), 100, None).end_of_answers();
        let (after, sending) = (Nanos::from_millis(3_700), Nanos::from_millis(9_700));
        assert_eq!(found, Some(EndOfAnswers { after, sending, probes: 7 }));
    }

    #[test]
    fn refused_sends_are_counted_by_errno() {
        let rows =
            vec![closed(0, 0, 1), but(closed(1, 1, 1), Fate::SendFailed), but(closed(2, 2, 1), Fate::SendFailed)];
        let mut errors = SendErrors::default();
        visit_rows(&InMemory::of(CLOSED, rows), &mut [&mut errors]).expect("rows in memory");
        assert_eq!(errors.0.into_iter().collect::<Vec<_>>(), [(90, 2)]);
    }

    fn ratios(schedule: Schedule, rows: Vec<ProbeRecord>, intervals: bool) -> Ratios {
        let source = InMemory::of(schedule, rows);
        let mut options = SummaryOptions { intervals, ..SummaryOptions::of(&source.manifest.spec) };
        options.judging.deadline_ns = Some(Nanos::from_micros(60));
        summarise(&source, &options).expect("no windows asked for").ratios
    }

    #[test]
    fn each_ratio_has_its_own_denominator() {
        let fates = [Fate::Answered, Fate::Answered, Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent];
        let mut rows: Vec<_> =
            fates.iter().zip(0..).map(|(fate, seq)| but(scheduled(seq, 1_000, 10, 30), *fate)).collect();
        rows[0].duplicates = 3;
        rows[2].reordered = true;
        let source = InMemory::of(EVERY_MS, rows);
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.judging.deadline_ns = Some(Nanos::from_micros(35));
        let summary = summarise(&source, &options).expect("no windows asked for");
        let expected = Ratios {
            loss: Some(0.5),
            late: Some(0.25),
            reordered: Some(1.0 / 3.0),
            duplicate: Some(1.0),
            deadline_miss: Some(1.0),
            // Checked below: four probes give a wide interval.
            loss_interval: summary.ratios.loss_interval,
            deadline_miss_interval: ratio(6, 6, 0.95).interval,
        };
        assert_eq!(summary.ratios, expected);
        let loss = summary.ratios.loss_interval.and_then(|interval| interval.low.zip(interval.high)).expect("bounded");
        assert!(loss.0 < 0.3 && loss.1 > 0.7, "{loss:?}");
        assert_eq!(summary.deadline, Some(Deadline { deadline_ns: Nanos(35_000), missed: 6, due: 6 }));
    }

    #[test]
    fn intervals_of_zero_ratios_have_an_upper_end() {
        let on_time = |seq: u64| scheduled(seq, seq as i64 * 1_000, 3, 50);
        let in_turn = |seq: u64| closed(seq, seq as i64 * 60, 50);
        for (schedule, rows) in
            [(EVERY_MS, (0..200).map(on_time).collect::<Vec<_>>()), (CLOSED, (0..200).map(in_turn).collect())]
        {
            let found = ratios(schedule, rows.clone(), true);
            let expected = ratio(0, 200, 0.95).interval;
            assert_eq!((found.loss_interval, found.deadline_miss_interval), (expected, expected));
            let found = ratios(schedule, rows, false);
            assert_eq!((found.loss, found.loss_interval, found.deadline_miss_interval), (Some(0.0), None, None));
        }
    }

    #[test]
    fn the_interval_of_bursty_losses_is_wider_than_that_of_scattered_ones() {
        let width = |is_lost: fn(u64) -> bool| {
            let fate = |seq| if is_lost(seq) { Fate::Lost } else { Fate::Answered };
            let rows = (0..10_000).map(|seq| but(closed(seq, seq as i64 * 60, 50), fate(seq)));
            let interval = ratios(CLOSED, rows.collect(), true).loss_interval.expect("asked for");
            interval.high.expect("bounded") - interval.low.expect("bounded")
        };
        assert!(width(|seq| seq % 1_000 < 50) > 2.0 * width(|seq| seq % 20 == 0));
    }

    #[test]
    fn a_refused_probe_of_a_closed_loop_removes_the_interval_of_deadline_misses() {
        let fate = |seq| if seq == 7 { Fate::SendFailed } else { Fate::Answered };
        let rows = (0..100).map(|seq| but(closed(seq, seq as i64 * 60, 50), fate(seq))).collect();
        let found = ratios(CLOSED, rows, true);
        assert_eq!((found.deadline_miss, found.deadline_miss_interval), (Some(0.01), None));
        assert!(found.loss_interval.is_some());
    }
}
