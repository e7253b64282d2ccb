//! `probes.parquet`: a row per probe, in the order of `seq`.

use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::column::ColumnType::{Flag, I32, I64, U16, U32, U64, Word};
use super::column::{ColumnSpec, IntColumn, WordColumn};
use super::decode::{GroupReader, TableReader};
use super::encode::TableWriter;
use super::file::{TableFault, TableFile};
use crate::facts::LoggedProbe;
use crate::probe::{Fate, KernelStamps, Phase, ProbeRecord, Seq};
use crate::recording::error::RecordingError;
use crate::units::Stamp;

/// The file's name in a recording's directory.
pub(crate) const PROBES: &str = "probes.parquet";

/// A column of the table, in the order of the file. Unless said otherwise instants are ns of the sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeColumn {
    /// Sequence number in the run, from 0.
    Seq,
    Phase,
    /// When the schedule wanted the probe sent.
    DueNs,
    /// Just before the send call, also of a refused one.
    SentNs,
    /// Just after the receive call that returned the first answer.
    ReceivedNs,
    /// Just after the reflector's receive call, ns of the reflector's clock.
    ReflectorReceivedNs,
    /// Just before the reflector's send call, ns of the reflector's clock.
    ReflectorSentNs,
    /// The probe enters the sender's packet scheduler.
    TxSchedNs,
    /// The probe leaves the sender's kernel.
    TxSoftwareNs,
    /// The probe leaves the sender's NIC.
    TxHardwareNs,
    /// The answer reaches the sender's kernel.
    RxSoftwareNs,
    /// The answer reaches the sender's NIC.
    RxHardwareNs,
    /// The probe reaches the reflector's kernel, ns of the reflector's clock.
    ReflectorRxSoftwareNs,
    /// The answer leaves the reflector's kernel, ns of the reflector's clock.
    ReflectorTxSoftwareNs,
    SizeBytes,
    /// CPU of the send call.
    SentCpu,
    /// CPU of the receive call.
    ReceivedCpu,
    /// CPU on which the reflector answered.
    ReflectorCpu,
    /// Answered, late, lost, refused or not sent.
    Fate,
    /// errno of a refused send.
    Error,
    /// Further answers after the first.
    Duplicates,
    /// Whether the first answer came after an answer to a later probe (RFC 4737, section 3.3).
    Reordered,
}

use ProbeColumn as C;

pub(super) const COLUMNS: [ColumnSpec; 22] = [
    ColumnSpec::required("seq", U64),
    ColumnSpec::required("phase", Word),
    ColumnSpec::nullable("due_ns", I64),
    ColumnSpec::nullable("sent_ns", I64),
    ColumnSpec::nullable("received_ns", I64),
    ColumnSpec::nullable("reflector_received_ns", I64),
    ColumnSpec::nullable("reflector_sent_ns", I64),
    ColumnSpec::nullable("tx_sched_ns", I64),
    ColumnSpec::nullable("tx_software_ns", I64),
    ColumnSpec::nullable("tx_hardware_ns", I64),
    ColumnSpec::nullable("rx_software_ns", I64),
    ColumnSpec::nullable("rx_hardware_ns", I64),
    ColumnSpec::nullable("reflector_rx_software_ns", I64),
    ColumnSpec::nullable("reflector_tx_software_ns", I64),
    ColumnSpec::measured("size_bytes", U32),
    ColumnSpec::nullable("sent_cpu", U16),
    ColumnSpec::nullable("received_cpu", U16),
    ColumnSpec::nullable("reflector_cpu", U16),
    ColumnSpec::required("fate", Word),
    ColumnSpec::nullable("error", I32),
    ColumnSpec::measured("duplicates", U16),
    ColumnSpec::measured("reordered", Flag),
];

impl ProbeColumn {
    /// Every column, in the order of the file.
    pub const ALL: [ProbeColumn; 22] = [
        C::Seq,
        C::Phase,
        C::DueNs,
        C::SentNs,
        C::ReceivedNs,
        C::ReflectorReceivedNs,
        C::ReflectorSentNs,
        C::TxSchedNs,
        C::TxSoftwareNs,
        C::TxHardwareNs,
        C::RxSoftwareNs,
        C::RxHardwareNs,
        C::ReflectorRxSoftwareNs,
        C::ReflectorTxSoftwareNs,
        C::SizeBytes,
        C::SentCpu,
        C::ReceivedCpu,
        C::ReflectorCpu,
        C::Fate,
        C::Error,
        C::Duplicates,
        C::Reordered,
    ];
}

