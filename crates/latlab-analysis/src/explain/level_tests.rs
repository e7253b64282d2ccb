//! How often a cause is claimed of simulated runs: of those without any, and of those with one.
#![allow(clippy::print_stdout, reason = "the table of docs/statistics.md")]

use std::thread;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::common;
use super::rows::Rows;
use super::slow::{Bands, SlowEpisode, SlowProbe, episodes};
use super::wakeups::{Watched, WatchedWakeups};
use crate::in_memory::{CLOSED, manifest};
use crate::units::Nanos;

const PROBES: usize = 5_000;
const RUNS: u64 = 2_000;

/// How delays depend on each other, or what they depend on.
#[derive(Clone, Copy, Debug)]
enum Delays {
    Independent,
    Autoregressive,
    Bursts,
    /// Twice as many slow probes on CPU 1, where a quarter of all are.
    SlowCpu,
    /// A third of the slow probes in one tenth of each 10 ms.
    SlowPhase,
}

fn simulated(delays: Delays, seed: u64) -> Vec<common::CommonCause> {
    let (mut random, manifest) = (Pcg64Mcg::seed_from_u64(seed), manifest(CLOSED));
    let mut rows = Rows::of(&manifest);
    let (mut at_ns, mut state, mut burst, mut cpus) = (0_i64, 0.0_f64, 0_u32, [0_u16, 2]);
    let exponential = |random: &mut Pcg64Mcg| -(1.0 - random.random::<f64>()).ln();
    for _ in 0..PROBES {
        // The ends move now and then: the sender is on CPU 1 a quarter of the time.
        if random.random_bool(0.01) {
            cpus = [u16::from(random.random_bool(0.25)), 2 + u16::from(random.random_bool(0.5))];
        }
        let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        state = 0.99 * state + 0.141 * normal;
        burst = if burst > 0 { burst - 1 } else { u32::from(random.random_bool(0.004)) * random.random_range(1..40) };
        let slow = match delays {
            Delays::Independent => normal.exp(),
            Delays::Autoregressive => (state + 0.3 * normal).exp(),
            Delays::Bursts => (normal / 2.0).exp() + if burst > 0 { 10.0 * exponential(&mut random) } else { 0.0 },
            Delays::SlowCpu => {
                let is_slow = random.random_bool(if cpus[0] == 1 { 0.04 } else { 0.02 });
                (normal / 2.0).exp() + if is_slow { 20.0 + 10.0 * exponential(&mut random) } else { 0.0 }
            }
            Delays::SlowPhase => {
                let is_slow = random.random_bool(if at_ns % 10_000_000 < 1_000_000 { 0.1 } else { 0.02 });
                (normal / 2.0).exp() + if is_slow { 20.0 + 10.0 * exponential(&mut random) } else { 0.0 }
            }
        };
        let delay_ns = (20_000.0 * slow) as i64;
        rows.sent_ns.push(at_ns);
        rows.delay_ns.push(delay_ns);
        let of_end = [cpus[0], cpus[0], cpus[1]];
        rows.cpus.iter_mut().zip(of_end).for_each(|(all, cpu)| all.push(cpu));
        at_ns += delay_ns + (900_000.0 * (0.5 + random.random::<f64>())) as i64;
    }
    let stretches = (0..at_ns / 1_000_000).filter(|slot| slot / 300 % 7 == 3 && slot % 3 == 0);
    let stretches: Vec<(i64, i64)> = stretches.map(|slot| (slot * 1_000_000, slot * 1_000_000 + 400_000)).collect();
    let watched = Watched {
        figures: WatchedWakeups {
            interval_ns: Nanos::from_millis(1),
            cpus: Vec::new(),
            n: 0,
            p50_ns: 0,
            p99_ns: 0,
            max_ns: 0,
            late: 0,
            late_from_ns: None,
        },
        by_cpu: Default::default(),
        any: stretches,
    };
    common::tests(&manifest, &rows, &slow_of(&rows), Some(&watched))
}

fn slow_of(rows: &Rows) -> Vec<SlowEpisode> {
    let from = Bands::of(rows).expect("probes").slow_from_ns;
    let slow = (0..rows.len()).filter(|place| rows.delay_ns[*place] >= from);
    let probe = |place: usize| SlowProbe {
        place,
        seq: place as u64,
        delay_ns: rows.delay_ns[place],
        stamps: Default::default(),
    };
    episodes(slow.map(probe).collect())
}

/// The share of `runs` simulated runs with any claim.
fn claimed(delays: Delays, runs: u64) -> f64 {
    let half =
        |from: u64| (from..runs).step_by(2).filter(|seed| simulated(delays, *seed).iter().any(|it| it.is_claimed));
    let count = thread::scope(|scope| {
        let other = scope.spawn(move || half(1).count());
        half(0).count() + other.join().expect("no panic")
    });
    count as f64 / runs as f64
}

#[test]
#[ignore = "two minutes; `just simulate` prints the table"]
fn causes_are_claimed_by_chance_in_at_most_one_run_of_twenty() {
    for delays in [Delays::Independent, Delays::Autoregressive, Delays::Bursts] {
        let share = claimed(delays, RUNS);
        println!("{delays:?}: {:.1} % with a claim", 100.0 * share);
        assert!(share < 0.062, "{delays:?}: {share}");
    }
    for delays in [Delays::SlowCpu, Delays::SlowPhase] {
        println!("{delays:?}: {:.1} % with a claim", 100.0 * claimed(delays, RUNS / 4));
    }
}
