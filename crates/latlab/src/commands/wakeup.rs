//! `latlab wakeup`: let threads sleep, record when they wake, summarise, show.

use super::{Outcome, ping};
use crate::analysis::real_time_pause;
use crate::caveat::Caveat;
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::error::Failure;
use crate::facts::RealTimePause;
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::plan::{Plan, RunSpec, Setting, Side, WaitMode};

/// Carries out `job`.
pub(super) fn run(job: &WakeupJob, console: &Console) -> Result<Outcome, Failure> {
    if let Some(warning) = throttling(&job.plan) {
        console.caveat(&warning);
    }
    ping::carry_out(&job.plan, None, (&job.keeping, job.json), console)
}

/// Told before the start, since a host whose FIFO threads never sleep may hardly be reached meanwhile.
fn throttling(plan: &Plan) -> Option<Caveat> {
    let run = plan.runs.iter().find(|run: &&RunSpec| run.here.wait == WaitMode::Spin && run.here.fifo.is_some())?;
    let facts = facts::read(&HostRoot::live(), Interface::Named("lo"));
    // The setting lifts the throttling of older kernels; what newer ones do instead it leaves as it is.
    let lifted = matches!(facts.real_time_pause(), Some(RealTimePause::Throttling { .. }))
        && run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1));
    real_time_pause(&facts, &run.here, Side::Local).filter(|_| !lifted)
}
