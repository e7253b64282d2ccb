//! `host.parquet`, written and read: row groups small enough that one at a time costs little memory.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;

use super::batch::{IntColumn, WordColumn};
use super::column_file::{ColumnFile, ColumnGroup};
use super::columns::{ColumnShape, schema_of};
use super::error::RecordingError;
use super::host_rows::{HEAD_COLUMNS, HostRow, Readings, columns};
use super::parquet_rows::{Scratch, properties};
use crate::facts::{CpuReadings, HostReadings};
use crate::plan::Side;

/// The file's name in a recording's directory.
pub(crate) const HOST: &str = "host.parquet";
/// Rows of a row group: 35 columns of 9 bytes make 2.6 MB.
const GROUP_ROWS: usize = 8_192;

/// Writes `rows` as the `host.parquet` of the run `run_id` to `target`; how many they were.
pub(crate) fn write<W: Write + Send>(
    target: W,
    run_id: &str,
    rows: impl Iterator<Item = std::io::Result<HostRow>>,
) -> Result<(W, u64)> {
    let columns = columns();
    let properties = Arc::new(properties(run_id, &columns));
    let mut file = SerializedFileWriter::new(target, schema_of("host_sample", columns.iter().copied())?, properties)?;
    let mut scratch = Scratch::default();
    let mut group = Vec::with_capacity(GROUP_ROWS);
    let mut written = 0;
    for row in rows {
        group.push(row?);
        if group.len() == GROUP_ROWS {
            written += write_group(&mut file, &mut scratch, &columns, &group)?;
            group.clear();
        }
    }
    if !group.is_empty() {
        written += write_group(&mut file, &mut scratch, &columns, &group)?;
    }
    Ok((file.into_inner()?, written))
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    scratch: &mut Scratch,
    columns: &[ColumnShape],
    rows: &[HostRow],
) -> Result<u64> {
    let mut group = file.next_row_group()?;
    let sides: WordColumn<Side> = rows.iter().map(|row| row.side).collect();
    scratch.write_words(&mut group, rows.len(), &sides, Side::word)?;
    let mut ints: Vec<IntColumn> = vec![
        rows.iter().map(|row| Some(row.seq as i64)).collect(),
        rows.iter().map(|row| row.cpu().map(i64::from)).collect(),
        rows.iter().map(|row| Some(row.start_ns)).collect(),
        rows.iter().map(|row| Some(row.end_ns)).collect(),
        rows.iter().map(|row| row.sampler_cpu.map(i64::from)).collect(),
    ];
    let mut numbers = vec![Vec::with_capacity(rows.len()); columns.len() - HEAD_COLUMNS.len()];
    for row in rows {
        numbers.iter_mut().zip(row.numbers()).for_each(|(column, number)| column.push(number));
    }
    ints.extend(numbers.into_iter().map(|column| column.into_iter().collect()));
    for (column, ints) in columns[1..].iter().zip(&ints) {
        scratch.write_ints(&mut group, *column, ints)?;
    }
    group.close()?;
    Ok(rows.len() as u64)
}

/// The `host.parquet` at `path`, open.
pub(crate) fn open(path: &Path) -> std::result::Result<ColumnFile, RecordingError> {
    ColumnFile::open(path, columns())
}

/// Its rows in order; after an error there is nothing sensible.
pub(crate) fn rows(file: ColumnFile) -> impl Iterator<Item = std::result::Result<HostRow, RecordingError>> {
    let read = |group: &ColumnGroup<'_>| {
        let sides = group.words(0, side_of)?;
        let ints =
            (1..columns().len()).map(|place| group.ints(place)).collect::<std::result::Result<Vec<_>, String>>()?;
        Ok((0..group.rows).map(|row| host_row(sides.get(row), &ints, row)).collect::<Vec<_>>())
    };
    file.groups(read).flat_map(|group| match group {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    })
}

fn side_of(word: &str) -> Option<Side> {
    [Side::Local, Side::Peer].into_iter().find(|side| side.word() == word)
}

/// Row `row` of `ints`, which are all columns after the first.
fn host_row(side: Side, ints: &[IntColumn], row: usize) -> HostRow {
    let (head, numbers) = ints.split_at(HEAD_COLUMNS.len() - 1);
    let cpu_of = |column: &IntColumn| column.get(row).and_then(|cpu| u16::try_from(cpu).ok());
    let whole = |column: &IntColumn| column.get(row).unwrap_or(0);
    let (of_cpu, of_host) = numbers.split_at(CpuReadings::WIDTH);
    let readings = match cpu_of(&head[1]) {
        Some(cpu) => Readings::Cpu(cpu, CpuReadings::of(std::array::from_fn(|place| of_cpu[place].get(row)))),
        None => Readings::Host(HostReadings::of(std::array::from_fn(|place| of_host[place].get(row)))),
    };
    let (seq, start_ns, end_ns) = (whole(&head[0]) as u64, whole(&head[2]), whole(&head[3]));
    HostRow { side, seq, start_ns, end_ns, sampler_cpu: cpu_of(&head[4]), readings }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::recording::columns::ColumnType;
    use crate::recording::host_rows::tests::sample;

    #[test]
    fn rows_survive_the_file() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST);
        let both = [Side::Local, Side::Peer];
        // More than one row group.
        let rows: Vec<HostRow> = both
            .iter()
            .flat_map(|side| (0..2_000).flat_map(|seq| HostRow::of(*side, &sample(seq)).collect::<Vec<_>>()))
            .collect();
        let target = File::create(&path).expect("created");
        let (_, written) = write(target, "0123456789abcdef", rows.iter().copied().map(Ok)).expect("written");
        let file = open(&path).expect("opens");
        assert_eq!((written, file.count()), (12_000, 12_000));
        assert_eq!(super::rows(file).collect::<Result<Vec<_>, _>>().expect("reads"), rows);
    }

    #[test]
    fn a_file_of_something_else_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST);
        std::fs::write(&path, "PAR1 no").expect("written");
        assert!(matches!(open(&path), Err(RecordingError::Damaged { .. })));
        let columns = [ColumnShape { name: "seq", column_type: ColumnType::Wide { signed: false }, nullable: false }];
        let schema = schema_of("host_sample", columns).expect("builds");
        let target = File::create(&path).expect("created");
        let file = SerializedFileWriter::new(target, schema, Arc::new(properties("", &columns))).expect("begun");
        file.into_inner().expect("closed");
        let Err(RecordingError::Damaged { what, .. }) = open(&path) else { panic!("it lacks columns") };
        assert_eq!(what, "it has no column `host`");
    }
}
