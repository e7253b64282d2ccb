//! What on this host would spoil a measurement, and the command that mends it.

mod clock;
mod kernel;
mod processor;
mod rights;

use super::activity::Activity;
use super::root::HostRoot;
use crate::facts::{Finding, HostFacts};
use crate::plan::{EndSpec, WaitMode};

/// What is to be measured, as far as it decides what spoils it.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// This end.
    pub here: &'a EndSpec,
    /// The other end, where it runs on this host.
    pub peer: Option<&'a EndSpec>,
}

impl Intent<'_> {
    fn ends(&self) -> impl Iterator<Item = &EndSpec> {
        [Some(self.here), self.peer].into_iter().flatten()
    }

    fn any(&self, asks: impl Fn(&EndSpec) -> bool) -> bool {
        self.ends().any(asks)
    }

    fn waits(&self, wait: WaitMode) -> bool {
        self.any(|end| end.wait == wait)
    }
}

/// What was seen of the host.
struct Seen<'a> {
    root: &'a HostRoot,
    facts: &'a HostFacts,
    activity: Option<&'a Activity>,
    intent: Intent<'a>,
}

/// Everything worth saying, the worst first.
///
/// `facts` are those of the host under `root`, `activity` what its CPUs did for a while just now; without
/// it nothing is said about busy CPUs and stolen time.
pub fn findings(root: &HostRoot, facts: &HostFacts, activity: Option<&Activity>, intent: Intent<'_>) -> Vec<Finding> {
    let seen = Seen { root, facts, activity, intent };
    let looks: [fn(&Seen<'_>) -> Vec<Finding>; 4] = [rights::look, kernel::look, clock::look, processor::look];
    let mut found: Vec<Finding> = looks.iter().flat_map(|look| look(&seen)).collect();
    // A stable sort: findings of one severity keep the order of the looks.
    found.sort_by_key(|finding| finding.severity);
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::facts::FindingSeverity;
    use crate::host::root::tests::FakeHost;

    pub(super) const BLOCKING: EndSpec = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
    pub(super) const SPINNING: EndSpec = EndSpec { wait: WaitMode::Spin, ..BLOCKING };

    /// The findings on `host` for one end.
    pub(super) fn on(host: &FakeHost, end: &EndSpec) -> Vec<Finding> {
        findings(&host.root, &crate::host::facts::read(&host.root), None, Intent { here: end, peer: None })
    }

    pub(super) fn find<'a>(found: &'a [Finding], code: &str) -> Option<&'a Finding> {
        found.iter().find(|finding| finding.code == code)
    }

    pub(super) fn severity(found: &[Finding], code: &str) -> Option<FindingSeverity> {
        find(found, code).map(|finding| finding.severity)
    }

    #[test]
    fn the_worst_comes_first_and_every_fault_has_a_remedy() {
        let host = FakeHost::new()
            .with("proc/sys/kernel/ostype", "Linux")
            .with("proc/sys/kernel/osrelease", "4.19.0")
            .with("proc/sys/kernel/sched_rt_runtime_us", "950000")
            .with("proc/sys/kernel/sched_rt_period_us", "1000000")
            .with("sys/devices/system/cpu/online", "0")
            .with("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
        let found = on(&host, &EndSpec { fifo: Some(50), ..SPINNING });
        assert!(found.is_sorted_by_key(|finding| finding.severity));
        assert_eq!(found[0].severity, FindingSeverity::Blocker);
        for finding in found.iter().filter(|finding| finding.severity <= FindingSeverity::Warning) {
            assert!(finding.fix.is_some(), "{finding:?}");
        }
    }

    #[test]
    fn a_host_that_tells_nothing_is_not_accused() {
        assert_eq!(on(&FakeHost::new(), &BLOCKING), []);
    }

    #[test]
    fn this_host_can_be_looked_at() {
        let root = HostRoot::live();
        let facts = crate::host::facts::read(&root);
        let activity = Activity::watch(&root, std::time::Duration::from_millis(50)).expect("/proc/stat is there");
        let found = findings(&root, &facts, Some(&activity), Intent { here: &BLOCKING, peer: Some(&BLOCKING) });
        assert!(find(&found, "clocksource").is_some(), "{found:?}");
        assert_ne!(severity(&found, "kernel-version"), Some(FindingSeverity::Blocker));
    }
}
