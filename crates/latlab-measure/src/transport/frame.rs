//! Framing of messages in a stream of bytes: each message is preceded by its length (docs/protocol.md, "Over TCP").

use std::ops::Range;

use crate::plan::defaults;

/// Length in front of each message, big endian.
const LENGTH_BYTES: usize = 2;
/// The shortest message: a probe's header.
const MESSAGE_MIN_BYTES: usize = defaults::SIZE_MIN_BYTES as usize;
/// The longest message: the longest datagram.
const MESSAGE_MAX_BYTES: usize = defaults::SIZE_MAX_BYTES as usize;
/// The longest frame, in whole pages.
const BUFFER_BYTES: usize = (LENGTH_BYTES + MESSAGE_MAX_BYTES).next_multiple_of(4_096);

/// A length below or above that of any message: the boundaries of all later messages are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLength;

/// Received bytes that are not decoded yet, in a buffer for the longest frame.
#[derive(Debug)]
pub struct MessageDecoder {
    bytes: Box<[u8]>,
    pending: Range<usize>,
}

impl Default for MessageDecoder {
    fn default() -> MessageDecoder {
        MessageDecoder { bytes: vec![0; BUFFER_BYTES].into_boxed_slice(), pending: 0..0 }
    }
}

impl MessageDecoder {
    /// Whether no byte is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Space for the next bytes; never empty if every whole message was decoded before.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.pending.start > 0 {
            self.bytes.copy_within(self.pending.clone(), 0);
            self.pending = 0..self.pending.len();
        }
        &mut self.bytes[self.pending.end..]
    }

    /// The first `bytes` of the space were written.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.pending.end += bytes;
    }

    /// Moves the next message, if it is whole, into `into` (as far as it fits) and returns the number of bytes moved.
    #[inline]
    pub fn decode(&mut self, into: &mut [u8]) -> Result<Option<usize>, InvalidLength> {
        let Some((length, rest)) = self.bytes[self.pending.clone()].split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(MESSAGE_MIN_BYTES..=MESSAGE_MAX_BYTES).contains(&length) {
            return Err(InvalidLength);
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let moved = length.min(into.len());
        into[..moved].copy_from_slice(&message[..moved]);
        self.pending.start += LENGTH_BYTES + length;
        if self.pending.is_empty() {
            self.pending = 0..0;
        }
        Ok(Some(moved))
    }
}

/// The frame of the message being sent, and the part of it that the kernel has not taken yet.
#[derive(Debug)]
pub struct MessageEncoder {
    bytes: Box<[u8]>,
    unsent: Range<usize>,
}

impl Default for MessageEncoder {
    fn default() -> MessageEncoder {
        MessageEncoder { bytes: vec![0; BUFFER_BYTES].into_boxed_slice(), unsent: 0..0 }
    }
}

impl MessageEncoder {
    /// The frame of `message`; `None` if that is too long for one. Only while nothing is unsent.
    #[inline]
    pub fn encode(&mut self, message: &[u8]) -> Option<&[u8]> {
        debug_assert!(self.unsent.is_empty(), "a frame was begun and not ended");
        if message.len() > MESSAGE_MAX_BYTES {
            return None;
        }
        let (length, rest) = self.bytes.split_first_chunk_mut::<LENGTH_BYTES>()?;
        *length = (message.len() as u16).to_be_bytes();
        rest[..message.len()].copy_from_slice(message);
        Some(&self.bytes[..LENGTH_BYTES + message.len()])
    }

    /// Only the first `taken` of the `all` bytes of the last frame were sent: the rest stays unsent.
    pub(crate) fn keep_unsent(&mut self, taken: usize, all: usize) {
        self.unsent = taken..all;
    }

    /// Whether a part of a frame is unsent.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.unsent.clone()]
    }

    /// The first `bytes` of the unsent part were sent.
    pub fn advance(&mut self, bytes: usize) {
        self.unsent.start += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `stream` in pieces of so many bytes and decodes every message as soon as it is whole.
    fn decoded(stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, InvalidLength> {
        let (mut decoder, mut messages) = (MessageDecoder::default(), Vec::new());
        let mut buffer = vec![0; MESSAGE_MAX_BYTES + 1];
        for bytes in stream.chunks(piece) {
            let mut left = bytes;
            while !left.is_empty() {
                let space = decoder.space();
                let fits = left.len().min(space.len());
                assert!(fits > 0, "there is always space for a message");
                space[..fits].copy_from_slice(&left[..fits]);
                decoder.filled(fits);
                left = &left[fits..];
                while let Some(length) = decoder.decode(&mut buffer)? {
                    messages.push(buffer[..length].to_vec());
                }
            }
        }
        assert!(decoder.is_empty());
        Ok(messages)
    }

    #[test]
    fn messages_do_not_depend_on_how_the_stream_is_cut() {
        let mut encoder = MessageEncoder::default();
        let messages: Vec<Vec<u8>> =
            [24, 25, 128, 65_507, 24, 1_472].iter().enumerate().map(|(at, size)| vec![at as u8; *size]).collect();
        let mut stream = Vec::new();
        for message in &messages {
            stream.extend_from_slice(encoder.encode(message).expect("no longer than a message"));
        }
        for piece in [1, 2, 3, 25, 26, 27, 1_000, 65_509, 70_000, stream.len()] {
            assert_eq!(decoded(&stream, piece).as_deref(), Ok(messages.as_slice()), "pieces of {piece}");
        }
    }

    #[test]
    fn a_length_of_no_message_is_an_error() {
        for (length, valid) in
            [(0_u16, false), (23, false), (24, true), (65_507, true), (65_508, false), (u16::MAX, false)]
        {
            let mut decoder = MessageDecoder::default();
            decoder.space()[..2].copy_from_slice(&length.to_be_bytes());
            decoder.filled(2);
            let found = decoder.decode(&mut [0; 8]);
            assert_eq!(found, if valid { Ok(None) } else { Err(InvalidLength) }, "{length}");
        }
        assert!(MessageEncoder::default().encode(&[0; 65_508]).is_none());
    }

    #[test]
    fn a_message_longer_than_the_buffer_is_truncated_and_the_next_one_found() {
        let (mut decoder, mut encoder) = (MessageDecoder::default(), MessageEncoder::default());
        for byte in [1, 2] {
            let frame = encoder.encode(&[byte; 30]).expect("a frame");
            decoder.space()[..frame.len()].copy_from_slice(frame);
            decoder.filled(frame.len());
        }
        let mut buffer = [0; 10];
        for byte in [1, 2] {
            assert_eq!((decoder.decode(&mut buffer), buffer), (Ok(Some(10)), [byte; 10]));
        }
    }

    #[test]
    fn the_unsent_part_is_kept_until_it_is_sent() {
        let mut encoder = MessageEncoder::default();
        let all = encoder.encode(&[7; 24]).expect("a frame").len();
        assert!(!encoder.has_unsent());
        encoder.keep_unsent(1, all);
        assert_eq!(encoder.unsent()[0], 24, "the second byte of the length");
        encoder.advance(1);
        assert_eq!(encoder.unsent(), [7; 24]);
        encoder.advance(24);
        assert!(!encoder.has_unsent());
    }
}
