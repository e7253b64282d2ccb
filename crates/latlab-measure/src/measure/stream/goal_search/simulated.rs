//! Searches on simulated paths with buckets, queues and capacities that change: how often bounds hold. The table of
//! docs/statistics.md.

#![allow(clippy::print_stdout, reason = "a test prints a table of the documentation")]

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::facts::{RateSearchFacts, SearchEnding, TrialFacts};
use crate::plan::RateSearchSpec;

/// The capacity without alternation in packets a second: 40 Mbit/s.
const CAPACITY: f64 = 3_300.0;
const STEP: f64 = 0.001;

/// A token bucket in front of a queue, whose capacity may alternate.
#[derive(Clone, Copy, Debug)]
struct Shaper {
    /// Depth of the bucket, as a time at full capacity in seconds.
    bucket: f64,
    /// The same of the queue; 0: a policer.
    queue: f64,
    /// The share by which the capacity is lower for half of each period.
    trough: f64,
    /// In seconds.
    period: f64,
    /// Losses of five packets in a second, at any rate.
    bursts: f64,
}

const POLICER: Shaper = Shaper { bucket: 0.001, queue: 0.0, trough: 0.0, period: 1.0, bursts: 0.0 };
const QUEUE: Shaper = Shaper { queue: 1.0, ..POLICER };

/// A shaper at an instant.
#[derive(Clone, Copy, Debug)]
struct State {
    shaper: Shaper,
    seconds: f64,
    tokens: f64,
    queued: f64,
}

impl State {
    fn full(shaper: Shaper, seconds: f64) -> State {
        State { shaper, seconds, tokens: shaper.bucket * CAPACITY, queued: 0.0 }
    }

    /// Offers `pps` for [`STEP`]; returns the dropped packets.
    fn advance(&mut self, pps: f64) -> f64 {
        let is_trough = (self.seconds / self.shaper.period).fract() >= 0.5;
        let capacity = CAPACITY * if is_trough { 1.0 - self.shaper.trough } else { 1.0 };
        self.tokens += capacity * STEP;
        self.queued += pps * STEP;
        let out = self.queued.min(self.tokens);
        (self.queued, self.tokens) = (self.queued - out, (self.tokens - out).min(self.shaper.bucket * CAPACITY));
        let dropped = (self.queued - self.shaper.queue * CAPACITY).max(0.0);
        self.queued -= dropped;
        self.seconds += STEP;
        dropped
    }

    fn trial(&mut self, pps: f64, lasting: Nanos, random: &mut impl Rng) -> TrialFacts {
        let sent = (pps * lasting.as_secs_f64()).floor() + 1.0;
        let steps = (lasting.as_secs_f64() / STEP).round() as u64;
        let mut dropped: f64 = (0..steps).map(|_| self.advance(pps)).sum();
        let end = self.seconds;
        while self.queued > 0.5 {
            self.advance(0.0);
        }
        // The POLL waits for the receiver, which rarely lacks its CPU.
        let late = if random.random_bool(0.01) { 0.005 } else { random.random_range(0.0..0.000_3) };
        let counting = lasting.as_secs_f64() + self.seconds - end + late;
        // A pause in which the bucket is filled again.
        (0..random.random_range(1..5)).for_each(|_| _ = self.advance(0.0));
        if random.random_bool((self.shaper.bursts * lasting.as_secs_f64()).min(1.0)) {
            dropped += 5.0;
        }
        let lost = (dropped + random.random_range(0.0..1.0)).floor();
        TrialFacts {
            asked_pps: Some(pps),
            lasting_ns: lasting,
            sending_ns: lasting,
            counting_ns: Nanos((counting * 1e9) as i64),
            sent_packets: sent as u64,
            delivered_packets: (sent - lost).max(0.0) as u64,
            answered: true,
        }
    }
}

/// The loss ratio of a stream for `seconds` at `pps`.
fn loss(mut state: State, pps: f64, seconds: f64) -> f64 {
    let dropped: f64 = (0..(seconds / STEP) as u64).map(|_| state.advance(pps)).sum();
    dropped / (pps * seconds)
}

/// The highest rate whose loss ratio over many periods is at most `loss_ratio`, from an empty bucket and a full queue on.
fn highest(shaper: Shaper, loss_ratio: f64) -> f64 {
    let spent = State { tokens: 0.0, queued: shaper.queue * CAPACITY, ..State::full(shaper, 0.0) };
    let seconds = 20.0 * shaper.period.max(5.0);
    let (mut kept, mut lossy) = (CAPACITY * 0.5, CAPACITY * 1.5);
    while lossy - kept > CAPACITY * 1e-5 {
        let middle = (kept + lossy) / 2.0;
        let is_kept = loss(spent, middle, seconds) * middle * seconds <= (loss_ratio * middle * seconds).max(0.5);
        *(if is_kept { &mut kept } else { &mut lossy }) = middle;
    }
    kept
}

/// A search on the path, and its state after it.
fn search(shaper: Shaper, spec: &RateSearchSpec, seed: u64) -> (RateSearchFacts, State) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut state = State::full(shaper, random.random_range(0.0..100.0));
    let start = Stamp::from_nanos(0);
    let range = RateRange {
        floor_pps: 20.0,
        ceiling_pps: CAPACITY * 30.0,
        guess_pps: CAPACITY * random.random_range(0.9..1.1),
    };
    let (floor_pps, ceiling_pps, ending) = (20.0, range.ceiling_pps, SearchEnding::CutShort);
    let mut facts = RateSearchFacts { floor_pps, ceiling_pps, trials: Vec::new(), ending, took_ns: Nanos::ZERO };
    let mut search = GoalSearch::new(&spec.goals, range, start + spec.for_trials(true));
    let mut now = start;
    loop {
        let GoalStep::Try { pps, lasting } = search.step(now) else { return (facts, state) };
        let begin = state.seconds;
        facts.trials.push(state.trial(pps, lasting, &mut random));
        let took = Nanos(((state.seconds - begin) * 1e9) as i64);
        search.learn(&facts.judged(&spec.goals), lasting, took);
        now = now + took;
    }
}

