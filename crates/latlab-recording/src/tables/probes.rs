//! `probes.parquet`: a row per probe, in the order of `seq`.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::facts::LoggedProbe;
use crate::probe::{Fate, KernelStamps, Phase, ProbeRecord, Seq};
use crate::units::Stamp;

table! {
    /// Consecutive rows. A column that was not read is empty.
    pub ProbeBatch of Probes, chosen by ProbeColumn {
        /// Sequence number in the run, from 0.
        Seq seq: IntColumn = required U64;
        Phase phase: WordColumn<Phase> = required Word;
        /// When the schedule wanted the probe sent.
        DueNs due_ns: IntColumn = nullable I64;
        /// Just before the send call, also of a refused one.
        SentNs sent_ns: IntColumn = nullable I64;
        /// Just after the receive call that returned the first answer.
        ReceivedNs received_ns: IntColumn = nullable I64;
        /// Just after the reflector's receive call, ns of the reflector's clock.
        ReflectorReceivedNs reflector_received_ns: IntColumn = nullable I64;
        /// Just before the reflector's send call, ns of the reflector's clock.
        ReflectorSentNs reflector_sent_ns: IntColumn = nullable I64;
        /// The probe enters the sender's packet scheduler.
        TxSchedNs tx_sched_ns: IntColumn = nullable I64;
        /// The probe leaves the sender's kernel.
        TxSoftwareNs tx_software_ns: IntColumn = nullable I64;
        /// The probe leaves the sender's NIC.
        TxHardwareNs tx_hardware_ns: IntColumn = nullable I64;
        /// The answer reaches the sender's kernel.
        RxSoftwareNs rx_software_ns: IntColumn = nullable I64;
        /// The answer reaches the sender's NIC.
        RxHardwareNs rx_hardware_ns: IntColumn = nullable I64;
        /// The probe reaches the reflector's kernel, ns of the reflector's clock.
        ReflectorRxSoftwareNs reflector_rx_software_ns: IntColumn = nullable I64;
        /// The answer leaves the reflector's kernel, ns of the reflector's clock.
        ReflectorTxSoftwareNs reflector_tx_software_ns: IntColumn = nullable I64;
        SizeBytes size_bytes: IntColumn = measured U32;
        /// CPU of the send call.
        SentCpu sent_cpu: IntColumn = nullable U16;
        /// CPU of the receive call.
        ReceivedCpu received_cpu: IntColumn = nullable U16;
        /// CPU on which the reflector answered.
        ReflectorCpu reflector_cpu: IntColumn = nullable U16;
        /// Answered, late, lost, refused or not sent.
        Fate fate: WordColumn<Fate> = required Word;
        /// errno of a refused send.
        Error error: IntColumn = nullable I32;
        /// Further answers after the first.
        Duplicates duplicates: IntColumn = measured U16;
        /// Whether the first answer came after an answer to a later probe (RFC 4737, section 3.3): 1 or 0.
        Reordered reordered: IntColumn = measured Flag;
    }
}

impl ProbeBatch {
    /// `probes` of a log, whose sequence numbers are `numbers`. A probe without an answer is lost.
    pub(crate) fn of_log(probes: &[LoggedProbe], numbers: &[u64]) -> ProbeBatch {
        let ints = |of: fn(&LoggedProbe) -> Option<i64>| probes.iter().map(of).collect::<IntColumn>();
        let fate = |probe: &LoggedProbe| if probe.received_ns.is_some() { Fate::Answered } else { Fate::Lost };
        ProbeBatch {
            rows: probes.len(),
            seq: numbers.iter().map(|number| Some(*number as i64)).collect(),
            phase: WordColumn::All(Phase::Measure),
            fate: probes.iter().map(fate).collect(),
            due_ns: ints(|probe| probe.due_ns),
            sent_ns: ints(|probe| probe.sent_ns),
            received_ns: ints(|probe| probe.received_ns),
            reflector_received_ns: ints(|probe| probe.reflector_received_ns),
            reflector_sent_ns: ints(|probe| probe.reflector_sent_ns),
            size_bytes: ints(|probe| probe.size_bytes.map(i64::from)),
            ..ProbeBatch::default()
        }
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
