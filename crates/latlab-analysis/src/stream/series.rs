//! The rate at one end of a stream over time. Means are totals over time and quantiles are of time: an interval counts
//! with its length, since a host that is short of CPU time stretches some of them. Formulas: docs/statistics.md, section
//! Rates of a stream.

use std::collections::BTreeMap;

use crate::facts::{IntervalCounts, StreamInterval};
use crate::metric::Metric;
use crate::plan::defaults;
use crate::sample::Sample;
use crate::stats::Description;
use crate::units::Nanos;

/// A shorter interval is the remainder at the end of a slice, or lies between a poll and its repetition: its rate is
/// mostly chance, and it is joined to a neighbour.
const INTERVAL_MIN: Nanos = Nanos(defaults::STREAM_WINDOW.0 / 2);

/// The intervals of each flow at one end, in order of time.
pub(super) type FlowIntervals = BTreeMap<u16, Vec<StreamInterval>>;

/// The rate of all flows together over the measured time.
#[derive(Debug)]
pub(super) struct RateSeries {
    /// In order of time, each [`INTERVAL_MIN`] or longer unless it is the only one.
    levels: Vec<Level>,
}

/// A time in which the rate is known as a whole only.
#[derive(Clone, Copy, Debug)]
struct Level {
    span: Nanos,
    bits: f64,
}

impl Level {
    /// In bits a second.
    fn rate(&self) -> i64 {
        (self.bits / self.span.as_secs_f64()).round() as i64
    }

    fn add(&mut self, other: Level) {
        self.span += other.span;
        self.bits += other.bits;
    }
}

impl RateSeries {
    /// The series of `flows` of packets of `packet_bits`. A level is an interval of the first flow; the other flows add
    /// the share of their packets that falls into it. Time in which the first flow has no interval, but another one has,
    /// is a level too.
    pub(super) fn of(flows: &FlowIntervals, packet_bits: f64) -> RateSeries {
        let first = flows.values().next().map(Vec::as_slice).unwrap_or_default();
        let mut overlaps: Vec<Overlap> = flows.values().map(|rows| Overlap { rows, next: 0 }).collect();
        let level = |window: Window| {
            let packets: f64 = overlaps.iter_mut().map(|overlap| overlap.packets_within(window)).sum();
            Level { span: window.span(), bits: packets * packet_bits }
        };
        RateSeries { levels: without_short(cut(&covered(flows), first).into_iter().map(level)) }
    }

    /// Its description, whose mean is `mean`: the total over the time. `describe` takes all singletons as alike. For the
    /// interval of the mean it gets the mean rates of equal parts of the time, and for what concerns quantiles the rates
    /// in the middle of these parts.
    pub(super) fn described(
        &self,
        metric: Metric,
        mean: Option<f64>,
        describe: &dyn Fn(&Sample) -> Description,
    ) -> Description {
        let of_parts = describe(&Sample::new(metric, self.means_of_parts()));
        let mut described = describe(&Sample::new(metric, self.rates_in_parts()));
        let mut by_rate = self.levels.clone();
        by_rate.sort_by_key(Level::rate);
        for estimate in &mut described.quantiles {
            estimate.value = quantile(&by_rate, estimate.q);
        }
        Description {
            min: by_rate.first().map(|level| level.rate() as f64),
            max: by_rate.last().map(|level| level.rate() as f64),
            mean,
            stddev: described.stddev.and(mean).map(|mean| self.stddev(mean)),
            effective_n: of_parts.effective_n,
            mean_interval: of_parts.mean_interval,
            slow_changes: of_parts.slow_changes.or(described.slow_changes),
            rare_bursts: of_parts.rare_bursts,
            ..described
        }
    }

    /// The rate of each level, in time order.
    pub(super) fn rates(&self) -> Vec<i64> {
        self.levels.iter().map(Level::rate).collect()
    }

    /// The shortest and the longest time of which a rate is known; `None` without any.
    pub(super) fn spans(&self) -> Option<LevelSpans> {
        let spans = || self.levels.iter().map(|level| level.span);
        Some(LevelSpans { shortest: spans().min()?, longest: spans().max()? })
    }

    fn time_ns(&self) -> f64 {
        self.levels.iter().map(|level| level.span.0).sum::<i64>() as f64
    }

    /// The mean rates of as many equal parts of the time as there are levels. If all levels have the same length, these
    /// are their rates.
    fn means_of_parts(&self) -> Vec<i64> {
        let part_ns = self.time_ns() / self.levels.len() as f64;
        let mut levels = self.levels.iter();
        let (mut level, mut left_ns) = (None, 0.0);
        let mut parts = Vec::with_capacity(self.levels.len());
        while parts.len() < self.levels.len() {
            let (mut bits, mut wanted_ns) = (0.0, part_ns);
            loop {
                let taken_ns = wanted_ns.min(left_ns);
                bits += level.map_or(0.0, |level: &Level| level.bits * taken_ns / level.span.0 as f64);
                (wanted_ns, left_ns) = (wanted_ns - taken_ns, left_ns - taken_ns);
                if left_ns > 0.0 {
                    break;
                }
                let Some(next) = levels.next() else { break };
                (level, left_ns) = (Some(next), next.span.0 as f64);
            }
            parts.push((bits * 1e9 / part_ns).round() as i64);
        }
        parts
    }

