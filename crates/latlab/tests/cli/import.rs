//! `latlab import`: logs of other tools become recordings that every later command takes; what cannot be one is refused with
//! its line, and nothing remains of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Finished, Latlab, check_schema, contains, empty, lacks, wait_until};
use crate::skip;

/// Numbers in a column, as latlab sees the log of the course project: ids padded with blanks, seconds with nine decimals.
const ROUND_TRIPS: &str = "id,roundtrip_time [s]\n       0,0.000296000\n       1,0.000301500\n       2,0.000287250\n";

/// Imports `text` as the file `log`, with the further arguments of `line`.
pub(crate) fn importing(text: impl AsRef<[u8]>, line: &str) -> Latlab {
    Latlab::new().file("log", text).line("import log --store s").line(line)
}

/// The summary of the only recording in the store `s`.
#[track_caller]
pub(crate) fn summary(of: &Finished) -> Value {
    let document = Latlab::at(of.directory()).line("summary s --json").success().json();
    check_schema(&document, "summary/1");
    document
}

fn codes(summary: &Value) -> Vec<&str> {
    let caveats = summary["caveats"].as_array().expect("a list");
    caveats.iter().map(|caveat| caveat["code"].as_str().expect("a code")).collect()
}

fn quantile(metric: &Value, q: f64) -> &Value {
    let quantiles = metric["quantiles"].as_array().expect("a list");
    quantiles.iter().find(|one| one["q"] == q).expect("a quantile")
}

#[test]
fn a_column_of_round_trips_becomes_a_recording_of_values() {
    let ran = importing(ROUND_TRIPS, "--tag path=wifi --json").stderr(empty()).success();
    let document = ran.json();
    check_schema(&document, "import/1");
    assert_eq!((&document["format"], &document["rows"], &document["skipped"]), (&"csv".into(), &3.into(), &0.into()));
    let summary = summary(&ran);
    assert_eq!((&summary["kind"], &summary["sent"], &summary["lost"]), (&"values".into(), &3.into(), &Value::Null));
    assert_eq!((&summary["duration_ns"], &summary["duplicates"]), (&Value::Null, &Value::Null));
    let metric = &summary["metrics"]["round_trip_delay"];
    assert_eq!((&metric["min"], &metric["max"], &metric["n"]), (&287_250.into(), &301_500.into(), &3.into()));
    assert_eq!(quantile(metric, 0.5)["value"], 296_000.0);
    assert_eq!(summary["condition"]["tags"]["path"], "wifi");
    assert!(summary["condition"].get("transport").is_none() && summary["condition"]["schedule"] == "unknown");
    let text = importing(ROUND_TRIPS, "").success().stdout;
    let expected = "imported 3 values of round trip delay from `log` (CSV file with a column of values)\nrecording s/";
    assert!(text.starts_with(expected), "{text}");
    let of_directory = Latlab::at(ran.directory()).line("summary s").success();
    assert!(of_directory.stdout.starts_with("values log of csv\n"), "{}", of_directory.stdout);
}

#[test]
fn four_times_become_probes_with_the_dwell_of_the_reflector() {
    let log = "0 1000 5000 5300 251000\n1 2001000 7005000 7005900 2241000\n4 3001000 9005000 9005500 3301000\n";
    let ran = importing(log, "").success();
    let summary = summary(&ran);
    assert_eq!((&summary["kind"], &summary["answered"]), (&"ping".into(), &3.into()));
    let figures = |name: &str| {
        let metric = &summary["metrics"][name];
        ["min", "max"].map(|figure| metric[figure].as_i64().expect("a figure"))
    };
    assert_eq!(figures("round_trip_delay"), [240_000, 300_000]);
    assert_eq!(figures("reflector_dwell"), [300, 900]);
    assert_eq!(figures("round_trip_delay_less_dwell"), [239_100, 299_500]);
    assert!(codes(&summary).contains(&"irregular-ids"), "{:?}", codes(&summary));
}

