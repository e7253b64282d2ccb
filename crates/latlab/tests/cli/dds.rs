//! `--transport dds`: sessions over a real DDS, its policies, and what is refused.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use latlab::host::Lab;
use rustix::process::Signal;
use serde_json::Value;

use crate::far_end::local_agent;
use crate::harness::{BINARY, Latlab, Running, contains, empty, wait_until};
use crate::lab::privileged;
use crate::serve::free_port;
use crate::skip::skip;
use crate::store::{manifest, only_recording, spool_bytes};

const CELLS: [&str; 4] = ["", "--keyed", "--reliability reliable", "--reliability reliable --keyed"];

/// A reflector in `domain`, and its address.
fn serve(directory: &Path, domain: u16, options: &str) -> (Running, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let domain = domain.to_string();
    let serve = ["serve", "-v", "--transport", "dds", "--bind", &address, "--domain", &domain];
    let running = Latlab::at(directory).args(serve).line(options).stdout(empty()).start();
    running.wait_for_stderr(&format!("answering on `{address}` over DDS"));
    (running, address)
}

/// The counters that a reflector prints at its end.
fn counters(running: Running) -> String {
    running.signal(Signal::TERM);
    running.exits(0).stderr
}

fn ping(directory: &Path, target: &str, domain: u16, options: &str) -> Latlab {
    let domain = domain.to_string();
    let ping = ["ping", target, "--transport", "dds", "--domain", &domain, "--json", "--no-record"];
    Latlab::at(directory).args(ping).line(options)
}

#[track_caller]
fn refused(line: &str, code: i32, message: &str, hint: &str) {
    Latlab::new().line(line).stdout(empty()).stderr(contains(message)).stderr(contains(hint)).failure(code);
}

#[track_caller]
fn expect_answered(document: &Value, answered: u64) {
    let losses: Vec<&Value> = ["lost", "late", "duplicates", "reordered"].map(|name| &document[name]).to_vec();
    assert_eq!((&document["answered"], &losses[..]), (&answered.into(), &vec![&Value::from(0); 4][..]), "{document}");
}

/// On a busy machine a burst overwrites samples that wait to be read.
#[track_caller]
fn expect_most_answered(document: &Value, sent: u64) {
    let [answered, lost] = ["answered", "lost"].map(|name| document[name].as_u64().expect("a count"));
    assert!(answered >= sent / 2 && answered + lost == sent && document["duplicates"] == 0, "{document}");
}

#[test]
fn samples_return_whatever_their_policies() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let waits =
        ["", "--wait spin", "--history keep-all", "--history keep-all --wait spin", "--history keep-all -i 5ms"];
    for (number, cell) in CELLS.into_iter().enumerate() {
        for options in waits {
            let line = format!("{cell} {options} -n 200 --warmup 10 --timeout 5s");
            let document = ping(home.path(), "local", 40 + number as u16, &line).measured().json();
            if line.contains("reliability reliable") && line.contains("keep-all") {
                expect_answered(&document, 200);
            } else {
                expect_most_answered(&document, 200);
            }
        }
    }
}

#[test]
fn long_samples_are_interleaved_with_short_ones() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let line = "-s 32,63000,65507 -n 60 --warmup 5 --timeout 5s --reliability reliable";
    let document = ping(home.path(), "local", 44, line).measured().json();
    let runs = document["summaries"].as_array().expect("several runs");
    assert_eq!(runs.len(), 3);
    runs.iter().for_each(|run| expect_answered(run, 60));
}

