//! Values that latlab's own recordings cannot have: an instant before one that precedes it on the same clock, and an instant
//! far outside of the run. They are damage that no checksum found, because an old recording has none.

use std::ops::RangeInclusive;

use super::event::SpoolEvent;
use super::manifest::Manifest;
use super::tables::column::IntColumn;
use super::tables::executions::ExecutionBatch;
use super::tables::host::HostBatch;
use super::tables::intervals::IntervalBatch;
use super::tables::printed::PrintedBatch;
use super::tables::probes::ProbeBatch;
use super::tables::values::ValueBatch;
use super::tables::wakeups::WakeupBatch;
use crate::facts::{Execution, IntervalCounts, StreamEnd, StreamInterval};
use crate::units::{Nanos, SenderClock, Stamp};

/// Instants so far before or after the run are not of it: the clocks of a manifest are read at its begin and end.
const MARGIN: Nanos = Nanos::from_secs(3_600);
/// A run has fewer probes.
const COUNT_MAX: i64 = 1 << 48;
/// An interval has fewer packets.
const PACKETS_MAX: u64 = 1 << 36;
/// The longest run whose end is not known.
const LONGEST: Nanos = Nanos::from_secs(10 * 366 * 86_400);

/// What values of a recording's rows are possible.
#[derive(Clone, Debug)]
pub(super) struct PossibleValues {
    /// Instants on the sender's clock; `None` if the recording does not say when it was made.
    of_sender: Option<RangeInclusive<i64>>,
}

impl PossibleValues {
    /// Those of the recording of `manifest`; `None` if another software wrote it, which may define its columns otherwise.
    pub(super) fn of(manifest: &Manifest) -> Option<PossibleValues> {
        let bounds = |start: i64| {
            let end = manifest.here.clock_end.map(|end| end.monotonic_ns);
            let end = end.unwrap_or_else(|| start.saturating_add(LONGEST.0));
            start.saturating_sub(MARGIN.0)..=end.saturating_add(MARGIN.0)
        };
        let of_sender = manifest.here.clock_start.map(|start| bounds(start.monotonic_ns));
        (manifest.software.name == "latlab").then_some(PossibleValues { of_sender })
    }

    /// Whether `event` is possible by itself.
    pub(super) fn admits(&self, event: &SpoolEvent) -> bool {
        let is_within = |at: i64| self.of_sender.as_ref().is_none_or(|possible| possible.contains(&at));
        let is_due = |due: Option<Stamp<SenderClock>>| due.is_none_or(|due| is_within(due.as_nanos()));
        match *event {
            SpoolEvent::Sent { due, sent: at, .. } | SpoolEvent::SendFailed { due, tried: at, .. } => {
                is_due(due) && is_within(at.as_nanos())
            }
            SpoolEvent::NotSent { due, .. } => is_due(Some(due)),
            SpoolEvent::Arrived { received, reflector_received, reflector_sent, .. } => {
                let dwell = reflector_received.zip(reflector_sent);
                is_within(received.as_nanos()) && dwell.is_none_or(|(received, sent)| received <= sent)
            }
            SpoolEvent::Woke { due, woke, .. } => is_due(Some(due)) && is_within(woke.as_nanos()),
            SpoolEvent::Executed(Execution { started, ended, .. }) => {
                is_within(started.as_nanos()) && is_within(ended.as_nanos()) && started <= ended
            }
            SpoolEvent::Interval(interval) => self.check_interval(&interval, 0).is_ok(),
            // A gap may have no instant, and a time-out is a span.
            SpoolEvent::Printed(_) | SpoolEvent::Gap { .. } | SpoolEvent::TimedOut { .. } => true,
            SpoolEvent::Stamped(stamps) => {
                [stamps.tx_sched, stamps.tx_software].into_iter().flatten().all(|at| is_within(at.as_nanos()))
            }
        }
    }

    fn check_interval(&self, interval: &StreamInterval, row: u64) -> Result<(), String> {
        let StreamInterval { start_ns, end_ns, .. } = *interval;
        if end_ns < start_ns {
            return Err(format!("row {row}: end_ns {end_ns} is before start_ns {start_ns}"));
        }
        if end_ns.checked_sub(start_ns).is_none_or(|span| span > MARGIN.0) {
            return Err(format!("row {row}: from start_ns {start_ns} to end_ns {end_ns} are more than an hour"));
        }
        let counts = match interval.seen {
            IntervalCounts::Offered { packets, refused, skipped } => [packets, refused, skipped],
            IntervalCounts::Counted { polled, delivered, .. } => [polled, delivered, 0],
        };
        if let Some(packets) = counts.into_iter().find(|packets| *packets >= PACKETS_MAX) {
            return Err(format!("row {row}: {packets} packets in one interval"));
        }
        let of_sender = self.of_sender.as_ref().filter(|_| interval.end() == StreamEnd::Sender);
        match of_sender.and_then(|possible| [start_ns, end_ns].into_iter().find(|at| !possible.contains(at))) {
            Some(at) => Err(outside(row, "start_ns or end_ns", at)),
            None => Ok(()),
        }
    }

