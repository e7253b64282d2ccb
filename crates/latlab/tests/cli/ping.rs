//! `latlab ping` on this host: schedules, sizes, ports, recordings, summaries, failed sends and socket drops.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, check_schema, contains, empty, lacks, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::scheduling::flooding;
use crate::serve::serve;
use crate::skip::ipv6;
use crate::store::{due_gaps_ns, manifest, only_recording, open, recordings, recordings_in, spool_bytes};

/// The summary that `line --json` prints, checked against its schema.
#[track_caller]
fn summary(line: &str) -> (Value, crate::harness::Finished) {
    let ran = Latlab::new().line(line).args(["--json"]).stderr(warnings_at_most()).measured();
    let document = ran.json();
    check_schema(&document, "summary/1");
    (document, ran)
}

#[test]
fn a_closed_loop_records_every_probe() {
    let ran = Latlab::new()
        .line("ping -n 50 --warmup 5")
        .stdout(contains("64 B · closed loop · 50 probes"))
        .stdout(contains("n 50 · lost 0"))
        .stdout(contains("bars are logarithmic"))
        .stdout(lacks("authenticated"))
        .stdout(lacks("\u{1b}"))
        .stderr(empty())
        .success();
    let recording = only_recording(ran.directory());
    let name = recording.file_name().expect("it has one").to_string_lossy().into_owned();
    assert!(name.contains("Z-ping-") && ran.stdout.contains(&name), "{name} in\n{}", ran.stdout);
    let (manifest, rows) = open(&recording);
    assert_eq!((rows.len(), manifest.rows), (55, Some(55)));
    assert_eq!(rows.iter().filter(|row| row.phase == latlab::probe::Phase::Measure).count(), 50);
    assert!(rows.iter().all(|row| row.due.is_none() && row.reflector_received.is_some()));
}

#[test]
fn the_first_of_count_and_duration_ends_the_run() {
    let start = Instant::now();
    let (document, _) = summary("ping -d 300ms --warmup 0");
    assert!(start.elapsed() >= Duration::from_millis(300), "it ended early");
    let count = |key: &str| document[key].as_u64().expect(key);
    assert!(count("sent") > 0);
    assert_eq!(count("sent"), count("answered") + count("late") + count("lost"));
    let (document, _) = summary("ping -d 50s -n 7 --warmup 0");
    assert_eq!(document["sent"], 7);
    let (document, _) = summary("ping -d 40ms -n 1000000 -i 10ms --warmup 0");
    assert_eq!(document["sent"], 4, "due at 0, 10, 20 and 30 ms");
}

#[test]
fn a_schedule_records_due_times_and_reports_response_time() {
    let (document, ran) = summary("ping -n 20 -i 2ms --warmup 3");
    assert_eq!(document["condition"]["schedule"], "periodic");
    assert_eq!(document["condition"]["interval_ns"], 2_000_000);
    for metric in ["round_trip_delay", "response_time", "send_slip"] {
        assert_eq!(document["metrics"][metric]["n"], 20, "{metric}");
    }
    let recording = only_recording(ran.directory());
    assert_eq!(due_gaps_ns(&recording), [2_000_000; 19]);
    assert!(open(&recording).1.iter().all(|row| row.due <= row.sent));
    Latlab::at(ran.directory())
        .line("ping -n 20 -i 2ms --warmup 0")
        .stdout(contains("response time"))
        .stdout(contains("send slip"))
        .measured();
}

#[test]
fn the_seed_of_a_poisson_schedule_determines_its_gaps() {
    let gaps = |options: &str| {
        let (document, ran) = summary(&format!("ping -n 30 -i 500us --poisson --warmup 0 {options}"));
        assert_eq!(document["condition"]["schedule"], "poisson");
        let recording = only_recording(ran.directory());
        let seed = manifest(&recording)["spec"]["work"]["schedule"]["seed"].as_u64().expect("it is recorded");
        (due_gaps_ns(&recording), seed)
    };
    let (first, seed) = gaps("--seed 7");
    assert_eq!((gaps("--seed 7").0, seed), (first.clone(), 7));
    assert_ne!(gaps("--seed 8").0, first);
    let (fresh, seed) = gaps("");
    assert_eq!(gaps(&format!("--seed {seed}")).0, fresh, "a run is repeated by the seed that it recorded");
}

#[test]
fn both_address_families_are_measured() {
    let (_, ran) = summary("ping -4 -n 5 --warmup 0");
    let peer =
        |ran: &crate::harness::Finished| manifest(&only_recording(ran.directory()))["run"]["peer_address"].to_string();
    assert!(peer(&ran).starts_with("\"127.0.0.1:"));
    if !ipv6() {
        return;
    }
    let (_, ran) = summary("ping -6 -n 5 --warmup 0");
    assert!(peer(&ran).starts_with("\"[::1]:"));
}

