//! `latlab agent --stdio` against docs/agent-protocol.md, byte by byte.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Latlab, command, contains, wait_until};
use crate::processes::{children, is_alive};

pub(crate) const PREAMBLE: [u8; 12] = *b"\0llagent\0\x01\0\0";
const KEY: &str = "latlab-psk-1 000102030405060708090a0b0c0d0e0f";

/// An agent with its pipes. It is killed when the value is dropped.
pub(crate) struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
}

pub(crate) fn framed(message: &Value) -> Vec<u8> {
    let payload = serde_json::to_vec(message).expect("JSON");
    [&(payload.len() as u32).to_be_bytes()[..], &payload].concat()
}

fn start_reflector(bind: &str, key: Option<&str>) -> Value {
    let end = json!({"wait": "block", "cpu": null, "fifo": null, "mlock": false});
    json!({"start_reflector": {"bind": bind, "end": end, "key": key, "sessions": 1}})
}

fn arm(planned_ns: i64) -> Value {
    json!({"arm": {"planned_ns": planned_ns}})
}

impl Agent {
    /// An agent that has sent its greeting and received nothing.
    fn start() -> Agent {
        let (agent, greeting) = Agent::of(command().env("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.7 22"));
        assert_eq!(greeting, json!({"greeting": {"software": env!("CARGO_PKG_VERSION"), "reached": "192.0.2.7"}}));
        agent
    }

