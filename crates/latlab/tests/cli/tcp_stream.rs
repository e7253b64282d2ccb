//! `latlab stream --transport tcp`: messages over connections.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Latlab, check_schema, contains, wait_until, warnings_at_most};
use crate::lab::{privileged, shaped};
use crate::scheduling::flooding;
use crate::store::{manifest, only_recording, recordings, spool_bytes};
use crate::tcp::serve_tcp;

fn stream(target: &str, line: &str) -> Latlab {
    Latlab::new().args(["stream", target, "--transport", "tcp"]).line(line)
}

#[test]
fn all_messages_arrive_in_order_with_and_without_a_rate() {
    let _flooding = flooding();
    let mut targets = vec![("local", "-4"), ("local", "-6 --flows 3")];
    if privileged() {
        targets.push(("lab", "-4"));
    }
    for (target, options) in targets {
        for rate in ["--rate 2kpps -d 600ms", "-d 400ms -s 200,20000"] {
            let line = format!("{options} {rate} --warmup 100ms --json");
            let ran = stream(target, &line).stderr(warnings_at_most()).success();
            let document = ran.json();
            let summaries = document["summaries"].as_array().cloned().unwrap_or_else(|| vec![document.clone()]);
            for summary in summaries {
                check_schema(&summary, "summary/1");
                assert_eq!(summary["condition"]["transport"], "tcp", "{target} {line}");
                assert!(summary["sent"].as_u64().is_some_and(|sent| sent > 100), "{target} {line}: {summary:#}");
                assert_eq!((&summary["sent"], &summary["lost"]), (&summary["answered"], &0.into()), "{target} {line}");
                assert_eq!((&summary["reordered"], &summary["duplicates"]), (&0.into(), &0.into()), "{target} {line}");
            }
            for recording in recordings(ran.directory()) {
                let run = &manifest(&recording)["run"];
                assert!(run["connection"]["send_segment_bytes"].as_u64().is_some_and(|bytes| bytes > 500), "{run:#}");
                assert_eq!(
                    (&run["stream"]["settled"], run["connection"]["retransmitted"].is_u64()),
                    (&true.into(), true)
                );
            }
        }
    }
}

#[test]
fn a_narrow_path_limits_its_sender_and_does_not_count_as_silence() {
    // The send buffer of the kernel lasts for seconds on such a path, and a query waits behind it.
    let Some(_inside) = shaped("tbf rate 1mbit burst 8k latency 100ms") else {
        return;
    };
    for options in ["", "-s 65507"] {
        let begin = Instant::now();
        let line = format!("-4 -d 2s --warmup 0 --json {options}");
        let json = stream("local", &line).stderr(warnings_at_most()).success().json();
        assert!(begin.elapsed() < Duration::from_secs(50), "{options}: {:?}", begin.elapsed());
        check_schema(&json, "summary/1");
        let delivered = json["rates"]["delivered_bps"].as_f64().expect("a rate");
        assert!((1e5..1.2e6).contains(&delivered), "{options}: {delivered}");
        assert_eq!((&json["sent"], &json["lost"]), (&json["answered"], &0.into()), "{options}: {json:#}");
    }
}

#[test]
fn a_stopped_target_ends_the_stream_although_its_kernel_acknowledges() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve_tcp(home.path(), "");
    let running = Latlab::at(home.path())
        .args(["stream", &address, "--transport", "tcp", "-d", "60s", "--warmup", "0"])
        .line("--rate 1kpps -s 200")
        .stderr(contains("no longer reports what arrives"))
        .start();
    wait_until("intervals were spooled", || spool_bytes(home.path()) > 64 * 10);
    reflector.signal(Signal::STOP);
    let silent = Instant::now();
    running.exits(3);
    // Four times the 5 s of docs/stream.md, and a third of what the stream would last.
    assert!(silent.elapsed() < Duration::from_secs(20), "{:?}", silent.elapsed());
    reflector.signal(Signal::CONT);
    assert_eq!(manifest(&only_recording(home.path()))["ending"], "failed");
}

#[test]
fn the_end_of_its_connection_ends_a_stream() {
    let _flooding = flooding();
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve_tcp(home.path(), "");
    let line = format!("stream {address} --transport tcp -d 300ms --warmup 0 --no-record");
    Latlab::at(home.path()).line(&line).success();
    let running = Latlab::at(home.path()).line(&format!("stream {address} --transport tcp -d 50s --warmup 0")).start();
    wait_until("the stream was under way", || spool_bytes(home.path()) > 500);
    let start = Instant::now();
    reflector.signal(Signal::KILL);
    reflector.killed_by(Signal::KILL);
    let printed = running.exits(3).stderr;
    assert!(
        printed.contains(&format!("error: the socket to `{address}` broke while measuring\n  cause: ")),
        "{printed}"
    );
    assert!(start.elapsed() < Duration::from_secs(6), "three times the 2 s of docs/stream.md");
    assert_eq!(manifest(&only_recording(home.path()))["ending"], "failed");
}
