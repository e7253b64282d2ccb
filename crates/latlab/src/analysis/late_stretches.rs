//! The stretches in which a thread of a CPU should have run and did not, and how easily they are met by chance.

use std::collections::BTreeMap;

use super::shifts::Shifts;
use super::wakeups::is_backlog;
use crate::units::Nanos;

/// A probe from when it set out until its answer came, and on which CPU that was, where it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProbeFlight {
    pub(super) cpu: Option<u16>,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Late stretches of every CPU that was watched.
#[derive(Clone, Debug)]
pub(super) struct LateStretches {
    interval: Nanos,
    by_cpu: BTreeMap<u16, Watch>,
    /// All CPUs together, for probes of whose CPU nothing is known.
    anywhere: Watch,
    late: u64,
}

impl LateStretches {
    /// None yet; slots are due `interval` after each other.
    pub(super) fn every(interval: Nanos) -> LateStretches {
        LateStretches { interval, by_cpu: BTreeMap::new(), anywhere: Watch::default(), late: 0 }
    }

    /// A slot of `cpu`, in the order in which they were due.
    pub(super) fn take(&mut self, cpu: Option<u16>, due: i64, woke: i64, is_late: bool) {
        self.late += u64::from(is_late);
        self.anywhere.take(self.interval, due, woke, is_late);
        if let Some(cpu) = cpu {
            self.by_cpu.entry(cpu).or_default().take(self.interval, due, woke, is_late);
        }
    }

    /// How many wake-ups were late.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Whether `passage` meets a late stretch of its CPU; where that is unknown or was not watched, of any.
    pub(super) fn meet(&self, passage: &ProbeFlight) -> bool {
        self.watch(passage.cpu).meet(passage)
    }

    /// For each of `passages` the share of its shifts by whole intervals, in its slice and on its CPU, that meet one.
    pub(super) fn chances(&self, passages: &[ProbeFlight]) -> Vec<f64> {
        let mut chances = vec![0.0; passages.len()];
        let mut by_slice: BTreeMap<(Option<u16>, usize), Vec<usize>> = BTreeMap::new();
        for (place, passage) in passages.iter().enumerate() {
            let cpu = passage.cpu.filter(|cpu| self.by_cpu.contains_key(cpu));
            if let Some(slice) = self.watch(cpu).slice_of(passage) {
                by_slice.entry((cpu, slice)).or_default().push(place);
            }
        }
        for ((cpu, slice), places) in by_slice {
            let spans: Vec<_> = places.iter().map(|place| (passages[*place].from, passages[*place].to)).collect();
            let told = self.watch(cpu).shifts(slice, self.interval).chances(&spans);
            places.iter().zip(told).for_each(|(place, chance)| chances[*place] = chance);
        }
        chances
    }

    /// Whether most slots on the CPU of `passage` were past when their thread came back from the one before; where that is
    /// unknown or was not watched, most of all slots.
    pub(super) fn is_backlog(&self, passage: &ProbeFlight) -> bool {
        let (past, slots) = match passage.cpu.and_then(|cpu| self.by_cpu.get(&cpu)) {
            Some(watch) => (watch.past, watch.slots),
            None if self.by_cpu.is_empty() => (self.anywhere.past, self.anywhere.slots),
            None => self.by_cpu.values().fold((0, 0), |sum, watch| (sum.0 + watch.past, sum.1 + watch.slots)),
        };
        is_backlog(past, slots)
    }

    fn watch(&self, cpu: Option<u16>) -> &Watch {
        cpu.and_then(|cpu| self.by_cpu.get(&cpu)).unwrap_or(&self.anywhere)
    }
}

/// What was seen of one CPU. Slices of a run are watched each by itself: between them nobody slept.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// Ascending, none touching the next.
    late: Vec<(i64, i64)>,
    /// Ascending.
    slices: Vec<Slice>,
    slots: u64,
    /// Those that were due before the thread had come back from an earlier one; of one CPU only.
    past: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    start: i64,
    /// Of its last slot so far.
    due: i64,
    /// The last wake-up.
    end: i64,
    /// Where its late stretches begin among all.
    late_from: usize,
}

impl Watch {
    fn take(&mut self, interval: Nanos, due: i64, woke: i64, is_late: bool) {
        // No slot is ever skipped: a gap is the turn of another run.
        let goes_on = |slice: &Slice| due.saturating_sub(slice.due) <= interval.0;
        if !self.slices.last().is_some_and(goes_on) {
            self.slices.push(Slice { start: due, due, end: due, late_from: self.late.len() });
        }
        let Some(slice) = self.slices.last_mut() else { return };
        self.slots += 1;
        self.past += u64::from(slice.end > due);
        (slice.due, slice.end) = (due, slice.end.max(woke));
        if is_late {
            let own = self.late.len() > slice.late_from;
            match self.late.last_mut().filter(|last| own && due <= last.1) {
                Some(last) => last.1 = last.1.max(woke),
                None => self.late.push((due, woke)),
            }
        }
    }

