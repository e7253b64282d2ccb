//! What summaries say: that of a run, and that of a recording.

use crate::cli::args::JudgingArgs;
use crate::cli::value::too_many;
use crate::diagnostics::Failure;
use crate::plan::{SummaryDefaults, defaults};

impl JudgingArgs {
    /// The options of a run, which its summaries have by default.
    pub(super) fn of_run(&self) -> Result<SummaryDefaults, Failure> {
        let (quantiles, half) = (defaults::QUANTILES.to_vec(), self.half);
        self.over(&SummaryDefaults { quantiles, window_ns: None, deadline_ns: None, half })
    }

    /// The options of a summary: those given, else those of the recorded run.
    pub fn over(&self, recorded: &SummaryDefaults) -> Result<SummaryDefaults, Failure> {
        Ok(SummaryDefaults {
            quantiles: self.distinct_quantiles()?.unwrap_or_else(|| recorded.quantiles.clone()),
            window_ns: self.window.or(recorded.window_ns),
            deadline_ns: self.deadline.or(recorded.deadline_ns),
            half: self.half || recorded.half,
        })
    }

    /// Distinct quantiles in ascending order; `None` if none was typed.
    pub fn distinct_quantiles(&self) -> Result<Option<Vec<f64>>, Failure> {
        let mut quantiles = self.quantiles.clone();
        quantiles.sort_by(f64::total_cmp);
        quantiles.dedup();
        if quantiles.len() > defaults::QUANTILES_MAX {
            let cause = "each is a column of every table";
            let hint = "`--quantiles` gives those that matter";
            return Err(too_many(quantiles.len(), "quantiles", defaults::QUANTILES_MAX, cause, hint));
        }
        Ok(Some(quantiles).filter(|quantiles| !quantiles.is_empty()))
    }
}
