//! A block of consecutive probes while the joiner fills it: columns of fixed length, reused for every block.

use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::event::SpoolEvent;
use super::tables::column::{IntColumn, WordColumn};
use super::tables::encode::TableWriter;
use super::tables::probes::{ProbeBatch, ProbeColumn};
use crate::probe::{Fate, Phase};
use crate::units::{Nanos, SenderClock, Stamp};

/// An absent instant in the columns of the block.
const NONE: i64 = i64::MIN;
const NO_CPU: u16 = u16::MAX;

/// Probes by their place, which is their number in the block. Values of an earlier block remain in the other columns of
/// a place without a fate, and in the columns of the answer if the probe has no answer.
#[derive(Debug)]
pub(crate) struct ProbeBlock {
    base: u64,
    timeout: Nanos,
    size_bytes: u32,
    /// `None` if the spool has no probe of that place so far.
    fate: Vec<Option<Fate>>,
    phase: Vec<Phase>,
    due: Vec<i64>,
    sent: Vec<i64>,
    received: Vec<i64>,
    reflector_received: Vec<i64>,
    reflector_sent: Vec<i64>,
    rx_software: Vec<i64>,
    reflector_rx_software: Vec<i64>,
    sent_cpu: Vec<u16>,
    received_cpu: Vec<u16>,
    reflector_cpu: Vec<u16>,
    errno: Vec<i32>,
    duplicates: Vec<u16>,
    reordered: Vec<bool>,
    /// The places that are rows, ascending, once the block is settled.
    kept: Vec<u32>,
}

impl ProbeBlock {
    pub(crate) fn new(places: usize, timeout: Nanos, size_bytes: u32) -> ProbeBlock {
        let stamps = || vec![NONE; places];
        let cpus = || vec![NO_CPU; places];
        ProbeBlock {
            base: 0,
            timeout,
            size_bytes,
            fate: vec![None; places],
            phase: vec![Phase::Measure; places],
            due: stamps(),
            sent: stamps(),
            received: stamps(),
            reflector_received: stamps(),
            reflector_sent: stamps(),
            rx_software: stamps(),
            reflector_rx_software: stamps(),
            sent_cpu: cpus(),
            received_cpu: cpus(),
            reflector_cpu: cpus(),
            errno: vec![0; places],
            duplicates: vec![0; places],
            reordered: vec![false; places],
            kept: Vec::with_capacity(places),
        }
    }

    /// Empties the block for the probes from `base` on.
    pub(crate) fn reset(&mut self, base: u64) {
        self.base = base;
        self.fate.fill(None);
        self.kept.clear();
    }

    /// Enters a probe that was sent, refused or not sent. Further departures of the same probe are ignored.
    pub(crate) fn depart(&mut self, event: SpoolEvent) {
        match event {
            SpoolEvent::Sent { seq, phase, due, sent, cpu } => {
                if let Some(place) = self.begin(seq.0, Fate::Lost, phase, due, Some(sent)) {
                    self.sent_cpu[place] = cpu.unwrap_or(NO_CPU);
                }
            }
            SpoolEvent::SendFailed { seq, phase, due, tried, errno } => {
                if let Some(place) = self.begin(seq.0, Fate::SendFailed, phase, due, Some(tried)) {
                    self.errno[place] = errno;
                }
            }
            SpoolEvent::NotSent { seq, phase, due } => _ = self.begin(seq.0, Fate::NotSent, phase, Some(due), None),
            SpoolEvent::Arrived { .. }
            | SpoolEvent::Gap { .. }
            | SpoolEvent::TimedOut { .. }
            | SpoolEvent::Woke { .. }
            | SpoolEvent::Interval(_) => (),
        }
    }

    fn begin(
        &mut self,
        seq: u64,
        fate: Fate,
        phase: Phase,
        due: Option<Stamp<SenderClock>>,
        sent: Option<Stamp<SenderClock>>,
    ) -> Option<usize> {
        let place = (seq - self.base) as usize;
        if self.fate[place].is_some() {
            return None;
        }
        self.fate[place] = Some(fate);
        self.phase[place] = phase;
        self.due[place] = nanos(due);
        self.sent[place] = nanos(sent);
        self.sent_cpu[place] = NO_CPU;
        self.duplicates[place] = 0;
        self.reordered[place] = false;
        Some(place)
    }

    /// Enters an answer; `reordered` if an answer to a later probe came before. False if no sent probe of the spool has
    /// its number.
    pub(crate) fn arrive(&mut self, event: SpoolEvent, reordered: bool) -> bool {
        let SpoolEvent::Arrived { seq, received, .. } = event else { return false };
        let place = (seq.0 - self.base) as usize;
        match self.fate.get(place).copied().flatten() {
            // An answer before its probe is damage of an old spool, and not an answer.
            Some(Fate::Lost) if received.as_nanos() < self.sent[place] => false,
            Some(Fate::Lost) => {
                let waited = received - Stamp::from_nanos(self.sent[place]);
                self.fate[place] = Some(if waited <= self.timeout { Fate::Answered } else { Fate::Late });
                self.reordered[place] = reordered;
                self.keep_answer(place, event);
                true
            }
            Some(Fate::Answered | Fate::Late) => {
                self.duplicates[place] = self.duplicates[place].saturating_add(1);
                true
            }
            Some(Fate::SendFailed | Fate::NotSent) | None => false,
        }
    }

