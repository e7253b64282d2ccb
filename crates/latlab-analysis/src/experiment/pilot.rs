//! The runs of a pilot, and how much of their spread is probe, run, slow change, block and boot.

use std::collections::BTreeMap;

use crate::comparison::{RunFigure, levels_of_run, parse_estimand};
use crate::diagnostics::Failure;
use crate::metric::Metric;
use crate::plan::{Factors, StopWhen};
use crate::source::ProbeSource;
use crate::stats::{BoxPlot, PilotBlock, SpreadComponents, log_error};
use crate::units::Nanos;
use crate::units::human::{self, counted};
use crate::{AnalysisError, Estimand, Kind, Statistic, SummaryOptions, summarise};

/// `[METRIC] STATISTIC CHANGE`: the change that a design is to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WantedChange {
    pub metric: Metric,
    pub statistic: Statistic,
    /// As a share of the baseline, above 0.
    pub change: f64,
}

const FORM: &str = "`[METRIC] STATISTIC CHANGE`, such as `p99 3%`";

impl WantedChange {
    /// Parses `text`; without a metric it is about `main`.
    ///
    /// # Errors
    /// If it has another form, or is about a ratio of the run.
    pub fn parse(text: &str, main: Metric) -> Result<WantedChange, Failure> {
        let refuse = |cause: String| Failure::request(format!("cannot plan for `{text}`")).because(cause).hint(FORM);
        let parts = text.trim().rsplit_once(char::is_whitespace);
        let (estimand, size) = parts.ok_or_else(|| refuse("a statistic and a change are needed".into()))?;
        let change = human::parse_percent(size.trim_start_matches(['+', '-', '−', '±']));
        let change = change.map_err(|error| refuse(format!("{error}: {}", error.cause)))?;
        if !size.ends_with('%') || change <= 0.0 {
            return Err(refuse(format!("the change `{size}` is not in per cent above 0")));
        }
        let named = estimand.trim().contains(char::is_whitespace);
        match parse_estimand((!named).then(|| main.name()), estimand)? {
            Estimand::Statistic(metric, statistic) => Ok(WantedChange { metric, statistic, change }),
            Estimand::Ratio(_) => Err(refuse(format!("`{}` has no change in per cent of itself", estimand.trim()))),
        }
    }

    /// The change on the logarithmic scale, on which runs are compared.
    pub fn shift(&self) -> f64 {
        self.change.ln_1p()
    }
}

/// One run of a pilot.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotRun {
    boot: Option<String>,
    block: Option<(String, u32)>,
    condition: Factors,
    started_at: String,
    stop: StopWhen,
    duration: Nanos,
    figure: RunFigure,
    /// Standard error of the logarithm of the figure within the run.
    error: Option<f64>,
    /// Effective observations beyond the quantile, or in all.
    observations: f64,
}

impl PilotRun {
    /// The run of `source`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of<S: ProbeSource>(source: &S, wanted: &WantedChange) -> Result<PilotRun, AnalysisError<S::Error>> {
        let manifest = source.manifest();
        let mut options = SummaryOptions { metrics: vec![wanted.metric], ..SummaryOptions::of(&manifest.spec) };
        options.judging.quantiles = wanted.statistic.quantile().into_iter().collect();
        options.judging.window_ns = None;
        let summary = summarise(source, &options)?;
        let described = summary.metrics.get(&wanted.metric);
        let statistic = wanted.statistic;
        let figure = match summary.kind {
            Kind::Command => described.map(|described| statistic.figure_of_executions(described)),
            _ => described.map(|described| statistic.figure(described)),
        };
        let tail = statistic.quantile().map_or(1.0, |q| q.min(1.0 - q));
        let interval = described.and_then(|described| match statistic {
            Statistic::Mean => described.mean_interval,
            Statistic::Quantile(_) => described.quantiles.iter().find(|one| one.supported)?.interval,
            Statistic::Min | Statistic::Max | Statistic::Stddev => None,
        });
        let experiment = manifest.experiment.as_ref();
        let host = manifest.here.before.as_ref().and_then(|host| host.boot_id.clone());
        Ok(PilotRun {
            boot: experiment.and_then(|facts| facts.boot_id.clone()).or(host),
            block: experiment.map(|facts| (facts.experiment.clone(), facts.block)),
            condition: levels_of_run(&manifest.spec, experiment),
            started_at: summary.started_at.clone(),
            stop: manifest.spec.stop,
            duration: summary.duration_ns,
            figure: figure.unwrap_or(RunFigure::Nothing),
            error: interval.and_then(log_error),
            observations: tail * described.and_then(|described| described.effective_n).unwrap_or_default(),
        })
    }
}

