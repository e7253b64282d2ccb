//! Analysis of recordings: summaries, caveats, gates and comparisons. Pure: every figure can be computed again
//! from the recording. Definitions: docs/metrics.md.
#![forbid(unsafe_code)]

use latlab_plan::{facts, plan, recipe};
use latlab_recording as recording;
use latlab_stats as stats;
use latlab_terms::{diagnostics, metric, probe, sample, units, worded};

mod available;
mod caveats;
pub mod comparison;
mod counts;
pub mod distribution;
mod estimand;
mod executions;
pub mod experiment;
pub mod explain;
mod gate;
mod host_samples;
#[cfg(any(test, feature = "fixtures"))]
pub mod in_memory;
mod limits;
mod metric_sample;
mod one_way;
mod outcome;
mod ping;
pub mod published;
mod rare_delays;
mod singletons;
mod source;
mod stream;
mod summarise;
mod summary;
mod wakeup;

pub use available::AvailableFigures;
pub use caveats::{is_routine, of_import as import_caveats, real_time_warning, repeats_silence, unreached_loads};
pub use counts::Counts;
pub use estimand::{Estimand, Ratio, Statistic};
pub use executions::ExecutionFigures;
pub use gate::{
    ChangeGate, ChangeGateResult, ExperimentGateResult, ExperimentGates, GateError, GateReason, GateState, JudgedRuns,
    UndecidedGate, ValueGateResult, ValueGates, change_gates_outcome, expect_few_gates, undecided_gates,
};
pub use host_samples::ClockRates;
pub use metric_sample::{MetricHistogram, MetricSample};
pub use one_way::{OneWay, OneWayDelay};
pub use outcome::{comparison_outcome, ended_run_outcome, run_outcome, summary_outcome, with_gates};
pub use ping::Window;
pub use rare_delays::rare_delays;
pub use singletons::sample;
pub use stream::{
    CpuCost, GoalEnd, GoalFigures, LevelSpans, SearchFigures, StageFigures, StreamFigures, StreamRates, StreamTotals,
};
pub use summarise::summarise;
pub use summary::{AnalysisError, Summary, SummaryOptions};
pub use wakeup::{Lateness, UnexplainedDelay, Wakeups};

// The condition of a summary's run, for reports.
pub use crate::plan::{Family, Kind, NoBareLoop, StopWhen, Via};

/// The length of a stream's intervals.
pub const STREAM_INTERVAL: crate::units::Nanos = crate::plan::defaults::STREAM_WINDOW;
