//! The distributions of the runs of a summary as histograms.

use super::axis::PlotUnit;
use super::histograms::{CountedValue, HistogramRow, Histograms, histograms};
use crate::analysis::{Distribution, Kind, Summary};
use crate::metric::Metric;
use crate::report::heading::names;
use crate::report::text::Style;

impl PlotUnit {
    /// The unit of the singletons of `metric`.
    pub(in crate::report) const fn of(metric: Metric) -> PlotUnit {
        if metric.is_rate() { PlotUnit::BitsPerSecond } else { PlotUnit::Nanos }
    }
}

impl HistogramRow {
    /// The row of `distribution`, whose values are the middles of buckets, which are narrower than a column.
    pub(in crate::report) fn of(label: String, distribution: &Distribution) -> HistogramRow {
        let middle = |low: i64, high: i64| (low as f64 + (high - 1) as f64) / 2.0;
        let buckets = distribution.finite.buckets();
        let values =
            buckets.map(|bucket| CountedValue { value: middle(bucket.low_ns, bucket.high_ns), count: bucket.count });
        HistogramRow { label, values: values.collect(), unanswered: distribution.infinite }
    }
}

/// Draws the `distributions` of the main metric of `summaries`, in their order: those of one kind on one axis.
pub fn of_runs(summaries: &[Summary], distributions: &[Distribution], style: Style) -> String {
    let runs = || summaries.iter().zip(names(summaries)).zip(distributions);
    let plot = |kind: Kind| {
        let of_kind = runs().filter(|((summary, _), _)| summary.kind == kind);
        let rows = of_kind.map(|((_, name), distribution)| HistogramRow::of(name, distribution));
        let metric = kind.metric();
        let plot = Histograms { title: metric.title().into(), unit: PlotUnit::of(metric), rows: rows.collect() };
        histograms(&plot, style)
    };
    Kind::ALL.into_iter().map(plot).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
