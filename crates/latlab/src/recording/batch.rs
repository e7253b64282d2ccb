//! Rows in columns: what a reader hands out and what the Parquet writer takes.

use super::columns::ProbeColumn;
use crate::probe::{Fate, KernelStamps, Phase, ProbeRecord, Seq};
use crate::units::Stamp;

/// A column of words of which there are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordColumn<T> {
    /// Every row holds this one.
    All(T),
    /// One per row; none where the column was not asked for.
    Each(Vec<T>),
}

impl<T> Default for WordColumn<T> {
    fn default() -> Self {
        WordColumn::Each(Vec::new())
    }
}

impl<T: Copy> WordColumn<T> {
    /// The word in `row`.
    ///
    /// # Panics
    /// Where the column was not asked for or has no such row.
    #[inline]
    pub fn get(&self, row: usize) -> T {
        match self {
            WordColumn::All(word) => *word,
            WordColumn::Each(words) => words[row],
        }
    }
}

impl<T: Copy + PartialEq> FromIterator<T> for WordColumn<T> {
    fn from_iter<I: IntoIterator<Item = T>>(words: I) -> Self {
        let words: Vec<T> = words.into_iter().collect();
        match words.first() {
            Some(first) if words.iter().all(|word| word == first) => WordColumn::All(*first),
            _ => WordColumn::Each(words),
        }
    }
}

/// A column of numbers, whatever their width on disk; empty where it was not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntColumn {
    /// One per row; 0 where the row holds null. `seq` is unsigned: `values[row] as u64`.
    pub values: Vec<i64>,
    /// Whether the row holds a value; none: every row does.
    pub present: Option<Vec<bool>>,
}

impl IntColumn {
    /// A column of `rows` nulls.
    pub fn nulls(rows: usize) -> IntColumn {
        IntColumn { values: vec![0; rows], present: Some(vec![false; rows]) }
    }

    /// The value in `row`; none where it is null.
    ///
    /// # Panics
    /// Where the column was not asked for or has no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        let value = self.values[row];
        self.present.as_ref().is_none_or(|present| present[row]).then_some(value)
    }
}

impl FromIterator<Option<i64>> for IntColumn {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(values: I) -> Self {
        let values = values.into_iter();
        let mut column = IntColumn { values: Vec::with_capacity(values.size_hint().0), present: None };
        for value in values {
            let row = column.values.len();
            if value.is_none() && column.present.is_none() {
                column.present = Some(vec![true; row]);
            }
            if let Some(present) = &mut column.present {
                present.push(value.is_some());
            }
            column.values.push(value.unwrap_or(0));
        }
        column
    }
}

/// Consecutive rows, in the order of `seq`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeBatch {
    /// How many.
    pub rows: usize,
    /// [`ProbeColumn::Phase`].
    pub phase: WordColumn<Phase>,
    /// [`ProbeColumn::Fate`].
    pub fate: WordColumn<Fate>,
    /// [`ProbeColumn::Seq`].
    pub seq: IntColumn,
    /// [`ProbeColumn::DueNs`].
    pub due_ns: IntColumn,
    /// [`ProbeColumn::SentNs`].
    pub sent_ns: IntColumn,
    /// [`ProbeColumn::ReceivedNs`].
    pub received_ns: IntColumn,
    /// [`ProbeColumn::ReflectorReceivedNs`].
    pub reflector_received_ns: IntColumn,
    /// [`ProbeColumn::ReflectorSentNs`].
    pub reflector_sent_ns: IntColumn,
    /// [`ProbeColumn::TxSchedNs`].
    pub tx_sched_ns: IntColumn,
    /// [`ProbeColumn::TxSoftwareNs`].
    pub tx_software_ns: IntColumn,
    /// [`ProbeColumn::TxHardwareNs`].
    pub tx_hardware_ns: IntColumn,
    /// [`ProbeColumn::RxSoftwareNs`].
    pub rx_software_ns: IntColumn,
    /// [`ProbeColumn::RxHardwareNs`].
    pub rx_hardware_ns: IntColumn,
    /// [`ProbeColumn::ReflectorRxSoftwareNs`].
    pub reflector_rx_software_ns: IntColumn,
    /// [`ProbeColumn::ReflectorTxSoftwareNs`].
    pub reflector_tx_software_ns: IntColumn,
    /// [`ProbeColumn::SizeBytes`].
    pub size_bytes: IntColumn,
    /// [`ProbeColumn::SentCpu`].
    pub sent_cpu: IntColumn,
    /// [`ProbeColumn::ReceivedCpu`].
    pub received_cpu: IntColumn,
    /// [`ProbeColumn::ReflectorCpu`].
    pub reflector_cpu: IntColumn,
    /// [`ProbeColumn::Error`].
    pub error: IntColumn,
    /// [`ProbeColumn::Duplicates`].
    pub duplicates: IntColumn,
    /// [`ProbeColumn::Reordered`]: 1 or 0.
    pub reordered: IntColumn,
}

