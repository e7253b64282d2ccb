//! What a host refused.

use std::io;

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

use super::knob_refusal::KnobError;

/// Something that this host does not let us do. Nothing has been measured.
#[derive(Debug, Error)]
pub enum HostError {
    /// No such CPU, or it is switched off.
    #[error("cannot run on CPU `{cpu}`")]
    CpuAbsent {
        /// Asked for.
        cpu: u16,
        /// CPUs online, as the kernel lists them.
        online: String,
    },
    /// The kernel refused the pin.
    #[error("cannot run on CPU `{cpu}`")]
    Affinity {
        /// Asked for.
        cpu: u16,
        /// Why.
        source: io::Error,
    },
    /// No real-time priority.
    #[error("cannot run with SCHED_FIFO priority `{priority}`")]
    Fifo {
        /// Asked for.
        priority: u8,
        /// Why.
        source: io::Error,
    },
    /// Memory stays swappable.
    #[error("cannot lock memory")]
    MemoryLock {
        /// RLIMIT_MEMLOCK in bytes; none: no limit.
        limit_bytes: Option<u64>,
        /// Why.
        source: io::Error,
    },
    /// The lab has no IPv6 here.
    #[error("cannot use IPv6 in the target `lab`")]
    LabLacksIpv6,
    /// The lab could not be built.
    #[error("cannot set up the target `lab`: {step}")]
    Lab {
        /// What was being done.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Something could not be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl HostError {
    /// The reason in one line.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            HostError::Knob(error) => return error.cause(),
            HostError::LabLacksIpv6 => "this kernel has IPv6 switched off".into(),
            HostError::CpuAbsent { online, .. } => format!("the CPUs online are {online}"),
            HostError::MemoryLock { limit_bytes: Some(limit), source } => {
                format!("{}; the limit is {} KiB", explain(source), limit / 1024)
            }
            HostError::Affinity { source, .. }
            | HostError::Fifo { source, .. }
            | HostError::MemoryLock { source, .. }
            | HostError::Lab { source, .. } => explain(source),
        })
    }

    /// What to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            HostError::Knob(error) => return error.hint(),
            HostError::LabLacksIpv6 => "leave `-6` out, or start the kernel without `ipv6.disable=1`".into(),
            HostError::CpuAbsent { .. } => "choose one of these, or leave the pin out".into(),
            HostError::Affinity { .. } => {
                "this process may not use that CPU: `grep Cpus_allowed_list /proc/self/status` lists those it may"
                    .into()
            }
            HostError::Fifo { priority, source } => match Errno::from_io_error(source) {
                Some(Errno::INVAL) => "priorities go from 1 to 99".into(),
                _ => format!(
                    "grant the right with `sudo setcap cap_sys_nice+ep $(command -v latlab)`, or raise `ulimit -r` to {priority}"
                ),
            },
            HostError::MemoryLock { .. } => {
                "raise `ulimit -l`, or grant the right with `sudo setcap cap_ipc_lock+ep $(command -v latlab)`".into()
            }
            HostError::Lab { source, .. } => match Errno::from_io_error(source) {
                Some(Errno::PERM | Errno::ACCESS) => {
                    "`lab` needs root: `sudo latlab ping lab`, or measure `local`".into()
                }
                Some(Errno::OPNOTSUPP) => "load the driver of virtual Ethernet pairs: `sudo modprobe veth`".into(),
                Some(Errno::NOSPC) => "`sysctl user.max_net_namespaces` limits how many namespaces there may be".into(),
                _ => return None,
            },
        })
    }

    /// 2: the settings contradict each other. 3: the world refuses.
    pub const fn exit_code(&self) -> u8 {
        match self {
            HostError::Knob(error) => error.exit_code(),
            _ => 3,
        }
    }
}
