//! Search goals for a rate and their evaluation from trials, as in MLRsearch (RFC 9971).

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Tolerance in seconds when shares of durations are compared.
const ROUNDING: f64 = 1e-9;
/// A confirmed bound lies this share below the rate of its trial, since a bucket that was full at its begin let more pass.
const MARGIN: f64 = 0.005;
/// Packets without a loss for each allowed one, after which the loss ratio is at most that allowed (95 %; rule of three).
const PACKETS_FOR_EACH: f64 = 3.0;

/// The allowed loss and the required evidence (RFC 9971: search goal).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossGoal {
    /// The share of its packets that a trial may lose (RFC 9971: goal loss ratio).
    pub loss_ratio: f64,
    /// The minimum duration of a full-length trial (RFC 9971: goal final trial duration).
    pub final_trial_ns: Nanos,
    /// The total trial time that is sufficient to classify a rate (RFC 9971: goal duration sum).
    pub duration_sum_ns: Nanos,
    /// The share of that time that trials with a higher loss may have (RFC 9971: goal exceed ratio).
    pub exceed_ratio: f64,
    /// The distance of the bounds at which a search ends, as a share of the upper one (RFC 9971: goal width).
    pub width: f64,
    /// The duration of the trial that confirms a lower bound; 0: none does, as in recordings before this key.
    #[serde(default)]
    pub confirming_ns: Nanos,
}

/// One trial: a constant rate for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateTrial {
    /// The rate asked for, in packets a second.
    pub pps: f64,
    pub lasting: Nanos,
    /// The share of packets that the path did not carry: lost, too late, or requested but not sent.
    pub loss_ratio: f64,
    /// The rate at which packets arrived, in packets a second.
    pub delivered_pps: f64,
    /// The same of the packets that were sent, lost ones included.
    pub offered_pps: f64,
    /// The share of the sent packets that did not arrive.
    pub lost_ratio: f64,
}

/// The classification of a rate for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// It meets the goal, whatever further trials show.
    Lower,
    /// It does not meet the goal, whatever further trials show.
    Upper,
    Undecided,
}

/// The bounds of the highest rate that meets a goal, as far as trials show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateBounds {
    /// The highest rate below the upper bound that meets the goal, in packets a second.
    pub lower_pps: Option<f64>,
    /// The lowest rate that does not meet it.
    pub upper_pps: Option<f64>,
    /// The conditional throughput at the lower bound; of a confirmed one, what its trial delivered of it.
    pub conditional_pps: Option<f64>,
}

impl RateBounds {
    /// The distance of the bounds as a share of the upper one; `None` while one is missing.
    pub fn width(&self) -> Option<f64> {
        let (lower, upper) = self.lower_pps.zip(self.upper_pps)?;
        Some((upper - lower) / upper)
    }
}

/// Trial time at one rate in seconds: of full-length and of shorter trials, with (`lossy`) and without (`kept`) a loss
/// above the goal's.
#[derive(Clone, Copy, Debug, Default)]
struct TrialTime {
    full_kept: f64,
    full_lossy: f64,
    short_kept: f64,
    short_lossy: f64,
}

