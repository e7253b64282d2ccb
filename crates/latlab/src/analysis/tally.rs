//! Counting fates, and what else one pass over all rows tells.

use std::collections::BTreeMap;

use super::caveats::{BEHIND_INTERVALS, BEHIND_SPAN};
use super::source::{RowVisitor, at, full, measured, plain};
use crate::probe::Fate;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::units::Nanos;

/// A probe that leaves this much after it was due has slipped: an idle wake-up takes about this long.
pub(super) const SLIPPED: Nanos = Nanos::from_micros(50);

/// What became of the measured probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed to the network: answered + late + lost.
    pub sent: u64,
    /// Answered within the time-out.
    pub answered: u64,
    /// Answered after it.
    pub late: u64,
    /// Never answered.
    pub lost: u64,
    /// Refused by the kernel.
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

/// The counts of a run and its extent.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCounts {
    pub(super) counts: Counts,
    /// Sent more than [`SLIPPED`] after they were due.
    pub(super) slipped: u64,
    /// Sent so late that the schedule was not kept at all: see the limits of the caveats.
    pub(super) behind: u64,
    /// Missed the deadline, over all due probes.
    pub(super) missed: u64,
    deadline: Option<Nanos>,
    /// From this much after they were due on, probes are behind.
    behind_from: Nanos,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

impl RunCounts {
    /// Nothing yet; probes answered later than `deadline` after they were due shall count as missed, and those of a
    /// schedule with this `interval` that left far after they were due as behind.
    pub(super) fn new(deadline: Option<Nanos>, interval: Option<Nanos>) -> RunCounts {
        let behind_from = BEHIND_SPAN.max(interval.unwrap_or_default().saturating_mul(BEHIND_INTERVALS));
        RunCounts { deadline, behind_from, ..RunCounts::default() }
    }

    /// That of a run without probes: `counts`, in the time that it took.
    pub(super) fn of_counts(counts: Counts, took: Nanos) -> RunCounts {
        RunCounts { counts, first_ns: Some(0), last_ns: Some(took.0), ..RunCounts::default() }
    }

    /// From the first measured probe (due, or sent in a closed loop) to the last answer or send.
    pub(super) fn duration(&self) -> Nanos {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => Nanos(last.saturating_sub(first).max(0)),
            _ => Nanos::ZERO,
        }
    }

    fn extend(&mut self, first: Option<i64>, last: Option<i64>) {
        self.first_ns = self.first_ns.or(first);
        self.last_ns = self.last_ns.max(last);
    }

    /// What a probe of the schedule waited for: its due time, or when it was sent in a closed loop.
    fn gather_plain(&mut self, batch: &ProbeBatch) -> bool {
        let sums = full(batch, &batch.duplicates).zip(full(batch, &batch.reordered));
        let stamps = full(batch, &batch.sent_ns).zip(full(batch, &batch.received_ns));
        let due = full(batch, &batch.due_ns);
        let closed = batch.due_ns.values.is_empty() || none_present(batch);
        let (true, Some((duplicates, reordered)), Some((sent, received))) =
            (plain(batch) && (due.is_some() || closed), sums, stamps)
        else {
            return false;
        };
        self.counts.add(Fate::Answered, batch.rows as u64);
        self.counts.duplicates += duplicates.iter().sum::<i64>() as u64;
        self.counts.reordered += reordered.iter().sum::<i64>() as u64;
        let start = due.unwrap_or(sent);
        self.extend(start.first().copied(), received.iter().max().copied());
        self.slipped += start.iter().zip(sent).filter(|(due, sent)| **sent - **due > SLIPPED.0).count() as u64;
        self.behind += start.iter().zip(sent).filter(|(due, sent)| **sent - **due > self.behind_from.0).count() as u64;
        if let Some(deadline) = self.deadline {
            self.missed += start.iter().zip(received).filter(|(from, to)| **to - **from > deadline.0).count() as u64;
        }
        true
    }

    fn row(&mut self, batch: &ProbeBatch, row: usize, fate: Fate) {
        let (due, sent, received) = (at(&batch.due_ns, row), at(&batch.sent_ns, row), at(&batch.received_ns, row));
        self.counts.add(fate, 1);
        self.counts.duplicates += at(&batch.duplicates, row).unwrap_or(0) as u64;
        self.counts.reordered += at(&batch.reordered, row).unwrap_or(0) as u64;
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

/// Whether no row has a due time: a closed loop.
fn none_present(batch: &ProbeBatch) -> bool {
    batch.due_ns.present.as_ref().is_some_and(|present| !present.contains(&true))
}

impl RowVisitor for RunCounts {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{DueNs, Duplicates, ReceivedNs, Reordered, SentNs};
        vec![DueNs, SentNs, ReceivedNs, Duplicates, Reordered]
    }

    fn gather(&mut self, batch: &ProbeBatch) {
        if !self.gather_plain(batch) {
            measured(batch, |row, fate| self.row(batch, row, fate));
        }
    }
}

