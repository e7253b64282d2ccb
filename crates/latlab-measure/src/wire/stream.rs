//! Streams: POLL and TALLY, the counts of the reflector, and trains of DATA packets. A DATA packet has the layout of a probe
//! ([`super::ProbeHeader`]).

use super::probe::FLAG_TAGGED;
use super::{
    Codes, MAC_BYTES, Malformed, MessageHeader, MessageType, Nonce, PROBE_MIN_BYTES, ProbeHeader, SETUP_HEADER_BYTES,
    TagKey, put, take,
};
use crate::units::{Nanos, ReflectorClock, Stamp};

/// The length of a POLL, equal to that of its reply.
pub const POLL_BYTES: usize = 160;
/// The length of a TALLY.
pub const TALLY_BYTES: usize = 160;

const NONCE_AT: usize = SETUP_HEADER_BYTES;
const NUMBER_AT: usize = 24;
const STAMP_AT: usize = 32;
const COUNTS_AT: usize = 40;
const COUNTS: usize = 9;
const FLAGS_AT: usize = COUNTS_AT + 8 * COUNTS;
const FLAG_SOCKET_DROPS: u8 = 1;
const FLAG_CPU: u8 = 2;
const FLAG_MERGED: u8 = 4;
const CPU_AT: usize = FLAGS_AT + 8;
const WISH_AT: usize = NUMBER_AT + 8;
const WISH_CPU: u8 = 1;
const CREDIT_AT: usize = WISH_AT + 8;

/// POLL, in bytes: 8 header, 16 sender's nonce, 8 number, 1 requests, 7 zero, 8 credit, 80 zero, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPoll {
    pub session: u16,
    /// The nonce with which it was opened.
    pub nonce: Nonce,
    /// Higher than that of every answered POLL.
    pub number: u64,
    /// The sender requests the reflector's CPU time.
    pub wants_cpu: bool,
    /// Bytes of UDP payload that the reflector of a down-stream may send from the opening of the session on; 0 without a
    /// down-stream.
    pub credit_bytes: u64,
}

impl StreamPoll {
    /// Reads a POLL without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a POLL of this version.
    pub fn parse(datagram: &[u8]) -> Result<StreamPoll, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Poll, POLL_BYTES)?;
        let number = u64::from_be_bytes(take(datagram, NUMBER_AT));
        let [wishes] = take(datagram, WISH_AT);
        let wants_cpu = wishes & WISH_CPU != 0;
        let credit_bytes = u64::from_be_bytes(take(datagram, CREDIT_AT));
        Ok(StreamPoll { session: header.session, nonce: take(datagram, NONCE_AT), number, wants_cpu, credit_bytes })
    }

    /// Writes the POLL and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; POLL_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Poll, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, NUMBER_AT, self.number.to_be_bytes());
        put(to, WISH_AT, [if self.wants_cpu { WISH_CPU } else { 0 }]);
        put(to, CREDIT_AT, self.credit_bytes.to_be_bytes());
        codes.seal(to);
    }
}

/// TALLY, in bytes: 8 header, 16 nonce, 8 number, 8 stamp, nine counts of 8, 1 flags, 7 zero, 8 CPU time, 32 code.
///
/// Counts are since the session was opened, except `socket_drops`; of a down-stream the first three are those sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTally {
    pub session: u16,
    /// The nonce with which it was opened.
    pub nonce: Nonce,
    /// The number of the answered POLL.
    pub number: u64,
    /// When the POLL was received, on the reflector's clock.
    pub at: Stamp<ReflectorClock>,
    /// Packets counted: genuine, new, and of the agreed size.
    pub packets: u64,
    /// Their bytes of UDP payload.
    pub bytes: u64,
    /// The highest counter received + 1; 0 if none was.
    pub spanned: u64,
    /// Counted packets received after one with a higher counter.
    pub reordered: u64,
    /// Packets dropped because their counter was received before.
    pub seen_before: u64,
    /// Packets dropped because their counter was below the replay window.
    pub left_window: u64,
    /// Packets dropped because their tag, or another field, was wrong.
    pub forged: u64,
    /// Packets dropped because they were not of the agreed size.
    pub wrong_size: u64,
    /// Datagrams of all senders that the reflector's socket dropped since it was made, modulo 2^32; `None` if unknown.
    pub socket_drops: Option<u64>,
    /// The socket counts merged buffers of several datagrams: `socket_drops` is a lower bound.
    pub drops_merged: bool,
    /// CPU time that the reflector's thread has used since the session was opened, for all sessions; `None` if it was not
    /// requested or is unknown.
    pub cpu: Option<Nanos>,
}

