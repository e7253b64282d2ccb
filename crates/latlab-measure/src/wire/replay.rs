//! Replay protection: counters and stamps of which only the low bits travel, completed at the other end, and the window of
//! the counters that were received (RFC 4303, section 3.4.3; a ring of words as in RFC 6479).

/// Counters in the window (rule R6 of docs/protocol.md).
pub const REPLAY_WINDOW: u32 = 65_536;

const WORD_BITS: u64 = 64;
const WORDS: usize = REPLAY_WINDOW as usize / WORD_BITS as usize;

/// The check of a counter against the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayVerdict {
    /// Not received before; marked now.
    New,
    Duplicate,
    BelowWindow,
}

/// Which of the newest 65,536 counters were received: 8 KiB, allocated when a slot has its first session, and reused for
/// every further one.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    newest: u64,
    words: Box<[u64]>,
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        ReplayWindow { newest: 0, words: vec![0; WORDS].into_boxed_slice() }
    }
}

impl ReplayWindow {
    /// A window without memory, which must be cleared before its first use.
    pub(crate) fn unused() -> ReplayWindow {
        ReplayWindow { newest: 0, words: Box::default() }
    }

    /// Removes all counters; gets the memory if there was none.
    pub(crate) fn clear(&mut self) {
        if self.words.is_empty() {
            *self = ReplayWindow::default();
        }
        self.newest = 0;
        self.words.fill(0);
    }

    /// The highest counter received; 0 if none was.
    #[inline]
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Marks `counter` as received. Only for counters with a genuine tag: a forged one could move the window beyond all
    /// genuine ones.
    #[inline]
    pub(crate) fn mark(&mut self, counter: u64) -> ReplayVerdict {
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

    /// Marks `first` to `last`, all higher than any received counter: the same result as marking each.
    #[inline]
    pub(crate) fn mark_newer(&mut self, first: u64, last: u64) {
        debug_assert!(self.newest < first && first <= last);
        self.advance(last);
        self.for_words(first, last, |word, bits| *word |= bits);
    }

    /// Moves the window up to `counter` and clears the bits of the counters in between.
    #[inline]
    fn advance(&mut self, counter: u64) {
        if counter - self.newest >= u64::from(REPLAY_WINDOW) {
            self.words.fill(0);
        } else {
            self.for_words(self.newest + 1, counter, |word, bits| *word &= !bits);
        }
        self.newest = counter;
    }

    /// Calls `what` for each word that contains bits of `first` to `counter`, with these bits.
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

/// The 64-bit counter of a probe or packet whose low half is `low`, given the newest genuine counter and a window of
/// `window` (RFC 4303, appendix A2.2): in the window or above it, never below it. The tag covers all 64 bits, and so
/// verifies the result.
#[inline]
pub fn extend_receive_counter(newest: u64, window: u32, low: u32) -> u64 {
    let newest_low = newest as u32;
    let high = newest >> 32;
    let bottom = newest_low.wrapping_sub(window - 1);
    let high = if newest_low >= window - 1 {
        // The window lies within one range of 2^32: lower numbers belong to the next range.
        if low >= bottom { high } else { high.wrapping_add(1) }
    } else {
        // The window spans two ranges. There is none before the first range: all numbers belong to it.
        if low >= bottom && high > 0 { high - 1 } else { high }
    };
    high << 32 | u64::from(low)
}

/// The 64-bit counter of an answer whose low half is `low`: at most `newest`, the highest one sent. `None` if no such
/// counter exists: the probe was never sent.
#[inline]
pub fn extend_sent_counter(newest: u64, low: u32) -> Option<u64> {
    newest.checked_sub(u64::from((newest as u32).wrapping_sub(low)))
}

/// Bits of the receive stamp that every answer carries: they wrap after 68.7 s.
const STAMP_BITS: u32 = 36;
/// How much later than expected a stamp may be (4.3 s): the clocks may have drifted apart since the last answer, and the
/// delay of an answer may be shorter than expected.
const STAMP_AHEAD_NS: u64 = 1 << 32;

/// The stamp in ns whose low 36 bits are `low`: the latest one at most 4.3 s after `expected`. Correct for answers up to
/// 64 s late, four seconds more than the longest time-out.
#[inline]
pub(crate) fn extend_stamp(expected_ns: i64, low: u64) -> i64 {
    let latest = (expected_ns as u64).wrapping_add(STAMP_AHEAD_NS);
    let back = latest.wrapping_sub(low) & ((1 << STAMP_BITS) - 1);
    latest.wrapping_sub(back) as i64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const W: u64 = REPLAY_WINDOW as u64;

    #[test]
    fn each_counter_is_new_once_in_any_order() {
        let mut window = ReplayWindow::default();
        for counter in [0, 5, 3, 1, 2, 4, 64, 63, 128] {
            assert_eq!(window.mark(counter), ReplayVerdict::New, "{counter}");
            assert_eq!(window.mark(counter), ReplayVerdict::Duplicate, "{counter}");
        }
    }

    #[test]
    fn the_window_has_exactly_its_documented_width() {
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
    fn marking_a_range_equals_marking_each_counter() {
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
    fn the_window_agrees_with_a_set_on_a_random_walk() {
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

    const SPAN: u64 = 1 << 32;

    #[test]
    fn the_reflector_extends_counters_across_a_wrap_of_the_low_half() {
        let window = 65_536;
        for (newest, low, expected) in [
            (0, 0, 0),
            (0, 7, 7),
            (0, 0xffff_ff00, 0xffff_ff00),
            (10, 3, 3),
            (SPAN - 1, 0, SPAN),
            (SPAN - 1, u32::MAX - 5, SPAN - 6),
            (SPAN + 3, u32::MAX, SPAN - 1),
            (SPAN + 3, 4, SPAN + 4),
            (SPAN + 65_535, 0, SPAN),
            (SPAN + 65_535, u32::MAX, 2 * SPAN - 1),
            (SPAN + 65_536, 0, 2 * SPAN),
            (SPAN + 65_536, 1, SPAN + 1),
        ] {
            assert_eq!(extend_receive_counter(newest, window, low), expected, "newest {newest}, low {low}");
        }
    }

    #[test]
    fn the_sender_extends_to_counters_that_it_has_sent_only() {
        assert_eq!(extend_sent_counter(5, 5), Some(5));
        assert_eq!(extend_sent_counter(5, 0), Some(0));
        assert_eq!(extend_sent_counter(5, 6), None);
        assert_eq!(extend_sent_counter(SPAN + 5, 6), Some(6));
        assert_eq!(extend_sent_counter(SPAN + 5, u32::MAX), Some(SPAN - 1));
        assert_eq!(extend_sent_counter(3 * SPAN, 0), Some(3 * SPAN));
    }

    #[test]
    fn a_stamp_is_correct_from_64_s_before_to_4_s_after_the_expected_one() {
        for expected in [0i64, 1 << 36, 987_654_321_012_345, -3] {
            for offset_s in [-64, -63, -30, -5, -1, 0, 1, 4] {
                let stamp = expected + offset_s * 1_000_000_000;
                let low = stamp as u64 & ((1 << STAMP_BITS) - 1);
                assert_eq!(extend_stamp(expected, low), stamp, "{offset_s} s from {expected}");
            }
        }
    }
}
