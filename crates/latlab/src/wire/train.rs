//! Trains: packets of a stream that lie end to end in one buffer, judged together.
//!
//! At a segmentation offload's ten million packets a second a receiver has 100 ns for each of them; 64 packets of 64
//! bytes take the kernel 2 µs or so. What is the same for all of a buffer is looked up once for all of them, and what is
//! left for each is two loads and two comparisons.

use super::probe::FLAG_TAGGED;
use super::{MessageType, PROBE_MIN_BYTES, ProbeHeader, TagKey};

/// Where session and counter stand in the first eight bytes of a packet; before them its type and its flags.
const NAMES: u64 = 0xffff_ffff_ffff;
const TAGGED: u64 = (FLAG_TAGGED as u64) << 48;
const DATA: u64 = (MessageType::Data as u64) << 56;

/// Packets of one session and one length, whole, end to end; that their numbers follow each other is yet to be seen.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    bytes: &'a [u8],
    each_bytes: usize,
    packets: u64,
    /// The first eight bytes of the first one: in a register, where a parsed header takes its way through memory.
    head: u64,
}

impl<'a> Train<'a> {
    /// Takes `bytes` for packets of `each_bytes`; none where that does not come out even, the first is no packet of a
    /// stream, or the low halves of their counters would turn over on the way: then each is to be judged for itself.
    #[inline]
    pub fn parse(bytes: &'a [u8], each_bytes: usize) -> Option<Train<'a>> {
        let head = u64::from_be_bytes(*bytes.first_chunk()?);
        if head & !(TAGGED | NAMES) != DATA || each_bytes < PROBE_MIN_BYTES {
            return None;
        }
        // Most are one packet, and a division takes longer than all the rest.
        let packets = match bytes.len() == each_bytes {
            true => 1,
            false if bytes.len().is_multiple_of(each_bytes) => (bytes.len() / each_bytes) as u64,
            false => return None,
        };
        let train = Train { bytes, each_bytes, packets, head };
        let turns_over = u64::from(train.counter_low()) + packets > 1 << 32;
        (!turns_over).then_some(train)
    }

    /// The session that the first one names.
    #[inline]
    pub const fn session(&self) -> u16 {
        (self.head >> 32) as u16
    }

    /// Low half of the first one's counter.
    #[inline]
    pub const fn counter_low(&self) -> u32 {
        self.head as u32
    }

    /// How many there are, at least one.
    #[inline]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The length of each, in bytes.
    #[inline]
    pub const fn each_bytes(&self) -> usize {
        self.each_bytes
    }

    /// Whether they have the counters `first`, `first` + 1 and so on, and each would pass [`ProbeHeader::verify`] with its
    /// own.
    #[inline]
    pub fn verify(&self, key: Option<&TagKey>, first: u64) -> bool {
        match key {
            None => self.head & TAGGED == 0 && self.follow_each_other(u64::MAX),
            Some(key) => {
                let (message, flags) = (MessageType::Data, (self.head >> 48) as u8);
                self.follow_each_other(0)
                    && self.bytes.chunks_exact(self.each_bytes).zip(first..).all(|(packet, counter)| {
                        // Its own head, as has just been seen.
                        ProbeHeader { message, flags, session: self.session(), counter_low: counter as u32 }.verify(
                            Some(key),
                            counter,
                            packet,
                        )
                    })
            }
        }
    }

    /// Whether each has the head of the one before with the next number, and zeros for those bits of a tag that are set in
    /// `bare`. Differences are gathered and looked at once: there are hardly ever any.
    #[inline]
    fn follow_each_other(&self, bare: u64) -> bool {
        let mut difference = 0;
        // Counted by a range of known length: one comparison less for each.
        for (number, packet) in (0..self.packets as usize).zip(self.bytes.chunks_exact(self.each_bytes)) {
            let Some(head) = packet.first_chunk::<PROBE_MIN_BYTES>() else { return false };
            let (words, _) = head.as_chunks::<8>();
            // The low half does not turn over: `parse` has looked.
            let expected = self.head + number as u64;
            difference |= (u64::from_be_bytes(words[0]) ^ expected) | (u64::from_ne_bytes(words[2]) & bare);
        }
        difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 40;

    fn train(first: u64, count: usize, key: Option<&TagKey>) -> Vec<u8> {
        let mut bytes = vec![0xaa; count * SIZE];
        for (packet, counter) in bytes.chunks_exact_mut(SIZE).zip(first..) {
            ProbeHeader::write_data(3, counter, key, packet);
        }
        bytes
    }

    #[test]
    fn packets_in_order_are_a_train_and_nothing_else_is() {
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
                // Without a key bytes 8 to 15 say nothing; padding never does.
                let says = if key.is_some() { 0..24 } else { 0..8 };
                let means = says.contains(&(at % SIZE)) || (16..24).contains(&(at % SIZE));
                assert_eq!(passes, !means, "byte {at}, keyed: {}", key.is_some());
            }
        }
    }

    #[test]
    fn a_train_says_what_each_of_its_packets_would() {
        let key = TagKey::new(&[7; 16]);
        let bytes = train(77, 8, Some(&key));
        let parsed = Train::parse(&bytes, SIZE).expect("a train");
        for (packet, counter) in bytes.chunks(SIZE).zip(77..) {
            let header = ProbeHeader::parse(packet, MessageType::Data).expect("a packet");
            assert!(header.verify(Some(&key), counter, packet) && parsed.verify(Some(&key), 77));
        }
    }

    #[test]
    fn a_packet_under_a_new_number_is_as_if_written_anew() {
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
    fn what_does_not_come_out_even_is_none() {
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
