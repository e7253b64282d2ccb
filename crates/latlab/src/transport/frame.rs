//! Messages in a stream of bytes: each behind its length (docs/protocol.md, "Over TCP").

use std::ops::Range;

use crate::plan::defaults;

/// The length in front of each message, big endian.
pub const HEAD_BYTES: usize = 2;
/// No message is shorter: a probe's header.
const MESSAGE_MIN_BYTES: usize = defaults::SIZE_MIN_BYTES as usize;
/// No message is longer: the longest datagram.
const MESSAGE_MAX_BYTES: usize = defaults::SIZE_MAX_BYTES as usize;
/// Room for the longest message and its length, in whole pages.
const ROOM_BYTES: usize = (HEAD_BYTES + MESSAGE_MAX_BYTES).next_multiple_of(4_096);

/// A length that no message has: where the next one begins is unknown from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMessage;

/// What came and was not taken yet. Its memory is there from the start; pages that nothing came to are not touched.
#[derive(Debug)]
pub struct Incoming {
    bytes: Box<[u8]>,
    /// What of it is not taken yet.
    held: Range<usize>,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming { bytes: vec![0; ROOM_BYTES].into_boxed_slice(), held: 0..0 }
    }
}

impl Incoming {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.held = 0..0;
    }

    /// Whether a part of a message is there, or a whole one.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Where the next bytes go; never empty as long as every whole message is taken first.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        if self.held.start > 0 {
            self.bytes.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
        }
        &mut self.bytes[self.held.end..]
    }

    /// Told that so many bytes were written to the room.
    #[inline]
    pub fn came(&mut self, bytes: usize) {
        self.held.end += bytes;
    }

    /// Moves the next message into `into`, as far as that reaches, if it is whole: its length.
    #[inline]
    pub fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, NoMessage> {
        let Some((head, rest)) = self.bytes[self.held.clone()].split_first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*head));
        if !(MESSAGE_MIN_BYTES..=MESSAGE_MAX_BYTES).contains(&length) {
            return Err(NoMessage);
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let taken = length.min(into.len());
        into[..taken].copy_from_slice(&message[..taken]);
        self.held.start += HEAD_BYTES + length;
        if self.held.is_empty() {
            self.clear();
        }
        Ok(Some(taken))
    }
}

/// The message that leaves, behind its length, and what of it the kernel has not taken yet.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Box<[u8]>,
    owed: Range<usize>,
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing { bytes: vec![0; ROOM_BYTES].into_boxed_slice(), owed: 0..0 }
    }
}

impl Outgoing {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.owed = 0..0;
    }

    /// `message` with its length in front, in one piece; none where it is longer than a message can be. Only while
    /// nothing is owed.
    #[inline]
    pub fn frame(&mut self, message: &[u8]) -> Option<&[u8]> {
        debug_assert!(self.owed.is_empty(), "a frame was begun and not ended");
        if message.len() > MESSAGE_MAX_BYTES {
            return None;
        }
        let (head, rest) = self.bytes.split_first_chunk_mut::<HEAD_BYTES>()?;
        *head = (message.len() as u16).to_be_bytes();
        rest[..message.len()].copy_from_slice(message);
        Some(&self.bytes[..HEAD_BYTES + message.len()])
    }

    /// Told that of the frame just made only so many of `all` bytes were taken: the rest is owed.
    pub fn owe(&mut self, taken: usize, all: usize) {
        self.owed = taken..all;
    }

    /// Whether a part of a message waits to be sent.
    #[inline]
    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// That part.
    pub fn owed(&self) -> &[u8] {
        &self.bytes[self.owed.clone()]
    }

    /// Told that so many more bytes of it were taken.
    pub fn paid(&mut self, bytes: usize) {
        self.owed.start += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `stream` in pieces of so many bytes and takes every message as soon as it is whole.
    fn fed(stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, NoMessage> {
        let (mut incoming, mut messages) = (Incoming::default(), Vec::new());
        let mut buffer = vec![0; MESSAGE_MAX_BYTES + 1];
        for bytes in stream.chunks(piece) {
            let mut left = bytes;
            while !left.is_empty() {
                let room = incoming.room();
                let fits = left.len().min(room.len());
                assert!(fits > 0, "there is always room for a message");
                room[..fits].copy_from_slice(&left[..fits]);
                incoming.came(fits);
                left = &left[fits..];
                while let Some(length) = incoming.take(&mut buffer)? {
                    messages.push(buffer[..length].to_vec());
                }
            }
        }
        assert!(incoming.is_empty());
        Ok(messages)
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let mut outgoing = Outgoing::default();
        let messages: Vec<Vec<u8>> =
            [24, 25, 128, 65_507, 24, 1_472].iter().enumerate().map(|(at, size)| vec![at as u8; *size]).collect();
        let mut stream = Vec::new();
        for message in &messages {
            stream.extend_from_slice(outgoing.frame(message).expect("no longer than a message"));
        }
        for piece in [1, 2, 3, 25, 26, 27, 1_000, 65_509, 70_000, stream.len()] {
            assert_eq!(fed(&stream, piece).as_deref(), Ok(messages.as_slice()), "pieces of {piece}");
        }
    }

    #[test]
    fn lengths_that_no_message_has_end_the_stream() {
        for (length, possible) in
            [(0_u16, false), (23, false), (24, true), (65_507, true), (65_508, false), (u16::MAX, false)]
        {
            let mut incoming = Incoming::default();
            incoming.room()[..2].copy_from_slice(&length.to_be_bytes());
            incoming.came(2);
            let taken = incoming.take(&mut [0; 8]);
            assert_eq!(taken, if possible { Ok(None) } else { Err(NoMessage) }, "{length}");
        }
        assert!(Outgoing::default().frame(&[0; 65_508]).is_none());
    }

    #[test]
    fn a_message_longer_than_the_buffer_is_cut_and_the_next_one_found() {
        let (mut incoming, mut outgoing) = (Incoming::default(), Outgoing::default());
        for byte in [1, 2] {
            let frame = outgoing.frame(&[byte; 30]).expect("a frame");
            incoming.room()[..frame.len()].copy_from_slice(frame);
            incoming.came(frame.len());
        }
        let mut buffer = [0; 10];
        for byte in [1, 2] {
            assert_eq!((incoming.take(&mut buffer), buffer), (Ok(Some(10)), [byte; 10]));
        }
    }

    #[test]
    fn what_was_not_taken_is_owed_until_it_is() {
        let mut outgoing = Outgoing::default();
        let all = outgoing.frame(&[7; 24]).expect("a frame").len();
        assert!(!outgoing.owes());
        outgoing.owe(1, all);
        assert_eq!(outgoing.owed()[0], 24, "the second byte of the length");
        outgoing.paid(1);
        assert_eq!(outgoing.owed(), [7; 24]);
        outgoing.paid(24);
        assert!(!outgoing.owes());
    }
}
