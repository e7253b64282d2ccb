//! `latlab wakeup`: how late a timer wakes a thread.

use std::sync::Arc;

use super::measure_and_report::{LiveView, MeasureJob, measure_and_report, warn_of_real_time};
use super::{Outcome, remedies};
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::diagnostics::Failure;

/// Carries out `job`.
pub(super) fn run(job: &WakeupJob, console: &Console) -> Result<Outcome, Failure> {
    if job.try_remedies {
        return remedies::run(job, console);
    }
    warn_of_real_time([&job.plan], console);
    let measured = MeasureJob { plan: &job.plan, key: None, output: &job.keeping, json: job.json };
    measure_and_report(&measured, &LiveView { rates: &Arc::default(), text: &String::new }, console)
}
