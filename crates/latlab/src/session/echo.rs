//! Probes for a plain UDP echo, which returns what it gets: for devices that cannot run latlab.

use std::collections::BTreeMap;

use super::{Answer, ProbeCodec};
use crate::plan::defaults::SIZE_MIN_BYTES;
use crate::probe::Seq;
use crate::units::{SenderClock, Stamp};

/// Keeps other programs' datagrams out.
const MAGIC: [u8; 8] = *b"llecho 1";
/// Mark, nonce and sequence number, eight bytes each: as small as a native probe.
const HEAD_BYTES: usize = SIZE_MIN_BYTES as usize;

/// The dialogue with an echo: 8 mark, 8 the run's nonce, 8 sequence number (big endian), zeros.
///
/// Nothing is authenticated and nothing is known of the far end; the nonce keeps answers to other runs out.
#[derive(Debug)]
pub struct EchoCodec {
    probe: Box<[u8]>,
    newest: Option<u64>,
    foreign: u64,
    altered: u64,
    never_sent: u64,
}

impl EchoCodec {
    /// A dialogue with probes of `size_bytes`, at least 24, which the plan has checked.
    pub fn new(size_bytes: u32, nonce: [u8; 8]) -> EchoCodec {
        let mut probe = vec![0; (size_bytes as usize).max(HEAD_BYTES)].into_boxed_slice();
        probe[..8].copy_from_slice(&MAGIC);
        probe[8..16].copy_from_slice(&nonce);
        EchoCodec { probe, newest: None, foreign: 0, altered: 0, never_sent: 0 }
    }

    /// Datagrams that were no answers: reason → count, only reasons seen.
    pub fn strays(&self) -> BTreeMap<String, u64> {
        let counts = [("altered", self.altered), ("foreign", self.foreign), ("never-sent", self.never_sent)];
        counts.into_iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count)).collect()
    }
}

impl ProbeCodec for EchoCodec {
    #[inline]
    fn encode(&mut self, seq: Seq) -> &[u8] {
        self.newest = Some(self.newest.map_or(seq.0, |newest| newest.max(seq.0)));
        self.probe[16..24].copy_from_slice(&seq.0.to_be_bytes());
        &self.probe
    }

    #[inline]
    fn decode(&mut self, datagram: &[u8], _received: Stamp<SenderClock>) -> Option<Answer> {
        if datagram.get(..16) != self.probe.get(..16) {
            self.foreign += 1;
            return None;
        }
        let (Some(seq), true) = (datagram[16..].first_chunk::<8>(), datagram.len() == self.probe.len()) else {
            self.altered += 1;
            return None;
        };
        let seq = u64::from_be_bytes(*seq);
        if self.newest.is_none_or(|newest| seq > newest) {
            self.never_sent += 1;
            return None;
        }
        Some(Answer {
            seq: Seq(seq),
            reflector_received: None,
            reflector_sent: None,
            reflector_rx_software: None,
            reflector_cpu: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_unchanged_is_an_answer_and_nothing_else() {
        let mut dialogue = EchoCodec::new(32, [9; 8]);
        let now = Stamp::from_nanos(0);
        let first = dialogue.encode(Seq(0)).to_vec();
        let second = dialogue.encode(Seq(1)).to_vec();
        assert_eq!(first.len(), 32);
        assert_eq!(dialogue.decode(&second, now).map(|answer| answer.seq), Some(Seq(1)));
        assert_eq!(dialogue.decode(&first, now).map(|answer| answer.seq), Some(Seq(0)));

        let other_run = EchoCodec::new(32, [8; 8]).encode(Seq(0)).to_vec();
        let mut unsent = second.clone();
        unsent[23] = 2;
        for stray in [&[][..], &other_run, &first[..31], &first[..16], &unsent] {
            assert_eq!(dialogue.decode(stray, now), None);
        }
        let expected = [("altered", 2), ("foreign", 2), ("never-sent", 1)];
        assert_eq!(dialogue.strays(), expected.map(|(reason, count)| (reason.to_owned(), count)).into());
    }
}
