//! The messages on the wire, byte by byte (docs/protocol.md). Pure: no socket, no clock, no randomness, no allocation
//! except for a new `ReplayWindow`. Every parser accepts any bytes and returns a message or a [`Malformed`].

mod close;
mod handshake;
mod header;
mod keys;
mod probe;
mod replay;
mod stream;

pub use close::{CLOSE_BYTES, Close, REPORT_BYTES, Report, SHORT_REPORT_BYTES};
pub use handshake::{
    ACCEPT_BYTES, Accept, COOKIE_BYTES, Cookie, CookieToken, HELLO_MIN_BYTES, Hello, OPEN_BYTES, Open, REFUSE_BYTES,
    Refuse, RefuseReason, SocketTerms, Terms, hello_datagram,
};
pub(crate) use header::{MAC_BYTES, NONCE_BYTES, SETUP_HEADER_BYTES};
pub use header::{MessageHeader, MessageType, Nonce, VERSION};
pub(crate) use keys::tags_equal;
pub use keys::{Codes, SessionKeys, SetupKey, TagKey};
pub(crate) use probe::FLAG_CPU;
pub use probe::{AnswerFacts, PASSAGE_MIN_BYTES, Passage};
pub use probe::{FULL_STAMP_MIN_BYTES, KERNEL_STAMP_MIN_BYTES, PROBE_MIN_BYTES, ProbeHeader, Reflection, SealedAnswer};
pub use replay::{REPLAY_WINDOW, extend_receive_counter, extend_sent_counter};
pub(crate) use replay::{ReplayVerdict, ReplayWindow, extend_stamp};
pub use stream::{POLL_BYTES, StreamPoll, StreamTally, TALLY_BYTES, Train};

/// Why bytes are not a valid message of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// Shorter than the message, or longer than a message of fixed size.
    #[error("wrong length")]
    Length,
    /// The first byte is not a message type, or not that of the expected message.
    #[error("unknown message type")]
    Type,
    #[error("no latlab message")]
    Magic,
    /// A version that this latlab does not support.
    #[error("another protocol version")]
    Version,
    /// A field has an invalid value.
    #[error("impossible value")]
    Value,
}

/// The `N` bytes of `from` at `at`; zeros if the slice is too short, which callers have excluded or ignore.
fn take<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

/// Writes `bytes` into `to` at `at`; nothing if they do not fit.
fn put<const N: usize>(to: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = to.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}
