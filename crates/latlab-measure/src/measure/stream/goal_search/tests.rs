//! The search against simulated paths of known capacity, with seeded random effects.

use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::facts::{RateSearchFacts, SearchEnding, TrialFacts};

const NO_LOSS: f64 = 0.0;
const HALF_A_PERCENT: f64 = 0.005;

fn goal(loss_ratio: f64) -> LossGoal {
    LossGoal {
        loss_ratio,
        final_trial_ns: Nanos::from_millis(500),
        duration_sum_ns: Nanos::from_millis(2_500),
        exceed_ratio: 0.5,
        width: 0.02,
        confirming_ns: Nanos::ZERO,
    }
}

/// A path, and a sender of at most `fastest` packets a second.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The mean capacity in packets a second.
    capacity: f64,
    /// The length of its queue in seconds.
    queue: f64,
    fastest: f64,
    /// The capacity of a trial differs from the mean by up to this share.
    noise: f64,
    /// Of this share of trials …
    burst_chance: f64,
    /// … so many packets are lost at once, at any rate.
    burst_packets: f64,
    /// This share of packets is lost at every rate.
    always: f64,
    /// In this share of trials the sender has no CPU for half of the time.
    stalls: f64,
}

impl Path {
    const fn of(capacity: f64, fastest: f64) -> Path {
        let (queue, noise, burst_chance, burst_packets, always, stalls) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        Path { capacity, queue, fastest, noise, burst_chance, burst_packets, always, stalls }
    }

    fn trial(&self, pps: f64, lasting: Nanos, random: &mut impl Rng) -> TrialFacts {
        let seconds = lasting.as_secs_f64();
        let capacity = self.capacity * (1.0 + self.noise * random.random_range(-1.0..=1.0));
        let fastest = if random.random_bool(self.stalls) { pps / 2.0 } else { self.fastest };
        let sent = (pps.min(fastest) * seconds).round();
        let burst = if random.random_bool(self.burst_chance) { self.burst_packets } else { 0.0 };
        let carried = (sent * (1.0 - self.always)).min(capacity * (seconds + self.queue));
        let delivered = (carried.round() - burst).max(0.0);
        TrialFacts {
            asked_pps: Some(pps),
            lasting_ns: lasting,
            sending_ns: lasting,
            counting_ns: lasting.max(Nanos((carried / capacity * 1e9) as i64)),
            sent_packets: sent as u64,
            delivered_packets: delivered as u64,
            answered: true,
        }
    }
}

struct Found {
    search: GoalSearch,
    step: GoalStep,
    took: Nanos,
}

const WITHIN: Nanos = Nanos::from_secs(46);

fn search(path: &Path, goals: &[LossGoal], within: Nanos, seed: u64) -> Found {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let start = Stamp::from_nanos(7);
    let guess_pps = path.capacity.min(path.fastest) * random.random_range(0.9..1.1);
    let range = RateRange { floor_pps: 20.0, ceiling_pps: path.fastest, guess_pps };
    let mut search = GoalSearch::new(goals, range, start + within);
    let (floor_pps, ceiling_pps, ending) = (20.0, path.fastest, SearchEnding::CutShort);
    let mut facts = RateSearchFacts { floor_pps, ceiling_pps, trials: Vec::new(), ending, took_ns: Nanos::ZERO };
    let mut now = start;
    loop {
        let step = search.step(now);
        let GoalStep::Try { pps, lasting } = step else { return Found { search, step, took: now - start } };
        facts.trials.push(path.trial(pps, lasting, &mut random));
        let took = lasting + Nanos::from_millis(random.random_range(1..60));
        search.learn(&facts.judged(goals), lasting, took);
        now = now + took;
        assert!(facts.trials.len() < 10_000, "it never ends: {path:?}");
    }
}

#[test]
fn on_a_path_without_noise_the_bounds_of_each_goal_have_the_required_width() {
    let goals = [goal(NO_LOSS), goal(HALF_A_PERCENT), goal(0.1)];
    for capacity in [900.0, 8_000.0, 123_456.0, 2_000_000.0] {
        let found = search(&Path::of(capacity, capacity * 3.0), &goals, WITHIN, 1);
        assert_eq!(found.step, GoalStep::Settled, "{capacity}");
        for goal in &goals {
            let bounds = goal.bounds(&found.search.trials);
            let (lower, upper) = bounds.lower_pps.zip(bounds.upper_pps).expect("both bounds");
            // The highest rate that meets the goal, with the resolution of whole packets in a trial.
            let limit = capacity / (1.0 - goal.loss_ratio);
            let grain = 2.0 / goal.final_trial_ns.as_secs_f64();
            assert!(lower <= limit + grain && limit - grain <= upper, "{lower} to {upper}, {limit} is right");
            assert!(bounds.width().expect("both") <= goal.width, "{bounds:?}");
            let conditional = bounds.conditional_pps.expect("a lower bound");
            assert!(conditional <= lower && conditional >= least_delivered(lower, goal), "{bounds:?}");
        }
    }
}

