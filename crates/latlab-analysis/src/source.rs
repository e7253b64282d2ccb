//! The rows of a run, from a recording on disk or from memory. Several visitors share one pass over the rows, since
//! decoding a file of ten million rows takes longer than most statistics.

use crate::facts::{HostSample, StreamInterval};
use crate::plan::{Kind, Side};
use crate::probe::{ExecutionFate, Fate, Phase};
use crate::recording::manifest::Manifest;
use crate::recording::reader::{
    ExecutionBatch, IntColumn, PrintedBatch, ProbeBatch, ProbeColumn, Recording, RecordingError, ValueBatch,
    WakeupBatch, WordColumn,
};

pub trait ProbeSource {
    /// Why rows cannot be read.
    type Error: std::error::Error + 'static;

    fn manifest(&self) -> &Manifest;

    /// Path of the recording, for messages.
    fn location(&self) -> String;

    /// Passes every row to `visit` in order of seq, in batches that hold at least `columns`. Wake-ups are visited as
    /// probes that were due and answered, executions as probes that were sent.
    fn visit_probes(&self, columns: &[ProbeColumn], visit: &mut dyn FnMut(&ProbeBatch)) -> Result<(), Self::Error>;

    /// Passes every interval of a stream to `visit`, those of one flow and end in order of time.
    fn visit_intervals(&self, _visit: &mut dyn FnMut(&StreamInterval)) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Passes every execution of a command to `visit`, in order of seq.
    fn visit_executions(&self, _visit: &mut dyn FnMut(&ExecutionBatch)) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Passes every number that a command printed to `visit`, in order of the executions.
    fn visit_printed(&self, _visit: &mut dyn FnMut(&PrintedBatch)) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Passes every value of an imported log to `visit`, in the order of the log.
    fn visit_values(&self, _visit: &mut dyn FnMut(&ValueBatch)) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Passes every wake-up to `visit` in order of due time.
    fn visit_wakeups(&self, visit: &mut dyn FnMut(&WakeupBatch)) -> Result<(), Self::Error>;

    /// Passes every host sample to `visit`, those of one host in order of time.
    fn visit_host_samples(&self, visit: &mut dyn FnMut(Side, &HostSample)) -> Result<(), Self::Error>;

    /// The text of its trace of a host, if it has one.
    fn trace(&self, _side: Side) -> Option<String> {
        None
    }
}

impl ProbeSource for Recording {
    type Error = RecordingError;

    fn manifest(&self) -> &Manifest {
        Recording::manifest(self)
    }

    fn location(&self) -> String {
        self.path().display().to_string()
    }

    fn visit_probes(&self, columns: &[ProbeColumn], visit: &mut dyn FnMut(&ProbeBatch)) -> Result<(), RecordingError> {
        match Recording::manifest(self).kind {
            Kind::Values => {}
            // A stream has probes only if they were sent concurrently.
            Kind::Stream if Recording::manifest(self).spec.concurrent_probes().is_none() => {}
            Kind::Ping | Kind::Stream => {
                for batch in self.probes(columns)? {
                    visit(&batch?);
                }
            }
            Kind::Wakeup => {
                for batch in self.wakeups()? {
                    visit(&as_probes(batch?));
                }
            }
            Kind::Command => {
                let ignores_failure = Recording::manifest(self).spec.command().is_some_and(|it| it.ignore_failure);
                for batch in self.executions()? {
                    visit(&as_answered(batch?, ignores_failure));
                }
            }
        }
        Ok(())
    }

    fn visit_intervals(&self, visit: &mut dyn FnMut(&StreamInterval)) -> Result<(), RecordingError> {
        for batch in self.intervals()? {
            batch?.iter().for_each(&mut *visit);
        }
        Ok(())
    }

    fn visit_executions(&self, visit: &mut dyn FnMut(&ExecutionBatch)) -> Result<(), RecordingError> {
        for batch in self.executions()? {
            visit(&batch?);
        }
        Ok(())
    }

    fn visit_printed(&self, visit: &mut dyn FnMut(&PrintedBatch)) -> Result<(), RecordingError> {
        for batch in self.printed()? {
            visit(&batch?);
        }
        Ok(())
    }

    fn visit_values(&self, visit: &mut dyn FnMut(&ValueBatch)) -> Result<(), RecordingError> {
        for batch in self.values()? {
            visit(&batch?);
        }
        Ok(())
    }

    fn visit_wakeups(&self, visit: &mut dyn FnMut(&WakeupBatch)) -> Result<(), RecordingError> {
        for batch in self.wakeups()? {
            visit(&batch?);
        }
        Ok(())
    }

