//! The columns of `probes.parquet`: the one place that knows their names, types and order.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::Type;

/// A column. The order is that of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeColumn {
    /// Place in the run, from 0.
    Seq,
    /// `warmup` or `measure`.
    Phase,
    /// When the schedule wanted it sent, ns of the sender's clock, as the next two.
    DueNs,
    /// Just before the send call, also of a refused one.
    SentNs,
    /// Just after the receive call that brought the first answer.
    ReceivedNs,
    /// Just after the reflector's receive call, ns of the reflector's clock, as the next.
    ReflectorReceivedNs,
    /// Just before the reflector's send call.
    ReflectorSentNs,
    /// Entering the sender's packet scheduler, ns of the sender's clock, as the next four.
    TxSchedNs,
    /// Leaving the sender's kernel.
    TxSoftwareNs,
    /// Leaving the sender's NIC.
    TxHardwareNs,
    /// The answer reaching the sender's kernel.
    RxSoftwareNs,
    /// The answer reaching the sender's NIC.
    RxHardwareNs,
    /// The probe reaching the reflector's kernel, ns of the reflector's clock, as the next.
    ReflectorRxSoftwareNs,
    /// The answer leaving the reflector's kernel.
    ReflectorTxSoftwareNs,
    /// Transport payload.
    SizeBytes,
    /// CPU that sent.
    SentCpu,
    /// CPU that received.
    ReceivedCpu,
    /// CPU on which the reflector answered.
    ReflectorCpu,
    /// What became of the probe.
    Fate,
    /// errno of a refused send.
    Error,
    /// Further answers after the first.
    Duplicates,
    /// The first answer came after an answer to a later probe.
    Reordered,
}

/// What a column holds, on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// INT64, signed or not.
    Wide {
        /// Whether negative values exist.
        signed: bool,
    },
    /// INT32 with the logical type of so many bits.
    Narrow {
        /// 16 or 32.
        bits: i8,
        /// Whether negative values exist.
        signed: bool,
    },
    /// BYTE_ARRAY of UTF-8, one of a few words.
    Word,
    /// BOOLEAN.
    Flag,
}

/// What a table needs to know of one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnShape {
    /// The name in the file.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) column_type: ColumnType,
    /// Whether it may hold null.
    pub(crate) nullable: bool,
}

use ProbeColumn::*;

impl ProbeColumn {
    /// Every column, in the order of the file.
    pub const ALL: [ProbeColumn; 22] = [
        Seq,
        Phase,
        DueNs,
        SentNs,
        ReceivedNs,
        ReflectorReceivedNs,
        ReflectorSentNs,
        TxSchedNs,
        TxSoftwareNs,
        TxHardwareNs,
        RxSoftwareNs,
        RxHardwareNs,
        ReflectorRxSoftwareNs,
        ReflectorTxSoftwareNs,
        SizeBytes,
        SentCpu,
        ReceivedCpu,
        ReflectorCpu,
        Fate,
        Error,
        Duplicates,
        Reordered,
    ];

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Seq => "seq",
            Phase => "phase",
            DueNs => "due_ns",
            SentNs => "sent_ns",
            ReceivedNs => "received_ns",
            ReflectorReceivedNs => "reflector_received_ns",
            ReflectorSentNs => "reflector_sent_ns",
            TxSchedNs => "tx_sched_ns",
            TxSoftwareNs => "tx_software_ns",
            TxHardwareNs => "tx_hardware_ns",
            RxSoftwareNs => "rx_software_ns",
            RxHardwareNs => "rx_hardware_ns",
            ReflectorRxSoftwareNs => "reflector_rx_software_ns",
            ReflectorTxSoftwareNs => "reflector_tx_software_ns",
            SizeBytes => "size_bytes",
            SentCpu => "sent_cpu",
            ReceivedCpu => "received_cpu",
            ReflectorCpu => "reflector_cpu",
            Fate => "fate",
            Error => "error",
            Duplicates => "duplicates",
            Reordered => "reordered",
        }
    }

    /// Whether the column may hold null.
    pub const fn is_nullable(self) -> bool {
        !matches!(self, Seq | Phase | SizeBytes | Fate | Duplicates | Reordered)
    }

    /// All three together.
    pub(crate) const fn shape(self) -> ColumnShape {
        ColumnShape { name: self.name(), column_type: self.column_type(), nullable: self.is_nullable() }
    }

    pub(crate) const fn column_type(self) -> ColumnType {
        match self {
            Seq => ColumnType::Wide { signed: false },
            Phase | Fate => ColumnType::Word,
            SizeBytes => ColumnType::Narrow { bits: 32, signed: false },
            SentCpu | ReceivedCpu | ReflectorCpu | Duplicates => ColumnType::Narrow { bits: 16, signed: false },
            Error => ColumnType::Narrow { bits: 32, signed: true },
            Reordered => ColumnType::Flag,
            _ => ColumnType::Wide { signed: true },
        }
    }
}

/// The schema of the file.
pub(crate) fn schema() -> Result<Arc<Type>> {
    schema_of("probe", ProbeColumn::ALL.map(ProbeColumn::shape))
}

/// The schema of a file of rows named `row`.
pub(crate) fn schema_of(row: &str, columns: impl IntoIterator<Item = ColumnShape>) -> Result<Arc<Type>> {
    let fields = columns.into_iter().map(|column| field(column).map(Arc::new)).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder(row).with_fields(fields).build()?))
}

fn field(column: ColumnShape) -> Result<Type> {
    let (physical, logical) = match column.column_type {
        ColumnType::Wide { signed: true } => (PhysicalType::INT64, None),
        ColumnType::Wide { signed: false } => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        ColumnType::Narrow { bits: 32, signed: true } => (PhysicalType::INT32, None),
        ColumnType::Narrow { bits, signed } => (PhysicalType::INT32, Some(LogicalType::integer(bits, signed))),
        ColumnType::Word => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Flag => (PhysicalType::BOOLEAN, None),
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical).with_repetition(repetition).with_logical_type(logical).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_stand_in_the_order_of_the_enum_and_have_names_of_their_own() {
        assert!(ProbeColumn::ALL.is_sorted());
        let mut names: Vec<_> = ProbeColumn::ALL.iter().map(|column| column.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ProbeColumn::ALL.len());
        assert_eq!(schema().expect("builds").get_fields().len(), names.len());
    }
}
