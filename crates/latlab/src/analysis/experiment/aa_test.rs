//! The same condition under two names: how often is a difference found that is none, and does the host drift?

use rand::Rng;

use crate::stats::{
    BlockRuns, DRAWS, PermutationTest, Share, Slope, is_significant, ranks_differ, ratio, slope, student_differs,
};

/// A run under one of the two names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRun {
    /// Under the second name.
    pub second: bool,
    /// Its block, from 1.
    pub block: u32,
    /// When it began, in hours on a clock that is never set.
    pub hours: f64,
    /// Its statistics, the same for each run; none where one is infinite.
    pub statistics: Vec<Option<f64>>,
    /// Its singletons that are finite.
    pub singletons: Vec<i64>,
}

/// What two names for the same tell about a host.
#[derive(Clone, Debug, PartialEq)]
pub struct AaTest {
    /// Blocks × statistics in which the exchange test finds a difference.
    pub found: Share,
    /// Pairs of neighbouring runs whose probes Student's t calls different.
    pub by_student: Share,
    /// The same by Mann and Whitney.
    pub by_ranks: Share,
    /// Drift of the logarithm of each statistic per hour.
    pub drift: Vec<Option<Slope>>,
    /// From the first run to the last.
    pub hours: f64,
}

/// What `runs` tell at `confidence`.
pub fn aa_test(runs: &[NamedRun], confidence: f64, random: &mut impl Rng) -> AaTest {
    let statistics = runs.iter().map(|run| run.statistics.len()).min().unwrap_or_default();
    let blocks = runs.iter().map(|run| run.block).max().unwrap_or_default();
    let (mut asked, mut found) = (0, 0);
    for (block, statistic) in (1..=blocks).flat_map(|block| (0..statistics).map(move |statistic| (block, statistic))) {
        let values =
            |second: bool| logs(runs, statistic).filter(move |(run, _)| run.block == block && run.second == second);
        let of = |second| values(second).map(|(_, log)| log).collect();
        let runs = BlockRuns { baseline: of(false), candidate: of(true) };
        if let Some(exchanges) = PermutationTest::of(&[runs], DRAWS, random) {
            asked += 1;
            found += u64::from(is_significant(exchanges.p_value(0.0), 1.0 - confidence));
        }
    }
    let pairs = pairs(runs);
    let called = |test: fn(&[i64], &[i64], f64) -> bool| {
        let hits = pairs.iter().filter(|(one, other)| test(&one.singletons, &other.singletons, confidence)).count();
        ratio(hits as u64, pairs.len() as u64, confidence)
    };
    let begins = || runs.iter().map(|run| run.hours);
    let hours = begins().fold(f64::MIN, f64::max) - begins().fold(f64::MAX, f64::min);
    let points = |statistic| logs(runs, statistic).map(|(run, log)| (run.hours, log)).collect::<Vec<_>>();
    AaTest {
        found: ratio(found, asked, confidence),
        by_student: called(student_differs),
        by_ranks: called(ranks_differ),
        drift: (0..statistics).map(|statistic| slope(&points(statistic), confidence)).collect(),
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
    fn what_differs_in_its_name_only_is_called_different_by_probes() {
        let mut random = Pcg64::seed_from_u64(5);
        let noise = |random: &mut Pcg64| f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
        let runs: Vec<_> = (0..200_u32)
            .map(|number| {
                let hours = f64::from(number) / 100.0;
                run(number % 2 == 1, 1 + number / 10, hours, 50.0 * (0.1 * hours + 0.1 * noise(&mut random)).exp())
            })
            .collect();
        let told = aa_test(&runs, 0.95, &mut random);
        // 20 blocks with five runs of each name, and one statistic that exists.
        assert_eq!((told.found.n, told.by_student.n, told.by_ranks.n), (20, 100, 100));
        assert!(told.found.hits <= 4, "{told:?}");
        assert!(told.by_student.hits > 80 && told.by_ranks.hits > 80, "{told:?}");
        let drift = told.drift[0].expect("a line");
        assert!(drift.interval.low < Some(0.1) && drift.interval.high > Some(0.1), "{drift:?}");
        assert!(drift.interval.low > Some(0.0), "{drift:?}");
        assert_eq!(told.drift[1], None);
    }

    #[test]
    fn nothing_tells_nothing() {
        let told = aa_test(&[], 0.95, &mut Pcg64::seed_from_u64(1));
        assert_eq!((told.found.n, told.found.value, told.drift.len()), (0, None, 0));
    }
}
