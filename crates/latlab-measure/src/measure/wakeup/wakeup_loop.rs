//! The hot loop of a thread that measures wake-ups: sleep, read the clock, write an event to the ring.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sleeper::Sleeper;
use crate::clock::Clock;
use crate::facts::LateWakeup;
use crate::measure::{CpuSource, Slice};
use crate::plan::{Via, WakeupSpec, defaults};
use crate::probe::{Phase, Seq};
use crate::recording::EventLog;
use crate::recording::SpoolEvent;
use crate::units::{Nanos, SenderClock, Stamp};

/// The state of a thread of a run of wake-ups between slices. Nothing in here allocates.
#[derive(Debug)]
pub struct SleepingThread {
    via: Via,
    interval: Nanos,
    relative: bool,
    break_after: Nanos,
    cpu: CpuSource,
    next: Seq,
    not_slept: u64,
    log: EventLog,
}

impl SleepingThread {
    /// The state of a thread of `spec` on `cpu` before its first slot.
    pub fn new(spec: &WakeupSpec, cpu: CpuSource, log: EventLog) -> SleepingThread {
        let break_after = spec.break_ns.unwrap_or(Nanos::MAX);
        let WakeupSpec { via, interval_ns: interval, relative, .. } = *spec;
        SleepingThread { via, interval, relative, break_after, cpu, next: Seq(0), not_slept: 0, log }
    }

    /// The number of measured slots that it has skipped, since it was too far behind its schedule.
    pub fn not_slept(&self) -> u64 {
        self.not_slept
    }

    pub fn into_log(self) -> EventLog {
        self.log
    }
}