#[test]
fn each_of_several_sizes_has_a_recording() {
    let ran = Latlab::new().line("ping -s 24,64,1024 -n 20 --warmup 2").stderr(empty()).success();
    let recorded = recordings(ran.directory());
    assert_eq!(recorded.len(), 3);
    for label in ["24 B", "64 B", "1,024 B"] {
        let rows = ran.stdout.lines().filter(|row| row.trim_start().starts_with(label)).count();
        assert!(rows >= 1, "{label} in\n{}", ran.stdout);
    }
    let mut sizes: Vec<_> =
        recorded.iter().map(|path| manifest(path)["condition"]["size_bytes"].as_u64().expect("a size")).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [24, 64, 1024]);
    for path in &recorded {
        let (manifest, rows) = open(path);
        let size = manifest.spec.size_bytes().expect("a size");
        assert!(rows.len() == 22 && rows.iter().all(|row| row.size_bytes == size), "{size}");
    }

    let ran = Latlab::new().line("ping -s 24,8192 -n 5 --warmup 0 --json").stderr(warnings_at_most()).success();
    let document = ran.json();
    check_schema(&document, "summaries/1");
    let sizes: Vec<_> = document["summaries"].as_array().expect("a list").iter().collect();
    assert_eq!(sizes.len(), 2);
    let again =
        Latlab::at(ran.directory()).args(["summary", "--json"]).args(sizes.iter().map(|one| text(&one["recording"])));
    assert_eq!(again.success().stdout, ran.stdout);
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn a_sweep_of_source_ports_has_sixteen_runs() {
    let ran =
        Latlab::new().line("ping --source-port sweep -n 4 --warmup 0 --json").stderr(warnings_at_most()).success();
    let document = ran.json();
    check_schema(&document, "summaries/1");
    let summaries = document["summaries"].as_array().expect("a list");
    let ports: Vec<_> =
        summaries.iter().map(|one| one["condition"]["source_port"].as_u64().expect("asked for")).collect();
    assert_eq!(ports, (30_000..30_016).collect::<Vec<_>>());
    for recording in recordings(ran.directory()) {
        let manifest = manifest(&recording);
        let local = text(&manifest["run"]["local_address"]);
        assert!(local.ends_with(&format!(":{}", manifest["condition"]["source_port"])), "{local}");
    }
}

#[test]
fn a_run_without_a_recording_leaves_no_file() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let line = "ping -n 5 --warmup 0 --no-record";
    let ran = Latlab::new()
        .line(line)
        .environment("TMPDIR", scratch.path())
        .stdout(contains("recording    not kept"))
        .stderr(empty())
        .success();
    assert_eq!((recordings_in(ran.directory()).len(), recordings_in(scratch.path()).len()), (0, 0));
    let ran = Latlab::new().line(line).args(["--json"]).environment("TMPDIR", scratch.path()).success();
    check_schema(&ran.json(), "summary/1");
    assert_eq!(ran.json()["recording"], Value::Null);
    assert_eq!(recordings_in(scratch.path()).len(), 0);
}

#[test]
fn output_store_and_environment_select_the_place_of_the_recording() {
    let ran = Latlab::new().line("ping -n 5 --warmup 0 -o here/there").success();
    assert_eq!(manifest(&ran.directory().join("here/there"))["ending"], "completed");
    assert!(recordings(ran.directory()).is_empty());
    let ran = Latlab::new().line("ping -n 5 --warmup 0 -s 64,65 -o both").success();
    assert_eq!(recordings_in(&ran.directory().join("both")).len(), 2);
    let ran = Latlab::new().line("ping -n 5 --warmup 0").environment("LATLAB_STORE", "from-environment").success();
    assert_eq!(recordings_in(&ran.directory().join("from-environment")).len(), 1);
    let asked = Latlab::new().line("ping -n 5 --warmup 0 --store asked").environment("LATLAB_STORE", "not-asked");
    let ran = asked.success();
    assert_eq!(recordings_in(&ran.directory().join("asked")).len(), 1);
    assert!(!ran.directory().join("not-asked").exists());
}

#[test]
fn an_existing_output_is_refused_before_a_datagram_is_sent() {
    let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    target.set_nonblocking(true).expect("a socket of our own");
    let address = target.local_addr().expect("bound").to_string();
    for (sizes, there) in [("64", "taken"), ("64,65", "taken"), ("64", "taken/below")] {
        Latlab::new()
            .file("taken", "something")
            .args(["ping", &address, "-n", "5", "-s", sizes, "-o", there])
            .stdout(empty())
            .stderr(contains("`taken"))
            .stderr(contains("\n  hint: "))
            .failure(2);
    }
    let received = target.recv(&mut [0; 2048]).map_err(|error| error.kind());
    assert_eq!(received, Err(std::io::ErrorKind::WouldBlock), "something was sent");
}

