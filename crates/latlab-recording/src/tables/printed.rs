//! `printed.parquet`: a row per number that a command printed, in their order.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::facts::PrintedNumber;
use crate::metric::Metric;
use crate::plan::{CommandSpec, PrintedSpec};

table! {
    pub PrintedBatch of Printed {
        /// Of the execution that printed it.
        seq: IntColumn = required U64;
        metric: WordColumn<Metric> = required Word;
        /// In the unit of the metric; of times ns.
        value: IntColumn = required F64;
    }
}

impl PrintedBatch {
    /// The `rows` of a run of `command`.
    pub(crate) fn of(rows: &[PrintedNumber], command: &CommandSpec) -> PrintedBatch {
        let metric = |row: &PrintedNumber| command.printed.get(usize::from(row.metric)).map(PrintedSpec::metric);
        let known = rows.iter().filter_map(|row| Some((row, Metric::Printed(metric(row)?))));
        let known: Vec<(&PrintedNumber, Metric)> = known.collect();
        PrintedBatch {
            rows: known.len(),
            seq: known.iter().map(|(row, _)| Some(row.seq.0 as i64)).collect(),
            metric: known.iter().map(|(_, metric)| *metric).collect(),
            value: known.iter().map(|(row, _)| Some(row.bits as i64)).collect(),
        }
    }
}
