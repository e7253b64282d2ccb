//! `intervals.parquet`: what either end of a stream counted in intervals of about 100 ms. Rows of one flow and end are
//! in the order of time.

use std::io;
use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::column::ColumnType::{I64, U16, U64, Word};
use super::column::{ColumnSpec, IntColumn, WordColumn};
use super::decode::TableReader;
use super::encode::TableWriter;
use super::file::TableFile;
use super::probes::parse_phase;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::probe::Phase;
use crate::recording::error::RecordingError;
use crate::units::Nanos;

/// The file's name in a recording's directory.
pub(crate) const INTERVALS: &str = "intervals.parquet";

pub(super) const COLUMNS: [ColumnSpec; 17] = [
    ColumnSpec::required("flow", U16),
    ColumnSpec::required("side", Word),
    ColumnSpec::required("phase", Word),
    ColumnSpec::required("start_ns", I64),
    ColumnSpec::required("end_ns", I64),
    ColumnSpec::nullable("offered_packets", U64),
    ColumnSpec::nullable("offered_bytes", U64),
    ColumnSpec::nullable("refused_packets", U64),
    ColumnSpec::nullable("skipped_packets", U64),
    ColumnSpec::nullable("polled_packets", U64),
    ColumnSpec::nullable("delivered_packets", U64),
    ColumnSpec::nullable("delivered_bytes", U64),
    ColumnSpec::nullable("reordered", U64),
    ColumnSpec::nullable("duplicates", U64),
    ColumnSpec::nullable("outside_window", U64),
    ColumnSpec::nullable("socket_drops", U64),
    ColumnSpec::nullable("cpu_ns", I64),
];
const FLOW: usize = 0;
const SIDE: usize = 1;
const PHASE: usize = 2;
/// The first of the columns in [`Numbers`].
const NUMBERS: usize = 3;

/// Columns that no log has.
const NOT_IN_LOGS: [&str; 5] = ["refused_packets", "skipped_packets", "reordered", "duplicates", "outside_window"];

/// The numbers of a row from `start_ns` to `cpu_ns`.
type Numbers = [Option<i64>; COLUMNS.len() - NUMBERS];

pub(super) fn numbers(row: &StreamInterval, size_bytes: u32) -> Numbers {
    let count = |count: u64| Some(count as i64);
    let bytes = |packets: u64| count(packets.saturating_mul(size_bytes.into()));
    let (start, end, cpu) = (Some(row.start_ns), Some(row.end_ns), row.cpu.map(|cpu| cpu.0));
    match row.seen {
        IntervalCounts::Offered { packets, refused, skipped } => [
            start,
            end,
            count(packets),
            bytes(packets),
            count(refused),
            count(skipped),
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            cpu,
        ],
        IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, socket_drops } => [
            start,
            end,
            None,
            None,
            None,
            None,
            count(polled),
            count(delivered),
            bytes(delivered),
            count(reordered.into()),
            count(duplicates.into()),
            count(outside_window.into()),
            socket_drops.map(i64::from),
            cpu,
        ],
    }
}

fn row(flow: i64, side: StreamEnd, phase: Phase, numbers: Numbers) -> StreamInterval {
    let [start, end, offered, _, refused, skipped, polled, delivered, _, reordered, duplicates, outside, drops, cpu] =
        numbers;
    let wide = |count: Option<i64>| count.unwrap_or(0) as u64;
    let narrow = |count: Option<i64>| u32::try_from(wide(count)).unwrap_or(u32::MAX);
    let seen = match side {
        StreamEnd::Sender => {
            IntervalCounts::Offered { packets: wide(offered), refused: wide(refused), skipped: wide(skipped) }
        }
        StreamEnd::Receiver => IntervalCounts::Counted {
            polled: wide(polled),
            delivered: wide(delivered),
            reordered: narrow(reordered),
            duplicates: narrow(duplicates),
            outside_window: narrow(outside),
            socket_drops: drops.map(|drops| narrow(Some(drops))),
        },
    };
    let (start_ns, end_ns) = (start.unwrap_or(0), end.unwrap_or(0));
    StreamInterval { flow: flow as u16, phase, start_ns, end_ns, cpu: cpu.map(Nanos), seen }
}

/// Writes `batches` of packets of `size_bytes` as the table of the run `run_id` to `target`, a row group each.
pub(crate) fn write<W: Write + Send>(
    target: W,
    run_id: &str,
    size_bytes: u32,
    batches: impl Iterator<Item = io::Result<Vec<StreamInterval>>>,
) -> ParquetResult<W> {
    let mut table = create(target, run_id)?;
    for rows in batches {
        write_group(&mut table, size_bytes, &rows?)?;
    }
    table.finish()
}

