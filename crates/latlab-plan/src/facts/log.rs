//! The rows of a log of another tool, and what that log states about them.

use serde::{Deserialize, Serialize};

/// A probe of a log that has instants. What the log does not have is `None`: an instant is never computed from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggedProbe {
    /// Its number in the log, which may repeat or run backwards.
    pub id: Option<u64>,
    /// When the schedule wanted it sent, ns of the sender's clock.
    pub due_ns: Option<i64>,
    /// When it was sent, ns of the sender's clock.
    pub sent_ns: Option<i64>,
    /// When its answer arrived, ns of the sender's clock; `None` if it was lost.
    pub received_ns: Option<i64>,
    /// When it arrived at the reflector, ns of the reflector's clock.
    pub reflector_received_ns: Option<i64>,
    /// When the reflector answered, ns of the reflector's clock.
    pub reflector_sent_ns: Option<i64>,
    pub size_bytes: Option<u32>,
}

/// One value of a log, or several equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedValue {
    /// Its number in the order of measuring, ascending; `None` if the order is unknown.
    pub seq: Option<u64>,
    /// ns; `None` if the log says that no answer came, which counts as +infinity.
    pub value_ns: Option<i64>,
    pub count: u64,
}

/// Facts of an import, besides the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFacts {
    /// Whether the log states when its run began; otherwise the recording begins when the log was imported.
    pub start_known: bool,
    /// Malformed lines that were skipped.
    pub skipped_lines: u64,
    /// The first of them: its line, column and fault.
    pub first_skipped: Option<String>,
    /// Numbers of rows that repeat or run backwards: these rows are numbered in the order of the log.
    pub irregular_ids: u64,
    /// Numbers without a row between the first and the last one, of a log that has instants.
    pub missing_ids: u64,
    pub negative_delays: u64,
    /// Probes that are lost according to the totals of the log, and have no row.
    pub lost_without_row: u64,
    /// The word of the unit in which the log has its values; absent where every log of its format has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_unit: Option<String>,
    /// Whether values of the log have digits below a nanosecond, to which they were rounded; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finer_digits: Option<bool>,
    /// Where what the log prints as totals contradicts its rows: `a mean of 17.178 µs, 16.75 µs in its rows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// What was left out of its values, or read otherwise than it is printed: `1 duplicate answer was left out`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Numbers rows by their ids, which ascend in the result: a row whose id repeats or runs backwards comes one after the row
/// before it, and later ids are as far from it as in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNumbers {
    last: Option<u64>,
    /// Number less id, modulo 2^64.
    offset: u64,
    /// Ids that repeat or run backwards.
    pub irregular: u64,
    /// Numbers without a row between the first and the last.
    pub missing: u64,
}

impl RowNumbers {
    /// The number of the next row, whose log gives it `id`; without an id, one more than the last.
    pub fn next(&mut self, id: Option<u64>) -> u64 {
        let due = self.last.map_or(0, |last| last.saturating_add(1));
        let number = match id {
            None => due,
            Some(id) => {
                let number = id.wrapping_add(self.offset);
                // Beyond half of the range it lies before the last one.
                let is_ahead = number >= due && number < SEQ_MAX;
                if is_ahead { number } else { self.renumbered(id, due) }
            }
        };
        self.missing = self.missing.saturating_add(self.last.map_or(0, |_| number.saturating_sub(due)));
        self.last = Some(number);
        number
    }

    #[cold]
    fn renumbered(&mut self, id: u64, due: u64) -> u64 {
        self.irregular = self.irregular.saturating_add(1);
        self.offset = due.wrapping_sub(id);
        due
    }
}

/// Sequence numbers are below this one.
const SEQ_MAX: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_whatever_the_ids_do() {
        for (ids, numbers, irregular, missing) in [
            (vec![Some(5), Some(6), Some(9)], vec![5, 6, 9], 0, 2),
            (vec![Some(0), Some(0), Some(1)], vec![0, 1, 2], 1, 0),
            (vec![Some(7), Some(3), Some(5), Some(4)], vec![7, 8, 10, 11], 2, 1),
            (vec![None, None, Some(2)], vec![0, 1, 2], 0, 0),
            (vec![Some(u64::MAX), Some(1)], vec![0, 2], 1, 1),
        ] {
            let mut rows = RowNumbers::default();
            assert_eq!(ids.iter().map(|id| rows.next(*id)).collect::<Vec<_>>(), numbers, "{ids:?}");
            assert_eq!((rows.irregular, rows.missing), (irregular, missing), "{ids:?}");
        }
    }
}
