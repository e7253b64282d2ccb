//! Targets with an agent: `ssh:` through a real sshd, `cmd:` on this host and into another network namespace.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use latlab::host;
use latlab::host::rights::{Capability, Rights};
use latlab::host::root::HostRoot;
use rustix::process::{Pid, Signal, kill_process};

use crate::documents::check;
use crate::harness::{Lab, Running, contains, empty, wait_until};
use crate::processes::{arguments, children, is_alive, state};
use crate::sshd::Sshd;
use crate::store::{manifest, only_recording, recordings};

const BINARY: &str = env!("CARGO_BIN_EXE_latlab");

/// An agent without any other host: what it does there, it does here.
fn here() -> String {
    format!("cmd:{BINARY} agent --stdio")
}

/// Where logins find latlab.
pub(crate) fn with_latlab() -> String {
    let folder = Path::new(BINARY).parent().expect("the binary lies in a folder");
    format!("{}:/usr/bin:/bin", folder.display())
}

fn over_ssh(sshd: &Sshd, directory: &Path, target: &str) -> Lab {
    Lab::at(directory).environment("PATH", sshd.path()).args(["ping", target])
}

/// A process below `ancestor` that was started with `words` among its arguments.
pub(crate) fn below(ancestor: i32, words: &[&str]) -> Option<i32> {
    let is_it = |pid: i32| {
        let arguments = arguments(pid);
        words.iter().all(|word| arguments.iter().any(|argument| argument == word))
    };
    children(ancestor).into_iter().find_map(|child| if is_it(child) { Some(child) } else { below(child, words) })
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("it runs");
}

/// A run over ssh that is under way, and the processes at both ends.
pub(crate) struct UnderWay {
    pub(crate) sshd: Sshd,
    pub(crate) home: tempfile::TempDir,
    pub(crate) running: Running,
    pub(crate) ssh: i32,
    agent: i32,
    reflector: i32,
}

impl UnderWay {
    fn start(test: &str, line: &str) -> Option<UnderWay> {
        UnderWay::start_in(test, &with_latlab(), line)
    }

    /// The same on a host whose logins have `path` and what follows it.
    pub(crate) fn start_in(test: &str, path: &str, line: &str) -> Option<UnderWay> {
        let sshd = Sshd::start(test, path)?;
        let home = tempfile::tempdir().expect("a temporary directory");
        let running = over_ssh(&sshd, home.path(), "ssh:far").line(line).start();
        wait_until("the run was under way", || {
            let spools = recordings(home.path()).into_iter().map(|recording| recording.join("events.spool"));
            spools.filter_map(|spool| fs::metadata(spool).ok()).any(|spool| spool.len() > 1_000)
        });
        let ssh = below(running.pid().as_raw_nonzero().get(), &["latlab", "agent", "--stdio"]).expect("ssh runs");
        let agent = below(sshd.pid(), &["latlab", "agent", "--stdio"]).expect("the agent runs");
        // The login's shell may stand between sshd and the agent; the reflector's parent is the agent itself.
        let reflector = below(sshd.pid(), &["reflector"]).expect("the reflector runs");
        Some(UnderWay { sshd, home, running, ssh, agent, reflector })
    }

    pub(crate) fn await_order(&self) {
        wait_until("the far reflector was gone", || !is_alive(self.reflector));
        wait_until("the agent was gone", || below(self.sshd.pid(), &["agent", "--stdio"]).is_none());
    }
}

#[test]
fn ssh_measures_to_the_address_that_it_reached() {
    let Some(sshd) = Sshd::start("ping ssh:", &with_latlab()) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let ran = over_ssh(&sshd, home.path(), "ssh:far").line("-n 50 --warmup 5 --json").stderr(empty()).success();
    check(&ran.json(), "summary/1");
    assert_eq!((&ran.json()["answered"], &ran.json()["condition"]["target"]), (&50.into(), &"ssh:far".into()));
    let manifest = manifest(&only_recording(home.path()));
    let address = manifest["run"]["peer_address"].as_str().expect("there was a peer");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(
        (&manifest["spec"]["authenticated"], &manifest["spec"]["target"]["host"]),
        (&true.into(), &"far".into())
    );
    assert!(manifest["peer"]["before"].is_null(), "nobody has asked that host for its facts");
    assert_eq!(below(sshd.pid(), &["agent"]), None, "the agent is gone when latlab is");
}

