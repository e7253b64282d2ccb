//! What executions of a command used and printed, and how they ended, beyond their times.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metric::{Metric, PrintedMetric};
use crate::plan::Kind;
use crate::probe::{ExecutionFate, Phase};
use crate::recording::reader::{ExecutionBatch, IntColumn, ProbeColumn};
use crate::sample::Sample;
use crate::source::{ProbeSource, for_each_measured, value_at};

/// Figures of the measured executions, whether they failed or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExecutionFigures {
    /// The largest peak of resident memory.
    pub max_resident_bytes: i64,
    /// latlab's own, below which no execution has a peak; `None` if the run died.
    pub own_resident_bytes: Option<i64>,
    /// Means for one execution, by the names of their columns; empty without an execution.
    pub means: BTreeMap<&'static str, f64>,
    /// Exit code → executions.
    pub exit_codes: BTreeMap<i64, u64>,
    /// Number of the signal that killed them → executions.
    pub signals: BTreeMap<i64, u64>,
    pub timed_out: u64,
}

/// A column of which a mean is shown.
type Counted = (&'static str, fn(&ExecutionBatch) -> &IntColumn);

const COUNTED: [Counted; 4] = [
    ("voluntary_switches", |batch| &batch.voluntary_switches),
    ("involuntary_switches", |batch| &batch.involuntary_switches),
    ("minor_faults", |batch| &batch.minor_faults),
    ("major_faults", |batch| &batch.major_faults),
];

/// The figures of `source`; `None` if it is a run of another kind.
pub(super) fn figures<S: ProbeSource>(source: &S) -> Result<Option<ExecutionFigures>, S::Error> {
    if source.manifest().kind != Kind::Command {
        return Ok(None);
    }
    let own_resident_bytes = source.manifest().run.own_resident_bytes;
    let mut figures = ExecutionFigures { own_resident_bytes, ..ExecutionFigures::default() };
    let (mut n, mut sums) = (0_u64, [0_i64; COUNTED.len()]);
    source.visit_executions(&mut |batch| {
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let value = |column: &IntColumn| value_at(column, row).unwrap_or(0);
            n += 1;
            figures.max_resident_bytes = figures.max_resident_bytes.max(value(&batch.max_resident_bytes));
            sums.iter_mut().zip(COUNTED).for_each(|(sum, (_, column))| *sum += value(column(batch)));
            *match batch.fate.get(row) {
                ExecutionFate::Exited => figures.exit_codes.entry(value(&batch.exit_code)).or_default(),
                ExecutionFate::Killed => figures.signals.entry(value(&batch.signal)).or_default(),
                ExecutionFate::TimedOut => &mut figures.timed_out,
            } += 1;
        }
    })?;
    let means = COUNTED.into_iter().zip(sums).map(|((name, _), sum)| (name, sum as f64 / n as f64));
    figures.means = means.filter(|_| n > 0).collect();
    Ok(Some(figures))
}

/// The numbers of `metric` that measured executions printed, in their order.
pub(super) fn printed<S: ProbeSource>(source: &S, metric: PrintedMetric) -> Result<Sample, S::Error> {
    let mut first = None;
    source.visit_probes(&[ProbeColumn::Seq], &mut |batch| {
        for_each_measured(batch, |row, _| first = first.or(Some(batch.seq.values[row])));
    })?;
    let is_measured = |seq: i64| first.is_some_and(|first| seq >= first);
    let mut numbers = Vec::new();
    source.visit_printed(&mut |batch| {
        let is_own = |row: &usize| batch.metric.get(*row).name() == metric.name && is_measured(batch.seq.values[*row]);
        numbers.extend((0..batch.rows).filter(is_own).map(|row| f64::from_bits(batch.value.values[row] as u64)));
    })?;
    Ok(Sample::of_numbers(Metric::Printed(metric), &numbers))
}
