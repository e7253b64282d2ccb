//! Runs whose probes do not even get as far as the path: refused by the sender's kernel, or thrown away at the
//! reflector's socket.

use rustix::process::Signal;
use serde_json::Value;

use crate::documents::check;
use crate::harness::{Latlab, contains, wait_until};
use crate::lab::privileged;
use crate::serve::serve;
use crate::store::{manifest, only_recording, spool_bytes};

/// The caveat `code` of the summary in `document` whose message holds `text`.
#[track_caller]
fn caveat<'a>(document: &'a Value, code: &str, text: &str) -> &'a Value {
    let caveats = document["caveats"].as_array().expect("a list");
    let found = caveats.iter().find(|caveat| {
        caveat["code"] == code && caveat["message"].as_str().is_some_and(|message| message.contains(text))
    });
    found.unwrap_or_else(|| panic!("no `{code}` with `{text}` in {caveats:#?}"))
}

#[test]
fn what_the_reflectors_socket_throws_away_is_told_at_both_ends() {
    const EVENT_BYTES: u64 = 64;
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), "");
    // Of 60,000 bytes a receive buffer holds 125 at most (8 MiB, as root), and three or so without rights.
    let line = "-s 60000 -i 1ms -n 1500 --warmup 0 --timeout 10s --json";
    let running = Latlab::at(home.path()).args(["ping", &address]).line(line).start();
    wait_until("probes were on their way", || spool_bytes(home.path()) > 100 * EVENT_BYTES);
    reflector.signal(Signal::STOP);
    let before = spool_bytes(home.path());
    wait_until("more probes left than a socket holds", || spool_bytes(home.path()) > before + 400 * EVENT_BYTES);
    reflector.signal(Signal::CONT);
    let ran = running.exits(4);
    let summary = ran.json();
    check(&summary, "summary/1");

    let run = &manifest(&only_recording(home.path()))["run"];
    let drops = run["reflector"]["socket_drops"].as_u64().expect("Linux tells");
    let lost = summary["lost"].as_u64().expect("a number");
    assert!(drops >= 200, "400 left while it stood still, and {drops} were dropped");
    assert_eq!(lost, drops + run["socket_drops"].as_u64().expect("Linux tells"), "nothing else is lost on loopback");
    let told = caveat(&summary, "socket-drops", "the reflector's own socket threw");
    assert_eq!(told["severity"], "fatal", "{told}");
    let hint = caveat(&summary, "lost", "were lost")["hint"].as_str().expect("a text");
    assert!(hint.starts_with(&format!("the reflector's socket threw {drops} datagrams away")), "{hint}");

    reflector.signal(Signal::INT);
    let told = reflector.exits(0).stderr;
    assert!(told.contains(&format!("socket-drops {drops}")), "R8: the owner of the reflector reads it too: {told}");
}

#[test]
fn a_run_that_the_kernel_refuses_whole_says_so_everywhere() {
    if !privileged("a refused run") {
        return;
    }
    // The pair of `lab` carries 1,500 bytes; the session opens with less.
    let line = "ping lab -s 2000 --df -n 20 --warmup 5";
    let lab = Latlab::new().line(line).stdout(contains("send failed 20")).stdout(contains("\npauses "));
    let lab = lab.stderr(contains("error: no probe was answered by `lab`\n"));
    let lab = lab.stderr(contains("\n  cause: the kernel refused to send all 20 of them\n"));
    lab.stderr(contains("\n  hint: the warning `send-failed` names the kernel's reason; check route,")).failure(3);

    let ran = Latlab::new().line(line).arg("--json").failure(3);
    let summary = ran.json();
    check(&summary, "summary/1");
    let counts = ["sent", "send_failed", "lost", "timed_out_ns"].map(|key| summary[key].as_u64().expect(key));
    assert_eq!(counts, [0, 20, 0, 0]);
    let paused = summary["refused_pause_ns"].as_u64().expect("a number");
    assert!(paused >= 20_000_000, "1 ms after each of 20, and none of the warm-up's: {paused} ns");
    assert_eq!(manifest(&only_recording(ran.directory()))["run"]["refused_pause_ns"], paused);
    let failed = caveat(&summary, "send-failed", "the kernel refused 20 of 20 probes, mostly with: ");
    assert!(failed["message"].as_str().is_some_and(|told| told.contains("EMSGSIZE") && told.contains("; pausing")));
    assert_eq!(caveat(&summary, "none-answered", "none of 20")["hint"], "see why none of them was sent");
    assert!(ran.stderr.contains("mostly with: "), "warnings are also for people: {}", ran.stderr);
}

#[test]
fn a_schedule_that_the_kernel_refuses_pauses_for_nothing() {
    if !privileged("a refused schedule") {
        return;
    }
    let ran = Latlab::new().line("ping lab -s 2000 --df -n 20 -i 1ms --warmup 0 --json").failure(3);
    let summary = ran.json();
    assert_eq!((&summary["send_failed"], &summary["refused_pause_ns"]), (&20.into(), &0.into()));
    let effect = &caveat(&summary, "send-failed", "the kernel refused 20 of 20")["effect"];
    assert_eq!(effect, "they are in no round trip; response time counts them as infinite");
}
