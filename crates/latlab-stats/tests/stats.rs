//! The statistics against brute force, against NumPy and SciPy, and against the true values of simulated processes.
#![allow(clippy::print_stdout, reason = "a test prints tables of the documentation")]

use latlab_stats::{DescribeOptions, Description, Interval, describe, histogram, plain, ratio, share};
use latlab_terms::metric::Metric;
use latlab_terms::sample::{INFINITE, Sample};
use proptest::prelude::*;

#[path = "stats/clock_windows.rs"]
mod clock_windows;
#[path = "stats/one_run.rs"]
mod one_run;
#[path = "stats/rare_delays.rs"]
mod rare_delays;

use one_run::{Random, SCALE};

const QUANTILES: [f64; 6] = [0.01, 0.25, 0.5, 0.9, 0.99, 0.999];

fn sample(singletons: Vec<i64>) -> Sample {
    Sample::new(Metric::RoundTripDelay, singletons)
}

fn options(quantiles: &[f64], intervals: bool) -> DescribeOptions {
    DescribeOptions { quantiles: quantiles.to_vec(), confidence: 0.95, intervals }
}

/// Type 7 by definition: sort, then interpolate; infinite if a needed neighbour is.
fn naive_quantile(singletons: &[i64], q: f64) -> f64 {
    let mut sorted = singletons.to_vec();
    sorted.sort_unstable();
    let value = |rank: usize| if sorted[rank] == INFINITE { f64::INFINITY } else { sorted[rank] as f64 };
    let place = (sorted.len() - 1) as f64 * q;
    let (rank, weight) = (place.floor() as usize, place.fract());
    if weight == 0.0 { value(rank) } else { value(rank) * (1.0 - weight) + value(rank + 1) * weight }
}

fn assert_quantiles_are_naive(singletons: &[i64], description: &Description) {
    for estimate in &description.quantiles {
        let expected = naive_quantile(singletons, estimate.q);
        match estimate.value {
            Some(value) => {
                assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{estimate:?}, {expected}")
            }
            None => assert!(expected.is_infinite() && estimate.lost, "{estimate:?}, expected {expected}"),
        }
    }
}

/// Every run draws new cases; a failing one is printed in full.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(256))]
    #[test]
    fn quantiles_are_those_of_the_sorted_sample(
        singletons in prop::collection::vec(
            prop_oneof![5 => -50_i64..50, 3 => -1_000_000_000_i64..1_000_000_000, 1 => Just(INFINITE)], 1..200),
    ) {
        // Binary fractions: others may miss their rank by rounding, which describe() tolerates.
        let description = describe(&sample(singletons.clone()), &options(&[0.125, 0.25, 0.5, 0.9375], false));
        assert_quantiles_are_naive(&singletons, &description);
    }
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn a_shift_of_all_singletons_shifts_all_figures(
        singletons in prop::collection::vec(prop_oneof![9 => 0_i64..100_000, 1 => Just(INFINITE)], 2..120),
        shift in -1_000_000_000_i64..1_000_000_000,
    ) {
        let moved = singletons.iter().map(|value| if *value == INFINITE { INFINITE } else { value + shift }).collect();
        let here = figures(&describe(&sample(singletons), &options(&QUANTILES, true)));
        let there = figures(&describe(&sample(moved), &options(&QUANTILES, true)));
        for (here, there) in here.into_iter().zip(there) {
            let expected = here.map(|here| here + shift as f64);
            let agree = expected.zip(there).map_or(expected == there, |(one, other)| (one - other).abs() < 1e-3);
            prop_assert!(agree, "{here:?} moved by {shift} is not {there:?}");
        }
    }
}

/// All figures that shift with the sample.
fn figures(description: &Description) -> Vec<Option<f64>> {
    let ends = |interval: Option<Interval>| interval.map_or([None; 2], |interval| [interval.low, interval.high]);
    let mut figures = vec![description.mean];
    figures.extend(ends(description.mean_interval));
    for estimate in &description.quantiles {
        figures.extend(ends(estimate.interval));
        figures.extend([estimate.value, estimate.lower_bound]);
    }
    figures
}

#[test]
fn quantiles_of_large_samples_are_those_of_the_sorted_sample() {
    let mut random = Random::new(5);
    let makers: [fn(&mut Random) -> i64; 4] = [
        |random| 48_000 + (random.uniform() * 40.0) as i64 * 25,
        |random| (40_000.0 / random.uniform()) as i64,
        |random| if random.uniform() < 0.02 { INFINITE } else { (random.normal() * 1e4) as i64 },
        |random| if random.uniform() < 1e-4 { -2_000_000_000_000 } else { 44_200 + (random.uniform() * 1e7) as i64 },
    ];
    for make in makers {
        let singletons: Vec<i64> = (0..120_001).map(|_| make(&mut random)).collect();
        let description = describe(&sample(singletons.clone()), &options(&QUANTILES, false));
        assert_quantiles_are_naive(&singletons, &description);
    }
}

