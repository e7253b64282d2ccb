//! `latlab stream`: the counts of both ends, their intervals, and where packets are lost.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use latlab::facts::{IntervalCounts, StreamEnd, StreamInterval};
use latlab::probe::Phase;
use latlab::recording::Recording;
use rustix::process::Signal;
use serde_json::Value;

use crate::far_end::local_agent;
use crate::harness::{Latlab, check_schema, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::processes::{children, signal};
use crate::scheduling::flooding;
use crate::serve::serve;
use crate::store::{manifest, only_recording, recordings, spool_bytes};

/// Options with a rate at which no host loses packets, and each interval has packets.
const EASY: &str = "--rate 2kpps -d 1s --warmup 300ms";

fn rows(recording: &Path) -> Vec<StreamInterval> {
    let recording = Recording::open(recording).expect("opens");
    recording.intervals().expect("opens").flat_map(|batch| batch.expect("reads")).collect()
}

/// `(offered, polled, delivered)` of the measured rows.
fn totals(rows: &[StreamInterval]) -> (u64, u64, u64) {
    let measured = rows.iter().filter(|row| row.phase == Phase::Measure);
    measured.fold((0, 0, 0), |(sent, decided, arrived), row| match row.seen {
        IntervalCounts::Offered { packets, .. } => (sent + packets, decided, arrived),
        IntervalCounts::Counted { polled, delivered, .. } => (sent, decided + polled, arrived + delivered),
    })
}

fn figure(json: &Value, of: &[&str]) -> u64 {
    let found = of.iter().fold(json, |value, key| &value[key]);
    found.as_u64().unwrap_or_else(|| panic!("{of:?} in {json:#}"))
}

fn has_caveat(json: &Value, code: &str) -> bool {
    json["caveats"].as_array().expect("a list").iter().any(|caveat| caveat["code"] == code)
}

#[test]
fn both_ends_count_the_same_packets_over_both_families() {
    for (family, size) in [("-4", 1_472), ("-6", 1_452)] {
        let ran = Latlab::new().line(&format!("stream {EASY} {family} --json")).stderr(warnings_at_most()).success();
        let json = ran.json();
        check_schema(&json, "summary/1");
        assert_eq!((&json["kind"], figure(&json, &["condition", "size_bytes"])), (&"stream".into(), size));
        let rows = rows(&only_recording(ran.directory()));
        let (sent, decided, delivered) = totals(&rows);
        assert!(sent > 0 && sent == decided, "{sent} sent, {decided} counted against");
        assert_eq!((figure(&json, &["sent"]), figure(&json, &["answered"])), (sent, delivered));
        assert_eq!(figure(&json, &["lost"]), sent - delivered);
        let flow = &json["stream"]["flows"][0];
        // A sender without a CPU skips packets that are too late, and counts them.
        let due = sent + figure(flow, &["skipped"]);
        assert!((1_960..=2_040).contains(&due), "{due} packets of 2,000 were due");
        let rates = &json["rates"];
        let bits = rates["offered_pps"].as_f64().expect("a rate") * size as f64 * 8.0;
        assert!((bits / rates["offered_bps"].as_f64().expect("a rate") - 1.0).abs() < 1e-9, "{rates}");
    }
}

#[test]
fn the_intervals_of_each_end_are_contiguous() {
    let ran = Latlab::new().line(&format!("stream {EASY} -s 200")).success();
    let recording = only_recording(ran.directory());
    let rows = rows(&recording);
    let kept = manifest(&recording);
    assert_eq!((&kept["kind"], kept["interval_rows"].as_u64()), (&"stream".into(), Some(rows.len() as u64)));
    assert_eq!((&kept["rows"], &kept["run"]["stream"]["settled"]), (&kept["interval_rows"], &true.into()));
    for end in StreamEnd::ALL {
        for (phase, spans) in [(Phase::Warmup, 3), (Phase::Measure, 10)] {
            let of: Vec<_> = rows.iter().filter(|row| row.end() == end && row.phase == phase).collect();
            assert!(of.len() >= spans / 2 && of.len() <= 2 * spans + 2, "{end:?} {phase:?}: {}", of.len());
            assert!(of.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "{end:?} {phase:?}");
        }
    }
}

#[test]
fn each_flow_has_its_own_session_and_totals() {
    let ran = Latlab::new().line(&format!("stream {EASY} --flows 3 -s 64,700 --json")).success();
    let json = ran.json();
    check_schema(&json, "summaries/1");
    let summaries = json["summaries"].as_array().expect("two sizes");
    assert_eq!(summaries.len(), 2);
    for summary in summaries {
        let flows = summary["stream"]["flows"].as_array().expect("a list");
        assert_eq!(flows.len(), 3);
        let sum: u64 = flows.iter().map(|flow| figure(flow, &["delivered"])).sum();
        assert_eq!(sum, figure(summary, &["answered"]));
        assert!(flows.iter().all(|flow| figure(flow, &["sent"]) > 100), "{flows:?}");
    }
}

#[test]
fn packets_of_every_send_mode_are_counted_with_and_without_checksums() {
    for (mode, family) in
        ["send", "sendmmsg", "gso"].into_iter().flat_map(|mode| ["-4", "-6"].map(|family| (mode, family)))
    {
        for sockets in ["", "--connect", "--checksum off"] {
            if (mode, sockets) == ("gso", "--checksum off") {
                continue;
            }
            let line = format!("stream --rate 5kpps -d 400ms --warmup 0 --mode {mode} {family} {sockets} --json");
            let json = Latlab::new().line(&line).success().json();
            check_schema(&json, "summary/1");
            assert!(figure(&json, &["answered"]) > 0, "{line}: {json:#}");
            assert_eq!(json["condition"]["mode"], mode);
            let (sender, receiver) = (&json["stream"]["sender_cpu"], &json["stream"]["receiver_cpu"]);
            assert!(figure(sender, &["used_ns"]) > 0 && figure(receiver, &["used_ns"]) > 0, "{line}: {json:#}");
        }
    }
}

#[test]
fn a_down_stream_is_sent_if_the_reflector_allows_it() {
    let _flooding = flooding();
    let down = "--direction down --rate 2kpps -d 800ms --warmup 0 --json";
    let ran = Latlab::new().line(&format!("stream {down}")).success();
    let json = ran.json();
    check_schema(&json, "summary/1");
    assert_eq!(json["condition"]["direction"], "down");
    let (sent, decided, delivered) = totals(&rows(&only_recording(ran.directory())));
    assert!(sent > 800 && sent == decided && delivered <= sent && delivered > 800, "{sent} {decided} {delivered}");
    // The rate excludes the time in which nothing is sent because both ends exchange their counts.
    let rates =
        ["offered_bps", "delivered_bps"].map(|rate| json["rates"][rate].as_f64().unwrap_or(0.0) / 8.0 / 1_472.0);
    // Both ends may wait for a CPU here; unit tests of the intervals have the exact rates.
    assert!(rates.iter().all(|pps| (1_000.0..2_050.0).contains(pps)), "{rates:?}");
    assert!((1_300..=1_600).contains(&sent), "a slice of 800 ms has 1,600 packets, and not {sent}");
    // Without a rate: the counts of both ends agree although packets are in flight at the end.
    let json = Latlab::new().line("stream --direction down -d 600ms --warmup 200ms --json").success().json();
    assert!(figure(&json, &["answered"]) > 1_000, "{json:#}");
    let home = tempfile::tempdir().expect("a temporary directory");
    Latlab::at(home.path()).args(["keygen", "key"]).success();
    let (_willing, address) = serve(home.path(), "--psk-file key --allow-down 5Mbit/s");
    let stream = |address: &str| Latlab::at(home.path()).args(["stream", address, "--psk-file", "key"]).line(down);
    let json = stream(&address).success().json();
    assert!(figure(&json, &["answered"]) > 0 && has_caveat(&json, "rate-unreached"), "{json:#}");
    let hint = json["caveats"].as_array().and_then(|all| all.iter().find(|one| one["code"] == "rate-unreached"));
    assert!(
        hint.is_some_and(|one| one["hint"].as_str().is_some_and(|hint| hint.contains("`serve --allow-down`"))),
        "{hint:?}"
    );
    let (_unwilling, address) = serve(home.path(), "--psk-file key");
    stream(&address).stdout(empty()).stderr(contains("hint: ")).failure(3);
}

#[test]
fn an_unreached_rate_is_reported() {
    let _flooding = flooding();
    let ran = Latlab::new().line("stream --rate 5Tbit/s -d 500ms --warmup 0 --json").success();
    let json = ran.json();
    assert!(has_caveat(&json, "rate-unreached"), "{json:#}");
    assert!(json["rates"]["offered_bps"].as_f64() < Some(5e12) && figure(&json, &["answered"]) > 0);
}

#[test]
fn streams_to_serve_and_to_agents_are_measured() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_reflector, address) = serve(home.path(), "");
    let ran = Latlab::at(home.path()).args(["stream", &address]).line(EASY).args(["--json"]).success();
    assert!(figure(&ran.json(), &["answered"]) > 0);
    let agent = local_agent();
    let ran = Latlab::new().args(["stream", &agent, "--peer-addr", "127.0.0.1"]).line(EASY).args(["--json"]).success();
    check_schema(&ran.json(), "summary/1");
    let kept = manifest(&only_recording(ran.directory()));
    assert!(kept["peer"]["before"].is_object() && kept["clock_relation"].is_object(), "an agent tells of its host");
    let down = "--peer-addr 127.0.0.1 --direction down --rate 2kpps -d 600ms --warmup 0 --json";
    let ran = Latlab::new().args(["stream", &agent]).line(down).success();
    let (sent, _, delivered) = totals(&rows(&only_recording(ran.directory())));
    assert!(sent > 600 && delivered > 600 && delivered <= sent, "down: {sent} {delivered}");
}