/// How the runs of a pilot spread, on the logarithmic scale.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotSpread {
    pub runs: usize,
    pub blocks: usize,
    pub boots: usize,
    /// The variance of a figure that more probes would reduce; `None` if its runs do not show it.
    pub probe: Option<f64>,
    pub components: SpreadComponents,
    /// Effective observations in the tail of a run, on average.
    pub observations: f64,
    /// What ended its runs, and their mean duration.
    pub stop: StopWhen,
    pub duration: Nanos,
}

impl PilotSpread {
    /// That of `runs`.
    ///
    /// # Errors
    /// If they are too few, or their figures have no logarithms.
    pub fn of(mut runs: Vec<PilotRun>) -> Result<PilotSpread, Failure> {
        let refuse = |cause: String| Failure::request("the pilot is too small to plan with").because(cause);
        let needed = "measure a pilot first: at least four runs of a condition in one block, better eight";
        let Some(first) = runs.first() else { return Err(refuse("it has no run".into()).hint(needed)) };
        let stop = first.stop;
        if runs.iter().any(|run| run.stop != stop) {
            let failure = Failure::request("cannot plan with runs of several lengths");
            let hint = "a pilot whose runs all have the same `--count` and `--duration`";
            return Err(failure.because("their figures differ by the length too").hint(hint));
        }
        if runs.iter().any(|run| run.figure.value().is_none_or(|value| value <= 0.0)) {
            let failure = Failure::request("cannot plan with the runs of the pilot");
            let failure = failure.because("the figure of a run is missing, infinite by losses, or not above 0");
            return Err(failure.hint("another statistic, or another pilot"));
        }
        runs.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        let boots = by_boot(&runs);
        let few = || {
            let blocks = boots.iter().map(Vec::len).sum();
            let all = counted(runs.len(), "run");
            let cause = format!("{all} in {} have fewer than three degrees of freedom", counted(blocks, "block"));
            refuse(cause).hint(needed)
        };
        let components = SpreadComponents::of(&boots).ok_or_else(few)?;
        let count = runs.len() as f64;
        let mean = |of: &dyn Fn(&PilotRun) -> f64| runs.iter().map(of).sum::<f64>() / count;
        // Runs overstate it one by one, and the mean of squares more than the median.
        let errors: Option<Vec<f64>> = runs.iter().map(|run| run.error).collect();
        let median = errors.and_then(|errors| Some(BoxPlot::of(&mut { errors })?.median));
        Ok(PilotSpread {
            runs: runs.len(),
            blocks: boots.iter().map(Vec::len).sum(),
            boots: boots.len(),
            probe: median.map(|error| error * error),
            components,
            observations: mean(&|run| run.observations),
            stop,
            duration: Nanos(mean(&|run| run.duration.0 as f64) as i64),
        })
    }

    /// The variance of runs that are `scale` times as long, if those of the pilot have the variance `run`.
    pub fn variance(&self, run: f64, scale: f64) -> f64 {
        let probe = self.probe.unwrap_or_default().min(run);
        run - probe + probe / scale
    }
}

type BlocksOfBoot<'a> = BTreeMap<Option<&'a (String, u32)>, PilotBlock>;