/// Measures `slice`: the first slot is due an interval after `start`, each further one an interval after the one before.
/// The thread also sleeps for a slot whose due time is past: its wake-up is as late as that of a task with this period.
/// [`defaults::MAX_BACKLOG`] after the last due time the remaining slots are skipped and counted, so that a thread that
/// cannot keep its schedule ends. `halt` ends the slice early. Returns the wake-up that was later than the run permits and
/// so ended it.
pub fn run_slice<S: Sleeper, C: Clock>(
    sleeper: &mut S,
    clock: &C,
    thread: &mut SleepingThread,
    slice: &Slice,
    start: Stamp<SenderClock>,
    halt: &AtomicBool,
) -> io::Result<Option<LateWakeup>> {
    let SleepingThread { via, interval, relative, break_after, cpu, ref mut next, ref mut not_slept, ref mut log } =
        *thread;
    let end = slice.end(start);
    let last = end.min(start + interval.saturating_mul(i64::try_from(slice.count).unwrap_or(i64::MAX)));
    let mut due = start;
    for taken in 1..=slice.count {
        due = if relative { clock.now() + interval } else { due + interval };
        if due > end {
            break;
        }
        let mut slept = if relative { sleeper.span(interval) } else { sleeper.until(due) };
        // After a signal that does not end the run the thread sleeps again.
        while slept.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            if halt.load(Ordering::Relaxed) {
                return Ok(None);
            }
            slept = sleeper.until(due);
        }
        slept?;
        let woke = clock.now();
        let (seq, phase, cpu) = (*next, slice.phase, cpu.now());
        log.push(SpoolEvent::Woke { seq, phase, due, woke, cpu, via });
        next.0 += 1;
        if woke - due > break_after && phase == Phase::Measure {
            halt.store(true, Ordering::Relaxed);
            let (due_ns, woke_ns) = (due.as_nanos(), woke.as_nanos());
            return Ok(Some(LateWakeup { seq: seq.0, cpu, due_ns, woke_ns }));
        }
        if halt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if !relative && woke - last > defaults::MAX_BACKLOG {
            let due_later = ((end - due).0 / interval.0.max(1)).max(0).unsigned_abs();
            *not_slept += if phase == Phase::Measure { due_later.min(slice.count - taken) } else { 0 };
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Kind, RunSpec, WakeupCpus, Work};
    use crate::recording::manifest::{Manifest, RunEnding};
    use crate::recording::{RecordingWriter, Store};

    /// A clock that only sleep advances; each wake-up is late by a given time.
    struct FakeClock {
        now: Cell<i64>,
        late: Vec<i64>,
    }

    impl Clock for &FakeClock {
        fn now(&self) -> Stamp<SenderClock> {
            Stamp::from_nanos(self.now.get())
        }
    }

    struct FakeSleep<'a>(&'a FakeClock, usize);

    impl Sleeper for FakeSleep<'_> {
        fn until(&mut self, due: Stamp<SenderClock>) -> io::Result<()> {
            let late = self.0.late.get(self.1).copied().unwrap_or(1);
            self.1 += 1;
            self.0.now.set(self.0.now.get().max(due.as_nanos()) + late);
            Ok(())
        }
        fn span(&mut self, span: Nanos) -> io::Result<()> {
            self.until(Stamp::from_nanos(self.0.now.get()) + span)
        }
    }

    /// `(seq, due, lateness)` of each row, the wake-up that ended the run, and the number of skipped slots.
    fn slept(spec: &WakeupSpec, late: &[i64], count: u64) -> (Vec<(i64, i64, i64)>, Option<LateWakeup>, u64) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let store = Store::open(directory.path()).expect("opens");
        let run = RunSpec::here(Work::Wakeup(spec.clone()));
        let manifest = Manifest::new(run, "0123456789abcdef".into(), "2026-11-22T00:00:00Z".into());
        assert_eq!(manifest.kind, Kind::Wakeup);
        let mut writer = RecordingWriter::create(&store, None, manifest).expect("created");
        let mut logs = writer.start_logs(Arc::new(AtomicBool::new(false)), &[64]).expect("started");
        let clock = FakeClock { now: Cell::new(0), late: late.to_vec() };
        let mut thread = SleepingThread::new(spec, CpuSource::Pinned(3), logs.remove(0));
        let slice = Slice { phase: Phase::Measure, count, duration: Nanos(1_000) };
        let (start, halt) = (Stamp::from_nanos(0), AtomicBool::new(false));
        let broke = run_slice(&mut FakeSleep(&clock, 0), &&clock, &mut thread, &slice, start, &halt).expect("no error");
        let not_slept = thread.not_slept();
        let finished = writer.finish(thread.into_log(), RunEnding::Completed, None).expect("finished");
        let recording = crate::recording::Recording::open(&finished.path).expect("opens");
        let batches: Vec<_> = recording.wakeups().expect("rows").map(|batch| batch.expect("sound")).collect();
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.rows).map(|row| {
                let (due, woke) = (batch.due_ns.values[row], batch.woke_ns.values[row]);
                assert_eq!((batch.cpu.get(row), batch.via.get(row)), (Some(3), spec.via));
                (batch.seq.values[row], due, woke - due)
            })
        });
        (rows.collect(), broke, not_slept)
    }

    const EVERY_100: WakeupSpec = WakeupSpec {
        via: Via::Futex,
        interval_ns: Nanos(100),
        relative: false,
        cpus: WakeupCpus::Anywhere,
        break_ns: None,
    };

    #[test]
    fn a_past_slot_is_recorded_with_its_full_lateness() {
        let (rows, broke, _) = slept(&EVERY_100, &[1, 250, 1, 1, 1], u64::MAX);
        let first = [(0, 100, 1), (1, 200, 250), (2, 300, 151), (3, 400, 52), (4, 500, 1)];
        assert_eq!((&rows[..5], rows.len(), broke), (&first[..], 10, None));
    }

    #[test]
    fn slots_beyond_the_backlog_are_skipped_and_counted() {
        const BACKLOG: i64 = defaults::MAX_BACKLOG.0;
        // The last slot of 1,000 ns, or of four slots, is due at `last`.
        for (count, last, slots) in [(u64::MAX, 1_000, 10), (4, 400, 4)] {
            // Slot 1 is due at 200, and a sleep for a past slot takes 1 ns.
            let just_in_time = last + BACKLOG - 200 - (slots - 2);
            let (rows, _, skipped) = slept(&EVERY_100, &[1, just_in_time], count);
            assert_eq!((rows.len() as i64, skipped), (slots, 0), "{rows:?}");
            let (rows, _, skipped) = slept(&EVERY_100, &[1, last + BACKLOG - 199], count);
            assert_eq!((rows.len(), skipped), (2, slots as u64 - 2), "{rows:?}");
        }
        let relative = WakeupSpec { relative: true, ..EVERY_100 };
        assert_eq!(slept(&relative, &[1, 2 * BACKLOG, 1], 3).2, 0, "relative sleeps have no schedule to be behind of");
    }

    #[test]
    fn relative_sleeps_have_no_past_slots() {
        let (rows, ..) = slept(&WakeupSpec { relative: true, ..EVERY_100 }, &[1, 250, 1], 4);
        assert_eq!(rows, [(0, 100, 1), (1, 201, 250), (2, 551, 1), (3, 652, 1)]);
    }

    #[test]
    fn the_first_wakeup_that_is_too_late_ends_the_run_and_is_recorded() {
        let (rows, broke, _) = slept(&WakeupSpec { break_ns: Some(Nanos(30)), ..EVERY_100 }, &[1, 30, 31, 1], u64::MAX);
        assert_eq!(rows, [(0, 100, 1), (1, 200, 30), (2, 300, 31)]);
        assert_eq!(broke, Some(LateWakeup { seq: 2, cpu: Some(3), due_ns: 300, woke_ns: 331 }));
    }
}
