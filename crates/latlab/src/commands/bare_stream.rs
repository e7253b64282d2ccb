//! `latlab bare-stream` (hidden): the bare stream alone, for the project's own benchmarks.

use super::Outcome;
use crate::cli::resolve::BareStreamSpec;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::measure::MeasureError;
use crate::measure::baseline::bare_stream;
use crate::session::{ReflectorProcess, ReflectorRequest};

/// Runs the bare stream against a receiver of its own and prints what was delivered, as JSON.
pub(super) fn run(spec: &BareStreamSpec, console: &Console) -> Result<Outcome, Failure> {
    let wanted = bare_stream::buffers_per_call(spec.sending, spec.size_bytes) as u16;
    let receiver = ReflectorProcess::start(&ReflectorRequest::bare_stream(spec.loopback, spec.peer, wanted));
    let receiver = receiver.map_err(MeasureError::from)?;
    placement::place(&spec.here)?;
    let delivered = bare_stream::send(receiver.address(), spec.sending, spec.size_bytes, spec.span.0)
        .map_err(refused("stream to the bare receiver"))?;
    let document = serde_json::to_string(&delivered)
        .map_err(|error| Failure::world("cannot write the figures").because(error.to_string()))?;
    console.data(&document)?;
    Ok(Outcome::Done)
}