#[test]
fn streams_in_lab_are_measured_with_a_concurrent_load() {
    let _flooding = flooding();
    if !privileged() {
        return;
    }
    for family in ["-4", "-6"] {
        let gso = format!("stream lab {family} -d 400ms --warmup 0 --mode gso --set offload=tx-checksum:off --json");
        let ran = Latlab::new().line(&gso).start().exits_with_one_of(&[0, 3]);
        // Linux before 6.11 refuses GSO with EIO if the interface computes no checksums.
        if ran.code == 3 {
            assert!(ran.stderr.contains("computes no checksums"), "{}", ran.stderr);
            continue;
        }
        let json = ran.json();
        assert!(figure(&json, &["answered"]) > 0, "{json:#}");
        let line = format!("stream lab {EASY} {family} --load cpu=5% --set offload=gso:off --tag side={family} --json");
        let json = Latlab::new().line(&line).success().json();
        check_schema(&json, "summary/1");
        assert!(figure(&json, &["answered"]) > 0 && json["loads"].as_array().is_some_and(|loads| loads.len() == 1));
        assert_eq!(json["condition"]["tags"]["side"], family);
    }
}

#[test]
fn packets_lost_at_a_stopped_receiver_are_counted_as_socket_drops() {
    let _flooding = flooding();
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), "");
    let running = Latlab::at(home.path())
        .args(["stream", &address, "--rate", "20kpps", "-s", "8000", "-d", "2s", "--warmup", "0", "--json"])
        .start();
    wait_until("packets were counted", || !recordings(home.path()).is_empty());
    thread::sleep(Duration::from_millis(300));
    reflector.signal(Signal::STOP);
    // Longer than any receive buffer lasts, shorter than the silence that ends a stream.
    thread::sleep(Duration::from_millis(500));
    reflector.signal(Signal::CONT);
    let json = running.exits(0).json();
    check_schema(&json, "summary/1");
    assert!(figure(&json, &["lost"]) > 0, "{json:#}");
    assert!(figure(&json, &["stream", "socket_drops"]) > 0 && has_caveat(&json, "socket-drops"), "{json:#}");
}

