//! The bytes between this end and an agent: a preamble, then frames (docs/agent-protocol.md). Pure.

/// What this latlab speaks.
pub const FORMAT: u16 = 1;
/// The longest payload.
pub const PAYLOAD_MAX_BYTES: usize = 1 << 20;
/// How much may come before the mark where shells may print.
pub const NOISE_MAX_BYTES: usize = 1 << 16;
/// How much is read at a time.
pub const READ_BYTES: usize = 1 << 16;

const MARK: [u8; 8] = *b"\0llagent";
const PREAMBLE_BYTES: usize = 12;
/// Bytes that are shown of an output that is not latlab's.
const SEEN_LETTERS: usize = 200;

/// The first bytes of each direction.
pub fn preamble() -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&MARK);
    bytes[8..10].copy_from_slice(&FORMAT.to_be_bytes());
    bytes
}

/// `payload` as a frame. The messages of this module are far below the limit; a longer one would be refused by
/// its reader.
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), payload].concat()
}

/// One thing that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameEvent {
    /// The preamble, with the format that the other end speaks.
    Preamble(u16),
    /// A payload.
    Frame(Vec<u8>),
}

/// Why what came cannot be read; nothing after it can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It does not begin as a latlab does.
    #[error("what answers is no latlab agent")]
    Foreign {
        /// How it begins, as far as that is text.
        seen: String,
    },
    /// No frame has that length.
    #[error("a frame of `{bytes}` bytes")]
    Length {
        /// The length it claims.
        bytes: u32,
    },
    /// The stream ended inside of a frame.
    #[error("half a frame")]
    Half,
}

/// Puts what was read together. Total: whatever comes, it is a piece, the wish for more, or an error; and it never
/// holds more than one frame and what was read last.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    noise_bytes: usize,
    met: bool,
}

impl FrameDecoder {
    /// The preamble may come after `noise_bytes` of something else.
    pub const fn after_noise(noise_bytes: usize) -> FrameDecoder {
        FrameDecoder { buffer: Vec::new(), noise_bytes, met: false }
    }

    /// Takes what was read, at most [`READ_BYTES`] at a time; ask for the next piece until there is none.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next piece; none before more was read.
    ///
    /// # Errors
    /// [`FrameError`]; from then on there is nothing to be had.
    pub fn next_piece(&mut self) -> Result<Option<FrameEvent>, FrameError> {
        if self.met { self.frame() } else { self.preamble() }
    }

    /// The stream is at its end.
    ///
    /// # Errors
    /// It ended inside of a frame, or before the preamble.
    pub fn end(&self) -> Result<(), FrameError> {
        match (self.met, self.buffer.is_empty()) {
            (_, true) => Ok(()),
            (true, false) => Err(FrameError::Half),
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
                self.met = true;
                Ok(Some(FrameEvent::Preamble(format)))
            }
            None if self.may_still_begin() => Ok(None),
            _ => Err(self.foreign()),
        }
    }

    /// Whether the mark can still come in time: its part that was read lies within the noise that is allowed.
    fn may_still_begin(&self) -> bool {
        let begun = (0..MARK.len()).rev().find(|bytes| self.buffer.ends_with(&MARK[..*bytes])).unwrap_or(0);
        self.buffer.len() - begun <= self.noise_bytes
    }

    fn frame(&mut self) -> Result<Option<FrameEvent>, FrameError> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let claimed = u32::from_be_bytes(*length);
        let bytes = claimed as usize;
        if bytes == 0 || bytes > PAYLOAD_MAX_BYTES {
            return Err(FrameError::Length { bytes: claimed });
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
        let plain = text.chars().take(SEEN_LETTERS).map(|sign| if sign.is_control() { ' ' } else { sign });
        FrameError::Foreign { seen: plain.collect::<String>().trim().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn met() -> FrameDecoder {
        let mut inbox = FrameDecoder::after_noise(0);
        inbox.push(&preamble());
        assert_eq!(inbox.next_piece(), Ok(Some(FrameEvent::Preamble(FORMAT))));
        inbox
    }

    #[test]
    fn the_preamble_is_as_documented() {
        assert_eq!(preamble(), [0, 0x6c, 0x6c, 0x61, 0x67, 0x65, 0x6e, 0x74, 0, 1, 0, 0]);
        assert_eq!(framed(b"{}"), [0, 0, 0, 2, b'{', b'}']);
    }

    #[test]
    fn noise_is_skipped_up_to_its_limit() {
        for (noise, allowed, fits) in
            [(0, 0, true), (1, 0, false), (10, 10, true), (11, 10, false), (1 << 16, 1 << 16, true)]
        {
            let mut inbox = FrameDecoder::after_noise(allowed);
            inbox.push(&vec![b'x'; noise]);
            let early = inbox.next_piece();
            inbox.push(&preamble());
            assert_eq!(
                early == Ok(None) && inbox.next_piece() == Ok(Some(FrameEvent::Preamble(FORMAT))),
                fits,
                "{noise}"
            );
        }
        let mut inbox = FrameDecoder::after_noise(4);
        inbox.push(b"bash: latlab: command not found\n");
        let Err(FrameError::Foreign { seen }) = inbox.next_piece() else { panic!("{inbox:?}") };
        assert_eq!(seen, "bash: latlab: command not found");
    }

    #[test]
    fn an_impossible_length_is_refused_before_anything_is_held() {
        for (length, fits) in [(0u32, false), (1, true), (1 << 20, true), ((1 << 20) + 1, false), (u32::MAX, false)] {
            let mut inbox = met();
            inbox.push(&length.to_be_bytes());
            let expected = if fits { Ok(None) } else { Err(FrameError::Length { bytes: length }) };
            assert_eq!(inbox.next_piece(), expected);
            assert!(inbox.buffer.capacity() < 1_024);
        }
    }

    #[test]
    fn an_end_inside_of_a_frame_is_told_from_one_between_frames() {
        let mut inbox = met();
        assert_eq!(inbox.end(), Ok(()));
        inbox.push(&framed(b"\"disarm\"")[..7]);
        assert_eq!((inbox.next_piece(), inbox.end()), (Ok(None), Err(FrameError::Half)));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_frames_come(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..20),
            noise in prop::collection::vec(1u8.., 0..100),
            cut in 1usize..200,
        ) {
            let frames: Vec<u8> = payloads.iter().flat_map(|payload| framed(payload)).collect();
            let stream = [&noise[..], &preamble(), &frames].concat();
            let mut inbox = FrameDecoder::after_noise(NOISE_MAX_BYTES);
            let mut pieces = Vec::new();
            for bytes in stream.chunks(cut) {
                inbox.push(bytes);
                while let Some(piece) = inbox.next_piece().expect("well formed") {
                    pieces.push(piece);
                }
            }
            let expected = payloads.into_iter().map(FrameEvent::Frame);
            prop_assert_eq!(pieces, [FrameEvent::Preamble(FORMAT)].into_iter().chain(expected).collect::<Vec<_>>());
            prop_assert_eq!(inbox.end(), Ok(()));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..4_000)) {
            let mut inbox = met();
            inbox.push(&bytes);
            while let Ok(Some(piece)) = inbox.next_piece() {
                let FrameEvent::Frame(payload) = piece else { panic!("one preamble is enough") };
                prop_assert!(!payload.is_empty() && payload.len() < bytes.len());
            }
        }
    }
}
