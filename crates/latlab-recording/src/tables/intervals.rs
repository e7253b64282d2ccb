//! `intervals.parquet`: what either end of a stream counted in intervals of about 100 ms. Rows of one flow and end are
//! in the order of time.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::probe::Phase;
use crate::units::Nanos;

table! {
    /// Consecutive rows. Counts are null at the end that does not know them.
    pub(crate) IntervalBatch of Intervals {
        flow: IntColumn = required U16;
        side: WordColumn<StreamEnd> = required Word;
        phase: WordColumn<Phase> = required Word;
        start_ns: IntColumn = required I64;
        end_ns: IntColumn = required I64;
        offered_packets: IntColumn = nullable U64;
        offered_bytes: IntColumn = nullable U64;
        refused_packets: IntColumn = nullable U64;
        skipped_packets: IntColumn = nullable U64;
        polled_packets: IntColumn = nullable U64;
        delivered_packets: IntColumn = nullable U64;
        delivered_bytes: IntColumn = nullable U64;
        reordered: IntColumn = nullable U64;
        duplicates: IntColumn = nullable U64;
        outside_window: IntColumn = nullable U64;
        socket_drops: IntColumn = nullable U64;
        cpu_ns: IntColumn = nullable I64;
    }
}

/// Packets, refused and skipped ones of the sender's end.
fn offered(row: &StreamInterval) -> Option<[u64; 3]> {
    match row.seen {
        IntervalCounts::Offered { packets, refused, skipped } => Some([packets, refused, skipped]),
        IntervalCounts::Counted { .. } => None,
    }
}

/// Polled, delivered, reordered and duplicate packets of the receiver's end, and those outside of its window.
fn counted(row: &StreamInterval) -> Option<[u64; 5]> {
    match row.seen {
        IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, .. } => {
            Some([polled, delivered, reordered.into(), duplicates.into(), outside_window.into()])
        }
        IntervalCounts::Offered { .. } => None,
    }
}

fn socket_drops(row: &StreamInterval) -> Option<i64> {
    match row.seen {
        IntervalCounts::Counted { socket_drops, .. } => socket_drops.map(i64::from),
        IntervalCounts::Offered { .. } => None,
    }
}

impl IntervalBatch {
    /// `rows` of packets of `size_bytes`.
    pub(crate) fn of(rows: &[StreamInterval], size_bytes: u32) -> IntervalBatch {
        let ints = |of: &dyn Fn(&StreamInterval) -> Option<i64>| rows.iter().map(of).collect::<IntColumn>();
        let sent = |number: usize| ints(&|row| Some(offered(row)?[number] as i64));
        let received = |number: usize| ints(&|row| Some(counted(row)?[number] as i64));
        let bytes = |packets: u64| packets.saturating_mul(size_bytes.into()) as i64;
        IntervalBatch {
            rows: rows.len(),
            flow: ints(&|row| Some(row.flow.into())),
            side: rows.iter().map(StreamInterval::end).collect(),
            phase: rows.iter().map(|row| row.phase).collect(),
            start_ns: ints(&|row| Some(row.start_ns)),
            end_ns: ints(&|row| Some(row.end_ns)),
            offered_packets: sent(0),
            offered_bytes: ints(&|row| Some(bytes(offered(row)?[0]))),
            refused_packets: sent(1),
            skipped_packets: sent(2),
            polled_packets: received(0),
            delivered_packets: received(1),
            delivered_bytes: ints(&|row| Some(bytes(counted(row)?[1]))),
            reordered: received(2),
            duplicates: received(3),
            outside_window: received(4),
            socket_drops: ints(&socket_drops),
            cpu_ns: ints(&|row| row.cpu.map(|cpu| cpu.0)),
        }
    }

    /// The same of a log, which has neither refused nor skipped sends, nor what the receiver counted besides packets.
    pub(crate) fn of_log(rows: &[StreamInterval], size_bytes: u32) -> IntervalBatch {
        let unknown = IntColumn::default;
        IntervalBatch {
            refused_packets: unknown(),
            skipped_packets: unknown(),
            reordered: unknown(),
            duplicates: unknown(),
            outside_window: unknown(),
            ..IntervalBatch::of(rows, size_bytes)
        }
    }

    fn row(&self, row: usize) -> StreamInterval {
        let wide = |column: &IntColumn| column.get(row).unwrap_or(0) as u64;
        let narrow = |column: &IntColumn| u32::try_from(wide(column)).unwrap_or(u32::MAX);
        let seen = match self.side.get(row) {
            StreamEnd::Sender => IntervalCounts::Offered {
                packets: wide(&self.offered_packets),
                refused: wide(&self.refused_packets),
                skipped: wide(&self.skipped_packets),
            },
            StreamEnd::Receiver => IntervalCounts::Counted {
                polled: wide(&self.polled_packets),
                delivered: wide(&self.delivered_packets),
                reordered: narrow(&self.reordered),
                duplicates: narrow(&self.duplicates),
                outside_window: narrow(&self.outside_window),
                socket_drops: self.socket_drops.get(row).map(|_| narrow(&self.socket_drops)),
            },
        };
        StreamInterval {
            flow: wide(&self.flow) as u16,
            phase: self.phase.get(row),
            start_ns: self.start_ns.get(row).unwrap_or(0),
            end_ns: self.end_ns.get(row).unwrap_or(0),
            cpu: self.cpu_ns.get(row).map(Nanos),
            seen,
        }
    }

    pub(crate) fn to_rows(&self) -> Vec<StreamInterval> {
        (0..self.rows).map(|row| self.row(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_its_columns() {
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
        let batch = IntervalBatch::of(&[sender, receiver], 1_472);
        assert_eq!(batch.to_rows(), [sender, receiver]);
        let values = |column: &IntColumn| [column.get(0), column.get(1)];
        assert_eq!(values(&batch.offered_bytes), [Some(1_472_000), None]);
        assert_eq!(values(&batch.delivered_bytes), [None, Some(1_457_280)]);
        assert_eq!(values(&batch.cpu_ns), [Some(99), None]);
        let logged = IntervalBatch::of_log(&[sender, receiver], 1_472);
        assert_eq!((values(&logged.offered_packets), logged.duplicates), ([Some(1_000), None], IntColumn::default()));
    }
}
