//! The framing of the agent protocol: a preamble, then length-prefixed payloads (docs/agent-protocol.md). Pure.

/// The version of the format.
pub const FORMAT: u16 = 1;
pub const PAYLOAD_MAX_BYTES: usize = 1 << 20;
/// Output of a shell's start-up files that is skipped before the preamble.
pub(crate) const NOISE_MAX_BYTES: usize = 1 << 16;
/// The size of the read buffer.
pub(crate) const READ_BYTES: usize = 1 << 16;

const MARK: [u8; 8] = *b"\0llagent";
const PREAMBLE_BYTES: usize = 12;
/// Characters of foreign output that an error message quotes.
const QUOTED_CHARS: usize = 200;

/// The first bytes of each direction.
pub fn preamble() -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&MARK);
    bytes[8..10].copy_from_slice(&FORMAT.to_be_bytes());
    bytes
}

/// `payload` as a frame. The reader refuses payloads above [`PAYLOAD_MAX_BYTES`].
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), payload].concat()
}

/// An event that the decoder found in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameEvent {
    /// The preamble, with the version of the sender's format.
    Preamble(u16),
    /// The payload of a complete frame.
    Frame(Vec<u8>),
}

/// Why the stream cannot be decoded. It cannot be resynchronised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream does not begin with the preamble.
    #[error("the program that answers is not a latlab agent")]
    Foreign {
        /// The first characters of the stream, without control characters.
        seen: String,
    },
    /// A frame length of 0 or above the limit.
    #[error("a frame of `{bytes}` bytes")]
    Length {
        /// The length in the frame's header.
        bytes: u32,
    },
    /// The stream ended inside of a frame.
    #[error("an incomplete frame")]
    Truncated,
}

/// Decodes a stream that is read in pieces of any size. Total: every input gives events or an error. Holds at most one frame
/// and the bytes of the last read.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    noise_bytes: usize,
    preamble_read: bool,
}

impl FrameDecoder {
    /// Skips up to `noise_bytes` before the preamble.
    pub const fn after_noise(noise_bytes: usize) -> FrameDecoder {
        FrameDecoder { buffer: Vec::new(), noise_bytes, preamble_read: false }
    }

