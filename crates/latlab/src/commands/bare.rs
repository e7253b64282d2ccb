//! Hidden commands that run the bare loops alone, for the project's own benchmarks. Figures are printed as JSON.

use serde::Serialize;

use super::Outcome;
use crate::cli::resolve::{BareSpec, BareStreamSpec};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::measure::MeasureError;
use crate::measure::baseline::{BareWakeupSpec, bare_stream, calibrate, sleep_bare};
use crate::session::{ReflectorProcess, ReflectorRequest};

/// `latlab bare`: the bare round-trip loop; prints the floor that `latlab doctor --calibrate` keeps.
pub(super) fn round_trips(spec: &BareSpec, console: &Console) -> Result<Outcome, Failure> {
    let floor = calibrate(spec.transport, spec.count as usize, spec.size_bytes, spec.here, spec.peer)?;
    print(&floor, console)
}

/// `latlab bare-stream`: the bare stream against a receiver of its own; prints what was delivered.
pub(super) fn stream(spec: &BareStreamSpec, console: &Console) -> Result<Outcome, Failure> {
    let wanted = bare_stream::buffers_per_call(spec.sending, spec.size_bytes) as u16;
    let receiver = ReflectorProcess::start(&ReflectorRequest::bare_stream(spec.loopback, spec.peer, wanted));
    let receiver = receiver.map_err(MeasureError::from)?;
    placement::place(&spec.here)?;
    let delivered = bare_stream::send(receiver.address(), spec.sending, spec.size_bytes, spec.span.0)
        .map_err(refused("stream to the bare receiver"))?;
    print(&delivered, console)
}

/// `latlab bare-wakeup`: the bare loop of wake-ups; prints its quantiles.
pub(super) fn wakeups(spec: &BareWakeupSpec, console: &Console) -> Result<Outcome, Failure> {
    print(&sleep_bare(spec)?, console)
}

fn print(figures: &impl Serialize, console: &Console) -> Result<Outcome, Failure> {
    let document = serde_json::to_string(figures)
        .map_err(|error| Failure::world("cannot write the figures").because(error.to_string()))?;
    console.data(&document)?;
    Ok(Outcome::Done)
}
