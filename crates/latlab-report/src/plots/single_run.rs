//! Figures of one run: its histogram; and over time its delays as a density, the rates of a stream, and the host below them
//! on the same time axis.

use super::axes::{ValueLimits, count_axis, extended, has_marks, metric_axis};
use super::input::{self, PlotInput};
use crate::analysis::distribution::{
    ColumnLosses, DelayGrid, GridCell, HostQuantity, HostSeries, RunDistribution, StreamRatePoint,
};
use crate::metric::Metric;
use crate::plan::Side;
use crate::report::figure::{Axis, AxisUnit, Bar, Cell, Figure, InfiniteMark, Marks, Point, Scale, Series};
use crate::units::Nanos;
use crate::units::human::{counted, grouped};

/// Darkness of a cell with one probe, where others have more: it can be seen in print.
const LEAST_DARKNESS: f64 = 0.25;
/// Part of the axis of delays above the largest one that has the marks of lost probes.
const LOST_MARGIN: f64 = 0.04;
/// Part of the axis of delays to the right of the largest one that has the bar of lost probes.
const LOST_BAR: f64 = 0.06;

/// The histogram, with a bar of its own for lost probes beyond the largest delay.
pub(super) fn histogram(input: &PlotInput) -> Vec<Figure> {
    let Some(run) = input.only_run() else { return Vec::new() };
    let edges = run.histogram.iter().flat_map(|bin| [bin.low_ns as f64, bin.high_ns as f64]);
    let Some(delays) = ValueLimits::of(edges).map(ValueLimits::suited) else { return Vec::new() };
    let bar = |from: f64, to: f64, count: u64| Bar { from, to, y: count as f64 };
    let filled = run.histogram.iter().filter(|bin| bin.count > 0);
    let bars = filled.map(|bin| bar(bin.low_ns as f64, bin.high_ns as f64, bin.count)).collect();
    let lost = (run.lost > 0).then(|| bar(f64::INFINITY, f64::INFINITY, run.lost)).into_iter().collect();
    let scale = if run.lost > 0 { extended(&delays, LOST_BAR) } else { delays };
    let most = run.histogram.iter().map(|bin| bin.count).chain([run.lost]).max().unwrap_or(0);
    let series = [
        Series { name: run.metric.title().into(), colour: 0, marks: Marks::Bars(bars) },
        Series { name: "lost or late: without a delay".into(), colour: 1, marks: Marks::Bars(lost) },
    ];
    let rest = if run.lost > 0 { " The bar at the right end is of lost and late probes." } else { "" };
    vec![Figure {
        name: "histogram",
        title: "How often each delay occurred".into(),
        caption: format!("{} Bars have logarithmic heights.{rest}", input::of_run(run)),
        x: metric_axis(run.metric, scale),
        y: count_axis(&format!("{}s", input::thing(run.metric)), most),
        series: series.into_iter().filter(has_marks).collect(),
    }]
}

/// Delays and rates over time.
pub(super) fn delays_and_rates(input: &PlotInput) -> Vec<Figure> {
    let Some(run) = input.only_run() else { return Vec::new() };
    delays(run).into_iter().chain(rates(run)).collect()
}

/// What times count from, but those of the rates of a stream.
fn origin(run: &RunDistribution) -> String {
    let thing = input::thing(run.metric);
    match run.over_time {
        // A stream without concurrent probes has intervals alone.
        None => "the first measured interval".into(),
        // All were refused or skipped: none was measured.
        Some(_) if run.n == 0 => format!("the first {thing} of the measured phase"),
        Some(_) => format!("the first measured {thing}"),
    }
}

/// The axis of all figures of `run` over time, but that of its rates has an origin of its own.
fn time_axis(run: &RunDistribution) -> Axis {
    let of_grid = run.over_time.as_ref().map(|grid| grid.column_ns.0 as f64 * grid.columns as f64);
    let end = of_grid.unwrap_or(run.duration_ns.0 as f64).max(run.duration_ns.0 as f64).max(1.0);
    Axis { label: format!("time since {}", origin(run)), scale: Scale::Linear(0.0, end), unit: AxisUnit::Time }
}

