//! The search for the highest rates that meet loss goals, after MLRsearch (RFC 9971): the rate and duration of the next
//! trial. Pure: the time and the results of trials are arguments.

use crate::stats::{LossGoal, RateClass, RateTrial};
use crate::units::{Nanos, SenderClock, Stamp};

/// The passes: the factors by which trials are shorter, and bounds may be wider, than the goal requires. In all passes but
/// the last one a single trial decides.
const PASSES: [(i64, f64); 3] = [(4, 8.0), (1, 2.0), (1, 1.0)];
/// The largest step away from the only bound, as a share of the higher rate.
const STEP_MAX: f64 = 0.5;
/// The first estimate of the time of a trial beyond its duration: a POLL before and after it, each a round trip.
const OVERHEAD: Nanos = Nanos::from_millis(50);
/// Rates with a smaller relative difference are equal: no clock distinguishes them in a trial.
const SAME: f64 = 1e-6;
/// Trials that confirm, for which time is kept beside one for each goal: a rate is lowered some times behind a bucket.
const FURTHER_CONFIRMING: i64 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GoalStep {
    Try {
        /// Packets a second.
        pps: f64,
        lasting: Nanos,
    },
    /// Every goal has its bounds, or cannot have them.
    Settled,
    /// The next trial would exceed the time of the search.
    TimeUp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateRange {
    /// The lowest rate, in packets a second.
    pub floor_pps: f64,
    /// The highest rate, in packets a second.
    pub ceiling_pps: f64,
    /// The first guess, in packets a second.
    pub guess_pps: f64,
}

/// The progress of the search for one goal.
#[derive(Clone, Copy, Debug, Default)]
struct GoalProgress {
    /// The number of completed passes.
    passes: usize,
    /// The rate that is tried until it is decided.
    current_pps: Option<f64>,
    /// Steps away from the only bound in this pass.
    steps: i32,
}

#[derive(Clone, Debug)]
pub(super) struct GoalSearch {
    goals: Vec<LossGoal>,
    progress: Vec<GoalProgress>,
    /// The numbers of goals, the largest loss ratio first: what confirms a goal may confirm one that allows more.
    confirming_order: Vec<usize>,
    range: RateRange,
    until: Stamp<SenderClock>,
    trials: Vec<RateTrial>,
    overhead: Nanos,
}

impl GoalSearch {
    /// A search for `goals` in `range` that ends by `until`.
    pub(super) fn new(goals: &[LossGoal], range: RateRange, until: Stamp<SenderClock>) -> GoalSearch {
        let floor_pps = rounded(range.floor_pps);
        let ceiling_pps = rounded(range.ceiling_pps).max(floor_pps);
        let guess_pps = rounded(range.guess_pps).clamp(floor_pps, ceiling_pps);
        let mut confirming_order: Vec<usize> = (0..goals.len()).collect();
        confirming_order.sort_by(|one, other| goals[*other].loss_ratio.total_cmp(&goals[*one].loss_ratio));
        GoalSearch {
            confirming_order,
            goals: goals.to_vec(),
            progress: vec![GoalProgress::default(); goals.len()],
            range: RateRange { floor_pps, ceiling_pps, guess_pps },
            until,
            trials: Vec::new(),
            overhead: OVERHEAD,
        }
    }

    /// The next step at `now`: a trial that narrows the bounds of a goal, then those that confirm lower bounds.
    pub(super) fn step(&mut self, now: Stamp<SenderClock>) -> GoalStep {
        let narrowing = self.narrowing_step();
        let of_confirming = self.goals.iter().map(|goal| goal.confirming_ns).max().unwrap_or_default();
        let to_confirm = (0..self.goals.len()).filter(|number| self.to_confirm(*number).is_some()).count() as i64;
        let trials = if to_confirm > 0 { to_confirm + FURTHER_CONFIRMING } else { 0 };
        let until = self.until - of_confirming.saturating_mul(trials);
        if let Some((pps, lasting)) = narrowing.filter(|(_, lasting)| now + *lasting + self.overhead <= until) {
            return GoalStep::Try { pps, lasting };
        }
        let mut is_time_up = narrowing.is_some();
        for number in self.confirming_order.clone() {
            let Some(pps) = self.to_confirm(number) else { continue };
            let lasting = self.goals[number].confirming_at(pps);
            if now + lasting + self.overhead <= self.until {
                self.progress[number].steps += 1;
                return GoalStep::Try { pps, lasting };
            }
            is_time_up = true;
        }
        if is_time_up { GoalStep::TimeUp } else { GoalStep::Settled }
    }

    /// The rate and the duration of the next trial of a pass; `None` if all passes are complete.
    fn narrowing_step(&mut self) -> Option<(f64, Nanos)> {
        for pass in 0..PASSES.len() {
            for number in 0..self.goals.len() {
                if let Some(pps) = self.wanted(number, pass) {
                    return Some((pps, relaxed(&self.goals[number], pass).final_trial_ns));
                }
            }
        }
        None
    }

    /// The rate at which goal `number` is to be confirmed next; `None` if it has a confirmed bound, or cannot have one.
    fn to_confirm(&self, number: usize) -> Option<f64> {
        let goal = &self.goals[number];
        if goal.confirming_ns == Nanos::ZERO || goal.bounds(&self.trials).lower_pps.is_some() {
            return None;
        }
        let (tried, short): (Vec<RateTrial>, Vec<RateTrial>) =
            self.trials.iter().copied().partition(|trial| goal.is_confirming(trial));
        let shown = (0..PASSES.len()).rev().find_map(|pass| relaxed(goal, pass).bounds(&short).lower_pps)?;
        let Some(lowest) = tried.iter().min_by(|one, other| one.pps.total_cmp(&other.pps)) else { return Some(shown) };
        let next = goal.below(lowest, self.progress[number].steps).min(shown).max(self.range.floor_pps);
        (lowest.pps > self.range.floor_pps).then(|| rounded(next))
    }

    /// Updates the search with all trials so far, of which the last had the duration `lasting` and took `took`.
    pub(super) fn learn(&mut self, trials: &[RateTrial], lasting: Nanos, took: Nanos) {
        self.overhead = self.overhead.max(took - lasting);
        self.trials.clear();
        self.trials.extend_from_slice(trials);
    }

    /// The rate of the next trial for goal `number` in `pass`; `None` if the pass is complete. A completed pass stays so:
    /// otherwise later trials could reopen it by noise.
    fn wanted(&mut self, number: usize, pass: usize) -> Option<f64> {
        if self.progress[number].passes > pass {
            return None;
        }
        let goal = relaxed(&self.goals[number], pass);
        if let Some(current) = self.progress[number].current_pps {
            if self.class_of(&goal, current) == RateClass::Undecided {
                return Some(current);
            }
            self.progress[number].current_pps = None;
        }
        let before = pass.checked_sub(1).map(|before| relaxed(&self.goals[number], before));
        // Rates that shorter trials have decided are skipped.
        let next = self.next_rate(&goal, before.as_ref(), number);
        match next {
            Some(pps) => self.progress[number].current_pps = Some(pps),
            None => self.progress[number] = GoalProgress { passes: pass + 1, ..GoalProgress::default() },
        }
        next
    }

    /// The rate whose trial narrows the bounds most; `None` if they are narrow enough.
    fn next_rate(&mut self, goal: &LossGoal, before: Option<&LossGoal>, number: usize) -> Option<f64> {
        let RateRange { floor_pps, ceiling_pps, guess_pps } = self.range;
        let known = goal.bounds(&self.trials);
        let hint = before.map(|before| before.bounds(&self.trials)).unwrap_or_default();
        let open = |pps: &f64| self.class_of(goal, *pps) == RateClass::Undecided;
        match (known.lower_pps, known.upper_pps) {
            (Some(lower), Some(upper)) if upper - lower <= goal.width * upper => None,
            (Some(lower), Some(upper)) => {
                // A bound of the pass before in this range costs fewer trials, since it is nearly decided.
                let hints = [hint.upper_pps, hint.lower_pps].into_iter().flatten();
                let near = hints.filter(|pps| *pps > lower && *pps < upper).find(open);
                let middle = rounded((lower * upper).sqrt());
                near.or_else(|| Some(middle).filter(|middle| *middle > lower && *middle < upper && open(middle)))
            }
            (Some(lower), None) if lower >= ceiling_pps * (1.0 - SAME) => None,
            (Some(lower), None) => {
                let near = hint.upper_pps.filter(|pps| *pps > lower && open(pps));
                near.or_else(|| Some((lower / (1.0 - self.stride(goal, number))).min(ceiling_pps))).map(rounded)
            }
            (None, Some(upper)) if upper <= floor_pps * (1.0 + SAME) => None,
            (None, Some(upper)) => {
                let near = hint.lower_pps.filter(|pps| *pps < upper && open(pps));
                near.or_else(|| Some((upper * (1.0 - self.stride(goal, number))).max(floor_pps))).map(rounded)
            }
            (None, None) => {
                let mut hints = [hint.lower_pps, hint.upper_pps].into_iter().flatten();
                hints.find(open).or(Some(guess_pps))
            }
        }
    }

    /// The step away from the only bound, as a share of the higher rate; doubled each time.
    fn stride(&mut self, goal: &LossGoal, number: usize) -> f64 {
        let steps = &mut self.progress[number].steps;
        *steps += 1;
        (goal.width * 2f64.powi(*steps - 1)).min(STEP_MAX)
    }

    fn class_of(&self, goal: &LossGoal, pps: f64) -> RateClass {
        goal.class_of(self.trials.iter().filter(|trial| trial.pps == pps))
    }
}

/// The requirements of `goal` in `pass`.
fn relaxed(goal: &LossGoal, pass: usize) -> LossGoal {
    let goal = &LossGoal { confirming_ns: Nanos::ZERO, ..*goal };
    let Some((shorter, wider)) = PASSES.get(pass).copied().filter(|_| pass + 1 < PASSES.len()) else { return *goal };
    let trial = Nanos(goal.final_trial_ns.0 / shorter);
    LossGoal {
        final_trial_ns: trial,
        duration_sum_ns: trial.min(goal.duration_sum_ns),
        width: goal.width * wider,
        ..*goal
    }
}

/// Rounded to thousandths of a packet, the resolution of schedules, so that equal rates compare equal.
fn rounded(pps: f64) -> f64 {
    (pps * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
