//! The stretches in which a thread of a CPU should have run and did not, and how easily they are met by chance.

use std::collections::BTreeMap;

use crate::units::Nanos;

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

    /// There are no more.
    pub(super) fn settle(&mut self) {
        self.by_cpu.values_mut().for_each(Watch::settle);
        self.anywhere.settle();
    }

    /// How many wake-ups were late.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Whether `[from, to]` meets a late stretch of `cpu`; where that is unknown or was not watched, of any.
    pub(super) fn meet(&self, cpu: Option<u16>, from: i64, to: i64) -> bool {
        self.watch(cpu).meet(from, to)
    }

    /// The share of moments at which something of length `span` could begin and meet one.
    pub(super) fn chance(&self, cpu: Option<u16>, span: i64) -> f64 {
        self.watch(cpu).chance(span)
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
    /// The slice that is being watched.
    slice: Option<Slice>,
    watched_ns: i64,
    /// Lengths of the stretches of each slice that end in a late one; ascending once settled, with their sums.
    calm: Vec<i64>,
    calm_sums: Vec<f64>,
    /// Those after the last late stretch of each slice: from there nothing can be met.
    calm_to_the_end_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    due: i64,
    /// The end of the last late stretch, or the start.
    calm_since: i64,
    end: i64,
}

impl Watch {
    fn take(&mut self, interval: Nanos, due: i64, woke: i64, is_late: bool) {
        // No slot is ever skipped: a gap is the turn of another run.
        let goes_on = |slice: &Slice| due.saturating_sub(slice.due) <= interval.0;
        if !self.slice.as_ref().is_some_and(goes_on) {
            self.end_slice();
        }
        let before = self.slice.take();
        let mut slice = before.unwrap_or(Slice { due, calm_since: due, end: due });
        if before.is_none() {
            self.watched_ns = self.watched_ns.saturating_sub(due);
        }
        if is_late {
            match self.late.last_mut().filter(|last| before.is_some() && due <= last.1) {
                Some(last) => last.1 = last.1.max(woke),
                None => {
                    self.calm.push(due - slice.calm_since);
                    self.late.push((due, woke));
                }
            }
            slice.calm_since = slice.calm_since.max(woke);
        }
        (slice.due, slice.end) = (due, slice.end.max(woke));
        self.slice = Some(slice);
    }

    fn end_slice(&mut self) {
        if let Some(slice) = self.slice.take() {
            self.watched_ns = self.watched_ns.saturating_add(slice.end);
            self.calm_to_the_end_ns += slice.end - slice.calm_since;
        }
    }

    fn settle(&mut self) {
        self.end_slice();
        self.calm.sort_unstable();
        let mut sum = 0.0;
        self.calm_sums = std::iter::once(0.0)
            .chain(self.calm.iter().map(|calm| {
                sum += *calm as f64;
                sum
            }))
            .collect();
    }

    fn meet(&self, from: i64, to: i64) -> bool {
        let first = self.late.partition_point(|(_, woke)| *woke < from);
        self.late.get(first).is_some_and(|(due, _)| *due <= to)
    }

    fn chance(&self, span: i64) -> f64 {
        if self.watched_ns <= 0 {
            return 0.0;
        }
        // Of a calm stretch that ends in a late one only what is longer than the span leaves room to miss it.
        let short = self.calm.partition_point(|calm| *calm <= span);
        let longer = self.calm.len() - short;
        let sums = self.calm_sums.last().copied().unwrap_or(0.0) - self.calm_sums.get(short).copied().unwrap_or(0.0);
        let room = sums - longer as f64 * span as f64 + self.calm_to_the_end_ns as f64;
        (1.0 - room / self.watched_ns as f64).clamp(0.0, 1.0)
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
        stretches.settle();
        stretches
    }

    /// The chance by trying every start.
    fn tried(stretches: &LateStretches, slices: &[(i64, i64)], span: i64) -> f64 {
        let starts: Vec<i64> = slices.iter().flat_map(|(start, end)| *start * 100..*end * 100).collect();
        // Half a step off the border, where touching decides.
        let met = starts.iter().filter(|start| {
            let at = **start as f64 / 100.0 + 0.005;
            stretches.by_cpu[&2].late.iter().any(|(due, woke)| *due as f64 <= at + span as f64 && *woke as f64 >= at)
        });
        met.count() as f64 / starts.len() as f64
    }

    #[test]
    fn stretches_that_touch_become_one_and_ends_belong_to_them() {
        let stretches = watch(&[(0, 100)], &[(20, 25), (30, 15), (40, 5), (80, 3)]);
        assert_eq!(stretches.by_cpu[&2].late, [(20, 45), (80, 83)]);
        assert_eq!(stretches.late(), 4);
        for (from, to, met) in [
            (0, 19, false),
            (0, 20, true),
            (30, 31, true),
            (45, 50, true),
            (46, 79, false),
            (46, 200, true),
            (84, 99, false),
        ] {
            assert_eq!(stretches.meet(Some(2), from, to), met, "{from} to {to}");
            assert_eq!(stretches.meet(None, from, to), met, "{from} to {to}, anywhere");
        }
    }

    #[test]
    fn chance_is_that_of_every_start_tried() {
        for (slices, late) in [
            (vec![(0, 100)], vec![(20, 25), (80, 3)]),
            (vec![(0, 100)], vec![(0, 4), (90, 40)]),
            (vec![(0, 100), (500, 600)], vec![(50, 5), (520, 30), (590, 1)]),
            (vec![(0, 100)], vec![]),
        ] {
            let stretches = watch(&slices, &late);
            let end = |slice: &(i64, i64)| {
                let of_slice = late.iter().filter(|(due, _)| (slice.0..slice.1).contains(due));
                of_slice.map(|(due, late)| due + late).max().unwrap_or(0).max(slice.1 - 10)
            };
            let watched: Vec<(i64, i64)> = slices.iter().map(|slice| (slice.0, end(slice))).collect();
            for span in [0, 1, 7, 30] {
                let (told, tried) = (stretches.chance(Some(2), span), tried_within(&stretches, &watched, span));
                assert!((told - tried).abs() < 2e-3, "{late:?} {span}: {told} {tried}");
            }
        }
    }

    /// As [`tried`], a probe of one slice not meeting what another slice saw.
    fn tried_within(stretches: &LateStretches, watched: &[(i64, i64)], span: i64) -> f64 {
        let whole: i64 = watched.iter().map(|(start, end)| end - start).sum();
        let met = watched.iter().map(|slice| tried(stretches, &[*slice], span) * (slice.1 - slice.0) as f64);
        met.sum::<f64>() / whole as f64
    }

    #[test]
    fn nothing_watched_is_met_by_nothing() {
        let stretches = watch(&[], &[]);
        assert_eq!((stretches.meet(None, 0, 100), stretches.chance(Some(7), 50)), (false, 0.0));
    }
}
