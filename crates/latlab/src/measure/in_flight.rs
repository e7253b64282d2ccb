//! Which probes of the recent past have not been answered yet: tells when there is nothing left to wait for.

use crate::probe::Seq;

/// A bitmap over the last `capacity` probes, allocated before the loop is armed.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    words: Box<[u64]>,
    waiting: u64,
}

impl InFlight {
    /// Remembers at least `capacity` probes. One that is overtaken by so many others counts as given up.
    pub(crate) fn new(capacity: u64) -> InFlight {
        let words = capacity.clamp(64, 1 << 26).next_power_of_two() / 64;
        InFlight { words: vec![0; words as usize].into_boxed_slice(), waiting: 0 }
    }

    /// Waits for nothing.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.waiting = 0;
    }

    /// Probe `seq` left.
    #[inline]
    pub(crate) fn sent(&mut self, seq: Seq) {
        let (word, bit) = self.place(seq);
        self.waiting += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// An answer to `seq` came; a second one changes nothing.
    #[inline]
    pub(crate) fn answered(&mut self, seq: Seq) {
        let (word, bit) = self.place(seq);
        self.waiting -= u64::from(self.words[word] & bit != 0);
        self.words[word] &= !bit;
    }

    /// Whether every remembered probe was answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn place(&self, seq: Seq) -> (usize, u64) {
        let index = seq.0 & (self.words.len() as u64 * 64 - 1);
        ((index / 64) as usize, 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_do_not_answer_for_others() {
        let mut flight = InFlight::new(10);
        flight.sent(Seq(0));
        flight.sent(Seq(1));
        flight.answered(Seq(0));
        flight.answered(Seq(0));
        assert!(!flight.is_empty());
        flight.answered(Seq(1));
        assert!(flight.is_empty());
        flight.sent(Seq(2));
        flight.clear();
        flight.answered(Seq(2));
        assert!(flight.is_empty());
    }

    #[test]
    fn as_many_as_were_asked_for_are_remembered_and_no_more_than_the_memory_allows() {
        for (asked, remembered) in [
            (0, 64),
            (1, 64),
            (64, 64),
            (65, 128),
            (1_000, 1_024),
            (120_000, 131_072),
            (1 << 26, 1 << 26),
            (u64::MAX, 1 << 26), // 8 MiB of bits
        ] {
            assert_eq!(InFlight::new(asked).words.len() as u64 * 64, remembered, "{asked}");
        }
    }

    #[test]
    fn a_full_window_waits_for_each_of_its_probes_and_never_grows() {
        let mut flight = InFlight::new(128);
        let place = flight.words.as_ptr();
        // Anywhere on the way, also where the counter leaves 32 bits.
        for first in [0, 100, u64::from(u32::MAX) - 50] {
            for seq in first..first + 128 {
                flight.sent(Seq(seq));
            }
            assert_eq!(flight.waiting, 128);
            for (seq, left) in (first..first + 128).rev().zip((0..128).rev()) {
                assert!(!flight.is_empty());
                flight.answered(Seq(seq));
                assert_eq!(flight.waiting, left);
            }
            assert!(flight.is_empty());
        }
        // A million probes without an answer: the oldest are given up, and there is nothing more to wait for than
        // the window.
        for seq in 0..1_000_000 {
            flight.sent(Seq(seq));
        }
        assert_eq!((flight.waiting, flight.words.len()), (128, 2));
        assert_eq!(flight.words.as_ptr(), place, "it was allocated once");
    }

    #[test]
    fn an_overtaken_probe_is_given_up() {
        let mut flight = InFlight::new(64);
        flight.sent(Seq(3));
        flight.sent(Seq(67));
        flight.answered(Seq(67));
        assert!(flight.is_empty());
    }
}
