//! Numbers that travel with their low bits only, and what the far end makes of them.

/// The reflector's side: the 64-bit counter whose low half is `low`, judged by the newest genuine one and a window
/// of `window` (RFC 4303, appendix A2.2): in the window, or after it; never before it. Whether the guess was
/// right, the tag shows, since it covers all 64 bits.
#[inline]
pub fn extend_receive_counter(newest: u64, window: u32, low: u32) -> u64 {
    let newest_low = newest as u32;
    let high = newest >> 32;
    let bottom = newest_low.wrapping_sub(window - 1);
    let high = if newest_low >= window - 1 {
        // The window lies in one subspace: lower numbers belong to the next one.
        if low >= bottom { high } else { high.wrapping_add(1) }
    } else {
        // The window spans two. In the first subspace nothing came before it: all numbers belong to that one.
        if low >= bottom && high > 0 { high - 1 } else { high }
    };
    high << 32 | u64::from(low)
}

/// The sender's side: the counter, at most `newest` (the highest one sent), whose low half is `low`. None where
/// there is none: an answer to a probe that was never sent.
#[inline]
pub fn extend_sent_counter(newest: u64, low: u32) -> Option<u64> {
    newest.checked_sub(u64::from((newest as u32).wrapping_sub(low)))
}

/// Bits of the receive stamp in every answer: it wraps after 68.7 s.
pub(super) const STAMP_BITS: u32 = 36;
/// How far ahead of what is expected a stamp may lie (4.3 s): the clocks may have drifted apart since the last
/// answer, and an answer that was expected after a delay may come without one.
const STAMP_AHEAD_NS: u64 = 1 << 32;

/// The stamp, in ns, whose low 36 bits are `low`: the latest that is no more than 4.3 s after `expected`. Right for
/// answers that are up to 64 s late, four seconds more than the longest time-out.
#[inline]
pub fn extend_stamp(expected_ns: i64, low: u64) -> i64 {
    let latest = (expected_ns as u64).wrapping_add(STAMP_AHEAD_NS);
    let back = latest.wrapping_sub(low) & ((1 << STAMP_BITS) - 1);
    latest.wrapping_sub(back) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 1 << 32;

    #[test]
    fn the_reflector_extends_across_the_turn_of_the_low_half() {
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
    fn the_sender_never_believes_an_answer_to_the_future() {
        assert_eq!(extend_sent_counter(5, 5), Some(5));
        assert_eq!(extend_sent_counter(5, 0), Some(0));
        assert_eq!(extend_sent_counter(5, 6), None);
        assert_eq!(extend_sent_counter(SPAN + 5, 6), Some(6));
        assert_eq!(extend_sent_counter(SPAN + 5, u32::MAX), Some(SPAN - 1));
        assert_eq!(extend_sent_counter(3 * SPAN, 0), Some(3 * SPAN));
    }

    #[test]
    fn a_stamp_is_right_from_64_s_before_to_4_s_after_what_was_expected() {
        for expected in [0i64, 1 << 36, 987_654_321_012_345, -3] {
            for offset_s in [-64, -63, -30, -5, -1, 0, 1, 4] {
                let stamp = expected + offset_s * 1_000_000_000;
                let low = stamp as u64 & ((1 << STAMP_BITS) - 1);
                assert_eq!(extend_stamp(expected, low), stamp, "{offset_s} s from {expected}");
            }
        }
    }
}
