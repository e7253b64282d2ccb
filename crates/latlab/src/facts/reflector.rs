//! What a reflector did for one session, as it reports at the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A session's counters at the reflector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectorReport {
    /// Probes answered.
    pub answered: u64,
    /// Probes dropped because they were seen before or fell out of the replay window.
    pub replayed: u64,
    /// Probes of this session dropped for another reason: reason → count, only reasons seen.
    pub dropped: BTreeMap<String, u64>,
    /// Datagrams that its socket threw away for want of room while the session lasted, whosever they were, modulo 2^32;
    /// null: not told.
    #[serde(default)]
    pub socket_drops: Option<u64>,
}