#[test]
fn later_commands_take_an_imported_recording() {
    let numbers = |first: u32| (0..400).map(|row| format!("{}\n", first + row * 7 % 40)).collect::<String>();
    let lab = importing(numbers(100), "--unit us --tag build=a").success();
    let at = |line: &str| Latlab::at(lab.directory()).line(line);
    for build in ["a", "a", "a", "a", "b", "b", "b", "b", "b"] {
        let first = if build == "a" { 100 } else { 200 };
        at("import again --store s --unit us")
            .line(&format!("--tag build={build}"))
            .file("again", numbers(first))
            .success();
    }
    let compared = at("compare --by tag:build s --json").success().json();
    let p50 = compared["comparisons"].as_array().expect("a list").iter().find(|row| row["statistic"] == "p50");
    let p50 = p50.expect("a row of p50");
    assert_eq!((&p50["metric"], &p50["verdict"]), (&"delay".into(), &"higher".into()), "{p50:#}");
    let difference = p50["difference"]["value"].as_f64().expect("a difference");
    assert!((difference - 100_000.0).abs() < 1e-6, "{difference}");
    let listed = at("list --store s --kind values").success().stdout;
    assert!(listed.contains("values") && listed.contains("log of numbers"), "{listed}");
    at("report s -o page.html").success();
    let page = fs::read_to_string(lab.directory().join("page.html")).expect("a page");
    assert!(page.contains("data-figure=\"tail\"") && page.contains("log of numbers"));
    at("summary s --plot").stdout(contains("delay")).success();
    at("summary s --gate").arg("p50 <= 1ms").success();
    at("compare --by tag:build s --gate").arg("p50 <= +5%").failure(1);
}

#[test]
fn losses_counts_and_unknown_order_are_kept() {
    let histogram = "# Histogram\n000010 000500\n000012 000499\n000400 000001\n# Total: 000001000\n# Min Latencies: 00010\n\
                     # Avg Latencies: 00011\n# Max Latencies: 00400\n# Histogram Overflows: 00000\n";
    let ran = importing(histogram, "").success();
    let summary_of_histogram = summary(&ran);
    let metric = &summary_of_histogram["metrics"]["wakeup_latency"];
    assert_eq!((&metric["n"], &metric["max"], &metric["effective_n"]), (&1_000.into(), &400_000.into(), &Value::Null));
    assert!(quantile(metric, 0.9)["low"].is_null() && quantile(metric, 0.9)["supported"] == true, "{metric:#}");
    assert!(codes(&summary_of_histogram).contains(&"values-unordered"));

    let ping = "PING 10.0.0.7 (10.0.0.7) 56(84) bytes of data.\n\
                [1700000000.100000] 64 bytes from 10.0.0.7: icmp_seq=1 ttl=64 time=0.250 ms\n\
                [1700000000.300000] 64 bytes from 10.0.0.7: icmp_seq=3 ttl=64 time=0.350 ms\n\n\
                --- 10.0.0.7 ping statistics ---\n\
                4 packets transmitted, 2 received, 50% packet loss, time 3003ms\n\
                rtt min/avg/max/mdev = 0.250/0.300/0.350/0.050 ms\n";
    let summary_of_ping = summary(&importing(ping, "").success());
    assert_eq!((&summary_of_ping["sent"], &summary_of_ping["lost"]), (&4.into(), &2.into()));
    assert_eq!(summary_of_ping["started_at"], "2023-11-14T22:13:20.100Z");
    assert_eq!(quantile(&summary_of_ping["metrics"]["round_trip_delay"], 0.9)["reason"], "lost");
}

