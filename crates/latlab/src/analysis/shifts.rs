//! How often something would have met a late stretch, had it been on its way some whole intervals earlier or later.
//!
//! Threads are late from a slot on, and slots are due at one phase of the interval; a probe has a phase of its own, which
//! may be the same each time (`-i 1ms --with-wakeup 1ms`). Such probes meet every late stretch or none, however rare these
//! are: chance has to keep the phase. Definitions: docs/design/0015-with-wakeup.md, section 7.

/// The slots of a CPU in one slice, those between its late stretches told apart.
#[derive(Clone, Debug)]
pub(super) struct Shifts {
    interval: i64,
    start: i64,
    end: Place,
    /// The first late slot, and where the last late stretch ends; none where nothing was late.
    late: Option<(i64, Place)>,
    /// The longest first.
    gaps: Vec<Gap>,
}

/// A moment of a slice.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The slot that was last due; the first is 0.
    slot: i64,
    /// How long ago, ns: at least 0 and less than an interval.
    phase: i64,
}

/// Whole slots between two late stretches.
#[derive(Clone, Copy, Debug)]
struct Gap {
    slots: i64,
    /// How far into the slot before them the earlier stretch reached.
    phase: i64,
}

impl Shifts {
    /// Slots due every `interval` ns from `start` on, their thread last seen at `end`; `late` ascending, none touching the
    /// next, each from the due time of a slot on.
    pub(super) fn of(interval: i64, (start, end): (i64, i64), late: &[(i64, i64)]) -> Shifts {
        let interval = interval.max(1);
        let place = |at: i64| Place::of(at.saturating_sub(start), interval);
        let gap = |pair: &[(i64, i64)]| {
            let before = place(pair[0].1);
            Gap { slots: place(pair[1].0).slot - before.slot - 1, phase: before.phase }
        };
        let mut gaps: Vec<Gap> = late.windows(2).map(gap).collect();
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.slots));
        let ends = late.first().zip(late.last());
        let late = ends.map(|(first, last)| (place(first.0).slot, place(last.1)));
        Shifts { interval, start, end: place(end), late, gaps }
    }

    /// For each of `passages`, from when to when, the share of its shifts by whole intervals that meet a late stretch, of all
    /// that lie inside of what was watched. One that is longer than that has no other place, and meets all there is.
    ///
    /// For s stretches and p passages O((s + p) log s).
    pub(super) fn chances(&self, passages: &[(i64, i64)]) -> Vec<f64> {
        let Some((first, last)) = self.late else { return vec![0.0; passages.len()] };
        let crossing = |passage: &(i64, i64)| {
            let [from, to] = [passage.0, passage.1].map(|at| Place::of(at.saturating_sub(self.start), self.interval));
            (to.slot.saturating_sub(from.slot), from.phase, to.phase)
        };
        let mut order: Vec<(usize, (i64, i64, i64))> = passages.iter().map(crossing).enumerate().collect();
        // Whoever crosses most slots finds room in the fewest gaps.
        order.sort_by_key(|(_, (crossed, ..))| std::cmp::Reverse(*crossed));
        let (mut roomy, mut phases) = (self.gaps.iter().peekable(), Phases::of(&self.gaps));
        let (mut gaps, mut slots) = (0, 0);
        let mut chances = vec![0.0; passages.len()];
        for (place, (crossed, phase, last_phase)) in order {
            while let Some(gap) = roomy.next_if(|gap| gap.slots >= crossed) {
                phases.count(gap.phase);
                (gaps, slots) = (gaps + 1, slots + gap.slots);
            }
            // Beginnings are told by their slot: the last from which it still ends in time, and all from 0 on.
            let starts = self.end.slot.saturating_sub(crossed) - i64::from(self.end.phase < last_phase) + 1;
            let before = first.saturating_sub(crossed).max(0);
            // In the slot in which a stretch ends it may begin if its phase is the later one.
            let between = slots - gaps * crossed + phases.below(phase);
            let after = (starts.saturating_sub(1 + last.slot) + i64::from(last.phase < phase)).max(0);
            let missing = before + between + after;
            chances[place] = if starts > 0 { (starts - missing) as f64 / starts as f64 } else { 1.0 };
        }
        chances
    }
}

impl Place {
    fn of(since_start: i64, interval: i64) -> Place {
        Place { slot: since_start.div_euclid(interval), phase: since_start.rem_euclid(interval) }
    }
}

