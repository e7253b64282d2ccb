//! The Parquet tables of a recording. Each table is declared once, in the file of its name: schema, writer, reader and the
//! uniform rows of `export` follow from that.
//!
//! `column` has types and values of columns, `encode` and `decode` write and read any table, `file` checks what is read
//! before it is decoded. Tables, columns and encodings: docs/recording.md, sections 3 to 6.

pub(super) mod column;
mod declare;
pub(super) mod decode;
pub(super) mod encode;
pub(super) mod executions;
pub(super) mod file;
pub(super) mod host;
pub(super) mod intervals;
pub(super) mod printed;
pub(super) mod probes;
pub(super) mod recorded;
pub(super) mod values;
pub(super) mod wakeups;

use column::ColumnSpec;
use decode::Batch;
use executions::ExecutionBatch;
use host::HostBatch;
use intervals::IntervalBatch;
use printed::PrintedBatch;
use probes::ProbeBatch;
use recorded::RecordedTable;
use values::ValueBatch;
use wakeups::WakeupBatch;

impl RecordedTable {
    /// Its columns in the order of the file, as recordings that latlab measured have them.
    pub fn columns(self) -> Vec<ColumnSpec> {
        match self {
            RecordedTable::Probes => ProbeBatch::specs(),
            RecordedTable::Wakeups => WakeupBatch::specs(),
            RecordedTable::Executions => ExecutionBatch::specs(),
            RecordedTable::Printed => PrintedBatch::specs(),
            RecordedTable::Intervals => IntervalBatch::specs(),
            RecordedTable::Values => ValueBatch::specs(),
            RecordedTable::Host => HostBatch::specs(),
        }
    }

    /// The same of recordings that were measured or imported.
    pub fn imported_columns(self) -> Vec<ColumnSpec> {
        self.columns().into_iter().map(ColumnSpec::imported).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use column::ColumnType;

    /// The section of docs/recording.md about `table`.
    fn section(table: RecordedTable) -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recording.md");
        let text = std::fs::read_to_string(path).expect("a document");
        let begin = text.find(&match table {
            RecordedTable::Values => "### Values of an imported log\n".to_owned(),
            RecordedTable::Executions | RecordedTable::Printed => "### Executions of a command\n".to_owned(),
            table => format!(". `{}`\n", table.file()),
        });
        let section = &text[begin.expect("a section")..];
        section[..section[1..].find("\n## ").expect("another section")].to_owned()
    }

    #[test]
    fn every_column_is_documented_with_its_type() {
        for table in RecordedTable::ALL {
            let section = section(table);
            for column in table.columns().iter().filter(|column| !column.name.starts_with("idle_state")) {
                let of_column = |line: &&str| {
                    line.starts_with('|')
                        && line[..line.find(" | ").unwrap_or(0)].contains(&format!("`{}`", column.name))
                };
                let line = section.lines().find(of_column).unwrap_or_else(|| panic!("{table:?}: {}", column.name));
                let type_text = match column.column_type {
                    ColumnType::I64 => "| INT64 |",
                    ColumnType::U64 => "| INT64, unsigned 64 |",
                    ColumnType::I32 => "| INT32 |",
                    ColumnType::U32 => "| INT32, unsigned 32 |",
                    ColumnType::U16 => "| INT32, unsigned 16 |",
                    ColumnType::Word => "| BYTE_ARRAY, string |",
                    ColumnType::Flag => "| BOOLEAN |",
                    ColumnType::F64 => "| DOUBLE |",
                };
                let is_reading = table == RecordedTable::Host && section.find(line) > section.find("INT64 | meaning");
                assert!(is_reading || line.contains(type_text), "{table:?}: {line}");
            }
        }
    }
}