#[test]
fn rows_that_are_missing_in_a_log_with_losses_make_its_losses_unknown() {
    let trip = |seqno: u32, lost: bool| {
        let received = if lost { String::new() } else { format!("\"wall\": {}", 2_000 + seqno) };
        format!(
            r#"{{ "seqno": {seqno}, "lost": "{lost}", "timestamps": {{ "client": {{
                "send": {{ "wall": {} }}, "receive": {{ {received} }} }} }} }}"#,
            1_000 + seqno
        )
    };
    for (numbers, sent, is_missing, is_known) in [
        ([0, 1, 2], 3, false, true),
        ([0, 1, 7], 8, true, false),
        ([1, 2, 3], 4, false, false),
        ([0, 1, 2], 9, false, false),
    ] {
        let trips = numbers.map(|seqno| trip(seqno, seqno == 1)).join(", ");
        let log = format!("{{ \"stats\": {{ \"packets_sent\": {sent} }}, \"round_trips\": [{trips}] }}");
        let summary = summary(&importing(log, "--from irtt").success());
        assert_eq!(codes(&summary).contains(&"irregular-ids"), is_missing, "{:?}", codes(&summary));
        let (lost, ratio) = if is_known { (1.into(), (1.0 / 3.0).into()) } else { (Value::Null, Value::Null) };
        assert_eq!((&summary["lost"], &summary["ratios"]["loss_ratio"]), (&lost, &ratio), "{numbers:?} of {sent}");
    }
}

#[test]
fn what_a_log_does_not_state_is_null_and_gates_on_it_are_refused() {
    let ran = importing("100\n110\n105\n", "--unit us").success();
    let summary = summary(&ran);
    for key in ["lost", "late", "send_failed", "not_sent", "duplicates", "reordered", "timed_out_ns", "duration_ns"] {
        assert_eq!(summary[key], Value::Null, "{key}");
    }
    assert_eq!(summary["ratios"]["loss_ratio"], Value::Null);
    let at = |line: &str| Latlab::at(ran.directory()).line(line);
    at("summary s --gate").arg("loss_ratio <= 0").stderr(contains("the imported log does not have")).failure(2);
    at("summary s --gate").arg("delay p50 <= 1ms").success();
    at("report s -o page.html").success();
    let page = fs::read_to_string(ran.directory().join("page.html")).expect("a page");
    assert!(!page.contains("without a loss") && !page.contains("none was lost"), "losses are unknown");
}

#[test]
fn a_bad_line_imports_nothing_unless_it_may_be_skipped() {
    let log = format!("{ROUND_TRIPS}       3,0.00x\n");
    let ran = importing(&log, "")
        .stderr(contains("cannot import `log`"))
        .stderr(contains("line 5, column 10: `0.00x` is not a number"))
        .stderr(contains("--skip-bad"))
        .failure(2);
    assert_eq!(fs::read_dir(ran.directory().join("s")).expect("a store").count(), 0, "something remains");
    let ran = importing(&log, "--skip-bad --json").success();
    assert_eq!((&ran.json()["rows"], &ran.json()["skipped"]), (&3.into(), &1.into()));
    let summary = summary(&ran);
    let skipped = &summary["caveats"].as_array().expect("a list")[0];
    assert_eq!(skipped["code"], "skipped-lines");
    assert!(skipped["message"].as_str().is_some_and(|text| text.contains("line 5, column 10")), "{skipped}");
}

#[test]
fn what_is_not_a_log_is_refused_with_the_reason() {
    let long = [b"1\n".as_slice(), &vec![b'7'; 3 << 20]].concat();
    for (text, line, cause) in [
        (&b""[..], "", "it is empty"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "", "compressed by gzip"),
        (&long, "--unit us", "a line has more than 1048576 bytes"),
        (b"1\n2\n", "", "unit"),
        (b"0,5\n0,6\n", "--unit ms", "`--from numbers` reads decimal commas"),
        (b"12.5\nhello\n7\n", "--unit us --from numbers", "line 2, column 1: `hello` is not a number"),
        (b"dear diary\nit was late\n", "", "its format is unknown"),
        (b"1.5\n0,5\n0,6\n", "--unit ms", "decimals need a point, not a comma"),
        (b"5\ninf\n6\n", "--unit us", "`--lost 'inf'`"),
        (
            b"sockperf: ---> percentile 50.000 =   10.011\nsockperf: ---> <MIN> observation =    8.493\n",
            "",
            "--full-log",
        ),
        (b"1 2 3 4 5\n1,2,3\n", "", "line 2"),
    ] {
        let ran = importing(text, line).stdout(empty()).stderr(contains(cause)).failure(2);
        assert!(
            !ran.directory().join("s").exists()
                || fs::read_dir(ran.directory().join("s")).expect("a store").count() == 0,
            "{cause}"
        );
    }
}

