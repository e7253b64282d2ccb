//! `values.parquet`: the values of an imported log without instants, in the order of the log.

use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::column::ColumnType::{I64, U64, Word};
use super::column::{ColumnSpec, IntColumn, WordColumn};
use super::decode::TableReader;
use super::encode::TableWriter;
use super::file::TableFile;
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::recording::error::RecordingError;

/// The file's name in a recording's directory.
pub(crate) const VALUES: &str = "values.parquet";

pub(super) const COLUMNS: [ColumnSpec; 4] = [
    ColumnSpec::nullable("seq", U64),
    ColumnSpec::required("metric", Word),
    ColumnSpec::nullable("value_ns", I64),
    ColumnSpec::required("count", U64),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueBatch {
    pub rows: usize,
    /// Number in the order of measuring, ascending; null if the order is unknown.
    pub seq: IntColumn,
    pub metric: WordColumn<Metric>,
    /// ns; null if no answer came, which counts as +infinity.
    pub value_ns: IntColumn,
    pub count: IntColumn,
}

/// Begins the table of the run `run_id` in `target`.
pub(crate) fn create<W: Write + Send>(target: W, run_id: &str) -> ParquetResult<TableWriter<W>> {
    TableWriter::new(target, run_id, "value", &COLUMNS)
}

/// Writes `values` of `metric` as a row group.
pub(crate) fn write<W: Write + Send>(
    table: &mut TableWriter<W>,
    metric: Metric,
    values: &[LoggedValue],
) -> ParquetResult<()> {
    let mut group = table.group(values.len())?;
    group.ints(&values.iter().map(|row| row.seq.map(|seq| seq as i64)).collect())?;
    group.words(&WordColumn::All(metric), Metric::name)?;
    group.ints(&values.iter().map(|row| row.value_ns).collect())?;
    group.ints(&values.iter().map(|row| Some(row.count as i64)).collect())?;
    group.close()
}

/// The table in `file`.
///
/// # Errors
/// If it has other columns.
pub(crate) fn open(file: TableFile) -> Result<TableReader, RecordingError> {
    TableReader::new(file, &COLUMNS)
}

/// A batch for each row group.
pub(crate) fn batches(table: TableReader) -> impl Iterator<Item = Result<ValueBatch, RecordingError>> {
    table.groups(|group| {
        Ok(ValueBatch {
            rows: group.rows,
            seq: group.ints(0)?,
            metric: group.words(1, Metric::from_name)?,
            value_ns: group.ints(2)?,
            count: group.ints(3)?,
        })
    })
}
