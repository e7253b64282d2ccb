//! Facts, findings and samples of the host: manifests, `latlab doctor`, host samples.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use latlab::facts::HostSample;
use latlab::plan::Side;
use latlab::recording::Recording;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, check_schema, contains, empty, lacks, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::skip::skip;
use crate::store::{manifest, only_recording, recordings};

/// The manifest of a short run.
fn measured(lab: Latlab) -> Value {
    let ran = lab.stderr(warnings_at_most()).success();
    manifest(&only_recording(ran.directory()))
}

#[test]
fn the_manifest_of_a_local_run_has_the_facts_of_the_host_before_and_after() {
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
    // Each datagram over loopback takes one NET_RX softirq; other traffic only adds to the count.
    let handled = sum(after, "NET_RX") - sum(before, "NET_RX");
    assert!(handled >= 200, "{handled} softirqs for 200 round trips");
    let switched = |facts: &Value| facts["counters"]["context_switches"].as_u64().expect("counted");
    assert!(switched(after) > switched(before));
    assert!(after["monotonic_ns"].as_i64() > before["monotonic_ns"].as_i64());
    assert_eq!(&manifest["peer"]["before"], before, "both ends are one host");
}

#[test]
fn a_quota_that_stops_a_run_is_a_caveat() {
    let own = format!("latlab-test-{}", std::process::id());
    let is_unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let (place, file, quota) = match is_unified {
        true => ("/sys/fs/cgroup", "cpu.max", "10000 100000"),
        false => ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "10000"),
    };
    let group = Path::new(place).join(own);
    if fs::create_dir(&group).and_then(|()| fs::write(group.join(file), quota)).is_err() {
        _ = fs::remove_dir(&group);
        return skip("this process may make no control group with a quota");
    }
    let ran = |line: &str| {
        let script = format!("echo $$ >{}/cgroup.procs && exec {BINARY} {line}", group.display());
        Command::new("sh").args(["-c", &script]).output().expect("sh(1) is everywhere")
    };
    let summary = ran("ping -d 1s --warmup 0 --wait spin --no-record --json");
    let findings = ran("doctor");
    wait_until("the group was empty", || fs::remove_dir(&group).is_ok());
    let document: Value = serde_json::from_slice(&summary.stdout).expect("a document");
    let caveats = document["caveats"].as_array().expect("a list");
    let quota = caveats.iter().find(|caveat| caveat["code"] == "cpu-quota").expect("it was stopped");
    assert!(quota["message"].as_str().expect("text").contains("0.1 CPU(s) stopped the control group of latlab"));
    assert!(String::from_utf8_lossy(&findings.stdout).contains("gets the time of 0.1"), "{findings:?}");
}

#[test]
fn the_interface_in_the_facts_of_lab_is_its_veth_device() {
    if !privileged() {
        return;
    }
    let manifest = measured(Latlab::new().line("ping lab -n 30 --warmup 0 --json"));
    let interface = &manifest["here"]["after"]["network"]["interface"];
    assert_eq!((&interface["name"], &interface["kind"]), (&"lab0".into(), &"veth".into()), "{interface:#}");
    assert_eq!((&interface["driver"]["name"], &interface["state"]), (&"veth".into(), &"up".into()));
    assert!(interface["offloads"]["tx-checksum-ip-generic"].is_boolean(), "{interface:#}");
    let peer = &manifest["peer"]["after"];
    assert!(peer["network"]["interface"].is_null(), "the other end of the pair is not examined");
    assert!(peer["unknown"]["network.interface"].is_string());
}

/// A PATH whose first directory has a script `chronyc` with the command `line`.
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
fn queries_of_chronyc_before_and_after_a_run_have_a_time_limit() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let tracking = "C0000201,192.0.2.1,3,1763770000.1,-0.000012,0.00003,0.000084,-7.5,0,0.1,0.008,0.0005,64,Normal";
    let path = with_chronyc(home.path(), &format!("echo \"$1 $2 $3\" >>\"$0.asked\"; echo {tracking}"));
    let printed = measured(Latlab::new().line("ping -n 5 --warmup 0 --json").environment("PATH", &path));
    let keeper = &printed["here"]["before"]["clock"]["keeper"];
    assert_eq!((&keeper["name"], &keeper["reference"]), (&"chrony".into(), &"192.0.2.1".into()), "{keeper:#}");
    assert_eq!(printed["here"]["after"]["clock"]["keeper"], *keeper);
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

fn severities(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["severity"].as_str().expect("a word")).collect()
}

