//! The rows of `host.parquet`: one for the host and one for each CPU of every sample. The one place that knows their
//! columns, and their bytes in `host.spool`. Both: docs/recording.md, sections 5 and 7.

use super::columns::{ColumnShape, ColumnType};
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::plan::Side;

/// 64-bit words of a row in the spool: four that say which row it is, then its numbers, then room.
pub(crate) const ROW_WORDS: usize = 24;
/// Bytes of a row in the spool.
pub(crate) const ROW_BYTES: usize = ROW_WORDS * 8;
const HEAD_WORDS: usize = 4;
const NUMBERS: usize = ROW_WORDS - HEAD_WORDS;
/// Stands for null among the numbers, which are counters and states and never that small.
const NULL: i64 = i64::MIN;
/// Stands for no CPU.
const NO_CPU: u16 = u16::MAX;
const HOST_KIND: u64 = 1;
const CPU_KIND: u64 = 2;

/// The columns before the numbers.
pub(crate) const HEAD_COLUMNS: [ColumnShape; 6] = [
    ColumnShape { name: "host", column_type: ColumnType::Word, nullable: false },
    ColumnShape { name: "seq", column_type: ColumnType::Wide { signed: false }, nullable: false },
    ColumnShape { name: "cpu", column_type: CPU_NUMBER, nullable: true },
    ColumnShape { name: "start_ns", column_type: ColumnType::Wide { signed: true }, nullable: false },
    ColumnShape { name: "end_ns", column_type: ColumnType::Wide { signed: true }, nullable: false },
    ColumnShape { name: "sampler_cpu", column_type: CPU_NUMBER, nullable: true },
];
const CPU_NUMBER: ColumnType = ColumnType::Narrow { bits: 16, signed: false };

/// Every column, in the order of the file.
pub(crate) fn columns() -> Vec<ColumnShape> {
    let number = |name| ColumnShape { name, column_type: ColumnType::Wide { signed: true }, nullable: true };
    let numbers = CpuReadings::COLUMNS.into_iter().chain(HostReadings::COLUMNS).map(number);
    HEAD_COLUMNS.into_iter().chain(numbers).collect()
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readings {
    /// The host as a whole.
    Host(HostReadings),
    /// One CPU.
    Cpu(u16, CpuReadings),
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostRow {
    /// At which end of the path the host stands; never both.
    pub(crate) side: Side,
    pub(crate) seq: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) sampler_cpu: Option<u16>,
    pub(crate) readings: Readings,
}

impl HostRow {
    /// The rows of `sample`, the host's first.
    pub(crate) fn of(side: Side, sample: &HostSample) -> impl Iterator<Item = HostRow> {
        let HostSample { seq, start_ns, end_ns, sampler_cpu, .. } = *sample;
        let readings = std::iter::once(Readings::Host(sample.host));
        let readings = readings.chain(sample.cpus.iter().map(|(cpu, readings)| Readings::Cpu(*cpu, *readings)));
        readings.map(move |readings| HostRow { side, seq, start_ns, end_ns, sampler_cpu, readings })
    }

    /// The CPU that the row is about; none: the host.
    pub(crate) fn cpu(&self) -> Option<u16> {
        match self.readings {
            Readings::Host(_) => None,
            Readings::Cpu(cpu, _) => Some(cpu),
        }
    }

    /// The numbers in the order of the file's columns.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Option<i64>> {
        let (cpu, host) = match self.readings {
            Readings::Host(host) => (CpuReadings::default(), host),
            Readings::Cpu(_, cpu) => (cpu, HostReadings::default()),
        };
        cpu.numbers().into_iter().chain(host.numbers())
    }

    /// As it stands in the spool.
    pub(crate) fn to_words(self) -> [u64; ROW_WORDS] {
        let mut numbers = [Some(0); NUMBERS];
        let (kind, cpu) = match self.readings {
            Readings::Host(host) => {
                numbers[..HostReadings::WIDTH].copy_from_slice(&host.numbers());
                (HOST_KIND, NO_CPU)
            }
            Readings::Cpu(cpu, readings) => {
                numbers[..CpuReadings::WIDTH].copy_from_slice(&readings.numbers());
                (CPU_KIND, cpu)
            }
        };
        let sampler = self.sampler_cpu.unwrap_or(NO_CPU);
        let mut words = [0; ROW_WORDS];
        words[0] = kind | u64::from(self.side.is_peer()) << 8 | u64::from(cpu) << 16 | u64::from(sampler) << 32;
        (words[1], words[2], words[3]) = (self.seq, self.start_ns as u64, self.end_ns as u64);
        for (word, number) in words[HEAD_WORDS..].iter_mut().zip(numbers) {
            *word = number.unwrap_or(NULL) as u64;
        }
        words
    }

    /// The row of these words; none where they hold no row.
    pub(crate) fn from_words(words: [u64; ROW_WORDS]) -> Option<HostRow> {
        let number = |place: usize| Some(words[HEAD_WORDS + place] as i64).filter(|number| *number != NULL);
        let cpu_at = |shift: u32| Some((words[0] >> shift) as u16).filter(|cpu| *cpu != NO_CPU);
        let readings = match words[0] & 0xff {
            HOST_KIND => Readings::Host(HostReadings::of(std::array::from_fn(number))),
            CPU_KIND => Readings::Cpu(cpu_at(16)?, CpuReadings::of(std::array::from_fn(number))),
            _ => return None,
        };
        Some(HostRow {
            side: if words[0] >> 8 & 1 == 1 { Side::Peer } else { Side::Local },
            seq: words[1],
            start_ns: words[2] as i64,
            end_ns: words[3] as i64,
            sampler_cpu: cpu_at(32),
            readings,
        })
    }
}

/// Samples from rows: neighbours of the same host and `seq` belong together.
pub(crate) struct HostSampleReader<I> {
    rows: I,
    begun: Option<(Side, HostSample)>,
}

impl<I> HostSampleReader<I> {
    pub(crate) fn new(rows: I) -> HostSampleReader<I> {
        HostSampleReader { rows, begun: None }
    }
}

impl<E, I: Iterator<Item = Result<HostRow, E>>> Iterator for HostSampleReader<I> {
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
    fn a_row_survives_its_words() {
        for side in [Side::Local, Side::Peer] {
            for row in (0..3).flat_map(|seq| HostRow::of(side, &sample(seq)).collect::<Vec<_>>()) {
                assert_eq!(HostRow::from_words(row.to_words()), Some(row));
            }
        }
        assert_eq!(HostRow::from_words([0; ROW_WORDS]), None);
    }

    #[test]
    fn rows_gather_into_the_samples_they_came_from() {
        let samples =
            [(Side::Local, sample(0)), (Side::Local, sample(1)), (Side::Peer, sample(1)), (Side::Peer, sample(2))];
        let rows = samples.iter().flat_map(|(side, sample)| HostRow::of(*side, sample)).map(Ok::<_, ()>);
        assert_eq!(HostSampleReader::new(rows).collect::<Result<Vec<_>, ()>>(), Ok(samples.to_vec()));
    }

    #[test]
    fn every_column_has_a_name_of_its_own_and_every_row_its_place() {
        let mut names: Vec<_> = columns().iter().map(|column| column.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), all), (all, HEAD_COLUMNS.len() + CpuReadings::WIDTH + HostReadings::WIDTH));
        let row = HostRow::of(Side::Local, &sample(0)).next().expect("the host's");
        assert_eq!(HEAD_COLUMNS.len() + row.numbers().count(), all);
        assert!(CpuReadings::WIDTH.max(HostReadings::WIDTH) <= NUMBERS);
    }
}
