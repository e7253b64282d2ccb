//! Paths past the network stack, within the target `lab`.

use serde_json::Value;

use crate::harness::{Latlab, contains, empty};
use crate::lab::privileged;
use crate::store::{manifest, only_recording};

#[track_caller]
fn measured(line: &str) -> (Value, Value) {
    let ran = Latlab::new().line(line).line("--json").measured();
    (ran.json(), manifest(&only_recording(ran.directory())))
}

#[track_caller]
fn expect_answered(document: &Value, answered: u64) {
    let losses = ["lost", "late", "duplicates", "reordered"].map(|name| document[name].as_u64().expect(name));
    assert_eq!((document["answered"].as_u64(), losses), (Some(answered), [0; 4]), "{document}");
}

#[test]
fn probes_return_whatever_waits_and_whatever_answers() {
    if !privileged() {
        return;
    }
    for options in [
        "",
        "--wait spin",
        "--wait spin --reflect socket",
        "--wait busy-poll",
        "-6 --wait spin",
        "-6 --reflect socket -s 24",
        "-i 1ms -s 1472",
        "-6 -s 1452",
    ] {
        let (document, recorded) = measured(&format!("ping lab --transport xdp -n 200 {options}"));
        expect_answered(&document, 200);
        let used = &recorded["run"]["xdp"];
        assert_eq!((&used["interface"], &used["queue"]), (&"lab0".into(), &0.into()), "{options}: {used}");
        assert_eq!((&used["native"], &used["zero_copy"]), (&true.into(), &false.into()), "{options}: {used}");
    }
    // A UDP socket here, an AF_XDP socket there.
    let (document, recorded) = measured("ping lab --reflect xdp -n 200 --wait spin");
    expect_answered(&document, 200);
    assert_eq!(recorded["run"]["xdp"], Value::Null);
}

/// The program runs in the network stack there, since loopback has no driver.
#[test]
fn loopback_is_measured_too() {
    if !privileged() {
        return;
    }
    let (document, recorded) = measured("ping --transport xdp -n 200");
    expect_answered(&document, 200);
    let used = &recorded["run"]["xdp"];
    assert_eq!((&used["interface"], &used["native"]), (&"lo".into(), &false.into()), "{used}");
    let refused = Latlab::new().line("ping -4 --transport xdp -n 5").stdout(empty());
    refused.stderr(contains("cannot send from `127.0.0.1`")).stderr(contains("hint: `-6`")).failure(2);
}

#[test]
fn streams_arrive_past_the_network_stack() {
    if !privileged() {
        return;
    }
    for options in ["", "--reflect socket", "-6 -s 200"] {
        let (document, _) = measured(&format!("stream lab --transport xdp --rate 5kpps -d 1s {options}"));
        let flow = &document["stream"]["flows"][0];
        assert!(flow["sent"].as_u64().expect("a count") > 4_000, "{options}: {document}");
        assert_eq!(flow["lost"], 0, "{options}: {document}");
    }
}

#[test]
fn packets_past_the_network_stack_are_whole() {
    if !privileged() {
        return;
    }
    for line in ["ping lab --transport xdp -s 1473 -n 5", "stream lab --transport xdp -s 1473 -d 1s"] {
        let ran = Latlab::new().line(line).stdout(empty()).stderr(contains("packets of 1473 bytes"));
        ran.stderr(contains("hint: `--size 1472`")).failure(2);
    }
}