/// Consecutive rows. A column that was not read is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the column of its name, see `ProbeColumn`")]
pub struct ProbeBatch {
    pub rows: usize,
    pub phase: WordColumn<Phase>,
    pub fate: WordColumn<Fate>,
    pub seq: IntColumn,
    pub due_ns: IntColumn,
    pub sent_ns: IntColumn,
    pub received_ns: IntColumn,
    pub reflector_received_ns: IntColumn,
    pub reflector_sent_ns: IntColumn,
    pub tx_sched_ns: IntColumn,
    pub tx_software_ns: IntColumn,
    pub tx_hardware_ns: IntColumn,
    pub rx_software_ns: IntColumn,
    pub rx_hardware_ns: IntColumn,
    pub reflector_rx_software_ns: IntColumn,
    pub reflector_tx_software_ns: IntColumn,
    pub size_bytes: IntColumn,
    pub sent_cpu: IntColumn,
    pub received_cpu: IntColumn,
    pub reflector_cpu: IntColumn,
    pub error: IntColumn,
    pub duplicates: IntColumn,
    /// 1 or 0.
    pub reordered: IntColumn,
}

impl ProbeBatch {
    /// The field of a column of numbers; `None` for the two columns of words.
    pub fn ints_mut(&mut self, column: ProbeColumn) -> Option<&mut IntColumn> {
        Some(match column {
            C::Phase | C::Fate => return None,
            C::Seq => &mut self.seq,
            C::DueNs => &mut self.due_ns,
            C::SentNs => &mut self.sent_ns,
            C::ReceivedNs => &mut self.received_ns,
            C::ReflectorReceivedNs => &mut self.reflector_received_ns,
            C::ReflectorSentNs => &mut self.reflector_sent_ns,
            C::TxSchedNs => &mut self.tx_sched_ns,
            C::TxSoftwareNs => &mut self.tx_software_ns,
            C::TxHardwareNs => &mut self.tx_hardware_ns,
            C::RxSoftwareNs => &mut self.rx_software_ns,
            C::RxHardwareNs => &mut self.rx_hardware_ns,
            C::ReflectorRxSoftwareNs => &mut self.reflector_rx_software_ns,
            C::ReflectorTxSoftwareNs => &mut self.reflector_tx_software_ns,
            C::SizeBytes => &mut self.size_bytes,
            C::SentCpu => &mut self.sent_cpu,
            C::ReceivedCpu => &mut self.received_cpu,
            C::ReflectorCpu => &mut self.reflector_cpu,
            C::Error => &mut self.error,
            C::Duplicates => &mut self.duplicates,
            C::Reordered => &mut self.reordered,
        })
    }

    /// One row of a batch that was read with [`ProbeColumn::ALL`].
    ///
    /// # Panics
    /// If a column was not read or has no such row.
    pub fn record(&self, row: usize) -> ProbeRecord {
        let cpu = |column: &IntColumn| column.get(row).map(|cpu| cpu as u16);
        ProbeRecord {
            seq: Seq(self.seq.values[row] as u64),
            phase: self.phase.get(row),
            due: self.due_ns.get(row).map(Stamp::from_nanos),
            sent: self.sent_ns.get(row).map(Stamp::from_nanos),
            received: self.received_ns.get(row).map(Stamp::from_nanos),
            reflector_received: self.reflector_received_ns.get(row).map(Stamp::from_nanos),
            reflector_sent: self.reflector_sent_ns.get(row).map(Stamp::from_nanos),
            kernel: KernelStamps {
                tx_sched: self.tx_sched_ns.get(row).map(Stamp::from_nanos),
                tx_software: self.tx_software_ns.get(row).map(Stamp::from_nanos),
                tx_hardware: self.tx_hardware_ns.get(row).map(Stamp::from_nanos),
                rx_software: self.rx_software_ns.get(row).map(Stamp::from_nanos),
                rx_hardware: self.rx_hardware_ns.get(row).map(Stamp::from_nanos),
                reflector_rx_software: self.reflector_rx_software_ns.get(row).map(Stamp::from_nanos),
                reflector_tx_software: self.reflector_tx_software_ns.get(row).map(Stamp::from_nanos),
            },
            size_bytes: self.size_bytes.values[row] as u32,
            sent_cpu: cpu(&self.sent_cpu),
            received_cpu: cpu(&self.received_cpu),
            reflector_cpu: cpu(&self.reflector_cpu),
            fate: self.fate.get(row),
            error: self.error.get(row).map(|errno| errno as i32),
            duplicates: self.duplicates.values[row] as u16,
            reordered: self.reordered.values[row] != 0,
        }
    }
}