impl StreamTally {
    /// A TALLY without loss or drops, for tests.
    #[cfg(test)]
    pub fn plain(number: u64, at: Stamp<ReflectorClock>, packets: u64) -> StreamTally {
        StreamTally {
            session: 1,
            nonce: [0; 16],
            number,
            at,
            packets,
            bytes: 0,
            spanned: packets,
            reordered: 0,
            seen_before: 0,
            left_window: 0,
            forged: 0,
            wrong_size: 0,
            socket_drops: None,
            drops_merged: false,
            cpu: None,
        }
    }

    /// Reads a TALLY without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a TALLY of this version.
    pub fn parse(datagram: &[u8]) -> Result<StreamTally, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Tally, TALLY_BYTES)?;
        let count = |index: usize| u64::from_be_bytes(take(datagram, COUNTS_AT + 8 * index));
        let [flags] = take(datagram, FLAGS_AT);
        Ok(StreamTally {
            session: header.session,
            nonce: take(datagram, NONCE_AT),
            number: u64::from_be_bytes(take(datagram, NUMBER_AT)),
            at: Stamp::from_nanos(i64::from_be_bytes(take(datagram, STAMP_AT))),
            packets: count(0),
            bytes: count(1),
            spanned: count(2),
            reordered: count(3),
            seen_before: count(4),
            left_window: count(5),
            forged: count(6),
            wrong_size: count(7),
            socket_drops: (flags & FLAG_SOCKET_DROPS != 0).then_some(count(8)),
            drops_merged: flags & FLAG_MERGED != 0,
            cpu: (flags & FLAG_CPU != 0).then(|| Nanos(i64::from_be_bytes(take(datagram, CPU_AT)))),
        })
    }

    /// Writes the TALLY and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; TALLY_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Tally, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, NUMBER_AT, self.number.to_be_bytes());
        put(to, STAMP_AT, self.at.as_nanos().to_be_bytes());
        let counts: [u64; COUNTS] = [
            self.packets,
            self.bytes,
            self.spanned,
            self.reordered,
            self.seen_before,
            self.left_window,
            self.forged,
            self.wrong_size,
            self.socket_drops.unwrap_or(0),
        ];
        for (index, count) in counts.into_iter().enumerate() {
            put(to, COUNTS_AT + 8 * index, count.to_be_bytes());
        }
        let flags = [
            (self.socket_drops.is_some(), FLAG_SOCKET_DROPS),
            (self.drops_merged, FLAG_MERGED),
            (self.cpu.is_some(), FLAG_CPU),
        ];
        put(to, FLAGS_AT, [flags.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag)]);
        put(to, CPU_AT, self.cpu.map_or(0, |cpu| cpu.0).to_be_bytes());
        codes.seal(to);
    }
}

const _: () = assert!(TALLY_BYTES <= POLL_BYTES && FLAGS_AT + 16 + MAC_BYTES == TALLY_BYTES);
const _: () = assert!(CREDIT_AT + 8 + MAC_BYTES <= POLL_BYTES && CPU_AT + 8 + MAC_BYTES == TALLY_BYTES);

/// The bits of session and counter in the first eight bytes of a packet, after type and flags.
const NAMES: u64 = 0xffff_ffff_ffff;
const TAGGED: u64 = (FLAG_TAGGED as u64) << 48;
const DATA: u64 = (MessageType::Data as u64) << 56;

/// Contiguous packets of one length in one buffer, of which the first is a DATA packet. [`Train::verify`] checks the others.
///
/// At ten million packets a second, which segmentation offload reaches, a receiver has 100 ns for each; the kernel
/// delivers 64 packets of 64 bytes in about 2 µs. Common work is therefore done once per buffer, which leaves two loads
/// and two comparisons per packet.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    bytes: &'a [u8],
    each_bytes: usize,
    packets: u64,
    /// The first eight bytes of the first packet, unparsed: they stay in a register, a parsed header would not.
    head: u64,
}