#[test]
fn doctor_exits_with_1_if_it_finds_a_blocker() {
    // Whether this host has a blocker is unknown; the exit code must agree with the findings.
    let running = Latlab::new().line("doctor --json --cpu 0").stderr(empty()).start();
    let ran = running.exits_with_one_of(&[0, 1]);
    let document = ran.json();
    check_schema(&document, "doctor/1");
    assert_eq!(severities(&document).contains(&"blocker"), ran.code == 1, "{document:#}");

    let ran = Latlab::new().line("doctor --json --cpu 1023").stderr(empty()).failure(1);
    let document = ran.json();
    check_schema(&document, "doctor/1");
    assert_eq!(severities(&document)[0], "blocker", "worst first");
    assert!(document["findings"][0]["fix"].is_string(), "{document:#}");
    let text = Latlab::new().line("doctor --cpu 1023").stdout(contains("blocker")).stdout(contains("CPU 1023"));
    text.stdout(lacks("\u{1b}")).stderr(empty()).failure(1);
}

#[test]
fn a_calibration_is_shown_by_later_summaries_with_the_same_pins_and_size() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let state = home.path().join("state");
    let lab = |line: &str| Latlab::at(home.path()).line(line).environment("XDG_STATE_HOME", &state);
    let bare_loop = |line: &str| lab(line).start().exits_with_one_of(&[0, 4]).json()["instrument"]["bare_loop"].clone();
    let ping = "ping -n 5 --warmup 0 --json --cpu 0 --peer-cpu 0";
    assert!(bare_loop(ping).is_null(), "nothing was measured yet");

    let ran = lab("doctor --calibrate --cpu 0 --peer-cpu 0 --json").start().exits_with_one_of(&[0, 1]);
    check_schema(&ran.json(), "doctor/1");
    let findings = ran.json()["findings"].to_string();
    assert!(findings.contains("bare-loop"), "{findings}");
    assert!(state.join("latlab/calibrations.json").exists());

    assert!(bare_loop(ping)["p50_ns"].as_f64() > Some(0.0));
    assert!(bare_loop("ping -n 5 --warmup 0 --json --cpu 0 --peer-cpu 0 -s 65").is_null(), "the size differs");
    assert!(bare_loop("ping -n 5 --warmup 0 --json").is_null(), "the pins differ");
    for other in ["--transport tcp", "-i 1ms", "--load cpu=1%"] {
        assert!(bare_loop(&format!("{ping} {other}")).is_null(), "{other}");
    }
    let text = lab("ping -n 5 --warmup 0 --cpu 0 --peer-cpu 0").success().stdout;
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("bare loop on these pins p50"), "{text}");
}

fn samples(recording: &Recording) -> Vec<HostSample> {
    let samples = recording.host_samples().expect("opens").map(|sample| sample.expect("reads"));
    samples
        .map(|(side, sample)| {
            assert_eq!(side, Side::Local);
            sample
        })
        .collect()
}

#[test]
fn the_first_and_last_host_sample_enclose_the_run() {
    let ran = Latlab::new().line("ping -n 50 -i 1ms --warmup 0 -s 64,128 --json").measured();
    assert_eq!(ran.json()["schema"], "latlab.summaries/1");
    let recordings = recordings(ran.directory());
    assert_eq!(recordings.len(), 2);
    let mut seen = Vec::new();
    for path in recordings {
        let recording = Recording::open(&path).expect("opens");
        let samples = samples(&recording);
        let batch = recording
            .probes(&latlab::recording::ProbeColumn::ALL)
            .expect("opens")
            .next()
            .expect("rows")
            .expect("reads");
        let sent: Vec<i64> = batch.sent_ns.values.clone();
        let (first, last) = (samples.first().expect("before"), samples.last().expect("after"));
        // The last sample is taken after the measuring thread has ended; the first may still be in progress when it begins.
        assert!(samples.len() >= 2 && last.end_ns > *sent.last().expect("probes"), "{samples:?}");
        assert!(first.start_ns < last.start_ns && last.host.own_ns > first.host.own_ns);
        assert!(first.cpus.iter().all(|(_, cpu)| cpu.busy_ns.is_some()));
        seen.push(samples);
    }
    assert_eq!(seen[0], seen[1], "each of several recordings has all samples");
}

#[test]
fn host_samples_survive_sigkill() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("ping --warmup 0 -d 50s").start();
    // A sample has 384 bytes at least: the row of the host and that of one CPU. Three samples.
    wait_until("samples were taken", || {
        let spools = recordings(home.path()).into_iter().map(|recording| recording.join("host.spool"));
        spools.filter_map(|spool| fs::metadata(spool).ok()).any(|spool| spool.len() > 64 + 3 * 384)
    });
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    Latlab::at(home.path()).line("summary").arg(only_recording(home.path())).success();
    let recording = Recording::open(&only_recording(home.path())).expect("opens");
    let samples = samples(&recording);
    assert!(samples.len() >= 2 && samples.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    assert!(!recording.path().join("host.spool").exists() && recording.manifest().host_rows.is_some());
}