    fn check_range(&self, name: &str, column: &IntColumn, first: u64) -> Result<(), String> {
        let Some(possible) = &self.of_sender else { return Ok(()) };
        // Without a branch for each value: the checks must cost little beside decoding. A null is 0.
        let (low, high) = (*possible.start(), *possible.end());
        if column.values.iter().fold(true, |is_sound, at| is_sound & (*at >= low) & (*at <= high)) {
            return Ok(());
        }
        let is_outside = |row: &usize| column.get(*row).is_some_and(|at| !possible.contains(&at));
        match (0..column.values.len()).find(is_outside) {
            Some(row) => Err(outside(first + row as u64, name, column.values[row])),
            None => Ok(()),
        }
    }
}

/// Rows whose values can be judged. A column that was not read is empty, and possible.
pub(super) trait Plausible {
    /// Checks rows of a table that begin with its row `first`.
    ///
    /// # Errors
    /// The row and the value that is not possible.
    fn check(&self, _possible: &PossibleValues, _first: u64) -> Result<(), String> {
        Ok(())
    }
}

impl Plausible for ProbeBatch {
    fn check(&self, possible: &PossibleValues, first: u64) -> Result<(), String> {
        let seqs = &self.seq.values;
        if !seqs.is_sorted_by(|one, next| one < next) || seqs.iter().any(|seq| !(0..COUNT_MAX).contains(seq)) {
            return Err(format!("rows {first} to {}: seq does not ascend, or is too high", first + self.rows as u64));
        }
        let sent = ("sent_ns", &self.sent_ns);
        let received = ("received_ns", &self.received_ns);
        let at_reflector = ("reflector_received_ns", &self.reflector_received_ns);
        expect_order(sent, received, first)?;
        expect_order(at_reflector, ("reflector_sent_ns", &self.reflector_sent_ns), first)?;
        let instants = [("due_ns", &self.due_ns), sent, received];
        instants.into_iter().try_for_each(|(name, column)| possible.check_range(name, column, first))
    }
}

impl Plausible for WakeupBatch {
    fn check(&self, possible: &PossibleValues, first: u64) -> Result<(), String> {
        possible.check_range("due_ns", &self.due_ns, first)?;
        possible.check_range("woke_ns", &self.woke_ns, first)
    }
}

impl Plausible for ExecutionBatch {
    fn check(&self, possible: &PossibleValues, first: u64) -> Result<(), String> {
        let (started, ended) = (("started_ns", &self.started_ns), ("ended_ns", &self.ended_ns));
        expect_order(started, ended, first)?;
        [started, ended].into_iter().try_for_each(|(name, column)| possible.check_range(name, column, first))
    }
}

impl Plausible for IntervalBatch {
    fn check(&self, possible: &PossibleValues, first: u64) -> Result<(), String> {
        self.to_rows().iter().zip(first..).try_for_each(|(interval, row)| possible.check_interval(interval, row))
    }
}

impl Plausible for ValueBatch {}

impl Plausible for PrintedBatch {}

impl Plausible for HostBatch {}

/// Checks that no instant of `later` is before that of `earlier` in the same row.
fn expect_order(earlier: (&str, &IntColumn), later: (&str, &IntColumn), first: u64) -> Result<(), String> {
    let is_complete = earlier.1.present.is_none() && later.1.present.is_none();
    let pairs = earlier.1.values.iter().zip(&later.1.values);
    if is_complete && pairs.fold(true, |is_sound, (before, after)| is_sound & (before <= after)) {
        return Ok(());
    }
    let rows = earlier.1.values.len().min(later.1.values.len());
    let instants = |row| Some((row, earlier.1.get(row)?, later.1.get(row)?));
    match (0..rows).filter_map(instants).find(|(_, before, after)| after < before) {
        Some((row, before, after)) => {
            Err(format!("row {}: {} {after} is before {} {before}", first + row as u64, later.0, earlier.0))
        }
        None => Ok(()),
    }
}

