//! Probes and their fates.

use serde::{Deserialize, Serialize};

use crate::units::{ReflectorClock, SenderClock, Stamp};

/// The sequence number of a probe in its run, from 0, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

crate::worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase: word {
        /// Probes are sent for caches, routes and frequencies to settle; they are recorded, but in no statistic.
        Warmup = "warmup",
        Measure = "measure",
    }
}

crate::worded! {
    /// The outcome of a probe. Loss and lateness are data, not errors.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Fate: word {
        Answered = "answered",
        /// Answered, but after the time-out.
        Late = "late",
        /// Sent and not answered during the run.
        Lost = "lost",
        /// The kernel refused the datagram with `error`.
        SendFailed = "send_failed",
        /// Due, but skipped because the backlog was beyond its limit.
        NotSent = "not_sent",
    }
}

crate::worded! {
    /// How an execution of a command ended, in the order of their numbers in a spool.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ExecutionFate: word {
        Exited = "exited",
        Killed = "killed",
        /// By latlab, since it took longer than `--timeout`.
        TimedOut = "timed_out",
    }
}

impl ExecutionFate {
    /// The fate of the probe that stands for an execution in statistics; with `ignores_failure` every exit `code` is a success.
    pub const fn as_probe(self, code: u8, ignores_failure: bool) -> Fate {
        match self {
            ExecutionFate::Exited if code == 0 || ignores_failure => Fate::Answered,
            ExecutionFate::Exited | ExecutionFate::Killed => Fate::Lost,
            ExecutionFate::TimedOut => Fate::Late,
        }
    }
}

impl Fate {
    /// Whether the kernel of the sender accepted the probe.
    pub const fn was_sent(self) -> bool {
        matches!(self, Fate::Answered | Fate::Late | Fate::Lost)
    }
}

/// Timestamps of kernels and NICs; `None` if they were not asked for or not delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStamps {
    /// Entering the packet scheduler of the sender.
    pub tx_sched: Option<Stamp<SenderClock>>,
    /// Passed to the driver of the sender.
    pub tx_software: Option<Stamp<SenderClock>>,
    /// Leaving the NIC of the sender.
    pub tx_hardware: Option<Stamp<SenderClock>>,
    /// The answer reaching the kernel of the sender.
    pub rx_software: Option<Stamp<SenderClock>>,
    /// The answer reaching the NIC of the sender.
    pub rx_hardware: Option<Stamp<SenderClock>>,
    /// The probe reaching the kernel of the reflector.
    pub reflector_rx_software: Option<Stamp<ReflectorClock>>,
    /// The answer leaving the kernel of the reflector.
    pub reflector_tx_software: Option<Stamp<ReflectorClock>>,
}

/// One probe: a row of `probes.parquet` (docs/recording.md).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRecord {
    pub seq: Seq,
    pub phase: Phase,
    /// When it was due; `None` in a closed loop.
    pub due: Option<Stamp<SenderClock>>,
    /// Clock reading before the send call.
    pub sent: Option<Stamp<SenderClock>>,
    /// Clock reading after the receive call of the first answer.
    pub received: Option<Stamp<SenderClock>>,
    /// Clock reading after the receive call of the reflector.
    pub reflector_received: Option<Stamp<ReflectorClock>>,
    /// Clock reading before the send call of the reflector.
    pub reflector_sent: Option<Stamp<ReflectorClock>>,
    /// Timestamps of kernels and NICs.
    pub kernel: KernelStamps,
    pub size_bytes: u32,
    /// CPU that sent, if known without a system call.
    pub sent_cpu: Option<u16>,
    pub received_cpu: Option<u16>,
    pub reflector_cpu: Option<u16>,
    pub fate: Fate,
    /// errno of a send call that failed.
    pub error: Option<i32>,
    /// Further answers after the first.
    pub duplicates: u16,
    /// The answer came after an answer to a later probe (RFC 4737, section 3.3).
    pub reordered: bool,
}