#[test]
fn an_unavailable_cpu_or_interface_is_refused_before_the_run() {
    for (line, message) in [
        ("--cpu 1023", "cannot run on CPU `1023`"),
        ("--peer-cpu 1023", "cannot run on CPU `1023`"),
        ("--bind nosuchdevice0", "cannot send through the interface `nosuchdevice0`"),
        ("--bind 192.0.2.77", "`192.0.2.77"),
    ] {
        let lab = Latlab::new().line("ping -n 5 --warmup 0").line(line).stdout(empty()).stderr(contains(message));
        let ran = lab.stderr(contains("\n  cause: ")).stderr(contains("\n  hint: ")).failure(3);
        assert!(recordings(ran.directory()).is_empty(), "{line} left a recording of nothing");
    }
}

#[test]
fn the_summary_of_a_recording_equals_that_of_its_run() {
    let options = "--half --window 10ms --deadline 1ms --quantiles 0.25,0.5,0.75 --tag build=7 --tag rack=b";
    for schedule in ["", "-i 1ms"] {
        let (document, ran) = summary(&format!("ping -n 40 --warmup 2 {schedule} {options}"));
        let recording = text(&document["recording"]);
        let again =
            Latlab::at(ran.directory()).args(["summary", &recording, "--json"]).stderr(warnings_at_most()).measured();
        assert_eq!(again.stdout, ran.stdout);
        let shown = Latlab::new().line(&format!("ping -n 40 --warmup 2 {schedule} {options}")).measured();
        let path = only_recording(shown.directory());
        let name = format!("./latlab-runs/{}", path.file_name().expect("it has one").to_string_lossy());
        let again = Latlab::at(shown.directory()).args(["summary", &name]).stderr(empty()).measured();
        assert_eq!(again.stdout, shown.stdout);
    }
}

#[test]
fn a_closed_stdout_of_ping_is_not_an_error_and_a_full_disk_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = |stdout: Stdio| {
        let mut command = Command::new(BINARY);
        command.args(["ping", "-n", "5", "--warmup", "0"]).current_dir(directory.path());
        let output = command.stdout(stdout).stderr(Stdio::piped()).output().expect("the binary was built");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(run(writer.into()), (Some(0), String::new()));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let (code, printed) = run(full.into());
    assert!(code == Some(3) && printed.contains("hint: "), "{printed}");
    assert_eq!(recordings(directory.path()).len(), 2, "the recordings are kept");
}

/// The caveat `code` of `document` whose message contains `text`.
#[track_caller]
fn caveat<'a>(document: &'a Value, code: &str, text: &str) -> &'a Value {
    let caveats = document["caveats"].as_array().expect("a list");
    let found = caveats.iter().find(|caveat| {
        caveat["code"] == code && caveat["message"].as_str().is_some_and(|message| message.contains(text))
    });
    found.unwrap_or_else(|| panic!("no `{code}` with `{text}` in {caveats:#?}"))
}

#[test]
fn drops_of_the_reflectors_socket_are_reported_at_both_ends() {
    let _flooding = flooding();
    const EVENT_BYTES: u64 = 64;
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), "");
    // A receive buffer of 8 MiB (root) holds 125 datagrams of 60,000 bytes, one without rights about three.
    let line = "-s 60000 -i 1ms -n 2500 --warmup 0 --timeout 10s --json";
    let running = Latlab::at(home.path()).args(["ping", &address]).line(line).start();
    wait_until("probes were on their way", || spool_bytes(home.path()) > 100 * EVENT_BYTES);
    reflector.signal(Signal::STOP);
    let before = spool_bytes(home.path());
    wait_until("the events before the stop were spooled", || spool_bytes(home.path()) > before);
    let stopped = spool_bytes(home.path());
    wait_until("more probes left than a socket holds", || spool_bytes(home.path()) > stopped + 400 * EVENT_BYTES);
    reflector.signal(Signal::CONT);
    let ran = running.exits(4);
    let summary = ran.json();
    check_schema(&summary, "summary/1");

    let run = &manifest(&only_recording(home.path()))["run"];
    let drops = run["reflector"]["socket_drops"].as_u64().expect("Linux tells");
    let lost = summary["lost"].as_u64().expect("a number");
    assert!(drops >= 200, "400 left while it stood still, and {drops} were dropped");
    assert_eq!(lost, drops + run["socket_drops"].as_u64().expect("Linux tells"), "nothing else is lost on loopback");
    let printed = caveat(&summary, "socket-drops", "the reflector's own socket dropped");
    assert_eq!(printed["severity"], "fatal", "{printed}");

    reflector.signal(Signal::INT);
    let printed = reflector.exits(0).stderr;
    assert!(printed.contains(&format!("socket-drops {drops}")), "rule R8 of docs/protocol.md: {printed}");
}

