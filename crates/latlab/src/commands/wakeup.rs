//! `latlab wakeup`: let threads sleep, record when they wake, summarise, show.

use super::{Outcome, ping, remedies};
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
    ping::carry_out(&job.plan, None, (&job.keeping, job.json), console)
}

/// Says what of `plans` could make this host hard to reach.
pub(super) fn warn<'a>(plans: impl IntoIterator<Item = &'a Plan>, console: &Console) {
    let facts = || facts::read(&HostRoot::live(), Interface::Named("lo"));
    if let Some(warning) = plans.into_iter().find_map(|plan| real_time_warning(plan, facts)) {
        console.caveat(&warning);
    }
}
