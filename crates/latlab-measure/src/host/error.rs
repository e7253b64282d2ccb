//! Errors of host operations. After such an error no run is measured, and changed settings are restored or stay in the
//! journal.

use std::io;
use std::path::PathBuf;

use latlab_sys::errno;
use rustix::io::Errno;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::facts::Capability;
use crate::platform::grant;
use crate::platform::ownership::untrusted;

/// An operation that the host refused.
#[derive(Debug, Error)]
pub enum HostError {
    /// The CPU does not exist or is offline.
    #[error("cannot run on CPU `{cpu}`")]
    CpuAbsent {
        cpu: u16,
        /// CPUs online, as the kernel lists them.
        online: String,
    },
    /// The kernel refused the affinity.
    #[error("cannot run on CPU `{cpu}`")]
    Affinity {
        cpu: u16,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel refused the real-time priority.
    #[error("cannot run with SCHED_FIFO priority `{priority}`")]
    Fifo {
        priority: u8,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel refused to lock memory.
    #[error("cannot lock memory")]
    MemoryLock {
        /// RLIMIT_MEMLOCK in bytes; `None` without a limit.
        limit_bytes: Option<u64>,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel has no IPv6 for the lab.
    #[error("cannot use IPv6 in the target `lab`")]
    LabLacksIpv6,
    /// The namespaces of the lab, or the pair between them, could not be set up.
    #[error("cannot set up the target `lab`: {step}")]
    Lab {
        step: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// A knob could not be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl Explain for HostError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            HostError::Knob(error) => error.explain(),
            HostError::LabLacksIpv6 => failure
                .because("this kernel has IPv6 switched off")
                .hint("leave `-6` out, or start the kernel without `ipv6.disable=1`"),
            HostError::CpuAbsent { online, .. } => failure
                .because(format!("the CPUs online are {online}"))
                .hint("choose one of these, or leave the pin out"),
            HostError::Affinity { source, .. } => failure.because(errno::explain(source)).hint(
                "this process may not use that CPU: `grep Cpus_allowed_list /proc/self/status` lists those it may",
            ),
            HostError::Fifo { priority, source } => {
                failure.because(errno::explain(source)).hint(match Errno::from_io_error(source) {
                    Some(Errno::INVAL) => "priorities go from 1 to 99".into(),
                    _ => format!(
                        "grant the right with `{}`, or raise `ulimit -r` to {priority}",
                        grant(&[Capability::SysNice])
                    ),
                })
            }
            HostError::MemoryLock { limit_bytes, source } => {
                let limit = limit_bytes.map(|limit| format!("; the limit is {} KiB", limit / 1024));
                failure
                    .because(errno::explain(source) + &limit.unwrap_or_default())
                    .hint(format!("raise `ulimit -l`, or grant the right with `{}`", grant(&[Capability::IpcLock])))
            }
            HostError::Lab { source, .. } => {
                let failure = failure.because(errno::explain(source));
                match Errno::from_io_error(source) {
                    Some(Errno::PERM | Errno::ACCESS) => {
                        failure.hint("`lab` needs root: `sudo latlab ping lab`, or measure `local`")
                    }
                    Some(Errno::OPNOTSUPP) => {
                        failure.hint("load the driver of virtual Ethernet pairs: `sudo modprobe veth`")
                    }
                    Some(Errno::NOSPC) => {
                        failure.hint("`sysctl user.max_net_namespaces` limits how many namespaces there may be")
                    }
                    _ => failure,
                }
            }
        }
    }
}

/// A knob that is not set as requested.
#[derive(Debug, Error)]
pub enum KnobError {
    /// The host does not have the knob, or not this value. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Absent {
        setting: String,
        /// The knob or value that the host lacks, or why it cannot be set.
        cause: String,
        /// The remedy, such as the values that the host has.
        hint: String,
    },
    /// Two settings of one run set the knob. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Twice {
        setting: String,
        /// The file, or the interface and its property.
        place: String,
        /// The earlier setting, as typed.
        before: String,
    },
    /// Another latlab has set the knob. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Taken {
        setting: String,
        /// The file, or the interface and its property.
        place: String,
        /// The process that set it.
        pid: u32,
        /// Whether that process is an ancestor of this one: both ends of a measurement are on one host.
        of_the_same_run: bool,
    },
    /// A latlab that died has left the knob changed. Nothing was changed.
    #[error("cannot set `{setting}`")]
    Left {
        setting: String,
        /// The file, or the interface and its property.
        place: String,
        /// The process that set it.
        pid: u32,
        page: PathBuf,
    },
    /// The journal cannot be written. Nothing was changed.
    #[error("cannot journal what `--set` changes in `{path}`")]
    Journal {
        /// The directory of the journal.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// The host refused to read or to write the value.
    #[error("cannot set `{setting}` at `{place}`")]
    Refused {
        setting: String,
        /// The file, or the interface and its property.
        place: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The value that was read back differs from the one written.
    #[error("`{setting}` has no effect at `{place}`")]
    Differs {
        setting: String,
        /// The file, or the interface and its property.
        place: String,
        wanted: String,
        found: String,
    },
}

impl Explain for KnobError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            KnobError::Absent { cause, hint, .. } => failure.because(cause).hint(hint),
            KnobError::Twice { setting, place, before } => Failure::request(self)
                .because(if setting == before { format!("it sets `{place}` more than once") } else { format!("`{before}` sets `{place}` already") })
                .hint("give each knob once"),
            KnobError::Taken { place, pid, of_the_same_run: true, .. } => failure
                .because(format!(
                    "both ends are on one host, and the latlab that measures, process id {pid}, has set `{place}` already"
                ))
                .hint("set it for one end: leave `@both` out, and it holds for the whole host"),
            KnobError::Taken { place, pid, .. } => failure
                .because(format!("the latlab with process id {pid} holds `{place}`"))
                .hint("wait for its end: each would restore what the other has set"),
            KnobError::Left { place, pid, page, .. } => failure
                .because(format!(
                    "a killed latlab (process id {pid}) had set `{place}`, which is not restored yet"
                ))
                .hint(format!(
                    "`latlab doctor --restore` restores it, or says why not; the old value is in `{}`",
                    page.display()
                )),
            KnobError::Journal { source, .. } => match untrusted(source) {
                Some(found) => failure.because(found.cause()).hint(found.remedy()),
                None => failure
                    .because(errno::explain(source))
                    .hint("nothing was changed; `LATLAB_STATE_DIR` names another directory for the journal"),
            },
            KnobError::Refused { source, .. } => {
                failure.because(errno::explain(source)).hint(match Errno::from_io_error(source) {
                    Some(Errno::PERM | Errno::ACCESS) => {
                        "settings of the host need root: `sudo latlab …`, or leave this setting out"
                    }
                    Some(Errno::INVAL) => "this host does not accept that value; change it, or leave this setting out",
                    _ => "leave this setting out, or find the process that keeps the value",
                })
            }
            KnobError::Differs { wanted, found, .. } => failure
                .because(format!("it reads `{found}` after `{wanted}` was written"))
                .hint("the driver or another process set another value; leave this setting out"),
        }
    }
}