    fn meet(&self, passage: &ProbeFlight) -> bool {
        let first = self.late.partition_point(|(_, woke)| *woke < passage.from);
        self.late.get(first).is_some_and(|(due, _)| *due <= passage.to)
    }

    /// The slice that `passage` belongs to: the nearest, since a probe may precede the first slot. None where nothing was
    /// watched.
    fn slice_of(&self, passage: &ProbeFlight) -> Option<usize> {
        let next = self.slices.partition_point(|slice| slice.start <= passage.to);
        let Some(before) = next.checked_sub(1) else { return (!self.slices.is_empty()).then_some(0) };
        let since = passage.from.saturating_sub(self.slices[before].end);
        let until = self.slices.get(next).map(|slice| slice.start.saturating_sub(passage.to));
        Some(if until.is_some_and(|until| since > until) { next } else { before })
    }

    fn shifts(&self, slice: usize, interval: Nanos) -> Shifts {
        let Slice { start, end, late_from, .. } = self.slices[slice];
        let late_to = self.slices.get(slice + 1).map_or(self.late.len(), |next| next.late_from);
        Shifts::of(interval.0, (start, end), &self.late[late_from..late_to])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots every 10; those at the given due times wake so late, the others at once.
    fn watch(slices: &[(i64, i64)], late: &[(i64, i64)]) -> LateStretches {
        let mut stretches = LateStretches::every(Nanos(10));
        for due in slices.iter().flat_map(|(start, end)| (*start..*end).step_by(10)) {
            let lateness = late.iter().find(|(at, _)| *at == due).map_or(0, |(_, lateness)| *lateness);
            stretches.take(Some(2), due, due + lateness, lateness > 0);
        }
        stretches
    }

    fn on(cpu: Option<u16>, from: i64, to: i64) -> ProbeFlight {
        ProbeFlight { cpu, from, to }
    }

    #[test]
    fn stretches_that_touch_become_one_and_ends_belong_to_them() {
        let stretches = watch(&[(0, 100)], &[(20, 25), (30, 15), (40, 5), (80, 3)]);
        assert_eq!(stretches.by_cpu[&2].late, [(20, 45), (80, 83)]);
        assert_eq!(stretches.late(), 4);
        // Slots 30 and 40 came before the thread was back from 20 and 30.
        assert_eq!((stretches.by_cpu[&2].past, stretches.by_cpu[&2].slots), (2, 10));
        for (from, to, met) in [
            (0, 19, false),
            (0, 20, true),
            (30, 31, true),
            (45, 50, true),
            (46, 79, false),
            (46, 200, true),
            (84, 99, false),
        ] {
            assert_eq!(stretches.meet(&on(Some(2), from, to)), met, "{from} to {to}");
            assert_eq!(stretches.meet(&on(None, from, to)), met, "{from} to {to}, anywhere");
        }
    }

    #[test]
    fn chance_is_that_of_the_slice_and_of_the_phase() {
        // The first slice is late in two of its ten slots, the second in one of five, by 3 each.
        let slices = [(0, 100), (505, 555)];
        let stretches = watch(&slices, &[(20, 3), (50, 3), (515, 3)]);
        for (from, to, expected) in [
            // Of the ten slots a probe of 2 has nine whole ones to itself, since the last wake-up was that of slot 90.
            (1, 3, 2.0 / 9.0),
            (91, 93, 2.0 / 9.0),
            (4, 6, 0.0),
            (9, 10, 2.0 / 9.0),
            // It ends in the slot after the one that it begins in, or begins before a slice or after it.
            (4, 14, 2.0 / 8.0),
            (-9, -7, 2.0 / 9.0),
            (499, 501, 0.0),
            (506, 508, 1.0 / 4.0),
            (556, 558, 1.0 / 4.0),
            // Longer than what was watched.
            (500, 600, 1.0),
        ] {
            for cpu in [Some(2), None, Some(7)] {
                let told = stretches.chances(&[on(cpu, 0, 0), on(cpu, from, to)])[1];
                assert!((told - expected).abs() < 1e-12, "{from} to {to}: {told} {expected}");
            }
        }
    }

    #[test]
    fn each_cpu_has_a_backlog_of_its_own() {
        let mut stretches = watch(&[(0, 100)], &[]);
        for due in (0..100).step_by(10) {
            stretches.take(Some(3), due, due + 60, true);
        }
        for (cpu, backlog) in [(Some(2), false), (Some(3), true), (None, false), (Some(7), false)] {
            assert_eq!(stretches.is_backlog(&on(cpu, 0, 5)), backlog, "{cpu:?}");
        }
    }

    #[test]
    fn nothing_watched_is_met_by_nothing() {
        let stretches = watch(&[], &[]);
        let passage = on(Some(7), 0, 50);
        assert_eq!((stretches.meet(&passage), stretches.chances(&[passage])), (false, vec![0.0]));
    }
}