/// `x = np.array([(i * i * 7919) % 10007 + 40000 for i in range(1, 1001)])`, then `np.quantile(x, QUANTILES)`,
/// `x.min()`, `x.max()`, `x.mean()` and `x.std(ddof=1)`; NumPy 2.4.
#[test]
fn figures_agree_with_numpy() {
    let singletons = (1..=1000).map(|index: i64| (index * index * 7919) % 10_007 + 40_000).collect();
    let description = describe(&sample(singletons), &options(&QUANTILES, false));
    let expected = [40_103.93, 42_312.25, 44_739.0, 48_814.9, 49_843.38, 49_948.017];
    for (estimate, expected) in description.quantiles.iter().zip(expected) {
        let value = estimate.value.expect("nothing is lost");
        assert!((value - expected).abs() < 1e-6, "q {}: {value}, NumPy has {expected}", estimate.q);
    }
    assert_eq!((description.min, description.max), (Some(40_003.0), Some(49_965.0)));
    assert!((description.mean.expect("finite") - 44_735.043).abs() < 1e-9);
    assert!((description.stddev.expect("finite") - 2_836.719_724_249_285_7).abs() < 1e-9);
}

/// `scipy.stats.binomtest(k, n).proportion_ci(0.95, "wilson")`, SciPy 1.17.
#[test]
fn ratios_agree_with_scipy() {
    let cases = [
        (0, 20, 0.0, 0.16112515805281935),
        (3, 50, 0.020614970348973957, 0.1621709168883817),
        (412, 60_000, 0.006236736187894431, 0.007559738149316519),
        (20, 20, 0.8388748419471808, 1.0),
    ];
    for (hits, n, low, high) in cases {
        let interval = ratio(hits, n, 0.95).interval.expect("n is not 0");
        let (got_low, got_high) = (interval.low.expect("bounded"), interval.high.expect("bounded"));
        assert!((got_low - low).abs() < 1e-9 && (got_high - high).abs() < 1e-9, "{hits} of {n}: {interval:?}");
    }
    let none = ratio(0, 0, 0.95);
    assert_eq!((none.value, none.interval), (None, None));
}

#[test]
fn losses_in_bursts_widen_the_interval_of_their_share() {
    let width = |is_lost: fn(usize) -> bool| {
        let singletons = (0..20_000).map(|place| if is_lost(place) { INFINITE } else { 50_000 }).collect();
        let share = share(&sample(singletons), 0.95, |value| value == INFINITE);
        assert_eq!((share.hits, share.value), (1000, Some(0.05)));
        let interval = share.interval.expect("ordered");
        interval.high.expect("bounded") - interval.low.expect("bounded")
    };
    let (in_bursts, scattered) = (width(|place| place % 2000 < 100), width(|place| place % 20 == 0));
    assert!(in_bursts > 3.0 * scattered, "in bursts {in_bursts}, scattered {scattered}");
}

#[test]
fn numbers_of_any_size_keep_their_digits() {
    for (numbers, min, middle, max) in [
        ([5.37, 0.001, 0.25], 0.001, 0.25, 5.37),
        ([-2.5e-9, 1e-9, 0.0], -2.5e-9, 0.0, 1e-9),
        ([7e300, 6e300, -1e300], -1e300, 6e300, 7e300),
        ([0.0, 0.0, 0.0], 0.0, 0.0, 0.0),
    ] {
        let sample = Sample::of_numbers(Metric::Delay, &numbers);
        let found = plain(&sample, &[0.5], true);
        assert_eq!((found.min, found.quantiles[0].value, found.max), (Some(min), Some(middle), Some(max)));
    }
}