#[test]
fn ssh_that_cannot_is_told_in_its_own_words() {
    let Some(sshd) = Sshd::start("ping ssh: without rights", "/usr/bin:/bin") else { return };
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
fn the_death_of_latlab_puts_the_far_host_in_order() {
    let Some(UnderWay { sshd, home, running, ssh, agent, reflector }) =
        UnderWay::start("the death of `ping ssh:`", "-d 50s --warmup 0 -i 1ms")
    else {
        return;
    };
    running.signal(Signal::KILL);
    running.dies_of(Signal::KILL);
    for (name, pid) in [("ssh", ssh), ("the agent", agent), ("the reflector", reflector)] {
        wait_until(&format!("{name} was gone"), || !is_alive(pid));
    }
    drop(sshd);
    Lab::at(home.path()).arg("summary").arg(only_recording(home.path())).stdout(contains("ping ssh:far")).success();
}

#[test]
fn the_death_of_the_far_end_leaves_a_partial_recording() {
    for of_the_agent in [true, false] {
        let Some(run) = UnderWay::start("the death of an agent", "-d 50s --warmup 0 -i 1ms") else { return };
        signal(if of_the_agent { run.agent } else { run.ssh }, Signal::KILL);
        run.await_order();
        let ran = run.running.ends(3);
        assert!(ran.stderr.contains("lost the agent of `ssh:far`") && ran.stderr.contains("hint: "), "{}", ran.stderr);
        let recording = only_recording(run.home.path());
        assert_eq!(manifest(&recording)["ending"], "failed", "{}", manifest(&recording));
        Lab::at(run.home.path()).arg("summary").arg(recording).stdout(contains("ping ssh:far")).success();
    }
}

#[test]
fn a_frozen_connection_is_ended_by_the_dead_man_timer() {
    let Some(run) = UnderWay::start("a frozen connection", "-d 2s --warmup 0 -i 1ms --timeout 100ms") else { return };
    signal(run.ssh, Signal::STOP);
    run.await_order();
    // It was the timer, not the end of the stream: ssh stands as it stood.
    assert_eq!(state(run.ssh).as_deref(), Some("T"));
    let ran = run.running.ends(3);
    assert!(ran.stderr.contains("no word from the agent of `ssh:far`"), "{}", ran.stderr);
    assert!(!is_alive(run.ssh), "what latlab started ends with it");
    Lab::at(run.home.path()).arg("summary").arg(only_recording(run.home.path())).success();
}

#[test]
fn an_interrupt_ends_both_ends() {
    let Some(run) = UnderWay::start("Ctrl-C in `ping ssh:`", "-d 50s --warmup 0 -i 1ms") else { return };
    run.running.signal(Signal::INT);
    run.await_order();
    let ran = run.running.ends(130);
    assert!(ran.stdout.contains("round trip delay"), "{}", ran.stdout);
    assert_eq!(manifest(&only_recording(run.home.path()))["ending"], "interrupted");
}

#[test]
fn a_command_is_as_good_as_ssh() {
    let noisy = format!("cmd:sh -c 'echo welcome; echo mind the gap >&2; exec {BINARY} agent --stdio'");
    for target in [here(), noisy] {
        for address in ["127.0.0.1", "::1"] {
            let lab = Lab::new().args(["ping", &target, "--peer-addr", address]).line("-n 20 --warmup 2 --json");
            let ran = lab.stderr(empty()).success();
            assert_eq!(ran.json()["answered"], 20);
            let manifest = manifest(&only_recording(ran.directory()));
            assert_eq!(manifest["spec"]["work"]["path"]["peer_address"], address);
        }
    }
    // Nobody knows how long a closed loop takes; sizes take turns over one agent.
    let lab = Lab::new().args(["ping", &here(), "--peer-addr", "127.0.0.1"]).line("-n 20 -s 64,128 --warmup 0");
    lab.stdout(contains("128 B")).success();
}

/// The messages in what this end has sent to an agent.
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
fn nothing_is_said_while_a_run_is_armed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let target = format!("cmd:sh -c 'tee sent | {BINARY} agent --stdio'");
    // Long enough for four heartbeats.
    let line = "--peer-addr 127.0.0.1 -d 2s -i 10ms --warmup 0 --timeout 100ms --load cpu=5%@peer";
    Lab::at(home.path()).args(["ping", &target]).line(line).success();
    let sent = fs::read(home.path().join("sent")).expect("tee(1) is everywhere");
    let said = messages(&sent);
    let at = |start: &str| said.iter().position(|message| message.starts_with(start)).expect(start);
    assert_eq!(at("\"disarm\""), at("{\"arm\"") + 1, "{said:?}");
    // Its own 2 s, two time-outs, a backlog of the schedule's length at most: 1 s.
    assert!(said[at("{\"arm\"")].contains("\"planned_ns\":4200000000"), "{said:?}");
    assert_eq!(said.last().map(String::as_str), Some("\"stop_all\""));
    let key = said[at("{\"start_reflector\"")].clone();
    assert!(key.contains("latlab-psk-1 "), "the key goes through the channel");
    let manifest = fs::read_to_string(only_recording(home.path()).join("manifest.json")).expect("a manifest");
    let secret = key.split("latlab-psk-1 ").nth(1).and_then(|rest| rest.get(..64)).expect("256 bit");
    assert!(!manifest.contains(secret), "and nowhere else");
}

