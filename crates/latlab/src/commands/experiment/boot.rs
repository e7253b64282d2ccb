//! Which boot this is.

use super::Asked;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentError;
use crate::host::HostRoot;
use crate::plan::BetweenBlocks;

/// Which boot this is. Who waits for another must know.
pub(in crate::commands) fn boot_id(asked: &Asked) -> Result<Option<String>, Failure> {
    match (HostRoot::for_knobs().text("proc/sys/kernel/random/boot_id"), asked.job.experiment.design.between) {
        (Ok(id), _) if !id.is_empty() => Ok(Some(id)),
        (Err(cause), BetweenBlocks::Reboot) => Err(ExperimentError::UnknownBoot { cause }.into()),
        _ => Ok(None),
    }
}
