//! Designs that are advised from the spread of runs: how often they find the change, and how far off a small pilot is.

use std::collections::BTreeMap;

use latlab_analysis::StopWhen;
use latlab_analysis::experiment::{AdvisedDesign, PilotSpread, advise};
use latlab_plan::plan::{
    BetweenBlocks, Contrast, Design, Experiment, ExperimentCondition, Factors, Hooks, Kind, PingSpec, Plan, RunOrder,
    RunSpec, RunsRule, Schedule,
};
use latlab_stats::{
    BlockRuns, DescribeOptions, PilotBlock, ShiftTest, SpreadComponents, describe, is_significant, log_error,
};
use latlab_terms::metric::Metric;
use latlab_terms::sample::Sample;
use latlab_terms::units::Nanos;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [2_000, 500];
const ALPHA: f64 = 0.05;
const DRAWS: u32 = 1_999;
const CHANGE: f64 = 0.03;
/// Runs of a pilot, of one condition in one block.
const PILOT: usize = 8;

/// How runs spread: standard deviations of the logarithm.
#[derive(Clone, Copy, Debug)]
struct Truth {
    name: &'static str,
    /// Within a run of the pilot's length.
    probe: f64,
    run: f64,
    /// The rise from the first to the last run of a block.
    drift: f64,
    block: f64,
    boot: f64,
    blocks: u32,
    /// Whether each block is a boot.
    are_boots: bool,
}

const TRUTHS: [Truth; 4] = [
    Truth {
        name: "probes",
        probe: PROBE_ERROR,
        run: 0.005,
        drift: 0.0,
        block: 0.0,
        boot: 0.0,
        blocks: 1,
        are_boots: false,
    },
    Truth { name: "runs", probe: 0.01, run: 0.03, drift: 0.0, block: 0.0, boot: 0.0, blocks: 1, are_boots: false },
    Truth { name: "blocks", probe: 0.01, run: 0.025, drift: 0.0, block: 0.1, boot: 0.0, blocks: 3, are_boots: false },
    Truth {
        name: "drift and boots",
        probe: 0.01,
        run: 0.02,
        drift: 0.15,
        block: 0.0,
        boot: 0.15,
        blocks: 2,
        are_boots: true,
    },
];

/// Probes of a run, lognormal and independent, where probes are simulated: p99 then has the error [`PROBE_ERROR`], which is
/// √(0.99·0.01/n)·0.3/φ(2.326).
const PROBES: usize = 2_000;
const PROBE_SPREAD: f64 = 0.3;
const PROBE_ERROR: f64 = 0.025_046;

impl Truth {
    /// Whether each probe is simulated.
    fn has_probes(&self) -> bool {
        self.probe == PROBE_ERROR
    }

    fn spread(&self) -> PilotSpread {
        let run = self.run.powi(2) + self.probe.powi(2);
        let (block, boot) = (Some(self.block.powi(2)), Some(self.boot.powi(2)));
        PilotSpread {
            runs: PILOT,
            blocks: self.blocks as usize,
            boots: 1,
            probe: Some(self.probe.powi(2)),
            components: SpreadComponents { run, freedom: 5.0, drift: self.drift.powi(2) / 12.0, block, boot },
            observations: 20.0,
            stop: StopWhen { count: None, duration_ns: Some(Nanos::from_secs(10)) },
            duration: Nanos::from_secs(10),
        }
    }

    /// The logarithm of the figure of a run at this place in its block, from 0 to 1.
    fn figure(&self, level: f64, place: f64, scale: f64, random: &mut Random) -> f64 {
        let level = level + self.drift * place + self.run * random.normal();
        if !self.has_probes() {
            return level + self.probe / scale.sqrt() * random.normal();
        }
        let mut probes = self.probes((PROBES as f64 * scale) as usize, random);
        let rank = (probes.len() - 1) as f64 * 0.99;
        let (_, low, above) = probes.select_nth_unstable_by(rank as usize, f64::total_cmp);
        let high = above.iter().copied().fold(f64::INFINITY, f64::min);
        level + *low + rank.fract() * (high - *low)
    }

