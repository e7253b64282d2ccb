//! Late stretches: the spans in which a thread of a CPU was due to run and did not. And the probability that the flight
//! of a probe overlaps a late stretch by chance.
//!
//! A late stretch begins with a slot, and slots have one phase of the interval. If the phase of the probes is constant
//! too (`-i 1ms --with-wakeup 1ms`), they overlap every late stretch or none, however rare late stretches are. So the
//! probability is computed over shifts of a probe by whole intervals, which keep its phase.
//! Definitions: docs/design/0015-with-wakeup.md, section 7.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::units::Nanos;
use crate::wakeup::is_backlog;

/// The span of a probe from sending to its answer, ns of one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProbeFlight {
    /// The CPU that received the answer, if it is known.
    pub(super) cpu: Option<u16>,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// The chance of each flight takes a pass over the late stretches of its slice.
const FLIGHTS_MAX: usize = 1_000;

/// Late stretches of every watched CPU.
#[derive(Clone, Debug)]
pub(super) struct LateStretches {
    interval: Nanos,
    by_cpu: BTreeMap<u16, WatchedCpu>,
    /// All CPUs together, for probes whose CPU is unknown or was not watched.
    any_cpu: WatchedCpu,
    late: u64,
}

impl LateStretches {
    /// No slots yet; they are due `interval` after each other.
    pub(super) fn every(interval: Nanos) -> LateStretches {
        LateStretches { interval, by_cpu: BTreeMap::new(), any_cpu: WatchedCpu::default(), late: 0 }
    }

    /// Adds a slot of `cpu`; they come in order of due time.
    pub(super) fn take(&mut self, cpu: Option<u16>, due: i64, woke: i64, is_late: bool) {
        self.late += u64::from(is_late);
        self.any_cpu.take(self.interval, due, woke, is_late);
        if let Some(cpu) = cpu {
            self.by_cpu.entry(cpu).or_default().take(self.interval, due, woke, is_late);
        }
    }

    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Whether `flight` meets a late stretch of its CPU, or of any CPU if its own is unknown or was not watched.
    pub(super) fn meet(&self, flight: &ProbeFlight) -> bool {
        self.watched(flight.cpu).meet(flight)
    }

