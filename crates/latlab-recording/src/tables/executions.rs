//! `executions.parquet`: a row per execution of a command, in their order.

use super::column::{IntColumn, WordColumn};
use super::declare::table;
use crate::facts::Execution;
use crate::probe::{ExecutionFate, Phase};

table! {
    pub ExecutionBatch of Executions {
        /// Number in the run, from 0, warm-up included.
        seq: IntColumn = required U64;
        phase: WordColumn<Phase> = required Word;
        /// Just before the spawn, ns of CLOCK_MONOTONIC.
        started_ns: IntColumn = required I64;
        /// Just after the wait, ns of CLOCK_MONOTONIC.
        ended_ns: IntColumn = required I64;
        /// CPU time outside of the kernel.
        user_ns: IntColumn = required I64;
        /// CPU time in the kernel.
        system_ns: IntColumn = required I64;
        /// Peak of its resident memory.
        max_resident_bytes: IntColumn = required U64;
        voluntary_switches: IntColumn = required U32;
        involuntary_switches: IntColumn = required U32;
        minor_faults: IntColumn = required U32;
        major_faults: IntColumn = required U32;
        fate: WordColumn<ExecutionFate> = required Word;
        /// Null unless it exited.
        exit_code: IntColumn = nullable U16;
        /// Null unless a signal killed it that latlab did not send.
        signal: IntColumn = nullable U16;
    }
}

impl ExecutionBatch {
    pub(crate) fn of(rows: &[Execution]) -> ExecutionBatch {
        let ints = |of: fn(&Execution) -> i64| rows.iter().map(|row| Some(of(row))).collect::<IntColumn>();
        let code_of = |fate: ExecutionFate| {
            rows.iter().map(|row| (row.fate == fate).then_some(row.code.into())).collect::<IntColumn>()
        };
        ExecutionBatch {
            rows: rows.len(),
            seq: ints(|row| row.seq.0 as i64),
            phase: rows.iter().map(|row| row.phase).collect(),
            started_ns: ints(|row| row.started.as_nanos()),
            ended_ns: ints(|row| row.ended.as_nanos()),
            user_ns: ints(|row| row.user.0),
            system_ns: ints(|row| row.system.0),
            max_resident_bytes: ints(|row| i64::from(row.resident_kib) << 10),
            voluntary_switches: ints(|row| row.voluntary_switches.into()),
            involuntary_switches: ints(|row| row.involuntary_switches.into()),
            minor_faults: ints(|row| row.minor_faults.into()),
            major_faults: ints(|row| row.major_faults.into()),
            fate: rows.iter().map(|row| row.fate).collect(),
            exit_code: code_of(ExecutionFate::Exited),
            signal: code_of(ExecutionFate::Killed),
        }
    }
}
