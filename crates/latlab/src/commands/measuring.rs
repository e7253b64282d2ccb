//! Measuring a plan, for whichever command: signals are noticed, and what cannot be put back is told.

use super::recovery;
use crate::console::{Console, Progress};
use crate::diagnostics::Failure;
use crate::measure::{self, MeasureError, PlanOutcome, RecordingTarget};
use crate::plan::Plan;
use crate::platform::SignalWatch;
use crate::session::PreSharedKey;
use crate::transport::refusal::TransportError;

/// Measures `plan` into `place`; none where it was interrupted before anything was measured. `tick` is called with the
/// progress line now and then, which is gone before anything else is said.
pub(super) fn measure(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    place: RecordingTarget<'_>,
    interrupt: &SignalWatch,
    console: &Console,
    (progress, tick): (Progress, &mut dyn FnMut(&Progress)),
) -> Result<Option<PlanOutcome>, Failure> {
    let mut heartbeat = || {
        interrupt.notice();
        tick(&progress);
    };
    let conducted = measure::measure_plan(plan, key, place, interrupt.stop(), &mut heartbeat);
    drop(progress);
    interrupt.notice();
    recovery::warn_of_leftovers(console);
    match (conducted, interrupt.outcome()) {
        // Whoever stops waiting for a target that is silent knows that it was.
        (Err(MeasureError::Session(_) | MeasureError::Agent(_)), Some(_))
        | (Err(MeasureError::Transport(TransportError::Interrupted { .. })), Some(_)) => Ok(None),
        (conducted, _) => Ok(Some(conducted?)),
    }
}

/// Listens to signals while `plans` are measured. Whoever gives up at once leaves the host as it was all the same.
pub(super) fn listen<'a>(plans: impl IntoIterator<Item = &'a Plan>, console: &Console) -> std::io::Result<SignalWatch> {
    let mut runs = plans.into_iter().flat_map(|plan| &plan.runs);
    match runs.any(|run| !run.settings.is_empty()) {
        true => listen_and_restore(console),
        false => SignalWatch::listen(),
    }
}

/// The same for what sets this host in any case.
pub(super) fn listen_and_restore(console: &Console) -> std::io::Result<SignalWatch> {
    recovery::warn_of_other_root(console);
    SignalWatch::listen_with(recovery::restore_at_once)
}