#[test]
fn the_death_of_latlab_lets_an_agent_of_its_own_put_its_host_in_order() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let line = "--peer-addr 127.0.0.1 -d 50s --warmup 0 -i 1ms";
    let running = Lab::at(home.path()).args(["ping", &here()]).line(line).start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("the reflector ran", || below(pid, &["reflector"]).is_some());
    let (agent, reflector) = (below(pid, &["agent"]).expect("it runs"), below(pid, &["reflector"]).expect("it runs"));
    running.signal(Signal::KILL);
    running.dies_of(Signal::KILL);
    for (name, pid) in [("the agent", agent), ("the reflector", reflector)] {
        wait_until(&format!("{name} was gone"), || !is_alive(pid));
    }
}

#[test]
fn what_is_no_agent_is_told_from_one() {
    let sh = |script: &str| format!("cmd:sh -c '{script}'");
    for (target, message, cause) in [
        ("cmd:/nonexistent/ssh far".into(), "cannot start `/nonexistent/ssh`", "ENOENT"),
        (sh("exec nosuchlatlab agent"), "cannot find latlab on `cmd:", "nosuchlatlab"),
        (sh("echo hello"), "no agent answers on `cmd:", "`hello`"),
        (sh("echo sorry >&2; exit 5"), "no agent answers on `cmd:", "sorry"),
        (sh("exit 5"), "no agent answers on `cmd:", "exit status: 5"),
        (sh(r#"printf "\000llagent\000\002\000\000"; sleep 5"#), "speaks format `2`", "format 1"),
        (sh(r#"printf "\000llagent\000\001\000\000\377\377\377\377"; sleep 5"#), "cannot understand", "4294967295"),
        (sh("yes"), "no agent answers on `cmd:", "`y y y"),
    ] {
        let lab = Lab::new().args(["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5"]).stdout(empty());
        let ran = lab.stderr(contains(message)).stderr(contains(cause)).stderr(contains("hint: ")).failure(3);
        assert!(recordings(ran.directory()).is_empty(), "{target}");
    }
}

#[test]
fn what_the_far_host_refuses_is_told_as_if_it_were_here() {
    for (line, message) in [
        ("--peer-addr 127.0.0.1 --peer-cpu 1023", "refuses: cannot run on CPU `1023`"),
        ("--peer-addr 192.0.2.77", "`192.0.2.77:0`"),
    ] {
        let lab = Lab::new().args(["ping", &here()]).line(line).line("-n 5").stdout(empty());
        lab.stderr(contains(message)).stderr(contains("\n  hint: ")).failure(3);
    }
}

#[test]
fn an_interrupt_does_not_wait_for_a_greeting() {
    let running = Lab::new().args(["ping", "cmd:sleep 40", "--peer-addr", "127.0.0.1", "-n", "5"]).start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("the command ran", || below(pid, &["sleep"]).is_some());
    running.signal(Signal::INT);
    let ran = running.ends(130);
    assert!(ran.stderr.contains("interrupted before anything was measured"), "{}", ran.stderr);
}

/// A process that keeps a network namespace, killed with its value.
pub(crate) struct Keeper(pub(crate) Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        // Both fail where it has ended, which is all that is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_leads_into_another_network_namespace() {
    let rights = Rights::read(&HostRoot::live()).expect("this process has rights");
    if !(rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin)) {
        let reason = "namespaces need root";
        writeln!(std::io::stderr(), "skipped an agent in another namespace: {reason}").expect("stderr is open");
        return;
    }
    let lab = host::Lab::set_up().expect("root may build a lab");
    let there = lab.enter_reflector().expect("the namespace is there");
    let keeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep(1) is everywhere");
    let keeper = Keeper(keeper);
    drop(there);
    let _inside = lab.enter_sender().expect("the namespace is there");
    let target = format!("cmd:nsenter --net=/proc/{}/ns/net {BINARY} agent --stdio", keeper.0.id());
    let (near, far) = (lab.sender_ipv4().to_string(), lab.reflector_ipv4().to_string());
    for bind in [near.as_str(), "lab0"] {
        let measured = Lab::new().args(["ping", &target, "--peer-addr", &far, "--bind", bind]);
        let ran = measured.line("-n 30 --warmup 2 -i 1ms --wait spin --json").stderr(empty()).success();
        assert_eq!(ran.json()["answered"], 30);
        let manifest = manifest(&only_recording(ran.directory()));
        assert!(manifest["run"]["peer_address"].as_str().is_some_and(|address| address.starts_with(&far)));
        assert!(manifest["run"]["local_address"].as_str().is_some_and(|address| address.starts_with(&near)));
        assert_eq!(manifest["spec"]["peer"]["wait"], "spin");
    }
}
