use super::{BorrowedFd, OwnedFd, SocketAddr, address::Family};

/// What the kernel knows of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The largest segment that it sends, in bytes of payload.
    pub send_segment_bytes: u32,
    /// Segments sent again, since it was made.
    pub retransmitted: u32,
}

refuse! {
    tcp(Family) -> OwnedFd;
    tcp_listener(Family) -> OwnedFd;
    listen(BorrowedFd<'_>, u16) -> ();
    accept(BorrowedFd<'_>) -> (OwnedFd, SocketAddr);
    send_now(BorrowedFd<'_>, &[u8]) -> usize;
    set_no_delay(BorrowedFd<'_>) -> ();
    set_unsent_limit(BorrowedFd<'_>, u32) -> ();
    no_delay(BorrowedFd<'_>) -> bool;
    reuse_address(BorrowedFd<'_>) -> ();
    take_error(BorrowedFd<'_>) -> ();
    counts(BorrowedFd<'_>) -> ConnectionCounts;
    congestion_control(BorrowedFd<'_>) -> String;
}
