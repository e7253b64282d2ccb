//! Probes and answers: 16 bytes of header, 8 of tag, and in longer answers more facts of the reflector.
//!
//! ```text
//! 0 type  1 flags  2 session  4 counter, low half  8 receive stamp, low 32 bits  12 dwell  16 tag
//! 24 receive stamp, full  32 kernel lead  36 cpu  38 zero  40 passage  48 …
//! ```

use super::{Malformed, MessageType, TagKey, put, tags_equal, take};
use crate::units::{Nanos, ReflectorClock, Stamp};

pub const PROBE_MIN_BYTES: usize = 24;
/// From this size on an answer carries the receive stamp in full.
pub const FULL_STAMP_MIN_BYTES: usize = 32;
/// From this size on an answer carries the reflector's kernel receive stamp and CPU.
pub const KERNEL_STAMP_MIN_BYTES: usize = 40;
/// From this size on an answer can carry the passage of an earlier one.
pub const PASSAGE_MIN_BYTES: usize = 48;

const TAG_AT: usize = 16;
const PASSAGE_AT: usize = 40;
pub(super) const FLAG_TAGGED: u8 = 0x80;
const FLAG_KERNEL: u8 = 0x40;
/// In an answer: bytes 36 and 37 are the CPU that answered.
pub(crate) const FLAG_CPU: u8 = 0x20;
/// In an answer: bytes 40 to 47 are the passage of an earlier answer.
const FLAG_PASSAGE: u8 = 0x10;
const FLAGS_STAMP: u8 = 0x0f;
const SATURATED: u32 = u32::MAX;

/// The first eight bytes of a probe or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeHeader {
    /// Probe, answer or a stream's packet.
    pub message: MessageType,
    /// Flags: 0x80 tagged; in answers 0x40 kernel lead, 0x20 CPU, 0x10 passage, 0x0f bits 35 to 32 of the receive stamp.
    pub flags: u8,
    pub session: u16,
    /// Low half of the counter.
    pub counter_low: u32,
}

impl ProbeHeader {
    /// Reads the header of the `message` in `datagram`.
    ///
    /// # Errors
    /// [`Malformed`] if it is shorter than the smallest probe, another message, or has undefined flags.
    #[inline]
    pub fn parse(datagram: &[u8], message: MessageType) -> Result<ProbeHeader, Malformed> {
        if datagram.len() < PROBE_MIN_BYTES {
            return Err(Malformed::Length);
        }
        let word = u64::from_be_bytes(take(datagram, 0));
        let (found, flags) = ((word >> 56) as u8, (word >> 48) as u8);
        if found != message as u8 {
            return Err(Malformed::Type);
        }
        let known = if message == MessageType::Answer { 0xff } else { FLAG_TAGGED };
        if flags & !known != 0 {
            return Err(Malformed::Value);
        }
        Ok(ProbeHeader { message, flags, session: (word >> 32) as u16, counter_low: word as u32 })
    }

    /// Whether its flags announce a tag.
    #[inline]
    pub const fn tagged(&self) -> bool {
        self.flags & FLAG_TAGGED != 0
    }

    /// Whether the tag of `datagram` is correct under `key` for the full `counter`; without a key: whether it has none.
    #[inline]
    pub fn verify(&self, key: Option<&TagKey>, counter: u64, datagram: &[u8]) -> bool {
        let tag = u64::from_be_bytes(take(datagram, TAG_AT));
        match key {
            Some(key) => self.tagged() && tags_equal(tag, tag_of(key, counter, datagram)),
            None => !self.tagged() && tag == 0,
        }
    }

    /// Writes probe `counter` of `session` into `datagram`, at least 24 bytes, and tags it.
    ///
    /// The bytes from 24 on are padding: not written, and not covered by the tag.
    #[inline]
    pub fn write_probe(session: u16, counter: u64, key: Option<&TagKey>, datagram: &mut [u8]) {
        Self::write_request(MessageType::Probe, session, counter, key, datagram);
    }

    /// Writes DATA packet `counter` of `session` into `datagram`, as [`ProbeHeader::write_probe`].
    #[inline]
    pub fn write_data(session: u16, counter: u64, key: Option<&TagKey>, datagram: &mut [u8]) {
        Self::write_request(MessageType::Data, session, counter, key, datagram);
    }