/// Begins the table of the run `run_id` in `target`.
pub(crate) fn create<W: Write + Send>(target: W, run_id: &str) -> ParquetResult<TableWriter<W>> {
    TableWriter::new(target, run_id, "probe", &COLUMNS)
}

/// Begins the table of the imported run `run_id` in `target`: columns that a log may lack are nullable.
pub(crate) fn create_for_import<W: Write + Send>(target: W, run_id: &str) -> ParquetResult<TableWriter<W>> {
    TableWriter::new(target, run_id, "probe", &COLUMNS.map(ColumnSpec::imported))
}

/// Writes `probes` of a log, whose sequence numbers are `numbers`, as a row group. A probe without an answer is lost.
pub(crate) fn write_logged<W: Write + Send>(
    table: &mut TableWriter<W>,
    probes: &[LoggedProbe],
    numbers: &[u64],
) -> ParquetResult<()> {
    let stamps = |stamp: fn(&LoggedProbe) -> Option<i64>| probes.iter().map(stamp).collect::<IntColumn>();
    let fate = |probe: &LoggedProbe| if probe.received_ns.is_some() { Fate::Answered } else { Fate::Lost };
    let mut group = table.group(probes.len())?;
    for column in ProbeColumn::ALL {
        match column {
            C::Phase => group.words(&WordColumn::All(Phase::Measure), Phase::word)?,
            C::Fate => group.words(&probes.iter().map(fate).collect(), Fate::word)?,
            C::Seq => group.ints(&numbers.iter().map(|number| Some(*number as i64)).collect())?,
            C::DueNs => group.ints(&stamps(|probe| probe.due_ns))?,
            C::SentNs => group.ints(&stamps(|probe| probe.sent_ns))?,
            C::ReceivedNs => group.ints(&stamps(|probe| probe.received_ns))?,
            C::ReflectorReceivedNs => group.ints(&stamps(|probe| probe.reflector_received_ns))?,
            C::ReflectorSentNs => group.ints(&stamps(|probe| probe.reflector_sent_ns))?,
            C::SizeBytes => group.ints(&stamps(|probe| probe.size_bytes.map(i64::from)))?,
            _ => group.ints(&IntColumn::nulls(probes.len()))?,
        }
    }
    group.close()
}

/// The table in `file`.
///
/// # Errors
/// If it has other columns.
pub(crate) fn open(file: TableFile) -> Result<TableReader, RecordingError> {
    TableReader::new(file, &COLUMNS)
}

/// A batch of `columns` for each row group.
pub(crate) fn batches(
    table: TableReader,
    columns: Vec<ProbeColumn>,
) -> impl Iterator<Item = Result<ProbeBatch, RecordingError>> {
    table.groups(move |group| batch(group, &columns))
}

fn batch(group: &GroupReader<'_>, columns: &[ProbeColumn]) -> Result<ProbeBatch, TableFault> {
    let mut batch = ProbeBatch { rows: group.rows, ..ProbeBatch::default() };
    for column in columns {
        match batch.ints_mut(*column) {
            Some(ints) => *ints = group.ints(*column as usize)?,
            None if *column == C::Phase => batch.phase = group.words(C::Phase as usize, parse_phase)?,
            None => batch.fate = group.words(C::Fate as usize, parse_fate)?,
        }
    }
    Ok(batch)
}

pub(super) fn parse_phase(word: &str) -> Option<Phase> {
    [Phase::Warmup, Phase::Measure].into_iter().find(|phase| phase.word() == word)
}

fn parse_fate(word: &str) -> Option<Fate> {
    Fate::ALL.into_iter().find(|fate| fate.word() == word)
}

#[cfg(test)]
mod tests {
    use super::super::column::schema;
    use super::*;

    #[test]
    fn every_column_is_at_its_index_and_has_a_name_of_its_own() {
        assert!(ProbeColumn::ALL.into_iter().enumerate().all(|(index, column)| column as usize == index));
        let is_word = |column: ProbeColumn| COLUMNS[column as usize].column_type == Word;
        let words = ProbeColumn::ALL.into_iter().filter(|column| is_word(*column));
        assert_eq!(words.collect::<Vec<_>>(), [ProbeColumn::Phase, ProbeColumn::Fate]);
        let mut names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(schema("probe", &COLUMNS).expect("builds").get_fields().len(), names.len());
        let mut batch = ProbeBatch::default();
        let ints = ProbeColumn::ALL.into_iter().filter(|column| batch.ints_mut(*column).is_some());
        assert_eq!(ints.count(), 20);
    }
}
