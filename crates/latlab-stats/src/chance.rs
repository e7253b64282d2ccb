//! Tests of what rare events have in common against chance, for events in a series whose values depend on each other.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{Binomial, DiscreteCDF};

/// Shifts of [`rotated`]: the least p value is 1/2,000.
const SHIFTS: usize = 1_999;

/// A statistic, and its share of chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotated {
    /// The statistic of the labels without a shift.
    pub observed: f64,
    /// The mean over the shifts.
    pub expected: f64,
    pub p_value: f64,
}

/// Tests whether events are related to a series of `n` values: `statistic` has the events moved by as many places as its
/// argument, around the end of the series. A shift keeps how events depend on each other, and how the values of the series
/// do, and breaks every relation between both (Lotwick and Silverman 1982). Larger statistics are evidence.
pub fn rotated(n: usize, mut statistic: impl FnMut(usize) -> f64, random: &mut Pcg64Mcg) -> Rotated {
    let observed = statistic(0);
    let (mut sum, mut as_large) = (0.0, 0);
    for _ in 0..SHIFTS {
        let shifted = statistic(random.random_range(1..n.max(2)));
        sum += shifted;
        as_large += usize::from(shifted >= observed - 1e-9);
    }
    Rotated { observed, expected: sum / SHIFTS as f64, p_value: (1 + as_large) as f64 / (1 + SHIFTS) as f64 }
}

/// The probability of at least `hits` in `trials` independent trials, each with the probability `chance`.
pub fn at_least(hits: u64, trials: u64, chance: f64) -> f64 {
    match hits.checked_sub(1) {
        None => 1.0,
        Some(fewer) => Binomial::new(chance.clamp(0.0, 1.0), trials).map_or(1.0, |all| all.sf(fewer)),
    }
}

/// The mean resultant of `phases`, which are in turns: its length, 0 to 1, and its direction in turns.
pub fn resultant(phases: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut count, mut cosines, mut sines) = (0.0_f64, 0.0, 0.0);
    for angle in phases.map(|phase| phase * std::f64::consts::TAU) {
        (count, cosines, sines) = (count + 1.0, cosines + angle.cos(), sines + angle.sin());
    }
    let direction = sines.atan2(cosines) / std::f64::consts::TAU;
    (cosines.hypot(sines) / count.max(1.0), direction.rem_euclid(1.0))
}

/// The p value of Rayleigh's test for `n` independent phases with a mean resultant of this `length`: whether they cluster
/// in one part of a turn (Zar 1999, equation 27.4).
pub fn rayleigh(length: f64, n: usize) -> f64 {
    let (n, sum) = (n as f64, n as f64 * length);
    ((1.0 + 4.0 * n + 4.0 * (n * n - sum * sum)).sqrt() - (1.0 + 2.0 * n)).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn events_that_follow_the_series_are_found_and_others_are_not() {
        // Ten values in a hundred are marked; events at marked places, and every seventh.
        let (mut random, marked) = (Pcg64Mcg::seed_from_u64(3), |place: usize| place % 100 / 10 == 3);
        let hits = |events: &[usize], shift: usize| {
            events.iter().filter(|event| marked((**event + shift) % 10_000)).count() as f64
        };
        let related: Vec<usize> = (0..50).map(|event| event * 200 + 31 + event % 9).collect();
        let found = rotated(10_000, |shift| hits(&related, shift), &mut random);
        assert_eq!(found.observed, 50.0);
        assert!(found.p_value < 0.02 && (found.expected - 5.0).abs() < 1.5, "{found:?}");
        let unrelated: Vec<usize> = (0..50).map(|event| event * 197).collect();
        assert!(rotated(10_000, |shift| hits(&unrelated, shift), &mut random).p_value > 0.1);
    }

    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        assert_eq!(at_least(0, 10, 0.2), 1.0);
        assert!((at_least(10, 10, 0.5) - 1.0 / 1024.0).abs() < 1e-12);
        assert!((at_least(1, 3, 0.5) - 7.0 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn rayleigh_has_its_level_and_finds_a_cluster() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut rejected = 0;
        for _ in 0..2_000 {
            let (length, _) = resultant((0..20).map(|_| random.random::<f64>()));
            rejected += u32::from(rayleigh(length, 20) < 0.05);
        }
        assert!((70..130).contains(&rejected), "{rejected}");
        let (length, direction) = resultant((0..20).map(|at| 0.95 + f64::from(at) / 200.0));
        assert!(rayleigh(length, 20) < 1e-6 && (direction - 0.997).abs() < 0.01, "{length} {direction}");
    }
}
