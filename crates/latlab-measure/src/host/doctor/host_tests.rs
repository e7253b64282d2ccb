//! Findings on whole hosts, and their order.

use super::findings::tests::{BLOCKING, SPINNING, judged};
use crate::facts::{FindingSeverity, HostFacts};
use crate::host::facts::{Interface, read};
use crate::host::test_hosts::{container, raspberry_pi_4, two_sockets};
use crate::plan::EndSpec;

fn codes(facts: &HostFacts, end: &EndSpec, severity: FindingSeverity) -> Vec<String> {
    let found = judged(facts, end).into_iter().filter(|finding| finding.severity == severity);
    found.map(|finding| finding.code).collect()
}

#[test]
fn on_a_board_throttling_comes_before_the_governor() {
    let facts = read(&raspberry_pi_4().root, Interface::Named("lo"));
    assert_eq!(codes(&facts, &BLOCKING, FindingSeverity::Blocker), [""; 0]);
    assert_eq!(codes(&facts, &BLOCKING, FindingSeverity::Warning), ["throttled", "governor"]);
    assert_eq!(codes(&facts, &BLOCKING, FindingSeverity::Note), ["timer-slack", "socket-buffers"]);
    assert_eq!(codes(&facts, &BLOCKING, FindingSeverity::Fine), ["hot", "clocksource"]);
    let endless = EndSpec { fifo: Some(50), ..SPINNING };
    assert_eq!(codes(&facts, &endless, FindingSeverity::Blocker), ["rt-throttling"]);
}

#[test]
fn a_machine_with_two_sockets_has_findings_on_idle_states_siblings_and_isolation() {
    let facts = read(&two_sockets().root, Interface::Named("lo"));
    let shared = EndSpec { cpu: Some(1), ..BLOCKING };
    assert_eq!(codes(&facts, &shared, FindingSeverity::Warning), ["idle-states"]);
    assert_eq!(codes(&facts, &shared, FindingSeverity::Note), ["turbo", "sibling-free"]);
    let own = EndSpec { cpu: Some(3), fifo: Some(50), ..SPINNING };
    assert_eq!(codes(&facts, &own, FindingSeverity::Warning), ["fair-server"]);
    assert_eq!(codes(&facts, &own, FindingSeverity::Fine), ["throttled", "governor", "cpu-not-isolated"]);
}

#[test]
fn a_container_has_findings_on_its_privileges() {
    let facts = read(&container().root, Interface::Named("lo"));
    let found: Vec<_> = judged(&facts, &BLOCKING).into_iter().map(|finding| finding.code).collect();
    assert_eq!(found, ["no-real-time-right", "memory-lock-limit", "no-lab-right"]);
}
