//! Axes that hold given values: logarithmic where the values allow it, with a margin.

use crate::analysis::distribution::suits_logarithm;
use crate::metric::Metric;
use crate::report::figure::{Axis, AxisUnit, Marks, Scale, Series};

/// The share of an axis that stays free at either end.
const MARGIN: f64 = 0.04;

/// The smallest and the largest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ValueLimits {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl ValueLimits {
    /// Those of the finite `values`; `None` without any.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<ValueLimits> {
        values.into_iter().filter(|value| value.is_finite()).fold(None, |found: Option<ValueLimits>, value| {
            let ValueLimits { min, max } = found.unwrap_or(ValueLimits { min: value, max: value });
            Some(ValueLimits { min: min.min(value), max: max.max(value) })
        })
    }

    /// A logarithmic scale if all values are positive, else a linear one.
    pub(super) fn logarithmic(self) -> Scale {
        if self.min <= 0.0 {
            return self.linear();
        }
        let factor = if self.max > self.min { (self.max / self.min).powf(MARGIN) } else { 1.5 };
        Scale::Log(self.min / factor, self.max * factor)
    }

    pub(super) fn linear(self) -> Scale {
        let margin = match self.max - self.min {
            0.0 if self.max == 0.0 => 1.0,
            0.0 => self.max.abs() * MARGIN,
            width => width * MARGIN,
        };
        Scale::Linear(self.min - margin, self.max + margin)
    }

    /// A logarithmic scale if the values suit one, else a linear one.
    pub(super) fn suited(self) -> Scale {
        if suits_logarithm(self.min, self.max) { self.logarithmic() } else { self.linear() }
    }
}

/// The value that lies `share` of the length of the axis beyond its upper end.
fn beyond(scale: &Scale, share: f64) -> f64 {
    match scale {
        Scale::Linear(from, to) => to + (to - from) * share,
        Scale::Log(from, to) => to * (to / from).powf(share),
        Scale::Categories(names) => names.len() as f64,
    }
}

/// `scale`, longer by `share` of its length at the upper end.
pub(super) fn extended(scale: &Scale, share: f64) -> Scale {
    match scale {
        Scale::Linear(from, _) => Scale::Linear(*from, beyond(scale, share)),
        Scale::Log(from, _) => Scale::Log(*from, beyond(scale, share)),
        Scale::Categories(_) => scale.clone(),
    }
}

/// An axis of the values of `metric`.
pub(super) fn metric_axis(metric: Metric, scale: Scale) -> Axis {
    let unit = if metric.is_rate() { AxisUnit::BitRate } else { AxisUnit::Time };
    Axis { label: metric.title().into(), scale, unit }
}

/// An axis of quantiles from the smallest delay to one of which the share `least` is as large.
pub(super) fn quantile_axis(least: f64) -> Axis {
    Axis { label: "quantile".into(), scale: Scale::Log(1.0, least.min(0.5)), unit: AxisUnit::Tail }
}

/// An axis of counts from 1 to `most`: bars of one probe can be seen.
pub(super) fn count_axis(label: &str, most: u64) -> Axis {
    Axis { label: label.into(), scale: Scale::Log(0.5, most.max(1) as f64 * 1.5), unit: AxisUnit::Count }
}

/// An axis with a place for each name.
pub(super) fn names_axis(label: &str, names: Vec<String>) -> Axis {
    Axis { label: label.into(), scale: Scale::Categories(names), unit: AxisUnit::Plain }
}

/// Whether a series has a mark: empty ones are left out.
pub(super) fn has_marks(series: &Series) -> bool {
    match &series.marks {
        Marks::Steps(marks) | Marks::Line(marks) | Marks::Points(marks) => !marks.is_empty(),
        Marks::Band(marks) | Marks::StepBand(marks) => !marks.is_empty(),
        Marks::Bars(marks) => !marks.is_empty(),
        Marks::Cells(marks) => !marks.is_empty(),
        Marks::Boxes(marks) => !marks.is_empty(),
        Marks::Intervals(marks) => !marks.is_empty(),
        Marks::Infinite(marks) => !marks.is_empty(),
        Marks::Rule(_) | Marks::Level(_) => true,
    }
}