    /// Changes the DATA packet in `datagram`, which [`ProbeHeader::write_data`] has written for the same session and key, to
    /// packet `counter`: only counter and tag are written.
    #[inline]
    pub(crate) fn renumber_data(counter: u64, key: Option<&TagKey>, datagram: &mut [u8]) {
        put(datagram, 4, (counter as u32).to_be_bytes());
        if key.is_some() {
            write_tag(key, counter, datagram);
        }
    }

    /// Writes DOWN packet `counter` of `session` into `datagram`, under the key of answers.
    #[inline]
    pub(crate) fn write_down(session: u16, counter: u64, key: &TagKey, datagram: &mut [u8]) {
        Self::write_request(MessageType::Down, session, counter, Some(key), datagram);
    }

    #[inline]
    fn write_request(message: MessageType, session: u16, counter: u64, key: Option<&TagKey>, datagram: &mut [u8]) {
        let flags = if key.is_some() { FLAG_TAGGED } else { 0 };
        write_head(message, flags, session, counter as u32, datagram);
        put(datagram, 8, [0; 8]);
        write_tag(key, counter, datagram);
    }
}

/// A genuine probe that is to be answered.
#[derive(Clone, Copy, Debug)]
pub struct Reflection {
    pub session: u16,
    pub counter: u64,
    pub key: Option<TagKey>,
    /// When the receive call returned.
    pub received: Stamp<ReflectorClock>,
    /// Its session asked for stamps of the kernel.
    pub stamped: bool,
    /// The kernel's receive stamp, on the same clock.
    pub kernel_received: Option<Stamp<ReflectorClock>>,
    /// Of an earlier answer of the session.
    pub passage: Option<Passage>,
}

/// How an answer left the reflector's host, which is known after it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Low half of its counter.
    pub counter_low: u32,
    /// From its send stamp to the stamp in the driver, below 4.3 s.
    pub lag: Nanos,
}

impl Reflection {
    /// Turns the probe in `datagram` into its answer, in place. Padding is returned unchanged.
    #[inline]
    pub fn write(&self, sent: Stamp<ReflectorClock>, cpu: Option<u16>, datagram: &mut [u8]) {
        let received = self.received.as_nanos() as u64;
        let mut flags = (received >> 32) as u8 & FLAGS_STAMP;
        if self.key.is_some() {
            flags |= FLAG_TAGGED;
        }
        if datagram.len() >= KERNEL_STAMP_MIN_BYTES {
            flags |= self.write_knowledge(cpu, datagram);
        }
        if let Some(passage) = self.passage.filter(|_| datagram.len() >= PASSAGE_MIN_BYTES) {
            flags |= FLAG_PASSAGE;
            let lag = saturating_span(passage.lag);
            put(datagram, PASSAGE_AT, (u64::from(passage.counter_low) << 32 | u64::from(lag)).to_be_bytes());
        }
        if datagram.len() >= FULL_STAMP_MIN_BYTES {
            put(datagram, 24, received.to_be_bytes());
        }
        write_head(MessageType::Answer, flags, self.session, self.counter as u32, datagram);
        let dwell = saturating_span(sent - self.received);
        put(datagram, 8, (u64::from(received as u32) << 32 | u64::from(dwell)).to_be_bytes());
        write_tag(self.key.as_ref(), self.counter, datagram);
    }

    /// Writes bytes 32 to 39 and returns the flags that announce them.
    fn write_knowledge(&self, cpu: Option<u16>, datagram: &mut [u8]) -> u8 {
        let lead = self.kernel_received.map(|stamp| self.received - stamp).filter(|lead| lead.0 >= 0);
        let lead = lead.map(saturating_span).filter(|lead| *lead != SATURATED);
        let word = u64::from(lead.unwrap_or(0)) << 32 | u64::from(cpu.unwrap_or(0)) << 16;
        put(datagram, 32, word.to_be_bytes());
        lead.map_or(0, |_| FLAG_KERNEL) | cpu.map_or(0, |_| FLAG_CPU)
    }
}

/// An answer whose tag is not checked yet: only its session and counter can be read.
#[derive(Clone, Copy, Debug)]
pub struct SealedAnswer<'a> {
    header: ProbeHeader,
    datagram: &'a [u8],
}

