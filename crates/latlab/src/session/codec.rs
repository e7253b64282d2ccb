//! The encoding of probes and the decoding of answers, as the measuring loop uses it; and the codec for a plain UDP echo,
//! which returns datagrams unchanged: for devices that cannot run latlab.

use std::collections::BTreeMap;

use crate::plan::defaults::SIZE_MIN_BYTES;
use crate::probe::Seq;
use crate::units::{ReflectorClock, SenderClock, Stamp};

/// A genuine answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The probe that it answers.
    pub seq: Seq,
    /// The reflector's receive stamp.
    pub reflector_received: Option<Stamp<ReflectorClock>>,
    /// The reflector's send stamp.
    pub reflector_sent: Option<Stamp<ReflectorClock>>,
    /// The receive stamp of the reflector's kernel.
    pub reflector_rx_software: Option<Stamp<ReflectorClock>>,
    /// The CPU on which the reflector answered.
    pub reflector_cpu: Option<u16>,
}

/// Encodes probes and decodes answers. Pure: no socket, no clock.
pub trait ProbeCodec {
    /// The datagram of probe `seq`, ready to be sent. Called before the clock is read.
    fn encode(&mut self, seq: Seq) -> &[u8];

    /// The answer in `datagram`; `None` if it is not one of this session, which is counted. Called after the clock was
    /// read, which gave `received`.
    fn decode(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Option<Answer>;
}

/// Distinguishes probes from other programs' datagrams.
const MAGIC: [u8; 8] = *b"llecho 1";
/// Magic, nonce and sequence number, eight bytes each: the size of the smallest native probe.
const HEADER_BYTES: usize = SIZE_MIN_BYTES as usize;

/// The codec for an echo. A probe: 8 magic, 8 nonce of the run, 8 sequence number (big endian), zeros.
///
/// Nothing is authenticated and nothing is known of the far end; the nonce excludes answers to other runs.
#[derive(Debug)]
pub struct EchoCodec {
    probe: Box<[u8]>,
    newest: Option<u64>,
    foreign: u64,
    altered: u64,
    never_sent: u64,
}

impl EchoCodec {
    /// A codec for probes of `size_bytes`, at least 24 (checked by the plan).
    pub fn new(size_bytes: u32, nonce: [u8; 8]) -> EchoCodec {
        let mut probe = vec![0; (size_bytes as usize).max(HEADER_BYTES)].into_boxed_slice();
        probe[..8].copy_from_slice(&MAGIC);
        probe[8..16].copy_from_slice(&nonce);
        EchoCodec { probe, newest: None, foreign: 0, altered: 0, never_sent: 0 }
    }

    /// Datagrams that were no answers: reason → count, without zeros.
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
    fn only_a_sent_probe_that_returns_unchanged_is_an_answer() {
        let mut codec = EchoCodec::new(32, [9; 8]);
        let now = Stamp::from_nanos(0);
        let first = codec.encode(Seq(0)).to_vec();
        let second = codec.encode(Seq(1)).to_vec();
        assert_eq!(first.len(), 32);
        assert_eq!(codec.decode(&second, now).map(|answer| answer.seq), Some(Seq(1)));
        assert_eq!(codec.decode(&first, now).map(|answer| answer.seq), Some(Seq(0)));

        let other_run = EchoCodec::new(32, [8; 8]).encode(Seq(0)).to_vec();
        let mut unsent = second.clone();
        unsent[23] = 2;
        for stray in [&[][..], &other_run, &first[..31], &first[..16], &unsent] {
            assert_eq!(codec.decode(stray, now), None);
        }
        let expected = [("altered", 2), ("foreign", 2), ("never-sent", 1)];
        assert_eq!(codec.strays(), expected.map(|(reason, count)| (reason.to_owned(), count)).into());
    }
}