/// The logarithms of the figures of `runs`, in their order, by boot and block.
fn by_boot(runs: &[PilotRun]) -> Vec<Vec<PilotBlock>> {
    let mut conditions: Vec<&Factors> = Vec::new();
    let mut boots = BTreeMap::<Option<&String>, BlocksOfBoot<'_>>::new();
    for run in runs {
        if !conditions.contains(&&run.condition) {
            conditions.push(&run.condition);
        }
        let condition = conditions.iter().position(|known| **known == run.condition).unwrap_or_default();
        let block = boots.entry(run.boot.as_ref()).or_default().entry(run.block.as_ref()).or_default();
        block.push((condition, run.figure.value().unwrap_or(1.0).ln()));
    }
    boots.into_values().map(|blocks| blocks.into_values().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(block: u32, place: u32, value: f64, error: Option<f64>) -> PilotRun {
        PilotRun {
            boot: None,
            block: Some(("e".into(), block)),
            condition: Factors::from([("load".to_owned(), (place % 2).to_string())]),
            started_at: format!("2026-11-22T00:0{block}:{place:02}Z"),
            stop: StopWhen { count: Some(1_000), duration_ns: None },
            duration: Nanos::from_secs(2),
            figure: RunFigure::Finite { value, supported: true },
            error,
            observations: 20.0,
        }
    }

    /// Two blocks of four runs of each of two conditions, of which the second is ten times as slow.
    fn runs() -> Vec<PilotRun> {
        let noise = [0.01, -0.02, 0.0, 0.03, -0.01, 0.02, -0.03, 0.0];
        let value =
            |block: u32, place: usize| 10_f64.powi(place as i32 % 2) * (0.1 * f64::from(block) + noise[place]).exp();
        (1..=2)
            .flat_map(|block| (0..8).map(move |place| run(block, place as u32, value(block, place), Some(0.01))))
            .collect()
    }

    #[test]
    fn a_change_is_a_statistic_and_a_share() {
        let parse = |text| WantedChange::parse(text, Metric::WakeupLatency);
        let wanted = parse("p99 3%").expect("a change");
        assert_eq!(
            (wanted.metric, wanted.statistic, wanted.change),
            (Metric::WakeupLatency, Statistic::Quantile(0.99), 0.03)
        );
        let named = parse(" response_time  mean +5% ").expect("a change");
        assert_eq!((named.metric, named.statistic), (Metric::ResponseTime, Statistic::Mean));
        for (text, cause) in [
            ("p99", "a statistic and a change are needed"),
            ("p99 0.03", "the change `0.03` is not in per cent above 0"),
            ("p99 0%", "the change `0%` is not in per cent above 0"),
            ("loss_ratio 3%", "`loss_ratio` has no change in per cent of itself"),
        ] {
            assert_eq!(parse(text).expect_err(text).cause.as_deref(), Some(cause));
        }
    }

    #[test]
    fn conditions_do_not_add_to_the_spread_and_the_order_is_that_of_time() {
        let spread = PilotSpread::of(runs()).expect("enough runs");
        assert_eq!((spread.runs, spread.blocks, spread.boots), (16, 2, 1));
        // The blocks differ by 0.1, which is more than the runs; the conditions by a factor.
        let block = spread.components.block.expect("two blocks");
        assert!((block - 0.005).abs() < 0.0003 && spread.components.run < 0.0015, "{spread:?}");
        assert!(spread.probe.is_some_and(|probe| (probe - 1e-4).abs() < 1e-12));
        let mut other = runs();
        other.reverse();
        assert_eq!(PilotSpread::of(other), Ok(spread));
        let unknown =
            runs().into_iter().enumerate().map(|(at, run)| if at == 3 { PilotRun { error: None, ..run } } else { run });
        assert_eq!(PilotSpread::of(unknown.collect()).map(|spread| spread.probe), Ok(None));
    }

    #[test]
    fn longer_runs_reduce_what_is_within_runs_only() {
        let spread = PilotSpread::of(runs()).expect("enough runs");
        assert!((spread.variance(4e-4, 4.0) - (3e-4 + 1e-4 / 4.0)).abs() < 1e-12);
        // More than all is not within runs.
        assert!((spread.variance(0.5e-4, 0.5) - 1e-4).abs() < 1e-12);
    }

    #[test]
    fn pilots_that_show_nothing_are_refused() {
        let refused = |runs| PilotSpread::of(runs).expect_err("refused").cause.expect("a cause");
        assert_eq!(refused(Vec::new()), "it has no run");
        assert_eq!(refused(runs()[..4].to_vec()), "4 runs in 1 block have fewer than three degrees of freedom");
        let with = |figure| vec![PilotRun { figure, ..runs()[0].clone() }];
        for figure in [RunFigure::Infinite, RunFigure::Nothing, RunFigure::Finite { value: 0.0, supported: true }] {
            assert!(refused(with(figure)).contains("missing, infinite by losses, or not above 0"));
        }
    }
}
