//! Targets with an agent: `ssh:` through OpenSSH, `cmd:` on this host and in another network namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use latlab::host;
use rustix::process::Signal;

use crate::escapes::altered_agent;
use crate::far_end::{NamespacedAgent, SshRun, Sshd, local_agent, over_ssh, with_latlab};
use crate::harness::{BINARY, Latlab, check_schema, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::processes::{below, is_alive, signal};
use crate::store::{manifest, only_recording, recordings};

#[test]
fn ssh_measures_to_the_address_that_ssh_reached() {
    let Some(sshd) = Sshd::start(&with_latlab()) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let ran = over_ssh(&sshd, home.path(), "ssh:far")
        .line("-n 50 --warmup 5 --timeout 20s --json")
        .stderr(warnings_at_most())
        .success();
    check_schema(&ran.json(), "summary/1");
    assert_eq!((&ran.json()["answered"], &ran.json()["condition"]["target"]), (&50.into(), &"ssh:far".into()));
    let manifest = manifest(&only_recording(home.path()));
    let address = manifest["run"]["peer_address"].as_str().expect("there was a peer");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(
        (&manifest["spec"]["authenticated"], &manifest["spec"]["target"]["host"]),
        (&true.into(), &"far".into())
    );
    far_host_is_this_one(&manifest);
    assert_eq!(below(sshd.pid(), &["agent"]), None, "the agent ends before latlab");
}

/// Expects that the facts and the clock of the far host are those of this host, which it is.
fn far_host_is_this_one(manifest: &serde_json::Value) {
    for when in ["before", "after"] {
        let (here, there) = (&manifest["here"][when], &manifest["peer"][when]);
        for key in ["boot_id", "kernel", "cpus_online", "memory_bytes"] {
            assert!(here[key] == there[key] && !there[key].is_null(), "{when} {key}: {here} {there}");
        }
    }
    let clock = |end: &str, when: &str| manifest[end][when]["monotonic_ns"].as_i64().expect("a clock");
    assert!(clock("peer", "clock_start") < clock("peer", "clock_end"));
    for exchange in ["before", "after"] {
        let exchange = &manifest["clock_relation"][exchange];
        let number = |key: &str| exchange[key].as_i64().expect(key);
        let apart = number("near_ns") - number("far_ns");
        assert!(apart.abs() <= number("bound_ns") && number("bound_ns") < 1_000_000_000, "{exchange}");
    }
}

#[test]
fn samples_of_the_far_host_are_on_the_clock_of_the_probes() {
    let lab = Latlab::new().args(["ping", &local_agent(), "--peer-addr", "127.0.0.1"]);
    let ran = lab.line("-d 1200ms -i 5ms -s 64,128 --warmup 0 --timeout 100ms").measured();
    for path in recordings(ran.directory()) {
        let recording = latlab::recording::Recording::open(&path).expect("opens");
        let samples: Vec<_> = recording.host_samples().expect("opens").map(|sample| sample.expect("reads")).collect();
        let of = |wanted: latlab::plan::Side| {
            let of_side = samples.iter().filter(move |(side, _)| *side == wanted);
            of_side.map(|(_, sample)| sample.clone()).collect::<Vec<_>>()
        };
        let (near, far) = (of(latlab::plan::Side::Local), of(latlab::plan::Side::Peer));
        assert!(near.len() >= 2 && far.len() >= 2, "{} {}", near.len(), far.len());
        assert!(far.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].end_ns <= pair[1].start_ns));
        assert!(far.iter().all(|sample| sample.cpus.len() == near[0].cpus.len() && sample.host.own_ns > Some(0)));
        // Samples of the far host enclose those of this host, within the error of the clock relation.
        let bound_ns = recording.manifest().clock_relation.expect("agents report their clock").bound_ns();
        assert!(far[0].start_ns - bound_ns <= near[0].start_ns + 100_000_000, "{far:?}");
        assert!(far.last().expect("two").end_ns + bound_ns >= near.last().expect("two").start_ns);
    }
}