    fn visit_host_samples(&self, visit: &mut dyn FnMut(Side, &HostSample)) -> Result<(), RecordingError> {
        for sample in self.host_samples()? {
            let (side, sample) = sample?;
            visit(side, &sample);
        }
        Ok(())
    }

    fn trace(&self, side: Side) -> Option<String> {
        Recording::trace(self, side)
    }
}

/// Wake-ups as probes: sent when they were due, answered when the thread ran. Statistics, windows and deadlines of
/// answers thereby apply to wake-ups.
pub(crate) fn as_probes(batch: WakeupBatch) -> ProbeBatch {
    let zeros = || zeros(batch.rows);
    ProbeBatch {
        rows: batch.rows,
        fate: WordColumn::All(Fate::Answered),
        duplicates: zeros(),
        reordered: zeros(),
        phase: batch.phase,
        seq: batch.seq,
        sent_ns: batch.due_ns.clone(),
        due_ns: batch.due_ns,
        received_ns: batch.woke_ns,
        sent_cpu: batch.cpu,
        ..ProbeBatch::default()
    }
}

/// Executions as probes: sent when they started, answered when they ended unless they failed. Their CPU times stand as the
/// stamps of a reflector whose clock begins at 0: of the sending user code, and of the sending kernel.
fn as_answered(batch: ExecutionBatch, ignores_failure: bool) -> ProbeBatch {
    let zeros = || zeros(batch.rows);
    let fate = |row: usize| {
        let code = value_at(&batch.exit_code, row).unwrap_or(0);
        ExecutionFate::as_probe(batch.fate.get(row), code as u8, ignores_failure)
    };
    ProbeBatch {
        rows: batch.rows,
        fate: (0..batch.rows).map(fate).collect(),
        duplicates: zeros(),
        reordered: zeros(),
        due_ns: IntColumn::nulls(batch.rows),
        reflector_received_ns: zeros(),
        phase: batch.phase,
        seq: batch.seq,
        sent_ns: batch.started_ns,
        received_ns: batch.ended_ns,
        reflector_sent_ns: batch.user_ns,
        reflector_tx_software_ns: batch.system_ns,
        ..ProbeBatch::default()
    }
}

fn zeros(rows: usize) -> IntColumn {
    IntColumn { values: vec![0; rows], present: None }
}

/// A computation over the rows of probes.
pub(super) trait RowVisitor {
    /// The columns that it reads, except for phase and fate.
    fn columns(&self) -> Vec<ProbeColumn>;
    fn visit(&mut self, batch: &ProbeBatch);
}

/// Passes the rows of `source` to each of `visitors`, in one pass.
pub(super) fn visit_rows<S: ProbeSource>(source: &S, visitors: &mut [&mut dyn RowVisitor]) -> Result<(), S::Error> {
    let mut columns = vec![ProbeColumn::Phase, ProbeColumn::Fate];
    for column in visitors.iter().flat_map(|visitor| visitor.columns()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    source.visit_probes(&columns, &mut |batch| visitors.iter_mut().for_each(|visitor| visitor.visit(batch)))
}

/// The value of `column` in `row`; `None` if it is null or the column is empty.
#[inline]
pub(super) fn value_at(column: &IntColumn, row: usize) -> Option<i64> {
    let present = column.present.as_ref().is_none_or(|present| present.get(row) == Some(&true));
    column.values.get(row).copied().filter(|_| present)
}

/// The CPU number in `row`.
pub(super) fn cpu_at(column: &IntColumn, row: usize) -> Option<u16> {
    value_at(column, row).and_then(|cpu| u16::try_from(cpu).ok())
}

/// Calls `each` with the number and the fate of every row of the measuring phase.
pub(super) fn for_each_measured(batch: &ProbeBatch, mut each: impl FnMut(usize, Fate)) {
    if batch.phase == WordColumn::All(Phase::Warmup) {
        return;
    }
    for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
        each(row, batch.fate.get(row));
    }
}

/// The values of `column` if every row has one.
pub(super) fn values_of_all<'a>(batch: &ProbeBatch, column: &'a IntColumn) -> Option<&'a [i64]> {
    (column.present.is_none() && column.values.len() == batch.rows).then_some(&column.values)
}

/// Whether every row was measured and answered, so that whole columns can be subtracted.
pub(super) fn is_all_answered(batch: &ProbeBatch) -> bool {
    batch.phase == WordColumn::All(Phase::Measure) && batch.fate == WordColumn::All(Fate::Answered)
}