#[test]
fn columns_counts_and_losses_are_read_as_they_are_stated() {
    for (text, line, sent, lost, min, max) in [
        ("id,rtt_ms\n1,1.5\n2,\n3,2.5\n", "", 3, Value::from(1), 1_500_000, 2_500_000),
        ("t,ms\n1,5\n2,gone\n3,-7\n", "--lost gone --column ms", 3, Value::from(1), -7_000_000, 5_000_000),
        ("a b,OK,20.4,38.5\na c,OK,21.4,39.5\n", "--column 3 --unit ms", 2, Value::Null, 20_400_000, 21_400_000),
        ("time,core1\n0,0\n1,0\n2,4\n3,1\n", "--count-column core1 --unit us", 5, Value::Null, 2_000, 3_000),
        ("Time;RTT (ms)\n0,000;12,5\n1,000;13,75\n", "", 2, Value::Null, 12_500_000, 13_750_000),
        ("1 0.5\n2 0.7\n", "--column 2 --unit ms", 2, Value::Null, 500_000, 700_000),
    ] {
        let found = summary(&importing(text, line).success());
        let metric = found["metrics"].as_object().and_then(|all| all.values().next()).expect("a metric");
        assert_eq!((&found["sent"], &found["lost"]), (&sent.into(), &lost), "{text}");
        assert_eq!((&metric["min"], &metric["max"]), (&min.into(), &max.into()), "{text}");
    }
    let ran = importing("id,rtt_ms\n1,1.5\n2,\n3,2.5\n", "").success();
    assert_eq!(quantile(&summary(&ran)["metrics"]["round_trip_delay"], 0.9)["reason"], "lost");
    let thousands = importing("seq,latency_us\n1,999.5\n2,998.0\n3,\"1,234.5\"\n", "").stderr(lacks("--skip-bad"));
    thousands.stderr(contains("`1,234.5` has separators of thousands")).failure(2);
}

#[test]
fn logs_in_utf_16_are_read_as_those_in_utf_8() {
    let rows: String = (0..20_000).map(|id| format!("{id},0.000{:06}\r\n", 287_250 + id)).collect();
    let text = format!("\u{feff}id,roundtrip_time [s]\r\n{rows}");
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
        let found = summary(&importing(&bytes, "").success());
        assert_eq!(found["sent"], 20_000);
        assert_eq!(found["metrics"]["round_trip_delay"]["max"], 307_249);
        let ran = Latlab::new().file("log", bytes).args(["check-published", "log", "--claims", "n=20000 min=287.25us"]);
        ran.success();
    }
}

#[test]
fn wrong_requests_name_the_option() {
    for (line, text) in [
        ("import log --from sokperf", "did you mean `sockperf`"),
        ("import log --unit minutes", "`--unit`"),
        ("import log --metric loss", "`--metric`"),
        ("import log --direction up", "`--direction`"),
        ("import log --tag x", "`--tag`"),
        ("import missing", "no such file"),
        ("import .", "a directory"),
        ("import log -o log", "it exists already"),
    ] {
        Latlab::new().file("log", "1\n").line(line).stderr(contains(text)).failure(2);
    }
}

#[test]
fn logs_come_from_pipes_links_and_with_a_byte_order_mark() {
    let marked = format!("\u{feff}{ROUND_TRIPS}");
    let ran = Latlab::new()
        .file("log", marked.replace('\n', "\r\n"))
        .stdin("log")
        .line("import - --store s --json")
        .success();
    assert_eq!(ran.json()["rows"], 3);
    let linked = Latlab::new().file("log", ROUND_TRIPS);
    symlink("log", linked.path("link")).expect("linked");
    linked.line("import link -o out").success();
}