#[test]
fn a_target_that_falls_silent_ends_the_run_and_the_counts_are_kept() {
    // With the number of events to wait for: each of 1,000 probes a second is an event too.
    for (options, events) in [
        ("-d 60s --warmup 0 -s 200,700", 10),
        ("-d 60s --warmup 0 --probe 1ms", 1_000),
        ("-d 60s --warmup 0 --direction down --psk-file key", 6),
        ("-d 10m -s 200 --search", 20),
    ] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let serving = if options.contains("down") { "--psk-file key --allow-down 100Mbit/s" } else { "" };
        Latlab::at(home.path()).args(["keygen", "key"]).success();
        let (reflector, address) = serve(home.path(), serving);
        let lab = Latlab::at(home.path()).args(["stream", &address, "--rate", "1kpps"]).line(options);
        let running = lab.stderr(contains("no longer reports what arrives")).start();
        wait_until("intervals were spooled", || spool_bytes(home.path()) > 64 * events);
        reflector.signal(Signal::STOP);
        let silent = Instant::now();
        running.exits(3);
        // Three times the promise of docs/stream.md.
        assert!(silent.elapsed() < Duration::from_secs(6), "{options}: {:?}", silent.elapsed());
        reflector.signal(Signal::CONT);
        let recordings = recordings(home.path());
        assert!(recordings.iter().all(|recording| manifest(recording)["ending"] == "failed"), "{options}");
        if options.contains("--search") {
            let summary = Latlab::at(home.path()).args(["summary", "--json"]).arg(only_recording(home.path()));
            assert_eq!(summary.success().json()["search"]["ending"], "silent");
            continue;
        }
        assert!(recordings.iter().map(|recording| totals(&rows(recording)).2).sum::<u64>() > 0, "{options}");
        for (sent, decided, delivered) in recordings.iter().map(|recording| totals(&rows(recording))) {
            assert!(delivered <= decided && decided <= sent, "{options}: {sent} {decided} {delivered}");
        }
    }
}

