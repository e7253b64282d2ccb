//! Analysis of an experiment: its estimated cost, its stop rule, and the results of its runs. Pure: recordings are read
//! by `experiment/`.

mod aa_test;
mod contrasts;
mod cost;
mod designs;
mod pilot;
mod published;
mod report;
mod single_condition;

pub use aa_test::{AaTest, Drift, NamedRun, aa_test};
pub use contrasts::{
    ExperimentComparison, LostBaseline, PrecisionResult, PrecisionRule, Rehearsal, add_contrasts, compared_conditions,
    comparisons_asked, lost_baselines, rehearsal, reported_estimands,
};
pub use cost::{ExperimentCost, RemainingTime, experiment_cost};
pub use designs::{AdvisedDesign, DesignAdvice, FOUND, PILOT_CONFIDENCE, RUNS_MAX, advise};
pub use pilot::{PilotRun, PilotSpread, WantedChange};
pub use published::{
    BlockMedian, ColumnFigure, MeasuredRow, MeasuredSystem, MistakenFigures, PublishedResults, ReachedLoad, RunSpread,
    RunsByRow, ShortRuns, SpreadCell, Unmeasured, means_of_runs, mistaken_figures, short_runs, unmeasured_reason,
};
pub use report::ExperimentReport;
pub(crate) use single_condition::MeanOfRuns;
pub use single_condition::{ConditionRow, single_condition};
