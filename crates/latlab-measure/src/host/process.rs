//! Identity of processes across reuse of process ids and reboots, and the end of child processes with their parent.

use std::io;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::root::HostRoot;

/// A process, distinct from a later one with the same process id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot
    /// ([proc_pid_stat(5)](https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html)).
    pub(super) started_ticks: u64,
    /// The boot in which it runs or ran.
    pub(super) boot_id: String,
}

impl ProcessIdentity {
    pub(super) fn this_process() -> io::Result<ProcessIdentity> {
        let pid = std::process::id();
        let stat = stat_of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(ProcessIdentity { pid, started_ticks: stat.started_ticks, boot_id: boot_id()? })
    }

    /// Whether it still runs; a zombie does not.
    pub(super) fn is_alive(&self) -> bool {
        let same = stat_of(self.pid).is_some_and(|stat| stat.started_ticks == self.started_ticks && stat.is_alive());
        same && self.is_of_this_boot()
    }

    /// Whether it is the parent of this process, or the parent of one of its ancestors.
    pub(super) fn is_ancestor(&self) -> bool {
        let parent_of = |pid: &u32| stat_of(*pid).map(|stat| stat.parent).filter(|parent| *parent > 0);
        std::iter::successors(Some(std::process::id()), parent_of).skip(1).any(|pid| pid == self.pid)
    }

    /// Whether the host has not been rebooted since.
    pub(super) fn is_of_this_boot(&self) -> bool {
        boot_id().is_ok_and(|now| now == self.boot_id)
    }

    /// A name of the process: its id and its start.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.pid, self.started_ticks)
    }
}

/// The id of this boot; always that of the real host, on which processes run.
pub(super) fn boot_id() -> io::Result<String> {
    HostRoot::live().line("proc/sys/kernel/random/boot_id")
}

struct ProcessStat {
    state: char,
    parent: u32,
    started_ticks: u64,
}

impl ProcessStat {
    const fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

fn stat_of(pid: u32) -> Option<ProcessStat> {
    let text = HostRoot::live().line(&format!("proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; state is field 3, the parent field 4, start field 22.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(ProcessStat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// Lets the kernel kill the calling process when the thread that started it ends. Returns whether `parent`, the process of
/// that thread, still runs: if not, it died before this call and no signal will come.
///
/// The signal follows the end of the *thread*
/// ([PR_SET_PDEATHSIG(2const)](https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html)), which must run as long
/// as the child.
///
/// # Errors
/// The kernel refused the request.
pub fn tie_to_parent(parent: u32) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(as_parent(parent).is_some())
}

/// The process `pid` if it is the parent of this one.
pub fn as_parent(pid: u32) -> Option<Pid> {
    getppid().filter(|parent| u32::try_from(parent.as_raw_nonzero().get()) == Ok(pid))
}

/// Whether a process `pid` runs; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    stat_of(pid).is_some_and(|stat| stat.is_alive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ancestor_is_distinguished_from_other_processes() {
        let me = ProcessIdentity::this_process().expect("proc");
        let parent = std::os::unix::process::parent_id();
        for (pid, above) in [(parent, true), (me.pid, false), (u32::MAX, false)] {
            assert_eq!(ProcessIdentity { pid, ..me.clone() }.is_ancestor(), above, "{pid}");
        }
    }
}
