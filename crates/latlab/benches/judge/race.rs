//! Rounds in which every contender runs once, in random order, and ratios of contenders in the same round
//! (docs/design/0004-judging-our-own-cost.md).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::options::Options;
use super::paired::Paired;
use super::readings::Reading;

/// Rounds added at a time while the bare loop does not agree with itself.
const ROUNDS_STEP: usize = 10;
/// Permitted deviation from 1 of the ratio of two runs of the bare loop, for the median and the 99th percentile.
pub(crate) const P50_TOLERANCE: f64 = 0.01;
pub(crate) const P99_TOLERANCE: f64 = 0.03;

/// One figure of a reading.
pub(crate) type Figure = fn(&Reading) -> f64;

pub(crate) fn p50(reading: &Reading) -> f64 {
    reading.p50_ns
}

pub(crate) fn p99(reading: &Reading) -> f64 {
    reading.p99_ns
}

/// NaN if the contender does not print it.
pub(crate) fn p999(reading: &Reading) -> f64 {
    reading.p999_ns.unwrap_or(f64::NAN)
}

/// The generator of the order of the contenders, whose seed is printed.
pub(crate) fn seeded_rng() -> Pcg64Mcg {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    println!("order of the contenders from seed {seed}");
    Pcg64Mcg::seed_from_u64(seed)
}

/// The readings of each contender by round. The contenders in `bare` are two runs of the bare loop.
pub(crate) struct Rounds<C> {
    bare: [C; 2],
    readings: BTreeMap<C, Vec<Reading>>,
}

impl<C: Copy + Ord + Debug> Rounds<C> {
    /// Runs rounds of `contenders` until the two runs of the bare loop agree, or the maximum number of rounds is
    /// reached.
    pub(crate) fn run(
        title: &str,
        (contenders, bare): (&[C], [C; 2]),
        options: &Options,
        rng: &mut Pcg64Mcg,
        mut race: impl FnMut(C) -> Result<Reading, String>,
    ) -> Result<Rounds<C>, String> {
        let mut rounds = Rounds { bare, readings: BTreeMap::new() };
        let mut wanted = options.rounds;
        for done in 0.. {
            if done == wanted {
                if wanted >= options.rounds_max || rounds.are_quiet() {
                    break;
                }
                wanted = (wanted + ROUNDS_STEP).min(options.rounds_max);
            }
            for contender in shuffled(contenders, rng) {
                let reading = race(contender)?;
                rounds.readings.entry(contender).or_default().push(reading);
            }
            eprint!("\r{title}: round {} of {wanted}   ", done + 1);
        }
        eprintln!();
        Ok(rounds)
    }

    fn are_quiet(&self) -> bool {
        self.self_ratio(p50).is_quiet(P50_TOLERANCE) && self.self_ratio(p99).is_quiet(P99_TOLERANCE)
    }

    /// The ratio of one contender to another.
    pub(crate) fn ratio(&self, one: C, other: C, figure: Figure) -> Paired {
        let of = |contender| self.readings[&contender].iter().map(figure).collect::<Vec<f64>>();
        Paired::of(&of(one), &of(other))
    }

    /// The bare loop's ratio to itself.
    pub(crate) fn self_ratio(&self, figure: Figure) -> Paired {
        self.ratio(self.bare[1], self.bare[0], figure)
    }

    pub(crate) fn sorted(&self, contender: C, figure: Figure) -> Vec<f64> {
        let mut figures: Vec<f64> = self.readings[&contender].iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    pub(crate) fn raw(&self) -> Value {
        let of = |readings: &Vec<Reading>| {
            json!({
                "p50_ns": readings.iter().map(p50).collect::<Vec<_>>(),
                "p99_ns": readings.iter().map(p99).collect::<Vec<_>>(),
                "p999_ns": readings.iter().map(p999).collect::<Vec<_>>(),
            })
        };
        let named =
            |(contender, readings): (&C, &Vec<Reading>)| (format!("{contender:?}").to_lowercase(), of(readings));
        Value::Object(self.readings.iter().map(named).collect())
    }
}

pub(super) fn shuffled<C: Copy>(contenders: &[C], rng: &mut Pcg64Mcg) -> Vec<C> {
    let mut order = contenders.to_vec();
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}