#[test]
fn a_recording_says_what_was_asked_for_and_what_the_library_did() {
    let lab = Latlab::new().environment("CYCLONEDDS_URI", "<General><FragmentSize>4000B</FragmentSize></General>");
    let line = "ping --transport dds --domain 45 --reliability reliable --keyed --history keep-last:4";
    let heading = contains("dds ipv4, reliable, keyed, keep-last:4, messages of 65,500 B");
    let measured = lab.line(line).line("--dds-message-size 65500 -n 50").stdout(heading).measured();
    let manifest = manifest(&only_recording(measured.directory()));
    let spec = &manifest["spec"]["work"]["path"]["dds"];
    let expected = serde_json::json!({
        "domain": 45, "reliability": "reliable", "history": {"keep_last": 4}, "keyed": true, "multicast": false,
        "message_bytes": 65_500
    });
    assert_eq!(spec, &expected);
    let facts = &manifest["run"]["dds"];
    assert!(facts["implementation"].as_str().expect("a name").contains("Cyclone DDS 11"), "{facts}");
    assert!(facts["discovery_ns"].as_i64().expect("a time") > 0, "{facts}");
    assert!(facts["environment"].as_str().expect("a value").contains("4000B"), "{facts}");
    let settings: Vec<&str> =
        facts["configuration"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    // The option replaces the size of the variable.
    for (name, value) in [("FragmentSize", "65416"), ("AllowMulticast", "false"), ("ParticipantIndex", "auto")] {
        let is_set = |line: &&str| line.contains(name) && line.contains(value);
        assert!(settings.iter().any(is_set), "{name} is not {value} in {settings:?}");
    }
    assert_eq!((&facts["samples_lost"], &facts["warnings"]), (&0.into(), &Value::Null), "{facts}");
}

#[test]
fn a_reflector_answers_each_sender_alone() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), 46, "");
    let pings: Vec<Running> = CELLS
        .iter()
        .map(|cell| ping(home.path(), &address, 46, &format!("{cell} -n 100 -i 10ms --timeout 5s")).start())
        .collect();
    for running in pings {
        let measured = running.finishes_measured();
        expect_most_answered(&measured.json(), 100);
    }
    let counted = counters(reflector);
    assert!(!counted.contains("drop-") && !counted.contains("reply-failed"), "{counted}");
}

#[test]
fn a_reflector_on_loopback_receives_nothing_else() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, _) = serve(home.path(), 47, "");
    let ports = 7_400 + 250 * 47..7_400 + 250 * 48;
    let table = fs::read_to_string(format!("/proc/{}/net/udp", reflector.pid().as_raw_pid())).expect("a table");
    let sockets: Vec<(u32, u16)> = table
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'))
        .filter_map(|(ip, port)| Some((u32::from_str_radix(ip, 16).ok()?, u16::from_str_radix(port, 16).ok()?)))
        .filter(|(_, port)| ports.contains(port))
        .collect();
    assert!(sockets.len() >= 2, "discovery and data: {sockets:?}");
    let loopback = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
    assert!(sockets.iter().all(|(ip, _)| *ip == loopback), "{sockets:?}");
    counters(reflector);
}

/// The sum of a count over the flows of a stream.
fn of_flows(document: &Value, name: &str) -> u64 {
    let flows = document["stream"]["flows"].as_array().expect("flows");
    flows.iter().map(|flow| flow[name].as_u64().expect("a number")).sum()
}

#[test]
fn samples_are_streamed_one_by_one_or_in_batches() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (options, mode) in [
        ("", "send"),
        ("--wait spin", "send"),
        ("--mode batch", "batch"),
        ("--direction down --rate 20Mbit/s", "send"),
        ("--mode batch --batch 8 --keyed --reliability reliable --history keep-all", "batch"),
    ] {
        let line = format!("{options} -s 256 -d 500ms --warmup 50ms");
        let stream = ["stream", "local", "--transport", "dds", "--domain", "65", "--json", "--no-record"];
        let document = Latlab::at(home.path()).args(stream).line(&line).measured().json();
        let counts = ["sent", "delivered"].map(|name| of_flows(&document, name));
        assert_eq!(document["condition"]["mode"], mode, "{options}");
        assert!(counts[0] > 1_000 && counts[1] > 0 && counts[1] <= counts[0], "{options}: {counts:?}");
        assert!(!options.contains("keep-all") || counts[1] == counts[0], "the writer waits: {counts:?}");
    }
}

#[test]
fn a_paced_stream_of_samples_arrives_whole() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let stream = ["stream", "local", "--transport", "dds", "--domain", "66"];
    let line = "--rate 2kpps -s 1024 -d 1s --warmup 100ms --flows 2 --reliability reliable --history keep-all";
    let measured = Latlab::at(home.path()).args(stream).line(line).stdout(contains("samples/s")).measured();
    let recording = only_recording(measured.directory()).display().to_string();
    let document = Latlab::at(home.path()).args(["summary", &recording, "--json"]).measured().json();
    let counts = ["sent", "delivered", "lost"].map(|name| of_flows(&document, name));
    assert!(counts[0] > 0, "{counts:?}");
    assert_eq!((counts[1], counts[2]), (counts[0], 0), "{counts:?}");
}