impl ProbeBatch {
    /// The numbers of `column`; none for the two columns of words.
    pub fn ints_mut(&mut self, column: ProbeColumn) -> Option<&mut IntColumn> {
        Some(match column {
            ProbeColumn::Phase | ProbeColumn::Fate => return None,
            ProbeColumn::Seq => &mut self.seq,
            ProbeColumn::DueNs => &mut self.due_ns,
            ProbeColumn::SentNs => &mut self.sent_ns,
            ProbeColumn::ReceivedNs => &mut self.received_ns,
            ProbeColumn::ReflectorReceivedNs => &mut self.reflector_received_ns,
            ProbeColumn::ReflectorSentNs => &mut self.reflector_sent_ns,
            ProbeColumn::TxSchedNs => &mut self.tx_sched_ns,
            ProbeColumn::TxSoftwareNs => &mut self.tx_software_ns,
            ProbeColumn::TxHardwareNs => &mut self.tx_hardware_ns,
            ProbeColumn::RxSoftwareNs => &mut self.rx_software_ns,
            ProbeColumn::RxHardwareNs => &mut self.rx_hardware_ns,
            ProbeColumn::ReflectorRxSoftwareNs => &mut self.reflector_rx_software_ns,
            ProbeColumn::ReflectorTxSoftwareNs => &mut self.reflector_tx_software_ns,
            ProbeColumn::SizeBytes => &mut self.size_bytes,
            ProbeColumn::SentCpu => &mut self.sent_cpu,
            ProbeColumn::ReceivedCpu => &mut self.received_cpu,
            ProbeColumn::ReflectorCpu => &mut self.reflector_cpu,
            ProbeColumn::Error => &mut self.error,
            ProbeColumn::Duplicates => &mut self.duplicates,
            ProbeColumn::Reordered => &mut self.reordered,
        })
    }

    /// One row of a batch that was read with [`ProbeColumn::ALL`].
    ///
    /// # Panics
    /// Where a column was not asked for or has no such row.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_tells_null_from_zero() {
        let column: IntColumn = [Some(0), None, Some(7)].into_iter().collect();
        assert_eq!((column.get(0), column.get(1), column.get(2)), (Some(0), None, Some(7)));
        let full: IntColumn = [Some(1), Some(2)].into_iter().collect();
        assert_eq!(full, IntColumn { values: vec![1, 2], present: None });
        assert_eq!(IntColumn::nulls(1).get(0), None);
    }

    #[test]
    fn equal_words_become_one() {
        assert_eq!([3, 3].into_iter().collect::<WordColumn<_>>(), WordColumn::All(3));
        assert_eq!([3, 4].into_iter().collect::<WordColumn<_>>(), WordColumn::Each(vec![3, 4]));
        assert_eq!([0u8; 0].into_iter().collect::<WordColumn<_>>(), WordColumn::default());
    }
}
