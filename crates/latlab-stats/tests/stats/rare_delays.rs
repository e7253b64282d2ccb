//! How often rare levels are given, and their upper bounds hold: the table "How bad can it get" of docs/statistics.md, which
//! `just simulate` prints.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use latlab_stats::{DescribeOptions, Extremes, NoExtremes, Rarity, describe, extremes};
use latlab_terms::metric::Metric;
use latlab_terms::sample::{INFINITE, Sample};
use latlab_terms::units::Nanos;
use statrs::distribution::{ContinuousCDF, Normal};

use super::one_run::{Process, Random, SCALE, replicates};

/// Simulated delays.
#[derive(Clone, Copy, Debug)]
enum Delays {
    Of(Process),
    Exponential,
    /// e to the power of normal values with this standard deviation.
    Lognormal(f64),
    /// The same of a first-order autoregressive series with a coefficient of 0.8.
    DependentLognormal(f64),
    /// Of this shape.
    Pareto(f64),
    /// Exponential; this share is so many times as slow.
    Mixed(f64, f64),
}

impl Delays {
    fn run(self, n: usize, random: &mut Random) -> Vec<f64> {
        let mut each = |value: &dyn Fn(&mut Random) -> f64| (0..n).map(|_| value(random)).collect();
        match self {
            Delays::Of(process) => process.run(n, random).values,
            Delays::Exponential => each(&Random::exponential),
            Delays::Lognormal(deviation) => each(&|random| (deviation * random.normal()).exp()),
            Delays::DependentLognormal(deviation) => {
                random.autoregressive(n, 0.8).into_iter().map(|value| (deviation * value).exp()).collect()
            }
            Delays::Pareto(shape) => each(&|random| (random.uniform().powf(-shape) - 1.0) / shape),
            Delays::Mixed(share, times) => each(&|random| {
                let value = random.exponential();
                if random.uniform() < share { times * value } else { value }
            }),
        }
    }

    /// The share of values above `x`.
    fn above(self, x: f64) -> f64 {
        let normal = |x: f64| Normal::standard().sf(x);
        let mixture = |share: f64, height: f64| (1.0 - share) * normal(x) + share * normal(x - height);
        match self {
            Delays::Of(Process::Autoregressive(_) | Process::LongMemory(_)) => normal(x),
            Delays::Of(Process::TwoLevels) => mixture(0.5, 3.0),
            Delays::Of(Process::Bursts { length, every }) => mixture(length as f64 / (length + every) as f64, 10.0),
            Delays::Of(Process::Queue) => (-x / 10.0).exp(),
            Delays::Of(Process::Step | Process::StepSomewhere) => mixture(0.5, 1.0),
            Delays::Exponential => (-x).exp(),
            Delays::Lognormal(deviation) | Delays::DependentLognormal(deviation) => normal(x.ln() / deviation),
            Delays::Pareto(shape) => (1.0 + shape * x).powf(-1.0 / shape),
            Delays::Mixed(share, times) => (1.0 - share) * (-x).exp() + share * (-x / times).exp(),
        }
    }

    fn quantile(self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if self.above(middle) > share { low = middle } else { high = middle }
        }
        low
    }
}

const SHORT: &[usize] = &[200_000];
const BOTH: &[usize] = &[200_000, 1_000_000];