    /// Adds `bytes` that were read, at most `READ_BYTES`. Call [`next_event`](Self::next_event) until it returns `None`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event; `None` if it is incomplete.
    ///
    /// # Errors
    /// [`FrameError`]; every later call fails too.
    pub fn next_event(&mut self) -> Result<Option<FrameEvent>, FrameError> {
        if self.preamble_read { self.frame() } else { self.preamble() }
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// It ended inside of a frame, or after bytes without a complete preamble.
    pub fn end(&self) -> Result<(), FrameError> {
        match (self.preamble_read, self.buffer.is_empty()) {
            (_, true) => Ok(()),
            (true, false) => Err(FrameError::Truncated),
            (false, false) => Err(self.foreign()),
        }
    }

    fn preamble(&mut self) -> Result<Option<FrameEvent>, FrameError> {
        let found = self.buffer.windows(MARK.len()).position(|window| window == MARK);
        match found {
            Some(noise) if noise <= self.noise_bytes => {
                drop(self.buffer.drain(..noise));
                if self.buffer.len() < PREAMBLE_BYTES {
                    return Ok(None);
                }
                let format = u16::from_be_bytes([self.buffer[8], self.buffer[9]]);
                drop(self.buffer.drain(..PREAMBLE_BYTES));
                self.preamble_read = true;
                Ok(Some(FrameEvent::Preamble(format)))
            }
            None if self.preamble_may_follow() => Ok(None),
            _ => Err(self.foreign()),
        }
    }

    /// Whether the bytes before a mark that is read in part are still within the permitted noise.
    fn preamble_may_follow(&self) -> bool {
        let mark_part = (0..MARK.len()).rev().find(|bytes| self.buffer.ends_with(&MARK[..*bytes])).unwrap_or(0);
        self.buffer.len() - mark_part <= self.noise_bytes
    }

    fn frame(&mut self) -> Result<Option<FrameEvent>, FrameError> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let declared = u32::from_be_bytes(*length);
        let bytes = declared as usize;
        if bytes == 0 || bytes > PAYLOAD_MAX_BYTES {
            return Err(FrameError::Length { bytes: declared });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        let payload = rest[..bytes].to_vec();
        drop(self.buffer.drain(..4 + bytes));
        Ok(Some(FrameEvent::Frame(payload)))
    }

    fn foreign(&self) -> FrameError {
        let text = String::from_utf8_lossy(&self.buffer);
        let plain = text.chars().take(QUOTED_CHARS).map(|char| if char.is_control() { ' ' } else { char });
        FrameError::Foreign { seen: plain.collect::<String>().trim().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after_preamble() -> FrameDecoder {
        let mut decoder = FrameDecoder::after_noise(0);
        decoder.push(&preamble());
        assert_eq!(decoder.next_event(), Ok(Some(FrameEvent::Preamble(FORMAT))));
        decoder
    }

    #[test]
    fn preamble_and_frame_have_the_documented_bytes() {
        assert_eq!(preamble(), [0, 0x6c, 0x6c, 0x61, 0x67, 0x65, 0x6e, 0x74, 0, 1, 0, 0]);
        assert_eq!(framed(b"{}"), [0, 0, 0, 2, b'{', b'}']);
    }

    #[test]
    fn noise_is_skipped_up_to_its_limit() {
        for (noise, allowed, fits) in
            [(0, 0, true), (1, 0, false), (10, 10, true), (11, 10, false), (1 << 16, 1 << 16, true)]
        {
            let mut decoder = FrameDecoder::after_noise(allowed);
            decoder.push(&vec![b'x'; noise]);
            let early = decoder.next_event();
            decoder.push(&preamble());
            assert_eq!(
                early == Ok(None) && decoder.next_event() == Ok(Some(FrameEvent::Preamble(FORMAT))),
                fits,
                "{noise}"
            );
        }
        let mut decoder = FrameDecoder::after_noise(4);
        decoder.push(b"bash: latlab: command not found\n");
        let Err(FrameError::Foreign { seen }) = decoder.next_event() else { panic!("{decoder:?}") };
        assert_eq!(seen, "bash: latlab: command not found");
    }

    #[test]
    fn an_invalid_length_is_refused_before_memory_is_reserved() {
        for (length, fits) in [(0u32, false), (1, true), (1 << 20, true), ((1 << 20) + 1, false), (u32::MAX, false)] {
            let mut decoder = after_preamble();
            decoder.push(&length.to_be_bytes());
            let expected = if fits { Ok(None) } else { Err(FrameError::Length { bytes: length }) };
            assert_eq!(decoder.next_event(), expected);
            assert!(decoder.buffer.capacity() < 1_024);
        }
    }

    #[test]
    fn a_stream_may_end_between_frames_but_not_inside_one() {
        let mut decoder = after_preamble();
        assert_eq!(decoder.end(), Ok(()));
        decoder.push(&framed(b"\"disarm\"")[..7]);
        assert_eq!((decoder.next_event(), decoder.end()), (Ok(None), Err(FrameError::Truncated)));
    }

    proptest! {
        #[test]
        fn the_frames_do_not_depend_on_how_the_stream_is_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..20),
            noise in prop::collection::vec(1u8.., 0..100),
            cut in 1usize..200,
        ) {
            let frames: Vec<u8> = payloads.iter().flat_map(|payload| framed(payload)).collect();
            let stream = [&noise[..], &preamble(), &frames].concat();
            let mut decoder = FrameDecoder::after_noise(NOISE_MAX_BYTES);
            let mut events = Vec::new();
            for bytes in stream.chunks(cut) {
                decoder.push(bytes);
                while let Some(event) = decoder.next_event().expect("well formed") {
                    events.push(event);
                }
            }
            let expected = payloads.into_iter().map(FrameEvent::Frame);
            prop_assert_eq!(events, [FrameEvent::Preamble(FORMAT)].into_iter().chain(expected).collect::<Vec<_>>());
            prop_assert_eq!(decoder.end(), Ok(()));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..4_000)) {
            let mut decoder = after_preamble();
            decoder.push(&bytes);
            while let Ok(Some(event)) = decoder.next_event() {
                let FrameEvent::Frame(payload) = event else { panic!("a second preamble") };
                prop_assert!(!payload.is_empty() && payload.len() < bytes.len());
            }
        }
    }
}