#[test]
fn an_interrupted_import_leaves_nothing_and_a_killed_one_is_not_listed() {
    for (signal, remains) in [(Signal::INT, 0), (Signal::KILL, 1)] {
        let lab = tempfile::tempdir().expect("a temporary directory");
        let status = Command::new("mkfifo").arg(lab.path().join("fifo")).status().expect("mkfifo starts");
        assert!(status.success());
        let running = Latlab::at(lab.path()).line("import fifo --unit us --store s").start();
        let mut writer = fs::OpenOptions::new().write(true).open(lab.path().join("fifo")).expect("opens");
        // More than the head by which the format is found.
        writer.write_all("12\n".repeat(200_000).as_bytes()).expect("written");
        let store = lab.path().join("s");
        let entries = || fs::read_dir(&store).map_or(0, Iterator::count);
        wait_until("the import begins", || entries() == 1);
        match signal {
            Signal::INT => {
                running.signal(signal);
                let ran = running.exits(130);
                assert!(ran.stderr.contains("nothing was imported") && ran.stdout.is_empty(), "{}", ran.stderr);
            }
            _ => {
                running.signal(signal);
                running.killed_by(signal);
            }
        }
        drop(writer);
        assert_eq!(entries(), remains, "{signal:?}");
        assert!(
            Latlab::at(lab.path()).line("list --store s --json").success().json()["recordings"]
                .as_array()
                .is_none_or(Vec::is_empty)
        );
    }
}

/// A server for a client of the test. It is killed when the value is dropped.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Server {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(quiet.spawn().expect("the server starts"));
        std::thread::sleep(Duration::from_millis(500));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Runs `program` with the words of `line` in `directory`, and returns its standard output.
