use serde::{Deserialize, Serialize};

/// What the kernel of the sender told of its TCP connection when the run was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFacts {
    /// The name of its congestion control, such as `cubic`; none where it was not told.
    pub congestion_control: Option<String>,
    /// The largest segment that this end sends, in bytes of payload.
    pub send_segment_bytes: u32,
    /// Segments that this end sent again, over all connections of the run, since they were made, the set-up and the warm-up included. What the
    /// other end sent again is not known here.
    pub retransmitted: u64,
}

impl ConnectionFacts {
    /// Those of several connections of one run: of the first, with what all of them sent again.
    pub fn together(first: Option<ConnectionFacts>, next: Option<ConnectionFacts>) -> Option<ConnectionFacts> {
        match (first, next) {
            (Some(first), Some(next)) => {
                Some(ConnectionFacts { retransmitted: first.retransmitted + next.retransmitted, ..first })
            }
            (first, next) => first.or(next),
        }
    }
}
