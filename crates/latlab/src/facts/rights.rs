//! What a process may do ([capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html)).

use serde::{Deserialize, Serialize};

/// A right that a measurement may need, with its bit in the kernel's masks (linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Interfaces, addresses, busy polling.
    NetAdmin = 12,
    /// Memory beyond the limit stays locked.
    IpcLock = 14,
    /// Namespaces.
    SysAdmin = 21,
    /// Real-time priorities, affinity of others.
    SysNice = 23,
}

/// The rights and limits of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// The effective capabilities, a bit each.
    pub capabilities: u64,
    /// RLIMIT_MEMLOCK in bytes; none: no limit.
    pub memory_lock_bytes: Option<u64>,
    /// RLIMIT_RTPRIO: the highest real-time priority to be had without CAP_SYS_NICE; none: no limit.
    pub real_time_priority: Option<u64>,
}

impl Rights {
    /// Whether the process has `capability`.
    pub const fn has(&self, capability: Capability) -> bool {
        self.capabilities >> capability as u32 & 1 == 1
    }

    /// Whether it may run with this SCHED_FIFO priority.
    pub fn may_run_fifo(&self, priority: u8) -> bool {
        self.has(Capability::SysNice) || self.real_time_priority.is_none_or(|limit| u64::from(priority) <= limit)
    }

    /// Whether it may lock as much memory as it likes.
    pub const fn may_lock_all(&self) -> bool {
        self.has(Capability::IpcLock) || self.memory_lock_bytes.is_none()
    }
}
