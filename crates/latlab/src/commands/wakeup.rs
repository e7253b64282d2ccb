//! `latlab wakeup`: let threads sleep, record when they wake, summarise, show.

use super::{Outcome, healing, ping, progress, stores, title};
use crate::caveat::{Caveat, Severity};
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::error::Failure;
use crate::host::HostRoot;
use crate::measure;
use crate::plan::{Plan, RunSpec, Setting, Via};

/// Carries out `job`.
pub(super) fn run(job: &WakeupJob, console: &Console) -> Result<Outcome, Failure> {
    let keep = stores::open(&job.keeping)?;
    if let Some(warning) = throttling(&job.plan) {
        console.caveat(&warning);
    }
    let interrupt = ping::listen(&job.plan)?;
    let conducted = progress::beside(&job.plan, &title::of(&job.plan), &interrupt, console, |heartbeat| {
        measure::conduct_wakeups(&job.plan, keep.place(), interrupt.stop(), heartbeat)
    });
    healing::tell_what_is_left(console);
    let conducted = conducted?;
    let shown = ping::show(&conducted, (&job.keeping, job.json), console);
    ping::ending(conducted, shown, &interrupt)
}

/// Told before the start, since a host whose FIFO threads never sleep may hardly be reached meanwhile.
fn throttling(plan: &Plan) -> Option<Caveat> {
    let spins = |run: &&RunSpec| run.wakeup().is_some_and(|wakeup| wakeup.via == Via::Spin) && run.here.fifo.is_some();
    let run = plan.runs.iter().find(spins)?;
    if run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1)) {
        return None;
    }
    let runtime_us = HostRoot::live().text("proc/sys/kernel/sched_rt_runtime_us").ok()?;
    (runtime_us.trim() != "-1").then(|| {
        Caveat::new(
            Severity::Warning,
            "rt-throttling",
            format!("the kernel will stop a spinning FIFO thread after {} µs in each period", runtime_us.trim()),
            "such a stop is a wake-up that is tens of milliseconds late",
            "`--set rt-runtime=-1`",
        )
    })
}