impl<'a> Train<'a> {
    /// Takes `bytes` as packets of `each_bytes`. `None` if they are not a whole number of packets, the first is not a
    /// DATA packet, or the low half of the counter would wrap within them: then each has to be checked separately.
    #[inline]
    pub fn parse(bytes: &'a [u8], each_bytes: usize) -> Option<Train<'a>> {
        let head = u64::from_be_bytes(*bytes.first_chunk()?);
        if head & !(TAGGED | NAMES) != DATA || each_bytes < PROBE_MIN_BYTES {
            return None;
        }
        // Mostly it is one packet, and a division would take longer than all other work.
        let packets = if bytes.len() == each_bytes {
            1
        } else if bytes.len().is_multiple_of(each_bytes) {
            (bytes.len() / each_bytes) as u64
        } else {
            return None;
        };
        let train = Train { bytes, each_bytes, packets, head };
        let turns_over = u64::from(train.counter_low()) + packets > 1 << 32;
        (!turns_over).then_some(train)
    }

    /// The session of the first packet.
    #[inline]
    pub const fn session(&self) -> u16 {
        (self.head >> 32) as u16
    }

    /// Low half of the counter of the first packet.
    #[inline]
    pub const fn counter_low(&self) -> u32 {
        self.head as u32
    }

    /// The number of packets, at least one.
    #[inline]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The length of each packet, in bytes.
    #[inline]
    pub const fn each_bytes(&self) -> usize {
        self.each_bytes
    }

    /// Whether the counters follow each other and [`ProbeHeader::verify`] accepts each packet. `first`: the whole
    /// counter of the first packet, of which [`Train::counter_low`] is the low half.
    #[inline]
    pub fn verify(&self, key: Option<&TagKey>, first: u64) -> bool {
        match key {
            None => self.head & TAGGED == 0 && self.follow_each_other(u64::MAX),
            Some(key) => {
                let (message, flags) = (MessageType::Data, (self.head >> 48) as u8);
                self.follow_each_other(0)
                    && self.bytes.chunks_exact(self.each_bytes).zip(first..).all(|(packet, counter)| {
                        // Equal to the packet's own header, as was just checked.
                        ProbeHeader { message, flags, session: self.session(), counter_low: counter as u32 }.verify(
                            Some(key),
                            counter,
                            packet,
                        )
                    })
            }
        }
    }

    /// Whether each packet has the header of the one before with the next counter, and zeros in those bits of the tag that
    /// are set in `bare`. Differences are accumulated and checked once, since they are rare.
    #[inline]
    fn follow_each_other(&self, bare: u64) -> bool {
        let mut difference = 0;
        // A range of known length saves one comparison per packet.
        for (number, packet) in (0..self.packets as usize).zip(self.bytes.chunks_exact(self.each_bytes)) {
            let Some(head) = packet.first_chunk::<PROBE_MIN_BYTES>() else { return false };
            let (words, _) = head.as_chunks::<8>();
            // The low half does not wrap: `parse` has checked.
            let expected = self.head + number as u64;
            difference |= (u64::from_be_bytes(words[0]) ^ expected) | (u64::from_ne_bytes(words[2]) & bare);
        }
        difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(socket_drops: Option<u64>, drops_merged: bool, cpu: Option<Nanos>) -> StreamTally {
        StreamTally {
            session: 9,
            nonce: [4; 16],
            number: 77,
            at: Stamp::from_nanos(-5),
            packets: 1,
            bytes: 2,
            spanned: 3,
            reordered: 4,
            seen_before: 5,
            left_window: 6,
            forged: 7,
            wrong_size: u64::MAX,
            socket_drops,
            drops_merged,
            cpu,
        }
    }

    #[test]
    fn poll_and_tally_round_trip() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        for wants_cpu in [false, true] {
            let poll = StreamPoll { session: 9, nonce: [4; 16], number: u64::MAX, wants_cpu, credit_bytes: 1 << 40 };
            let mut bytes = [0xee; POLL_BYTES];
            poll.write(&codes, &mut bytes);
            assert_eq!(StreamPoll::parse(&bytes), Ok(poll));
            assert!(codes.verify(&bytes));
            assert_eq!(StreamTally::parse(&bytes), Err(Malformed::Type));
            assert_eq!(StreamPoll::parse(&bytes[..159]), Err(Malformed::Length));
        }
        for (drops, merged, cpu) in
            [(None, false, None), (Some(0), true, Some(Nanos(0))), (Some(8), false, Some(Nanos(i64::MAX)))]
        {
            let mut bytes = [0xee; TALLY_BYTES];
            tally(drops, merged, cpu).write(&codes, &mut bytes);
            assert_eq!(StreamTally::parse(&bytes), Ok(tally(drops, merged, cpu)));
            assert!(codes.verify(&bytes));
            assert_eq!(bytes[113..120], [0; 7], "earlier content of the buffer is not sent");
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let mut bytes = [0xee; POLL_BYTES];
        StreamPoll { session: 0x0102, nonce: [4; 16], number: 5, wants_cpu: true, credit_bytes: 0x0607 }
            .write(&Codes::None, &mut bytes);
        assert_eq!(bytes[..8], [0x15, 1, 1, 2, b'l', b'l', b't', b'b']);
        assert_eq!((bytes[31], bytes[32], &bytes[33..46]), (5, 1, &[0; 13][..]));
        assert_eq!((&bytes[46..48], &bytes[48..]), (&[6, 7][..], &[0; 112][..]));

        let mut bytes = [0xee; TALLY_BYTES];
        tally(Some(8), true, Some(Nanos(0x0102_0304))).write(&Codes::None, &mut bytes);
        assert_eq!(bytes[..4], [0x16, 1, 0, 9]);
        assert_eq!((bytes[111], bytes[112]), (8, 0x07));
        assert_eq!(bytes[113..128], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        for (tally, flags) in [(tally(None, false, None), 0), (tally(Some(8), false, None), 1)] {
            tally.write(&Codes::None, &mut bytes);
            assert_eq!((bytes[112], &bytes[120..128]), (flags, &[0; 8][..]), "as senders before flag 02 read it");
        }
    }

    const SIZE: usize = 40;

    fn train(first: u64, count: usize, key: Option<&TagKey>) -> Vec<u8> {
        let mut bytes = vec![0xaa; count * SIZE];
        for (packet, counter) in bytes.chunks_exact_mut(SIZE).zip(first..) {
            ProbeHeader::write_data(3, counter, key, packet);
        }
        bytes
    }

    #[test]
    fn only_genuine_packets_in_order_are_a_train() {
        let keyed = TagKey::new(&[7; 16]);
        for key in [None, Some(&keyed)] {
            let first = (1 << 33) + 9;
            let bytes = train(first, 5, key);
            let parsed = Train::parse(&bytes, SIZE).expect("a train");
            assert_eq!((parsed.session(), parsed.counter_low(), parsed.packets()), (3, 9, 5));
            assert!(parsed.verify(key, first));
            assert!(!parsed.verify(if key.is_none() { Some(&keyed) } else { None }, first));
            assert!(key.is_none() || !parsed.verify(key, first + (1 << 32)), "the unsent half is covered");
            for at in 0..bytes.len() {
                let mut altered = bytes.clone();
                altered[at] ^= 1;
                let passes = Train::parse(&altered, SIZE).is_some_and(|train| train.verify(key, first));
                // Without a key bytes 8 to 15 have no meaning; padding never has.
                let says = if key.is_some() { 0..24 } else { 0..8 };
                let means = says.contains(&(at % SIZE)) || (16..24).contains(&(at % SIZE));
                assert_eq!(passes, !means, "byte {at}, keyed: {}", key.is_some());
            }
        }
    }

    #[test]
    fn a_train_verifies_as_each_of_its_packets() {
        let key = TagKey::new(&[7; 16]);
        let bytes = train(77, 8, Some(&key));
        let parsed = Train::parse(&bytes, SIZE).expect("a train");
        for (packet, counter) in bytes.chunks(SIZE).zip(77..) {
            let header = ProbeHeader::parse(packet, MessageType::Data).expect("a packet");
            assert!(header.verify(Some(&key), counter, packet) && parsed.verify(Some(&key), 77));
        }
    }

    #[test]
    fn a_renumbered_packet_equals_a_new_one() {
        for key in [None, Some(&TagKey::new(&[7; 16]))] {
            let mut reused = [0xaa; 32];
            ProbeHeader::write_data(3, 7, key, &mut reused);
            for counter in [8, u64::from(u32::MAX), 1 << 33 | 9] {
                let mut fresh = [0xaa; 32];
                ProbeHeader::write_data(3, counter, key, &mut fresh);
                ProbeHeader::renumber_data(counter, key, &mut reused);
                assert_eq!(reused, fresh, "{counter}");
            }
        }
    }

    #[test]
    fn a_partial_packet_another_type_or_a_wrap_is_not_a_train() {
        let bytes = train(0, 3, None);
        assert!(Train::parse(&bytes[..2 * SIZE + 30], SIZE).is_none());
        assert!(
            Train::parse(&bytes, 0).is_none() && Train::parse(&bytes, 8).is_none() && Train::parse(&[], 1).is_none()
        );
        assert!(Train::parse(&bytes[..SIZE], SIZE).is_some_and(|train| train.packets() == 1));
        for (first, whole) in [(u64::from(u32::MAX) - 2, true), (u64::from(u32::MAX) - 1, false)] {
            assert_eq!(Train::parse(&train(first, 3, None), SIZE).is_some(), whole, "the low half turns over");
        }
        let mut probe = bytes.clone();
        probe[0] = MessageType::Probe as u8;
        assert!(Train::parse(&probe, SIZE).is_none());
    }
}
