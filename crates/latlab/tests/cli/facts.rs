//! What a run writes down about its host before and after.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Latlab, warnings_at_most};
use crate::lab::privileged;
use crate::store::{manifest, only_recording};

/// The manifest of a short run.
fn measured(lab: Latlab) -> Value {
    let ran = lab.stderr(warnings_at_most()).success();
    manifest(&only_recording(ran.directory()))
}

#[test]
fn both_ends_of_a_local_run_tell_about_the_host_before_and_after() {
    let manifest = measured(Latlab::new().line("ping -n 200 --warmup 0 --json"));
    let (before, after) = (&manifest["here"]["before"], &manifest["here"]["after"]);
    for facts in [before, after] {
        assert!(facts["kernel"].as_str().is_some_and(|kernel| kernel.starts_with("Linux ")), "{facts:#}");
        assert_eq!(facts["network"]["interface"]["name"], "lo");
        assert!(facts["network"]["interface"]["mtu_bytes"].is_u64());
        assert!(facts["clock"]["discipline"]["synchronised"].is_boolean());
        assert!(facts["rights"]["capabilities"].is_u64());
    }
    let sum = |facts: &Value, name: &str| -> u64 {
        let counts = facts["counters"]["softirqs"][name].as_object().expect("counted on every kernel");
        counts.values().filter_map(Value::as_u64).sum()
    };
    // Loopback hands every datagram to itself in this one; others of this machine only add to it.
    let handled = sum(after, "NET_RX") - sum(before, "NET_RX");
    assert!(handled >= 200, "{handled} softirqs for 200 round trips");
    let switched = |facts: &Value| facts["counters"]["context_switches"].as_u64().expect("counted");
    assert!(switched(after) > switched(before));
    assert!(after["monotonic_ns"].as_i64() > before["monotonic_ns"].as_i64());
    assert_eq!(&manifest["peer"]["before"], before, "one host, one truth");
}

#[test]
fn the_interface_of_a_lab_is_its_own_and_not_the_hosts() {
    if !privileged("the facts of `ping lab`") {
        return;
    }
    let manifest = measured(Latlab::new().line("ping lab -n 30 --warmup 0 --json"));
    let interface = &manifest["here"]["after"]["network"]["interface"];
    assert_eq!((&interface["name"], &interface["kind"]), (&"lab0".into(), &"veth".into()), "{interface:#}");
    assert_eq!((&interface["driver"]["name"], &interface["state"]), (&"veth".into(), &"up".into()));
    assert!(interface["offloads"]["tx-checksum-ip-generic"].is_boolean(), "{interface:#}");
    let peer = &manifest["peer"]["after"];
    assert!(peer["network"]["interface"].is_null(), "nobody looked at the other end of the pair");
    assert!(peer["unknown"]["network.interface"].is_string());
}

/// A directory for PATH with a program `chronyc` that is a script of one line.
fn with_chronyc(home: &Path, line: &str) -> std::ffi::OsString {
    let programs = home.join("programs");
    fs::create_dir(&programs).expect("a directory");
    let program = programs.join("chronyc");
    fs::write(&program, format!("#!/bin/sh\n{line}\n")).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([programs].into_iter().chain(env::split_paths(&others))).expect("a path")
}

#[test]
fn chrony_is_asked_before_and_after_and_a_mute_one_holds_nobody_up() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let tracking = "C0000201,192.0.2.1,3,1763770000.1,-0.000012,0.00003,0.000084,-7.5,0,0.1,0.008,0.0005,64,Normal";
    let path = with_chronyc(home.path(), &format!("echo \"$1 $2 $3\" >>\"$0.asked\"; echo {tracking}"));
    let told = measured(Latlab::new().line("ping -n 5 --warmup 0 --json").environment("PATH", &path));
    let keeper = &told["here"]["before"]["clock"]["keeper"];
    assert_eq!((&keeper["name"], &keeper["reference"]), (&"chrony".into(), &"192.0.2.1".into()), "{keeper:#}");
    assert_eq!(told["here"]["after"]["clock"]["keeper"], *keeper);
    let asked = fs::read_to_string(home.path().join("programs/chronyc.asked")).expect("it was asked");
    assert_eq!(asked, "-c -n tracking\n".repeat(2));

    let home = tempfile::tempdir().expect("a temporary directory");
    let path = with_chronyc(home.path(), "exec sleep 1000");
    let mute = measured(Latlab::new().line("ping -n 5 --warmup 0 --json").environment("PATH", &path));
    let after = &mute["here"]["after"];
    assert!(after["clock"]["keeper"].is_null());
    assert_eq!(after["unknown"]["clock.keeper"], "`chronyc` did not answer in time");
    assert!(after["reading_ns"].as_u64().is_some_and(|span_ns| span_ns < 3_000_000_000), "three times the promise");
}