/// Each sample is one datagram, which the kernel drops while the process that has to read it is stopped.
#[test]
fn drops_at_the_sockets_of_the_library_are_counted_within_a_run() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), 68, "");
    let stream = ["stream", &address, "--transport", "dds", "--domain", "68", "--json", "--no-record"];
    let paced = "-s 1024 --warmup 0 --flows 2";
    let stopped = Latlab::at(home.path()).args(stream).line(paced).line("--rate 16kpps -d 5s").start();
    // Half of the stream.
    std::thread::sleep(Duration::from_millis(2_500));
    reflector.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    reflector.signal(Signal::CONT);
    let document = stopped.finishes_measured().json();
    let (lost, drops) = (of_flows(&document, "lost"), document["stream"]["socket_drops"].as_u64().expect("a count"));
    assert!(lost > 1_000, "{document}");
    // Those of discovery and of POLLs are dropped too.
    assert!((lost * 9 / 10..=lost * 11 / 10).contains(&drops), "{drops} drops, {lost} lost");
    let caveats = document["caveats"].to_string();
    assert!(caveats.contains("did not reach the receiver"), "{caveats}");
    let after = Latlab::at(home.path()).args(stream).line(paced).line("--rate 500pps -d 500ms").measured().json();
    assert_eq!(after["stream"]["socket_drops"], 0, "drops before the run do not count: {after}");
    assert!(of_flows(&after, "delivered") > 0, "{after}");
    counters(reflector);
}

#[test]
fn only_senders_with_the_key_are_answered() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for name in ["key", "other"] {
        Latlab::at(home.path()).args(["keygen", name]).success();
    }
    let (reflector, address) = serve(home.path(), 48, "--psk-file key");
    let measured = ping(home.path(), &address, 48, "--psk-file key -n 100 --timeout 5s").measured();
    expect_answered(&measured.json(), 100);
    let wrong = ping(home.path(), &address, 48, "--psk-file other -n 5");
    wrong.stdout(empty()).stderr(contains("hint: ")).failure(3);
    let without = ping(home.path(), &address, 48, "-n 5");
    without.stdout(empty()).stderr(contains("asks for a pre-shared key")).failure(3);
    counters(reflector);
}

#[test]
fn an_agent_starts_a_reflector_over_dds() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let agent = local_agent();
    let ping = ["ping", &agent, "--peer-addr", "127.0.0.1", "--transport", "dds", "--domain", "49"];
    let line = "-n 100 --keyed --reliability reliable --timeout 5s --json --no-record";
    expect_answered(&Latlab::at(home.path()).args(ping).line(line).measured().json(), 100);
}

#[test]
fn probes_cross_a_veth_pair_over_dds() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    for options in ["--reliability reliable", "-6", "--multicast on"] {
        let line = format!("-n 100 --timeout 5s {options}");
        expect_answered(&ping(home.path(), "lab", 50, &line).measured().json(), 100);
    }
}

/// With multicast both reflectors are found, and the one on the sender's host answers sooner.
#[test]
fn of_two_hosts_with_one_port_the_named_one_answers() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    Latlab::at(home.path()).args(["keygen", "key"]).success();
    let lab = Lab::set_up().expect("root");
    let options = |address: IpAddr| format!("--interface {address} --multicast on --domain 67 --psk-file key");
    let serve = |address: IpAddr| {
        let reflector = Latlab::at(home.path())
            .line(&format!("serve -v --transport dds {}", options(address)))
            .stdout(empty())
            .start();
        reflector.wait_for_stderr(&format!("answering on `{address}:9862` over DDS"));
        reflector
    };
    let (here, there) = (lab.sender_ipv4(), lab.reflector_ipv4());
    let inside = lab.enter_reflector().expect("the namespace is there");
    let named = serve(there);
    drop(inside);
    let _inside = lab.enter_sender().expect("the namespace is there");
    let other = serve(here);
    let line = format!("ping {there} --transport dds {} -n 100 --timeout 5s --json --no-record", options(here));
    expect_answered(&Latlab::at(home.path()).line(&line).measured().json(), 100);
    let (named, other) = (counters(named), counters(other));
    assert!(named.contains("answered "), "{named}");
    assert!(!other.contains("answered "), "{other}");
}

