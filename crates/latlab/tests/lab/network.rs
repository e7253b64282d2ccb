//! The network of a lab from inside, and that of the host, which stays unchanged.

use std::fs;
use std::path::PathBuf;

use latlab::host::EnteredNamespace;
use latlab::host::{HostError, Lab};

use crate::{ip, privileged, skip};

fn namespace() -> PathBuf {
    fs::read_link("/proc/thread-self/ns/net").expect("this thread has a network namespace")
}

#[test]
fn a_thread_enters_a_namespace_and_returns() {
    if !privileged() {
        return;
    }
    let home = namespace();
    let lab = Lab::set_up().expect("root may build a lab");
    assert_eq!(namespace(), home);
    let inside = lab.enter_sender().expect("the namespace is there");
    let sender = namespace();
    drop(inside);
    assert_eq!(namespace(), home);
    let inside = lab.enter_reflector().expect("the namespace is there");
    let reflector = namespace();
    drop(inside);
    assert!(sender != home && reflector != home && sender != reflector);
}

#[test]
fn both_ends_have_permanent_neighbour_entries() {
    if !privileged() || !skip::programs(&["ip"]) {
        return;
    }
    let lab = Lab::set_up().expect("root may build a lab");
    for (enter, own, other) in [
        (Lab::enter_sender as fn(&Lab) -> Result<EnteredNamespace, HostError>, lab.sender_ipv4(), lab.reflector_ipv4()),
        (Lab::enter_reflector, lab.reflector_ipv4(), lab.sender_ipv4()),
    ] {
        let inside = enter(&lab).expect("the namespace is there");
        let addresses = ip(&["address", "show", "dev", "lab0"]).expect("the link is there");
        assert!(addresses.contains(&format!("{own}/30")) && !addresses.contains("tentative"), "{addresses}");
        let neighbours = ip(&["neighbour", "show", "dev", "lab0"]).expect("the link is there");
        let entry = neighbours.lines().find(|line| line.starts_with(&other.to_string()));
        assert!(entry.is_some_and(|entry| entry.contains("PERMANENT")), "{neighbours}");
        let loopback = ip(&["link", "show", "dev", "lo"]).expect("there is a loopback");
        assert!(loopback.contains("UP"), "{loopback}");
        drop(inside);
    }
}

#[test]
fn checksum_offload_of_both_ends_is_a_condition() {
    if !privileged() {
        return;
    }
    let lab = Lab::set_up().expect("root may build a lab");
    assert_eq!(
        lab.conditions().keys().collect::<Vec<_>>(),
        ["lab.reflector.offload.tx-checksum", "lab.sender.offload.tx-checksum"]
    );
    // A new virtual Ethernet pair offloads checksums, although no device computes them.
    assert!(lab.conditions().values().all(|state| state == "on"), "{:?}", lab.conditions());
}

#[test]
fn two_labs_have_different_namespaces() {
    if !privileged() {
        return;
    }
    let first = Lab::set_up().expect("root may build a lab");
    let second = Lab::set_up().expect("root may build a second lab");
    let inside = first.enter_sender().expect("the namespace is there");
    let one = namespace();
    drop(inside);
    let inside = second.enter_sender().expect("the namespace is there");
    assert_ne!(one, namespace());
    drop(inside);
}
