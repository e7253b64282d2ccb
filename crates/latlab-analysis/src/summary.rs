//! The summary of one run and the options of computing it.

use std::collections::BTreeMap;

use thiserror::Error;

use super::counts::{Counts, Deadline, Ratios};
use super::estimand::Estimand;
use super::executions::ExecutionFigures;
use super::gate::ValueGateResult;
use super::one_way::OneWay;
use super::ping::{MAX_WINDOWS, Window};
use super::stream::StreamFigures;
use super::wakeup::Wakeups;
use crate::diagnostics::{Caveat, Explain, Failure, Severity};
use crate::facts::{ExperimentFacts, Instrument, LoadReport, XdpEnds};
use crate::metric::Metric;
use crate::plan::{Kind, RunSpec, SummaryDefaults, defaults};
use crate::recording::manifest::RunEnding;
use crate::stats::{Bucket, Description, Extremes, NoExtremes};
use crate::units::{Nanos, human};

#[derive(Clone, Debug, PartialEq)]
pub struct SummaryOptions {
    pub judging: SummaryDefaults,
    /// Whether to compute intervals, which take longer than everything else.
    pub intervals: bool,
    /// The metrics to describe if they have data; the main metric is always described.
    pub metrics: Vec<Metric>,
    /// Whether to describe one-way delays.
    pub one_way: bool,
}

impl SummaryOptions {
    /// Those of the run itself: every metric, with intervals.
    pub fn of(spec: &RunSpec) -> SummaryOptions {
        let metrics = spec.kind().metrics().to_vec();
        SummaryOptions { judging: spec.judging.clone(), intervals: true, metrics, one_way: false }
    }

    /// Adds the metric and the quantile of `estimand`.
    pub fn include(&mut self, estimand: Estimand) {
        let Estimand::Statistic(metric, statistic) = estimand else { return };
        self.one_way |= Metric::ONE_WAY.contains(&metric);
        if !self.metrics.contains(&metric) {
            self.metrics.push(metric);
        }
        if let Some(q) = statistic.quantile().filter(|q| !self.judging.quantiles.contains(q)) {
            self.judging.quantiles.push(q);
            self.judging.quantiles.sort_by(f64::total_cmp);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub run: String,
    pub recording: String,
    pub kind: Kind,
    pub metric: Metric,
    /// Whether another tool measured it: answers that were late, reordered or duplicate are unknown.
    pub is_imported: bool,
    /// Whether it is known what was lost: of some logs nothing is.
    pub knows_losses: bool,
    /// UTC start, RFC 3339.
    pub started_at: String,
    pub spec: RunSpec,
    /// Its place in the experiment that it belongs to.
    pub experiment: Option<ExperimentFacts>,
    /// The address measured to, if one was reached.
    pub peer_address: Option<String>,
    pub ending: RunEnding,
    pub counts: Counts,
    /// From the first measured probe to the last answer or send.
    pub duration_ns: Nanos,
    /// Time that a closed loop waited for answers that did not come in time, after the warm-up.
    pub timed_out_ns: Nanos,
    /// Time that a closed loop paused after refused sends, after the warm-up.
    pub refused_pause_ns: Nanos,
    /// From joining the DDS domain until both ends had discovered each other, before the warm-up; `None` over other transports.
    pub discovery_ns: Option<Nanos>,
    /// How packets passed the network stack by.
    pub xdp: XdpEnds,
    /// Datagrams that were not valid answers: reason → count.
    pub strays: BTreeMap<String, u64>,
    /// ICMP errors about measured probes: name of the errno → count.
    pub socket_errors: BTreeMap<String, u64>,
    pub ratios: Ratios,
    /// Statistics of each metric that has data.
    pub metrics: BTreeMap<Metric, Description>,
    /// The main metric as a histogram.
    pub histogram: Vec<Bucket>,
    /// Figures of wake-ups beyond their latency; `None` for other kinds.
    pub wakeups: Option<Wakeups>,
    /// What executions used and how they ended; `None` for other kinds.
    pub executions: Option<ExecutionFigures>,
    /// Figures of a stream; `None` for other kinds.
    pub stream: Option<StreamFigures>,
    /// How bad it can get, or why the run does not say; `None` if it was not asked.
    pub extremes: Option<Result<Extremes, NoExtremes>>,
    /// Delays of each way, if they were requested and the probes have stamps of both ends.
    pub one_way: Option<OneWay>,
    /// Misses of the deadline, if one was given.
    pub deadline: Option<Deadline>,
    /// The length of a window, if windows were requested.
    pub window_ns: Option<Nanos>,
    pub windows: Vec<Window>,
    pub loads: Vec<LoadReport>,
    pub instrument: Instrument,
    /// Caveats of the run, in descending order of severity.
    pub caveats: Vec<Caveat>,
    /// Results of the gates of the command, in their order.
    pub gates: Vec<ValueGateResult>,
}

impl Summary {
    /// Statistics of `metric`, if it has data; of one way the estimate.
    pub(super) fn described(&self, metric: Metric) -> Option<&Description> {
        let of_one_way = || Some(&self.one_way.as_ref()?.of(metric)?.estimate);
        self.metrics.get(&metric).or_else(of_one_way)
    }

    /// Whether no fatal caveat says that the figures must not be trusted (exit code 4).
    pub fn is_trustworthy(&self) -> bool {
        self.caveats.iter().all(|caveat| caveat.severity != Severity::Fatal)
    }

    /// Whether it was measured for a shorter time than planned: interrupted, failed, killed, or ended by what it measured.
    pub fn ended_early(&self) -> bool {
        const EARLY: [&str; 2] = ["ended-early", "broke"];
        self.ending != RunEnding::Completed || self.caveats.iter().any(|caveat| EARLY.contains(&caveat.code.as_str()))
    }
}

/// Why a summary cannot be computed.
#[derive(Debug, Error)]
pub enum AnalysisError<E: std::error::Error + 'static> {
    /// The rows cannot be read.
    #[error(transparent)]
    Source(#[from] E),
    /// The windows are too short for this run.
    #[error("cannot divide {} into windows of `{}`", human::span(*.duration), human::span(*.window))]
    TooManyWindows { duration: Nanos, window: Nanos },
    /// The recording or the command asks for too many quantiles, or for one that does not exist.
    #[error("cannot compute the quantiles of the run")]
    Quantiles {
        /// The first quantile that is not between 0 and 1; `None` if there are too many.
        outside: Option<f64>,
        count: usize,
    },
}

impl<E: Explain + 'static> Explain for AnalysisError<E> {
    fn explain(&self) -> Failure {
        match self {
            AnalysisError::Source(error) => error.explain(),
            AnalysisError::TooManyWindows { duration, .. } => {
                let enough = Nanos((duration.0 / 100_000 + 1) * 1_000);
                Failure::request(self)
                    .because(format!("more than {} windows", human::grouped(MAX_WINDOWS as u64)))
                    .hint(format!("`--window {}` gives a hundred", human::typed_span(enough)))
            }
            AnalysisError::Quantiles { outside, count } => Failure::request(self)
                .because(match outside {
                    Some(quantile) => format!("`{quantile}` is not between 0 and 1"),
                    None => {
                        let (count, limit) = (*count as u64, defaults::SUMMARY_QUANTILES_MAX as u64);
                        format!("{} are more than {}", human::grouped(count), human::grouped(limit))
                    }
                })
                .hint("`--quantiles` overrides those of the manifest"),
        }
    }
}
