//! `latlab bare` (hidden): the bare loop alone, for the project's own benchmarks.

use super::Outcome;
use crate::cli::resolve::BareSpec;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::measure::baseline::calibrate;

/// Runs the bare loop and prints what `latlab doctor --calibrate` would keep, as JSON.
pub(super) fn run(spec: &BareSpec, console: &Console) -> Result<Outcome, Failure> {
    let floor = calibrate(spec.transport, spec.count as usize, spec.size_bytes, spec.here, spec.peer)?;
    let document = serde_json::to_string(&floor)
        .map_err(|error| Failure::world("cannot write the figures").because(error.to_string()))?;
    console.data(&document)?;
    Ok(Outcome::Done)
}