    /// The agent that `latlab` starts, and its greeting.
    pub(crate) fn of(latlab: &mut Command) -> (Agent, Value) {
        let pipes =
            latlab.args(["agent", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("the binary was built by the test run");
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let mut agent = Agent { child, to, from };
        let mut preamble = [0; 12];
        agent.from.read_exact(&mut preamble).expect("a preamble");
        assert_eq!(preamble, PREAMBLE);
        let greeting = agent.reply();
        (agent, greeting)
    }

    /// An agent with a reflector and a run that is armed for `planned_ns`, in which it expects no heartbeat; and the pid of the
    /// reflector.
    fn armed(planned_ns: i64) -> (Agent, i32) {
        let mut agent = Agent::start();
        // In one write, so that no heartbeat is missing in between, however slow the test is.
        let requests = [framed(&start_reflector("127.0.0.1", Some(KEY))), framed(&arm(planned_ns))];
        agent.write(&[&PREAMBLE[..], &requests.concat()].concat());
        let address = agent.reply()["reflector"]["address"].as_str().expect("an address").to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        assert_eq!(agent.reply(), json!("done"));
        let reflectors = children(agent.pid().as_raw_nonzero().get());
        assert_eq!(reflectors.len(), 1);
        assert!(is_alive(reflectors[0]));
        (agent, reflectors[0])
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.to.as_mut().expect("not hung up").write_all(bytes).expect("the agent reads");
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.write(&framed(request));
        self.reply()
    }

    pub(crate) fn reply(&mut self) -> Value {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).expect("a frame");
        let mut payload = vec![0; u32::from_be_bytes(length) as usize];
        self.from.read_exact(&mut payload).expect("all of it");
        serde_json::from_slice(&payload).expect("JSON")
    }

    pub(crate) fn hang_up(&mut self) {
        self.to = None;
    }

    /// Its exit code (128 + the signal if it was killed) and its stderr.
    pub(crate) fn end(mut self) -> (i32, String) {
        use std::os::unix::process::ExitStatusExt;
        let mut status = None;
        wait_until("the agent ended", || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        let mut printed = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut printed).expect("text");
        let status = status.expect("it ended");
        (status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("one of them"), printed)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_end_of_the_connection_ends_the_reflector() {
    let four_gigabytes = u32::MAX.to_be_bytes();
    let half = &framed(&json!("disarm"))[..7];
    let cases = [
        ("the end of the stream", &b""[..], None, 0, ""),
        ("garbage", b"GET / HTTP/1.1\r\n\r\n", None, 3, "a frame of `1195725856` bytes"),
        ("a length of 4 GiB", &four_gigabytes, None, 3, "a frame of `4294967295` bytes"),
        ("no length", &[0; 4], None, 3, "a frame of `0` bytes"),
        ("an incomplete frame", half, None, 3, "an incomplete frame"),
        ("SIGTERM", b"", Some(Signal::TERM), 143, ""),
        ("SIGINT", b"", Some(Signal::INT), 130, ""),
        ("SIGHUP", b"", Some(Signal::HUP), 129, ""),
        ("SIGQUIT", b"", Some(Signal::QUIT), 131, ""),
        ("SIGKILL", b"", Some(Signal::KILL), 137, ""),
    ];
    for (name, bytes, signal, code, cause) in cases {
        // For an hour no missing heartbeat ends it.
        let (mut agent, reflector) = Agent::armed(3_600_000_000_000);
        agent.write(bytes);
        match signal {
            Some(signal) => kill_process(agent.pid(), signal).expect("our own child"),
            None => agent.hang_up(),
        }
        let (ended, printed) = agent.end();
        assert!(ended == code && printed.contains(cause), "{name}: {ended}: {printed}");
        wait_until(&format!("the reflector ended after {name}"), || !is_alive(reflector));
    }
}

#[test]
fn a_bad_frame_length_ends_the_agent_although_its_stdin_stays_open() {
    let (mut agent, reflector) = Agent::armed(3_600_000_000_000);
    agent.write(&u32::MAX.to_be_bytes());
    let to = agent.to.take();
    assert_eq!(agent.end().0, 3);
    drop(to);
    wait_until("the reflector ended", || !is_alive(reflector));
}

#[test]
fn missing_heartbeats_end_an_agent_after_1500_ms_and_an_armed_one_5_s_after_its_run() {
    // Name, length of the armed run, bytes before the silence, its least length in ms, and the cause on stderr.
    let half = &framed(&json!("stop_all"))[..9];
    let disarm = framed(&json!("disarm"));
    for (name, planned_ns, then, at_least, missed) in [
        ("disarmed", 3_600_000_000_000, &disarm[..], 1_500, "no heartbeat was received for 1.5 s"),
        (
            "disarmed, and half a frame",
            3_600_000_000_000,
            &[&disarm[..], half].concat(),
            1_500,
            "no heartbeat was received for 1.5 s",
        ),
        ("armed", 0, b"", 4_900, "no end of the armed run was received for 5 s"),
        ("armed, and half a frame", 0, half, 4_900, "no end of the armed run was received for 5 s"),
    ] {
        let start = Instant::now();
        let (mut agent, reflector) = Agent::armed(planned_ns);
        agent.write(then);
        // Held open, so that the stream does not end.
        let to = agent.to.take();
        let (code, printed) = agent.end();
        let silent = start.elapsed();
        drop(to);
        assert!(code == 3 && printed.contains(missed), "{name}: {code}: {printed}");
        assert!(silent > Duration::from_millis(at_least), "{name}: gave up after {silent:?}");
        wait_until("the reflector ended", || !is_alive(reflector));
    }
}

#[test]
fn a_wrong_or_missing_preamble_ends_the_agent() {
    for (said, cause) in
        [(&b"SSH-2.0-OpenSSH\r\n"[..], "`SSH-2.0-OpenSSH`"), (b"", "no preamble was received for 10 s")]
    {
        let mut agent = Agent::start();
        agent.write(said);
        let to = agent.to.take();
        let (code, printed) = agent.end();
        drop(to);
        assert!(code == 3 && printed.contains(cause) && printed.contains("hint: "), "{printed}");
    }
    let mut agent = Agent::start();
    agent.write(b"\0llagent\0\x02\0\0");
    let (code, printed) = agent.end();
    assert!(code == 3 && printed.contains("format `2`"), "{printed}");
}

#[test]
fn unknown_requests_are_refused_in_constant_memory() {
    let (mut agent, _) = Agent::armed(3_600_000_000_000);
    let status = format!("/proc/{}/status", agent.pid().as_raw_nonzero());
    let peak_kib = || -> u64 {
        let status = std::fs::read_to_string(&status).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let large = json!({"arm": {"planned_ns": "x".repeat(1_000_000)}});
    for request in [json!("reboot"), json!(7), json!({"arm": {}}), large.clone()] {
        let reply = agent.ask(&request);
        assert!(reply["error"]["hint"].is_string() && reply["error"]["exit_code"] == 3, "{reply}");
    }
    let before = peak_kib();
    for _ in 0..50 {
        assert!(agent.ask(&large)["error"].is_object());
        assert!(agent.ask(&json!("reboot"))["error"].is_object());
    }
    let grown = peak_kib() - before;
    assert!(grown < 4_096, "50 MB of nonsense made it grow by {grown} KiB");
    assert_eq!(agent.ask(&json!("disarm")), json!({"disarmed": {"reflector_died": null}}));
}

#[test]
fn replies_that_are_not_read_end_the_agent() {
    let (mut agent, reflector) = Agent::armed(0);
    // A pipe holds 64 KiB. What is beyond has not been read 5 s after the newest frame.
    let nonsense = framed(&json!("reboot")).repeat(2_000);
    agent.write(&nonsense);
    let to = agent.to.take();
    let (code, printed) = agent.end();
    drop(to);
    assert_eq!(code, 3, "{printed}");
    wait_until("the reflector ended", || !is_alive(reflector));
}

#[test]
fn a_reflector_needs_a_key_and_one_address_and_there_are_at_most_four() {
    let (mut agent, _) = Agent::armed(3_600_000_000_000);
    for (bind, key, cause) in [
        ("0.0.0.0", Some(KEY), "the measured path alone"),
        ("::", Some(KEY), "the measured path alone"),
        ("127.0.0.1", None, "any host"),
        ("127.0.0.1", Some("1234"), "no latlab key"),
        ("192.0.2.77", Some(KEY), "EADDRNOTAVAIL"),
    ] {
        let refusal = agent.ask(&start_reflector(bind, key))["error"].clone();
        let printed = format!("{} {}", refusal["message"], refusal["cause"]);
        assert!(printed.contains(cause), "{bind}: {refusal}");
    }
    for _ in 1..4 {
        assert!(agent.ask(&start_reflector("127.0.0.1", Some(KEY)))["reflector"].is_object());
    }
    let refusal = agent.ask(&start_reflector("127.0.0.1", Some(KEY)));
    assert!(refusal["error"]["cause"].as_str().is_some_and(|cause| cause.contains("`4` of them")), "{refusal}");
    let reflectors = children(agent.pid().as_raw_nonzero().get());
    assert_eq!(reflectors.len(), 4);
    assert_eq!(agent.ask(&json!("stop_all")), json!("done"));
    assert!(!reflectors.into_iter().any(is_alive));
}

#[test]
fn loads_beyond_the_limits_are_refused_as_on_the_command_line() {
    let (mut agent, _) = Agent::armed(3_600_000_000_000);
    for (typed, load, cause) in [
        ("heaters=4294967295", json!({"kind": "heaters", "workers": u32::MAX, "cpus": []}), "keep each other waiting"),
        (
            "cpu=150%",
            json!({"kind": "cpu", "share": 1e308, "cpus": [], "period_ns": 10_000_000}),
            "a share of CPU time",
        ),
        ("cpu=50%:period=0", json!({"kind": "cpu", "share": 0.5, "cpus": [], "period_ns": 0}), "waking up"),
        (
            "mem=1GB/s:buffer=64KiB",
            json!({"kind": "mem", "bytes_per_second": 1e9, "cpus": [], "period_ns": 10_000_000, "buffer_bytes": 65_536}),
            "cannot be shared among many CPUs",
        ),
        (
            "net=1bit/s",
            json!({"kind": "net", "pace": {"kind": "rate", "bps": 1}, "size_bytes": null, "wire": false, "cpu": null, "spin": false}),
            "too slow to be a load",
        ),
    ] {
        let mut load = load;
        load["at"] = json!("peer");
        let refusal = agent.ask(&json!({"loads": {"start": {"loads": [load], "path": null}}}));
        assert!(refusal["error"]["cause"].as_str().is_some_and(|words| words.contains(cause)), "{typed}: {refusal}");
        Latlab::new().args(["load", "--load", typed, "-d", "1s"]).stderr(contains(cause)).failure(2);
    }
}

#[test]
fn the_death_of_a_reflector_is_reported() {
    let (mut agent, reflector) = Agent::armed(3_600_000_000_000);
    kill_process(Pid::from_raw(reflector).expect("a pid"), Signal::KILL).expect("the agent's child");
    // The kernel reports the death of a process after that of its last thread.
    let mut printed = Value::Null;
    wait_until("the agent knew", || {
        printed = agent.ask(&json!("disarm"))["disarmed"]["reflector_died"].clone();
        !printed.is_null()
    });
    assert_eq!(printed, "killed by SIGKILL");
}
