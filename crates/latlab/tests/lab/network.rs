//! What the lab's network looks like from inside, and that the host's stays as it was.

use std::fs;
use std::path::PathBuf;

use latlab::host::EnteredNamespace;
use latlab::host::{HostError, Lab};

use crate::{ip, privileged};

fn namespace() -> PathBuf {
    fs::read_link("/proc/thread-self/ns/net").expect("this thread has a network namespace")
}

#[test]
fn a_thread_enters_and_comes_home() {
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
fn both_ends_know_each_other_for_ever() {
    if !privileged() {
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
    // A fresh virtual Ethernet pair offloads what no device will ever compute.
    assert!(lab.conditions().values().all(|state| state == "on"), "{:?}", lab.conditions());
}

#[test]
fn two_labs_do_not_meet() {
    if !privileged() {
        return;
    }
    let first = Lab::set_up().expect("root may build a lab");
    let second = Lab::set_up().expect("and another");
    let inside = first.enter_sender().expect("the namespace is there");
    let one = namespace();
    drop(inside);
    let inside = second.enter_sender().expect("the namespace is there");
    assert_ne!(one, namespace());
    drop(inside);
}