#[test]
fn doctor_examines_the_host_of_an_agent() {
    let ran =
        Latlab::new().args(["doctor", &local_agent(), "--json"]).stderr(empty()).start().exits_with_one_of(&[0, 1]);
    check_schema(&ran.json(), "doctor/1");
    let findings = ran.json()["findings"].as_array().expect("a list").clone();
    let names_it =
        |finding: &serde_json::Value| finding["message"].as_str().is_some_and(|it| it.contains("agent --stdio`: "));
    assert!(!findings.is_empty() && findings.iter().all(names_it), "{findings:?}");
    assert_eq!(ran.code == 1, findings[0]["severity"] == "blocker");
    let fixes = findings.iter().filter_map(|finding| finding["fix"].as_str());
    assert!(fixes.clone().all(|fix| fix.contains("far host: ") || fix.contains("cmd:…")), "{findings:?}");
    let blocked = Latlab::new().args(["doctor", &local_agent(), "--peer-cpu", "1023"]).stdout(contains("CPU 1023"));
    blocked.stdout(contains("blocker")).stderr(empty()).failure(1);
    let gone = Latlab::new().args(["doctor", "cmd:sh -c 'exit 5'"]).stdout(empty());
    gone.stderr(contains("no agent answers on")).failure(3);
    let Some(sshd) = Sshd::start(&with_latlab()) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let lab = Latlab::at(home.path()).environment("PATH", sshd.path()).args(["doctor", "ssh:far"]);
    let ran = lab.stdout(contains("`ssh:far`: ")).stderr(empty()).start();
    ran.exits_with_one_of(&[0, 1]);
}

#[test]
fn errors_of_ssh_are_reported_in_its_own_words() {
    let Some(sshd) = Sshd::start("/usr/bin:/bin") else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    for (target, message, cause, hint) in [
        ("ssh:stranger", "cannot reach `ssh:stranger` with ssh", "Permission denied", "BatchMode=yes stranger true"),
        ("ssh:far", "cannot find latlab on `ssh:far`", "not found", "cmd:ssh far /path/to/latlab agent --stdio"),
    ] {
        let lab = over_ssh(&sshd, home.path(), target).line("-n 5").stdout(empty()).stderr(contains(message));
        let ran = lab.stderr(contains(cause)).stderr(contains(hint)).failure(3);
        assert!(recordings(ran.directory()).is_empty());
    }
}

#[test]
fn sigkill_of_latlab_leaves_no_process_on_the_far_host() {
    let Some(run) = SshRun::start("-d 50s --warmup 0 -i 1ms") else { return };
    let SshRun { sshd, home, running, ssh, agent, reflector, .. } = run;
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    for (name, pid) in [("ssh", ssh), ("the agent", agent), ("the reflector", reflector)] {
        wait_until(&format!("{name} had ended"), || !is_alive(pid));
    }
    drop(sshd);
    Latlab::at(home.path()).arg("summary").arg(only_recording(home.path())).stdout(contains("ping ssh:far")).measured();
}