/// Begins the table of the run `run_id` in `target`.
pub(crate) fn create<W: Write + Send>(target: W, run_id: &str) -> ParquetResult<TableWriter<W>> {
    TableWriter::new(target, run_id, "interval", &COLUMNS)
}

/// Writes `rows` of packets of `size_bytes` as a row group.
pub(crate) fn write_group<W: Write + Send>(
    table: &mut TableWriter<W>,
    size_bytes: u32,
    rows: &[StreamInterval],
) -> ParquetResult<()> {
    write_rows(table, rows, |row| numbers(row, size_bytes))
}

fn write_rows<W: Write + Send>(
    table: &mut TableWriter<W>,
    rows: &[StreamInterval],
    numbers: impl Fn(&StreamInterval) -> Numbers,
) -> ParquetResult<()> {
    let mut group = table.group(rows.len())?;
    group.ints(&rows.iter().map(|row| Some(row.flow.into())).collect::<IntColumn>())?;
    group.words(&rows.iter().map(StreamInterval::end).collect::<WordColumn<_>>(), StreamEnd::word)?;
    group.words(&rows.iter().map(|row| row.phase).collect::<WordColumn<_>>(), Phase::word)?;
    group.int_rows(rows.iter().map(numbers))?;
    group.close()
}

/// Writes `rows` of packets of `size_bytes` from a log, which has neither refused nor skipped sends, nor what the receiver
/// counted besides packets.
pub(crate) fn write_logged<W: Write + Send>(
    table: &mut TableWriter<W>,
    size_bytes: u32,
    rows: &[StreamInterval],
) -> ParquetResult<()> {
    write_rows(table, rows, |row| logged_numbers(row, size_bytes))
}

/// The numbers of a row of a log.
pub(super) fn logged_numbers(row: &StreamInterval, size_bytes: u32) -> Numbers {
    let mut numbers = numbers(row, size_bytes);
    let unknown =
        COLUMNS.iter().skip(NUMBERS).zip(&mut numbers).filter(|(column, _)| NOT_IN_LOGS.contains(&column.name));
    unknown.for_each(|(_, number)| *number = None);
    numbers
}

/// The table in `file`.
///
/// # Errors
/// If it has other columns.
pub(crate) fn open(file: TableFile) -> Result<TableReader, RecordingError> {
    TableReader::new(file, &COLUMNS)
}

/// The rows of each row group.
pub(crate) fn batches(table: TableReader) -> impl Iterator<Item = Result<Vec<StreamInterval>, RecordingError>> {
    table.groups(|group| {
        let flows = group.ints(FLOW)?;
        let sides = group.words(SIDE, |word| StreamEnd::ALL.into_iter().find(|side| side.word() == word))?;
        let phases = group.words(PHASE, parse_phase)?;
        let numbers = group.int_rows(NUMBERS)?.enumerate();
        Ok(numbers
            .map(|(index, numbers)| row(flows.values[index], sides.get(index), phases.get(index), numbers))
            .collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_its_numbers() {
        let sender = StreamInterval {
            flow: 3,
            phase: Phase::Measure,
            start_ns: 5,
            end_ns: 100_000_005,
            cpu: Some(Nanos(99)),
            seen: IntervalCounts::Offered { packets: 1_000, refused: 2, skipped: 7 },
        };
        let seen = IntervalCounts::Counted {
            polled: 1_000,
            delivered: 990,
            reordered: 1,
            duplicates: 2,
            outside_window: 3,
            socket_drops: None,
        };
        let receiver = StreamInterval { cpu: None, phase: Phase::Warmup, seen, ..sender };
        for interval in [sender, receiver] {
            assert_eq!(row(3, interval.end(), interval.phase, numbers(&interval, 1_472)), interval);
        }
        let value = |interval, name| {
            let column = COLUMNS.iter().position(|column| column.name == name).expect("a column");
            numbers(&interval, 1_472)[column - NUMBERS]
        };
        assert_eq!((value(sender, "offered_bytes"), value(sender, "delivered_bytes")), (Some(1_472_000), None));
        assert_eq!((value(receiver, "delivered_bytes"), value(receiver, "offered_packets")), (Some(1_457_280), None));
        assert_eq!((value(sender, "cpu_ns"), value(receiver, "cpu_ns")), (Some(99), None));
    }
}
