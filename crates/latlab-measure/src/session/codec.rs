//! Codecs of the measuring loop, which encode probes and decode answers: [`NativeSession`] for an open session, which
//! it also closes, and [`EchoCodec`] for devices that cannot run latlab but return datagrams unchanged (UDP echo).

use std::collections::BTreeMap;

use crate::clock::Clock;
use crate::facts::ReflectorReport;
use crate::plan::defaults::SIZE_MIN_BYTES;
use crate::probe::Seq;
use crate::transport::Transport;
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};
use crate::wire::{
    Accept, AnswerFacts, CLOSE_BYTES, Close, Codes, Malformed, MessageHeader, MessageType, NONCE_BYTES, Nonce,
    POLL_BYTES, ProbeHeader, REPORT_BYTES, Report, SETUP_HEADER_BYTES, SealedAnswer, SessionKeys, StreamPoll,
    StreamTally, TagKey, Terms, extend_sent_counter, extend_stamp,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub seq: Seq,
    pub reflector_received: Option<Stamp<ReflectorClock>>,
    pub reflector_sent: Option<Stamp<ReflectorClock>>,
    /// The receive stamp of the reflector's kernel.
    pub reflector_rx_software: Option<Stamp<ReflectorClock>>,
    pub reflector_cpu: Option<u16>,
    /// An earlier probe, and from the reflector's send stamp of its answer to the stamp of its driver.
    pub passage: Option<(Seq, Nanos)>,
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
    is_answered: bool,
}

impl EchoCodec {
    /// A codec for probes of `size_bytes`, at least 24 (checked by the plan).
    pub fn new(size_bytes: u32, nonce: [u8; 8]) -> EchoCodec {
        let mut probe = vec![0; (size_bytes as usize).max(HEADER_BYTES)].into_boxed_slice();
        probe[..8].copy_from_slice(&MAGIC);
        probe[8..16].copy_from_slice(&nonce);
        EchoCodec { probe, newest: None, foreign: 0, altered: 0, never_sent: 0, is_answered: false }
    }

    /// Whether there were probes, and none was answered.
    pub fn is_silent(&self) -> bool {
        self.newest.is_some() && !self.is_answered
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
        self.is_answered = true;
        Some(Answer {
            seq: Seq(seq),
            reflector_received: None,
            reflector_sent: None,
            reflector_rx_software: None,
            reflector_cpu: None,
            passage: None,
        })
    }
}

/// CLOSE is sent at these times, until a REPORT comes …
const CLOSE_AT_MS: [i64; 3] = [0, 200, 500];
/// … or this time has passed.
const CLOSE_TIMEOUT: Nanos = Nanos::from_millis(1_000);
/// An answer updates the offset of the reflector's clock, unless it would move the offset back by more than this: such
/// an answer was late. It may move the offset forward by any amount, since an answer cannot be early.
const LATE_NS: i64 = 1_000_000_000;

crate::worded! {
    /// Why a datagram was no answer of this session.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    enum Stray: word {
        Foreign = "foreign",
        /// An answer of another session.
        OtherSession = "other-session",
        /// Longer or shorter than its probe.
        WrongSize = "wrong-size",
        /// To a probe that was never sent.
        NeverSent = "never-sent",
        Forged = "forged",
    }
}

#[derive(Debug)]
pub struct NativeSession {
    session: u16,
    nonce: Nonce,
    terms: Terms,
    keys: Option<SessionKeys>,
    probe: Box<[u8]>,
    newest: Option<u64>,
    /// Reflector's clock − sender's clock, good to about the delay of the path: only for extending stamps.
    offset_ns: i64,
    /// POLLs sent in this session; those up to `confirmed` were sent to confirm it.
    polls: u64,
    confirmed: u64,
    strays: [u64; Stray::ALL.len()],
}

