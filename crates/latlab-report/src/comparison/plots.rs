//! The groups of a comparison as plots in characters.

use crate::Style;
use crate::analysis::comparison::{Comparisons, Quantity, RunGroup};
use crate::analysis::{Estimand, MetricHistogram};
use crate::figure::axis::AxisUnit;
use crate::text_plots::{CountedValue, FigureGroup, HistogramRow, Histograms, figures, histograms};

const fn unit(quantity: Quantity) -> AxisUnit {
    match quantity {
        Quantity::Of(Estimand::Statistic(metric, _)) => AxisUnit::of(metric),
        Quantity::Of(Estimand::Ratio(_)) => AxisUnit::Share,
        Quantity::Value => AxisUnit::Plain,
    }
}

/// Draws the figures of the runs for each compared quantity, and below them the singletons of each group: `distributions`,
/// one for each, or for files of numbers, which have no others, the numbers.
pub fn plots(comparisons: &Comparisons, distributions: &[MetricHistogram], style: Style) -> String {
    let groups = &comparisons.groups.groups;
    let is_compared = |quantity: &Quantity| comparisons.rows.iter().any(|row| row.quantity == *quantity && !row.added);
    let quantities = comparisons.quantities.iter().enumerate().filter(|(_, quantity)| is_compared(quantity));
    let of_figures = quantities.map(|(index, quantity)| {
        let group = |group: &RunGroup| FigureGroup { name: group.words(), figures: group.limits(index) };
        let title = match quantity {
            Quantity::Value => "values".to_owned(),
            quantity => format!("{} of each run, {}", quantity.statistic_name(), quantity.metric_title()),
        };
        figures(&title, unit(*quantity), &groups.iter().map(group).collect::<Vec<_>>(), style)
    });
    let all = of_figures.chain([histograms(&singletons(comparisons, distributions), style)]);
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn singletons(comparisons: &Comparisons, distributions: &[MetricHistogram]) -> Histograms {
    let groups = &comparisons.groups.groups;
    match comparisons.distributed_metric() {
        Some(metric) => {
            let row = |(group, distribution): (&RunGroup, _)| HistogramRow::of(group.words(), distribution);
            let rows = groups.iter().zip(distributions).map(row).collect();
            let title = format!("{}, all runs of a group", metric.title());
            Histograms { title, unit: AxisUnit::of(metric), rows }
        }
        None => {
            let number = |value: f64| CountedValue { value, count: 1 };
            let row = |group: &RunGroup| HistogramRow {
                label: group.words(),
                values: group.values(0).into_iter().map(number).collect(),
                unanswered: 0,
            };
            let is_of_numbers = comparisons.quantities.contains(&Quantity::Value);
            let rows = groups.iter().filter(|_| is_of_numbers).map(row).collect();
            Histograms { title: "values".into(), unit: AxisUnit::Plain, rows }
        }
    }
}
