//! Where rows come from: a recording on disk, or rows in memory. One pass may feed several gatherers, so
//! that a file of ten million rows is decoded as few times as its figures need.

use crate::facts::{HostSample, StreamInterval};
use crate::plan::{Kind, Side};
use crate::probe::{Fate, Phase};
use crate::recording::manifest::Manifest;
use crate::recording::reader::{
    IntColumn, ProbeBatch, ProbeColumn, Recording, RecordingError, WakeupBatch, WordColumn,
};

/// Rows with their manifest.
pub trait ProbeSource {
    /// Why rows cannot be had.
    type Error: std::error::Error + 'static;

    /// What the run was.
    fn manifest(&self) -> &Manifest;

    /// Where it lies, for people.
    fn place(&self) -> String;

    /// Shows every row in order of seq, in batches that hold at least `columns`.
    fn visit(&self, columns: &[ProbeColumn], take: &mut dyn FnMut(&ProbeBatch)) -> Result<(), Self::Error>;

    /// Shows every interval of a stream, those of one flow and end in the order of time; there are none of other runs.
    fn visit_intervals(&self, _take: &mut dyn FnMut(&StreamInterval)) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Shows every wake-up, in the order in which they were due; none where the run had none.
    fn visit_wakeups(&self, take: &mut dyn FnMut(&WakeupBatch)) -> Result<(), Self::Error>;

    /// Shows every host sample, those of one host in the order in which they were taken.
    fn visit_hosts(&self, take: &mut dyn FnMut(Side, &HostSample)) -> Result<(), Self::Error>;
}

impl ProbeSource for Recording {
    type Error = RecordingError;

    fn manifest(&self) -> &Manifest {
        Recording::manifest(self)
    }

    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn visit(&self, columns: &[ProbeColumn], take: &mut dyn FnMut(&ProbeBatch)) -> Result<(), RecordingError> {
        match Recording::manifest(self).kind {
            // Probes may go beside a stream.
            Kind::Stream if Recording::manifest(self).spec.concurrent_probes().is_none() => {}
            Kind::Ping | Kind::Stream => {
                for batch in self.probes(columns)? {
                    take(&batch?);
                }
            }
            Kind::Wakeup => {
                for batch in self.wakeups()? {
                    take(&as_probes(batch?));
                }
            }
        }
        Ok(())
    }

    fn visit_intervals(&self, take: &mut dyn FnMut(&StreamInterval)) -> Result<(), RecordingError> {
        for batch in self.intervals()? {
            batch?.iter().for_each(&mut *take);
        }
        Ok(())
    }

    fn visit_wakeups(&self, take: &mut dyn FnMut(&WakeupBatch)) -> Result<(), RecordingError> {
        for batch in self.wakeups()? {
            take(&batch?);
        }
        Ok(())
    }

    fn visit_hosts(&self, take: &mut dyn FnMut(Side, &HostSample)) -> Result<(), RecordingError> {
        for sample in self.host_samples()? {
            let (side, sample) = sample?;
            take(side, &sample);
        }
        Ok(())
    }
}

/// Wake-ups as judging sees them: asked for when they were due, answered when the thread ran. Every statistic, window
/// and deadline of answers is then one of wake-ups.
pub(crate) fn as_probes(batch: WakeupBatch) -> ProbeBatch {
    let zeros = || IntColumn { values: vec![0; batch.rows], present: None };
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

/// Something that learns from rows.
pub(super) trait RowVisitor {
    /// What it needs to see beside phase and fate.
    fn columns(&self) -> Vec<ProbeColumn>;
    /// Learns from the next rows.
    fn gather(&mut self, batch: &ProbeBatch);
}

/// Feeds every gatherer in one pass.
pub(super) fn feed<S: ProbeSource>(source: &S, gatherers: &mut [&mut dyn RowVisitor]) -> Result<(), S::Error> {
    let mut columns = vec![ProbeColumn::Phase, ProbeColumn::Fate];
    for column in gatherers.iter().flat_map(|gatherer| gatherer.columns()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    source.visit(&columns, &mut |batch| {
        for gatherer in gatherers.iter_mut() {
            gatherer.gather(batch);
        }
    })
}

/// The value of `column` in `row`, where it has one (an empty column has none).
#[inline]
pub(super) fn at(column: &IntColumn, row: usize) -> Option<i64> {
    let present = column.present.as_ref().is_none_or(|present| present.get(row) == Some(&true));
    column.values.get(row).copied().filter(|_| present)
}

/// The word of `row`.
#[inline]
pub(super) fn word<T: Copy>(words: &WordColumn<T>, row: usize) -> T {
    match words {
        WordColumn::All(word) => *word,
        WordColumn::Each(each) => each[row],
    }
}

/// Calls `each` with the number and fate of every row that counts.
pub(super) fn measured(batch: &ProbeBatch, mut each: impl FnMut(usize, Fate)) {
    if batch.phase == WordColumn::All(Phase::Warmup) {
        return;
    }
    for row in 0..batch.rows {
        if word(&batch.phase, row) == Phase::Measure {
            each(row, word(&batch.fate, row));
        }
    }
}

/// The values of `column`, where every row of it has one.
pub(super) fn full<'a>(batch: &ProbeBatch, column: &'a IntColumn) -> Option<&'a [i64]> {
    (column.present.is_none() && column.values.len() == batch.rows).then_some(&column.values)
}

/// Whether every row counts and was answered: then columns can be subtracted whole.
pub(super) fn plain(batch: &ProbeBatch) -> bool {
    batch.phase == WordColumn::All(Phase::Measure) && batch.fate == WordColumn::All(Fate::Answered)
}
