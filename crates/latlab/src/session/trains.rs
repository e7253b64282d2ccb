//! Streams counted by the buffer: what the kernel hands over merged is judged as it came, all at once.

use std::net::SocketAddr;

use super::reflector::SessionReflector;
use crate::units::{ReflectorClock, Stamp};
use crate::wire::Train;

impl SessionReflector {
    /// Counts the packets of `each_bytes` that lie end to end in `bytes`, where all of them are a stream's next ones: as if
    /// each were judged for itself, in a fraction of the time. Otherwise nothing has happened, and each is to be judged.
    #[inline]
    pub fn count_train(
        &mut self,
        bytes: &[u8],
        each_bytes: usize,
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> bool {
        let Some(train) = Train::parse(bytes, each_bytes) else { return false };
        let counted = self.table.count_train(train, from, received);
        if counted {
            self.counters.received += train.packets();
            self.counters.received_bytes += bytes.len() as u64;
            self.counters.counted += train.packets();
        }
        counted
    }
}
