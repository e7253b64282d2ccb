//! Durations, and instants whose type has their clock.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Serialize};

/// A signed span of time in nanoseconds: ±292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    /// The longest span; stands for "never" where a limit is optional inside a loop.
    pub const MAX: Nanos = Nanos(i64::MAX);

    pub const fn from_micros(n: i64) -> Nanos {
        Nanos(n * 1_000)
    }

    pub const fn from_millis(n: i64) -> Nanos {
        Nanos(n * 1_000_000)
    }

    pub const fn from_secs(n: i64) -> Nanos {
        Nanos(n * 1_000_000_000)
    }

    /// The span in seconds, for rates and figures; not for arithmetic on stamps, which must be exact.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span as a duration of the standard library; negative spans become zero.
    pub fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0) as u64)
    }

    /// The product, at most [`Nanos::MAX`].
    pub const fn saturating_mul(self, times: i64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(span: std::time::Duration) -> Nanos {
        Nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Neg for Nanos {
    type Output = Nanos;
    fn neg(self) -> Nanos {
        Nanos(-self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SenderClock {}

/// The reflector's CLOCK_MONOTONIC: its origin is that of another host or boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReflectorClock {}

/// An instant on clock `C`, in nanoseconds since the origin of that clock.
///
/// The difference of two stamps of one clock is [`Nanos`]; that of stamps of two clocks does not compile:
///
/// ```compile_fail
/// use latlab::units::{ReflectorClock, SenderClock, Stamp};
/// let _ = Stamp::<SenderClock>::from_nanos(2) - Stamp::<ReflectorClock>::from_nanos(1);
/// ```
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp<C> {
    nanos: i64,
    clock: PhantomData<C>,
}

impl<C> Stamp<C> {
    /// The instant `nanos` after the origin of the clock.
    pub const fn from_nanos(nanos: i64) -> Self {
        Stamp { nanos, clock: PhantomData }
    }

    /// Nanoseconds since the origin of the clock, for serialization.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }
}

impl<C> Clone for Stamp<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Stamp<C> {}

impl<C> fmt::Debug for Stamp<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}ns", self.nanos)
    }
}

impl<C> Sub for Stamp<C> {
    type Output = Nanos;
    fn sub(self, earlier: Self) -> Nanos {
        Nanos(self.nanos.saturating_sub(earlier.nanos))
    }
}

impl<C> Add<Nanos> for Stamp<C> {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Stamp::from_nanos(self.nanos.saturating_add(span.0))
    }
}

impl<C> Sub<Nanos> for Stamp<C> {
    type Output = Self;
    fn sub(self, span: Nanos) -> Self {
        Stamp::from_nanos(self.nanos.saturating_sub(span.0))
    }
}

/// What two clocks show at one instant, and how far this may be off: the only way from a stamp of one to a stamp of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    pub near: Stamp<SenderClock>,
    pub far: Stamp<ReflectorClock>,
    pub bound: Nanos,
}

/// A span from a stamp of one clock to one of another: its estimate and how far this may be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRange {
    pub middle: Nanos,
    pub bound: Nanos,
}

impl ClockPair {
    /// The span from the sender to the reflector, near the instant of the pair.
    pub fn forward(self, sent: Stamp<SenderClock>, received: Stamp<ReflectorClock>) -> SpanRange {
        SpanRange { middle: (received - self.far) - (sent - self.near), bound: self.bound }
    }

    /// The span from the reflector back to the sender, near the instant of the pair.
    pub fn backward(self, sent: Stamp<ReflectorClock>, received: Stamp<SenderClock>) -> SpanRange {
        SpanRange { middle: (received - self.near) - (sent - self.far), bound: self.bound }
    }
}

impl SpanRange {
    pub fn low(self) -> Nanos {
        self.middle - self.bound
    }

    pub fn high(self) -> Nanos {
        self.middle + self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_one_clock_have_differences() {
        let early = Stamp::<SenderClock>::from_nanos(1_000);
        let late = early + Nanos::from_micros(3);
        assert_eq!(late - early, Nanos(3_000));
        assert_eq!(late - Nanos(3_000), early);
    }

    #[test]
    fn spans_saturate_instead_of_wrapping() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos::from_secs(9_000_000_000).saturating_mul(9), Nanos::MAX);
    }

    #[test]
    fn spans_between_two_clocks_have_a_bound() {
        let (near, far) = (Stamp::<SenderClock>::from_nanos(5_000), Stamp::<ReflectorClock>::from_nanos(905_000));
        let pair = ClockPair { near, far, bound: Nanos(40) };
        let forward = pair.forward(near - Nanos(100), far + Nanos(200));
        assert_eq!((forward.low(), forward.middle, forward.high()), (Nanos(260), Nanos(300), Nanos(340)));
        assert_eq!(pair.backward(far - Nanos(7), near + Nanos(3)), SpanRange { middle: Nanos(10), bound: Nanos(40) });
    }
}
