//! A block of consecutive probes while the joiner fills it: columns of fixed length, reused for block after block.

use super::batch::{IntColumn, ProbeBatch, WordColumn};
use super::columns::ProbeColumn;
use super::event::SpoolEvent;
use crate::probe::{Fate, Phase};
use crate::units::{Nanos, SenderClock, Stamp};

/// No value, in the block's own columns; no clock shows it.
const NONE: i64 = i64::MIN;
/// No CPU.
const NO_CPU: u16 = u16::MAX;

/// What an answer did to its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinResult {
    /// It answers or repeats.
    Taken,
    /// Its probe is not in the spool.
    Orphan,
}

/// The block.
#[derive(Debug)]
pub(crate) struct ProbeBlock {
    base: u64,
    timeout: Nanos,
    size_bytes: u32,
    /// None: no probe of that place so far.
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
    /// Places that are rows, ascending, once settled.
    kept: Vec<u32>,
}

impl ProbeBlock {
    /// An empty block of `places` probes.
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

    /// Notes that a probe left, was refused or given up. The first word on a probe stands.
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

    /// Notes an answer. `reordered`: an answer to a later probe came before.
    pub(crate) fn arrive(&mut self, event: SpoolEvent, reordered: bool) -> JoinResult {
        let SpoolEvent::Arrived { seq, received, .. } = event else { return JoinResult::Orphan };
        let place = (seq.0 - self.base) as usize;
        match self.fate.get(place).copied().flatten() {
            Some(Fate::Lost) => {
                let waited = received - Stamp::from_nanos(self.sent[place]);
                self.fate[place] = Some(if waited <= self.timeout { Fate::Answered } else { Fate::Late });
                self.reordered[place] = reordered;
                self.keep_answer(place, event);
                JoinResult::Taken
            }
            Some(Fate::Answered | Fate::Late) => {
                self.duplicates[place] = self.duplicates[place].saturating_add(1);
                JoinResult::Taken
            }
            Some(Fate::SendFailed | Fate::NotSent) | None => JoinResult::Orphan,
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

    /// Decides which places are rows; returns how many probes are left out because nobody can know their
    /// fate: unanswered, and sent less than a time-out before `horizon`.
    pub(crate) fn settle(&mut self, horizon: Option<Stamp<SenderClock>>) -> u64 {
        let mut undecided = 0;
        for (place, fate) in self.fate.iter().enumerate() {
            let Some(fate) = fate else { continue };
            let verdict = Stamp::from_nanos(self.sent[place]) + self.timeout;
            if *fate == Fate::Lost && horizon.is_some_and(|horizon| verdict > horizon) {
                undecided += 1;
            } else {
                self.kept.push(place as u32);
            }
        }
        undecided
    }

    /// Rows in the settled block.
    pub(crate) fn rows(&self) -> usize {
        self.kept.len()
    }

    /// The phases of the rows.
    pub(crate) fn phases(&self) -> WordColumn<Phase> {
        self.kept.iter().map(|place| self.phase[*place as usize]).collect()
    }

    /// The fates of the rows.
    pub(crate) fn fates(&self) -> WordColumn<Fate> {
        self.kept.iter().filter_map(|place| self.fate[*place as usize]).collect()
    }

    /// The numbers of `column` in the rows.
    pub(crate) fn ints(&self, column: ProbeColumn) -> IntColumn {
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
            C::Error => self.gather(&self.errno, |fate| fate == Fate::SendFailed, |errno| Some(i64::from(errno))),
            C::Duplicates => self.gather(&self.duplicates, |_| true, |count| Some(i64::from(count))),
            C::Reordered => self.gather(&self.reordered, |_| true, |flag| Some(i64::from(flag))),
            // This event format carries no such stamp.
            C::TxSchedNs | C::TxSoftwareNs | C::TxHardwareNs | C::RxHardwareNs | C::ReflectorTxSoftwareNs => {
                IntColumn::nulls(self.rows())
            }
            C::Phase | C::Fate => IntColumn::default(),
        }
    }

    /// The rows as a batch of `columns`.
    pub(crate) fn batch(&self, columns: &[ProbeColumn]) -> ProbeBatch {
        let mut batch = ProbeBatch { rows: self.rows(), ..ProbeBatch::default() };
        for column in columns {
            match column {
                ProbeColumn::Phase => batch.phase = self.phases(),
                ProbeColumn::Fate => batch.fate = self.fates(),
                ints => {
                    if let Some(place) = batch.ints_mut(*ints) {
                        *place = self.ints(*ints);
                    }
                }
            }
        }
        batch
    }

    fn stamps(&self, stamps: &[i64], counts: impl Fn(Fate) -> bool) -> IntColumn {
        self.gather(stamps, counts, |nanos| (nanos != NONE).then_some(nanos))
    }

    fn cpus(&self, cpus: &[u16], counts: impl Fn(Fate) -> bool) -> IntColumn {
        self.gather(cpus, counts, |cpu| (cpu != NO_CPU).then_some(i64::from(cpu)))
    }

    /// The values of the rows whose fate `counts`: what an unanswered place holds is another block's.
    fn gather<T: Copy>(&self, values: &[T], counts: impl Fn(Fate) -> bool, to: impl Fn(T) -> Option<i64>) -> IntColumn {
        let of = |place: &u32| {
            let place = *place as usize;
            self.fate[place].filter(|fate| counts(*fate)).and_then(|_| to(values[place]))
        };
        self.kept.iter().map(of).collect()
    }
}

fn is_answer(fate: Fate) -> bool {
    matches!(fate, Fate::Answered | Fate::Late)
}

fn nanos<C>(stamp: Option<Stamp<C>>) -> i64 {
    stamp.map_or(NONE, Stamp::as_nanos)
}
