//! `host.parquet`: per host sample a row for the host and one for each CPU.

use super::column::{ColumnSpec, ColumnType, IntColumn, WordColumn};
use super::decode::{Batch, Field};
use super::recorded::RecordedTable;
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::plan::Side;

/// Rows of a row group: 35 columns of 9 bytes make 2.6 MB.
pub(crate) const HOST_GROUP_ROWS: usize = 8_192;

/// Columns of numbers before those of [`CpuReadings`] and [`HostReadings`].
const HEAD: usize = 5;
const NUMBERS: usize = HEAD + CpuReadings::WIDTH + HostReadings::WIDTH;

#[derive(Debug)]
pub(crate) struct HostBatch {
    rows: usize,
    host: WordColumn<Side>,
    numbers: Vec<IntColumn>,
}

impl Default for HostBatch {
    fn default() -> HostBatch {
        HostBatch { rows: 0, host: WordColumn::default(), numbers: vec![IntColumn::default(); NUMBERS] }
    }
}

impl Batch for HostBatch {
    const TABLE: RecordedTable = RecordedTable::Host;

    fn specs() -> Vec<ColumnSpec> {
        use ColumnType::{I64, U16, U64, Word};
        let head = [
            ColumnSpec::required("host", Word),
            ColumnSpec::required("seq", U64),
            ColumnSpec::nullable("cpu", U16),
            ColumnSpec::required("start_ns", I64),
            ColumnSpec::required("end_ns", I64),
            ColumnSpec::nullable("sampler_cpu", U16),
        ];
        let readings = CpuReadings::COLUMNS.into_iter().chain(HostReadings::COLUMNS);
        head.into_iter().chain(readings.map(|name| ColumnSpec::nullable(name, I64))).collect()
    }

    fn rows_mut(&mut self) -> &mut usize {
        &mut self.rows
    }

    fn fields(&mut self) -> Vec<&mut dyn Field> {
        let host: &mut dyn Field = &mut self.host;
        std::iter::once(host).chain(self.numbers.iter_mut().map(|column| column as &mut dyn Field)).collect()
    }
}

impl HostBatch {
    pub(crate) fn of(rows: &[HostRow]) -> HostBatch {
        let host = rows.iter().map(|row| row.side).collect();
        HostBatch { rows: rows.len(), host, numbers: IntColumn::transposed(rows.iter().map(HostRow::numbers)) }
    }

    pub(crate) fn to_rows(&self) -> Vec<HostRow> {
        let numbers = |row| std::array::from_fn(|column| self.numbers[column].get(row));
        (0..self.rows).map(|row| HostRow::from_numbers(self.host.get(row), numbers(row))).collect()
    }
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

    fn numbers(&self) -> [Option<i64>; NUMBERS] {
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

    fn from_numbers(side: Side, numbers: [Option<i64>; NUMBERS]) -> HostRow {
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
    use super::*;

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
}