impl NativeSession {
    /// The session granted by `accept`, which came at `received`.
    pub(super) fn new(accept: &Accept, keys: Option<SessionKeys>, received: Stamp<SenderClock>) -> NativeSession {
        NativeSession {
            session: accept.session,
            nonce: accept.nonce,
            terms: accept.terms,
            keys,
            probe: vec![0; accept.terms.size_bytes as usize].into_boxed_slice(),
            newest: None,
            offset_ns: accept.anchor.as_nanos().wrapping_sub(received.as_nanos()),
            polls: 0,
            confirmed: 0,
            strays: [0; Stray::ALL.len()],
        }
    }

    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether probes have a tag.
    pub fn authenticated(&self) -> bool {
        self.keys.is_some()
    }

    /// The number of the session, which the reflector chose.
    pub fn number(&self) -> u16 {
        self.session
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    #[inline]
    pub(super) fn keys(&self) -> Option<&SessionKeys> {
        self.keys.as_ref()
    }

    /// The codes of CLOSE, REPORT, POLL and TALLY.
    pub(super) fn close_codes(&self) -> Codes {
        self.keys.as_ref().map_or(Codes::None, |keys| keys.close.clone())
    }

    /// Writes a new POLL that gives `credit_bytes`, and returns its number.
    pub(super) fn write_poll(&mut self, credit_bytes: u64, to: &mut [u8; POLL_BYTES]) -> u64 {
        self.polls += 1;
        let (session, nonce, number) = (self.session, self.nonce, self.polls);
        StreamPoll { session, nonce, number, wants_cpu: true, credit_bytes }.write(&self.close_codes(), to);
        self.polls
    }

    /// The session is confirmed: TALLYs that reply to the POLLs so far are not results.
    pub(super) fn set_confirmed(&mut self) {
        self.confirmed = self.polls;
    }

    /// The TALLY in `datagram`, if it is a genuine reply to a POLL of this session since that was confirmed.
    pub(super) fn decode_tally(&self, datagram: &[u8]) -> Option<StreamTally> {
        let tally = StreamTally::parse(datagram).ok()?;
        let ours = tally.session == self.number() && tally.nonce == *self.nonce();
        let requested = tally.number > self.confirmed && tally.number <= self.polls;
        (ours && requested && self.close_codes().verify(datagram)).then_some(tally)
    }

    /// Datagrams that were no answers: reason → count, without zeros.
    pub fn strays(&self) -> BTreeMap<String, u64> {
        let counts = Stray::ALL.into_iter().map(|stray| (stray.word().to_owned(), self.strays[stray as usize]));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Ends the session. `None` if no REPORT comes: the session then ends by its idle time.
    pub fn close(self, transport: &mut impl Transport, clock: &impl Clock) -> Option<ReflectorReport> {
        let codes = self.close_codes();
        let mut datagram = [0; CLOSE_BYTES];
        Close { session: self.session, nonce: self.nonce, wants_socket_drops: true }.write(&codes, &mut datagram);
        // At least as long as a probe, so that no late answer is truncated to the length of another message.
        let mut buffer = vec![0; self.probe.len().max(REPORT_BYTES) + 1];
        let start = clock.now();
        for (attempt, at) in CLOSE_AT_MS.into_iter().enumerate() {
            debug_assert!(at < CLOSE_TIMEOUT.0);
            // A CLOSE that cannot be sent is repeated like a lost one.
            let _ = transport.send(&datagram);
            let until = CLOSE_AT_MS.get(attempt + 1).map_or(CLOSE_TIMEOUT, |next| Nanos::from_millis(*next));
            while let Some(left) = Some(start + until - clock.now()).filter(|left| left.0 > 0) {
                let received = transport.receive(&mut buffer, left).ok()?;
                let report = received.and_then(|bytes| self.decode_report(&buffer[..bytes], &codes));
                if report.is_some() {
                    return report;
                }
            }
        }
        None
    }

    fn decode_report(&self, datagram: &[u8], codes: &Codes) -> Option<ReflectorReport> {
        let report = Report::parse(datagram).ok()?;
        let ours = report.session == self.session && report.nonce == self.nonce && codes.verify(datagram);
        ours.then(|| ReflectorReport {
            answered: report.answered,
            replayed: report.seen_before.saturating_add(report.left_window),
            dropped: [("forged", report.forged), ("wrong-size", report.wrong_size)]
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.to_owned(), count))
                .collect(),
            socket_drops: report.socket_drops,
        })
    }