#[test]
fn degenerate_samples_have_the_figures_that_exist() {
    let all = |singletons: &[i64]| describe(&sample(singletons.to_vec()), &options(&[0.5, 0.99], true));

    let empty = all(&[]);
    assert_eq!((empty.n, empty.lost, empty.min, empty.mean, empty.stddev), (0, 0, None, None, None));
    assert!(empty.quantiles.iter().all(|q| q.value.is_none() && !q.lost && !q.supported && q.interval.is_none()));

    let one = all(&[-7]);
    assert_eq!((one.min, one.max, one.mean, one.stddev), (Some(-7.0), Some(-7.0), Some(-7.0), None));
    assert_eq!((one.mean_interval, one.quantiles[0].value), (None, Some(-7.0)));

    let two = all(&[-10, 20]);
    assert_eq!((two.mean, two.quantiles[0].value), (Some(5.0), Some(5.0)));
    assert!((two.stddev.expect("two values") - 450.0_f64.sqrt()).abs() < 1e-9);

    let equal = all(&[48_000; 3000]);
    assert_eq!((equal.stddev, equal.effective_n), (Some(0.0), Some(3000.0)));
    let interval = equal.mean_interval.expect("known");
    // The clock may have steps of the last digit that is not 0.
    assert_eq!((interval.low, interval.high), (Some(47_000.0), Some(49_000.0)));

    let lost = all(&[INFINITE; 50]);
    assert_eq!((lost.n, lost.lost, lost.mean, lost.max), (50, 50, None, None));
    assert!(lost.quantiles.iter().all(|q| q.lost && q.value.is_none() && q.lower_bound.is_none()));
}

#[test]
fn a_quantile_is_lost_only_if_it_needs_a_lost_singleton() {
    let with_lost = |lost: usize| {
        let singletons = (0..101).map(|place| if place >= 101 - lost { INFINITE } else { place as i64 }).collect();
        describe(&sample(singletons), &options(&[0.5, 0.505, 0.99], true))
    };
    // The median of 101 singletons is that of rank 50 and needs no neighbour.
    let half = with_lost(50);
    assert_eq!((half.quantiles[0].value, half.quantiles[0].lost), (Some(50.0), false));
    assert_eq!((half.quantiles[1].value, half.quantiles[1].lost), (None, true));
    assert!(with_lost(51).quantiles[0].lost);
    // If the bound itself is lost, the largest finite singleton is a lower bound of the quantile.
    let thin = &with_lost(8).quantiles[2];
    assert_eq!((thin.lost, thin.supported, thin.lower_bound), (true, false, Some(92.0)));
    assert!(half.quantiles[2].supported, "ten lost ones support what is lost");
    // Scattered losses: the upper end may be lost while the lower is not.
    let mut random = Random::new(4);
    let scattered =
        (0..2000).map(|_| if random.uniform() < 0.11 { INFINITE } else { random.normal() as i64 }).collect();
    let interval = describe(&sample(scattered), &options(&[0.88], true)).quantiles[0].interval.expect("bounded below");
    assert!(interval.low.is_some() && interval.high.is_none(), "{interval:?}");
}

#[test]
fn a_sample_of_unknown_order_has_point_values_only() {
    let singletons: Vec<i64> = (0..2000).collect();
    let unordered = Sample::unordered(Metric::RoundTripDelay, singletons.clone());
    let description = describe(&unordered, &options(&QUANTILES, true));
    assert_quantiles_are_naive(&singletons, &description);
    assert_eq!((description.effective_n, description.mean_interval), (None, None));
    assert!(description.quantiles.iter().all(|q| q.interval.is_none() && q.lower_bound.is_none()));
    assert_eq!(share(&unordered, 0.95, |value| value > 1000).interval, None);
}

#[test]
fn support_takes_ten_effective_observations_beyond_the_quantile() {
    let supported = |n: usize, coefficient: f64, q: f64| {
        let description = describe(&sample(series(&mut Random::new(2), n, coefficient)), &options(&[q], false));
        let estimate = &description.quantiles[0];
        assert!(!estimate.supported || estimate.lower_bound.is_none(), "{estimate:?}");
        estimate.supported
    };
    assert!(supported(1000, 0.0, 0.99) && supported(1000, 0.0, 0.01));
    assert!(!supported(999, 0.0, 0.99) && !supported(999, 0.0, 0.01));
    assert!(supported(2000, 0.0, 0.99) && !supported(2000, 0.95, 0.99), "dependence reduces support");
    assert!(supported(100_000, 0.0, 0.9999) && !supported(99_000, 0.0, 0.9999));
}

