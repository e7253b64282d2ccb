//! A block of consecutive probes while the joiner fills it: columns of fixed length, reused for every block.

use std::io::{self, Write};

use super::event::{ProbeStamps, SpoolEvent};
use super::tables::column::IntColumn;
use super::tables::decode::Batch;
use super::tables::encode::TableWriter;
use super::tables::probes::{ProbeBatch, ProbeColumn};
use crate::probe::{Fate, Phase};
use crate::units::{Nanos, SenderClock, Stamp};

/// An absent instant.
const NONE: i64 = i64::MIN;
const NO_CPU: u16 = u16::MAX;

/// A probe, in 96 bytes. What only an answer has is meaningful if the fate is that of an answered probe.
#[derive(Clone, Copy, Debug)]
struct BlockRow {
    fate: Fate,
    phase: Phase,
    due: i64,
    sent: i64,
    received: i64,
    reflector_received: i64,
    reflector_sent: i64,
    rx_software: i64,
    reflector_rx_software: i64,
    tx_sched: i64,
    tx_software: i64,
    reflector_tx_lag: i64,
    sent_cpu: u16,
    received_cpu: u16,
    reflector_cpu: u16,
    errno: i32,
    duplicates: u16,
    reordered: bool,
}

/// Probes by their place, which is their number in the block.
#[derive(Debug)]
pub(crate) struct ProbeBlock {
    base: u64,
    timeout: Nanos,
    size_bytes: u32,
    /// `None` if the spool has no probe of that place so far.
    places: Vec<Option<BlockRow>>,
    /// The places that are rows, ascending, once the block is settled.
    kept: Vec<u32>,
}

impl ProbeBlock {
    pub(crate) fn new(places: usize, timeout: Nanos, size_bytes: u32) -> ProbeBlock {
        let (places, kept) = (vec![None; places], Vec::with_capacity(places));
        ProbeBlock { base: 0, timeout, size_bytes, places, kept }
    }

    /// Empties the block for the probes from `base` on.
    pub(crate) fn reset(&mut self, base: u64) {
        self.base = base;
        self.places.fill(None);
        self.kept.clear();
    }

    /// Enters a probe that was sent, refused or not sent. Further departures of the same probe are ignored.
    pub(crate) fn depart(&mut self, event: SpoolEvent) {
        let begun = |fate, phase, due: Option<Stamp<SenderClock>>, sent: Option<Stamp<SenderClock>>| BlockRow {
            fate,
            phase,
            due: nanos(due),
            sent: nanos(sent),
            received: NONE,
            reflector_received: NONE,
            reflector_sent: NONE,
            rx_software: NONE,
            reflector_rx_software: NONE,
            tx_sched: NONE,
            tx_software: NONE,
            reflector_tx_lag: NONE,
            sent_cpu: NO_CPU,
            received_cpu: NO_CPU,
            reflector_cpu: NO_CPU,
            errno: 0,
            duplicates: 0,
            reordered: false,
        };
        let (seq, row) = match event {
            SpoolEvent::Sent { seq, phase, due, sent, cpu } => {
                (seq, BlockRow { sent_cpu: cpu.unwrap_or(NO_CPU), ..begun(Fate::Lost, phase, due, Some(sent)) })
            }
            SpoolEvent::SendFailed { seq, phase, due, tried, errno } => {
                (seq, BlockRow { errno, ..begun(Fate::SendFailed, phase, due, Some(tried)) })
            }
            SpoolEvent::NotSent { seq, phase, due } => (seq, begun(Fate::NotSent, phase, Some(due), None)),
            _ => return,
        };
        self.places[(seq.0 - self.base) as usize].get_or_insert(row);
    }

    /// Enters an answer; `reordered` if an answer to a later probe came before. False if no sent probe of the spool has
    /// its number.
    pub(crate) fn arrive(&mut self, event: SpoolEvent, reordered: bool) -> bool {
        let SpoolEvent::Arrived {
            seq,
            received,
            reflector_received,
            reflector_sent,
            rx_software,
            reflector_rx_software,
            cpu,
            reflector_cpu,
        } = event
        else {
            return false;
        };
        let place = (seq.0 - self.base) as usize;
        let Some(row) = self.places.get_mut(place).and_then(Option::as_mut) else { return false };
        match row.fate {
            // An answer before its probe is damage of an old spool, and not an answer.
            Fate::Lost if received.as_nanos() < row.sent => return false,
            Fate::Lost => {
                let waited = received - Stamp::from_nanos(row.sent);
                *row = BlockRow {
                    fate: if waited <= self.timeout { Fate::Answered } else { Fate::Late },
                    received: received.as_nanos(),
                    reflector_received: nanos(reflector_received),
                    reflector_sent: nanos(reflector_sent),
                    rx_software: nanos(rx_software),
                    reflector_rx_software: nanos(reflector_rx_software),
                    received_cpu: cpu.unwrap_or(NO_CPU),
                    reflector_cpu: reflector_cpu.unwrap_or(NO_CPU),
                    reordered,
                    ..*row
                };
            }
            Fate::Answered | Fate::Late => row.duplicates = row.duplicates.saturating_add(1),
            Fate::SendFailed | Fate::NotSent => return false,
        }
        true
    }