/// The facts of an answer about its probe at the reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerFacts {
    /// Low 36 bits of the receive stamp, in ns.
    pub received_low: u64,
    /// The receive stamp, from 32 bytes on.
    pub received: Option<Stamp<ReflectorClock>>,
    /// From the receive stamp to the send stamp; `None` if it did not fit in 32 bits.
    pub dwell: Option<Nanos>,
    /// From the kernel's receive stamp to the receive stamp, from 40 bytes on; `None` if the reflector does not know it.
    pub kernel_lead: Option<Nanos>,
    /// CPU on which the reflector answered, from 40 bytes on; `None` if the reflector does not know it.
    pub cpu: Option<u16>,
    /// The passage of an earlier answer, if this one carries it.
    pub passage: Option<Passage>,
}

impl<'a> SealedAnswer<'a> {
    /// Takes `datagram` as an answer.
    ///
    /// # Errors
    /// [`Malformed`] if it is not an answer.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<SealedAnswer<'a>, Malformed> {
        Ok(SealedAnswer { header: ProbeHeader::parse(datagram, MessageType::Answer)?, datagram })
    }

    #[inline]
    pub const fn session(&self) -> u16 {
        self.header.session
    }

    /// Low half of its counter.
    #[inline]
    pub const fn counter_low(&self) -> u32 {
        self.header.counter_low
    }

    /// Its facts, if its tag is correct under `key` for the full `counter`.
    #[inline]
    pub fn open(self, key: Option<&TagKey>, counter: u64) -> Option<AnswerFacts> {
        if !self.header.verify(key, counter, self.datagram) {
            return None;
        }
        let (flags, datagram) = (self.header.flags, self.datagram);
        let stamps = u64::from_be_bytes(take(datagram, 8));
        let dwell = stamps as u32;
        let long = datagram.len() >= FULL_STAMP_MIN_BYTES;
        let received = u64::from_be_bytes(take(datagram, 24));
        if long && received as u32 != (stamps >> 32) as u32 {
            return None;
        }
        let knowing = datagram.len() >= KERNEL_STAMP_MIN_BYTES;
        let known = u64::from_be_bytes(take(datagram, 32));
        Some(AnswerFacts {
            received_low: u64::from(flags & FLAGS_STAMP) << 32 | stamps >> 32,
            received: long.then_some(Stamp::from_nanos(received as i64)),
            dwell: (dwell != SATURATED).then_some(Nanos(i64::from(dwell))),
            kernel_lead: (knowing && flags & FLAG_KERNEL != 0).then_some(Nanos((known >> 32) as i64)),
            cpu: (knowing && flags & FLAG_CPU != 0).then_some((known >> 16) as u16),
            passage: has_passage(flags, datagram).then(|| {
                let word = u64::from_be_bytes(take(datagram, PASSAGE_AT));
                Passage { counter_low: (word >> 32) as u32, lag: Nanos(i64::from(word as u32)) }
            }),
        })
    }
}

fn has_passage(flags: u8, datagram: &[u8]) -> bool {
    flags & FLAG_PASSAGE != 0 && datagram.len() >= PASSAGE_MIN_BYTES
}

#[inline]
fn write_head(message: MessageType, flags: u8, session: u16, counter_low: u32, datagram: &mut [u8]) {
    let word = u64::from(message as u8) << 56 | u64::from(flags) << 48;
    put(datagram, 0, (word | u64::from(session) << 32 | u64::from(counter_low)).to_be_bytes());
}

#[inline]
fn write_tag(key: Option<&TagKey>, counter: u64, datagram: &mut [u8]) {
    let tag = key.map_or(0, |key| tag_of(key, counter, datagram));
    put(datagram, TAG_AT, tag.to_be_bytes());
}

/// The tag, over as few words as possible: each costs 3 ns at either end.
///
/// It always covers type, flags, session, length and the full counter. In probes and short answers it also covers bytes 8
/// to 15; in answers with a full stamp that stamp, dwell, kernel lead and, in the first word, the CPU. (The low half of
/// the stamp at byte 8 is compared with the full one instead.) A passage is a word more.
#[inline]
fn tag_of(key: &TagKey, counter: u64, datagram: &[u8]) -> u64 {
    let word = |at| u64::from_be_bytes(take(datagram, at));
    let (head, stamps) = (word(0), word(8));
    // A UDP payload has at most 65,527 bytes: the length fits into 16 bits.
    let head = head >> 32 << 32 | u64::from(datagram.len() as u16);
    let long = datagram.len() >= FULL_STAMP_MIN_BYTES && (head >> 56) as u8 == MessageType::Answer as u8;
    if !long {
        return key.tag(&[head, counter, stamps]);
    }
    let known = if datagram.len() >= KERNEL_STAMP_MIN_BYTES { word(32) } else { 0 };
    let cpu = known >> 16 & 0xffff;
    let words = [head | cpu << 16, counter, word(24), stamps << 32 | known >> 32, word(PASSAGE_AT)];
    let covered = if has_passage((head >> 48) as u8, datagram) { words.len() } else { words.len() - 1 };
    key.tag(&words[..covered])
}

