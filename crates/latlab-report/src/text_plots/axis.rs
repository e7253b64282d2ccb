//! The horizontal axis of a plot: from values to columns, and the values at its ticks.

use crate::report::text::width;
use crate::units::Nanos;
use crate::units::human::{BitRateUnit, TimeUnit, bit_rate, general, percent, span};

/// The unit of the values of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotUnit {
    /// Times in ns.
    Nanos,
    /// Rates in bit/s.
    BitsPerSecond,
    /// Shares from 0 to 1.
    Share,
    Number,
}

impl PlotUnit {
    /// A round `value` with its unit and with all of its digits, up to six.
    fn tick(self, value: f64) -> String {
        let (scale, symbol) = match self {
            PlotUnit::Nanos => {
                let unit = TimeUnit::suiting(value);
                (unit.nanos(), unit.symbol())
            }
            PlotUnit::BitsPerSecond => {
                let unit = BitRateUnit::suiting(value);
                (unit.bps(), unit.symbol())
            }
            PlotUnit::Share => (0.01, "%"),
            PlotUnit::Number => (1.0, ""),
        };
        format!("{} {symbol}", general(value / scale, 6).replace('-', "−")).trim_end().to_owned()
    }

    /// `value` with its unit.
    pub(super) fn figure(self, value: f64) -> String {
        match self {
            PlotUnit::Nanos => span(Nanos(value.round() as i64)),
            PlotUnit::BitsPerSecond => bit_rate(value),
            PlotUnit::Share => percent(value),
            PlotUnit::Number => general(value, 4).replace('-', "−"),
        }
    }
}

/// From this ratio of its ends on an axis is logarithmic.
const LOGARITHMIC: f64 = 4.0;
/// Columns for each tick of a linear axis.
const TICK_COLUMNS: usize = 14;

#[derive(Clone, Copy, Debug)]
pub(super) struct PlotAxis {
    low: f64,
    high: f64,
    columns: usize,
    pub(super) is_logarithmic: bool,
}

/// The lines of ticks and of their labels, `columns` wide or less.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AxisLines {
    pub(super) ticks: String,
    pub(super) labels: String,
}

impl PlotAxis {
    /// An axis for all of `values`; `None` without any.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, columns: usize) -> Option<PlotAxis> {
        let (mut low, mut high) = (values.clone().reduce(f64::min)?, values.reduce(f64::max)?);
        let is_logarithmic = low > 0.0 && high / low >= LOGARITHMIC;
        if high <= low {
            // A single value stands in the middle.
            let margin = if low == 0.0 { 1.0 } else { low.abs() / 10.0 };
            (low, high) = (low - margin, high + margin);
        }
        Some(PlotAxis { low, high, columns, is_logarithmic })
    }

    /// The column of `value`, which is not outside of the axis.
    pub(super) fn column(&self, value: f64) -> usize {
        let [low, high, value] =
            [self.low, self.high, value].map(|value| if self.is_logarithmic { value.ln() } else { value });
        (((value - low) / (high - low)).clamp(0.0, 1.0) * (self.columns - 1) as f64).round() as usize
    }

    /// Values for ticks, the most important ones first: 1, 5 and 2 times powers of ten, or multiples of such a step.
    fn ticks(&self) -> Vec<f64> {
        let is_within = |value: &f64| (self.low..=self.high).contains(value);
        if self.is_logarithmic {
            let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let of_factor = |factor: f64| powers.clone().map(move |power| factor * 10_f64.powi(power));
            return [1.0, 5.0, 2.0].into_iter().flat_map(of_factor).filter(is_within).collect();
        }
        let least = (self.high - self.low) / (self.columns / TICK_COLUMNS).max(3) as f64;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        (0..=self.columns / 2).map(|number| (first + number as f64) * step).take_while(is_within).collect()
    }

    /// The ticks whose labels do not touch each other.
    pub(super) fn lines(&self, unit: PlotUnit) -> AxisLines {
        let mut ticks = vec!['─'; self.columns];
        let mut labels = vec![' '; self.columns];
        for value in self.ticks() {
            let (label, column) = (unit.tick(value), self.column(value));
            let length = width(&label);
            let Some(last) = self.columns.checked_sub(length) else { continue };
            let start = column.saturating_sub(length / 2).min(last);
            let around = start.saturating_sub(1)..(start + length + 1).min(self.columns);
            if labels[around].iter().all(|char| *char == ' ') {
                ticks[column] = '┴';
                labels[start..start + length].iter_mut().zip(label.chars()).for_each(|(cell, char)| *cell = char);
            }
        }
        let labels: String = labels.into_iter().collect();
        AxisLines { ticks: ticks.into_iter().collect(), labels: labels.trim_end().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(values: &[f64], columns: usize, unit: PlotUnit) -> AxisLines {
        PlotAxis::of(values.iter().copied(), columns).expect("values").lines(unit)
    }

    #[test]
    fn ticks_are_round_and_their_labels_do_not_touch() {
        let AxisLines { ticks, labels } = lines(&[44_200.0, 4_180_000.0], 40, PlotUnit::Nanos);
        assert_eq!(ticks, "───────┴─────────────┴─────┴─────┴──────");
        assert_eq!(labels, "    100 µs        500 µs 1 ms  2 ms");
        assert_eq!(lines(&[48e3, 52e3], 30, PlotUnit::Nanos).labels, "48 µs        50 µs       52 µs");
        let rates = lines(&[230e6, 231.9e6], 60, PlotUnit::BitsPerSecond).labels;
        assert!(rates.contains("231.5 Mbit/s") && rates.contains("231 Mbit/s"), "{rates}");
        assert_eq!(lines(&[-2.0, 3.0], 30, PlotUnit::Number).labels.split_whitespace().next(), Some("−2"));
    }

    #[test]
    fn every_value_has_a_column_and_a_single_one_the_middle() {
        assert!(PlotAxis::of([].into_iter(), 10).is_none());
        for values in [[0.0, 0.0], [5.0, 5.0], [-7.0, -7.0]] {
            let axis = PlotAxis::of(values.into_iter(), 11).expect("values");
            assert_eq!((axis.column(values[0]), axis.is_logarithmic), (5, false));
        }
        let axis = PlotAxis::of([1.0, 1e9].into_iter(), 10).expect("values");
        assert_eq!([1.0, 1e3, 1e9].map(|value| axis.column(value)), [0, 3, 9]);
    }
}
