//! Whether a connection still carries what stands before a question. A slow path that does is no silent target.

use crate::transport::burst::ConnectionBytes;
use crate::units::{SenderClock, Stamp};

/// What is known of the way of a question through a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallDetector {
    /// The first question that is not answered ends there, in bytes of the connection.
    asked_bytes: Option<u64>,
    /// So far the connection has come on the way to it, and when it last came further.
    carried_bytes: u64,
    moved_at: Stamp<SenderClock>,
}

impl StallDetector {
    /// Nothing was asked yet.
    pub(super) fn new(now: Stamp<SenderClock>) -> StallDetector {
        StallDetector { asked_bytes: None, carried_bytes: 0, moved_at: now }
    }

    /// A question was handed over.
    pub(super) fn asked(&mut self, carried: ConnectionBytes) {
        self.asked_bytes.get_or_insert(carried.handed_bytes);
    }

    /// Questions up to now are answered: the next one is the first that is not.
    pub(super) fn answered(&mut self) {
        self.asked_bytes = None;
    }

    /// When the connection last came nearer to the question, `carried` being known `now`. What it carries beyond that
    /// shows that the other end's kernel lives, and not that somebody counts.
    pub(super) fn moved(&mut self, carried: ConnectionBytes, now: Stamp<SenderClock>) -> Stamp<SenderClock> {
        let nearer = carried.acknowledged_bytes.min(self.asked_bytes.unwrap_or(u64::MAX));
        if nearer > self.carried_bytes {
            (self.carried_bytes, self.moved_at) = (nearer, now);
        }
        self.moved_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_towards_the_question_is_no_silence_and_what_moves_beyond_it_is() {
        let at = Stamp::from_nanos;
        let carried = |handed_bytes, acknowledged_bytes| ConnectionBytes { handed_bytes, acknowledged_bytes };
        let mut way = StallDetector::new(at(0));
        way.asked(carried(1_000, 0));
        for (now, acknowledged_bytes, moved) in
            [(1, 0, 0), (2, 400, 2), (3, 400, 2), (4, 1_000, 4), (5, 1_500, 4), (9, 9_000, 4)]
        {
            assert_eq!(way.moved(carried(10_000, acknowledged_bytes), at(now)), at(moved), "{now}");
            // Asked again: the first question is what counts.
            way.asked(carried(10_000, acknowledged_bytes));
        }
        way.answered();
        way.asked(carried(10_000, 9_000));
        assert_eq!(way.moved(carried(10_000, 9_500), at(10)), at(10));
    }
}
