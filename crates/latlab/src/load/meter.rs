//! What a load has done, read every 100 ms, and what that says.

use std::fmt;

use crate::units::Nanos;

/// How often a load is read; its least and its most are over windows of this length.
pub(super) const WINDOW: Nanos = Nanos::from_millis(100);
/// Over windows of this length a CPU load keeps its promise.
const LONG: Nanos = Nanos::from_secs(5);
/// Windows as much shorter than that are whole ones: readings come when the reader gets a CPU.
const WHOLE: f64 = 0.9;

/// Reads what a load has done since it was started.
pub(super) struct Meter {
    /// The unit of the figures.
    pub(super) unit: &'static str,
    /// How many of that unit one of the total in a nanosecond is.
    pub(super) per_ns: f64,
    /// Never goes back.
    pub(super) total: Box<dyn Fn() -> f64>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Meter").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// What was read, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// CLOCK_MONOTONIC.
    pub(super) at_ns: i64,
    /// Done since the start.
    pub(super) total: f64,
}

/// What the readings say, in units in a nanosecond of their total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MeterFigures {
    /// From the first reading to the last.
    pub(super) measured: Nanos,
    /// The mean; `None` if the load is shorter than a window.
    pub(super) mean: Option<f64>,
    /// The least and the most of all windows.
    pub(super) windows: Option<[f64; 2]>,
    /// The least and the most over 5 s.
    pub(super) long_windows: Option<[f64; 2]>,
}

impl MeterFigures {
    /// The figures of `readings`, which ascend.
    pub(super) fn of(readings: &[Reading]) -> MeterFigures {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return MeterFigures::default() };
        let measured = Nanos(last.at_ns - first.at_ns);
        let mean = (measured >= WINDOW).then(|| rate(first, last));
        let whole = |pair: &&[Reading]| (pair[1].at_ns - pair[0].at_ns) as f64 >= WHOLE * WINDOW.0 as f64;
        let windows = extremes(readings.windows(2).filter(whole).map(|pair| rate(&pair[0], &pair[1])));
        MeterFigures { measured, mean, windows, long_windows: extremes(long(readings)) }
    }
}

/// The rate in each window of 5 s, which begins with a reading and ends with the first that is late enough.
fn long(readings: &[Reading]) -> impl Iterator<Item = f64> {
    let mut end = 0;
    readings.iter().map_while(move |first| {
        while readings.get(end)?.at_ns - first.at_ns < LONG.0 - WINDOW.0 / 2 {
            end += 1;
        }
        Some(rate(first, &readings[end]))
    })
}

fn rate(from: &Reading, to: &Reading) -> f64 {
    (to.total - from.total) / (to.at_ns - from.at_ns) as f64
}

fn extremes(rates: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    rates.fold(None, |found, rate| {
        let [least, most] = found.unwrap_or([rate, rate]);
        Some([least.min(rate), most.max(rate)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn readings(list: impl IntoIterator<Item = (i64, i64)>) -> Vec<Reading> {
        list.into_iter().map(|(at, total)| Reading { at_ns: at * MS, total: (total * MS) as f64 }).collect()
    }

    #[test]
    fn windows_and_mean_are_over_their_own_time() {
        // 80 % of a CPU for 300 ms; the second window had 60 %, the third 100 %; one came late, one was cut short.
        let figures = MeterFigures::of(&readings([(0, 0), (100, 80), (200, 140), (310, 250), (320, 250)]));
        assert_eq!(figures.measured, Nanos::from_millis(320));
        assert_eq!((figures.mean, figures.windows), (Some(250.0 / 320.0), Some([0.6, 1.0])));
        assert_eq!(figures.long_windows, None);
    }

    #[test]
    fn what_is_too_short_says_nothing() {
        for list in [vec![], vec![(0, 0)], vec![(0, 0), (50, 40)]] {
            let figures = MeterFigures::of(&readings(list));
            assert_eq!((figures.mean, figures.windows, figures.long_windows), (None, None, None));
        }
    }

    #[test]
    fn long_windows_find_a_weak_stretch_between_strong_ones() {
        // 50 %, but nothing between 4 s and 5 s of 12 s.
        let total = |ms: i64| (ms - (ms - 4_000).clamp(0, 1_000)) / 2;
        let figures = MeterFigures::of(&readings((0..=120).map(|tenth| (tenth * 100, total(tenth * 100)))));
        assert_eq!(figures.long_windows, Some([0.4, 0.5]));
        assert_eq!(figures.windows, Some([0.0, 0.5]));
        // Exactly one window, with readings that came a little early.
        let figures = MeterFigures::of(&readings([(3, 0), (2_500, 1_000), (4_999, 2_498)]));
        assert_eq!(figures.long_windows, Some([0.5, 0.5]));
    }
}
