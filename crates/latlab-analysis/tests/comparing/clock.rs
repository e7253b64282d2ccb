//! A clock of coarse steps: intervals of one run, and comparisons of runs whose true delays are the same.

use latlab_analysis::comparison::{ComparisonOptions, ComparisonRequest, ObservedRun, RunGroups, Verdict, compare};
use latlab_stats::{DescribeOptions, Description, Interval, describe, plain};
use latlab_terms::metric::Metric;
use latlab_terms::sample::Sample;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const REPLICATES: [u64; 2] = [2_000, 30];
/// Of the clock, in ns.
const STEP: f64 = 1_000.0;
/// Standard deviations of the true delays, in steps.
const SPREADS: [f64; 3] = [0.02, 0.3, 2.0];
const PROBES: usize = 1_000;
const RUNS: usize = 8;
const DRAWS: u32 = 499;
/// Standard normal quantiles of p50 and p99.
const NORMAL: [f64; 2] = [0.0, 2.326_347_874];

fn replicates() -> u64 {
    REPLICATES[usize::from(!is_long())]
}

/// When a delay begins within a step of the clock: at a step, so that the delay is cut off; at any time; or at the same
/// time in each probe of a run.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Clock,
    Probe,
    Run(f64),
}

/// Delays around `level` steps as the clock shows them: both instants are cut off to its step.
fn recorded(level: f64, spread: f64, phase: Phase, random: &mut Random) -> Sample {
    let mut delay = || {
        let sent = match phase {
            Phase::Clock => 0.0,
            Phase::Probe => random.uniform(),
            Phase::Run(phase) => phase,
        };
        ((sent + level + spread * random.normal()).floor() * STEP) as i64
    };
    Sample::new(Metric::RoundTripDelay, (0..PROBES).map(|_| delay()).collect())
}

/// Whether the intervals of mean, p50 and p99 hold the true values if they reach 0, half a step and a step farther.
fn covered(spread: f64, phase: Phase, seed: u64) -> [[bool; 3]; 3] {
    let mut random = Random::new(seed);
    let level = 10.0 + random.uniform();
    let sample = recorded(level, spread, phase, &mut random);
    let options = DescribeOptions { quantiles: vec![0.5, 0.99], confidence: 0.95, intervals: true };
    let described = describe(&sample, &options);
    let intervals = [described.mean_interval, described.quantiles[0].interval, described.quantiles[1].interval];
    let truths = [0.0, NORMAL[0], NORMAL[1]].map(|place| (level + spread * place) * STEP);
    let step = described.step;
    let holds = |of: Option<Interval>, truth: f64| {
        [step, step / 2.0, 0.0].map(|less| {
            let Interval { low, high, .. } = of.expect("an interval").widened(-less);
            low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
        })
    };
    [0, 1, 2].map(|which| holds(intervals[which], truths[which]))
}

#[test]
fn intervals_of_a_coarse_clock_hold_the_true_values() {
    println!("| clock | spread | mean | p50 | p99 |");
    for (name, phase) in [("values cut off", Phase::Clock), ("instants cut off", Phase::Probe)] {
        for spread in rows(SPREADS, &[0, 2]) {
            let all = in_parallel(replicates(), |seed| covered(spread, phase, seed));
            let share = |which: usize, reach: usize| {
                100.0 * all.iter().filter(|one| one[which][reach]).count() as f64 / all.len() as f64
            };
            let cell = |which: usize| [0, 1, 2].map(|reach| format!("{:.0}", share(which, reach))).join("/");
            println!("| {name} | {spread} | {} | {} | {} |", cell(0), cell(1), cell(2));
            (0..3).for_each(|which| assert!(share(which, 2) >= 93.0, "{name} {spread}: {}", cell(which)));
        }
    }
}

/// Whether mean, p50 and p99 of two groups are claimed to differ: as if the clock were exact, and with its step.
fn claimed(spread: f64, shift: f64, seed: u64) -> [[bool; 2]; 3] {
    let mut random = Random::new(seed);
    let level = 10.0 + random.uniform();
    let mut group = |shift: f64| -> Vec<Description> {
        let mut run = || {
            let phase = Phase::Run(random.uniform());
            plain(&recorded(level + shift, spread, phase, &mut random), &[0.5, 0.99], false)
        };
        (0..RUNS).map(|_| run()).collect()
    };
    let groups = [group(0.0), group(shift)];
    let claims = |figure: &dyn Fn(&Description) -> f64, step: &dyn Fn(&Description) -> f64| {
        let run = |one: &Description| ObservedRun {
            clock_steps: vec![step(one)],
            ..ObservedRun::bare("run".into(), figure(one))
        };
        let runs = |of: &[Description]| of.iter().map(run).collect::<Vec<_>>();
        let named = vec![("one".to_owned(), runs(&groups[0])), ("other".to_owned(), runs(&groups[1]))];
        let options = ComparisonOptions { draws: DRAWS, seed, ..ComparisonOptions::at(0.95) };
        let groups = RunGroups::named(named).expect("two groups");
        let verdict = compare(groups, &ComparisonRequest::of_values(None), &options).expect("a row").rows[0].verdict;
        matches!(verdict, Verdict::Higher | Verdict::Lower)
    };
    let quantile = |which: usize| move |one: &Description| one.quantiles[which].value.expect("a value");
    let (mean, of_values) = (|one: &Description| one.mean.expect("a mean"), |one: &Description| one.step);
    [
        [claims(&mean, &|_| 0.0), claims(&mean, &of_values)],
        [claims(&quantile(0), &|_| 0.0), claims(&quantile(0), &of_values)],
        [claims(&quantile(1), &|_| 0.0), claims(&quantile(1), &of_values)],
    ]
}

#[test]
fn a_coarse_clock_claims_no_differences() {
    println!("| spread | mean | p50 | p99 | two steps found |");
    for spread in rows(SPREADS, &[0, 2]) {
        let same = in_parallel(replicates(), |seed| claimed(spread, 0.0, seed));
        let moved = in_parallel(replicates(), |seed| claimed(spread, 2.0, seed));
        let share = |of: &[[[bool; 2]; 3]], which: usize, with: usize| {
            100.0 * of.iter().filter(|one| one[which][with]).count() as f64 / of.len() as f64
        };
        let cell = |which: usize| format!("{:.1}/{:.1}", share(&same, which, 0), share(&same, which, 1));
        let found = [0, 1, 2].map(|which| format!("{:.0}", share(&moved, which, 1))).join(", ");
        println!("| {spread} | {} | {} | {} | {found} |", cell(0), cell(1), cell(2));
        (0..3).for_each(|which| assert!(share(&same, which, 1) <= 10.0, "{spread}: {}", cell(which)));
    }
}