/// Delays over time; a line of marks above them for lost probes. Without a delay, the losses alone.
fn delays(run: &RunDistribution) -> Option<Figure> {
    let grid = run.over_time.as_ref()?;
    let Some(limits) = ValueLimits::of(grid.edges_ns.iter().map(|edge| *edge as f64)) else { return losses(run, grid) };
    let scale = limits.suited();
    let mark = |column: &ColumnLosses| InfiniteMark {
        x: centre(grid, column.column),
        y: f64::INFINITY,
        text: counted(column.count as usize, "probe"),
    };
    let lost = grid.lost.iter().map(mark).collect();
    let count: u64 = grid.lost.iter().map(|column| column.count).sum();
    let series = [
        Series { name: run.metric.title().into(), colour: 0, marks: Marks::Cells(cells(grid, run.metric)) },
        Series { name: "lost or late".into(), colour: 1, marks: Marks::Infinite(lost) },
    ];
    let above = match count {
        0 => String::new(),
        _ => format!(" Marks along the upper edge: times with lost or late probes, {} in all.", grouped(count)),
    };
    let (words, thing) = (input::of_run(run), input::thing(run.metric));
    let caption = format!("{words} Each cell counts its {thing}s, and one {thing} is enough to be seen.{above}");
    Some(Figure {
        name: "over-time",
        title: "Delay over time".into(),
        caption,
        x: time_axis(run),
        y: metric_axis(run.metric, if count > 0 { extended(&scale, LOST_MARGIN) } else { scale }),
        series: series.into_iter().filter(has_marks).collect(),
    })
}

/// The losses of a run without a delay: an axis of delays would have no values.
fn losses(run: &RunDistribution, grid: &DelayGrid) -> Option<Figure> {
    let most = grid.lost.iter().map(|column| column.count).max()?;
    let bar = |column: &ColumnLosses| {
        let from = column.column as f64 * grid.column_ns.0 as f64;
        Bar { from, to: from + grid.column_ns.0 as f64, y: column.count as f64 }
    };
    let marks = Marks::Bars(grid.lost.iter().map(bar).collect());
    Some(Figure {
        name: "over-time",
        title: "Losses over time".into(),
        caption: input::of_run(run),
        x: time_axis(run),
        y: count_axis("lost or late probes", most),
        series: vec![Series { name: "lost or late".into(), colour: 1, marks }],
    })
}

/// The middle of a column.
fn centre(grid: &DelayGrid, column: usize) -> f64 {
    (column as f64 + 0.5) * grid.column_ns.0 as f64
}

fn cells(grid: &DelayGrid, metric: Metric) -> Vec<Cell> {
    let most = grid.cells.iter().map(|cell| cell.count).max().unwrap_or(1).max(2) as f64;
    let cell = |cell: &GridCell| Cell {
        x: cell.column as f64 * grid.column_ns.0 as f64,
        width: grid.column_ns.0 as f64,
        y: grid.edges_ns[cell.row] as f64,
        y_to: grid.edges_ns[cell.row + 1] as f64,
        darkness: LEAST_DARKNESS + (1.0 - LEAST_DARKNESS) * (cell.count as f64).ln() / most.ln(),
        text: counted(cell.count as usize, input::thing(metric)),
    };
    grid.cells.iter().map(cell).collect()
}

