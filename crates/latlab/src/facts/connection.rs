use serde::{Deserialize, Serialize};

/// What the kernel of the sender told of its TCP connection when the run was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFacts {
    /// The name of its congestion control, such as `cubic`; none where it was not told.
    pub congestion_control: Option<String>,
    /// The largest segment that this end sends, in bytes of payload.
    pub send_segment_bytes: u32,
    /// Segments that this end sent again since the connection was made, the set-up and the warm-up included. What the
    /// other end sent again is not known here.
    pub retransmitted: u64,
}