/// The results of searches on a path for one goal: errors of the lower bound as shares of the highest rate that keeps the
/// goal, ascending, and how many streams as long as the last stage lose more at the bound.
#[derive(Default)]
struct Row {
    errors: Vec<f64>,
    lossy: usize,
}

impl Row {
    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.errors.len().max(1) as f64
    }

    fn held(&self) -> f64 {
        self.percent(self.errors.iter().filter(|error| **error <= 0.0).count())
    }

    fn at(&self, quantile: f64) -> f64 {
        100.0 * self.errors[((self.errors.len() - 1) as f64 * quantile).round() as usize]
    }
}

/// The results for losses of up to 0 and 0.5 %, with or without trials that confirm. Searches without a bound are left out.
fn rows(shaper: Shaper, seconds: i64, confirm: bool, replicates: u64) -> [Row; 2] {
    let mut spec = RateSearchSpec::within(&[0.0, 0.005], Nanos::from_secs(seconds));
    if !confirm {
        spec.goals.iter_mut().for_each(|goal| goal.confirming_ns = Nanos::ZERO);
    }
    let stage = spec.stage_ns.as_secs_f64();
    let truth: Vec<f64> = spec.goals.iter().map(|goal| highest(shaper, goal.loss_ratio)).collect();
    let mut rows = [Row::default(), Row::default()];
    for seed in 0..replicates {
        let (facts, state) = search(shaper, &spec, seed);
        let trials = facts.judged(&spec.goals);
        for ((goal, row), truth) in spec.goals.iter().zip(&mut rows).zip(&truth) {
            let Some(lower) = goal.bounds(&trials).lower_pps else { continue };
            row.errors.push(lower / truth - 1.0);
            let sent = lower * stage;
            let lost = loss(State::full(shaper, state.seconds), lower, stage) * sent;
            row.lossy += usize::from(lost > (goal.loss_ratio * sent).max(1.0));
        }
    }
    rows.iter_mut().for_each(|row| row.errors.sort_by(f64::total_cmp));
    rows
}

fn alternating(shaper: Shaper, period: f64) -> Shaper {
    Shaper { trough: 0.2, period, ..shaper }
}

const SHALLOW: Shaper = Shaper { queue: 0.05, ..QUEUE };

#[test]
fn confirmed_bounds_hold_where_others_do_not() {
    for shaper in [Shaper { bucket: 0.02, ..POLICER }, SHALLOW, alternating(POLICER, 2.0), alternating(SHALLOW, 2.0)] {
        let (confirmed, others) = (rows(shaper, 60, true, 40), rows(shaper, 60, false, 40));
        for (row, other) in confirmed.iter().zip(&others) {
            assert!(row.errors.len() >= 38 && row.held() >= 95.0 && row.lossy <= 2, "{shaper:?}: {:?}", row.errors);
            assert!(row.at(0.5) > -10.0 && other.held() < 70.0, "{shaper:?}: {:?}, {:?}", row.errors, other.errors);
        }
    }
}

/// Prints the table of docs/statistics.md.
#[test]
#[ignore = "two minutes: `just simulate`"]
fn bounds_of_searches() {
    let replicates = std::env::var("LATLAB_REPLICATES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let of_both =
        |rows: &[Row; 2], figure: fn(&Row) -> f64| rows.each_ref().map(|row| format!("{:.1}", figure(row))).join(", ");
    println!("| path | 20 s | 60 s | before | error | repeats | before | without a bound |");
    for (path, shaper) in [
        ("policer, bucket of 1 ms", POLICER),
        ("bucket of 20 ms", Shaper { bucket: 0.02, ..POLICER }),
        ("bucket of 100 ms", Shaper { bucket: 0.1, ..POLICER }),
        ("tbf, bucket of 1 ms, queue of 1 s", QUEUE),
        ("20 ms, 20 ms", Shaper { queue: 0.02, bucket: 0.02, ..QUEUE }),
        ("policer, period of 0.5 s", alternating(POLICER, 0.5)),
        ("5 s", alternating(POLICER, 5.0)),
        ("20 s", alternating(POLICER, 20.0)),
        ("tbf, 1 ms, 50 ms, period of 0.5 s", alternating(SHALLOW, 0.5)),
        ("2 s", alternating(SHALLOW, 2.0)),
        ("5 s", alternating(SHALLOW, 5.0)),
        ("policer, 5 packets lost every 20 s", Shaper { bursts: 0.05, ..POLICER }),
    ] {
        let [twenty, sixty] = [20, 60].map(|seconds| rows(shaper, seconds, true, replicates));
        let before = rows(shaper, 60, false, replicates);
        let held = [&twenty, &sixty, &before].map(|rows| of_both(rows, Row::held)).join(" | ");
        let errors = [0.05, 0.5, 0.95].map(|quantile| format!("{:.1}", sixty[0].at(quantile))).join(", ");
        let lossy = [&sixty, &before].map(|rows| of_both(rows, |row| row.percent(row.lossy))).join(" | ");
        let found = [twenty, sixty].iter().flatten().map(|row| row.errors.len()).min().unwrap_or(0);
        let missing = 100.0 * (1.0 - found as f64 / replicates as f64);
        println!("| {path} | {held} | {} | {lossy} | {missing:.1} |", errors.replace('-', "−"));
    }
}
