//! Figures of one run: over time its delays as a density, the rates of a stream, and the host below them
//! on the same time axis.

use super::input;
use crate::analysis::distribution::{
    DelayGrid, GridCell, HostQuantity, HostSeries, RunDistribution, StreamRates, TimedValue,
};
use crate::figure::axis::{Axis, AxisUnit, Scale, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape};
use crate::plan::Side;
use crate::units::Nanos;
use crate::units::human::{counted, grouped};

/// Darkness of a cell with one probe, where others have more: it can be seen in print.
const LEAST_DARKNESS: f64 = 0.25;
/// Part of the axis of delays beyond the largest one that has the marks or the bar of lost probes.
pub(super) const LOST_MARGIN: f64 = 0.05;

pub(super) fn figures(run: &RunDistribution) -> Vec<Figure> {
    // One probe has no course over time, and a single delay needs no histogram.
    let delays = [delays(run).filter(|_| run.n > 1).or_else(|| losses(run)), rates(run)];
    let hosts = HostQuantity::ALL.into_iter().filter(|_| run.duration_ns > Nanos::ZERO);
    delays.into_iter().chain(hosts.map(|quantity| host(run, quantity))).flatten().collect()
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
fn time_axis(run: &RunDistribution, origin: &str) -> Axis {
    let of_grid = run.over_time.as_ref().map(|grid| grid.column_ns.0 as f64 * grid.columns as f64);
    let end = of_grid.unwrap_or(0.0).max(run.duration_ns.0 as f64).max(1.0);
    Axis::new(format!("time since {origin}"), Scale::Linear(0.0, end), AxisUnit::Time)
}

/// Delays over time; a line of marks above them for lost probes. `None` without a delay.
fn delays(run: &RunDistribution) -> Option<Figure> {
    let (grid, thing) = (run.over_time.as_ref()?, input::thing(run.metric));
    let scale = ValueLimits::of(grid.edges_ns.iter().map(|edge| *edge as f64))?.suited();
    let mark = |(column, count): (usize, u64)| Mark {
        text: counted(count as usize, thing),
        ..Mark::point((column as f64 + 0.5) * grid.column_ns.0 as f64, f64::INFINITY)
    };
    let lost: u64 = grid.lost.iter().sum();
    let above = match lost {
        0 => String::new(),
        _ => format!(" Marks along the upper edge: {thing}s without a delay, {} in all.", grouped(lost)),
    };
    let words = input::of_run(run);
    Some(Figure {
        name: "over-time".into(),
        title: "Delay over time".into(),
        caption: format!("{words} Each cell counts its {thing}s, and one {thing} is enough to be seen.{above}"),
        panels: Vec::new(),
        x: time_axis(run, &origin(run)),
        y: Axis::of_metric(run.metric, if lost > 0 { scale.extended(LOST_MARGIN) } else { scale }),
        series: vec![
            Series::new(run.metric.title(), 0, Shape::Cells, cells(grid, thing)),
            Series::new(input::infinite(run.metric), 1, Shape::Points, lossy(grid).map(mark).collect()),
        ],
    })
}

/// The losses of a run without a delay: an axis of delays would have no values.
fn losses(run: &RunDistribution) -> Option<Figure> {
    let grid = run.over_time.as_ref()?;
    let most = lossy(grid).map(|(_, count)| count).max()?;
    let bars = lossy(grid).map(|(column, count)| Mark::at(ends(grid, column), [count as f64])).collect();
    Some(Figure {
        name: "over-time".into(),
        title: "Losses over time".into(),
        caption: input::of_run(run),
        panels: Vec::new(),
        x: time_axis(run, &origin(run)),
        y: Axis::of_counts(format!("{} {}s", input::infinite(run.metric), input::thing(run.metric)), most),
        series: vec![Series::new(input::infinite(run.metric), 1, Shape::Bars, bars)],
    })
}

/// The columns with lost or late probes.
fn lossy(grid: &DelayGrid) -> impl Iterator<Item = (usize, u64)> {
    grid.lost.iter().copied().enumerate().filter(|(_, count)| *count > 0)
}

fn ends(grid: &DelayGrid, column: usize) -> [f64; 2] {
    let width = grid.column_ns.0 as f64;
    [column as f64 * width, (column + 1) as f64 * width]
}

fn cells(grid: &DelayGrid, thing: &str) -> Vec<Mark> {
    let most = grid.cells.iter().map(|cell| cell.count).max().unwrap_or(1).max(2) as f64;
    let cell = |cell: &GridCell| Mark {
        x: ends(grid, cell.column).into(),
        y: vec![grid.edges_ns[cell.row] as f64, grid.edges_ns[cell.row + 1] as f64],
        darkness: LEAST_DARKNESS + (1.0 - LEAST_DARKNESS) * (cell.count as f64).ln() / most.ln(),
        text: counted(cell.count as usize, thing),
    };
    grid.cells.iter().map(cell).collect()
}

/// What was offered, delivered and lost of a stream. Of the log of a receiver it is unknown what was offered, and of some logs
/// what was lost.
fn rates(run: &RunDistribution) -> Option<Figure> {
    let StreamRates { offered, delivered, lost } = &run.rates;
    let ValueLimits { max, .. } = ValueLimits::of([offered, delivered, lost].into_iter().flatten().map(|it| it.value))?;
    let others = match run.over_time {
        Some(_) => format!(" The other plots over time count from {}.", origin(run)),
        None => String::new(),
    };
    Some(Figure {
        name: "rates".into(),
        title: "Rates of the stream over time".into(),
        caption: format!("Payload of all flows. Sender and receiver each count from their own first interval.{others}"),
        panels: Vec::new(),
        x: time_axis(run, "the first measured interval"),
        y: Axis::new("rate", Scale::Linear(0.0, max.max(1.0) * 1.05), AxisUnit::BitRate),
        series: vec![
            over_time("offered", 0, offered),
            over_time("delivered", 1, delivered),
            over_time("lost", 2, lost),
        ],
    })
}

/// Values that hold until the next one.
fn over_time(name: impl Into<String>, colour: usize, values: &[TimedValue]) -> Series {
    let marks = values.iter().map(|it| Mark::point(it.at_ns as f64, it.value)).collect();
    Series::new(name, colour, Shape::Steps, marks)
}

/// A quantity of CPUs over the same time axis as the delays.
fn host(run: &RunDistribution, quantity: HostQuantity) -> Option<Figure> {
    let shown: Vec<_> = run.host.iter().filter(|series| series.quantity == quantity).collect();
    let (name, title, label, unit) = match quantity {
        HostQuantity::BusyShare => ("busy", "Load of CPUs over time", "busy, interrupts included", AxisUnit::Share),
        HostQuantity::Frequency => {
            ("frequency", "Clock frequency of CPUs over time", "clock frequency", AxisUnit::Frequency)
        }
        HostQuantity::InterruptRate => ("interrupts", "Interrupts over time", "interrupts a second", AxisUnit::Plain),
    };
    let note = match quantity {
        HostQuantity::BusyShare => "Between two samples of the host.",
        HostQuantity::Frequency => "Where samples are joined, the lowest and the highest reading.",
        HostQuantity::InterruptRate => "Hard interrupts, between two samples of the host.",
    };
    let ValueLimits { max, .. } =
        ValueLimits::of(shown.iter().flat_map(|it| it.points.iter().map(|point| point.value)))?;
    let max = if quantity == HostQuantity::BusyShare { 1.0 } else { max.max(1.0) };
    let has_peer = shown.iter().any(|series| series.side == Side::Peer);
    let step = |(colour, series): (usize, &&HostSeries)| {
        let end = match (has_peer, series.side) {
            (false, _) => "",
            (true, Side::Peer) => "peer: ",
            (true, _) => "here: ",
        };
        over_time(format!("{end}CPU {}", series.cpu), colour, &series.points)
    };
    let which = if shown.iter().any(|series| series.is_pinned) {
        "Shown are the CPUs to which threads of the run were pinned, then the busiest."
    } else {
        "Shown are the busiest CPUs."
    };
    Some(Figure {
        name: format!("host-{name}"),
        title: title.into(),
        caption: format!("{note} {which}"),
        panels: Vec::new(),
        x: time_axis(run, &origin(run)),
        y: Axis::new(label, Scale::Linear(0.0, max * 1.05), unit),
        series: shown.iter().enumerate().map(step).collect(),
    })
}
