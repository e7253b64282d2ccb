//! The wire: what the two ends say, byte by byte (docs/protocol.md). Pure: no socket, no clock, no chance,
//! no allocation; every parser takes any bytes at all and answers with a message or a [`Malformed`].

mod close;
mod counter;
mod header;
mod hello;
mod keys;
mod open;
mod probe;
mod stream;
mod tag;
mod train;
mod window;

pub use close::{CLOSE_BYTES, Close, REPORT_BYTES, Report, SHORT_REPORT_BYTES};
pub use counter::{extend_receive_counter, extend_sent_counter, extend_stamp};
pub use header::{MAC_BYTES, MessageHeader, MessageType, NONCE_BYTES, Nonce, SETUP_HEADER_BYTES, VERSION};
pub use hello::{COOKIE_BYTES, Cookie, CookieToken, HELLO_MIN_BYTES, Hello, hello_datagram};
pub use keys::{Codes, SessionKeys, SetupKey};
pub use open::{ACCEPT_BYTES, Accept, OPEN_BYTES, Open, REFUSE_BYTES, Refuse, RefuseReason, StreamTerms, Terms};
pub use probe::{
    AnswerFacts, FULL_STAMP_MIN_BYTES, KERNEL_STAMP_MIN_BYTES, PROBE_MIN_BYTES, ProbeHeader, Reflection, SealedAnswer,
};
pub use stream::{POLL_BYTES, StreamPoll, StreamTally, TALLY_BYTES};
pub use tag::{TagKey, tags_equal};
pub use train::Train;
pub use window::{REPLAY_WINDOW, ReplayVerdict, ReplayWindow};

/// Why bytes are not the message they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the message has, or a fixed-size message with more.
    #[error("wrong length")]
    Length,
    /// The first byte names no message.
    #[error("unknown message type")]
    Type,
    /// Not latlab's mark.
    #[error("no latlab message")]
    Magic,
    /// A version that this latlab does not speak.
    #[error("another protocol version")]
    Version,
    /// A field holds a value that no sender writes.
    #[error("impossible value")]
    Value,
}

/// The `N` bytes of `from` at `at`, which the caller knows to be there: total, since a short slice gives zeros.
fn take<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

/// Writes `bytes` into `to` at `at`; what does not fit is not written.
fn put<const N: usize>(to: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = to.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}
