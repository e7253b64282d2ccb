//! Delays there and back, each figure with its bound: a table, and the object `one_way` of `latlab.summary/1`.

use serde_json::{Value, json};

use super::figures::{statistics, unit_of};
use super::heading::title_of_run;
use super::json::statistics::delays;
use super::quantiles::{cells, column_above, column_of_two, rows_of_two};
use super::view::TableView;
use crate::analysis::experiment::ColumnFigure;
use crate::analysis::{OneWay, OneWayDelay, Summary};
use crate::recipe::Column;
use crate::stats::Description;
use crate::units::human::{TimeUnit, about, counted};

/// Both ways of the run `name`; `None` if they were not asked for, or no probe has stamps of both ends.
pub(super) fn table(summary: &Summary, name: &str) -> Option<TableView> {
    let one_way = summary.one_way.as_ref()?;
    let ways = [&one_way.forward, &one_way.backward];
    if ways[0].estimate.n == 0 {
        let title = "one way: not known: a bound takes 64 probes between two changes of the clocks";
        return Some(TableView { title: title_of_run(name, title), ..TableView::default() });
    }
    let unit = unit_of(ways.iter().map(|way| &way.estimate));
    let labels = ["forward", "backward", "forward variation", "backward variation"];
    let quantiles: Vec<f64> = ways[0].estimate.quantiles.iter().map(|own| own.q).collect();
    let column = |column: Column| {
        let shown = |described: &Description| cells(ColumnFigure::of(column, described), |ns| unit.figure(ns));
        let bounded = |way: &&OneWayDelay| {
            let bound = way.bound(|described| figure(column, described));
            [
                shown(&way.estimate)[0].clone(),
                bound.map_or_else(String::new, |ns| format!("±{}", at_most(ns / unit.nanos()))),
            ]
        };
        let cells = ways.iter().map(bounded).chain(ways.iter().map(|way| shown(&way.variation)));
        column_of_two(&column.heading(), cells)
    };
    let columns = statistics(&quantiles, true).into_iter().filter(|column| *column != Column::Stddev).map(column);
    let columns = columns.chain([column_above("", vec![unit.symbol().to_owned(); labels.len()])]).collect();
    let legend = legend(one_way);
    Some(TableView {
        legend,
        ..TableView::of(title_of_run(name, &title(one_way)), rows_of_two(labels.map(str::to_owned)), columns)
    })
}

/// Two digits of a bound, rounded up.
fn at_most(bound: f64) -> String {
    let step = 10_f64.powf(bound.max(f64::MIN_POSITIVE).log10().floor() - 1.0);
    about((bound / step - 1e-9).ceil() * step)
}

/// The medians with their bounds; the means if there are no medians.
fn title(one_way: &OneWay) -> String {
    let middle = |described: &Description| figure(Column::Quantile(0.5), described).or(described.mean);
    let middles = [&one_way.forward, &one_way.backward].map(|way| (middle(&way.estimate), way.bound(middle)));
    let [Some(there), Some(back)] = middles.map(|(value, bound)| value.zip(bound)) else { return "one way".into() };
    let words = |(value, bound): (f64, f64)| {
        let unit = TimeUnit::suiting(value.abs().max(bound));
        format!("{} ± {} {}", unit.figure(value), at_most(bound / unit.nanos()), unit.symbol())
    };
    let is_hidden = (there.0 - back.0).abs() <= there.1 + back.1;
    let hidden = if is_hidden { "; the bound is larger than the difference" } else { "" };
    format!("one way: forward {}, backward {}{hidden}", words(there), words(back))
}

fn figure(column: Column, described: &Description) -> Option<f64> {
    match ColumnFigure::of(column, described) {
        ColumnFigure::Known(value) => Some(value),
        ColumnFigure::Unsupported { value, .. } => value,
        ColumnFigure::Lost | ColumnFigure::Nothing => None,
    }
}

/// What the figures rest on.
fn legend(one_way: &OneWay) -> String {
    let stamps = if one_way.by_kernel { "driver to kernel" } else { "program to program" };
    let bound = match (one_way.one_clock, one_way.stated) {
        (true, _) => "both ends read one clock",
        (false, Some(true)) => "± is the largest error: probes and hosts confine the offset of the clocks",
        (false, Some(false)) => {
            "± is the largest error by the probes alone: they contradict what both hosts state of their clocks"
        }
        (false, None) => "± is the largest error: the probes confine the offset of the clocks",
    };
    let without = match one_way.without_bound {
        0 => String::new(),
        count => {
            format!("\n{} without a bound: a clock was set, or there are too few", counted(count as usize, "probe"))
        }
    };
    format!("{stamps}; {bound}{without}")
}

/// The object `one_way`.
pub(super) fn document(one_way: &OneWay) -> Value {
    let way = |way: &OneWayDelay| json!({ "estimate": delays(&way.estimate), "low": delays(&way.low), "high": delays(&way.high) });
    json!({
        "stamps": if one_way.by_kernel { "kernel" } else { "program" },
        "one_clock": one_way.one_clock,
        "without_bound": one_way.without_bound,
        "hosts_agree": one_way.stated,
        "forward_delay": way(&one_way.forward),
        "backward_delay": way(&one_way.backward),
        "forward_variation": delays(&one_way.forward.variation),
        "backward_variation": delays(&one_way.backward.variation),
    })
}