    /// Enters stamps of a probe; they are not read without their probe.
    pub(crate) fn stamp(&mut self, stamps: ProbeStamps) {
        let place = (stamps.seq.0 - self.base) as usize;
        let Some(row) = self.places.get_mut(place).and_then(Option::as_mut) else { return };
        let or = |new: i64, old| if new == NONE { old } else { new };
        row.tx_sched = or(nanos(stamps.tx_sched), row.tx_sched);
        row.tx_software = or(nanos(stamps.tx_software), row.tx_software);
        row.reflector_tx_lag = or(stamps.reflector_tx_lag.map_or(NONE, |lag| lag.0), row.reflector_tx_lag);
    }

    /// Decides which places are rows. Returns the number of undecided probes, which get no row: unanswered, and sent less
    /// than a time-out before `horizon`.
    pub(crate) fn settle(&mut self, horizon: Option<Stamp<SenderClock>>) -> u64 {
        let mut undecided = 0;
        for (place, row) in (0..).zip(&self.places) {
            let Some(row) = row else { continue };
            let deadline = Stamp::from_nanos(row.sent) + self.timeout;
            if row.fate == Fate::Lost && horizon.is_some_and(|horizon| deadline > horizon) {
                undecided += 1;
            } else {
                self.kept.push(place);
            }
        }
        undecided
    }

    pub(crate) fn rows(&self) -> usize {
        self.kept.len()
    }

    /// The rows as a batch of `columns`.
    pub(crate) fn batch(&self, columns: &[ProbeColumn]) -> ProbeBatch {
        use ProbeColumn as C;
        let rows = || self.kept.iter().filter_map(|place| self.places[*place as usize].as_ref());
        let ints = |column, of: fn(&BlockRow) -> Option<i64>| {
            if columns.contains(&column) { rows().map(of).collect() } else { IntColumn::default() }
        };
        let seqs = self.kept.iter().filter(|_| columns.contains(&C::Seq));
        ProbeBatch {
            rows: self.rows(),
            seq: seqs.map(|place| Some((self.base + u64::from(*place)) as i64)).collect(),
            phase: rows().map(|row| row.phase).collect(),
            due_ns: ints(C::DueNs, |row| stamp(row.due)),
            sent_ns: ints(C::SentNs, |row| stamp(row.sent)),
            received_ns: ints(C::ReceivedNs, |row| stamp(row.received)),
            reflector_received_ns: ints(C::ReflectorReceivedNs, |row| stamp(row.reflector_received)),
            reflector_sent_ns: ints(C::ReflectorSentNs, |row| stamp(row.reflector_sent)),
            tx_sched_ns: ints(C::TxSchedNs, |row| stamp(row.tx_sched)),
            tx_software_ns: ints(C::TxSoftwareNs, |row| stamp(row.tx_software)),
            // No event carries the stamps of a NIC.
            tx_hardware_ns: ints(C::TxHardwareNs, |_| None),
            rx_software_ns: ints(C::RxSoftwareNs, |row| stamp(row.rx_software)),
            rx_hardware_ns: ints(C::RxHardwareNs, |_| None),
            reflector_rx_software_ns: ints(C::ReflectorRxSoftwareNs, |row| stamp(row.reflector_rx_software)),
            reflector_tx_software_ns: ints(C::ReflectorTxSoftwareNs, |row| {
                stamp(row.reflector_sent).zip(stamp(row.reflector_tx_lag)).map(|(sent, lag)| sent.saturating_add(lag))
            }),
            size_bytes: IntColumn { values: vec![i64::from(self.size_bytes); self.rows()], present: None },
            sent_cpu: ints(C::SentCpu, |row| cpu(row.sent_cpu)),
            received_cpu: ints(C::ReceivedCpu, |row| cpu(row.received_cpu)),
            reflector_cpu: ints(C::ReflectorCpu, |row| cpu(row.reflector_cpu)),
            fate: rows().map(|row| row.fate).collect(),
            error: ints(C::Error, |row| (row.fate == Fate::SendFailed).then_some(row.errno.into())),
            duplicates: ints(C::Duplicates, |row| Some(row.duplicates.into())),
            reordered: ints(C::Reordered, |row| Some(row.reordered.into())),
        }
    }

    /// Writes the rows as a row group, one column at a time.
    pub(crate) fn write<W: Write + Send>(&self, table: &mut TableWriter<W>) -> io::Result<()> {
        let mut group = table.group(self.rows())?;
        for column in ProbeColumn::ALL {
            let mut batch = self.batch(&[column]);
            let field = batch.fields().swap_remove(column as usize);
            group.write(&field.take(self.rows()))?;
        }
        group.close()
    }
}

fn nanos<C>(stamp: Option<Stamp<C>>) -> i64 {
    stamp.map_or(NONE, Stamp::as_nanos)
}

fn stamp(nanos: i64) -> Option<i64> {
    (nanos != NONE).then_some(nanos)
}

fn cpu(cpu: u16) -> Option<i64> {
    (cpu != NO_CPU).then_some(cpu.into())
}