    /// The mean over `flights` of the share of the shifts of each by whole intervals, in its slice and on its CPU, that meet a
    /// late stretch; of more than [`FLIGHTS_MAX`] over so many, one drawn from each of as many equal parts. `None` without flights.
    pub(super) fn chance(&self, flights: &[ProbeFlight]) -> Option<f64> {
        // Drawn at random from each of `count` equal parts, so that no pattern in the flights is followed.
        let (len, mut random) = (flights.len(), Pcg64Mcg::seed_from_u64(0));
        let count = len.min(FLIGHTS_MAX);
        let some = (0..count).map(|place| &flights[random.random_range(place * len..(place + 1) * len) / count]);
        let sum: f64 = some.map(|flight| self.watched(flight.cpu).chance(flight, self.interval)).sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// Whether most slots on the CPU of `flight` were past when their thread returned from the one before; of all slots
    /// if that CPU is unknown or was not watched.
    pub(super) fn is_backlog(&self, flight: &ProbeFlight) -> bool {
        let (past, slots) = match flight.cpu.and_then(|cpu| self.by_cpu.get(&cpu)) {
            Some(watch) => (watch.past, watch.slots),
            None if self.by_cpu.is_empty() => (self.any_cpu.past, self.any_cpu.slots),
            None => self.by_cpu.values().fold((0, 0), |sum, watch| (sum.0 + watch.past, sum.1 + watch.slots)),
        };
        is_backlog(past, slots)
    }

    fn watched(&self, cpu: Option<u16>) -> &WatchedCpu {
        cpu.and_then(|cpu| self.by_cpu.get(&cpu)).unwrap_or(&self.any_cpu)
    }
}

/// The slots of one CPU. Each slice of a run is watched separately: between slices no thread slept.
#[derive(Clone, Debug, Default)]
struct WatchedCpu {
    /// Late stretches, from the due time to the wake-up; ascending and disjoint.
    late: Vec<(i64, i64)>,
    slices: Vec<Slice>,
    slots: u64,
    /// Slots due before the thread had returned from an earlier one; of one CPU only.
    past: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    start: i64,
    /// Due time of its last slot so far.
    due: i64,
    end: i64,
    /// Index of its first late stretch.
    late_from: usize,
}

impl WatchedCpu {
    fn take(&mut self, interval: Nanos, due: i64, woke: i64, is_late: bool) {
        // Slots are never skipped: a gap is a slice of another run.
        let continues = |slice: &Slice| due.saturating_sub(slice.due) <= interval.0;
        if !self.slices.last().is_some_and(continues) {
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

    fn meet(&self, flight: &ProbeFlight) -> bool {
        let first = self.late.partition_point(|(_, woke)| *woke < flight.from);
        self.late.get(first).is_some_and(|(due, _)| *due <= flight.to)
    }

    /// The slice of `flight`: the nearest, since a probe may precede the first slot. `None` without a slot.
    fn slice_of(&self, flight: &ProbeFlight) -> Option<usize> {
        let next = self.slices.partition_point(|slice| slice.start <= flight.to);
        let Some(before) = next.checked_sub(1) else { return (!self.slices.is_empty()).then_some(0) };
        let since = flight.from.saturating_sub(self.slices[before].end);
        let until = self.slices.get(next).map(|slice| slice.start.saturating_sub(flight.to));
        Some(if until.is_some_and(|until| since > until) { next } else { before })
    }

    /// The share of the shifts of `flight` by whole intervals that meet a late stretch, of all that lie in its slice; 1 if none
    /// does, since it is longer.
    fn chance(&self, flight: &ProbeFlight, interval: Nanos) -> f64 {
        let Some(slice) = self.slice_of(flight) else { return 0.0 };
        let Slice { start, end, late_from, .. } = self.slices[slice];
        let late_to = self.slices.get(slice + 1).map_or(self.late.len(), |next| next.late_from);
        let late = &self.late[late_from..late_to];
        let intervals = |from: i64, to: i64| to.saturating_sub(from).div_euclid(interval.0.max(1));
        // The first and the last shift, in intervals.
        let (first, last) = (-intervals(start, flight.from), intervals(flight.to, end));
        if late.is_empty() || last < first {
            return if late.is_empty() { 0.0 } else { 1.0 };
        }
        let (mut met, mut next) = (0, first);
        for (due, woke) in late {
            let begin = next.max(-intervals(*due, flight.to));
            let until = last.min(intervals(flight.from, *woke));
            if begin <= until {
                met += until - begin + 1;
                next = until + 1;
            }
        }
        met as f64 / (last - first + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct SlotsOfSlice {
        interval: i64,
        start: i64,
        end: i64,
        late: Vec<(i64, i64)>,
    }

    impl SlotsOfSlice {
        /// The chance of a flight by slots of one slice.
        fn chance(&self, from: i64, to: i64) -> f64 {
            let slice = Slice { start: self.start, due: self.end, end: self.end, late_from: 0 };
            let watched = WatchedCpu { late: self.late.clone(), slices: vec![slice], slots: 0, past: 0 };
            watched.chance(&on(None, from, to), Nanos(self.interval))
        }
    }

    /// Slots every 10 in each of `slices`; `late` gives due time and lateness.
    fn stretches_of(slices: &[(i64, i64)], late: &[(i64, i64)]) -> LateStretches {
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
    fn a_pattern_in_many_flights_is_not_followed() {
        let stretches = stretches_of(&[(0, 100)], &[(20, 3), (50, 3)]);
        for (period, flights) in [(2, 2_000), (3, 1_500), (5, 100_000)] {
            let flight = |at| if at % period == period - 1 { on(None, 1, 3) } else { on(None, 4, 6) };
            let found = stretches.chance(&(0..flights).map(flight).collect::<Vec<_>>()).expect("flights");
            let expected = 2.0 / 9.0 / f64::from(period);
            assert!((found - expected).abs() < 0.02, "{period}: {found} {expected}");
        }
    }

    #[test]
    fn stretches_that_touch_are_merged_and_include_their_ends() {
        let stretches = stretches_of(&[(0, 100)], &[(20, 25), (30, 15), (40, 5), (80, 3)]);
        assert_eq!(stretches.by_cpu[&2].late, [(20, 45), (80, 83)]);
        assert_eq!(stretches.late(), 4);
        // Slots 30 and 40 were due before the thread had returned from 20 and 30.
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
    fn chance_is_taken_over_shifts_within_the_slice_of_a_probe() {
        // The first slice is late in two of its ten slots, the second in one of five, by 3 each.
        let slices = [(0, 100), (505, 555)];
        let stretches = stretches_of(&slices, &[(20, 3), (50, 3), (515, 3)]);
        for (from, to, expected) in [
            // The last wake-up is that of slot 90, so a probe of 2 fits into nine of the ten slots.
            (1, 3, 2.0 / 9.0),
            (91, 93, 2.0 / 9.0),
            (4, 6, 0.0),
            (9, 10, 2.0 / 9.0),
            // It ends in the slot after that in which it starts, or starts before or after a slice.
            (4, 14, 2.0 / 8.0),
            (-9, -7, 2.0 / 9.0),
            (499, 501, 0.0),
            (506, 508, 1.0 / 4.0),
            (556, 558, 1.0 / 4.0),
            // Longer than the slice.
            (500, 600, 1.0),
        ] {
            for cpu in [Some(2), None, Some(7)] {
                let found = stretches.chance(&[on(cpu, from, to)]).expect("a flight");
                assert!((found - expected).abs() < 1e-12, "{from} to {to}: {found} {expected}");
            }
        }
    }

    #[test]
    fn backlog_is_judged_for_each_cpu() {
        let mut stretches = stretches_of(&[(0, 100)], &[]);
        for due in (0..100).step_by(10) {
            stretches.take(Some(3), due, due + 60, true);
        }
        for (cpu, backlog) in [(Some(2), false), (Some(3), true), (None, false), (Some(7), false)] {
            assert_eq!(stretches.is_backlog(&on(cpu, 0, 5)), backlog, "{cpu:?}");
        }
    }

    #[test]
    fn without_slots_nothing_is_met() {
        let stretches = stretches_of(&[], &[]);
        let flight = on(Some(7), 0, 50);
        assert_eq!((stretches.meet(&flight), stretches.chance(&[flight])), (false, Some(0.0)));
    }

    /// The share of shifts that meet a stretch, by trying each of them in both directions.
    fn chance_by_trying(shifts: &SlotsOfSlice, from: i64, to: i64) -> f64 {
        let SlotsOfSlice { interval, start, end, late } = shifts;
        let meets = |shift: i64| late.iter().any(|(due, woke)| *due <= to + shift && *woke >= from + shift);
        let far = (end - start + to - from + (from - start).abs()) / interval + 2;
        let inside: Vec<i64> = (-far..=far)
            .map(|shift| shift * interval)
            .filter(|shift| from + shift >= *start && to + shift <= *end)
            .collect();
        let met = inside.iter().filter(|shift| meets(**shift)).count();
        if inside.is_empty() { f64::from(!late.is_empty()) } else { met as f64 / inside.len() as f64 }
    }

    /// Slots, some of which wake late.
    fn slots() -> impl Strategy<Value = SlotsOfSlice> {
        let lateness = prop_oneof![3 => Just(0i64), 1 => 1i64..25, 1 => 25i64..70];
        let slots = (1i64..12, -30i64..30, prop::collection::vec(lateness, 1..60));
        slots.prop_map(|(interval, start, lateness)| slots_of(interval, start, &lateness))
    }

    /// The late stretches of slots with this lateness, and the last wake-up.
    fn slots_of(interval: i64, start: i64, lateness: &[i64]) -> SlotsOfSlice {
        let (mut late, mut end): (Vec<(i64, i64)>, i64) = (Vec::new(), start);
        for (slot, lateness) in lateness.iter().enumerate() {
            let due = start + slot as i64 * interval;
            end = end.max(due + lateness);
            match late.last_mut().filter(|last| due <= last.1) {
                _ if *lateness == 0 => {}
                Some(last) => last.1 = last.1.max(due + lateness),
                None => late.push((due, due + lateness)),
            }
        }
        SlotsOfSlice { interval, start, end, late }
    }

    proptest! {
        #[test]
        fn chances_are_those_of_every_shift_tried(
            slots in slots(),
            flights in prop::collection::vec((-20i64..300, 0i64..60), 1..20),
        ) {
            for (at, span) in flights {
                let (from, to) = (slots.start + at, slots.start + at + span);
                let (found, tried) = (slots.chance(from, to), chance_by_trying(&slots, from, to));
                prop_assert!((found - tried).abs() < 1e-12, "{slots:?} {from} to {to}: {found} {tried}");
            }
        }
    }

    #[test]
    fn probes_in_step_with_the_slots_meet_all_or_no_stretches() {
        // One of a hundred slots is late, by a third of the interval.
        let late: Vec<(i64, i64)> = (0..10).map(|each| (each * 3_000, each * 3_000 + 10)).collect();
        let slots = SlotsOfSlice { interval: 30, start: 0, end: 30_000, late };
        // Over all phases the first two would meet 15 in 3,000. The last one would have to start before slot 0.
        for (from, to, expected) in [(15, 20, 0.0), (3_000, 3_005, 0.01), (3_011, 3_029, 0.0), (3_011, 3_030, 0.009)] {
            let found = slots.chance(from, to);
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}