/// The least delivered rate of a trial of 0.5 s that meets `goal`: a packet less than its rate, and 1 % late.
fn least_delivered(lower_pps: f64, goal: &LossGoal) -> f64 {
    (lower_pps - 2.0) * (1.0 - goal.loss_ratio) / 1.01 - 1e-6
}

#[test]
fn each_bound_is_confirmed_and_lowered_until_it_holds() {
    let confirmed = |loss_ratio| LossGoal { confirming_ns: Nanos::from_secs(3), ..goal(loss_ratio) };
    let goals = [confirmed(NO_LOSS), confirmed(HALF_A_PERCENT)];
    // Half of the trials lose packets at any rate: bounds of short ones exist, but none holds for long.
    let path = Path { burst_chance: 0.5, burst_packets: 500.0, ..Path::of(50_000.0, 200_000.0) };
    let mut found = 0;
    for seed in 0..100 {
        let Found { search, step, took } = search(&path, &goals, WITHIN, seed);
        assert!(took <= WITHIN + Nanos::from_millis(60), "seed {seed}: {took:?}");
        let lowered: Vec<&RateTrial> = search.trials.iter().filter(|trial| goals[0].is_confirming(trial)).collect();
        assert!(lowered.is_sorted_by(|one, other| one.pps > other.pps), "seed {seed}: {lowered:?}");
        let lower = goals[0].bounds(&search.trials).lower_pps;
        let last = lowered.last().expect("time for one");
        // It ends at the first that keeps the goal.
        assert_eq!(lower.is_some(), last.lost_ratio == 0.0, "seed {seed}: {lowered:?}");
        assert!(lower.is_none_or(|lower| lower <= last.offered_pps), "seed {seed}: {lower:?}");
        assert!(lower.is_some() || step == GoalStep::TimeUp || last.pps <= 20.0, "seed {seed}: {step:?}");
        found += usize::from(lower.is_some());
    }
    assert!(found > 50, "{found}");
    // A loss ratio that the rest of the time cannot show is not confirmed.
    let rare = confirmed(1e-9);
    let rarely = search(&Path::of(50_000.0, 200_000.0), &[rare], WITHIN, 1);
    assert_eq!((rarely.step, rare.bounds(&rarely.search.trials).lower_pps), (GoalStep::TimeUp, None));
}

#[test]
fn a_search_on_a_regular_path_is_short() {
    let found = search(&Path::of(100_000.0, 300_000.0), &[goal(NO_LOSS), goal(HALF_A_PERCENT)], WITHIN, 3);
    assert!(
        found.took < Nanos::from_secs(30) && found.search.trials.len() < 60,
        "{} trials",
        found.search.trials.len()
    );
}

#[test]
fn without_loss_the_search_ends_at_the_highest_rate() {
    let found = search(&Path::of(1e9, 20_000.0), &[goal(NO_LOSS)], WITHIN, 1);
    let bounds = goal(NO_LOSS).bounds(&found.search.trials);
    assert_eq!((found.step, bounds.lower_pps, bounds.upper_pps), (GoalStep::Settled, Some(20_000.0), None));
}

#[test]
fn with_constant_loss_the_search_ends_at_the_lowest_rate() {
    let always = Path { always: 0.3, ..Path::of(1e5, 1e6) };
    let found = search(&always, &[goal(NO_LOSS), goal(HALF_A_PERCENT), goal(0.4)], WITHIN, 1);
    let bounds = |loss_ratio| goal(loss_ratio).bounds(&found.search.trials);
    for strict in [NO_LOSS, HALF_A_PERCENT] {
        assert_eq!((bounds(strict).lower_pps, bounds(strict).upper_pps), (None, Some(20.0)), "{strict}");
    }
    // The path delivers 0.6 of the packets at that rate.
    assert!(bounds(0.4).lower_pps.is_some_and(|pps| (pps * 0.6 / 1e5 - 1.0).abs() < 0.1), "{:?}", bounds(0.4));
}

#[test]
fn bursts_in_fewer_trials_than_the_exceed_ratio_do_not_change_the_result() {
    let path = |burst_chance| Path { burst_chance, burst_packets: 500.0, ..Path::of(50_000.0, 200_000.0) };
    let lower = |path: &Path, goal: &LossGoal, seed| {
        let found = search(path, std::slice::from_ref(goal), WITHIN, seed);
        goal.bounds(&found.search.trials).lower_pps.unwrap_or(0.0)
    };
    let near = |goal: &LossGoal, burst_chance| {
        (0..100).filter(|seed| (lower(&path(burst_chance), goal, *seed) / 50_000.0 - 1.0).abs() < 0.05).count()
    };
    let believing_each = LossGoal { exceed_ratio: 0.0, ..goal(NO_LOSS) };
    assert!(near(&goal(NO_LOSS), 0.1) >= 95, "one trial in ten");
    // Without the exceed ratio one burst in a sum of trials lowers the result.
    assert!(near(&believing_each, 0.1) < 80, "{}", near(&believing_each, 0.1));
    assert!(near(&goal(NO_LOSS), 0.9) < 5, "nine in ten are the path");
}

