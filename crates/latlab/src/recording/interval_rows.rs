//! `intervals.parquet`, written and read, and the same rows straight from a spool.

use std::io;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;

use super::batch::{IntColumn, WordColumn};
use super::column_file::ColumnFile;
use super::columns::{ColumnShape, ColumnType, schema_of};
use super::error::RecordingError;
use super::event::SpoolEvent;
use super::join::JoinCounts;
use super::parquet_batches::phase_of;
use super::parquet_rows::{Scratch, properties};
use super::spool::Spool;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::probe::Phase;
use crate::units::{Nanos, Stamp};

/// The file's name in a recording's directory.
pub(crate) const INTERVALS: &str = "intervals.parquet";
/// Rows of a row group, and of a batch: seven minutes of one flow.
const GROUP_ROWS: usize = 8_192;
/// Events of the spool looked at in one go.
const LOOK_EVENTS: u64 = GROUP_ROWS as u64;

const fn count(name: &'static str) -> ColumnShape {
    ColumnShape { name, column_type: ColumnType::Wide { signed: false }, nullable: true }
}

const fn stamp(name: &'static str) -> ColumnShape {
    ColumnShape { name, column_type: ColumnType::Wide { signed: true }, nullable: false }
}

/// Every column, in the order of the file.
const COLUMNS: [ColumnShape; 17] = [
    ColumnShape { name: "flow", column_type: ColumnType::Narrow { bits: 16, signed: false }, nullable: false },
    ColumnShape { name: "side", column_type: ColumnType::Word, nullable: false },
    ColumnShape { name: "phase", column_type: ColumnType::Word, nullable: false },
    stamp("start_ns"),
    stamp("end_ns"),
    count("offered_packets"),
    count("offered_bytes"),
    count("refused_packets"),
    count("skipped_packets"),
    count("polled_packets"),
    count("delivered_packets"),
    count("delivered_bytes"),
    count("reordered"),
    count("duplicates"),
    count("outside_window"),
    count("socket_drops"),
    ColumnShape { name: "cpu_ns", column_type: ColumnType::Wide { signed: true }, nullable: true },
];
const SIDE: usize = 1;
const PHASE: usize = 2;
/// The columns that hold numbers: their places in the file.
const INTS: [Range<usize>; 2] = [0..1, 3..COLUMNS.len()];

/// The numbers of a row, in the order of the columns that hold any.
fn numbers(row: &StreamInterval, size_bytes: u64) -> [Option<i64>; 15] {
    let bytes = |packets: u64| packets.saturating_mul(size_bytes);
    let (offered, counted) = match row.seen {
        IntervalCounts::Offered { packets, refused, skipped } => {
            ([Some(packets), Some(bytes(packets)), Some(refused), Some(skipped)], [None; 7])
        }
        IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, socket_drops } => {
            let [reordered, duplicates, outside_window] =
                [reordered, duplicates, outside_window].map(u64::from).map(Some);
            let drops = socket_drops.map(u64::from);
            let arrived = [Some(polled), Some(delivered), Some(bytes(delivered))];
            ([None; 4], [arrived[0], arrived[1], arrived[2], reordered, duplicates, outside_window, drops])
        }
    };
    let mut all = [None; 15];
    all[..3].copy_from_slice(&[Some(i64::from(row.flow)), Some(row.start_ns), Some(row.end_ns)]);
    let counts = offered.into_iter().chain(counted).map(|count| count.map(|count| count as i64));
    all[3..14].iter_mut().zip(counts).for_each(|(place, count)| *place = count);
    all[14] = row.cpu.map(|cpu| cpu.0);
    all
}