    fn keep_answer(&mut self, place: usize, event: SpoolEvent) {
        let SpoolEvent::Arrived {
            received,
            reflector_received,
            reflector_sent,
            rx_software,
            reflector_rx_software,
            cpu,
            reflector_cpu,
            ..
        } = event
        else {
            return;
        };
        self.received[place] = received.as_nanos();
        self.reflector_received[place] = nanos(reflector_received);
        self.reflector_sent[place] = nanos(reflector_sent);
        self.rx_software[place] = nanos(rx_software);
        self.reflector_rx_software[place] = nanos(reflector_rx_software);
        self.received_cpu[place] = cpu.unwrap_or(NO_CPU);
        self.reflector_cpu[place] = reflector_cpu.unwrap_or(NO_CPU);
    }

    /// Decides which places are rows. Returns the number of undecided probes, which get no row: unanswered, and sent less
    /// than a time-out before `horizon`.
    pub(crate) fn settle(&mut self, horizon: Option<Stamp<SenderClock>>) -> u64 {
        let mut undecided = 0;
        for (place, fate) in self.fate.iter().enumerate() {
            let Some(fate) = fate else { continue };
            let deadline = Stamp::from_nanos(self.sent[place]) + self.timeout;
            if *fate == Fate::Lost && horizon.is_some_and(|horizon| deadline > horizon) {
                undecided += 1;
            } else {
                self.kept.push(place as u32);
            }
        }
        undecided
    }

    pub(crate) fn rows(&self) -> usize {
        self.kept.len()
    }

    fn phases(&self) -> WordColumn<Phase> {
        self.kept.iter().map(|place| self.phase[*place as usize]).collect()
    }

    fn fates(&self) -> WordColumn<Fate> {
        self.kept.iter().filter_map(|place| self.fate[*place as usize]).collect()
    }

    fn ints(&self, column: ProbeColumn) -> IntColumn {
        use ProbeColumn as C;
        match column {
            C::Seq => self.kept.iter().map(|place| Some((self.base + u64::from(*place)) as i64)).collect(),
            C::DueNs => self.stamps(&self.due, |_| true),
            C::SentNs => self.stamps(&self.sent, |_| true),
            C::ReceivedNs => self.stamps(&self.received, is_answer),
            C::ReflectorReceivedNs => self.stamps(&self.reflector_received, is_answer),
            C::ReflectorSentNs => self.stamps(&self.reflector_sent, is_answer),
            C::RxSoftwareNs => self.stamps(&self.rx_software, is_answer),
            C::ReflectorRxSoftwareNs => self.stamps(&self.reflector_rx_software, is_answer),
            C::SizeBytes => IntColumn { values: vec![i64::from(self.size_bytes); self.rows()], present: None },
            C::SentCpu => self.cpus(&self.sent_cpu, |_| true),
            C::ReceivedCpu => self.cpus(&self.received_cpu, is_answer),
            C::ReflectorCpu => self.cpus(&self.reflector_cpu, is_answer),
            C::Error => self.column(&self.errno, |fate| fate == Fate::SendFailed, |errno| Some(i64::from(errno))),
            C::Duplicates => self.column(&self.duplicates, |_| true, |count| Some(i64::from(count))),
            C::Reordered => self.column(&self.reordered, |_| true, |flag| Some(i64::from(flag))),
            // Events do not carry these stamps.
            C::TxSchedNs | C::TxSoftwareNs | C::TxHardwareNs | C::RxHardwareNs | C::ReflectorTxSoftwareNs => {
                IntColumn::nulls(self.rows())
            }
            C::Phase | C::Fate => IntColumn::default(),
        }
    }

    /// Writes the rows as a row group, one column at a time.
    pub(crate) fn write<W: Write + Send>(&self, table: &mut TableWriter<W>) -> ParquetResult<()> {
        let mut group = table.group(self.rows())?;
        for column in ProbeColumn::ALL {
            match column {
                ProbeColumn::Phase => group.words(&self.phases(), Phase::word)?,
                ProbeColumn::Fate => group.words(&self.fates(), Fate::word)?,
                ints => group.ints(&self.ints(ints))?,
            }
        }
        group.close()
    }

    /// The rows as a batch of `columns`.
    pub(crate) fn batch(&self, columns: &[ProbeColumn]) -> ProbeBatch {
        let mut batch = ProbeBatch { rows: self.rows(), ..ProbeBatch::default() };
        for column in columns {
            match batch.ints_mut(*column) {
                Some(ints) => *ints = self.ints(*column),
                None if *column == ProbeColumn::Phase => batch.phase = self.phases(),
                None => batch.fate = self.fates(),
            }
        }
        batch
    }

    fn stamps(&self, stamps: &[i64], valid: impl Fn(Fate) -> bool) -> IntColumn {
        self.column(stamps, valid, |nanos| (nanos != NONE).then_some(nanos))
    }

    fn cpus(&self, cpus: &[u16], valid: impl Fn(Fate) -> bool) -> IntColumn {
        self.column(cpus, valid, |cpu| (cpu != NO_CPU).then_some(i64::from(cpu)))
    }

    /// The values of the rows whose fate is `valid`, null for the others.
    fn column<T: Copy>(
        &self,
        values: &[T],
        valid: impl Fn(Fate) -> bool,
        convert: impl Fn(T) -> Option<i64>,
    ) -> IntColumn {
        let value = |place: &u32| {
            let place = *place as usize;
            self.fate[place].filter(|fate| valid(*fate)).and_then(|_| convert(values[place]))
        };
        self.kept.iter().map(value).collect()
    }
}

fn is_answer(fate: Fate) -> bool {
    matches!(fate, Fate::Answered | Fate::Late)
}

fn nanos<C>(stamp: Option<Stamp<C>>) -> i64 {
    stamp.map_or(NONE, Stamp::as_nanos)
}
