//! `wakeups.parquet`: a row per slot of each thread that slept, in the order in which the slots were due.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::plan::Via;
use crate::probe::Phase;

table! {
    pub WakeupBatch of Wakeups {
        /// The slot, from 0; each thread counts its own.
        seq: IntColumn = required U64;
        phase: WordColumn<Phase> = required Word;
        /// When the thread was due to wake, ns of CLOCK_MONOTONIC.
        due_ns: IntColumn = required I64;
        /// The first clock read after the call, ns of CLOCK_MONOTONIC.
        woke_ns: IntColumn = required I64;
        /// The CPU that the thread slept for, else the one that it woke on.
        cpu: IntColumn = nullable U16;
        /// The call that it slept in.
        via: WordColumn<Via> = required Word;
    }
}