#[test]
fn what_dds_cannot_do_is_refused() {
    refused("ping --transport dds --multicast on -n 5", 2, "multicast over DDS on loopback", "`--interface`");
    refused("serve --transport dds --multicast on", 2, "multicast over DDS on loopback", "`--interface`");
    refused("serve --transport dds --interface 192.0.2.7", 2, "without a key", "`--psk-file lab.key`");
    refused("serve --transport dds --interface absent0", 3, "absent0", "hint: ");
    refused("ping --transport dds --domain 51 --interface absent0 -n 5", 3, "absent0", "hint: ");
}

#[test]
fn a_silent_address_ends_the_search() {
    let start = Instant::now();
    let line = format!("ping 127.0.0.1:{} --transport dds --domain 52 -n 5", free_port());
    refused(&line, 3, "found no partner at `127.0.0.1:", "`latlab serve --transport dds --domain 52` runs there");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_reflector_that_is_killed_does_not_stop_a_reliable_sender() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), 53, "--history keep-all");
    let line = "--reliability reliable --history keep-all -i 1ms -d 5s --warmup 0 --timeout 500ms";
    let store = tempfile::tempdir().expect("a temporary directory");
    let sender = Latlab::at(store.path()).args(["ping", &address, "--transport", "dds", "--domain", "53", "--json"]);
    let sender = sender.line(line).start();
    wait_until("hundreds of probes were answered", || spool_bytes(store.path()) > 60_000);
    reflector.signal(Signal::KILL);
    reflector.killed_by(Signal::KILL);
    let measured = sender.exits_with_one_of(&[0, 4]);
    let document = measured.json();
    let count = |name: &str| document[name].as_u64().expect("a count");
    assert!(count("answered") > 100, "{document}");
    assert!(count("lost") + count("send_failed") + count("not_sent") > 100, "{document}");
    let recorded = Latlab::at(store.path()).line("summary --json").arg(only_recording(store.path()));
    assert_eq!(recorded.start().exits_with_one_of(&[0, 4]).json()["answered"], document["answered"]);
}

/// The Python that `.ci/run` gives the package of Cyclone DDS. Without it the test is skipped.
#[track_caller]
fn python_with_dds() -> Option<PathBuf> {
    let target = Path::new(BINARY).parent().and_then(Path::parent).expect("target/debug/latlab");
    let python = target.join("readers/bin/python");
    let has_dds =
        Command::new(&python).args(["-c", "import cyclonedds"]).output().is_ok_and(|ran| ran.status.success());
    if !has_dds {
        skip(format_args!("{} lacks cyclonedds: `scripts/bench_setup.sh` installs it", python.display()));
    }
    has_dds.then_some(python)
}

/// A Python program that ends with the value.
struct Script(Child);

impl Script {
    /// Starts `program` in a domain on loopback, and waits until it prints a line.
    fn start(python: &Path, program: &str, domain: u16) -> Script {
        let configuration = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
            <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
            <Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>";
        let program = program.replace("DomainParticipant(0)", &format!("DomainParticipant({domain})"));
        let mut child = Command::new(python)
            .args(["-u", "-"])
            .env("CYCLONEDDS_URI", configuration)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(program.as_bytes()).expect("taken");
        drop(input);
        let first = BufReader::new(child.stdout.take().expect("piped")).lines().next();
        assert!(first.is_some_and(|line| line.is_ok()), "the program is ready");
        Script(child)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("killed");
    }
}

/// The echo that docs/dds.md shows, which says when it is ready.
fn documented_echo() -> String {
    let text = include_str!("../../../../docs/dds.md");
    let (_, rest) = text.split_once("```python\n").expect("a program");
    let (program, _) = rest.split_once("```").expect("its end");
    program.replace("for sample in", "print('ready')\nfor sample in")
}

