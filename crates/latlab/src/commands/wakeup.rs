//! `latlab wakeup`: let threads sleep, record when they wake, summarise, show.

use super::{Outcome, ping, remedies};
use crate::analysis::{real_time_pause, restless};
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::diagnostics::Caveat;
use crate::diagnostics::Failure;
use crate::facts::RealTimePause;
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::plan::{Plan, RunSpec, Setting, Side};

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
    if let Some(warning) = plans.into_iter().find_map(throttling) {
        console.caveat(&warning);
    }
}

/// Told before the start, since a host whose FIFO threads never sleep may hardly be reached meanwhile.
fn throttling(plan: &Plan) -> Option<Caveat> {
    let sleeping = |run: &&RunSpec| run.wakeup().is_some() || run.beside().is_some();
    let (run, thread) = plan.runs.iter().filter(sleeping).find_map(|run| Some((run, restless(run)?)))?;
    let facts = facts::read(&HostRoot::live(), Interface::Named("lo"));
    // The setting lifts the throttling of older kernels; what newer ones do instead it leaves as it is.
    let lifted = matches!(facts.real_time_pause(), Some(RealTimePause::Throttling { .. }))
        && run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1));
    real_time_pause(&facts, Some(thread), Side::Local).filter(|_| !lifted)
}
