//! The search for the highest rates that keep to loss goals, in the manner of MLRsearch (RFC 9971): which rate to try
//! next, and for how long. Pure: the clock comes in, and what trials lost.

use crate::stats::{LossGoal, RateClass, RateTrial};
use crate::units::{Nanos, SenderClock, Stamp};

/// The passes: how much shorter trials are, and how much wider bounds may be, than the goal says. Trials of all but the last
/// count at once.
const PASSES: [(i64, f64); 3] = [(4, 8.0), (1, 2.0), (1, 1.0)];
/// A step away from the only bound is at most this share of it.
const STEP_MAX: f64 = 0.5;
/// What a trial takes beyond its length, before any is known: a question before it and one behind it, each a round trip.
const OVERHEAD: Nanos = Nanos::from_millis(50);
/// Rates closer than this are one: no clock distinguishes them in a trial.
const SAME: f64 = 1e-6;

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalStep {
    /// Try so many packets a second, for so long.
    Try {
        /// Packets a second.
        pps: f64,
        /// For so long.
        lasting: Nanos,
    },
    /// Every goal is reached, or cannot be.
    Settled,
    /// The next trial would end too late.
    TimeUp,
}

/// Where rates can lie, in packets a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateRange {
    /// No less is of interest.
    pub floor_pps: f64,
    /// No more can be sent.
    pub ceiling_pps: f64,
    /// The first guess.
    pub guess_pps: f64,
}

/// How far the search for one goal is.
#[derive(Clone, Copy, Debug, Default)]
struct GoalProgress {
    /// Passes that are over.
    passes: usize,
    /// The rate that is tried again until it is settled.
    current_pps: Option<f64>,
    /// Steps away from the only bound in this pass.
    steps: i32,
}

/// A search on its way.
#[derive(Clone, Debug)]
pub(crate) struct GoalSearch {
    goals: Vec<LossGoal>,
    progress: Vec<GoalProgress>,
    reach: RateRange,
    until: Stamp<SenderClock>,
    trials: Vec<RateTrial>,
    overhead: Nanos,
}

impl GoalSearch {
    /// A search for `goals` within `reach` that ends by `until`.
    pub(crate) fn new(goals: &[LossGoal], reach: RateRange, until: Stamp<SenderClock>) -> GoalSearch {
        let floor_pps = rounded(reach.floor_pps);
        let ceiling_pps = rounded(reach.ceiling_pps).max(floor_pps);
        let guess_pps = rounded(reach.guess_pps).clamp(floor_pps, ceiling_pps);
        GoalSearch {
            goals: goals.to_vec(),
            progress: vec![GoalProgress::default(); goals.len()],
            reach: RateRange { floor_pps, ceiling_pps, guess_pps },
            until,
            trials: Vec::new(),
            overhead: OVERHEAD,
        }
    }

    /// What is next, at `now`.
    pub(crate) fn step(&mut self, now: Stamp<SenderClock>) -> GoalStep {
        for pass in 0..PASSES.len() {
            for number in 0..self.goals.len() {
                let Some(pps) = self.wanted(number, pass) else { continue };
                let lasting = relaxed(&self.goals[number], pass).final_trial_ns;
                if now + lasting + self.overhead > self.until {
                    return GoalStep::TimeUp;
                }
                return GoalStep::Try { pps, lasting };
            }
        }
        GoalStep::Settled
    }

    /// Takes in all trials so far, of which the last was to take `lasting` and took `took`.
    pub(crate) fn learn(&mut self, trials: &[RateTrial], lasting: Nanos, took: Nanos) {
        self.overhead = self.overhead.max(took - lasting);
        self.trials.clear();
        self.trials.extend_from_slice(trials);
    }

    /// The rate that goal `number` wants tried in `pass`; `None` if it has what the pass asks for. A pass that is over stays
    /// so, whatever later trials say of its rates: else noise could hold a search in it.
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
        // A rate that shorter trials have settled already is skipped; each turn settles one more bound or asks.
        let next = self.next_rate(&goal, before.as_ref(), number);
        match next {
            Some(pps) => self.progress[number].current_pps = Some(pps),
            None => self.progress[number] = GoalProgress { passes: pass + 1, ..GoalProgress::default() },
        }
        next
    }

    /// The most informative rate, given what is known; `None` if enough is known.
    fn next_rate(&mut self, goal: &LossGoal, before: Option<&LossGoal>, number: usize) -> Option<f64> {
        let RateRange { floor_pps, ceiling_pps, guess_pps } = self.reach;
        let known = goal.bounds(&self.trials);
        let hint = before.map(|before| before.bounds(&self.trials)).unwrap_or_default();
        let open = |pps: &f64| self.class_of(goal, *pps) == RateClass::Undecided;
        match (known.lower_pps, known.upper_pps) {
            (Some(lower), Some(upper)) if upper - lower <= goal.width * upper => None,
            (Some(lower), Some(upper)) => {
                // A bound of the pass before that lies in between is as good as settled: it costs fewer trials.
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

    /// How far to step from the only bound, as a share of the higher rate: twice as far each time.
    fn stride(&mut self, goal: &LossGoal, number: usize) -> f64 {
        let steps = &mut self.progress[number].steps;
        *steps += 1;
        (goal.width * 2f64.powi(*steps - 1)).min(STEP_MAX)
    }

    fn class_of(&self, goal: &LossGoal, pps: f64) -> RateClass {
        goal.class_of(self.trials.iter().filter(|trial| trial.pps == pps))
    }
}

/// What `goal` asks for in `pass`.
fn relaxed(goal: &LossGoal, pass: usize) -> LossGoal {
    let Some((shorter, wider)) = PASSES.get(pass).copied().filter(|_| pass + 1 < PASSES.len()) else { return *goal };
    let trial = Nanos(goal.final_trial_ns.0 / shorter);
    LossGoal {
        final_trial_ns: trial,
        duration_sum_ns: trial.min(goal.duration_sum_ns),
        width: goal.width * wider,
        ..*goal
    }
}

/// To thousandths of a packet, as schedules count: a rate that is tried again is the same rate.
fn rounded(pps: f64) -> f64 {
    (pps * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests;