#[test]
fn the_error_of_the_result_is_at_most_the_noise() {
    let goal = goal(NO_LOSS);
    let path = Path { noise: 0.05, ..Path::of(50_000.0, 200_000.0) };
    for seed in 0..100 {
        let found = search(&path, &[goal], WITHIN, seed);
        let bounds = goal.bounds(&found.search.trials);
        let (lower, upper) = bounds.lower_pps.zip(bounds.upper_pps).expect("both bounds");
        // The median trial decides, whose capacity is near the mean.
        assert!(lower > 50_000.0 * 0.95 * 0.98 && upper < 50_000.0 * 1.05 * 1.02, "seed {seed}: {bounds:?}");
    }
}

#[test]
fn packets_in_a_deep_queue_do_not_count_as_capacity() {
    let capacity = 8_256.0;
    for (trial_ms, queue) in [(100, 0.005), (100, 0.2), (100, 10.0), (166, 0.2), (500, 0.2), (500, 10.0), (1_000, 0.2)]
    {
        let trial = Nanos::from_millis(trial_ms);
        for loss_ratio in [NO_LOSS, HALF_A_PERCENT] {
            let sum = trial.saturating_mul(5);
            let goal = LossGoal { final_trial_ns: trial, duration_sum_ns: sum, ..goal(loss_ratio) };
            let found = search(&Path { queue, ..Path::of(capacity, 100_000.0) }, &[goal], trial.saturating_mul(92), 1);
            let bounds = goal.bounds(&found.search.trials);
            let lower = bounds.lower_pps.expect("a lower bound");
            // 1 % may be late, and the resolution is one packet of a trial.
            let most = capacity * 1.01 / (1.0 - loss_ratio) + 1e3 / trial_ms as f64;
            assert!(
                lower > capacity * 0.96 && lower <= most,
                "{lower} in trials of {trial_ms} ms, a queue of {queue} s"
            );
            // The rate of counting is the capacity, with the resolution of one packet.
            let conditional = bounds.conditional_pps.expect("a lower bound");
            assert!(conditional <= capacity + 1e3 / trial_ms as f64, "{conditional} of {capacity}");
        }
    }
}

#[test]
fn occasional_stalls_of_the_sender_do_not_change_the_result() {
    let goal = goal(NO_LOSS);
    let near = |stalls| {
        let path = Path { stalls, ..Path::of(50_000.0, 200_000.0) };
        let lower = |seed| goal.bounds(&search(&path, &[goal], WITHIN, seed).search.trials).lower_pps.unwrap_or(0.0);
        (0..100).filter(|seed| (lower(*seed) / 50_000.0 - 1.0).abs() < 0.03).count()
    };
    assert!(near(0.3) >= 98, "{}", near(0.3));
    assert!(near(0.5) >= 85, "{}", near(0.5));
}

fn paths() -> impl Strategy<Value = Path> {
    let capacity = (2f64..6.5).prop_map(|power| 10f64.powf(power));
    (capacity, 0.3..20.0f64, 0.0..0.3f64, 0.0..1.0f64, 0.0..200.0f64, 0.0..2.0f64, 0.0..1.0f64).prop_map(
        |(capacity, speed, noise, burst_chance, burst_packets, queue, stalls)| Path {
            fastest: (capacity * speed).max(25.0),
            noise,
            burst_chance,
            burst_packets: burst_packets.round(),
            queue,
            stalls,
            ..Path::of(capacity, 1.0)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_path_the_search_ends_in_time_and_its_bounds_follow_from_the_trials(
        path in paths(), seed: u64, seconds in 1i64..60, strict in 0.0..0.9f64,
    ) {
        let goals = [goal(NO_LOSS), goal(HALF_A_PERCENT), LossGoal { exceed_ratio: strict, ..goal(0.05) }];
        let within = Nanos::from_secs(seconds);
        let found = search(&path, &goals, within, seed);
        // A trial that takes longer than all before may end late.
        prop_assert!(found.took <= within + Nanos::from_millis(60), "{:?} of {within:?}", found.took);
        let trials = found.search.trials;
        prop_assert!(trials.iter().all(|trial| trial.pps >= 20.0 && trial.pps <= path.fastest.max(20.0) + 1e-3));
        for goal in &goals {
            let bounds = goal.bounds(&trials);
            let class = |pps: f64| goal.class_of(trials.iter().filter(|trial| trial.pps == pps));
            if let Some(lower) = bounds.lower_pps {
                prop_assert_eq!(class(lower), RateClass::Lower);
                let conditional = bounds.conditional_pps.unwrap_or(f64::NAN);
                prop_assert!(conditional <= lower && conditional >= least_delivered(lower, goal));
            }
            if let Some(upper) = bounds.upper_pps {
                prop_assert_eq!(class(upper), RateClass::Upper);
            }
            if let Some((lower, upper)) = bounds.lower_pps.zip(bounds.upper_pps) {
                prop_assert!(lower < upper);
            }
            // No rate that failed lies below the upper bound.
            let failed = trials.iter().filter(|trial| class(trial.pps) == RateClass::Upper);
            let lowest = failed.map(|trial| trial.pps).reduce(f64::min);
            prop_assert_eq!(bounds.upper_pps, lowest);
        }
    }
}
