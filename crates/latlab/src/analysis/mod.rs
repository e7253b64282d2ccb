//! SummaryDefaults: from the rows of a recording to a summary, its caveats and its gates. Pure; every number here
//! can be computed again from the recording. Definitions: docs/metrics.md.

mod caveats;
mod coincidence;
mod column_figure;
pub mod comparison;
pub mod experiment;
mod fail_if;
mod host_course;
#[cfg(test)]
pub(crate) mod in_memory;
mod late_stretches;
mod meanwhile;
mod ministat;
mod operator;
mod outcome;
mod ratios;
mod shifts;
mod singletons;
mod source;
mod stages;
mod stream_summary;
mod streams;
mod subject;
mod summary;
mod tally;
mod wakeups;
mod window;

pub use caveats::{real_time_warning, unreached_loads};
pub use coincidence::{Coincidence, LateBeyond, Threshold};
pub use column_figure::ColumnFigure;
pub use fail_if::{ConditionResult, FailIf, FailIfError, Observed};
pub use meanwhile::{CpuMeanwhile, RatesSeen, StateShare};
pub use ministat::MinistatTest;
pub use outcome::{run_outcome, summary_outcome};
pub use ratios::Ratios;
pub use singletons::sample;
pub use source::ProbeSource;
pub use stages::{GoalEnd, GoalFigures, SearchFigures, StageFigures, StreamStages};
pub use streams::{CpuCost, StreamFigures, StreamRates, StreamTotals};
pub use subject::{Estimand, Ratio, Statistic};
pub use summary::{AnalysisError, Deadline, Summary, SummaryOptions, summarise};
pub use tally::Counts;
pub use wakeups::{Lateness, UnexplainedDelay, Wakeups};
pub use window::Window;

// a summary hands the condition of its run on to whoever shows it, and what it was to be
pub use crate::plan::{CompatOutput, Condition, Family, Kind, StopWhen, Via};

/// How long an interval of a stream is.
pub const STREAM_INTERVAL: crate::units::Nanos = crate::plan::defaults::STREAM_WINDOW;
