//! Coverage of the intervals of one run under dependence, and how often its caveats are raised: the tables of
//! docs/statistics.md. `LATLAB_REPLICATES` sets the number of simulated runs of each row; `just simulate` prints the tables
//! with 2,000.

use std::f64::consts::TAU;
use std::fmt::Write;

use latlab_stats::{DescribeOptions, Description, Interval, QuantileEstimate, describe, share};
use latlab_terms::metric::Metric;
use latlab_terms::sample::{INFINITE, Sample};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Simulated runs of each row, unless the environment has another number: few enough for every build.
const REPLICATES: usize = 100;
const LENGTHS: [usize; 3] = [2_000, 5_000, 20_000];
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// Nanoseconds of a standard deviation, large enough that rounding makes no ties.
pub(crate) const SCALE: f64 = 1e6;
/// Runs with fewer bursts do not count: nothing in them shows how frequent bursts are.
const EVENTS_MIN: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Process {
    /// Normal of first order with this coefficient; 0 is white noise.
    Autoregressive(f64),
    /// Normal around two levels, three standard deviations apart, each for 200 values on average.
    TwoLevels,
    /// Normal, and ten standard deviations higher in bursts of `length` values; one of `every` values begins one, those
    /// within bursts not counted.
    Bursts { length: usize, every: usize },
    /// Sojourn times in a queue with one server and a utilisation of 0.9.
    Queue,
    /// Normal, fractionally integrated of this order.
    LongMemory(f64),
    /// Normal, and a standard deviation higher in the second half.
    Step,
    /// Normal, and a standard deviation higher from a random place on.
    StepSomewhere,
}

/// True values of the mean and of [`QUANTILES`].
type Truth = [f64; 4];

/// The standard normal distribution: 0 and `scipy.stats.norm.ppf(q)`.
const NORMAL: Truth = [0.0, 0.0, 1.2815515655446004, 2.3263478740408408];

impl Process {
    fn truth(self) -> Truth {
        let mixture = |share: f64, height: f64| {
            let below = |x: f64| (1.0 - share) * normal_below(x) + share * normal_below(x - height);
            let [p50, p90, p99] = QUANTILES.map(|q| inverse(below, q));
            [share * height, p50, p90, p99]
        };
        match self {
            Process::Autoregressive(_) | Process::LongMemory(_) => NORMAL,
            Process::TwoLevels => mixture(0.5, 3.0),
            Process::Bursts { length, every } => mixture(length as f64 / (length + every) as f64, 10.0),
            Process::Queue => [10.0, 10.0 * 2f64.ln(), 10.0 * 10f64.ln(), 10.0 * 100f64.ln()],
            Process::Step | Process::StepSomewhere => mixture(0.5, 1.0),
        }
    }

    /// A run of `n` values, with the number of bursts in it.
    pub(crate) fn run(self, n: usize, random: &mut Random) -> Run {
        let mut events = usize::MAX;
        let values = match self {
            Process::Autoregressive(coefficient) => random.autoregressive(n, coefficient),
            Process::TwoLevels => {
                let mut level = f64::from(u8::from(random.uniform() < 0.5));
                let mut value = || {
                    level = if random.uniform() < 1.0 / 200.0 { 1.0 - level } else { level };
                    3.0 * level + random.normal()
                };
                (0..n).map(|_| value()).collect()
            }
            Process::Bursts { length, every } => {
                let hits = random.bursts(n, length, every);
                events = hits.windows(2).filter(|pair| pair[1] && !pair[0]).count() + usize::from(hits[0]);
                hits.iter().map(|hit| if *hit { 10.0 } else { 0.0 } + random.normal()).collect()
            }
            Process::Queue => {
                let mut wait = if random.uniform() < 0.1 { 0.0 } else { 10.0 * random.exponential() };
                let mut sojourn = || {
                    let sojourn = wait + random.exponential();
                    wait = (sojourn - random.exponential() / 0.9).max(0.0);
                    sojourn
                };
                (0..n).map(|_| sojourn()).collect()
            }
            Process::LongMemory(order) => random.long_memory(n, order),
            Process::Step | Process::StepSomewhere => {
                let before = if matches!(self, Process::Step) { 0.5 } else { random.uniform() };
                let height = |place: usize| f64::from(u8::from(place as f64 >= before * n as f64));
                (0..n).map(|place| height(place) + random.normal()).collect()
            }
        };
        Run { values, events }
    }
}

