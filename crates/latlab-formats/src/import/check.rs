//! A log is its own check: what it prints as totals against the figures of its rows.

use serde::Deserialize;

use crate::facts::{LoggedProbe, LoggedValue};
use crate::units::human::{TimeUnit, counted, grouped};

use super::LogFault;
use super::field::{LogField, whole};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatedValue {
    pub(super) ns: i64,
    /// One unit of its last digit.
    pub(super) step_ns: i64,
}

impl StatedValue {
    pub(super) fn of(field: &LogField<'_>, unit: TimeUnit) -> Result<StatedValue, LogFault> {
        Ok(StatedValue { ns: field.time(unit)?, step_ns: field.step_ns(unit) })
    }

    pub(super) fn doubled(self) -> StatedValue {
        StatedValue { ns: self.ns.saturating_mul(2), step_ns: self.step_ns.saturating_mul(2) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTotals {
    pub(super) sent: Option<u64>,
    pub(super) received: Option<u64>,
    pub(super) min: Option<StatedValue>,
    pub(super) mean: Option<StatedValue>,
    pub(super) max: Option<StatedValue>,
    /// One unit of the last digit of the coarsest row.
    pub(super) row_step_ns: i64,
}

/// The extremes and the mean that a JSON document states, ns.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatedTimes {
    min: Option<f64>,
    mean: Option<f64>,
    max: Option<f64>,
}

impl StatedTimes {
    /// As totals, each of which holds within a step.
    pub(super) fn within(self, step_ns: impl Fn(i64) -> i64) -> LogTotals {
        let stated = |figure: Option<f64>| figure.map(|ns| StatedValue { ns: ns as i64, step_ns: step_ns(ns as i64) });
        LogTotals { min: stated(self.min), mean: stated(self.mean), max: stated(self.max), ..LogTotals::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowFigures {
    answered: u64,
    lost: u64,
    min: Option<i64>,
    max: Option<i64>,
    sum: i128,
}

impl RowFigures {
    #[inline]
    pub(super) fn value(&mut self, row: &LoggedValue) {
        self.take(row.value_ns, row.count);
    }

    /// Takes a round trip, less the time that its packet was at the reflector if that is known.
    #[inline]
    pub(super) fn probe(&mut self, row: &LoggedProbe) {
        let span = |end: Option<i64>, start: Option<i64>| end?.checked_sub(start?);
        let dwell = span(row.reflector_sent_ns, row.reflector_received_ns).unwrap_or(0);
        self.take(span(row.received_ns, row.sent_ns).map(|trip| trip.saturating_sub(dwell)), 1);
    }

    #[inline]
    fn take(&mut self, value: Option<i64>, count: u64) {
        let Some(value) = value else {
            self.lost = self.lost.saturating_add(count);
            return;
        };
        self.answered = self.answered.saturating_add(count);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
        self.sum += i128::from(value) * i128::from(count);
    }

    fn mean(&self) -> Option<i64> {
        (self.answered > 0).then(|| (self.sum / i128::from(self.answered)) as i64)
    }

    /// Where `totals` and these rows contradict each other, beside `lost` probes without a row: a sentence for each.
    pub(super) fn contradictions(&self, totals: &LogTotals, lost: u64) -> Vec<String> {
        let rows = self.answered.saturating_add(self.lost).saturating_add(lost);
        let counts = [("sent", totals.sent, rows), ("received", totals.received, self.answered)];
        let of_counts = counts.into_iter().filter_map(|(what, stated, own)| {
            let stated = stated.filter(|stated| *stated != own)?;
            Some(format!("{} {what}, {} in its rows", grouped(stated), grouped(own)))
        });
        let values =
            [("minimum", totals.min, self.min), ("mean", totals.mean, self.mean()), ("maximum", totals.max, self.max)];
        let of_values = values.into_iter().filter_map(|(what, stated, own)| {
            let (stated, own) = (stated?, own?);
            let is_off = stated.ns.abs_diff(own) > stated.step_ns.saturating_add(totals.row_step_ns).unsigned_abs();
            is_off.then(|| format!("a {what} of {}, {} in its rows", micros(stated.ns), micros(own)))
        });
        of_counts.chain(of_values).collect()
    }
}

fn micros(ns: i64) -> String {
    let text = format!("{:.3}", ns as f64 / 1e3);
    format!("{} µs", text.trim_end_matches('0').trim_end_matches('.'))
}

pub(super) fn note(count: u64, noun: &str, why: &str) -> Option<String> {
    (count > 0).then(|| format!("{} {why}", counted(count as usize, noun)))
}

const KINDS_MAX: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLines {
    pub count: u64,
    /// The first line of each kind, with its number; lines that differ in their digits alone are of one kind.
    pub first: Vec<(u64, String)>,
    kinds: Vec<Vec<u8>>,
}

impl OtherLines {
    pub(super) fn take(&mut self, number: u64, line: &[u8]) {
        self.count += 1;
        if self.kinds.len() < KINDS_MAX {
            let kind: Vec<u8> = line.iter().filter(|byte| !byte.is_ascii_digit()).take(40).copied().collect();
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
                self.first.push((number, whole(line).shown()));
            }
        }
    }
}