/// Why the kernel refused probes: errno → how many. A pass of its own, made only where some were refused.
#[derive(Debug, Default)]
pub(super) struct Refusals(pub(super) BTreeMap<i64, u64>);

impl RowVisitor for Refusals {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::Error]
    }

    fn gather(&mut self, batch: &ProbeBatch) {
        measured(batch, |row, fate| {
            if fate == Fate::SendFailed {
                *self.0.entry(at(&batch.error, row).unwrap_or(0)).or_default() += 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{InMemory, but, closed, scheduled};
    use crate::analysis::source::feed;
    use crate::plan::Schedule;
    use crate::probe::{Phase, ProbeRecord};

    fn tally(rows: Vec<ProbeRecord>, batch: usize, deadline: Option<Nanos>) -> RunCounts {
        let source = InMemory { batch, ..InMemory::of(Schedule::Closed, rows) };
        let mut tally = RunCounts::new(deadline, source.manifest.spec.schedule().interval());
        feed(&source, &mut [&mut tally]).expect("rows in memory");
        tally
    }

    #[test]
    fn every_fate_is_counted_once_and_warm_up_never() {
        let mut rows = vec![scheduled(0, 0, 500, 1)];
        rows[0].phase = Phase::Warmup;
        let fates = [Fate::Answered, Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent, Fate::Answered];
        rows.extend(fates.iter().zip(1..).map(|(fate, seq)| but(scheduled(seq, seq as i64 * 100, 60, 30), *fate)));
        rows[1].duplicates = 2;
        rows[6].reordered = true;
        for batch in [1, 4, 7] {
            let tally = tally(rows.clone(), batch, Some(Nanos::from_micros(90)));
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
            assert_eq!(tally.counts, expected, "batches of {batch}");
            // 60 µs of slip and 30 µs of round trip just meet the deadline; everything unanswered misses it
            assert_eq!((tally.slipped, tally.missed), (4, 4), "batches of {batch}");
            assert_eq!(tally.duration(), Nanos::from_micros(590), "batches of {batch}");
        }
    }

    #[test]
    fn a_closed_loop_waits_from_sending_on_and_never_slips() {
        let rows: Vec<_> = (0..4).map(|seq| closed(seq, seq as i64 * 100, 40 + seq as i64)).collect();
        for batch in [1, 4] {
            let tally = tally(rows.clone(), batch, Some(Nanos::from_micros(41)));
            assert_eq!((tally.missed, tally.slipped, tally.duration()), (2, 0, Nanos::from_micros(343)));
        }
    }

    #[test]
    fn nothing_has_no_duration() {
        assert_eq!(tally(Vec::new(), 1, None).duration(), Nanos::ZERO);
    }

    #[test]
    fn refusals_are_counted_by_their_reason() {
        let rows =
            vec![closed(0, 0, 1), but(closed(1, 1, 1), Fate::SendFailed), but(closed(2, 2, 1), Fate::SendFailed)];
        let mut refusals = Refusals::default();
        feed(&InMemory::of(Schedule::Closed, rows), &mut [&mut refusals]).expect("rows in memory");
        assert_eq!(refusals.0.into_iter().collect::<Vec<_>>(), [(90, 2)]);
    }
}