impl LossGoal {
    /// The class of the rate of these trials.
    pub fn class_of<'a>(&self, at_rate: impl IntoIterator<Item = &'a RateTrial>) -> RateClass {
        let time = self.time_of(at_rate);
        // Lossy time of short trials counts only above the amount that the exceed ratio permits for the kept time of
        // short trials.
        let balanced = time.short_kept * self.exceed_ratio / (1.0 - self.exceed_ratio).max(ROUNDING);
        let lossy = time.full_lossy + (time.short_lossy - balanced).max(0.0);
        let whole = (time.full_kept + lossy).max(self.duration_sum_ns.as_secs_f64());
        let allowed = whole * self.exceed_ratio + ROUNDING;
        // The best and the worst outcome of the trials that are still missing.
        match (lossy <= allowed, whole - time.full_kept <= allowed) {
            (true, true) => RateClass::Lower,
            (false, false) => RateClass::Upper,
            _ => RateClass::Undecided,
        }
    }

    /// The bounds that `trials` give.
    pub fn bounds(&self, trials: &[RateTrial]) -> RateBounds {
        let mut rates: Vec<f64> = trials.iter().map(|trial| trial.pps).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let class = |pps: &f64| self.class_of(trials.iter().filter(|trial| trial.pps == *pps));
        let upper_pps = rates.iter().copied().find(|pps| class(pps) == RateClass::Upper);
        let below = |pps: &f64| upper_pps.is_none_or(|upper| *pps < upper);
        if self.confirming_ns > Nanos::ZERO {
            // Without an upper bound no overload was seen, nor a bucket that could hide it.
            let margin = if upper_pps.is_some() { MARGIN } else { 0.0 };
            let kept = trials.iter().filter(|trial| self.is_confirming(trial) && trial.lost_ratio <= self.loss_ratio);
            let confirmed = kept.map(|trial| (trial.offered_pps * (1.0 - margin), trial.lost_ratio));
            let highest = confirmed.filter(|(pps, _)| below(pps)).max_by(|one, other| one.0.total_cmp(&other.0));
            let conditional_pps = highest.map(|(pps, lost)| pps * (1.0 - lost));
            return RateBounds { lower_pps: highest.map(|(pps, _)| pps), upper_pps, conditional_pps };
        }
        let lower_pps = rates.iter().rev().copied().find(|pps| below(pps) && class(pps) == RateClass::Lower);
        let conditional_pps = lower_pps.map(|lower| self.conditional_throughput(lower, trials));
        RateBounds { lower_pps, upper_pps, conditional_pps }
    }

    /// The delivered rate of one of the full-length trials at `pps`. With the trials in order from the best to the
    /// worst, it is the one in which the trial time reaches a share of 1 − exceed ratio. Trial time missing from the
    /// duration sum counts as trials that delivered 0.
    fn conditional_throughput(&self, pps: f64, trials: &[RateTrial]) -> f64 {
        let mut full: Vec<&RateTrial> = trials.iter().filter(|trial| trial.pps == pps && self.is_full(trial)).collect();
        full.sort_by(|one, other| {
            let by_rate = || other.delivered_pps.total_cmp(&one.delivered_pps);
            one.loss_ratio.total_cmp(&other.loss_ratio).then_with(by_rate)
        });
        let sum: f64 = full.iter().map(|trial| trial.lasting.as_secs_f64()).sum();
        let mut left = sum.max(self.duration_sum_ns.as_secs_f64()) * (1.0 - self.exceed_ratio);
        let mut delivered_pps = None;
        for trial in full {
            if delivered_pps.is_some() && left <= ROUNDING {
                break;
            }
            delivered_pps = Some(trial.delivered_pps);
            left -= trial.lasting.as_secs_f64();
        }
        delivered_pps.filter(|_| left <= ROUNDING).unwrap_or(0.0)
    }

    /// The duration of a trial that confirms `pps` packets a second: long enough to decide about the loss ratio.
    pub fn confirming_at(&self, pps: f64) -> Nanos {
        let seconds = PACKETS_FOR_EACH / (self.loss_ratio * pps);
        let decides = if seconds.is_finite() { (seconds * 1e9) as i64 } else { 0 };
        self.confirming_ns.max(Nanos(decides))
    }

    /// Whether `trial` is long enough to confirm its rate.
    pub fn is_confirming(&self, trial: &RateTrial) -> bool {
        self.confirming_ns > Nanos::ZERO && trial.lasting >= self.confirming_at(trial.pps)
    }

    /// The rate to confirm after `trial` did not: what it delivered, plus the allowed loss, but lower by at least the margin
    /// doubled `steps` times. Not below half of its rate.
    pub fn below(&self, trial: &RateTrial, steps: i32) -> f64 {
        let carried = trial.delivered_pps / (1.0 - self.loss_ratio) * (1.0 - MARGIN);
        let step = trial.pps * (1.0 - MARGIN * 2f64.powi(steps));
        carried.min(step).max(trial.pps / 2.0)
    }

    fn is_full(&self, trial: &RateTrial) -> bool {
        trial.lasting >= self.final_trial_ns
    }

    fn time_of<'a>(&self, at_rate: impl IntoIterator<Item = &'a RateTrial>) -> TrialTime {
        let mut time = TrialTime::default();
        for trial in at_rate {
            let sum = match (self.is_full(trial), trial.loss_ratio <= self.loss_ratio) {
                (true, true) => &mut time.full_kept,
                (true, false) => &mut time.full_lossy,
                (false, true) => &mut time.short_kept,
                (false, false) => &mut time.short_lossy,
            };
            *sum += trial.lasting.as_secs_f64();
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);
    /// No loss in more than half of five seconds.
    const GOAL: LossGoal = LossGoal {
        loss_ratio: 0.0,
        final_trial_ns: SECOND,
        duration_sum_ns: Nanos::from_secs(5),
        exceed_ratio: 0.5,
        width: 0.02,
        confirming_ns: Nanos::ZERO,
    };

    fn of_loss(pps: f64, lasting: Nanos, loss_ratio: f64) -> RateTrial {
        let delivered_pps = pps * (1.0 - loss_ratio);
        RateTrial { pps, lasting, loss_ratio, delivered_pps, offered_pps: pps, lost_ratio: loss_ratio }
    }

    /// Trials at one rate: `+` and `-` of a second without and with loss, `k` and `l` of a quarter of one.
    fn trials(pps: f64, words: &str) -> Vec<RateTrial> {
        let trial = |word| {
            let (lasting, loss_ratio) = match word {
                '+' => (SECOND, 0.0),
                '-' => (SECOND, 0.1),
                'k' => (Nanos::from_millis(250), 0.0),
                _ => (Nanos::from_millis(250), 0.1),
            };
            of_loss(pps, lasting, loss_ratio)
        };
        words.chars().map(trial).collect()
    }

    #[test]
    fn a_rate_is_classified_once_no_further_trial_can_change_its_class() {
        for (words, class) in [
            ("", RateClass::Undecided),
            ("++", RateClass::Undecided),
            ("+++", RateClass::Lower),
            ("--", RateClass::Undecided),
            ("---", RateClass::Upper),
            ("+-+-", RateClass::Undecided),
            ("+-+-+", RateClass::Lower),
            ("+-+--", RateClass::Upper),
            // Short trials alone do not show that a rate meets the goal …
            ("kkkkkkkkkkkkkkkkkkkkkkkkkkkk", RateClass::Undecided),
            // … balance each other …
            ("+++klklklklklkl", RateClass::Lower),
            // … and count against a rate if too many of them lost packets.
            ("llllllllllll", RateClass::Upper),
        ] {
            assert_eq!(GOAL.class_of(&trials(1.0, words)), class, "{words}");
        }
    }

    #[test]
    fn without_an_exceed_ratio_one_lossy_trial_decides() {
        let strict = LossGoal { exceed_ratio: 0.0, ..GOAL };
        for (words, class) in [
            ("++++", RateClass::Undecided),
            ("+++++", RateClass::Lower),
            ("-", RateClass::Upper),
            ("++++++-", RateClass::Upper),
        ] {
            assert_eq!(strict.class_of(&trials(1.0, words)), class, "{words}");
        }
    }

    #[test]
    fn the_lower_bound_lies_below_every_rate_that_failed() {
        // 300 meets the goal, but 200 does not: rates above it are not considered.
        let all = [trials(100.0, "+++"), trials(200.0, "---"), trials(300.0, "+++"), trials(150.0, "+-")].concat();
        let bounds = GOAL.bounds(&all);
        assert_eq!((bounds.lower_pps, bounds.upper_pps, bounds.width()), (Some(100.0), Some(200.0), Some(0.5)));
        assert_eq!(GOAL.bounds(&trials(7.0, "+++")).upper_pps, None);
        assert_eq!(GOAL.bounds(&[]), RateBounds::default());
    }

    #[test]
    fn conditional_throughput_is_the_rate_delivered_by_the_trial_at_the_exceed_ratio() {
        let of_rate = |loss_ratio, delivered_pps| RateTrial { delivered_pps, ..of_loss(1_000.0, SECOND, loss_ratio) };
        let lossy = |loss_ratio| of_rate(loss_ratio, 1_000.0 * (1.0 - loss_ratio));
        let goal = LossGoal { loss_ratio: 0.02, ..GOAL };
        for (losses, expected) in [
            // Half of five seconds are three trials: the third best counts.
            (vec![0.0, 0.01, 0.02, 0.5, 0.6], 980.0),
            (vec![0.0, 0.0, 0.0], 1_000.0),
            (vec![0.01; 9], 990.0),
        ] {
            let trials: Vec<RateTrial> = losses.iter().copied().map(lossy).collect();
            let found = goal.bounds(&trials).conditional_pps.expect("a lower bound");
            assert!((found - expected).abs() < 1e-9, "{losses:?}: {found}");
        }
        // Slightly late packets are not lost, but lower the rate that is reported.
        let late = [991.0, 1_000.0, 995.0, 993.0, 999.0].map(|delivered_pps| of_rate(0.0, delivered_pps));
        assert_eq!(goal.bounds(&late).conditional_pps, Some(995.0));
    }

    #[test]
    fn a_trial_confirms_if_it_has_enough_packets_to_decide() {
        let goal = LossGoal { loss_ratio: 1e-4, confirming_ns: Nanos::from_secs(10), ..GOAL };
        for (pps, seconds) in [(1_000.0, 30), (3_000.0, 10), (10_000.0, 10)] {
            assert_eq!(goal.confirming_at(pps), Nanos::from_secs(seconds), "{pps}");
            let lasting = |short_ms| of_loss(pps, Nanos::from_secs(seconds) - Nanos::from_millis(short_ms), 0.0);
            assert!(goal.is_confirming(&lasting(0)) && !goal.is_confirming(&lasting(1)), "{pps}");
        }
        assert_eq!(LossGoal { loss_ratio: 0.0, ..goal }.confirming_at(1.0), Nanos::from_secs(10));
        // The highest confirmed rate below the upper bound counts, less the margin.
        let ten = |pps, lost| of_loss(pps, Nanos::from_secs(10), lost);
        let all = [
            trials(4_000.0, "---"),
            vec![ten(5_000.0, 0.0), ten(3_500.0, 1e-3), ten(3_000.0, 1e-5), ten(2_900.0, 0.0)],
        ];
        let bounds = goal.bounds(&all.concat());
        assert_eq!((bounds.lower_pps, bounds.upper_pps), (Some(3_000.0 * 0.995), Some(3_500.0)));
        assert_eq!(bounds.conditional_pps, Some(3_000.0 * 0.995 * (1.0 - 1e-5)));
    }

    #[test]
    fn after_a_trial_that_did_not_confirm_the_rate_is_lowered_in_growing_steps() {
        let goal = LossGoal { loss_ratio: 0.05, ..GOAL };
        for (lost, steps, expected) in
            [(0.1, 1, 0.9 / 0.95 * 0.995), (0.051, 1, 0.99), (0.051, 3, 0.96), (0.8, 1, 0.5), (0.051, 20, 0.5)]
        {
            let next = goal.below(&of_loss(1_000.0, SECOND, lost), steps) / 1_000.0;
            assert!((next - expected).abs() < 1e-9, "{lost} {steps}: {next}");
        }
    }

    /// Trials at one rate: tenths of a second, and whether the trial was without loss.
    fn of_tenths(all: &[(i64, bool)]) -> Vec<RateTrial> {
        let trial = |(tenths, kept): &(i64, bool)| {
            of_loss(1.0, Nanos::from_millis(tenths * 100), if *kept { 0.0 } else { 0.1 })
        };
        all.iter().map(trial).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn missing_trials_cannot_change_a_class(
            all in vec((1i64..=20, any::<bool>()), 0..12), exceed_ratio in 0.0..0.9f64,
        ) {
            let goal = LossGoal { exceed_ratio, ..GOAL };
            let mut trials = of_tenths(&all);
            let class = goal.class_of(&trials);
            let tried = all.iter().map(|(tenths, _)| tenths * 100).sum::<i64>();
            // The rest of the duration sum, all against the class found.
            let rest = (goal.duration_sum_ns - Nanos::from_millis(tried)).0 / SECOND.0;
            let against = class == RateClass::Upper;
            trials.extend(of_tenths(&vec![(10, against); rest.max(0) as usize]));
            if class != RateClass::Undecided {
                prop_assert_eq!(goal.class_of(&trials), class);
            }
        }

        #[test]
        fn without_short_trials_the_share_of_lossy_time_decides(
            all in vec((10i64..=20, any::<bool>()), 6..20), exceed_ratio in 0.0..0.9f64,
        ) {
            // Six seconds and more: no trial time is missing.
            let goal = LossGoal { exceed_ratio, ..GOAL };
            let time = |wanted: bool| all.iter().filter(|(_, kept)| *kept == wanted).map(|(tenths, _)| tenths).sum::<i64>() as f64;
            let share = time(false) / (time(false) + time(true));
            prop_assume!((share - exceed_ratio).abs() > 1e-6);
            let expected = if share < exceed_ratio { RateClass::Lower } else { RateClass::Upper };
            prop_assert_eq!(goal.class_of(&of_tenths(&all)), expected);
        }
    }
}
