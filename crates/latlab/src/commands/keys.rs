//! The pre-shared key of a command, from wherever it was asked to come.

use crate::cli::resolve::{KeySource, key_needed};
use crate::diagnostics::Failure;
use crate::plan::{Plan, Protocol, Target};
use crate::session::PreSharedKey;
use crate::transport::resolve::resolve;

/// The key that `source` names; none where none was asked for.
pub(super) fn find(source: &KeySource) -> Result<Option<PreSharedKey>, Failure> {
    Ok(match source {
        KeySource::None => None,
        KeySource::Fresh => Some(PreSharedKey::fresh()?),
        KeySource::File(path) => Some(PreSharedKey::read(path)?),
        KeySource::Descriptor(number) => Some(PreSharedKey::from_descriptor(number.unsigned_abs())?),
    })
}

/// A name that leads to another host needs a key as its address would.
pub(super) fn refuse_strangers(plan: &Plan) -> Result<(), Failure> {
    let Some(run) = plan.runs.first().filter(|run| !run.authenticated) else { return Ok(()) };
    let Target::Host { host, port } = &run.target else { return Ok(()) };
    if run.sending().is_none_or(|ping| ping.protocol == Protocol::Native) {
        key_needed(&run.target, resolve(host, *port, run.way().family)?.ip())?;
    }
    Ok(())
}
