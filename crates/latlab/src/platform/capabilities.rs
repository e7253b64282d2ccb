//! The rights of this process, which the hints of errors about a missing one keep.

use crate::facts::Capability;

/// The command that grants `lacking` to the file of latlab, with what this process has.
pub(crate) fn grant(lacking: &[Capability]) -> String {
    let effective = rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits());
    Capability::grant(lacking, effective)
}
