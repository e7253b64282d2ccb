//! The pre-shared key of a command, from wherever it was asked to come.

use crate::cli::resolve::KeySource;
use crate::error::Failure;
use crate::session::PreSharedKey;

/// The key that `source` names; none where none was asked for.
pub(super) fn find(source: &KeySource) -> Result<Option<PreSharedKey>, Failure> {
    Ok(match source {
        KeySource::None => None,
        KeySource::Fresh => Some(PreSharedKey::fresh()?),
        KeySource::File(path) => Some(PreSharedKey::read(path)?),
        KeySource::Descriptor(number) => Some(PreSharedKey::from_descriptor(number.unsigned_abs())?),
    })
}
