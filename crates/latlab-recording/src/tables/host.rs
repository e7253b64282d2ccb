//! `host.parquet`: per host sample a row for the host and one for each CPU.

use std::io;
use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::column::ColumnType::{I64, U16, U64, Word};
use super::column::{ColumnSpec, WordColumn};
use super::decode::TableReader;
use super::encode::TableWriter;
use super::file::TableFile;
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::plan::Side;
use crate::recording::error::RecordingError;

/// The file's name in a recording's directory.
pub(crate) const HOST: &str = "host.parquet";
/// Rows of a row group: 35 columns of 9 bytes make 2.6 MB.
const GROUP_ROWS: usize = 8_192;

/// The columns before those of [`CpuReadings`] and [`HostReadings`].
const HEAD: [ColumnSpec; 6] = [
    ColumnSpec::required("host", Word),
    ColumnSpec::required("seq", U64),
    ColumnSpec::nullable("cpu", U16),
    ColumnSpec::required("start_ns", I64),
    ColumnSpec::required("end_ns", I64),
    ColumnSpec::nullable("sampler_cpu", U16),
];
/// The first of the columns in [`Numbers`].
const NUMBERS: usize = 1;

/// The numbers of a row from `seq` on.
type Numbers = [Option<i64>; HEAD.len() - NUMBERS + CpuReadings::WIDTH + HostReadings::WIDTH];

pub(super) fn columns() -> Vec<ColumnSpec> {
    let readings = CpuReadings::COLUMNS.into_iter().chain(HostReadings::COLUMNS);
    HEAD.into_iter().chain(readings.map(|name| ColumnSpec::nullable(name, I64))).collect()
}

/// The readings of the host as a whole, or of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readings {
    Host(HostReadings),
    Cpu(u16, CpuReadings),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostRow {
    /// The end of the path at which the host is; never `Side::Both`.
    pub side: Side,
    pub seq: u64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub sampler_cpu: Option<u16>,
    pub readings: Readings,
}

impl HostRow {
    /// The rows of `sample`, that of the host first.
    pub(crate) fn from_sample(side: Side, sample: &HostSample) -> impl Iterator<Item = HostRow> {
        let HostSample { seq, start_ns, end_ns, sampler_cpu, .. } = *sample;
        let readings = std::iter::once(Readings::Host(sample.host));
        let readings = readings.chain(sample.cpus.iter().map(|(cpu, readings)| Readings::Cpu(*cpu, *readings)));
        readings.map(move |readings| HostRow { side, seq, start_ns, end_ns, sampler_cpu, readings })
    }

    pub(super) fn numbers(&self) -> Numbers {
        let (cpu, cpu_readings, host_readings) = match self.readings {
            Readings::Host(host) => (None, CpuReadings::default(), host),
            Readings::Cpu(cpu, readings) => (Some(cpu), readings, HostReadings::default()),
        };
        let cpu_number = |cpu: Option<u16>| cpu.map(i64::from);
        let (seq, start, end) = (Some(self.seq as i64), Some(self.start_ns), Some(self.end_ns));
        let head = [seq, cpu_number(cpu), start, end, cpu_number(self.sampler_cpu)];
        let mut values = head.into_iter().chain(cpu_readings.numbers()).chain(host_readings.numbers());
        std::array::from_fn(|_| values.next().flatten())
    }

    fn from_numbers(side: Side, numbers: Numbers) -> HostRow {
        let [seq, cpu, start, end, sampler, readings @ ..] = numbers;
        let cpu_number = |cpu: Option<i64>| cpu.and_then(|cpu| u16::try_from(cpu).ok());
        let readings = match cpu_number(cpu) {
            Some(cpu) => Readings::Cpu(cpu, CpuReadings::of(std::array::from_fn(|index| readings[index]))),
            None => Readings::Host(HostReadings::of(std::array::from_fn(|index| readings[CpuReadings::WIDTH + index]))),
        };
        let (seq, start_ns, end_ns) = (seq.unwrap_or(0) as u64, start.unwrap_or(0), end.unwrap_or(0));
        HostRow { side, seq, start_ns, end_ns, sampler_cpu: cpu_number(sampler), readings }
    }
}

/// Writes `rows` as the table of the run `run_id` to `target`; returns it and the number of rows.
pub(crate) fn write<W: Write + Send>(
    target: W,
    run_id: &str,
    rows: impl Iterator<Item = io::Result<HostRow>>,
) -> ParquetResult<(W, u64)> {
    let mut table = TableWriter::new(target, run_id, "host_sample", &columns())?;
    let (mut rows, mut written) = (rows.peekable(), 0);
    while rows.peek().is_some() {
        let group_rows = rows.by_ref().take(GROUP_ROWS).collect::<io::Result<Vec<_>>>()?;
        let mut group = table.group(group_rows.len())?;
        group.words(&group_rows.iter().map(|row| row.side).collect::<WordColumn<_>>(), Side::word)?;
        group.int_rows(group_rows.iter().map(HostRow::numbers))?;
        group.close()?;
        written += group_rows.len() as u64;
    }
    Ok((table.finish()?, written))
}

