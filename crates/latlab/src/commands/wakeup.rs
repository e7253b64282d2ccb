//! `latlab wakeup`: how late a timer wakes a thread.

use std::sync::Arc;

use super::measure_and_report::{LiveView, MeasureJob, measure_and_report};
use super::{Outcome, remedies};
use crate::analysis::real_time_warning;
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::plan::Plan;

/// Carries out `job`.
pub(super) fn run(job: &WakeupJob, console: &Console) -> Result<Outcome, Failure> {
    if job.try_remedies {
        return remedies::run(job, console);
    }
    warn([&job.plan], console);
    let measured = MeasureJob { plan: &job.plan, key: None, output: &job.keeping, json: job.json };
    measure_and_report(&measured, &LiveView { rates: &Arc::default(), text: &String::new }, console)
}

/// Warns of a plan that could make this host hard to reach.
pub(super) fn warn<'a>(plans: impl IntoIterator<Item = &'a Plan>, console: &Console) {
    let facts = || facts::read(&HostRoot::live(), Interface::Named("lo"));
    if let Some(warning) = plans.into_iter().find_map(|plan| real_time_warning(plan, facts)) {
        console.caveat(&warning);
    }
}