pub(crate) struct Run {
    pub(crate) values: Vec<f64>,
    events: usize,
}

impl Run {
    fn described(&self) -> Description {
        let singletons = self.values.iter().map(|value| (value * SCALE).round() as i64).collect();
        let options = DescribeOptions { quantiles: QUANTILES.to_vec(), confidence: 0.95, intervals: true };
        describe(&Sample::new(Metric::RoundTripDelay, singletons), &options)
    }
}

/// The probability below `x` by the standard normal distribution, to 1e-7 (Abramowitz and Stegun, 26.2.17).
fn normal_below(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.2316419 * x.abs());
    let series = [0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
    let sum = series.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let above = (-x * x / 2.0).exp() / TAU.sqrt() * sum;
    if x >= 0.0 { 1.0 - above } else { above }
}

/// Where the rising `function` takes the value `level`, by bisection.
fn inverse(function: impl Fn(f64) -> f64, level: f64) -> f64 {
    let (mut low, mut high) = (-20.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if function(middle) < level { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

pub(crate) struct Random(Pcg64Mcg);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Stationary, Gaussian, of unit variance.
    pub(crate) fn autoregressive(&mut self, n: usize, coefficient: f64) -> Vec<f64> {
        let (mut value, innovation) = (self.normal(), (1.0 - coefficient * coefficient).sqrt());
        let mut next = || {
            value = coefficient * value + innovation * self.normal();
            value
        };
        (0..n).map(|_| next()).collect()
    }

    /// Which of `n` values lie in bursts of `length`; between bursts one of `every` values begins one.
    fn bursts(&mut self, n: usize, length: usize, every: usize) -> Vec<bool> {
        let in_burst = self.uniform() < length as f64 / (length + every) as f64;
        let mut left = if in_burst { (self.uniform() * length as f64) as usize + 1 } else { 0 };
        let mut next = || {
            if left == 0 && self.uniform() < 1.0 / every as f64 {
                left = length + 1;
            }
            left = left.saturating_sub(1);
            left > 0
        };
        (0..n).map(|_| next()).collect()
    }

    /// Fractionally integrated noise of unit variance, by circulant embedding (Davies and Harte 1987).
    fn long_memory(&mut self, n: usize, order: f64) -> Vec<f64> {
        let half = n.next_power_of_two();
        let mut correlations = vec![1.0];
        for lag in 1..=half {
            correlations.push(correlations[lag - 1] * (lag as f64 - 1.0 + order) / (lag as f64 - order));
        }
        let circle = correlations.iter().chain(correlations[1..half].iter().rev());
        let spectrum = transform(circle.map(|it| Complex { real: *it, imaginary: 0.0 }).collect());
        let noise = spectrum.iter().map(|power| {
            let scale = (power.real.max(0.0) / (2 * half) as f64).sqrt();
            Complex { real: scale * self.normal(), imaginary: scale * self.normal() }
        });
        transform(noise.collect()).iter().take(n).map(|value| value.real).collect()
    }
}

#[derive(Clone, Copy)]
struct Complex {
    real: f64,
    imaginary: f64,
}

/// The discrete Fourier transform of as many values as a power of two.
fn transform(values: Vec<Complex>) -> Vec<Complex> {
    let n = values.len();
    if n == 1 {
        return values;
    }
    let part = |first: usize| transform(values.iter().skip(first).step_by(2).copied().collect());
    let (even, odd) = (part(0), part(1));
    let mut whole = values;
    for place in 0..n / 2 {
        let (sine, cosine) = (-TAU * place as f64 / n as f64).sin_cos();
        let (a, b) = (even[place], odd[place]);
        let turned =
            Complex { real: b.real * cosine - b.imaginary * sine, imaginary: b.real * sine + b.imaginary * cosine };
        whole[place] = Complex { real: a.real + turned.real, imaginary: a.imaginary + turned.imaginary };
        whole[place + n / 2] = Complex { real: a.real - turned.real, imaginary: a.imaginary - turned.imaginary };
    }
    whole
}

/// What the runs of a process had in common, in % of them.
#[derive(Default)]
struct Tally {
    runs: f64,
    covered: [f64; 4],
    slow: f64,
    rare: f64,
    any: f64,
    supported: [f64; 3],
    /// Unsupported quantiles with a lower bound, and those of them whose bound holds: counts.
    bounds: [f64; 2],
}

impl Tally {
    fn of(process: Process, n: usize, seed: u64) -> Tally {
        let (truth, mut random, mut tally) = (process.truth(), Random::new(seed), Tally::default());
        let unit = 100.0 / replicates() as f64;
        while tally.runs < 99.999 {
            let run = process.run(n, &mut random);
            if run.events < EVENTS_MIN {
                continue;
            }
            let described = run.described();
            let intervals = described.quantiles.iter().map(|estimate| estimate.interval);
            let intervals = [described.mean_interval].into_iter().chain(intervals);
            for ((covered, interval), truth) in tally.covered.iter_mut().zip(intervals).zip(truth) {
                *covered += if covers(interval, truth * SCALE) { unit } else { 0.0 };
            }
            for (supported, estimate) in tally.supported.iter_mut().zip(&described.quantiles) {
                assert!(estimate.interval.is_some() || !estimate.supported, "{process:?}: {estimate:?}");
                *supported += if estimate.supported { unit } else { 0.0 };
            }
            assert!(described.mean_interval.is_some(), "{process:?}");
            for (estimate, truth) in described.quantiles.iter().zip(&truth[1..]) {
                let Some(bound) = estimate.lower_bound.filter(|_| !estimate.supported) else { continue };
                tally.bounds[0] += 1.0;
                tally.bounds[1] += f64::from(u8::from(bound <= truth * SCALE));
            }
            let (is_slow, is_rare) = (described.slow_changes.is_some(), described.rare_bursts.is_some());
            tally.slow += if is_slow { unit } else { 0.0 };
            tally.rare += if is_rare { unit } else { 0.0 };
            tally.any += if is_slow || is_rare { unit } else { 0.0 };
            tally.runs += unit;
        }
        tally
    }

    /// Cells of the tables: coverage of mean, p50, p90 and p99, runs with each caveat and with any, supported quantiles,
    /// and the share of lower bounds that hold.
    fn cells(&self) -> String {
        let whole = |shares: &[f64]| shares.iter().map(|share| format!("{share:.0}")).collect::<Vec<_>>().join(" | ");
        let supported = whole(&self.supported).replace(" | ", " / ");
        let [bounds, held] = self.bounds;
        let held =
            if bounds < replicates() as f64 / 10.0 { "–".into() } else { format!("{:.0}", 100.0 * held / bounds) };
        let covered = whole(&self.covered);
        format!("{covered} | {:.1} | {:.1} | {:.1} | {supported} | {held}", self.slow, self.rare, self.any)
    }
}

/// An end that is missing bounds nothing, and so do both.
fn covers(interval: Option<Interval>, truth: f64) -> bool {
    let [low, high] = interval.map_or([None; 2], |interval| [interval.low, interval.high]);
    low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
}

pub(crate) fn replicates() -> usize {
    std::env::var("LATLAB_REPLICATES").ok().and_then(|text| text.parse().ok()).unwrap_or(REPLICATES)
}

/// The processes by their names in docs/statistics.md. The seed of each is its place here.
const ROWS: [(&str, Process); 12] = [
    ("white noise", Process::Autoregressive(0.0)),
    ("autoregressive, 0.5", Process::Autoregressive(0.5)),
    ("autoregressive, 0.7", Process::Autoregressive(0.7)),
    ("autoregressive, 0.95", Process::Autoregressive(0.95)),
    ("two levels for 200 each", Process::TwoLevels),
    ("bursts of 100, one in 2,000", Process::Bursts { length: 100, every: 1_900 }),
    ("bursts of 300, one in 20,000", Process::Bursts { length: 300, every: 19_700 }),
    ("queue, utilisation 0.9", Process::Queue),
    ("long memory, 0.3", Process::LongMemory(0.3)),
    ("long memory, 0.45", Process::LongMemory(0.45)),
    ("step in the middle", Process::Step),
    ("step somewhere", Process::StepSomewhere),
];

const STATISTICS: &str = include_str!("../../../../docs/statistics.md");

/// The first `count` figures of the row that docs/statistics.md has for `n` values of `name`, in % of 2,000 runs.
fn documented(name: &str, n: usize, count: usize) -> Vec<f64> {
    let is_row = |line: &&str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        cells.next() == Some(name) && cells.next().is_some_and(|cell| cell.replace(',', "") == n.to_string())
    };
    let row = STATISTICS.lines().find(is_row).unwrap_or_else(|| panic!("no row of {name} with {n}"));
    row.split('|').map(str::trim).skip(3).take(count).map(|cell| cell.parse().expect(cell)).collect()
}

/// The most runs that may raise a caveat if nothing changes slowly or comes in bursts, in %.
const FALSE_ALARMS_MAX: f64 = 6.0;

/// The least share of lower bounds of unsupported quantiles that hold in such runs.
const BOUNDS_MIN: f64 = 0.9;

/// By how much a share of the simulated runs may differ from `expected`, both in %: 3.5 standard errors of a share that is
/// not nearer to 0 or 1 than three runs in a hundred, and half of the last digit of the tables.
fn tolerance(expected: f64) -> f64 {
    let share = (expected / 100.0).clamp(0.03, 0.97);
    0.5 + 350.0 * (share * (1.0 - share) / replicates() as f64).sqrt()
}

#[test]
fn intervals_cover_under_dependence() {
    let mut failures = String::new();
    println!(
        "| process | n | mean | p50 | p90 | p99 | `slow-changes` | few bursts | either | supported p50 / p90 / p99 | L |"
    );
    for (seed, (name, process)) in ROWS.into_iter().enumerate() {
        for n in LENGTHS.into_iter().filter(|n| *n != 5_000 || replicates() > REPLICATES) {
            // Few runs hold enough of bursts that are longer apart than they last.
            if matches!(process, Process::Bursts { every, .. } if every > n) {
                continue;
            }
            let tally = Tally::of(process, n, seed as u64);
            println!("| {name} | {n} | {} |", tally.cells());
            let found = tally.covered.into_iter().chain([tally.slow, tally.rare, tally.any]);
            let expected = documented(name, n, 7);
            let is_as_documented =
                found.zip(&expected).all(|(found, expected)| (found - expected).abs() <= tolerance(*expected));
            let is_dull = matches!(process, Process::Autoregressive(coefficient) if coefficient <= 0.7);
            let [bounds, held] = tally.bounds;
            let has_false_bounds = is_dull && bounds >= 10.0 && held < BOUNDS_MIN * bounds;
            if !is_as_documented || has_false_bounds || (is_dull && expected[6] > FALSE_ALARMS_MAX) {
                let _ = writeln!(failures, "{name} of {n}: {}, documented {expected:?}", tally.cells());
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Losses of 1 % of the probes: single ones, and in bursts of 20, of which 2,000 probes hold one and 20,000 hold ten.
#[test]
fn intervals_of_the_loss_ratio_cover_under_dependence() {
    for (name, length, n) in [
        ("single", 1, 2_000),
        ("single", 1, 20_000),
        ("in bursts of 20", 20, 2_000),
        ("in bursts of 20", 20, 5_000),
        ("in bursts of 20", 20, 20_000),
    ] {
        let expected = documented(name, n, 2);
        let (mut random, mut covered, mut few) = (Random::new(9), 0.0, 0.0);
        let unit = 100.0 / replicates() as f64;
        for _ in 0..replicates() {
            let hits = random.bursts(n, length, length * 99);
            let singletons: Vec<i64> = hits.iter().map(|hit| if *hit { INFINITE } else { 7 }).collect();
            let lost = share(&Sample::new(Metric::RoundTripDelay, singletons), 0.95, |value| value == INFINITE);
            covered += if covers(lost.interval, 0.01) { unit } else { 0.0 };
            let bursts = lost.effective_n.zip(lost.value).map_or(0.0, |(n, share)| n * share);
            few += if lost.hits >= 10 && bursts < 3.5 { unit } else { 0.0 };
        }
        println!("| losses of {length} | {n} | {covered:.1} | caveat {few:.1} |");
        for (found, expected) in [covered, few].iter().zip(&expected) {
            assert!((found - expected).abs() <= tolerance(*expected), "losses of {length}, n {n}: {found:.1}");
        }
        assert!(length > 1 || few == 0.0, "single losses are no bursts: {few:.1}");
    }
}

/// The widths of the same 200 series of 5,000 values and of 5,001.
#[test]
fn the_width_does_not_depend_on_a_single_value() {
    let mut random = Random::new(10);
    let mut widths: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..200 {
        let run = random.autoregressive(5_001, 0.8);
        for (n, widths) in [5_000, 5_001].into_iter().zip(&mut widths) {
            let interval = Run { values: run[..n].to_vec(), events: 0 }.described().mean_interval.expect("asked for");
            widths.push(interval.high.expect("bounded") - interval.low.expect("bounded"));
        }
    }
    let [at_5_000, at_5_001] = widths.map(|mut widths| {
        widths.sort_by(f64::total_cmp);
        widths[100]
    });
    assert!((at_5_001 / at_5_000 - 1.0).abs() < 0.15, "{at_5_000} and {at_5_001}");
}

/// 300 of 20,000 probes are lost, at a stretch or each on its own: p99 is lost in both runs, and the outage has a caveat.
#[test]
fn an_outage_loses_the_same_quantiles_as_scattered_losses() {
    let of = |is_lost: fn(usize) -> bool| {
        let mut random = Random::new(11);
        let mut delay = |place| if is_lost(place) { INFINITE } else { 12_000 + (random.exponential() * 500.0) as i64 };
        let options = DescribeOptions { quantiles: QUANTILES.to_vec(), confidence: 0.95, intervals: true };
        describe(&Sample::new(Metric::RoundTripDelay, (0..20_000).map(&mut delay).collect()), &options)
    };
    let outage = of(|place| (7_000..7_300).contains(&place));
    let scattered = of(|place| place % 67 == 5 || place == 9);
    for described in [&outage, &scattered] {
        let p99 = &described.quantiles[2];
        assert_eq!((p99.value, p99.lost, p99.supported, p99.lower_bound), (None, true, true, None), "{described:?}");
    }
    assert!(outage.rare_bursts.is_some_and(|(_, bursts)| bursts < 2.0) && scattered.rare_bursts.is_none());
    // Another run may lose none: the outage leaves a finite lower end, which scattered losses do not.
    assert!(outage.quantiles[2].interval.is_some_and(|interval| interval.low.is_some() && interval.high.is_none()));
    assert_eq!(scattered.quantiles[2].interval, None);
}

/// As what is known of a quantile breaks an upper limit: 2 if it is infinite, 0 if it is finite, else 1.
fn severity(estimate: &QuantileEstimate) -> u8 {
    match (estimate.supported || estimate.bound_is_lost, estimate.lost) {
        (true, true) => 2,
        (true, false) => 0,
        (false, _) => 1,
    }
}

/// Also where fewer than ten probes lie beyond the quantile.
#[test]
fn an_outage_is_never_milder_than_as_many_scattered_losses() {
    const ALL: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
    let of = |n: usize, is_lost: &dyn Fn(usize) -> bool| {
        let mut random = Random::new(12);
        let mut delay = |place| if is_lost(place) { INFINITE } else { 12_000 + (random.exponential() * 500.0) as i64 };
        let options = DescribeOptions { quantiles: ALL.to_vec(), confidence: 0.95, intervals: true };
        describe(&Sample::new(Metric::RoundTripDelay, (0..n).map(&mut delay).collect()), &options).quantiles
    };
    for n in [30, 200, 2_000, 9_000, 20_000] {
        for losses in [1, 2, 5, 15, 80, 300].into_iter().filter(|losses| 2 * losses < n) {
            let outage = of(n, &|place| (n / 3..n / 3 + losses).contains(&place));
            let spacing = n / losses;
            let scattered = of(n, &|place| place % spacing == spacing / 2 && place / spacing < losses);
            for (outage, scattered) in outage.iter().zip(&scattered) {
                assert!(
                    severity(outage) >= severity(scattered),
                    "{losses} of {n}: {outage:?} milder than {scattered:?}"
                );
            }
        }
    }
}
