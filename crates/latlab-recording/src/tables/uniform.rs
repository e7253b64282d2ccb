//! The rows of any table in one form: columns of numbers and columns of words, in the order and with the names of the file.

use super::column::{ColumnSpec, IntColumn, WordColumn};
use super::host::{self, HostRow};
use super::intervals;
use super::probes::{self, ProbeBatch, ProbeColumn};
use super::values::{self, ValueBatch};
use super::wakeups::{self, WakeupBatch};
use crate::facts::{HostSample, StreamEnd, StreamInterval};
use crate::metric::Metric;
use crate::plan::{Side, Via};
use crate::probe::{Fate, Phase};
use crate::recording::error::RecordingError;

/// A table of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedTable {
    Probes,
    Wakeups,
    Intervals,
    Values,
    Host,
}

impl RecordedTable {
    /// The name of its file without the end.
    pub const fn word(self) -> &'static str {
        match self {
            RecordedTable::Probes => "probes",
            RecordedTable::Wakeups => "wakeups",
            RecordedTable::Intervals => "intervals",
            RecordedTable::Values => "values",
            RecordedTable::Host => "host",
        }
    }

    /// Its columns in the order of the file.
    pub fn columns(self) -> Vec<ColumnSpec> {
        match self {
            RecordedTable::Probes => probes::COLUMNS.map(ColumnSpec::imported).to_vec(),
            RecordedTable::Wakeups => wakeups::COLUMNS.to_vec(),
            RecordedTable::Intervals => intervals::COLUMNS.to_vec(),
            RecordedTable::Values => values::COLUMNS.to_vec(),
            RecordedTable::Host => host::columns(),
        }
    }
}

/// The values of one column in consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniformColumn {
    /// Numbers and flags; of a flag 1 or 0.
    Ints(IntColumn),
    Words(WordColumn<&'static str>),
}

/// Consecutive rows of a table, one column for each of the table's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniformBatch {
    pub rows: usize,
    /// In the order of the file.
    pub columns: Vec<UniformColumn>,
}

fn words<T: Copy>(column: &WordColumn<T>, word: impl Fn(T) -> &'static str) -> UniformColumn {
    UniformColumn::Words(match column {
        WordColumn::All(value) => WordColumn::All(word(*value)),
        WordColumn::Each(values) => WordColumn::Each(values.iter().map(|value| word(*value)).collect()),
    })
}

/// A batch that was read with [`ProbeColumn::ALL`].
pub(crate) fn of_probes(mut batch: ProbeBatch) -> UniformBatch {
    let (phase, fate) = (words(&batch.phase, Phase::word), words(&batch.fate, Fate::word));
    let column = |column: ProbeColumn| match batch.ints_mut(column) {
        Some(ints) => UniformColumn::Ints(std::mem::take(ints)),
        None if column == ProbeColumn::Phase => phase.clone(),
        None => fate.clone(),
    };
    let columns = ProbeColumn::ALL.map(column).to_vec();
    UniformBatch { rows: batch.rows, columns }
}

pub(crate) fn of_wakeups(batch: WakeupBatch) -> UniformBatch {
    let (phase, via) = (words(&batch.phase, Phase::word), words(&batch.via, Via::word));
    let [seq, due, woke, cpu] = [batch.seq, batch.due_ns, batch.woke_ns, batch.cpu].map(UniformColumn::Ints);
    UniformBatch { rows: batch.rows, columns: vec![seq, phase, due, woke, cpu, via] }
}

pub(crate) fn of_values(batch: ValueBatch) -> UniformBatch {
    let metric = words(&batch.metric, Metric::name);
    let [seq, value, count] = [batch.seq, batch.value_ns, batch.count].map(UniformColumn::Ints);
    UniformBatch { rows: batch.rows, columns: vec![seq, metric, value, count] }
}

/// The rows of a stream of packets of `size_bytes`, of an imported log without what no log has.
pub(crate) fn of_intervals(rows: &[StreamInterval], size_bytes: u32, is_imported: bool) -> UniformBatch {
    let flow = rows.iter().map(|row| Some(row.flow.into())).collect();
    let side = words(&rows.iter().map(StreamInterval::end).collect(), StreamEnd::word);
    let phase = words(&rows.iter().map(|row| row.phase).collect(), Phase::word);
    let numbers = IntColumn::transposed(rows.iter().map(|row| match is_imported {
        true => intervals::logged_numbers(row, size_bytes),
        false => intervals::numbers(row, size_bytes),
    }));
    let head = [UniformColumn::Ints(flow), side, phase];
    let columns = head.into_iter().chain(numbers.into_iter().map(UniformColumn::Ints)).collect();
    UniformBatch { rows: rows.len(), columns }
}

/// Samples of a batch: on a host of 64 CPUs they make 16,640 rows.
const SAMPLES: usize = 256;

/// The rows of `samples`, that of the host before those of its CPUs.
pub(crate) fn of_host_samples(
    mut samples: impl Iterator<Item = Result<(Side, HostSample), RecordingError>>,
) -> impl Iterator<Item = Result<UniformBatch, RecordingError>> {
    std::iter::from_fn(move || {
        let taken: Result<Vec<_>, _> = samples.by_ref().take(SAMPLES).collect();
        match taken {
            Ok(taken) if taken.is_empty() => None,
            Ok(taken) => Some(Ok(of_samples(&taken))),
            Err(error) => Some(Err(error)),
        }
    })
}

fn of_samples(samples: &[(Side, HostSample)]) -> UniformBatch {
    let rows: Vec<HostRow> = samples.iter().flat_map(|(side, sample)| HostRow::from_sample(*side, sample)).collect();
    let host = words(&rows.iter().map(|row| row.side).collect(), Side::word);
    let numbers = IntColumn::transposed(rows.iter().map(HostRow::numbers));
    let columns = std::iter::once(host).chain(numbers.into_iter().map(UniformColumn::Ints)).collect();
    UniformBatch { rows: rows.len(), columns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tables::column::ColumnType;
    use crate::recording::tables::host::tests::sample;

    /// The number of columns, and that words and numbers are at the places of the file.
    #[track_caller]
    fn expect_form(table: RecordedTable, batch: &UniformBatch) {
        let columns = table.columns();
        assert_eq!(columns.len(), batch.columns.len(), "{table:?}");
        for (column, values) in columns.iter().zip(&batch.columns) {
            let is_word = matches!(values, UniformColumn::Words(_));
            assert_eq!(column.column_type == ColumnType::Word, is_word, "{table:?}: {}", column.name);
        }
    }

    #[test]
    fn each_table_has_its_columns_in_the_order_of_its_file() {
        expect_form(RecordedTable::Probes, &of_probes(ProbeBatch::default()));
        expect_form(RecordedTable::Wakeups, &of_wakeups(WakeupBatch::default()));
        expect_form(RecordedTable::Intervals, &of_intervals(&[], 64, false));
        let samples = [0, 1].map(|seq| Ok((Side::Local, sample(seq))));
        let batches: Vec<_> = of_host_samples(samples.into_iter()).collect::<Result<_, _>>().expect("no error");
        assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [6]);
        expect_form(RecordedTable::Host, &batches[0]);
    }
}
