//! A rate limit: a bucket of tokens that fills at a steady rate. Pure; the time comes as an argument.

use crate::units::{Nanos, ReflectorClock, Stamp};

/// Lets through so many per second, and as many at once after a pause of a second.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    gap: Nanos,
    depth: Nanos,
    /// When the bucket will be full again.
    full_at: Option<Stamp<ReflectorClock>>,
}

impl TokenBucket {
    /// A full bucket for `rate_per_second`, at least 1.
    pub(super) fn new(rate_per_second: u32) -> TokenBucket {
        let gap = Nanos(1_000_000_000 / i64::from(rate_per_second.max(1)));
        TokenBucket { gap, depth: Nanos::from_secs(1), full_at: None }
    }

    /// Takes a token, if there is one at `now`.
    pub(super) fn take(&mut self, now: Stamp<ReflectorClock>) -> bool {
        let from = self.full_at.filter(|full_at| *full_at > now).unwrap_or(now);
        let full_at = from + self.gap;
        let within = full_at - now <= self.depth;
        if within {
            self.full_at = Some(full_at);
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_at_once_and_then_the_rate() {
        let mut bucket = TokenBucket::new(10);
        let at = |millis| Stamp::from_nanos(Nanos::from_millis(millis).0);
        let taken = |bucket: &mut TokenBucket, millis| (0..100).filter(|_| bucket.take(at(millis))).count();
        assert_eq!(taken(&mut bucket, 0), 10);
        assert_eq!(taken(&mut bucket, 99), 0);
        assert_eq!(taken(&mut bucket, 100), 1);
        assert_eq!(taken(&mut bucket, 600), 5);
        assert_eq!(taken(&mut bucket, 1_000_000), 10);
    }
}