/// The table in `file`.
///
/// # Errors
/// If it has other columns.
pub(crate) fn open(file: TableFile) -> Result<TableReader, RecordingError> {
    TableReader::new(file, &columns())
}

/// The rows in order. A row group that cannot be read yields one error in the place of its rows.
pub(crate) fn rows(table: TableReader) -> impl Iterator<Item = Result<HostRow, RecordingError>> {
    let groups = table.groups(|group| {
        let sides = group.words(0, parse_side)?;
        let numbers = group.int_rows(NUMBERS)?.enumerate();
        Ok(numbers.map(|(index, numbers)| HostRow::from_numbers(sides.get(index), numbers)).collect::<Vec<_>>())
    });
    groups.flat_map(|group| match group {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    })
}

fn parse_side(word: &str) -> Option<Side> {
    [Side::Local, Side::Peer].into_iter().find(|side| side.word() == word)
}

/// Joins adjacent rows of the same host and `seq` into samples.
pub(crate) struct SampleJoin<I> {
    rows: I,
    begun: Option<(Side, HostSample)>,
}

impl<I> SampleJoin<I> {
    pub(crate) fn new(rows: I) -> SampleJoin<I> {
        SampleJoin { rows, begun: None }
    }
}

impl<E, I: Iterator<Item = Result<HostRow, E>>> Iterator for SampleJoin<I> {
    type Item = Result<(Side, HostSample), E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let row = match self.rows.next() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Some(Err(error)),
                None => return self.begun.take().map(Ok),
            };
            let belongs = self.begun.as_ref().is_some_and(|(side, sample)| *side == row.side && sample.seq == row.seq);
            let finished = if belongs { None } else { self.begun.take() };
            let (_, sample) = self.begun.get_or_insert_with(|| {
                let HostRow { side, seq, start_ns, end_ns, sampler_cpu, .. } = row;
                (side, HostSample { seq, start_ns, end_ns, sampler_cpu, ..HostSample::default() })
            });
            match row.readings {
                Readings::Host(readings) => sample.host = readings,
                Readings::Cpu(cpu, readings) => sample.cpus.push((cpu, readings)),
            }
            if let Some(finished) = finished {
                return Some(Ok(finished));
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;

    use std::path::Path;

    use super::*;
    use crate::platform::Directory;

    /// Sample `seq` of a host with two CPUs.
    pub(crate) fn sample(seq: u64) -> HostSample {
        let at = 1_000_000_000 + seq as i64 * 100_000_000;
        let cpu =
            |cpu: i64| CpuReadings { busy_ns: Some(cpu + at), steal_ns: (seq != 1).then_some(7), ..Default::default() };
        HostSample {
            seq,
            start_ns: at,
            end_ns: at + 70_000,
            sampler_cpu: Some(1).filter(|_| seq != 2),
            host: HostReadings {
                own_ns: Some(seq as i64),
                temperature_millicelsius: Some(-5_000),
                ..Default::default()
            },
            cpus: vec![(0, cpu(0)), (3, cpu(3))],
        }
    }

    #[test]
    fn rows_join_into_the_samples_that_they_came_from() {
        let samples =
            [(Side::Local, sample(0)), (Side::Local, sample(1)), (Side::Peer, sample(1)), (Side::Peer, sample(2))];
        let rows = samples.iter().flat_map(|(side, sample)| HostRow::from_sample(*side, sample)).map(Ok::<_, ()>);
        assert_eq!(SampleJoin::new(rows).collect::<Result<Vec<_>, ()>>(), Ok(samples.to_vec()));
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let mut names: Vec<_> = columns().iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns().len());
    }

    fn opened(directory: &Path) -> Result<TableReader, RecordingError> {
        let directory = Directory::open(directory).expect("opens");
        open(TableFile::open(&directory, HOST, None)?)
    }

    #[test]
    fn rows_survive_the_file() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST);
        let both = [Side::Local, Side::Peer];
        // More than one row group.
        let rows: Vec<HostRow> = both
            .iter()
            .flat_map(|side| (0..2_000).flat_map(|seq| HostRow::from_sample(*side, &sample(seq)).collect::<Vec<_>>()))
            .collect();
        let target = File::create(&path).expect("created");
        let (_, written) = write(target, "0123456789abcdef", rows.iter().copied().map(Ok)).expect("written");
        let table = opened(directory.path()).expect("opens");
        assert_eq!((written, table.rows()), (12_000, 12_000));
        assert_eq!(super::rows(table).collect::<Result<Vec<_>, _>>().expect("reads"), rows);
    }

    #[test]
    fn a_file_without_a_required_column_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST);
        std::fs::write(&path, "PAR1 no").expect("written");
        assert!(matches!(opened(directory.path()), Err(RecordingError::Damaged { .. })));
        let target = File::create(&path).expect("created");
        let table = TableWriter::new(target, "", "host_sample", &[ColumnSpec::required("seq", U64)]).expect("begun");
        table.finish().expect("closed");
        let Err(RecordingError::Damaged { what, .. }) = opened(directory.path()) else { panic!("it lacks columns") };
        assert_eq!(what, "it has no column `host`");
    }
}