#[track_caller]
fn output_of(directory: &std::path::Path, program: &str, line: &str) -> Vec<u8> {
    let ran = Command::new(program).args(line.split_whitespace()).current_dir(directory).output().expect("it starts");
    assert!(ran.status.success(), "{program} {line}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

/// A free port of loopback; another program may take it before it is used.
fn free_port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

#[test]
fn logs_that_ping_and_cyclictest_write_here_are_imported() {
    if !skip::programs(&["ping", "busybox", "cyclictest"]) {
        return;
    }
    let lab = Latlab::new();
    let directory = lab.path("");
    for (name, program, line, format, rows) in [
        ("ping", "ping", "-D -c 20 -i 0.01 127.0.0.1", "ping", 20),
        ("busybox", "busybox", "ping -c 20 -i 0.05 127.0.0.1", "ping", 20),
        ("verbose", "cyclictest", "-v -q -l 100 -i 1000", "cyclictest", 100),
        ("histogram", "cyclictest", "-q -l 200 -i 1000 -h 100000", "cyclictest-histogram", 0),
    ] {
        fs::write(lab.path(name), output_of(&directory, program, line)).expect("written");
        let document = Latlab::at(&directory).line(&format!("import {name} -o {name}.rec --json")).success().json();
        assert_eq!(document["format"], format, "{document:#}");
        if rows > 0 {
            assert_eq!(document["rows"], rows, "{document:#}");
        }
    }
    let summary = Latlab::at(&directory).line("summary histogram.rec --json").success().json();
    assert_eq!(summary["metrics"]["wakeup_latency"]["n"], 200, "{summary:#}");
    // A log that states its interval has no due times.
    let shown = Latlab::at(&directory).line("summary verbose.rec").success().stdout;
    assert!(shown.contains("wake-up latency") && shown.contains("n 100"), "{shown}");
    for format in ["csv", "jsonl", "hlog", "values"] {
        Latlab::at(&directory).line(&format!("export histogram.rec --format {format} -o out.{format}")).success();
    }
}

#[test]
fn logs_that_sockperf_irtt_and_iperf3_write_here_are_imported() {
    if !skip::programs(&["sockperf", "irtt", "iperf3"]) {
        return;
    }
    let lab = Latlab::new();
    let directory = lab.path("");
    let import = |log: &str| Latlab::at(&directory).line(&format!("import {log} -o {log}.rec --json")).success().json();
    let port = free_port();
    let server = Server::start(Command::new("sockperf").args(["server", "-i", "127.0.0.1", "-p", &port.to_string()]));
    output_of(&directory, "sockperf", &format!("ping-pong -i 127.0.0.1 -p {port} -t 1 --full-log sockperf.csv"));
    drop(server);
    let document = import("sockperf.csv");
    assert_eq!(document["format"], "sockperf");
    assert!(document["rows"].as_u64().is_some_and(|rows| rows > 100), "{document:#}");

    let bind = format!("127.0.0.1:{}", free_port());
    let server = Server::start(Command::new("irtt").args(["server", "-b", &bind]));
    output_of(&directory, "irtt", &format!("client -i 10ms -d 500ms -o irtt.json -Q {bind}"));
    drop(server);
    let document = import("irtt.json");
    assert_eq!(document["format"], "irtt");
    let summary = Latlab::at(&directory).line("summary irtt.json.rec --json").success().json();
    assert_eq!((&summary["kind"], summary["sent"].as_u64().is_some_and(|sent| sent >= 5)), (&"ping".into(), true));

    let port = free_port().to_string();
    let server = Server::start(Command::new("iperf3").args(["-s", "-1", "-p", &port]));
    let log = output_of(&directory, "iperf3", &format!("-c 127.0.0.1 -p {port} -u -b 10M -l 1000 -t 2 -J"));
    drop(server);
    fs::write(lab.path("iperf3.json"), log).expect("written");
    assert_eq!(import("iperf3.json")["format"], "iperf3");
    let summary = Latlab::at(&directory).line("summary iperf3.json.rec --json").success().json();
    assert_eq!(summary["kind"], "stream");
    let offered = summary["rates"]["offered_bps"].as_f64().expect("a rate");
    assert!((9e6..11e6).contains(&offered), "{summary:#}");

    Latlab::at(&directory).line("report iperf3.json.rec -o page.html").success();
}

#[test]
fn the_log_of_a_receiver_alone_has_no_figures_of_the_sender() {
    if !skip::programs(&["iperf3"]) {
        return;
    }
    let lab = Latlab::new();
    let directory = lab.path("");
    let port = free_port().to_string();
    let mut iperf3 = Command::new("iperf3");
    let server = Server::start(iperf3.args(["-s", "-1", "-J", "-p", &port, "--logfile"]).arg(lab.path("log")));
    output_of(&directory, "iperf3", &format!("-c 127.0.0.1 -p {port} -u -b 10M -l 1000 -t 1 -i 0.2"));
    let at = |line: &str| Latlab::at(&directory).line(line);
    wait_until("the server wrote its log", || {
        fs::read_to_string(lab.path("log")).is_ok_and(|text| text.ends_with("}\n"))
    });
    drop(server);
    at("import log -o one").success();
    let summary = at("summary one --json").success().json();
    check_schema(&summary, "summary/1");
    let (flow, null) = (&summary["stream"]["flows"][0], Value::Null);
    assert_eq!(
        (&flow["sent"], &flow["sending_ns"], &summary["rates"]["offered_bps"]),
        (&null, &null, &null),
        "{flow:#}"
    );
    assert!(summary["duration_ns"].as_i64().is_some_and(|span| span > 900_000_000), "{summary:#}");
    assert!(summary["rates"]["delivered_bps"].as_f64().is_some_and(|bps| bps > 5e6), "{summary:#}");
    at("summary one").stdout(contains("known to be sent")).success();
    let gate = Latlab::at(&directory).args(["summary", "one", "--gate", "offered_rate p50 > 1Mbit/s"]);
    gate.stderr(contains("offered_rate")).failure(2);
    fs::create_dir(lab.path("store")).expect("made");
    for copy in ["store/a", "store/b"] {
        at(&format!("import log -o {copy} --tag copy={}", &copy[6..])).success();
    }
    at("compare store --by tag:copy").stdout(lacks("no packet was sent")).success();
}

#[test]
fn what_iperf3_omits_here_is_left_out() {
    if !skip::programs(&["iperf3"]) {
        return;
    }
    let lab = Latlab::new();
    let directory = lab.path("");
    for option in ["", "--get-server-output"] {
        let port = free_port().to_string();
        let server = Server::start(Command::new("iperf3").args(["-s", "-1", "-J", "-p", &port]));
        let line = format!("-c 127.0.0.1 -p {port} -u -b 10M -l 1000 -J -i 0.5 -t 2 -O 1 {option}");
        fs::write(lab.path("log"), output_of(&directory, "iperf3", &line)).expect("written");
        drop(server);
        let import = Latlab::at(&directory).line("import log -o rec");
        if option.is_empty() {
            import.stderr(contains("--get-server-output")).failure(2);
            continue;
        }
        import.stderr(contains("left out")).success();
        let summary = Latlab::at(&directory).line("summary rec --json").success().json();
        let delivered = summary["rates"]["delivered_bps"].as_f64();
        assert!(delivered.is_some_and(|bps| (9e6..11e6).contains(&bps)), "{summary:#}");
        assert_eq!(summary["lost"], Value::Null);
    }
}

#[test]
fn logs_that_fio_writes_here_are_imported() {
    if !skip::programs(&["fio"]) {
        return;
    }
    let lab = Latlab::new();
    let directory = lab.path("");
    let job =
        "--name=job --ioengine=psync --rw=randrw --bs=4k --size=1m --filename=data --write_lat_log=io --log_avg_msec=0";
    output_of(&directory, "fio", job);
    Latlab::at(&directory).line("import io_lat.1.log -o mixed").stderr(contains("--direction")).failure(2);
    let document = Latlab::at(&directory).line("import io_lat.1.log -o reads --direction read --json").success().json();
    assert_eq!(document["format"], "fio");
    let summary = Latlab::at(&directory).line("summary reads --json").success().json();
    assert_eq!(summary["metrics"]["delay"]["n"], document["rows"]);
}

/// Exponential delays above 50 µs: `probes` lines of four times, one each ms.
fn exponential_round_trips(probes: u64) -> String {
    let mut state = 12_345_u64;
    let mut line = |k: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((state >> 33) as f64 + 0.5) / 2_147_483_648.0;
        let delay = 50_000 + (-10_000.0 * uniform.ln()) as u64;
        let sent = k * 1_000_000;
        format!("{k} {sent} {} {} {}\n", sent + 20_000, sent + 21_000, sent + delay)
    };
    (0..probes).map(&mut line).collect()
}

#[test]
fn a_long_run_says_how_bad_it_can_get_and_a_short_one_why_not() {
    let long = importing(exponential_round_trips(200_000), "").success();
    let at = |line: &str| Latlab::at(long.directory()).line(line);
    let document = at("summary s --extremes --json").success().json();
    check_schema(&document, "summary/1");
    let levels = document["extremes"]["levels"].as_array().expect("levels");
    // p99.99, p99.999, once a minute and once in the run of 200 s.
    assert_eq!(levels.len(), 4, "{:#}", document["extremes"]);
    for (level, probes) in levels.iter().zip([1e4_f64, 1e5, 6e4, 2e5]) {
        let truth = 50_000.0 + 10_000.0 * probes.ln();
        let [value, bound] = ["value", "upper_bound"].map(|name| level[name].as_f64().expect("a number"));
        assert!((value / truth - 1.0).abs() < 0.2 && (truth..1.5 * truth).contains(&bound), "{level}, {truth}");
    }
    at("summary s --extremes").stdout(contains("200 clusters in 200 s")).stdout(contains("once a minute")).success();

    let short = importing(exponential_round_trips(1_000), "").success();
    let shown = Latlab::at(short.directory()).line("summary s --extremes");
    shown.stdout(contains("no answer: ")).stdout(contains("about 200,000")).success();
}
