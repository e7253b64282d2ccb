//! `latlab bare-wakeup` (hidden): the bare loop of wake-ups alone, for the project's own benchmarks.

use super::Outcome;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::measure::baseline::{BareWakeupSpec, sleep_bare};

/// Runs the loop and prints what it showed, as JSON.
pub(super) fn run(spec: &BareWakeupSpec, console: &Console) -> Result<Outcome, Failure> {
    let slept = sleep_bare(spec)?;
    let document = serde_json::to_string(&slept)
        .map_err(|error| Failure::world("cannot write the figures").because(error.to_string()))?;
    console.data(&document)?;
    Ok(Outcome::Done)
}