    fn probes(&self, count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| PROBE_SPREAD * random.normal()).collect()
    }

    /// Whether an experiment of this design finds the change, as its report would.
    fn finds(&self, runs: u32, scale: f64, seed: u64) -> bool {
        let mut random = Random::new(seed);
        let (mut boot, mut strata) = (0.0, Vec::new());
        for block in 0..self.blocks {
            if block == 0 || self.are_boots {
                boot = self.boot * random.normal();
            }
            let level = boot + self.block * random.normal();
            let each = runs / self.blocks;
            let mut order: Vec<bool> = (0..2 * each).map(|run| run % 2 == 1).collect();
            let has_rounds = runs >= 8;
            let shuffled = if has_rounds { 2 } else { order.len() };
            order.chunks_mut(shuffled).for_each(|runs| random.shuffle(runs));
            for (at, candidate) in order.iter().enumerate() {
                if at == 0 || (has_rounds && at % 2 == 0) {
                    strata.push(BlockRuns::default());
                }
                let place = at as f64 / f64::from(2 * each - 1);
                let value = self.figure(level, place, scale, &mut random);
                let stratum = strata.last_mut().expect("a stratum");
                if *candidate { stratum.candidate.push(value + CHANGE.ln_1p()) } else { stratum.baseline.push(value) }
            }
        }
        let test = ShiftTest::of(&strata, DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
        test.difference() > 0.0 && is_significant(test.p_value(0.0), ALPHA)
    }

    fn found(&self, runs: u32, scale: f64) -> f64 {
        let experiments = EXPERIMENTS[usize::from(!is_long())];
        let found = in_parallel(experiments, |seed| self.finds(runs, scale, seed));
        100.0 * found.iter().filter(|found| **found).count() as f64 / experiments as f64
    }

    /// The variance between neighbouring runs as a pilot estimates it.
    fn pilot(&self, seed: u64) -> SpreadComponents {
        let mut random = Random::new(seed);
        let place = |run: usize| run as f64 / (PILOT - 1) as f64;
        let block: PilotBlock = (0..PILOT).map(|run| (0, self.figure(0.0, place(run), 1.0, &mut random))).collect();
        SpreadComponents::of(&[vec![block]]).expect("eight runs")
    }

    fn experiment(&self) -> Experiment {
        let plan = Plan { runs: vec![RunSpec::local(PingSpec::on(Schedule::Closed))], rounds: 1 };
        let condition = |level: &str| ExperimentCondition {
            factors: Factors::from([("load".to_owned(), level.to_owned())]),
            plan: plan.clone(),
            hooks: Hooks::default(),
        };
        let design = Design {
            runs: RunsRule::PerBlock(10),
            warmup_runs: 0,
            looks: None,
            blocks: self.blocks,
            between: BetweenBlocks::Nothing,
            order: RunOrder::Randomized,
            seed: None,
            settle: Nanos::from_secs(1),
        };
        let p99 = Contrast {
            metric: Metric::RoundTripDelay,
            statistic: "p99".into(),
            baseline: Factors::new(),
            equivalence: None,
        };
        let conditions = vec![condition("none"), condition("cpu=80%")];
        Experiment { name: "x".into(), kind: Kind::Ping, conditions, design, contrasts: vec![p99] }
    }
}

/// The number of runs of the pilot's length, and the ends of its range, for a variance between runs.
type Advised = [u32; 3];

/// The advice for variances in steps of 5 %, which thousands of pilots share.
struct AdviceTable<'a> {
    truth: &'a Truth,
    known: BTreeMap<i32, Advised>,
}

