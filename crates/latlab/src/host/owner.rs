//! Whose a page of the journal is.

use std::io;

use serde::{Deserialize, Serialize};

use super::root::HostRoot;

/// A process, told from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot ([proc_pid_stat(5)](https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html)).
    pub(super) started_ticks: u64,
    /// The boot it lived in.
    pub(super) boot_id: String,
}

impl Owner {
    /// This process.
    pub(super) fn this_process() -> io::Result<Owner> {
        let pid = std::process::id();
        let (_, _, started_ticks) = stat_of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Owner { pid, started_ticks, boot_id: boot_id()? })
    }

    /// Whether it still runs. One that only waits to be reaped does not.
    pub(super) fn is_alive(&self) -> bool {
        let same = stat_of(self.pid)
            .is_some_and(|(state, _, started)| started == self.started_ticks && !matches!(state, 'Z' | 'X'));
        same && self.is_of_this_boot()
    }

    /// Whether it has started this process, or whoever has.
    pub(super) fn is_above_us(&self) -> bool {
        let above = |pid: &u32| stat_of(*pid).map(|(_, parent, _)| parent).filter(|parent| *parent > 0);
        std::iter::successors(Some(std::process::id()), above).skip(1).any(|pid| pid == self.pid)
    }

    /// Whether a reboot has undone all that it did.
    pub(super) fn is_of_this_boot(&self) -> bool {
        boot_id().is_ok_and(|now| now == self.boot_id)
    }

    /// What its page of the journal is called.
    pub(super) fn page_name(&self) -> String {
        format!("{}-{}", self.pid, self.started_ticks)
    }
}

/// This boot. Never that of a tests' host: processes live on the real one.
pub(super) fn boot_id() -> io::Result<String> {
    HostRoot::live().line("proc/sys/kernel/random/boot_id")
}

/// State, parent and start of a process.
fn stat_of(pid: u32) -> Option<(char, u32, u64)> {
    let text = HostRoot::live().line(&format!("proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; state is field 3, the parent field 4, start field 22.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.first()?.chars().next()?, fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_started_this_process_is_told_from_others() {
        let me = Owner::this_process().expect("Linux tells");
        let parent = std::os::unix::process::parent_id();
        for (pid, above) in [(parent, true), (me.pid, false), (u32::MAX, false)] {
            assert_eq!(Owner { pid, ..me.clone() }.is_above_us(), above, "{pid}");
        }
    }
}