/// The row that `numbers` and the words make.
fn row(side: StreamEnd, phase: Phase, numbers: [Option<i64>; 15]) -> StreamInterval {
    let [
        flow,
        start,
        end,
        packets,
        _,
        refused,
        skipped,
        polled,
        delivered,
        _,
        reordered,
        duplicates,
        outside,
        drops,
        cpu,
    ] = numbers;
    let wide = |count: Option<i64>| count.unwrap_or(0) as u64;
    let narrow = |count: Option<i64>| u32::try_from(wide(count)).unwrap_or(u32::MAX);
    let seen = match side {
        StreamEnd::Sender => {
            IntervalCounts::Offered { packets: wide(packets), refused: wide(refused), skipped: wide(skipped) }
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
    StreamInterval {
        flow: flow.unwrap_or(0) as u16,
        phase,
        start_ns: start.unwrap_or(0),
        end_ns: end.unwrap_or(0),
        cpu: cpu.map(Nanos),
        seen,
    }
}

/// The intervals of a spool, batch by batch, in the order in which they were written: those of one flow and end in the
/// order of time.
#[derive(Debug)]
pub(crate) struct SpooledIntervals {
    spool: Arc<Spool>,
    next: u64,
    tally: JoinCounts,
}

impl SpooledIntervals {
    pub(crate) fn new(spool: Arc<Spool>) -> SpooledIntervals {
        SpooledIntervals { spool, next: 0, tally: JoinCounts::default() }
    }

    /// The next rows; none after the last.
    pub(crate) fn next_batch(&mut self) -> io::Result<Option<Vec<StreamInterval>>> {
        let mut rows = Vec::new();
        while rows.is_empty() && self.next < self.spool.events() {
            let end = (self.next + LOOK_EVENTS).min(self.spool.events());
            let tally = &mut self.tally;
            self.spool.walk(self.next..end, |_, event| take(&mut rows, tally, event))?;
            self.next = end;
        }
        self.tally.rows += rows.len() as u64;
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    /// What was seen so far; complete after the last batch.
    pub(crate) fn tally(&self) -> JoinCounts {
        self.tally
    }
}

fn take(rows: &mut Vec<StreamInterval>, tally: &mut JoinCounts, event: Option<SpoolEvent>) {
    match event {
        Some(SpoolEvent::Interval(interval)) => {
            if interval.end() == StreamEnd::Sender {
                tally.latest = tally.latest.max(Some(Stamp::from_nanos(interval.end_ns)));
            }
            rows.push(interval);
        }
        Some(SpoolEvent::Gap { events, .. }) => tally.gap_events += events,
        Some(_) => (),
        None => tally.holes += 1,
    }
}

/// Writes the intervals of `spool`, whose packets have `size_bytes`, as the `intervals.parquet` of the run `run_id` to
/// `target`; what was seen.
pub(crate) fn write<W: Write + Send>(
    target: W,
    run_id: &str,
    spool: &Arc<Spool>,
    size_bytes: u32,
) -> Result<(W, JoinCounts)> {
    let properties = Arc::new(properties(run_id, &COLUMNS));
    let mut file = SerializedFileWriter::new(target, schema_of("interval", COLUMNS)?, properties)?;
    let mut scratch = Scratch::default();
    let mut intervals = SpooledIntervals::new(Arc::clone(spool));
    while let Some(rows) = intervals.next_batch()? {
        let mut group = file.next_row_group()?;
        let numbers: Vec<_> = rows.iter().map(|row| numbers(row, size_bytes.into())).collect();
        let column = |place: usize| numbers.iter().map(|numbers| numbers[place]).collect::<IntColumn>();
        scratch.write_ints(&mut group, COLUMNS[0], &column(0))?;
        let sides: WordColumn<StreamEnd> = rows.iter().map(StreamInterval::end).collect();
        scratch.write_words(&mut group, rows.len(), &sides, StreamEnd::word)?;
        let phases: WordColumn<Phase> = rows.iter().map(|row| row.phase).collect();
        scratch.write_words(&mut group, rows.len(), &phases, Phase::word)?;
        for (place, shape) in COLUMNS.into_iter().enumerate().skip(PHASE + 1) {
            scratch.write_ints(&mut group, shape, &column(place - PHASE))?;
        }
        group.close()?;
    }
    Ok((file.into_inner()?, intervals.tally()))
}

/// The `intervals.parquet` at `path`, open.
pub(crate) fn open(path: &Path) -> std::result::Result<ColumnFile, RecordingError> {
    ColumnFile::open(path, COLUMNS)
}

/// The rows of each row group of `file`.
pub(crate) fn batches(
    file: ColumnFile,
) -> impl Iterator<Item = std::result::Result<Vec<StreamInterval>, RecordingError>> {
    file.groups(|group| {
        let sides = group.words(SIDE, |word| StreamEnd::ALL.into_iter().find(|side| side.word() == word))?;
        let phases = group.words(PHASE, phase_of)?;
        let ints = INTS.into_iter().flatten().map(|place| group.ints(place));
        let columns = ints.collect::<std::result::Result<Vec<_>, _>>()?;
        let made = |number: usize| {
            let numbers = std::array::from_fn(|column| columns[column].get(number));
            row(sides.get(number), phases.get(number), numbers)
        };
        Ok((0..group.rows).map(made).collect())
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
            assert_eq!(row(interval.end(), interval.phase, numbers(&interval, 1_472)), interval);
        }
        let of = |interval, name| {
            let place = COLUMNS.iter().position(|column| column.name == name).expect("a column");
            numbers(&interval, 1_472)[place - if place > PHASE { PHASE } else { 0 }]
        };
        assert_eq!((of(sender, "offered_bytes"), of(sender, "delivered_bytes")), (Some(1_472_000), None));
        assert_eq!((of(receiver, "delivered_bytes"), of(receiver, "offered_packets")), (Some(1_457_280), None));
        assert_eq!((of(sender, "cpu_ns"), of(receiver, "cpu_ns")), (Some(99), None));
    }
}