    #[inline]
    fn decode_answer(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Answer, Stray> {
        let sealed = SealedAnswer::parse(datagram).map_err(|malformed| match malformed {
            Malformed::Length => Stray::WrongSize,
            _ => Stray::Foreign,
        })?;
        if sealed.session() != self.session {
            return Err(Stray::OtherSession);
        }
        if datagram.len() != self.probe.len() {
            return Err(Stray::WrongSize);
        }
        let newest = self.newest.ok_or(Stray::NeverSent)?;
        let counter = extend_sent_counter(newest, sealed.counter_low()).ok_or(Stray::NeverSent)?;
        let facts = sealed.open(self.answer_key(), counter).ok_or(Stray::Forged)?;
        Ok(self.answer(counter, &facts, received))
    }

    #[inline]
    fn answer(&mut self, counter: u64, facts: &AnswerFacts, received: Stamp<SenderClock>) -> Answer {
        let expected = received.as_nanos().wrapping_add(self.offset_ns);
        let reflector_received =
            facts.received.unwrap_or_else(|| Stamp::from_nanos(extend_stamp(expected, facts.received_low)));
        self.update_offset(reflector_received, received);
        Answer {
            seq: Seq(counter),
            reflector_received: Some(reflector_received),
            reflector_sent: facts.dwell.map(|dwell| reflector_received + dwell),
            reflector_rx_software: facts.kernel_lead.map(|lead| reflector_received - lead),
            reflector_cpu: facts.cpu,
            passage: facts.passage.and_then(|passage| {
                let counter = extend_sent_counter(counter, passage.counter_low)?;
                Some((Seq(counter), passage.lag))
            }),
        }
    }

    /// Follows the drift between the two clocks.
    #[inline]
    fn update_offset(&mut self, reflector: Stamp<ReflectorClock>, received: Stamp<SenderClock>) {
        let offset_ns = reflector.as_nanos().wrapping_sub(received.as_nanos());
        if offset_ns.wrapping_sub(self.offset_ns) >= -LATE_NS {
            self.offset_ns = offset_ns;
        }
    }

    /// Whether `datagram` is a reply of this session's set-up that was repeated or late.
    #[cold]
    fn is_setup_reply(&self, datagram: &[u8]) -> bool {
        let replies = [MessageType::Cookie, MessageType::Accept, MessageType::Tally];
        let nonce = datagram.get(SETUP_HEADER_BYTES..SETUP_HEADER_BYTES + NONCE_BYTES);
        let message = MessageHeader::parse(datagram).map(|header| header.message);
        message.is_ok_and(|message| replies.contains(&message)) && nonce == Some(&self.nonce[..])
    }

    #[inline]
    fn answer_key(&self) -> Option<&TagKey> {
        self.keys.as_ref().filter(|_| !self.terms.in_driver).map(|keys| &keys.answers)
    }
}

impl ProbeCodec for NativeSession {
    #[inline]
    fn encode(&mut self, seq: Seq) -> &[u8] {
        self.newest = Some(self.newest.map_or(seq.0, |newest| newest.max(seq.0)));
        let key = self.keys.as_ref().filter(|_| !self.terms.in_driver).map(|keys| &keys.probes);
        ProbeHeader::write_probe(self.session, seq.0, key, &mut self.probe);
        &self.probe
    }