/// By their names in docs/statistics.md, with the lengths that are simulated. The seed of each is its place here.
const ROWS: [(&str, Delays, Expected, &[usize]); 23] = [
    ("white noise", Delays::Of(Process::Autoregressive(0.0)), Expected::Holds, SHORT),
    ("autoregressive, 0.5", Delays::Of(Process::Autoregressive(0.5)), Expected::Holds, SHORT),
    ("autoregressive, 0.7", Delays::Of(Process::Autoregressive(0.7)), Expected::Holds, SHORT),
    ("autoregressive, 0.95", Delays::Of(Process::Autoregressive(0.95)), Expected::Holds, BOTH),
    ("exponential", Delays::Exponential, Expected::Holds, BOTH),
    ("lognormal, 1", Delays::Lognormal(1.0), Expected::Holds, SHORT),
    ("lognormal, 0.5, of autoregressive, 0.8", Delays::DependentLognormal(0.5), Expected::Holds, BOTH),
    ("Pareto, shape 0.2", Delays::Pareto(0.2), Expected::Holds, BOTH),
    ("queue, utilisation 0.9", Delays::Of(Process::Queue), Expected::Holds, SHORT),
    ("bursts of 100, one in 2,000", Delays::Of(Process::Bursts { length: 100, every: 1_900 }), Expected::Holds, BOTH),
    ("two levels for 200 each", Delays::Of(Process::TwoLevels), Expected::Holds, SHORT),
    ("Pareto, shape 0.6", Delays::Pareto(0.6), Expected::Silence, SHORT),
    ("long memory, 0.3", Delays::Of(Process::LongMemory(0.3)), Expected::Silence, SHORT),
    ("long memory, 0.45", Delays::Of(Process::LongMemory(0.45)), Expected::Silence, SHORT),
    ("step in the middle", Delays::Of(Process::Step), Expected::Silence, SHORT),
    ("step somewhere", Delays::Of(Process::StepSomewhere), Expected::Silence, SHORT),
    ("0.1 % ten times slower", Delays::Mixed(0.001, 10.0), Expected::Silence, SHORT),
    ("0.1 % five times slower", Delays::Mixed(0.001, 5.0), Expected::Silence, SHORT),
    ("0.05 % ten times slower", Delays::Mixed(0.000_5, 10.0), Expected::Silence, SHORT),
    ("0.05 % five times slower", Delays::Mixed(0.000_5, 5.0), Expected::Silence, BOTH),
    ("0.02 % five times slower", Delays::Mixed(0.000_2, 5.0), Expected::Either, BOTH),
    ("0.01 % five times slower", Delays::Mixed(0.000_1, 5.0), Expected::Either, BOTH),
    ("0.005 % five times slower", Delays::Mixed(0.000_05, 5.0), Expected::Either, BOTH),
];

/// What is expected of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    /// Bounds that hold in 90 % of the runs that have them.
    Holds,
    /// No levels in 90 % of the runs.
    Silence,
    /// No level that is too low in 80 % of the runs: a documented limit.
    Either,
}

fn rarities(n: usize) -> [Rarity; 3] {
    let once = Rarity::OnceIn { period: Nanos::from_secs(1), singletons: n as f64 };
    [Rarity::Quantile(0.9999), Rarity::Quantile(0.99999), once]
}

fn described(singletons: Vec<i64>) -> Result<Extremes, NoExtremes> {
    let sample = Sample::new(Metric::RoundTripDelay, singletons);
    let options = DescribeOptions { quantiles: Vec::new(), confidence: 0.95, intervals: false };
    extremes(&sample, &describe(&sample, &options), &rarities(sample.singletons.len()))
}

fn singletons(values: &[f64]) -> Vec<i64> {
    values.iter().map(|value| (value * SCALE).round() as i64).collect()
}

/// Runs of a process, in % of them.
#[derive(Debug)]
struct Tally {
    given: f64,
    /// Of each rarity: the share of given bounds that hold, and bounds that are too low.
    held: [f64; 3],
    low: [f64; 3],
    /// The median of the bound of the rarest level, as a multiple of the true one.
    ratio: f64,
}

impl Tally {
    fn of(delays: Delays, n: usize, seed: u64, replicates: usize) -> Tally {
        let mut random = Random::new(seed);
        let (mut maxima, mut given) = (Vec::new(), Vec::new());
        for _ in 0..replicates {
            let values = delays.run(n, &mut random);
            maxima.push(values.iter().copied().fold(f64::MIN, f64::max));
            given.extend(described(singletons(&values)).map(|found| found.levels));
        }
        // A level that is exceeded once in such a run on average is not exceeded in 1/e of the runs.
        maxima.sort_by(f64::total_cmp);
        let once = maxima[(replicates as f64 * (-1.0_f64).exp()) as usize];
        let truths = [delays.quantile(1e-4), delays.quantile(1e-5), once];
        let percent = |count: usize, of: usize| 100.0 * count as f64 / of as f64;
        let ratios = [0, 1, 2].map(|place| {
            let levels = given.iter().flatten().filter(|level| level.rarity == rarities(n)[place]);
            let mut ratios: Vec<f64> = levels.map(|level| level.upper_bound / SCALE / truths[place]).collect();
            ratios.sort_by(f64::total_cmp);
            ratios
        });
        let too_low = ratios.clone().map(|ratios| ratios.iter().filter(|ratio| **ratio < 1.0).count());
        Tally {
            given: percent(given.len(), replicates),
            held: [0, 1, 2].map(|place| percent(ratios[place].len() - too_low[place], ratios[place].len())),
            low: too_low.map(|count| percent(count, replicates)),
            ratio: ratios[2].get(ratios[2].len() / 2).copied().unwrap_or(f64::NAN),
        }
    }