/// A span in 32 bits. The largest value means "unknown": the span is negative or does not fit.
fn saturating_span(span: Nanos) -> u32 {
    u32::try_from(span.0).unwrap_or(SATURATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TagKey {
        TagKey::new(&[7; 16])
    }

    fn reflected(bytes: usize, key: Option<TagKey>) -> Vec<u8> {
        reflected_with(bytes, key, Some(Nanos(1_500)), Some(5), None)
    }

    fn reflected_with(
        bytes: usize,
        key: Option<TagKey>,
        kernel_lead: Option<Nanos>,
        cpu: Option<u16>,
        passage: Option<Passage>,
    ) -> Vec<u8> {
        let mut datagram = vec![0xaa; bytes];
        ProbeHeader::write_probe(3, 1 << 33 | 9, key.as_ref(), &mut datagram);
        let received = Stamp::from_nanos(0x0bcd_ef01_2345_6789);
        let reflection = Reflection {
            session: 3,
            counter: 1 << 33 | 9,
            key,
            received,
            stamped: true,
            kernel_received: kernel_lead.map(|lead| received - lead),
            passage,
        };
        reflection.write(received + Nanos(777), cpu, &mut datagram);
        datagram
    }

    #[test]
    fn a_probe_verifies_under_its_key_and_counter_only() {
        let mut datagram = [0; PROBE_MIN_BYTES];
        ProbeHeader::write_probe(0x0102, 0x7_0304_0506, Some(&key()), &mut datagram);
        assert_eq!(datagram[..16], [0x11, 0x80, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
        let header = ProbeHeader::parse(&datagram, MessageType::Probe).expect("a probe");
        assert_eq!((header.session, header.counter_low), (0x0102, 0x0304_0506));
        assert!(header.verify(Some(&key()), 0x7_0304_0506, &datagram));
        assert!(!header.verify(Some(&key()), 0x8_0304_0506, &datagram), "the unsent half is covered");
        assert!(!header.verify(None, 0x7_0304_0506, &datagram));
        assert!(!header.verify(Some(&key()), 0x7_0304_0506, &[&datagram[..], &[0]].concat()), "the length is covered");
    }

    #[test]
    fn longer_answers_carry_more_facts() {
        let received = 0x0bcd_ef01_2345_6789_u64;
        for (bytes, full, knowing) in [
            (24, false, false),
            (31, false, false),
            (32, true, false),
            (39, true, false),
            (40, true, true),
            (64, true, true),
        ] {
            let datagram = reflected(bytes, Some(key()));
            let answer = SealedAnswer::parse(&datagram).expect("an answer");
            let facts = answer.open(Some(&key()), 1 << 33 | 9).expect("genuine");
            assert_eq!(facts.received_low, received & 0xf_ffff_ffff, "{bytes} bytes");
            assert_eq!(facts.received, full.then_some(Stamp::from_nanos(received as i64)), "{bytes} bytes");
            assert_eq!(facts.dwell, Some(Nanos(777)));
            assert_eq!(facts.kernel_lead, knowing.then_some(Nanos(1_500)), "{bytes} bytes");
            assert_eq!(facts.cpu, knowing.then_some(5), "{bytes} bytes");
        }
    }

    #[test]
    fn a_kernel_stamp_and_a_cpu_are_known_independently_of_each_other() {
        for kernel_lead in [None, Some(Nanos(1_500))] {
            for cpu in [None, Some(5)] {
                let datagram = reflected_with(40, Some(key()), kernel_lead, cpu, None);
                let facts = SealedAnswer::parse(&datagram).expect("an answer").open(Some(&key()), 1 << 33 | 9);
                let facts = facts.expect("genuine");
                assert_eq!((facts.kernel_lead, facts.cpu), (kernel_lead, cpu));
            }
        }
    }

    const PASSAGE: Passage = Passage { counter_low: 8, lag: Nanos(4_100) };

    #[test]
    fn the_tag_covers_every_byte_but_padding() {
        for passage in [None, Some(PASSAGE)] {
            let mut datagram = reflected_with(64, Some(key()), Some(Nanos(1_500)), Some(5), passage);
            for at in 0..64 {
                datagram[at] ^= 1;
                let facts = SealedAnswer::parse(&datagram).ok().filter(|answer| answer.counter_low() == 9);
                let facts = facts.and_then(|answer| answer.open(Some(&key()), 1 << 33 | 9));
                let is_covered = at < 38 || (passage.is_some() && (40..48).contains(&at));
                assert_eq!(facts.is_none(), is_covered, "byte {at}");
                datagram[at] ^= 1;
            }
            let padding = if passage.is_some() { 48 } else { 40 };
            assert!(datagram[padding..].iter().all(|byte| *byte == 0xaa));
        }
    }

    #[test]
    fn a_passage_needs_48_bytes_and_its_flag() {
        for (bytes, expected) in [(40, None), (47, None), (48, Some(PASSAGE)), (64, Some(PASSAGE))] {
            let mut datagram = reflected_with(bytes, Some(key()), None, None, Some(PASSAGE));
            let open = |datagram: &[u8]| {
                SealedAnswer::parse(datagram).ok().and_then(|answer| answer.open(Some(&key()), 1 << 33 | 9))
            };
            assert_eq!(open(&datagram).expect("genuine").passage, expected, "{bytes} bytes");
            datagram[1] ^= FLAG_PASSAGE;
            assert_eq!(open(&datagram), None, "the flag is covered");
        }
    }

    #[test]
    fn an_answer_is_never_accepted_as_a_probe() {
        let mut datagram = reflected(24, Some(key()));
        assert_eq!(ProbeHeader::parse(&datagram, MessageType::Probe), Err(Malformed::Type));
        datagram[0] = MessageType::Probe as u8;
        datagram[1] = FLAG_TAGGED;
        let header = ProbeHeader::parse(&datagram, MessageType::Probe).expect("its form is right");
        assert!(!header.verify(Some(&key()), 1 << 33 | 9, &datagram), "but its type was under the tag");
    }

    #[test]
    fn a_data_packet_is_never_accepted_as_a_probe_or_a_probe_as_data() {
        let mut datagram = [0xaa; 32];
        ProbeHeader::write_data(3, 1 << 33 | 9, Some(&key()), &mut datagram);
        assert_eq!(datagram[..4], [0x13, 0x80, 0, 3]);
        assert_eq!(datagram[24..], [0xaa; 8], "padding stays");
        for (byte, message) in [(0x13, MessageType::Data), (0x11, MessageType::Probe)] {
            datagram[0] = byte;
            let header = ProbeHeader::parse(&datagram, message).expect("its form is right");
            assert_eq!(header.verify(Some(&key()), 1 << 33 | 9, &datagram), message == MessageType::Data);
        }
    }

    #[test]
    fn without_a_key_only_a_zero_tag_is_accepted() {
        let mut datagram = reflected(24, None);
        assert!(SealedAnswer::parse(&datagram).is_ok_and(|answer| answer.open(None, 9).is_some()));
        assert!(SealedAnswer::parse(&datagram).is_ok_and(|answer| answer.open(Some(&key()), 9).is_none()));
        datagram[20] = 1;
        assert!(SealedAnswer::parse(&datagram).is_ok_and(|answer| answer.open(None, 9).is_none()));
    }

    #[test]
    fn a_dwell_that_does_not_fit_is_unknown() {
        for (span, expected) in
            [(-1, None), (0, Some(0)), (4_294_967_294, Some(4_294_967_294)), (4_294_967_295, None), (i64::MAX, None)]
        {
            let mut datagram = [0; 24];
            let received = Stamp::from_nanos(1_000);
            let reflection = Reflection {
                session: 1,
                counter: 0,
                key: None,
                received,
                stamped: false,
                kernel_received: None,
                passage: None,
            };
            reflection.write(received + Nanos(span), None, &mut datagram);
            let facts = SealedAnswer::parse(&datagram).ok().and_then(|answer| answer.open(None, 0)).expect("genuine");
            assert_eq!(facts.dwell, expected.map(Nanos), "span {span}");
        }
    }
}
