//! Memory, and what is swapped.

use serde::{Deserialize, Serialize};

/// Memory beside its total. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFacts {
    /// What could be had without swapping (MemAvailable).
    pub available_bytes: Option<u64>,
    /// What nobody uses (MemFree).
    pub free_bytes: Option<u64>,
    /// All swap areas together; 0: none.
    pub swap_bytes: Option<u64>,
    /// What of it is free.
    pub swap_free_bytes: Option<u64>,
    /// Pages brought back from a disk since boot (pgmajfault).
    pub major_faults: Option<u64>,
}
