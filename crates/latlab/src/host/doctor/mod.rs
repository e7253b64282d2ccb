//! What on a host would spoil a measurement, and the command that mends it. Judged on facts alone, so that a
//! far host can be judged by what it told. Each finding and its reason: docs/doctor.md.

mod afar;
mod clock;
mod heat;
mod interface;
mod interrupts;
mod kernel;
mod processor;
mod rights;
mod work;

#[cfg(test)]
mod on_hosts;

pub use afar::from_afar;

use crate::facts::{Activity, Finding, HostFacts};
use crate::plan::{EndSpec, WaitMode};

/// What is to be measured, as far as it decides what spoils it.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The end that runs on the host.
    pub here: &'a EndSpec,
    /// The other end, where it runs on the same host.
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

    /// The CPUs that ends are pinned to, each once.
    fn pins(&self) -> Vec<u16> {
        let mut pins: Vec<u16> = self.ends().filter_map(|end| end.cpu).collect();
        pins.dedup();
        pins
    }
}

/// What was seen of the host.
struct Seen<'a> {
    facts: &'a HostFacts,
    earlier: Option<&'a HostFacts>,
    activity: Option<Activity>,
    intent: Intent<'a>,
}

/// Every code, the one that spoils most first: what stands further up costs more, or costs it more often.
/// Within a severity findings are shown in this order; docs/doctor.md explains them in the same one.
pub const CODES: [&str; 39] = [
    // Nothing is measured, or something else.
    "cpu-absent",
    "no-real-time-right",
    "memory-lock-limit",
    "one-cpu",
    "link-down",
    "kernel-version",
    // Milliseconds.
    "throttled",
    "rt-throttling",
    "fair-server",
    "same-cpu",
    "steal",
    "qdisc",
    "cpu-busy",
    "load-average",
    "memory-short",
    "swap",
    "preemption",
    // Tens to hundreds of microseconds.
    "governor",
    "frequency-drift",
    "idle-states",
    "coalescing",
    "busy-poll-off",
    "timer-slack",
    "sibling-busy",
    "irqs-on-cpu",
    "virtualised",
    // Microseconds and less, or now and then.
    "turbo",
    "ends-on-one-core",
    "sibling-free",
    "cpu-not-isolated",
    "hot",
    "clocksource",
    "offloads",
    "ring-short",
    "socket-buffers",
    // What cannot be measured here at all.
    "clock-unsynchronised",
    "no-nic-stamps",
    "no-lab-right",
    "rights",
];

/// Everything worth saying, the worst first.
///
/// `earlier` are facts of the same host, taken a while (a second, say) before `facts`: without them nothing is
/// said about what it was doing in between.
pub fn findings(facts: &HostFacts, earlier: Option<&HostFacts>, intent: Intent<'_>) -> Vec<Finding> {
    let activity = earlier.and_then(|earlier| facts.activity_since(earlier));
    let seen = Seen { facts, earlier, activity, intent };
    let looks: [fn(&Seen<'_>) -> Vec<Finding>; 8] = [
        rights::look,
        kernel::look,
        clock::look,
        processor::look,
        work::look,
        interrupts::look,
        interface::look,
        heat::look,
    ];
    let mut found: Vec<Finding> = looks.iter().flat_map(|look| look(&seen)).collect();
    let place = |finding: &Finding| CODES.iter().position(|code| *code == finding.code).unwrap_or(CODES.len());
    found.sort_by_key(|finding| (finding.severity, place(finding)));
    found
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::facts::FindingSeverity;
    use crate::host::HostRoot;
    use crate::host::facts::{Interface, read};
    use crate::host::root::tests::FakeHost;

    pub(super) const BLOCKING: EndSpec = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
    pub(super) const SPINNING: EndSpec = EndSpec { wait: WaitMode::Spin, ..BLOCKING };

    /// The findings on `host` for one end.
    pub(super) fn on(host: &FakeHost, end: &EndSpec) -> Vec<Finding> {
        judged(&read(&host.root, Interface::Named("lo")), end)
    }

    /// The findings on `facts` for one end.
    pub(super) fn judged(facts: &HostFacts, end: &EndSpec) -> Vec<Finding> {
        findings(facts, None, Intent { here: end, peer: None })
    }

    pub(super) fn find<'a>(found: &'a [Finding], code: &str) -> Option<&'a Finding> {
        found.iter().find(|finding| finding.code == code)
    }

    #[track_caller]
    pub(super) fn message<'a>(found: &'a [Finding], code: &str) -> &'a str {
        &find(found, code).unwrap_or_else(|| panic!("no `{code}` in {found:#?}")).message
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
            .with("proc/loadavg", "9.00 1.00 1.00 1/100 9")
            .with("sys/devices/system/cpu/online", "0")
            .with("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
        let found = on(&host, &EndSpec { fifo: Some(50), ..SPINNING });
        assert!(found.is_sorted_by_key(|finding| finding.severity));
        let codes: Vec<_> = found.iter().map(|finding| &*finding.code).collect();
        assert_eq!(codes, ["one-cpu", "kernel-version", "rt-throttling", "load-average", "governor"]);
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
        let (root, lo) = (HostRoot::live(), Interface::Named("lo"));
        let earlier = read(&root, lo);
        std::thread::sleep(Duration::from_millis(50));
        let facts = read(&root, lo);
        let found = findings(&facts, Some(&earlier), Intent { here: &BLOCKING, peer: Some(&BLOCKING) });
        assert!(find(&found, "clocksource").is_some() && find(&found, "steal").is_some(), "{found:?}");
        assert_ne!(severity(&found, "kernel-version"), Some(FindingSeverity::Blocker));
    }

    #[test]
    fn every_code_has_its_reason_in_the_document_in_the_same_order() {
        let document = include_str!("../../../../../docs/doctor.md");
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let documented: Vec<_> = rows.map(|(code, _)| code).filter(|code| !code.starts_with("bare-loop")).collect();
        assert_eq!(documented, CODES);
    }
}