#[test]
fn support_does_not_increase_towards_a_tail() {
    // Long periods: the side of the median lasts for thousands of probes, while outliers are independent.
    let mut random = Random::new(6);
    let mut value = |place: usize| {
        let outlier = if random.uniform() < 0.2 { 500.0 * random.uniform() } else { 0.0 };
        ((if (place / 2_500).is_multiple_of(2) { 0.0 } else { 10.0 } + outlier + random.uniform()) * SCALE) as i64
    };
    let drifting = sample((0..10_000).map(&mut value).collect());
    let of = |quantiles: &[f64]| {
        let described = describe(&drifting, &options(quantiles, true));
        described.quantiles.iter().map(|one| (one.supported, one.lower_bound.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(of(&[0.9]), [(true, false)], "the case must be one where the tail alone looks supported");
    assert_eq!(of(&[0.5, 0.9, 0.99]), [(false, true); 3]);
    assert_eq!(of(&[0.99, 0.5]), [(false, true); 2], "in any order of the quantiles");
}

#[test]
fn figures_are_reproducible_and_do_not_depend_on_intervals() {
    let sample = sample(series(&mut Random::new(3), 700, 0.5));
    let first = describe(&sample, &options(&QUANTILES, true));
    assert_eq!(first, describe(&sample, &options(&QUANTILES, true)));
    let bare = describe(&sample, &options(&QUANTILES, false));
    assert!(bare.mean_interval.is_none() && bare.quantiles.iter().all(|q| q.interval.is_none()));
    let mut stripped = first.clone();
    stripped.mean_interval = None;
    stripped.quantiles.iter_mut().for_each(|estimate| estimate.interval = None);
    assert_eq!(bare, stripped);
}

#[test]
fn a_histogram_holds_every_finite_singleton_once() {
    let mut random = Random::new(8);
    let mut delay = |_| if random.uniform() < 0.01 { INFINITE } else { 44_200 + (4_000.0 / random.uniform()) as i64 };
    let singletons: Vec<i64> = (0..50_000).map(&mut delay).collect();
    let buckets = histogram(&sample(singletons.clone()));
    assert!((6..=12).contains(&buckets.len()), "{buckets:?}");
    for bucket in &buckets {
        let inside = |value: &&i64| (bucket.low_ns..bucket.high_ns).contains(*value);
        assert_eq!(bucket.count, singletons.iter().filter(inside).count() as u64, "{bucket:?}");
    }
    let finite = singletons.iter().filter(|value| **value != INFINITE).count() as u64;
    assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), finite);
    assert!(buckets.windows(2).all(|pair| pair[0].high_ns == pair[1].low_ns), "{buckets:?}");
    assert!(histogram(&sample(vec![INFINITE])).is_empty());
    let spread = histogram(&sample((0..1_000).map(|place| 5_003 + place * place / 10).collect()));
    assert!((4_750..=5_003).contains(&spread[0].low_ns), "the first row begins near the minimum: {spread:?}");
    let equal = histogram(&sample(vec![5; 9]));
    assert_eq!((equal.len(), equal[0].low_ns, equal[0].count), (1, 5, 9));
}

/// How many intervals there were, and how many covered the true value.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    seen: u32,
    held: u32,
}

impl Covered {
    fn count(&mut self, interval: Interval, truth: f64) {
        self.seen += 1;
        let above = interval.low.is_none_or(|low| low <= truth);
        self.held += u32::from(above && interval.high.is_none_or(|high| truth <= high));
    }

    fn share(self) -> f64 {
        f64::from(self.held) / f64::from(self.seen)
    }
}

#[test]
fn intervals_of_the_mean_of_a_handful_cover() {
    for n in [2, 3, 4, 5, 7, 9, 10, 15, 20] {
        let (mut random, mut mean) = (Random::new(78), Covered::default());
        for _ in 0..2_000 {
            let description = describe(&sample(series(&mut random, n, 0.0)), &options(&[], true));
            mean.count(description.mean_interval.expect("asked for"), 0.0);
        }
        assert!((0.93..=0.98).contains(&mean.share()), "n {n}: mean {:.3}", mean.share());
    }
}

/// A stationary autoregressive Gaussian series whose unit is [`SCALE`].
fn series(random: &mut Random, n: usize, coefficient: f64) -> Vec<i64> {
    random.autoregressive(n, coefficient).into_iter().map(|value| (value * SCALE).round() as i64).collect()
}

#[test]
fn plain_figures_are_those_of_the_description() {
    let mut random = Random::new(9);
    let makers: [fn(&mut Random) -> i64; 3] = [
        |random| 48_000 + (random.uniform() * 40.0) as i64 * 25,
        |random| if random.uniform() < 0.02 { INFINITE } else { (random.normal() * 1e4) as i64 },
        |_| INFINITE,
    ];
    for (make, n) in makers.into_iter().flat_map(|make| [0, 1, 2, 500, 40_000].map(|n| (make, n))) {
        let sample = sample((0..n).map(|_| make(&mut random)).collect());
        let (whole, few) = (describe(&sample, &options(&QUANTILES, false)), plain(&sample, &QUANTILES, true));
        assert_eq!((few.n, few.lost, few.min, few.max), (whole.n, whole.lost, whole.min, whole.max));
        assert_eq!((few.mean, few.stddev), (whole.mean, whole.stddev));
        for (few, whole) in few.quantiles.iter().zip(&whole.quantiles) {
            assert_eq!((few.value, few.lost), (whole.value, whole.lost), "q {} of {n}", whole.q);
        }
    }
}
