//! What this process may do ([capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html)).

use super::facts::value_of;
use super::root::HostRoot;
pub use crate::facts::{Capability, Rights};

impl Rights {
    /// The rights of the calling process on the host under `root`; or why they cannot be told.
    pub fn read(root: &HostRoot) -> Result<Rights, String> {
        let status = root.text("proc/self/status")?;
        let mask = value_of(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let limits = root.text("proc/self/limits")?;
        Ok(Rights {
            capabilities: mask.ok_or("/proc/self/status states no CapEff")?,
            memory_lock_bytes: soft_limit(&limits, "Max locked memory"),
            real_time_priority: soft_limit(&limits, "Max realtime priority"),
        })
    }
}

/// The soft limit of that name; none where it is `unlimited` or absent.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn masks_and_limits_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max locked memory         8388608              unlimited            bytes\n\
                      Max realtime priority     20                   20\n";
        let host = FakeHost::new()
            .with("proc/self/status", "Name:\tx\nCapEff:\t0000000000001000\n")
            .with("proc/self/limits", limits);
        let rights = Rights::read(&host.root).expect("rights");
        assert!(rights.has(Capability::NetAdmin) && !rights.has(Capability::SysNice));
        assert_eq!(rights.memory_lock_bytes, Some(8_388_608));
        assert!(rights.may_run_fifo(20) && !rights.may_run_fifo(21) && !rights.may_lock_all());
        let root = host.with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        let rights = Rights::read(&root.root).expect("rights");
        assert!(rights.may_run_fifo(99) && rights.may_lock_all());
    }
}