#[test]
fn the_documented_echo_reflects_probes() {
    let Some(python) = python_with_dds() else { return };
    let _echo = Script::start(&python, &documented_echo(), 54);
    let home = tempfile::tempdir().expect("a temporary directory");
    let measured = ping(home.path(), "127.0.0.1", 54, "--protocol echo -n 200 --warmup 10 --timeout 5s").measured();
    expect_answered(&measured.json(), 200);
    // With a reader that asks for more than this writer offers, and the other way round.
    let refused =
        Latlab::new().line("ping 127.0.0.1 --protocol echo --transport dds --domain 54 --reliability reliable -n 5");
    refused.stdout(empty()).stderr(contains("RELIABILITY")).stderr(contains("hint: ")).failure(3);
}

#[test]
fn the_echo_sees_the_topics_and_policies_of_latlab() {
    let Some(python) = python_with_dds() else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), 55, "");
    let program = "\
import time
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsSubscription
from cyclonedds.domain import DomainParticipant
participant = DomainParticipant(0)
reader = BuiltinDataReader(participant, BuiltinTopicDcpsSubscription)
for _ in range(200):
    for found in reader.take(N=100):
        if found.topic_name.startswith('latlab'):
            print(found.topic_name, found.type_name, found.qos)
    time.sleep(0.02)
";
    let ran = Command::new(&python)
        .args(["-c", &program.replace("DomainParticipant(0)", "DomainParticipant(55)")])
        .env(
            "CYCLONEDDS_URI",
            "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
            <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
            <Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>",
        )
        .output()
        .expect("python starts");
    let seen = String::from_utf8_lossy(&ran.stdout).into_owned();
    let partition = format!("latlab/{}/reliable/*", address.replace(':', "/"));
    for part in [
        &partition,
        "latlab_probes latlab::Message",
        "latlab_keyed_probes latlab::KeyedMessage",
        "Reliable",
        "BestEffort",
        "KeepLast(depth=16)",
    ] {
        assert!(seen.contains(part), "`{part}` in {seen} {}", String::from_utf8_lossy(&ran.stderr));
    }
    counters(reflector);
}

#[test]
fn a_foreign_writer_is_counted_and_disturbs_no_sender() {
    let Some(python) = python_with_dds() else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), 56, "");
    let base = format!("latlab/{}/best-effort", address.replace(':', "/"));
    let echo = documented_echo();
    let (types, _) = echo.split_once("participant = ").expect("types and policies first");
    let program = format!(
        "{types}
import random, time
from cyclonedds.pub import Publisher
participant = DomainParticipant(0)
def writer_in(*partitions):
    publisher = Publisher(participant, qos=Qos(Policy.Partition(list(partitions))))
    return DataWriter(publisher, Topic(participant, 'latlab_probes', Message), qos=qos)
writer = writer_in('{base}/junk')
# Not a sender: answers would go to several.
other = writer_in('{base}/a', '{base}/b')
print('ready')
end = time.time() + 20
while time.time() < end:
    writer.write(Message(bytes=[random.randrange(256) for _ in range(random.randrange(100))]))
    other.write(Message(bytes=[0] * 100))
    time.sleep(0.001)
"
    );
    let _junk = Script::start(&python, &program, 56);
    let measured = ping(home.path(), &address, 56, "-n 500 -i 2ms --timeout 5s").measured();
    expect_most_answered(&measured.json(), 500);
    let counted = counters(reflector);
    for counter in ["drop-magic", "drop-type", "ignored-samples"] {
        assert!(counted.contains(counter), "{counter} in {counted}");
    }
    assert!(!counted.contains("socket-drops"), "ignored samples were not dropped at a socket: {counted}");
}

/// What does not fit into one packet has a caveat, and the default size of a stream fits.
#[test]
fn the_size_of_samples_that_fit_is_known() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let run =
        |line: &str| Latlab::at(home.path()).line(line).line("--transport dds --json --no-record").measured().json();
    for (options, most) in [("", 1_408), ("--reliability reliable --keyed", 1_372)] {
        let stream = run(&format!("stream lab -d 500ms --rate 1kpps --domain 70 {options}"));
        assert_eq!(stream["condition"]["size_bytes"], most, "{stream}");
        for (size, is_cut) in [(most, false), (most + 1, true)] {
            let ping = run(&format!("ping lab -s {size} -n 100 --domain 70 {options}"));
            assert_eq!(ping["caveats"].to_string().contains("\"fragmentation\""), is_cut, "{size}: {ping}");
        }
    }
}
