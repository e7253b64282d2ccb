//! Whether bounds of the offset of two clocks hold, and how wide they are: the table of docs/statistics.md.

use std::f64::consts::TAU;

use latlab_stats::{Exchange, clock_windows};

use crate::one_run::{Random, replicates};

/// The least round trip of every path, without queues.
const ROUND_TRIP_NS: f64 = 100_000.0;

/// Delays beyond the least one, as shares of the least round trip.
#[derive(Clone, Copy)]
enum Queue {
    Exponential(f64),
    /// With an infinite variance.
    Pareto(f64),
}

#[derive(Clone, Copy)]
enum Clocks {
    /// Frequencies that differ by up to 100 ppm and wander within the allowance.
    Wander,
    /// And one clock is set by 0.1 to 1 round trips.
    Step,
    /// And one frequency changes by 1 to 100 ppm.
    FrequencyStep,
}

struct Path {
    name: &'static str,
    /// Share of the least round trip that is the way there.
    there: f64,
    queues: [Queue; 2],
    probes: usize,
    interval_ns: f64,
}

/// An exchange, with the true offset when it arrived and when it was answered.
type Traced = (Exchange, [f64; 2]);

impl Queue {
    fn delay(self, random: &mut Random) -> f64 {
        match self {
            Queue::Exponential(mean) => mean * random.exponential(),
            Queue::Pareto(scale) => scale * ((1.0 - random.uniform()).powf(-1.0 / 1.5) - 1.0),
        }
    }
}

fn trace(path: &Path, clocks: Clocks, random: &mut Random) -> Vec<Traced> {
    let duration = path.probes as f64 * path.interval_ns;
    let skew = 1e-4 * (2.0 * random.uniform() - 1.0);
    let (phase, period) = (TAU * random.uniform(), duration * (0.25 + 2.0 * random.uniform()));
    let at = duration * random.uniform();
    let sign = if random.uniform() < 0.5 { -1.0 } else { 1.0 };
    let size = sign * 10_f64.powf(-random.uniform());
    let offset = |t: f64| {
        let wander = 1e-7 * period / TAU * (phase + TAU * t / period).sin();
        let after = f64::from(u8::from(t >= at));
        1e12 + skew * t
            + wander
            + match clocks {
                Clocks::Wander => 0.0,
                Clocks::Step => after * size * ROUND_TRIP_NS,
                Clocks::FrequencyStep => after * 1e-6 * size.signum() * size.abs().powi(-2) * (t - at),
            }
    };
    let traced = |number: usize, random: &mut Random| {
        let sent = number as f64 * path.interval_ns;
        let least = [path.there, 1.0 - path.there];
        let [there, back] = [0, 1].map(|way| (least[way] + path.queues[way].delay(random)) * ROUND_TRIP_NS);
        let (arrived, answered) = (sent + there, sent + there + 5_000.0);
        let truths = [arrived, answered].map(offset);
        let exchange = Exchange {
            sent: sent as i64,
            far_received: (arrived + truths[0]) as i64,
            far_sent: (answered + truths[1]) as i64,
            received: (answered + back) as i64,
        };
        (exchange, truths)
    };
    (0..path.probes).map(|number| traced(number, random)).collect()
}

#[derive(Default)]
struct Tally {
    held: usize,
    refused: f64,
    halves: Vec<f64>,
}

fn tally(path: &Path, clocks: Clocks, count: usize) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..count {
        let traced = trace(path, clocks, &mut Random::new(seed as u64));
        let exchanges: Vec<Exchange> = traced.iter().map(|(exchange, _)| *exchange).collect();
        let mut holds = true;
        for (range, window) in clock_windows(&exchanges, 1.0) {
            let Some(window) = window else {
                tally.refused += range.len() as f64 / exchanges.len() as f64;
                continue;
            };
            for (exchange, truths) in &traced[range.clone()] {
                let ends = [(exchange.far_received, truths[0]), (exchange.far_sent, truths[1])];
                for (far, truth) in ends {
                    let bound = window.offset_at(far - truth as i64);
                    holds &= (bound.middle_ns as f64 - truth).abs() <= bound.half_ns + 2.0;
                }
            }
            let middle = traced[(range.start + range.end) / 2].0;
            let delays = |one: &Traced| one.0.received - one.0.sent - (one.0.far_sent - one.0.far_received);
            let least = traced[range].iter().map(delays).min().expect("exchanges");
            tally.halves.push(window.offset_at(middle.sent).half_ns / least as f64);
        }
        tally.held += usize::from(holds);
    }
    tally.halves.sort_by(f64::total_cmp);
    tally
}

const fn path(name: &'static str, there: f64, queues: [Queue; 2]) -> Path {
    Path { name, there, queues, probes: 1_000, interval_ns: 1e7 }
}

const PATHS: [Path; 9] = [
    path("quiet", 0.5, [Queue::Exponential(0.02); 2]),
    path("quiet, 0.1 there", 0.1, [Queue::Exponential(0.02); 2]),
    path("exponential", 0.5, [Queue::Exponential(1.0); 2]),
    path("exponential, 0.1 there", 0.1, [Queue::Exponential(1.0); 2]),
    path("exponential there", 0.1, [Queue::Exponential(5.0), Queue::Exponential(0.02)]),
    path("exponential back", 0.1, [Queue::Exponential(0.02), Queue::Exponential(5.0)]),
    path("Pareto, 0.1 there", 0.1, [Queue::Pareto(1.0); 2]),
    Path { probes: 200, ..path("exponential, 200 probes", 0.1, [Queue::Exponential(1.0); 2]) },
    Path { interval_ns: 3e8, ..path("exponential, 300 s", 0.1, [Queue::Exponential(1.0); 2]) },
];

#[test]
#[ignore = "half a minute: `just simulate`"]
fn bounds_of_clock_windows_hold() {
    println!("| path | held | refused | half width | its 90th percentile |\n| --- | --- | --- | --- | --- |");
    for path in &PATHS {
        let count = replicates();
        let tallies = [Clocks::Wander, Clocks::Step, Clocks::FrequencyStep].map(|clocks| tally(path, clocks, count));
        let share = |of: f64| format!("{:.1}", 100.0 * of / count as f64);
        let half = |one: &Tally, tenth: usize| {
            let half = one.halves.get(one.halves.len() * tenth / 10);
            half.map_or("–".into(), |half| format!("{half:.2}"))
        };
        let cells = [
            tallies.each_ref().map(|one| share(one.held as f64)),
            tallies.each_ref().map(|one| share(one.refused)),
            tallies.each_ref().map(|one| half(one, 5)),
            tallies.each_ref().map(|one| half(one, 9)),
        ];
        println!("| {} | {} |", path.name, cells.map(|cell| cell.join("/")).join(" | "));
        assert!(count < 1_000 || tallies.iter().all(|one| 100 * one.held >= 99 * count), "{}", path.name);
    }
}