    /// The rates in the middle of the same parts: each level as often as it contains the middle of a part.
    fn rates_in_parts(&self) -> Vec<i64> {
        let part_ns = self.time_ns() / self.levels.len() as f64;
        let mut until_ns = 0;
        let of_level = |level: &Level| {
            let before = (until_ns as f64 / part_ns).round();
            until_ns += level.span.0;
            let after = (until_ns as f64 / part_ns).round();
            std::iter::repeat_n(level.rate(), (after - before) as usize)
        };
        self.levels.iter().flat_map(of_level).collect()
    }

    /// The standard deviation from `mean`, each level with the weight of its length, with the divisor n − 1.
    fn stddev(&self, mean: f64) -> f64 {
        let squares = |level: &Level| level.span.0 as f64 * (level.rate() as f64 - mean).powi(2);
        let variance = self.levels.iter().map(squares).sum::<f64>() / self.time_ns();
        let n = self.levels.len() as f64;
        (variance * n / (n - 1.0)).sqrt()
    }
}

/// The shortest and the longest level of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSpans {
    pub shortest: Nanos,
    pub longest: Nanos,
}

/// The rate that is not exceeded for the share `q` of the time; levels come in order of their rates. The middle of the
/// time of the lowest level is at 0, that of the highest at 1, and between two middles the rate is interpolated. If all
/// levels have the same length, this is the quantile of type 7.
fn quantile(by_rate: &[Level], q: f64) -> Option<f64> {
    let step_ns = |pair: &[Level]| (pair[0].span + pair[1].span).0 as f64 / 2.0;
    let mut left_ns = q * by_rate.windows(2).map(step_ns).sum::<f64>();
    for pair in by_rate.windows(2) {
        let (step_ns, low, high) = (step_ns(pair), pair[0].rate() as f64, pair[1].rate() as f64);
        if left_ns <= step_ns {
            return Some(low + (high - low) * (left_ns / step_ns));
        }
        left_ns -= step_ns;
    }
    by_rate.last().map(|level| level.rate() as f64)
}

/// `levels` with each short one joined to the next one, and the last one to the one before.
fn without_short(levels: impl Iterator<Item = Level>) -> Vec<Level> {
    let mut joined: Vec<Level> = Vec::new();
    for level in levels {
        match joined.last_mut().filter(|last| last.span < INTERVAL_MIN) {
            Some(short) => short.add(level),
            None => joined.push(level),
        }
    }
    if let Some(rest) = joined.pop_if(|last| last.span < INTERVAL_MIN) {
        match joined.last_mut() {
            Some(last) => last.add(rest),
            None => joined.push(rest),
        }
    }
    joined
}

/// The time in which at least one of `flows` has an interval.
pub(super) fn covered_time(flows: &FlowIntervals) -> Nanos {
    covered(flows).into_iter().fold(Nanos::ZERO, |sum, window| sum + window.span())
}

/// A stretch of time on the clock of one end.
#[derive(Clone, Copy, Debug)]
struct Window {
    start_ns: i64,
    end_ns: i64,
}

impl Window {
    fn span(self) -> Nanos {
        Nanos(self.end_ns - self.start_ns)
    }
}

/// The times in which at least one of `flows` has an interval, in their order and apart from each other.
fn covered(flows: &FlowIntervals) -> Vec<Window> {
    let rows = flows.values().flatten().filter(|row| row.span() > Nanos::ZERO);
    let mut windows: Vec<Window> = rows.map(|row| Window { start_ns: row.start_ns, end_ns: row.end_ns }).collect();
    windows.sort_by_key(|window| window.start_ns);
    let mut apart: Vec<Window> = Vec::new();
    for window in windows {
        match apart.last_mut().filter(|last| window.start_ns <= last.end_ns) {
            Some(last) => last.end_ns = last.end_ns.max(window.end_ns),
            None => apart.push(window),
        }
    }
    apart
}

/// `covered` cut where an interval of the first flow begins or ends.
fn cut(covered: &[Window], first: &[StreamInterval]) -> Vec<Window> {
    let mut edges = first.iter().flat_map(|row| [row.start_ns, row.end_ns]).peekable();
    let mut windows = Vec::with_capacity(first.len());
    for whole in covered {
        let mut rest = *whole;
        while let Some(edge_ns) = edges.next_if(|edge_ns| *edge_ns <= whole.end_ns) {
            if edge_ns > rest.start_ns {
                windows.push(Window { end_ns: edge_ns, ..rest });
                rest.start_ns = edge_ns;
            }
        }
        if rest.span() > Nanos::ZERO {
            windows.push(rest);
        }
    }
    windows
}

/// A flow: its intervals in order of time, and the first that has not ended.
struct Overlap<'a> {
    rows: &'a [StreamInterval],
    next: usize,
}

impl Overlap<'_> {
    /// Its packets within `window`; windows come in order of time.
    fn packets_within(&mut self, window: Window) -> f64 {
        let mut sum = 0.0;
        while let Some(row) = self.rows.get(self.next) {
            let common = row.end_ns.min(window.end_ns) - row.start_ns.max(window.start_ns);
            if common > 0 {
                sum += packets(row) as f64 * common as f64 / row.span().0 as f64;
            }
            if row.end_ns > window.end_ns {
                break;
            }
            self.next += 1;
        }
        sum
    }
}

fn packets(row: &StreamInterval) -> u64 {
    match row.seen {
        IntervalCounts::Offered { packets, .. } => packets,
        IntervalCounts::Counted { delivered, .. } => delivered,
    }
}

#[cfg(test)]
mod tests;