#[test]
fn the_death_of_the_reflector_ends_the_stream() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("stream --rate 1kpps -d 60s --warmup 0").start();
    wait_until("the run began", || !recordings(home.path()).is_empty());
    let reflector = children(running.pid().as_raw_nonzero().get());
    signal(reflector[0], Signal::KILL);
    let killed = Instant::now();
    running.exits_with_one_of(&[3, 4]);
    assert!(killed.elapsed() < Duration::from_secs(6), "{:?}", killed.elapsed());
}

#[test]
fn a_killed_or_interrupted_stream_keeps_its_intervals() {
    let ends = [(Signal::KILL, None), (Signal::INT, Some(130))];
    for (direction, (by, code)) in ["up", "down"].into_iter().flat_map(|way| ends.map(|end| (way, end))) {
        let home = tempfile::tempdir().expect("a temporary directory");
        let line = format!("stream --rate 1kpps --warmup 0 -d 50s --direction {direction}");
        let running = Latlab::at(home.path()).line(&line).start();
        wait_until("intervals were spooled", || spool_bytes(home.path()) > 64 * 12);
        running.signal(by);
        match code {
            Some(code) => _ = running.exits(code),
            None => _ = running.killed_by(by),
        }
        let recording = only_recording(home.path());
        let path = recording.strip_prefix(home.path()).expect("it lies there").to_owned();
        let summary = Latlab::at(home.path()).args(["summary", "--json"]).arg(path).success().json();
        check_schema(&summary, "summary/1");
        assert_eq!(summary["ending"], if code.is_some() { "interrupted" } else { "recovered" });
        assert!(figure(&summary, &["answered"]) > 100, "{summary:#}");
        let [sent, answered, late, lost] = ["sent", "answered", "late", "lost"].map(|fate| figure(&summary, &[fate]));
        let left = figure(&summary["stream"]["flows"][0], &["sent"]);
        assert!(sent == answered + late + lost && sent <= left, "{direction}: {summary:#}");
    }
}

#[test]
fn the_size_of_a_down_stream_can_be_a_factor() {
    let file = "name = 's'\nkind = 'stream'\n[base]\nduration = '300ms'\nwarmup = '0'\nrate = '1kpps'\n\
                direction = 'down'\n[factors]\nsize = [200, 700]\n[design]\nruns = 1\nblocks = 2\nsettle = '0s'\n";
    let json = Latlab::new().file("x.toml", file).line("run x.toml --json").success().json();
    assert_eq!(json["groups"].as_array().map(Vec::len), Some(2), "{json:#}");
}

#[test]
fn packets_that_this_host_cannot_send_are_refused() {
    for (line, code, word) in [
        ("--mode gso -s 65507 -6", 2, "smaller `--size`"),
        ("--df -s 65507 -6", 2, "leave out `--df`"),
        ("--cpu 1023", 3, "CPU `1023`"),
    ] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let lab = Latlab::at(home.path()).line("stream -d 1s").line(line).stdout(empty()).stderr(contains("hint: "));
        lab.stderr(contains(word)).failure(code);
        assert!(recordings(home.path()).is_empty(), "{line}");
    }
}

#[test]
fn a_stream_to_a_port_without_a_reflector_fails() {
    let home = tempfile::tempdir().expect("a temporary directory");
    Latlab::at(home.path()).line("stream 127.0.0.1:9 -d 1s").stderr(contains("no answer from")).failure(3);
    assert!(recordings(home.path()).is_empty());
}
