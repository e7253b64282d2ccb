//! A gate on a value over the runs of a condition: how often is it broken at the limit, and kept below it?

use latlab_stats::own_interval;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [10_000, 1_000];
const CONFIDENCE: f64 = 0.95;
/// Standard deviation of the logarithm of a run, whose limit is 0.
const DEVIATION: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Runs {
    Normal,
    /// Exponential: with a long upper tail.
    Skewed,
}

/// How often the whole interval lies below the limit, and above it, if the true mean is `at`, in %.
fn kept_and_broken(of: Runs, count: usize, at: f64) -> [f64; 2] {
    let experiments = EXPERIMENTS[usize::from(!is_long())];
    let judged = in_parallel(experiments, |seed| {
        let mut random = Random::new(seed);
        let mut deviate = || if of == Runs::Normal { random.normal() } else { -random.uniform().ln() - 1.0 };
        let runs: Vec<f64> = (0..count).map(|_| at + DEVIATION * deviate()).collect();
        let interval = own_interval(&[runs], CONFIDENCE).expect("several runs");
        [interval.high.is_some_and(|high| high <= 0.0), interval.low.is_some_and(|low| low > 0.0)]
    });
    [0, 1].map(|which| 100.0 * judged.iter().filter(|one| one[which]).count() as f64 / experiments as f64)
}

#[test]
fn a_limit_over_runs_is_broken_as_rarely_as_stated() {
    println!("| runs | number | at the limit: broken, kept | 5 % below: broken, kept |");
    for of in rows([Runs::Normal, Runs::Skewed], &[0]) {
        for count in [4, 10, 30] {
            let (at, below) = (kept_and_broken(of, count, 0.0), kept_and_broken(of, count, -0.05));
            println!("| {of:?} | {count} | {:.1}, {:.1} | {:.1}, {:.1} |", at[1], at[0], below[1], below[0]);
            assert!(of == Runs::Skewed || (at[0] <= 5.0 && at[1] <= 5.0), "{of:?} {count}: {at:?}");
            assert!(of == Runs::Skewed || count < 10 || below[0] >= 95.0, "{of:?} {count}: {below:?}");
        }
    }
}
