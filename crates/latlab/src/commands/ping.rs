//! `latlab ping`: round trips.

use std::sync::Arc;

use super::measure_and_report::{LiveView, MeasureJob, measure_and_report, warn_of_real_time};
use super::{Outcome, keys};
use crate::cli::resolve::PingJob;
use crate::console::Console;
use crate::diagnostics::Failure;

/// Carries out `job`.
pub(super) fn run(job: &PingJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    keys::require_key_for_other_hosts(&job.plan)?;
    warn_of_real_time([&job.plan], console);
    let measured = MeasureJob { plan: &job.plan, key: key.as_ref(), output: &job.keeping, json: job.json };
    measure_and_report(&measured, &LiveView { rates: &Arc::default(), text: &String::new }, console)
}
