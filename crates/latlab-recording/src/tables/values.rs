//! `values.parquet`: the values of an imported log without instants, in the order of the log.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::facts::LoggedValue;
use crate::metric::Metric;

table! {
    pub ValueBatch of Values {
        /// Number in the order of measuring, ascending; null if the order is unknown.
        seq: IntColumn = nullable U64;
        metric: WordColumn<Metric> = required Word;
        /// ns; null if no answer came, which counts as +infinity.
        value_ns: IntColumn = nullable I64;
        count: IntColumn = required U64;
    }
}

impl ValueBatch {
    /// `values` of `metric`.
    pub(crate) fn of_log(metric: Metric, values: &[LoggedValue]) -> ValueBatch {
        ValueBatch {
            rows: values.len(),
            seq: values.iter().map(|row| row.seq.map(|seq| seq as i64)).collect(),
            metric: WordColumn::All(metric),
            value_ns: values.iter().map(|row| row.value_ns).collect(),
            count: values.iter().map(|row| Some(row.count as i64)).collect(),
        }
    }
}