/// What was offered, delivered and, if it is known, lost of a stream.
fn rates(run: &RunDistribution) -> Option<Figure> {
    let values = run.rates.iter().flat_map(|rate| [rate.offered_bps, rate.delivered_bps, rate.lost_bps]).flatten();
    let ValueLimits { max, .. } = ValueLimits::of(values)?;
    let step = |colour: usize, name: &str, of: fn(&StreamRatePoint) -> Option<f64>| {
        let points = run.rates.iter().filter_map(|rate| Some(Point { x: rate.at_ns as f64, y: of(rate)? }));
        let mut points: Vec<Point> = points.collect();
        // The last bin ends with the run, or with the next one.
        let next = run.rates.get(points.len()).map_or(run.duration_ns.0, |rate| rate.at_ns);
        points.extend(points.last().map(|last| Point { x: next as f64, y: last.y }));
        Series { name: name.into(), colour, marks: Marks::Steps(points) }
    };
    let series = vec![
        step(0, "offered", |rate| rate.offered_bps),
        step(1, "delivered", |rate| rate.delivered_bps),
        step(2, "lost", |rate| rate.lost_bps),
    ];
    // Of the log of a receiver it is unknown what was offered, and of some logs what was lost.
    let has_points = |series: &Series| !matches!(&series.marks, Marks::Steps(points) if points.is_empty());
    let series = series.into_iter().filter(has_points).collect();
    let others = match run.over_time {
        Some(_) => format!(" The other plots over time count from {}.", origin(run)),
        None => String::new(),
    };
    Some(Figure {
        name: "rates",
        title: "Rates of the stream over time".into(),
        caption: format!("Payload of all flows. Sender and receiver each count from their own first interval.{others}"),
        x: Axis { label: "time since the first measured interval".into(), ..time_axis(run) },
        y: Axis { label: "rate".into(), scale: Scale::Linear(0.0, max.max(1.0) * 1.05), unit: AxisUnit::BitRate },
        series,
    })
}

/// A figure of the host.
struct HostFigure {
    quantity: HostQuantity,
    name: &'static str,
    title: &'static str,
    label: &'static str,
    unit: AxisUnit,
    /// The unit of the axis in that of the series.
    factor: f64,
    note: &'static str,
}

const HOST_FIGURES: [HostFigure; 3] = [
    HostFigure {
        quantity: HostQuantity::BusyShare,
        name: "host-busy",
        title: "Load of CPUs over time",
        label: "busy, interrupts included",
        unit: AxisUnit::Share,
        factor: 1.0,
        note: "Between two samples of the host.",
    },
    HostFigure {
        quantity: HostQuantity::Frequency,
        name: "host-frequency",
        title: "Clock frequency of CPUs over time",
        label: "clock frequency",
        unit: AxisUnit::Frequency,
        factor: 1e3,
        note: "Where samples are joined, the lowest and the highest reading.",
    },
    HostFigure {
        quantity: HostQuantity::InterruptRate,
        name: "host-interrupts",
        title: "Interrupts over time",
        label: "interrupts a second",
        unit: AxisUnit::Plain,
        factor: 1.0,
        note: "Hard interrupts, between two samples of the host.",
    },
];

/// The host over the same time axis as the delays.
pub(super) fn host(input: &PlotInput) -> Vec<Figure> {
    // One probe takes no time: a line would have no length.
    let Some(run) = input.only_run().filter(|run| run.duration_ns > Nanos::ZERO) else { return Vec::new() };
    HOST_FIGURES.iter().filter_map(|figure| host_figure(run, figure)).collect()
}

fn host_figure(run: &RunDistribution, figure: &HostFigure) -> Option<Figure> {
    let shown: Vec<_> = run.host.iter().filter(|series| series.quantity == figure.quantity).collect();
    let values = shown.iter().flat_map(|series| series.points.iter().map(|point| point.value * figure.factor));
    let ValueLimits { max, .. } = ValueLimits::of(values)?;
    let has_peer = shown.iter().any(|series| series.side == Side::Peer);
    let step = |(colour, series): (usize, &&HostSeries)| {
        let points = series.points.iter().map(|point| Point { x: point.at_ns as f64, y: point.value * figure.factor });
        let end = match (has_peer, series.side) {
            (false, _) => "",
            (true, Side::Peer) => "peer: ",
            (true, _) => "here: ",
        };
        Series { name: format!("{end}CPU {}", series.cpu), colour, marks: Marks::Steps(points.collect()) }
    };
    let which = match shown.iter().any(|series| series.is_pinned) {
        true => "Shown are the CPUs to which threads of the run were pinned, then the busiest.",
        false => "Shown are the busiest CPUs.",
    };
    let max = if figure.quantity == HostQuantity::BusyShare { 1.0 } else { max.max(1.0) };
    Some(Figure {
        name: figure.name,
        title: figure.title.into(),
        caption: format!("{} {which}", figure.note),
        x: time_axis(run),
        y: Axis { label: figure.label.into(), scale: Scale::Linear(0.0, max * 1.05), unit: figure.unit },
        series: shown.iter().enumerate().map(step).collect(),
    })
}
