//! All findings on a host, sorted by severity.

use super::evidence::{HostEvidence, Intent};
use super::{interface, kernel, processor, work};
use crate::facts::{Finding, HostFacts};

/// All codes, by decreasing cost. Findings of one severity are shown in this order, and docs/doctor.md has the same.
pub(crate) const CODES: [&str; 42] = [
    // No measurement is possible, or not the intended one.
    "cpu-absent",
    "no-real-time-right",
    "memory-lock-limit",
    "one-cpu",
    "link-down",
    "kernel-version",
    // Milliseconds.
    "throttled",
    "cpu-quota",
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
    "xdp",
    "xdp-program",
    // What cannot be measured here at all.
    "clock-unsynchronised",
    "no-nic-stamps",
    "no-lab-right",
    "rights",
];

/// The findings, the most severe first.
///
/// `earlier` are facts of the same host, read about a second before `facts`; without them there are no findings on its
/// activity.
pub fn findings(facts: &HostFacts, earlier: Option<&HostFacts>, intent: Intent<'_>) -> Vec<Finding> {
    let activity = earlier.and_then(|earlier| facts.activity_since(earlier));
    let evidence = HostEvidence { facts, earlier, activity, intent };
    let checks = [kernel::check, processor::check, work::check, interface::check];
    let mut found: Vec<Finding> = checks.iter().flat_map(|check| check(&evidence)).collect();
    let rank = |finding: &Finding| CODES.iter().position(|code| *code == finding.code).unwrap_or(CODES.len());
    found.sort_by_key(|finding| (finding.severity, rank(finding)));
    found
}

#[cfg(test)]
pub(super) mod tests {

    use super::*;
    use crate::facts::FindingSeverity;
    use crate::host::facts::{Interface, read};
    use crate::host::root::tests::FakeHost;
    use crate::plan::{EndSpec, Kind, Remedy, WaitMode};

    pub(in crate::host::doctor) const BLOCKING: EndSpec =
        EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };
    pub(in crate::host::doctor) const SPINNING: EndSpec = EndSpec { wait: WaitMode::Spin, ..BLOCKING };

    /// The findings on `host` for one end.
    pub(in crate::host::doctor) fn on(host: &FakeHost, end: &EndSpec) -> Vec<Finding> {
        judged(&read(&host.root, Interface::Named("lo")), end)
    }

    /// The findings on `facts` for one end.
    pub(in crate::host::doctor) fn judged(facts: &HostFacts, end: &EndSpec) -> Vec<Finding> {
        findings(facts, None, Intent { here: end, peer: None })
    }

    pub(in crate::host::doctor) fn find<'a>(found: &'a [Finding], code: &str) -> Option<&'a Finding> {
        found.iter().find(|finding| finding.code == code)
    }

    #[track_caller]
    pub(in crate::host::doctor) fn message<'a>(found: &'a [Finding], code: &str) -> &'a str {
        &find(found, code).unwrap_or_else(|| panic!("no `{code}` in {found:#?}")).message
    }

    pub(in crate::host::doctor) fn severity(found: &[Finding], code: &str) -> Option<FindingSeverity> {
        find(found, code).map(|finding| finding.severity)
    }

    #[test]
    fn findings_are_sorted_by_severity_and_faults_have_a_fix() {
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
    fn every_code_is_documented_in_the_same_order() {
        let document = include_str!("../../../../../docs/doctor.md");
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let documented: Vec<_> = rows.map(|(code, _)| code).filter(|code| !code.starts_with("bare-loop")).collect();
        assert_eq!(documented, CODES);
    }

    #[test]
    fn remedies_correct_findings_that_exist() {
        for remedy in Remedy::of(Kind::Ping) {
            let known = |code: &&str| CODES.contains(code);
            assert!(!remedy.findings().is_empty() && remedy.findings().iter().all(known), "{remedy:?}");
        }
    }
}