#[test]
fn the_death_of_the_agent_leaves_a_partial_recording() {
    let Some(run) = SshRun::start("-d 50s --warmup 0 -i 1ms") else { return };
    signal(run.agent, Signal::KILL);
    run.wait_for_far_end();
    let ran = run.running.exits(3);
    assert!(ran.stderr.contains("lost the agent of `ssh:far`"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`ssh far latlab doctor --restore`"),
        "a killed agent restores nothing: {}",
        ran.stderr
    );
    let recording = only_recording(run.home.path());
    assert_eq!(manifest(&recording)["ending"], "failed", "{}", manifest(&recording));
    let shown = Latlab::at(run.home.path()).arg("summary").arg(recording).stdout(contains("ping ssh:far"));
    // The probes that followed may be most of them.
    shown.start().exits_with_one_of(&[0, 4]);
}

#[test]
fn an_agent_can_be_started_by_any_command() {
    let noisy = format!("cmd:sh -c 'echo welcome; echo mind the gap >&2; exec {BINARY} agent --stdio'");
    for target in [local_agent(), noisy] {
        for address in ["127.0.0.1", "::1"] {
            let lab = Latlab::new()
                .args(["ping", &target, "--peer-addr", address])
                .line("-n 20 --warmup 2 --timeout 20s --json");
            let ran = lab.stderr(warnings_at_most()).success();
            assert_eq!(ran.json()["answered"], 20);
            let manifest = manifest(&only_recording(ran.directory()));
            assert_eq!(manifest["spec"]["work"]["path"]["peer_address"], address);
        }
    }
    // A closed loop has no planned duration; several sizes share one agent.
    let lab =
        Latlab::new().args(["ping", &local_agent(), "--peer-addr", "127.0.0.1"]).line("-n 20 -s 64,128 --warmup 0");
    lab.stdout(contains("128 B")).success();
}

/// The messages in `sent`, the bytes to an agent.
fn messages(mut sent: &[u8]) -> Vec<String> {
    sent = sent.strip_prefix(b"\0llagent\0\x01\0\0").expect("a preamble");
    let mut messages = Vec::new();
    while let Some((length, rest)) = sent.split_first_chunk::<4>() {
        let (payload, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        messages.push(String::from_utf8(payload.to_vec()).expect("JSON"));
        sent = rest;
    }
    assert!(sent.is_empty());
    messages
}

#[test]
fn no_message_is_sent_to_the_agent_while_a_run_is_armed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let target = format!("cmd:sh -c 'tee sent | {BINARY} agent --stdio'");
    // Four heartbeats would be due in that time.
    let line = "--peer-addr 127.0.0.1 -d 2s -i 10ms --warmup 0 --timeout 100ms --load cpu=5%@peer";
    Latlab::at(home.path()).args(["ping", &target]).line(line).measured();
    let sent = fs::read(home.path().join("sent")).expect("tee(1) is everywhere");
    let said = messages(&sent);
    let at = |start: &str| said.iter().position(|message| message.starts_with(start)).expect(start);
    assert_eq!(at("\"disarm\""), at("{\"arm\"") + 1, "{said:?}");
    // The most that the run can take: 2 s, as much of backlog, and two time-outs (docs/agent-protocol.md).
    assert!(said[at("{\"arm\"")].contains("\"planned_ns\":4200000000"), "{said:?}");
    // An agent that gets no CPU answers late, and is sent heartbeats meanwhile.
    let last = said.iter().rfind(|message| *message != "\"heartbeat\"");
    assert_eq!(last.map(String::as_str), Some("\"stop_all\""), "{said:?}");
    let key = said[at("{\"start_reflector\"")].clone();
    assert!(key.contains("latlab-psk-1 "), "the key goes through the channel");
    let manifest = fs::read_to_string(only_recording(home.path()).join("manifest.json")).expect("a manifest");
    let secret = key.split("latlab-psk-1 ").nth(1).and_then(|rest| rest.get(..64)).expect("256 bit");
    assert!(!manifest.contains(secret), "and nowhere else");
}

#[test]
fn a_command_that_is_not_an_agent_is_refused_with_its_output() {
    let sh = |script: &str| format!("cmd:sh -c '{script}'");
    for (target, message, cause) in [
        ("cmd:/nonexistent/ssh far".into(), "cannot start `/nonexistent/ssh`", "ENOENT"),
        (sh("exec nosuchlatlab agent"), "cannot find latlab on `cmd:", "nosuchlatlab"),
        (sh("echo hello"), "no agent answers on `cmd:", "`hello`"),
        (sh("echo sorry >&2; exit 5"), "no agent answers on `cmd:", "sorry"),
        (sh("exit 5"), "no agent answers on `cmd:", "the command ended with exit status 5 before an agent answered"),
        (sh(r#"printf "\000llagent\000\002\000\000"; sleep 5"#), "speaks format `2`", "format 1"),
        (sh(r#"printf "\000llagent\000\001\000\000\377\377\377\377"; sleep 5"#), "unknown message", "4294967295"),
        (sh("yes"), "no agent answers on `cmd:", "`y y y"),
    ] {
        let lab = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5"]).stdout(empty());
        let ran = lab.stderr(contains(message)).stderr(contains(cause)).stderr(contains("hint: ")).failure(3);
        assert!(recordings(ran.directory()).is_empty(), "{target}");
    }
}

#[test]
fn errors_of_the_far_host_are_reported_with_cause_and_hint() {
    for (line, message) in [
        ("--peer-addr 127.0.0.1 --peer-cpu 1023", "refuses: cannot run on CPU `1023`"),
        ("--peer-addr 192.0.2.77", "`192.0.2.77:0`"),
    ] {
        let lab = Latlab::new().args(["ping", &local_agent()]).line(line).line("-n 5").stdout(empty());
        lab.stderr(contains(message)).stderr(contains("\n  hint: ")).failure(3);
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_greeting() {
    let running = Latlab::new().args(["ping", "cmd:sleep 40", "--peer-addr", "127.0.0.1", "-n", "5"]).start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("the command ran", || below(pid, &["sleep"]).is_some());
    running.signal(Signal::INT);
    let ran = running.exits(130);
    assert!(ran.stderr.contains("interrupted before anything was measured"), "{}", ran.stderr);
}

#[test]
fn an_agent_in_another_network_namespace_is_measured() {
    if !privileged() {
        return;
    }
    let lab = host::Lab::set_up().expect("root may build a lab");
    let namespaced = NamespacedAgent::of(&lab);
    let _inside = lab.enter_sender().expect("the namespace is there");
    let (near, far) = (lab.sender_ipv4().to_string(), lab.reflector_ipv4().to_string());
    for bind in [near.as_str(), "lab0"] {
        let measured = Latlab::new().args(["ping", &namespaced.target(), "--peer-addr", &far, "--bind", bind]);
        let ran = measured
            .line("-n 30 --warmup 2 -i 1ms --timeout 20s --wait spin --json")
            .stderr(warnings_at_most())
            .measured();
        assert_eq!(ran.json()["answered"], 30);
        let manifest = manifest(&only_recording(ran.directory()));
        assert!(manifest["run"]["peer_address"].as_str().is_some_and(|address| address.starts_with(&far)));
        assert!(manifest["run"]["local_address"].as_str().is_some_and(|address| address.starts_with(&near)));
        assert_eq!(manifest["spec"]["peer"]["wait"], "spin");
        let interface = |end: &str| manifest[end]["before"]["network"]["interface"]["name"].clone();
        assert_eq!((interface("here"), interface("peer")), ("lab0".into(), "lab0".into()));
        far_host_is_this_one(&manifest);
    }
    // Without a default route in that namespace only its own addresses have an interface.
    let doctor = |address: &str| Latlab::new().args(["doctor", &namespaced.target(), "--peer-addr", address]);
    doctor(&far).start().exits_with_one_of(&[0, 1]);
    let printed = "cannot find the interface of `203.0.113.9`";
    doctor("203.0.113.9").stdout(empty()).stderr(contains(printed)).stderr(contains("hint: ")).failure(3);
}

/// An agent that is not latlab, or a relay between, may name the address of a host that has not agreed to any probe.
#[test]
fn another_version_of_the_agent_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let change = "if isinstance(reply, dict) and 'greeting' in reply:\n    reply['greeting']['software'] = '0.0.9'";
    let Some(target) = altered_agent(home.path(), change) else { return };
    let words = ["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5", "--warmup", "0"];
    let versions = format!("the other end is latlab 0.0.9, this end {}", env!("CARGO_PKG_VERSION"));
    Latlab::at(home.path()).args(words).stderr(contains(versions)).measured();
}

#[test]
fn an_agent_that_names_another_reflector_address_is_refused_and_gets_no_probe() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let stranger = std::net::UdpSocket::bind("127.0.0.3:0").expect("loopback");
    stranger.set_nonblocking(true).expect("a socket");
    let port = stranger.local_addr().expect("bound").port();
    for (named, line) in [
        (format!("127.0.0.3:{port}"), "ping AGENT -n 5 --warmup 0"),
        (format!("[::ffff:127.0.0.3]:{port}"), "ping AGENT -n 5 --warmup 0"),
        (format!("127.0.0.3:{port}"), "stream AGENT -d 200ms --rate 1Mbit/s"),
        (format!("127.0.0.3:{port}"), "load AGENT -d 1s --load net=1Mbit/s"),
        ("127.0.0.1:0".to_owned(), "ping AGENT -n 5 --warmup 0"),
    ] {
        let change = format!(
            "if isinstance(reply, dict) and 'reflector' in reply:\n    reply['reflector']['address'] = '{named}'"
        );
        let Some(target) = altered_agent(home.path(), &change) else { return };
        let words = line.split(' ').map(|word| if word == "AGENT" { target.as_str() } else { word });
        let lab = Latlab::at(home.path()).args(words).args(["--peer-addr", "127.0.0.1"]).stdout(empty());
        let ran = lab.stderr(contains(format!("answered with `{named}`"))).stderr(contains("hint: ")).failure(3);
        assert!(ran.stderr.contains("was asked for a reflector at `127.0.0.1`"), "{}", ran.stderr);
        let received = stranger.recv_from(&mut [0; 2_048]).map(|(bytes, _)| bytes);
        assert!(received.is_err(), "{line}: it got {received:?} bytes");
    }
    // The same address in another form is the one that was asked for.
    let change = "if isinstance(reply, dict) and 'reflector' in reply:\n    \
                  reply['reflector']['address'] = '[::ffff:127.0.0.1]:' + reply['reflector']['address'].split(':')[1]";
    let Some(target) = altered_agent(home.path(), change) else { return };
    Latlab::at(home.path()).args(["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5"]).measured();
    // `--peer-addr` counts, whatever the agent says that ssh reached.
    let change = "if isinstance(reply, dict) and 'greeting' in reply:\n    reply['greeting']['reached'] = '127.0.0.3'";
    let Some(target) = altered_agent(home.path(), change) else { return };
    Latlab::at(home.path()).args(["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5"]).measured();
    assert!(stranger.recv_from(&mut [0; 2_048]).is_err());
    // Without `--peer-addr` the agent reports the address, which must be one of the host that ssh connects to.
    for (configured, reached, refusal) in [
        ("127.0.0.1", "127.0.0.3", Some("`ssh:far` says that ssh reached it at `127.0.0.3`")),
        ("no.such.host.invalid", "127.0.0.3", Some("are not known here")),
        ("224.0.0.1", "224.0.0.1", Some("cannot measure `ssh:far` at `224.0.0.1`")),
        ("255.255.255.255", "255.255.255.255", Some("cannot measure `ssh:far` at `255.255.255.255`")),
        ("ff02::1", "ff02::1", Some("cannot measure `ssh:far` at `ff02::1`")),
        // A process that keeps its output open.
        ("127.0.0.1'; sleep 60 & exit; echo '", "127.0.0.1", None),
        ("localhost", "127.0.0.1", None),
        ("127.0.0.1", "::ffff:127.0.0.1", None),
    ] {
        let change = format!(
            "if isinstance(reply, dict) and 'greeting' in reply:\n    reply['greeting']['reached'] = '{reached}'"
        );
        let Some(target) = altered_agent(home.path(), &change) else { return };
        let ssh = home.path().join("ssh");
        let words = target.trim_start_matches("cmd:");
        let text = format!("#!/bin/sh\n[ \"$1\" = -G ] && {{ echo 'hostname {configured}'; exit; }}\nexec {words}\n");
        fs::write(&ssh, text).expect("written");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).expect("ours");
        let path = std::env::var("PATH").expect("sh(1) is in it");
        let lab = Latlab::at(home.path()).environment("PATH", format!("{}:{path}", home.path().display()));
        let lab = lab.args(["ping", "ssh:far", "-n", "5"]);
        match refusal {
            Some(refusal) => drop(lab.stdout(empty()).stderr(contains(refusal)).failure(3)),
            None => drop(lab.measured()),
        }
        assert!(stranger.recv_from(&mut [0; 2_048]).is_err(), "{reached}");
    }
}
