//! A search for the highest rate that meets loss goals: the goals, and the time for trials and stages.

use serde::{Deserialize, Serialize};

use super::defaults;
use crate::stats::LossGoal;
use crate::units::Nanos;
use crate::units::human::typed_percent;

/// The search of a stream run, and the stages that follow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSearchSpec {
    /// The goals, of which the first that any rate meets gives the rate of the stages.
    pub goals: Vec<LossGoal>,
    /// The longest duration of trials and stages together.
    pub within_ns: Nanos,
    /// Length of each stage after the search.
    pub stage_ns: Nanos,
}

impl RateSearchSpec {
    /// The shares of the found rate, each of a stage. The last stage is the run itself.
    pub const SHARES: [f64; 4] = [0.0, 0.5, 0.9, 1.0];

    /// A search for these loss ratios in the time `within`, from which the lengths of trials and stages follow.
    pub fn within(loss_ratios: &[f64], within: Nanos) -> RateSearchSpec {
        let trial = Nanos(within.0 / defaults::SEARCH_TRIALS_IN_ALL);
        let trial = trial.clamp(defaults::SEARCH_TRIAL_MIN, defaults::SEARCH_TRIAL_MAX);
        let goal = |loss_ratio: &f64| LossGoal {
            loss_ratio: *loss_ratio,
            final_trial_ns: trial,
            duration_sum_ns: trial.saturating_mul(defaults::SEARCH_TRIALS_AT_A_RATE),
            exceed_ratio: defaults::SEARCH_EXCEED_RATIO,
            width: defaults::SEARCH_WIDTH,
            confirming_ns: Nanos(within.0 / defaults::SEARCH_CONFIRMING_IN_ALL),
        };
        let stage = Nanos(within.0 / defaults::SEARCH_STAGES_IN_ALL);
        let stage_ns = stage.clamp(defaults::SEARCH_STAGE_MIN, defaults::SEARCH_STAGE_MAX);
        RateSearchSpec { goals: loss_ratios.iter().map(goal).collect(), within_ns: within, stage_ns }
    }

    /// The time-out of probes at the end of a stage, short enough that the last stage ends in time.
    pub fn probe_timeout(&self) -> Nanos {
        Nanos(self.within_ns.0 / defaults::SEARCH_TIMEOUTS_IN_ALL).min(defaults::TIMEOUT)
    }

    /// The time that is left for trials, with all stages if there are probes, else with the last one.
    pub fn for_trials(&self, probes: bool) -> Nanos {
        let stages = if probes { Self::SHARES.len() as i64 } else { 1 };
        self.within_ns - (self.stage_ns + self.probe_timeout()).saturating_mul(stages)
    }

    /// The length of the stage at `share` of the found rate with `left` of the time; `None` if it would leave too little for
    /// the last stage, which is the run itself and never omitted.
    pub fn stage_within(&self, share: f64, left: Nanos) -> Option<Nanos> {
        let left = left - self.probe_timeout();
        if share < 1.0 {
            return (left >= self.stage_ns.saturating_mul(2)).then_some(self.stage_ns);
        }
        Some(self.stage_ns.min(left).max(defaults::SEARCH_STAGE_MIN))
    }

    /// Its goals as typed: `0,0.5%`.
    pub fn words(&self) -> String {
        self.goals.iter().map(|goal| loss_words(goal.loss_ratio)).collect::<Vec<_>>().join(",")
    }
}

/// A loss ratio as typed: `0`, `0.5%`.
pub(crate) fn loss_words(loss_ratio: f64) -> String {
    if loss_ratio == 0.0 { "0".into() } else { typed_percent(loss_ratio) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_and_stages_follow_from_the_time() {
        let minute = RateSearchSpec::within(&[0.0, 0.005], Nanos::from_secs(60));
        assert_eq!((minute.goals.len(), minute.words().as_str()), (2, "0,0.5%"));
        let goal = minute.goals[1];
        assert_eq!((goal.final_trial_ns, goal.duration_sum_ns), (Nanos::from_millis(500), Nanos::from_millis(2_500)));
        assert_eq!((minute.stage_ns, minute.probe_timeout()), (Nanos::from_millis(2_500), Nanos::from_secs(1)));
        assert_eq!(minute.for_trials(true), Nanos::from_secs(46));
        assert_eq!(minute.for_trials(false), Nanos::from_millis(56_500));
    }

    #[test]
    fn a_late_search_omits_stages_but_not_the_run() {
        let minute = RateSearchSpec::within(&[0.0], Nanos::from_secs(60));
        let ms = Nanos::from_millis;
        for (share, left, expected) in [
            (0.0, ms(14_000), Some(ms(2_500))),
            (0.9, ms(7_000), Some(ms(2_500))),
            (0.9, ms(6_000), Some(ms(2_500))),
            (0.9, ms(5_999), None),
            (0.0, ms(-1), None),
            (1.0, ms(3_500), Some(ms(2_500))),
            (1.0, ms(2_000), Some(ms(1_000))),
            (1.0, ms(-20_000), Some(ms(200))),
        ] {
            assert_eq!(minute.stage_within(share, left), expected, "{share} with {left:?} left");
        }
    }

    #[test]
    fn the_shortest_search_has_time_for_trials_and_the_longest_has_bounded_ones() {
        let shortest = RateSearchSpec::within(&[0.0], defaults::SEARCH_MIN);
        assert!(shortest.for_trials(true) >= shortest.goals[0].duration_sum_ns.saturating_mul(4), "{shortest:?}");
        let longest = RateSearchSpec::within(&[0.0], defaults::SEARCH_MAX);
        assert_eq!(longest.goals[0].final_trial_ns, Nanos::from_secs(1));
        assert!(longest.for_trials(true) > Nanos::from_secs(500));
    }
}
