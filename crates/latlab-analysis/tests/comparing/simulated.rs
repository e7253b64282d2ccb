//! Experiments whose truth is known: dependent probes with a heavy tail, runs and blocks that differ, and drift.

use latlab_stats::BlockRuns;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const PROBES: usize = 1_000;
/// Coefficient of the autoregressive process behind the probes of a run.
const CORRELATION: f64 = 0.8;
/// Standard deviation of the logarithm of a probe's delay in the body.
const PROBE_SPREAD: f64 = 0.1;
/// The share of probes in the Pareto tail, and its exponent.
const TAIL: f64 = 0.02;
const TAIL_EXPONENT: f64 = 2.5;
/// Where the tail begins, in standard deviations: the normal quantile at 1 − TAIL.
const TAIL_FROM: f64 = 2.053_748_910_631_823;
/// Standard deviations of the logarithm between runs and between blocks.
const RUN_SPREAD: f64 = 0.05;
const BLOCK_SPREAD: f64 = 0.15;
/// The drift: how much slower the last run is than the first.
const DRIFT: f64 = 0.30;

/// Runs for each condition and block, and blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Design {
    pub(crate) runs: usize,
    pub(crate) blocks: usize,
}

/// The designs of the table in docs/statistics.md.
pub(crate) const DESIGNS: [Design; 2] = [Design { runs: 10, blocks: 3 }, Design { runs: 5, blocks: 8 }];

pub(crate) const STATISTICS: [&str; 3] = ["mean", "p50", "p99"];

/// Whether the tables of the documentation are to be computed, as by `just simulate`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("LATLAB_SIMULATE").is_some()
}

/// Every row of a table if [`is_long`]; else those at the places `few`.
pub(crate) fn rows<T>(all: impl IntoIterator<Item = T>, few: &[usize]) -> Vec<T> {
    let rows = all.into_iter().enumerate().filter(|(place, _)| is_long() || few.contains(place));
    rows.map(|(_, row)| row).collect()
}

/// Normal numbers from uniform ones.
pub(crate) struct Random {
    source: Pcg64Mcg,
    spare: Option<f64>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { source: Pcg64Mcg::seed_from_u64(seed), spare: None }
    }

    /// In (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.source.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (the polar method of Marsaglia).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (one, other) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = one * one + other * other;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(other * scale);
                return one * scale;
            }
        }
    }

    /// A random order of `values`.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for place in (1..values.len()).rev() {
            values.swap(place, (self.uniform() * (place + 1) as f64) as usize);
        }
    }
}

/// The probability that a standard normal lies above `z`, for z of 2 and more: the asymptotic continued fraction.
fn normal_above(z: f64) -> f64 {
    let fraction = (1..=40).rev().fold(0.0, |rest, step| f64::from(step) / (z + rest));
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / (z + fraction)
}

/// The delays of one run in µs: a lognormal body, above its 98th percentile a Pareto tail; both follow one
/// autoregressive process, so that slow probes come in bursts.
pub(crate) fn probes(random: &mut Random, level: f64) -> Vec<f64> {
    let innovation = (1.0 - CORRELATION * CORRELATION).sqrt();
    let mut state = random.normal();
    let delay = |state: f64| {
        if state <= TAIL_FROM {
            level * (PROBE_SPREAD * state).exp()
        } else {
            level * (PROBE_SPREAD * TAIL_FROM).exp() * (normal_above(state) / TAIL).powf(-1.0 / TAIL_EXPONENT)
        }
    };
    let mut next = || {
        state = CORRELATION * state + innovation * random.normal();
        delay(state)
    };
    (0..PROBES).map(|_| next()).collect()
}

/// A simulated experiment in which nothing differs between its two conditions.
pub(crate) struct Experiment {
    /// For each of [`STATISTICS`] the logarithms of the runs' statistics, block by block.
    pub(crate) statistics: [Vec<BlockRuns>; 3],
    /// The probes of each condition, if requested.
    pub(crate) probes: [Vec<f64>; 2],
}

/// Simulates one; the order of the runs is random within each block.
pub(crate) fn experiment(design: Design, seed: u64, keep_probes: bool) -> Experiment {
    let mut random = Random::new(seed);
    let all = (2 * design.runs * design.blocks) as f64;
    let mut made = Experiment { statistics: [vec![], vec![], vec![]], probes: [vec![], vec![]] };
    let mut position = 0.0;
    for _ in 0..design.blocks {
        let of_block = BLOCK_SPREAD * random.normal();
        let mut order: Vec<bool> = (0..2 * design.runs).map(|run| run % 2 == 0).collect();
        random.shuffle(&mut order);
        let mut blocks = [BlockRuns::default(), BlockRuns::default(), BlockRuns::default()];
        for is_candidate in order {
            let level = 50.0 * (1.0 + DRIFT * position / all) * (of_block + RUN_SPREAD * random.normal()).exp();
            position += 1.0;
            let mut delays = probes(&mut random, level);
            if keep_probes {
                made.probes[usize::from(is_candidate)].extend(&delays);
            }
            for (block, value) in blocks.iter_mut().zip(figures(&mut delays)) {
                let group = if is_candidate { &mut block.candidate } else { &mut block.baseline };
                group.push(value.ln());
            }
        }
        for (blocks, block) in made.statistics.iter_mut().zip(blocks) {
            blocks.push(block);
        }
    }
    made
}

/// Mean, median and 99th percentile (interpolated as everywhere).
fn figures(delays: &mut [f64]) -> [f64; 3] {
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let mut quantile = |q: f64| {
        let place = (delays.len() - 1) as f64 * q;
        let (_, low, above) = delays.select_nth_unstable_by(place as usize, f64::total_cmp);
        let high = above.iter().copied().fold(f64::INFINITY, f64::min);
        *low + place.fract() * (high - *low)
    };
    [mean, quantile(0.5), quantile(0.99)]
}

/// `each` of `0..count`, shared out among the processors, in order.
pub(crate) fn in_parallel<T: Send>(count: u64, each: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let each = &each;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|first| scope.spawn(move || (first..count).step_by(workers as usize).map(each).collect::<Vec<T>>()))
            .collect();
        let mut shares: Vec<_> =
            handles.into_iter().map(|handle| handle.join().expect("a simulation ran to its end").into_iter()).collect();
        let several = shares.len();
        (0..count as usize).filter_map(|index| shares[index % several].next()).collect()
    })
}
