//! One execution of a command, as the kernel accounts for it (wait4(2)), and the numbers that it printed.

use crate::probe::{ExecutionFate, Phase, Seq};
use crate::units::{Nanos, SenderClock, Stamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    pub seq: Seq,
    pub phase: Phase,
    /// The clock just before the spawn.
    pub started: Stamp<SenderClock>,
    /// The clock just after the wait.
    pub ended: Stamp<SenderClock>,
    /// CPU time outside of the kernel, in steps of a microsecond.
    pub user: Nanos,
    /// CPU time in the kernel, in steps of a microsecond.
    pub system: Nanos,
    /// Peak of the resident memory in KiB, up to 4 TiB.
    pub resident_kib: u32,
    pub voluntary_switches: u32,
    pub involuntary_switches: u32,
    /// Page faults without input or output.
    pub minor_faults: u32,
    pub major_faults: u32,
    pub fate: ExecutionFate,
    /// The exit code, or the signal that killed it; 0 after a time-out.
    pub code: u8,
}

/// A number that an execution printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedNumber {
    /// That of the execution which printed it.
    pub seq: Seq,
    /// The place of its metric among those of the command.
    pub metric: u16,
    /// The number as the bits of a double.
    pub bits: u64,
}
