//! The evidence that the doctor judges: the facts of a host, and the measurement that is intended.

use crate::facts::{Activity, HostFacts};
use crate::plan::{EndSpec, WaitMode};

/// The properties of the intended measurement that findings depend on.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The end that runs on the host.
    pub here: &'a EndSpec,
    /// The other end, if it runs on the same host.
    pub peer: Option<&'a EndSpec>,
}

impl Intent<'_> {
    pub(super) fn ends(&self) -> impl Iterator<Item = &EndSpec> {
        [Some(self.here), self.peer].into_iter().flatten()
    }

    pub(super) fn any(&self, asks: impl Fn(&EndSpec) -> bool) -> bool {
        self.ends().any(asks)
    }

    pub(super) fn waits(&self, wait: WaitMode) -> bool {
        self.any(|end| end.wait == wait)
    }

    /// The CPUs to which ends are pinned, each once.
    pub(super) fn pins(&self) -> Vec<u16> {
        let mut pins: Vec<u16> = self.ends().filter_map(|end| end.cpu).collect();
        pins.dedup();
        pins
    }
}

/// The facts of a host and the intended measurement.
pub(super) struct HostEvidence<'a> {
    pub(super) facts: &'a HostFacts,
    /// Facts of a short time before.
    pub(super) earlier: Option<&'a HostFacts>,
    /// Busy time and steal of the CPUs between `earlier` and `facts`.
    pub(super) activity: Option<Activity>,
    pub(super) intent: Intent<'a>,
}
