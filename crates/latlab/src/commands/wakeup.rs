//! `latlab wakeup`: let threads sleep, record when they wake, summarise, show.

use super::{Outcome, ping};
use crate::caveat::{Caveat, Severity};
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::error::Failure;
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::plan::{Plan, RunSpec, Setting, WaitMode};

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
    if run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1)) {
        return None;
    }
    let pause = facts::read(&HostRoot::live(), Interface::Named("lo")).real_time_pause()?;
    Some(Caveat::new(
        Severity::Warning,
        "rt-throttling",
        format!("the kernel may stop a spinning FIFO thread for {}", pause.in_words()),
        "such a stop is a wake-up that is tens of milliseconds late",
        "`--set rt-runtime=-1`",
    ))
}
