//! A range with a confidence.

/// An interval for a parameter; an end is none where the data bound it on no side (an infinite one).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The confidence it really has.
    pub confidence: f64,
}

impl Interval {
    /// The interval between two ends, infinite ones turned into none; none at all where neither end is finite.
    pub(super) fn between(low: f64, high: f64, confidence: f64) -> Option<Interval> {
        let finite = |end: f64| end.is_finite().then_some(end);
        let interval = Interval { low: finite(low), high: finite(high), confidence };
        (interval.low.is_some() || interval.high.is_some()).then_some(interval)
    }
}