    /// Levels given, bounds of them that hold, the rarest one as a multiple of the true one, and rarest ones too low.
    fn cells(&self) -> String {
        let [p9999, p99999, once] = self.held;
        // Of fewer than a hundredth of the runs these are no shares.
        if self.given < 1.0 {
            return format!("{:.1} | – | – | – | – | {:.1}", self.given, self.low[2]);
        }
        format!("{:.1} | {p9999:.0} | {p99999:.0} | {once:.0} | {:.2} | {:.1}", self.given, self.ratio, self.low[2])
    }

    fn is(&self, expected: Expected) -> bool {
        match expected {
            Expected::Holds => self.given < 1.0 || self.held.iter().all(|held| *held >= 90.0),
            Expected::Silence => self.given <= 10.0,
            Expected::Either => self.low.iter().all(|low| *low <= 20.0),
        }
    }
}

#[test]
#[ignore = "takes minutes: `just simulate` runs it"]
fn upper_bounds_of_rare_levels_hold() {
    let rows: Vec<_> = (0..)
        .zip(ROWS)
        .flat_map(|(seed, (name, delays, expected, lengths))| {
            lengths.iter().map(move |n| (seed, name, delays, expected, *n))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some((seed, name, delays, expected, n)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let is_dear = *n > 200_000 || matches!(delays, Delays::Of(Process::LongMemory(_)));
            let replicates = if is_dear { replicates().div_ceil(10) } else { replicates() };
            let tally = Tally::of(*delays, *n, *seed, replicates);
            println!("| {name} | {n} | {} |", tally.cells());
            // Of a million values a slow mode may fill all of the tail.
            let is_in_tail = *n > 200_000 && matches!(delays, Delays::Mixed(..));
            let expected = if is_in_tail { Expected::Either } else { *expected };
            if replicates >= 200 && !tally.is(expected) {
                failures.lock().expect("no thread panics").push(format!("{name}, {n}: {expected:?} but {tally:?}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Exponential delays of 200,000 probes with a mean of 10 µs.
fn exponential() -> Vec<i64> {
    let mut random = Random::new(2);
    (0..200_000).map(|_| (1e4 * random.exponential()).round() as i64).collect()
}

#[test]
fn an_exponential_tail_has_levels_and_bounds_near_the_true_ones() {
    let found = described(exponential()).expect("an answer");
    assert_eq!((found.clusters, found.levels.len()), (200, 3), "{found:?}");
    for (level, share) in found.levels.iter().zip([1e-4_f64, 1e-5, 5e-6]) {
        let truth = -10_000.0 * share.ln();
        assert!((level.value / truth - 1.0).abs() < 0.2, "{level:?}, {truth}");
        assert!(level.upper_bound > truth && level.upper_bound < 1.6 * truth, "{level:?}, {truth}");
    }
}

#[test]
fn nothing_is_said_where_the_sample_does_not_carry_it() {
    let but = |change: &dyn Fn(usize, i64) -> i64| {
        described(exponential().into_iter().enumerate().map(|(place, value)| change(place, value)).collect())
    };
    assert!(
        matches!(described(exponential()[..150_000].to_vec()), Err(NoExtremes::FewClusters { needed, .. }) if needed >= 2e5)
    );
    assert_eq!(but(&|place, value| if place == 7 { INFINITE } else { value }), Err(NoExtremes::Lost(1)));
    // In the last tenth tails are twice as long; the body is as before.
    let longer = |place, value: i64| if place > 180_000 && value > 40_000 { 2 * value - 40_000 } else { value };
    assert_eq!(but(&longer), Err(NoExtremes::Uneven));
    assert_eq!(but(&|_, value| value / 20_000 * 20_000), Err(NoExtremes::Coarse(4)));
    assert_eq!(but(&|_, value| (f64::from(value as i32) / 1e4 * 0.7).exp() as i64 * 100), Err(NoExtremes::HeavyTail));
    // One of another cause.
    let other = |place, value| if place == 77 { 250_000 } else { value };
    assert_eq!(but(&other), Err(NoExtremes::Disagreeing));
    let rising = |place, value| value + place as i64 / 20;
    assert_eq!(but(&rising), Err(NoExtremes::SlowChanges));
    // One cluster in 1,000 probes: 200 of them.
    let bursts = |place, value| if place % 1_000 < 20 { value + 200_000 } else { value };
    assert!(matches!(but(&bursts), Err(NoExtremes::FewClusters { .. })), "{:?}", but(&bursts));
}
