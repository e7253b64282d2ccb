//! The hidden command `net-load`: its request, its events and its end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::command;
use crate::scheduling::precedence;

/// A child process of latlab after its request. It ends with its stdin, and is killed if it does not.
struct ChildProcess {
    child: Child,
    requests: Option<ChildStdin>,
    events: BufReader<ChildStdout>,
}

impl ChildProcess {
    fn start(name: &str, request: &Value) -> ChildProcess {
        let mut child = command().arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut requests = child.stdin.take().expect("a pipe");
        writeln!(requests, "{request}").expect("it reads");
        let events = BufReader::new(child.stdout.take().expect("a pipe"));
        ChildProcess { child, requests: Some(requests), events }
    }

    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in `{line}`"))
    }

    fn send(&mut self, word: &str) {
        writeln!(self.requests.as_mut().expect("a pipe"), "{word}").expect("it reads");
    }

    fn close_stdin(&mut self) {
        drop(self.requests.take());
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.close_stdin();
        for _ in 0..6_000 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const KEY: &str = "latlab-psk-1 000102030405060708090a0b0c0d0e0f";

fn reflector(bind: &str, key: Option<&str>) -> (ChildProcess, String) {
    let end = json!({ "wait": "block", "cpu": null, "fifo": null, "mlock": false });
    let request = json!({ "bind": bind, "end": end, "key": key, "sessions": 4, "parent": std::process::id() });
    let mut reflector = ChildProcess::start("reflector", &request);
    let address = reflector.event()["ready"]["address"].as_str().expect("an address").to_owned();
    (reflector, address)
}

fn request(peer: &str, key: Option<&str>, stream: Value) -> Value {
    let path = json!({ "family": null, "bind_address": null, "bind_interface": null, "source_port": null,
                       "dscp": null, "dont_fragment": false });
    json!({ "peer": peer, "path": path, "stream": stream, "key": key, "lasting_ns": null,
            "parent": std::process::id() })
}

fn stream(pace: Value) -> Value {
    json!({ "pace": pace, "size_bytes": null, "wire": false, "cpu": null, "spin": false })
}

/// The first and the last event of a load that is measured for `millis` ms.
fn hold(request: &Value, millis: u64) -> (Value, Value) {
    let mut load = ChildProcess::start("net-load", request);
    let begun = load.event();
    assert!(begun["begun"].is_object(), "{begun}");
    // Only the second part is measured.
    std::thread::sleep(Duration::from_millis(millis / 2));
    load.send("begin");
    std::thread::sleep(Duration::from_millis(millis));
    load.close_stdin();
    let ended = load.event();
    assert!(ended["ended"]["report"].is_object(), "{ended}");
    assert!(load.child.wait().expect("it ends").success());
    (begun["begun"].clone(), ended["ended"]["report"].clone())
}

#[test]
fn a_fixed_rate_is_sent_and_counted_over_both_address_families() {
    let _precedence = precedence();
    for (bind, key) in [("127.0.0.1:0", Some(KEY)), ("[::1]:0", None)] {
        let (_reflector, peer) = reflector(bind, key);
        let (begun, report) = hold(&request(&peer, key, stream(json!({ "kind": "rate", "bps": 4_000_000 }))), 700);
        assert_eq!((&begun["searched_bps"], &report["searched_bps"]), (&Value::Null, &Value::Null));
        assert_eq!((&report["size_bytes"], &report["offered_bps"]), (&1_400.into(), &4e6.into()));
        let count = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key} in {report}"));
        // A load that waits for a CPU gives up packets.
        assert!(count("windows") >= 3 && count("sent_packets") + count("skipped_packets") > 100, "{report}");
        assert_eq!(count("sent_packets"), count("delivered_packets") + count("lost_packets"), "{report}");
        for rate in ["sent", "delivered"] {
            let of = |key: &str| report[rate][key].as_f64().unwrap_or_else(|| panic!("{key} in {report}"));
            assert!(of("min_bps") <= of("mean_bps") && of("mean_bps") <= of("max_bps"), "{report}");
            assert!(of("mean_bps") > 1e6 && of("mean_bps") < 8e6, "{report}");
        }
    }
}

#[test]
fn a_relative_rate_is_searched_for_and_max_is_not() {
    let _precedence = precedence();
    let (_reflector, peer) = reflector("127.0.0.1:0", None);
    let (begun, report) = hold(&request(&peer, None, stream(json!({ "kind": "share", "share": 0.1 }))), 300);
    let searched = begun["searched_bps"].as_f64().expect("searched for");
    assert!(searched > 0.0 && report["search_trials"].as_u64() > Some(0), "{report}");
    assert_eq!(report["searched_bps"].as_f64(), Some(searched));
    let offered = report["offered_bps"].as_f64().expect("a rate");
    assert!((offered / searched - 0.1).abs() < 1e-6, "{report}");

    let (_, report) = hold(&request(&peer, None, stream(json!({ "kind": "max" }))), 1_000);
    assert!(report["socket_drops"].is_u64(), "Linux tells: {report}");
    assert!(report["offered_bps"].is_null() && report["sent_packets"].as_u64() > Some(1_000), "{report}");
}

#[test]
fn a_load_that_cannot_begin_reports_the_reason() {
    // A bound port that does not answer.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("bound").to_string();
    let (_reflector, peer) = reflector("127.0.0.1:0", Some(KEY));
    let pace = json!({ "kind": "max" });
    let absent = json!({ "pace": pace, "size_bytes": null, "wire": false, "cpu": 1_022, "spin": false });
    for (request, message) in [
        (request(&silent, None, stream(pace.clone())), "no answer from"),
        (request(&peer, None, stream(pace.clone())), "asks for a pre-shared key"),
        (request(&peer, Some(KEY), absent), "`1022`"),
    ] {
        let mut load = ChildProcess::start("net-load", &request);
        let events = load.event();
        let refused = &events["refused"];
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(message)), "{events}");
        assert!(refused["cause"].is_string() && refused["hint"].is_string(), "{events}");
        assert_eq!(load.child.wait().expect("it ends").code(), Some(1));
    }
}
