//! The replay window: which counters were seen (RFC 4303, section 3.4.3; a ring of words as in RFC 6479).

/// Counters in the window. Rule R6 asks for the smaller of this and rate × time-out; there is only this one.
pub const REPLAY_WINDOW: u32 = 65_536;

const WORD_BITS: u64 = 64;
const WORDS: usize = REPLAY_WINDOW as usize / WORD_BITS as usize;

/// The check of a counter against the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// Not received before; marked now.
    New,
    /// Received before.
    Duplicate,
    /// Below the window: unknown.
    BelowWindow,
}

/// Which of the newest 65,536 counters were seen: 8 KiB, made once, used again for every session of a slot.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    newest: u64,
    words: Box<[u64]>,
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        ReplayWindow { newest: 0, words: vec![0; WORDS].into_boxed_slice() }
    }
}

impl ReplayWindow {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.newest = 0;
        self.words.fill(0);
    }

    /// The newest counter seen; 0 where none was.
    #[inline]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Marks `counter` as seen. Only for counters whose tag was genuine: a forged one would shut out the rest.
    #[inline]
    pub fn mark(&mut self, counter: u64) -> ReplayVerdict {
        if counter > self.newest {
            self.advance(counter);
        } else if self.newest - counter >= u64::from(REPLAY_WINDOW) {
            return ReplayVerdict::BelowWindow;
        }
        let bit = 1 << (counter % WORD_BITS);
        let word = &mut self.words[Self::index(counter)];
        if *word & bit != 0 {
            return ReplayVerdict::Duplicate;
        }
        *word |= bit;
        ReplayVerdict::New
    }

    /// Marks `first` to `last`, all of them newer than any that was seen: as if each were marked for itself.
    #[inline]
    pub fn mark_newer(&mut self, first: u64, last: u64) {
        debug_assert!(self.newest < first && first <= last);
        self.advance(last);
        self.for_words(first, last, |word, bits| *word |= bits);
    }

    /// Moves the window up to `counter`, unmarking the places of the counters between.
    #[inline]
    fn advance(&mut self, counter: u64) {
        if counter - self.newest >= u64::from(REPLAY_WINDOW) {
            self.words.fill(0);
        } else {
            self.for_words(self.newest + 1, counter, |word, bits| *word &= !bits);
        }
        self.newest = counter;
    }

    /// Does `what` to each word that has bits of `first` to `last`.
    #[inline]
    fn for_words(&mut self, mut first: u64, counter: u64, what: impl Fn(&mut u64, u64)) {
        while first <= counter {
            let last = counter.min(first | (WORD_BITS - 1));
            let bits = u64::MAX >> (WORD_BITS - 1 - (last - first)) << (first % WORD_BITS);
            what(&mut self.words[Self::index(first)], bits);
            let Some(next) = last.checked_add(1) else { break };
            first = next;
        }
    }

    #[inline]
    fn index(counter: u64) -> usize {
        (counter / WORD_BITS) as usize % WORDS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const W: u64 = REPLAY_WINDOW as u64;

    #[test]
    fn each_counter_once_whatever_the_order() {
        let mut window = ReplayWindow::default();
        for counter in [0, 5, 3, 1, 2, 4, 64, 63, 128] {
            assert_eq!(window.mark(counter), ReplayVerdict::New, "{counter}");
            assert_eq!(window.mark(counter), ReplayVerdict::Duplicate, "{counter}");
        }
    }

    #[test]
    fn the_window_is_exactly_as_wide_as_promised() {
        let mut window = ReplayWindow::default();
        window.mark(W + 10);
        assert_eq!(window.mark(11), ReplayVerdict::New);
        assert_eq!(window.mark(10), ReplayVerdict::BelowWindow);
        window.mark(u64::MAX);
        assert_eq!(window.mark(u64::MAX - W + 1), ReplayVerdict::New);
        assert_eq!(window.mark(u64::MAX - W), ReplayVerdict::BelowWindow);
        assert_eq!(window.mark(u64::MAX), ReplayVerdict::Duplicate);
        window.clear();
        assert_eq!(window.mark(0), ReplayVerdict::New);
    }

    #[test]
    fn many_newer_ones_are_marked_as_one_by_one() {
        let (mut at_once, mut singly) = (ReplayWindow::default(), ReplayWindow::default());
        let mut last = 0;
        for (gap, count) in
            [(1, 1), (1, 64), (1, 63), (5, 130), (1, 1), (200, 7), (W, 3), (1, W), (2, W + 70), (W - 1, 2)]
        {
            let first = last + gap;
            last = first + count - 1;
            at_once.mark_newer(first, last);
            assert!((first..=last).all(|counter| singly.mark(counter) == ReplayVerdict::New));
            assert_eq!((at_once.newest, &at_once.words), (singly.newest, &singly.words), "{first} to {last}");
        }
        at_once.mark_newer(u64::MAX - 1, u64::MAX);
        assert_eq!(at_once.mark(u64::MAX), ReplayVerdict::Duplicate);
    }

    #[test]
    fn it_agrees_with_a_set_on_a_wild_walk() {
        let (mut window, mut seen, mut newest) = (ReplayWindow::default(), HashSet::new(), 0u64);
        let mut state = 7u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (pick, amount) = (state >> 60, state >> 20 & 0x3ffff);
            let counter = match pick {
                0 => newest + amount,
                1..6 => newest + (amount & 7),
                _ => newest.saturating_sub(amount & 0x1ffff),
            };
            let expected = if counter <= newest && newest - counter >= W {
                ReplayVerdict::BelowWindow
            } else if seen.insert(counter) {
                ReplayVerdict::New
            } else {
                ReplayVerdict::Duplicate
            };
            assert_eq!(window.mark(counter), expected, "counter {counter}, newest {newest}");
            newest = newest.max(counter);
        }
    }
}