fn outside(row: u64, name: &str, at: i64) -> String {
    format!("row {row}: {name} {at} is far outside of the run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ClockAnchor;
    use crate::plan::{RunSpec, Via, WakeupCpus, WakeupSpec, Work};
    use crate::probe::Phase;

    fn manifest() -> Manifest {
        let spec = WakeupSpec {
            via: Via::ClockNanosleep,
            interval_ns: Nanos::from_millis(1),
            relative: false,
            cpus: WakeupCpus::Anywhere,
            break_ns: None,
        };
        let mut manifest = Manifest::new(RunSpec::here(Work::Wakeup(spec)), "0".into(), "now".into());
        let anchor = ClockAnchor { monotonic_ns: HOUR * 5, realtime_ns: 0, boottime_ns: 0, tai_ns: 0, width_ns: 0 };
        (manifest.here.clock_start, manifest.here.clock_end) = (Some(anchor), Some(anchor));
        manifest
    }

    const HOUR: i64 = 3_600_000_000_000;

    fn column(values: [i64; 2]) -> IntColumn {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn an_answer_before_its_probe_is_named_with_row_and_values() {
        let possible = PossibleValues::of(&manifest()).expect("latlab's own");
        let (sent_ns, received_ns) = (column([HOUR * 5, HOUR * 5 + 9]), column([HOUR * 5, HOUR * 5 + 8]));
        let mut batch = ProbeBatch { rows: 2, sent_ns, received_ns, ..ProbeBatch::default() };
        let what = batch.check(&possible, 100).expect_err("impossible");
        assert_eq!(what, "row 101: received_ns 18000000000008 is before sent_ns 18000000000009");
        batch.received_ns = IntColumn::nulls(2);
        batch.check(&possible, 100).expect("lost probes");
        batch.received_ns = IntColumn::default();
        batch.check(&possible, 100).expect("a column that was not read");
        batch.reflector_received_ns = column([5, 5]);
        batch.reflector_sent_ns = column([5, 4]);
        assert!(batch.check(&possible, 0).is_err_and(|what| what.starts_with("row 1: reflector_sent_ns 4 ")));
    }

    #[test]
    fn sequence_numbers_ascend() {
        let possible = PossibleValues::of(&manifest()).expect("latlab's own");
        let check = |seqs| ProbeBatch { rows: 2, seq: column(seqs), ..ProbeBatch::default() }.check(&possible, 5);
        check([7, 9]).expect("a gap is possible");
        for seqs in [[7, 7], [8, 7], [0, 1 << 48], [-1, 7]] {
            assert_eq!(check(seqs), Err("rows 5 to 7: seq does not ascend, or is too high".into()));
        }
    }

    #[test]
    fn an_instant_hours_before_or_after_the_run_is_impossible() {
        let possible = PossibleValues::of(&manifest()).expect("latlab's own");
        let check = |at: i64| {
            let batch = WakeupBatch { rows: 2, woke_ns: column([HOUR * 5, at]), ..WakeupBatch::default() };
            batch.check(&possible, 0)
        };
        assert_eq!((check(HOUR * 4), check(HOUR * 6)), (Ok(()), Ok(())));
        for at in [HOUR * 4 - 1, HOUR * 6 + 1, i64::MIN, i64::MAX] {
            assert_eq!(check(at), Err(format!("row 1: woke_ns {at} is far outside of the run")));
        }
        let unknown = Manifest { here: Default::default(), ..manifest() };
        let batch = WakeupBatch { rows: 2, woke_ns: column([0, i64::MAX]), ..WakeupBatch::default() };
        batch.check(&PossibleValues::of(&unknown).expect("latlab's own"), 0).expect("no bounds are known");
    }

    #[test]
    fn an_event_of_a_spool_is_impossible_if_one_of_its_instants_is() {
        let possible = PossibleValues::of(&manifest()).expect("latlab's own");
        let (seq, phase) = (crate::probe::Seq(1), Phase::Measure);
        let at = Stamp::from_nanos;
        for (due, then, expected) in [(5, 5, true), (5, 500, false), (500, 5, false), (500, 500, false)] {
            let (due, then) = (at(HOUR * due), at(HOUR * then));
            for event in [
                SpoolEvent::Sent { seq, phase, due: Some(due), sent: then, cpu: None },
                SpoolEvent::SendFailed { seq, phase, due: Some(due), tried: then, errno: 1 },
                SpoolEvent::Woke { seq, phase, due, woke: then, cpu: None, via: Via::ClockNanosleep },
            ] {
                assert_eq!(possible.admits(&event), expected, "{event:?}");
            }
        }
        assert!(!possible.admits(&SpoolEvent::NotSent { seq, phase, due: at(HOUR * 500) }));
    }

    #[test]
    fn an_interval_cannot_end_before_it_starts() {
        let possible = PossibleValues::of(&manifest()).expect("latlab's own");
        let interval = |start_ns, end_ns, seen| StreamInterval {
            flow: 0,
            phase: Phase::Measure,
            start_ns,
            end_ns,
            cpu: None,
            seen,
        };
        let offered = IntervalCounts::Offered { packets: 1, refused: 0, skipped: 0 };
        let counted = IntervalCounts::Counted {
            polled: 1,
            delivered: 1,
            reordered: 0,
            duplicates: 0,
            outside_window: 0,
            socket_drops: None,
        };
        let check = |interval| possible.check_interval(&interval, 7);
        check(interval(HOUR * 5, HOUR * 5, offered)).expect("possible");
        check(interval(1, 2, counted)).expect("the receiver's clock is another one");
        let many = IntervalCounts::Offered { packets: 1, refused: 0, skipped: 1 << 36 };
        assert!(check(interval(HOUR * 5, HOUR * 5, many)).is_err_and(|what| what.contains("68719476736 packets")));
        assert!(check(interval(0, HOUR + 1, counted)).is_err_and(|what| what.contains("more than an hour")));
        assert!(check(interval(1, 2, offered)).is_err_and(|what| what.contains("row 7")));
        assert!(check(interval(2, 1, counted)).is_err_and(|what| what.contains("end_ns 1 is before start_ns 2")));
    }

    #[test]
    fn rows_of_another_software_are_not_judged() {
        let mut imported = manifest();
        imported.software.name = "sockperf".into();
        assert!(PossibleValues::of(&imported).is_none());
    }
}
