//! One probe and what became of it.

use serde::{Deserialize, Serialize};

use crate::units::{ReflectorClock, SenderClock, Stamp};

/// The probe's place in its run, from 0, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Whether a probe counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Sent so that caches, routes and frequencies settle; kept, in no statistic.
    Warmup,
    /// Counts.
    Measure,
}

/// What became of a probe. Loss and lateness are data, not errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Answered within the time-out.
    Answered,
    /// Answered, but after the time-out.
    Late,
    /// Sent and never answered while the run lasted.
    Lost,
    /// The kernel refused the datagram; `error` says why.
    SendFailed,
    /// Due, but the backlog was past its limit: never handed to the kernel.
    NotSent,
}

impl Phase {
    /// The word in the recording.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Warmup => "warmup",
            Phase::Measure => "measure",
        }
    }
}

impl Fate {
    /// Every fate, in the order of the documentation.
    pub const ALL: [Fate; 5] = [Fate::Answered, Fate::Late, Fate::Lost, Fate::SendFailed, Fate::NotSent];

    /// The word in the recording.
    pub const fn word(self) -> &'static str {
        match self {
            Fate::Answered => "answered",
            Fate::Late => "late",
            Fate::Lost => "lost",
            Fate::SendFailed => "send_failed",
            Fate::NotSent => "not_sent",
        }
    }

    /// Whether the probe reached the network as far as the sender knows.
    pub const fn was_sent(self) -> bool {
        matches!(self, Fate::Answered | Fate::Late | Fate::Lost)
    }
}

/// Stamps that a kernel or NIC put on a probe, each null where none was asked for or none came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStamps {
    /// Entering the sender's packet scheduler, on the sender's clock.
    pub tx_sched: Option<Stamp<SenderClock>>,
    /// Leaving the sender's kernel for the driver.
    pub tx_software: Option<Stamp<SenderClock>>,
    /// Leaving the sender's NIC.
    pub tx_hardware: Option<Stamp<SenderClock>>,
    /// The answer reaching the sender's kernel.
    pub rx_software: Option<Stamp<SenderClock>>,
    /// The answer reaching the sender's NIC.
    pub rx_hardware: Option<Stamp<SenderClock>>,
    /// The probe reaching the reflector's kernel.
    pub reflector_rx_software: Option<Stamp<ReflectorClock>>,
    /// The answer leaving the reflector's kernel.
    pub reflector_tx_software: Option<Stamp<ReflectorClock>>,
}

/// Everything known about one probe: a row of `probes.parquet` (docs/recording.md).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRecord {
    /// Place in the run.
    pub seq: Seq,
    /// Whether it counts.
    pub phase: Phase,
    /// When the schedule wanted it sent; none in a closed loop.
    pub due: Option<Stamp<SenderClock>>,
    /// Clock read just before the send call.
    pub sent: Option<Stamp<SenderClock>>,
    /// Clock read just after the receive call that brought the first answer.
    pub received: Option<Stamp<SenderClock>>,
    /// Clock read just after the reflector's receive call.
    pub reflector_received: Option<Stamp<ReflectorClock>>,
    /// Clock read just before the reflector's send call.
    pub reflector_sent: Option<Stamp<ReflectorClock>>,
    /// Stamps from below the socket.
    pub kernel: KernelStamps,
    /// Transport payload.
    pub size_bytes: u32,
    /// CPU that sent, where it could be told without a system call.
    pub sent_cpu: Option<u16>,
    /// CPU that received.
    pub received_cpu: Option<u16>,
    /// CPU on which the reflector answered.
    pub reflector_cpu: Option<u16>,
    /// What became of it.
    pub fate: Fate,
    /// errno of the refused send.
    pub error: Option<i32>,
    /// Further answers after the first.
    pub duplicates: u16,
    /// The answer came after an answer to a later probe (RFC 4737, section 3.3).
    pub reordered: bool,
}
