//! The A/A test: one condition under two names. Every difference that is found is a false positive.

use rand::Rng;

use crate::stats::{
    BlockRuns, DRAWS, Share, ShiftTest, Slope, is_significant, ranks_differ, ratio, slope, student_differs,
};

/// A run under one of the two names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRun {
    /// Whether it has the second name.
    pub second: bool,
    /// From 1.
    pub block: u32,
    /// Its start in hours of CLOCK_BOOTTIME.
    pub hours: f64,
    /// The same statistics of each run; `None` if infinite.
    pub statistics: Vec<Option<f64>>,
    /// Its finite singletons; empty for a stream.
    pub singletons: Vec<i64>,
}

/// False positives and drift of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct AaTest {
    pub runs: usize,
    /// Blocks × statistics in which the test of runs finds a difference.
    pub found: Share,
    /// Pairs of runs with singletons, which Student's t calls different.
    pub by_student: Share,
    /// Pairs of runs with singletons, which Mann and Whitney's test calls different.
    pub by_ranks: Share,
    /// The drift of each statistic.
    pub drift: Vec<Drift>,
    /// From the first run to the last.
    pub hours: f64,
}

/// The drift of a statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    pub statistic: String,
    /// The change of its logarithm per hour; `None` if there are too few runs, or the experiment is too short.
    pub slope: Option<Slope>,
}

/// In less time a drift is hardly known: 12 minutes.
const DRIFT_HOURS_MIN: f64 = 0.2;

/// Does the A/A test of `runs` at `confidence`; `names` are the names of the statistics of each run, in order.
pub fn aa_test(runs: &[NamedRun], names: &[&str], confidence: f64, random: &mut impl Rng) -> AaTest {
    let statistics = runs.iter().map(|run| run.statistics.len()).min().unwrap_or_default();
    let blocks = runs.iter().map(|run| run.block).max().unwrap_or_default();
    let (mut tests, mut found) = (0, 0);
    for (block, statistic) in (1..=blocks).flat_map(|block| (0..statistics).map(move |statistic| (block, statistic))) {
        let values =
            |second: bool| logs(runs, statistic).filter(move |(run, _)| run.block == block && run.second == second);
        let of = |second| values(second).map(|(_, log)| log).collect();
        let runs = BlockRuns { baseline: of(false), candidate: of(true) };
        if let Some(test) = ShiftTest::of(&[runs], DRAWS, random) {
            tests += 1;
            found += u64::from(is_significant(test.p_value(0.0), 1.0 - confidence));
        }
    }
    let mut pairs = pairs(runs);
    pairs.retain(|(one, other)| !one.singletons.is_empty() && !other.singletons.is_empty());
    let called = |test: fn(&[i64], &[i64], f64) -> bool| {
        let hits = pairs.iter().filter(|(one, other)| test(&one.singletons, &other.singletons, confidence)).count();
        ratio(hits as u64, pairs.len() as u64, confidence)
    };
    let begins = || runs.iter().map(|run| run.hours);
    let hours = begins().fold(f64::MIN, f64::max) - begins().fold(f64::MAX, f64::min);
    let points = |statistic| logs(runs, statistic).map(|(run, log)| (run.hours, log)).collect::<Vec<_>>();
    let drift = |(place, name): (usize, &&str)| Drift {
        statistic: (*name).to_owned(),
        slope: slope(&points(place), confidence).filter(|_| hours >= DRIFT_HOURS_MIN),
    };
    AaTest {
        runs: runs.len(),
        found: ratio(found, tests, confidence),
        by_student: called(student_differs),
        by_ranks: called(ranks_differ),
        drift: names.iter().take(statistics).enumerate().map(drift).collect(),
        hours: hours.max(0.0),
    }
}

fn logs(runs: &[NamedRun], statistic: usize) -> impl Iterator<Item = (&NamedRun, f64)> {
    runs.iter().filter_map(move |run| {
        let value = run.statistics[statistic].filter(|value| *value > 0.0)?;
        Some((run, value.ln()))
    })
}

/// The first of one name with the first of the other in each block, the second with the second, and so on.
fn pairs(runs: &[NamedRun]) -> Vec<(&NamedRun, &NamedRun)> {
    let blocks = runs.iter().map(|run| run.block).max().unwrap_or_default();
    let of = |block: u32, second: bool| runs.iter().filter(move |run| run.block == block && run.second == second);
    (1..=blocks).flat_map(|block| of(block, false).zip(of(block, true))).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::*;

    fn run(second: bool, block: u32, hours: f64, value: f64) -> NamedRun {
        let singletons = (0..500).map(|place| (value * 1e3) as i64 + place % 7).collect();
        NamedRun { second, block, hours, statistics: vec![Some(value), None], singletons }
    }

    #[test]
    fn tests_of_single_probes_call_equal_runs_different() {
        let mut random = Pcg64::seed_from_u64(5);
        let noise = |random: &mut Pcg64| f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
        let runs: Vec<_> = (0..200_u32)
            .map(|number| {
                let hours = f64::from(number) / 100.0;
                run(number % 2 == 1, 1 + number / 10, hours, 50.0 * (0.1 * hours + 0.1 * noise(&mut random)).exp())
            })
            .collect();
        let found = aa_test(&runs, &["p50", "p99"], 0.95, &mut random);
        // 20 blocks with five runs of each name, and one finite statistic.
        assert_eq!((found.found.n, found.by_student.n, found.by_ranks.n), (20, 100, 100));
        assert!(found.found.hits <= 4, "{found:?}");
        assert!(found.by_student.hits > 80 && found.by_ranks.hits > 80, "{found:?}");
        let drift = found.drift[0].slope.expect("a line");
        assert!(drift.interval.low < Some(0.1) && drift.interval.high > Some(0.1), "{drift:?}");
        assert!(drift.interval.low > Some(0.0), "{drift:?}");
        assert_eq!(found.drift[1].slope, None);
    }

    #[test]
    fn no_runs_show_nothing() {
        let found = aa_test(&[], &["p50"], 0.95, &mut Pcg64::seed_from_u64(1));
        assert_eq!((found.found.n, found.found.value, found.drift.len()), (0, None, 0));
    }
}