#[test]
fn a_run_whose_sends_all_fail_reports_the_error_of_the_kernel() {
    if !privileged() {
        return;
    }
    // The MTU of `lab` is 1,500 bytes; the session opens with smaller datagrams.
    let line = "ping lab -s 2000 --df -n 20 --warmup 5";
    let lab = Latlab::new().line(line).stdout(contains("send failed 20")).stdout(contains("\npauses "));
    let lab = lab.stderr(contains("error: no probe was answered by `lab`\n"));
    let lab = lab.stderr(contains("\n  cause: the kernel refused to send all 20 of them\n"));
    lab.stderr(contains("\n  hint: the warning `send-failed` has the reason and the remedy\n")).failure(3);

    let ran = Latlab::new().line(line).arg("--json").failure(3);
    let summary = ran.json();
    check_schema(&summary, "summary/1");
    let counts = ["sent", "send_failed", "lost", "timed_out_ns"].map(|key| summary[key].as_u64().expect(key));
    assert_eq!(counts, [0, 20, 0, 0]);
    let paused = summary["refused_pause_ns"].as_u64().expect("a number");
    assert!(paused >= 20_000_000, "1 ms after each of 20, and none of the warm-up's: {paused} ns");
    assert_eq!(manifest(&only_recording(ran.directory()))["run"]["refused_pause_ns"], paused);
    let failed = caveat(&summary, "send-failed", "the kernel refused 20 of 20 probes, mostly with: ");
    assert!(
        failed["message"]
            .as_str()
            .is_some_and(|printed| printed.contains("EMSGSIZE") && printed.contains("; the sender paused"))
    );
    assert_eq!(caveat(&summary, "no-answer", "none of 20")["hint"], "the other caveats say why no probe was sent");
    assert!(ran.stderr.contains("mostly with: "), "warnings are also for people: {}", ran.stderr);
}

#[test]
fn a_ping_ends_with_the_result_of_its_gates() {
    let ping = |options: &str| Latlab::new().line("ping -n 100 --warmup 0 --no-record").line(options);
    let kept = ping("--json").args(["--gate", "max <= 10s", "--gate", "loss_ratio <= 100%"]).success().json();
    check_schema(&kept, "summary/1");
    for gate in kept["gates"].as_array().expect("a list") {
        assert!(gate["state"] == "kept" && gate["value"].is_number() && gate["reason"].is_null(), "{gate}");
    }
    ping("").args(["--gate", "max <= 10s"]).stdout(contains("\ngate `max <= 10s` met: ")).success();
    ping("").args(["--gate", "min <= 1ns"]).stdout(contains("\ngate `min <= 1ns` failed: ")).failure(1);
    let undecided = || ping("").args(["--gate", "p99.9 <= 10s"]).stdout(contains("\ngate `p99.9 <= 10s` undecided: "));
    undecided().stderr(contains("warning: the gate `p99.9 <= 10s` is undecided")).success();
    undecided().arg("--gate-strict").failure(1);
    let one = Latlab::new().line("ping -n 1 --warmup 0 --no-record --gate").arg("stddev <= 10s");
    one.stdout(contains("there is no value")).failure(1);
    let sizes = ping("-s 64,128").args(["--gate", "max <= 10s"]).stdout(contains("met for `64 B`: "));
    sizes.stdout(contains("met for `128 B`: ")).success();
    for (line, limit) in [("stream --rate 2kpps -d 500ms", "mean >= 1Tbit/s"), ("wakeup -i 1ms -n 30", "max <= 1ns")] {
        let lab = Latlab::new().line(line).line("--warmup 0 --no-record --gate").arg(limit);
        lab.stdout(contains(format!("gate `{limit}` failed: "))).failure(1);
    }
}

#[test]
fn a_silent_target_breaks_gates_and_one_that_refuses_does_not() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = deaf.local_addr().expect("bound");
    let ping = |line: &str| Latlab::new().line(&format!("ping {line} -n 3 --timeout 10ms --warmup 0 --no-record"));
    let gate = ["--gate", "p50 <= 10s"];
    for (line, gated, plain) in [(format!("{address}"), 1, 3), ("127.0.0.1:9".into(), 3, 3)] {
        ping(&line).args(gate).stderr(contains("error: ")).failure(gated);
        ping(&line).stderr(contains("error: ")).failure(plain);
    }
}