impl AdviceTable<'_> {
    fn of(&mut self, pilot: SpreadComponents) -> Advised {
        let step = (pilot.run.ln() / 1.05_f64.ln()).round() as i32;
        let truth = self.truth;
        *self.known.entry(step).or_insert_with(|| {
            let run = 1.05_f64.powi(step);
            let components = SpreadComponents { run, drift: 0.0, ..pilot };
            let spread = PilotSpread { probe: None, components, ..truth.spread() };
            let advice = advise(&truth.experiment(), &spread, CHANGE.ln_1p());
            advice.designs.first().map_or([u32::MAX; 3], |design| [design.runs, design.range.0, design.range.1])
        })
    }
}

/// The value below which this share of `sorted` lies.
fn at<T: Copy>(sorted: &[T], share: f64) -> T {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

#[test]
fn advised_designs_find_the_change_in_four_of_five_experiments() {
    println!("| spread | runs × length: found |");
    for truth in rows(TRUTHS, &[1, 3]) {
        let advice = advise(&truth.experiment(), &truth.spread(), CHANGE.ln_1p());
        let mut cells = Vec::new();
        for AdvisedDesign { scale, runs, .. } in &advice.designs {
            let found = truth.found(*runs, *scale);
            cells.push((*runs, *scale, found));
            // Where six runs find nearly everything, every design does.
            assert!((75.0..=90.0).contains(&found), "{truth:?}: {cells:?}");
        }
        let words: Vec<String> =
            cells.iter().map(|(runs, scale, found)| format!("{runs} × {scale}: {found:.0}")).collect();
        println!("| {} | {} |", truth.name, words.join(", "));
    }
}

#[test]
#[ignore = "a table of the documentation: `just simulate`"]
fn a_range_of_a_pilot_holds_the_number_of_runs() {
    println!("| spread | true runs | runs of a pilot of 8, 10–90 % | range holds | found with its runs, 10–90 % |");
    for truth in TRUTHS {
        let mut table = AdviceTable { truth: &truth, known: BTreeMap::new() };
        let right = table.of(truth.spread().components)[0];
        let pilots = in_parallel(EXPERIMENTS[0], |seed| truth.pilot(seed));
        let advised: Vec<Advised> = pilots.into_iter().map(|pilot| table.of(pilot)).collect();
        let holds = |[_, low, high]: &&Advised| (*low..=*high).contains(&right);
        let holding = 100.0 * advised.iter().filter(holds).count() as f64 / advised.len() as f64;
        let mut runs: Vec<u32> = advised.iter().map(|advised| advised[0]).collect();
        runs.sort_unstable();
        let [low, high] = [0.1, 0.9].map(|share| at(&runs, share));
        let found = |runs: u32| if runs == u32::MAX { 100.0 } else { truth.found(runs, 1.0) };
        let [least, most] = [low, high].map(found);
        println!("| {} | {right} | {low}–{high} | {holding:.0} | {least:.0}–{most:.0} |", truth.name);
        assert!(holding >= 78.0, "{truth:?}: {holding}");
    }
}

/// The error that a run states of its own p99 is that of p99 from run to run.
#[test]
fn a_run_states_how_its_probes_scatter() {
    let truth = TRUTHS[0];
    let options = DescribeOptions { quantiles: vec![0.99], confidence: 0.95, intervals: true };
    let mut errors = in_parallel(200, |seed| {
        let probes = truth.probes(PROBES, &mut Random::new(seed));
        let delays = probes.iter().map(|log| (1e6 * log.exp()) as i64).collect();
        let described = describe(&Sample::new(Metric::RoundTripDelay, delays), &options);
        log_error(described.quantiles[0].interval.expect("20 probes beyond it")).expect("both ends")
    });
    errors.sort_unstable_by(f64::total_cmp);
    let variance = at(&errors, 0.5).powi(2);
    println!("the variance that runs state of their p99 is {:.2} times the true one", variance / truth.probe.powi(2));
    assert!((0.8..1.4).contains(&(variance / truth.probe.powi(2))), "{variance}");
}