/// Phases counted so far, by rank: a binary indexed tree (Fenwick 1994).
struct Phases {
    /// All there will be, ascending.
    ranks: Vec<i64>,
    tree: Vec<i64>,
}

impl Phases {
    fn of(gaps: &[Gap]) -> Phases {
        let mut ranks: Vec<i64> = gaps.iter().map(|gap| gap.phase).collect();
        ranks.sort_unstable();
        Phases { tree: vec![0; ranks.len() + 1], ranks }
    }

    fn rank(&self, phase: i64) -> usize {
        self.ranks.partition_point(|other| *other < phase)
    }

    fn count(&mut self, phase: i64) {
        let mut at = self.rank(phase) + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many of them are earlier than `phase`.
    fn below(&self, phase: i64) -> i64 {
        let (mut at, mut sum) = (self.rank(phase), 0);
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The share by trying every shift, in both directions.
    fn tried(interval: i64, (start, end): (i64, i64), late: &[(i64, i64)], (from, to): (i64, i64)) -> f64 {
        let meets = |shift: i64| late.iter().any(|(due, woke)| *due <= to + shift && *woke >= from + shift);
        let far = (end - start + to - from + (from - start).abs()) / interval + 2;
        let inside: Vec<i64> = (-far..=far)
            .map(|shift| shift * interval)
            .filter(|shift| from + shift >= start && to + shift <= end)
            .collect();
        let met = inside.iter().filter(|shift| meets(**shift)).count();
        if inside.is_empty() { f64::from(!late.is_empty()) } else { met as f64 / inside.len() as f64 }
    }

    /// Slots of which some wake late: interval, start, lateness of each.
    fn slots() -> impl Strategy<Value = (i64, i64, Vec<i64>)> {
        let lateness = prop_oneof![3 => Just(0i64), 1 => 1i64..25, 1 => 25i64..70];
        (1i64..12, -30i64..30, prop::collection::vec(lateness, 1..60))
    }

    /// Late stretches as a watch hands them over, and the last wake-up.
    fn stretches(interval: i64, start: i64, lateness: &[i64]) -> (Vec<(i64, i64)>, i64) {
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
        (late, end)
    }

    proptest! {
        #[test]
        fn chances_are_those_of_every_shift_tried(
            (interval, start, lateness) in slots(),
            passages in prop::collection::vec((-20i64..300, 0i64..60), 1..20),
        ) {
            let (late, end) = stretches(interval, start, &lateness);
            let passages: Vec<_> = passages.into_iter().map(|(at, span)| (start + at, start + at + span)).collect();
            let told = Shifts::of(interval, (start, end), &late).chances(&passages);
            for (passage, told) in passages.iter().zip(told) {
                let tried = tried(interval, (start, end), &late, *passage);
                prop_assert!((told - tried).abs() < 1e-12, "{interval} {passage:?} {late:?}: {told} {tried}");
            }
        }
    }

    #[test]
    fn a_passage_that_keeps_step_meets_all_or_none() {
        // One of a hundred slots is late, by a third of the interval.
        let late: Vec<(i64, i64)> = (0..10).map(|each| (each * 3_000, each * 3_000 + 10)).collect();
        let shifts = Shifts::of(30, (0, 30_000), &late);
        // Of all moments 15 in 3,000 would do for the first two. The last one would have to begin before slot 0 to meet that.
        let chances = shifts.chances(&[(15, 20), (3_000, 3_005), (3_011, 3_029), (3_011, 3_030)]);
        for (told, expected) in chances.into_iter().zip([0.0, 0.01, 0.0, 0.009]) {
            assert!((told - expected).abs() < 1e-4, "{told} {expected}");
        }
    }

    #[test]
    fn over_all_phases_it_is_the_share_of_moments() {
        let (interval, end) = (100, 100_000);
        let late: Vec<(i64, i64)> = (1..20).map(|each| (each * 4_900, each * 4_900 + each * 170 % 1_300)).collect();
        let shifts = Shifts::of(interval, (0, end), &late);
        for span in [0, 40, 350, 4_000] {
            let passages: Vec<(i64, i64)> = (0..interval).map(|phase| (phase, phase + span)).collect();
            let mean = shifts.chances(&passages).iter().sum::<f64>() / interval as f64;
            let within = |at: &i64| late.iter().any(|(due, woke)| *due <= at + span && *woke >= *at);
            let moments = (0..=end - span).filter(within).count() as f64 / (end - span + 1) as f64;
            assert!((mean - moments).abs() < 2e-3, "{span}: {mean} {moments}");
        }
    }
}
