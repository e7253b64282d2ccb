//! Delays over time as counts in a grid: nothing is smoothed, and every probe is in a cell.

use super::marginal::{bin_of, edges};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::source::{RowVisitor, for_each_measured, value_at};
use crate::units::Nanos;

/// Most columns of a grid.
const COLUMNS: usize = 240;
/// Most rows of a grid.
const ROWS: usize = 96;
/// Most cells with a probe: columns are merged until there are no more, since each is an element of the page.
const CELLS: usize = 8_000;

#[derive(Clone, Debug, PartialEq)]
pub struct DelayGrid {
    /// Width of a column. The first one begins at the first measured probe.
    pub column_ns: Nanos,
    pub columns: usize,
    /// Edges of the rows in ascending order: the first is the smallest delay, the last is 1 ns above the largest. Empty
    /// without a finite delay.
    pub edges_ns: Vec<i64>,
    /// The cells that have a probe, by column and row.
    pub cells: Vec<GridCell>,
    /// Lost and late probes that were due in each column.
    pub lost: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridCell {
    /// Its column, from 0.
    pub column: usize,
    /// Its row, from 0: the smallest delays.
    pub row: usize,
    /// Probes in it, at least 1.
    pub count: u64,
}

/// A span of time on the clock of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeSpan {
    pub(super) start_ns: i64,
    pub(super) length: Nanos,
}

/// From the first to the last measured probe: when it was due, in a closed loop when it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeasuredSpan {
    limits: Option<[i64; 2]>,
}

impl MeasuredSpan {
    pub(super) fn span(self) -> Option<TimeSpan> {
        self.limits.map(|[first, last]| TimeSpan { start_ns: first, length: Nanos(last.saturating_sub(first)) })
    }
}

/// When the probe in `row` was due, in a closed loop when it was sent.
fn time_of(batch: &ProbeBatch, row: usize) -> Option<i64> {
    value_at(&batch.due_ns, row).or_else(|| value_at(&batch.sent_ns, row))
}

impl RowVisitor for MeasuredSpan {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::SentNs]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, _| {
            let Some(at_ns) = time_of(batch, row) else { return };
            let [first, last] = self.limits.get_or_insert([at_ns, at_ns]);
            (*first, *last) = (at_ns.min(*first), at_ns.max(*last));
        });
    }
}

/// A grid, probe by probe.
pub(super) struct GridAccumulator {
    start_ns: i64,
    /// Whether a delay counts from the due time on.
    from_due: bool,
    grid: DelayGrid,
    /// By column, then by row.
    counts: Vec<u64>,
}

impl GridAccumulator {
    /// An empty grid for delays of `metric` between `extremes`.
    pub(super) fn of(metric: Metric, extremes: Option<(i64, i64)>, span: TimeSpan) -> GridAccumulator {
        let column_ns = Nanos(span.length.0 / COLUMNS as i64 + 1);
        let columns = (span.length.0 / column_ns.0) as usize + 1;
        let edges_ns = extremes.map_or_else(Vec::new, |(min, max)| edges(min, max, ROWS));
        let rows = edges_ns.len().saturating_sub(1);
        GridAccumulator {
            start_ns: span.start_ns,
            from_due: metric == Metric::WakeupLatency,
            grid: DelayGrid { column_ns, columns, edges_ns, cells: Vec::new(), lost: vec![0; columns] },
            counts: vec![0; columns * rows],
        }
    }

    fn rows(&self) -> usize {
        self.grid.edges_ns.len().saturating_sub(1)
    }

    fn column_of(&self, at_ns: i64) -> usize {
        let column = at_ns.saturating_sub(self.start_ns).max(0) / self.grid.column_ns.0;
        (column as usize).min(self.grid.columns - 1)
    }

    fn take(&mut self, at_ns: i64, delay_ns: i64) {
        if self.rows() > 0 {
            let place = self.column_of(at_ns) * self.rows() + bin_of(&self.grid.edges_ns, delay_ns);
            self.counts[place] += 1;
        }
    }

    /// Joins each column with the next one.
    fn merge_columns(&mut self) {
        let rows = self.rows();
        let sum = |pair: &[u64], row: usize| pair.iter().skip(row).step_by(rows).sum::<u64>();
        let pairs = self.counts.chunks(2 * rows).map(|pair| (0..rows).map(move |row| sum(pair, row)));
        self.counts = pairs.flatten().collect();
        self.grid.lost = self.grid.lost.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.grid.columns = self.grid.lost.len();
        self.grid.column_ns = self.grid.column_ns.saturating_mul(2);
    }

    /// The grid, of at most [`CELLS`] cells.
    pub(super) fn finish(mut self) -> DelayGrid {
        while self.grid.columns > 1 && self.counts.iter().filter(|count| **count > 0).count() > CELLS {
            self.merge_columns();
        }
        let rows = self.rows();
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let cell = |(place, count): (usize, &u64)| GridCell { column: place / rows, row: place % rows, count: *count };
        self.grid.cells = filled.map(cell).collect();
        self.grid
    }
}

impl RowVisitor for GridAccumulator {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            let from = if self.from_due { &batch.due_ns } else { &batch.sent_ns };
            let (Some(at_ns), Some(from)) = (time_of(batch, row), value_at(from, row)) else { return };
            match (fate, value_at(&batch.received_ns, row)) {
                (Fate::Answered, Some(received)) => self.take(at_ns, received.saturating_sub(from)),
                (Fate::Late | Fate::Lost, _) if !self.from_due => {
                    let column = self.column_of(at_ns);
                    self.grid.lost[column] += 1;
                }
                _ => {}
            }
        });
    }
}