    #[inline]
    fn decode(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Option<Answer> {
        match self.decode_answer(datagram, received) {
            Ok(answer) => Some(answer),
            Err(stray) => {
                self.strays[stray as usize] += u64::from(!self.is_setup_reply(datagram));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Reflection, SetupKey};

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

    const OFFSET_NS: i64 = 7_000_000_000_000_000;

    fn session(size_bytes: u32) -> NativeSession {
        let terms = Terms { size_bytes, ..Terms::default() };
        let accept = Accept {
            session: 7,
            nonce: [1; 16],
            reflector_nonce: [2; 16],
            anchor: Stamp::from_nanos(OFFSET_NS),
            terms,
        };
        let keys = SetupKey::derive(&[3; 16]).session(&[1; 16], &[2; 16], 7);
        NativeSession::new(&accept, Some(keys), Stamp::from_nanos(0))
    }

    /// The answer to `seq`, reflected when the reflector's clock showed `received_ns`, 250 ns later sent.
    fn answer(session: &mut NativeSession, seq: u64, received_ns: i64) -> Vec<u8> {
        let mut datagram = session.encode(Seq(seq)).to_vec();
        let key = session.keys.as_ref().map(|keys| keys.answers);
        let received = Stamp::from_nanos(received_ns);
        let (kernel_received, passage) = (Some(received - Nanos(90)), None);
        Reflection { session: 7, counter: seq, key, received, stamped: false, kernel_received, passage }.write(
            received + Nanos(250),
            Some(3),
            &mut datagram,
        );
        datagram
    }

    #[test]
    fn stamps_are_complete_whatever_the_size_of_probes() {
        for size in [24, 32, 40, 64] {
            let mut session = session(size);
            for (seq, sender_ns) in [(0u64, 1_000i64), (1, 40_000_000_000), (1 << 32, 200_000_000_000)] {
                let reflector_ns = sender_ns + OFFSET_NS;
                let datagram = answer(&mut session, seq, reflector_ns);
                let decoded = session.decode(&datagram, Stamp::from_nanos(sender_ns + 20_000)).expect("genuine");
                assert_eq!(decoded.seq, Seq(seq));
                assert_eq!(decoded.reflector_received, Some(Stamp::from_nanos(reflector_ns)), "{size} bytes");
                assert_eq!(decoded.reflector_sent, Some(Stamp::from_nanos(reflector_ns + 250)));
                assert_eq!(decoded.reflector_cpu, (size >= 40).then_some(3));
                assert_eq!(decoded.reflector_rx_software, (size >= 40).then_some(Stamp::from_nanos(reflector_ns - 90)));
            }
        }
    }

    #[test]
    fn stamps_are_extended_correctly_for_late_answers_and_drifting_clocks() {
        let mut session = session(24);
        let mut reflector_ns = OFFSET_NS;
        // 500 ppm over three hours: 5.4 s of drift, more than half the range of 32 bits.
        for step in 0..10_800i64 {
            let sender_ns = step * 1_000_000_000;
            reflector_ns += 1_000_500_000;
            // Every hundredth answer is 50 s late.
            let late_ns = if step % 100 == 99 { 50_000_000_000 } else { 0 };
            let datagram = answer(&mut session, step as u64, reflector_ns - late_ns);
            let decoded = session.decode(&datagram, Stamp::from_nanos(sender_ns)).expect("genuine");
            assert_eq!(decoded.reflector_received, Some(Stamp::from_nanos(reflector_ns - late_ns)), "{step}");
        }
    }

    #[test]
    fn strays_are_counted_by_reason() {
        let mut session = session(24);
        let now = Stamp::from_nanos(0);
        let genuine = answer(&mut session, 5, OFFSET_NS);
        let with = |at: usize, value: u8| {
            let mut datagram = genuine.clone();
            datagram[at] ^= value;
            datagram
        };
        for datagram in
            [b"".to_vec(), with(0, 0x03), with(3, 1), with(7, 2), with(20, 1), [&genuine[..], &[0]].concat()]
        {
            assert_eq!(session.decode(&datagram, now), None);
        }
        let probe = session.encode(Seq(5)).to_vec();
        assert_eq!(session.decode(&probe, now), None, "a probe is no answer");
        let strays = session.strays();
        let expected = [("foreign", 2), ("forged", 1), ("never-sent", 1), ("other-session", 1), ("wrong-size", 2)];
        assert_eq!(strays, expected.map(|(reason, count)| (reason.to_owned(), count)).into());
        assert!(session.decode(&genuine, now).is_some(), "strays do not change the session");
    }
}
