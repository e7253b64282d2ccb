//! `latlab stream --search` and `--probe`: the found rates, the time they take, and the recording.

use std::path::Path;
use std::time::{Duration, Instant};

use latlab::probe::Phase;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Latlab, check_schema, contains, wait_until};
use crate::lab::shaped;
use crate::scheduling::precedence;
use crate::store::{manifest, only_recording, open, recordings, spool_bytes};

/// A rate that every host sends, so that the ceiling is known.
const EASY: &str = "stream --search -d 10s --rate 2kpps -s 200";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[test]
fn a_search_ends_in_its_time_and_its_recording_has_the_same_figures() {
    let _precedence = precedence();
    let begin = Instant::now();
    let ran = Latlab::new().line(EASY).args(["--json"]).stderr(contains("measuring takes at most 10 s")).success();
    // Three times the promise.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let json = ran.json();
    check_schema(&json, "summary/1");
    let search = &json["search"];
    assert!((number(&search["ceiling_pps"]) - 2_000.0).abs() < 1.0, "{search:#}");
    assert!(number(&search["found_pps"]) <= number(&search["ceiling_pps"]) && number(&search["took_ns"]) < 10e9);
    let losses: Vec<f64> = list(&search["goals"]).iter().map(|goal| number(&goal["loss_ratio"])).collect();
    assert_eq!(losses, [0.0, 0.005]);
    let shares: Vec<f64> = list(&json["stages"]).iter().map(|stage| number(&stage["share"])).collect();
    // docs/stream.md: on a busy host, on which trials take too long, stages are left out, but never the last.
    let missing = [(0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %")].into_iter().filter(|(share, _)| !shares.contains(share));
    let missing: Vec<&str> = missing.map(|(_, words)| words).collect();
    let words = format!("no time was left for the stages at {}", missing.join(", "));
    let is_said = json["caveats"].to_string().contains(&words);
    assert_eq!(is_said, !missing.is_empty(), "{shares:?}: {json:#}");
    assert!(
        shares.is_sorted() && shares.len() + missing.len() == 4 && shares.ends_with(&[1.0]),
        "{shares:?}: {json:#}"
    );
    for stage in list(&json["stages"]) {
        assert!(number(&stage["round_trip_delay"]["n"]) > 50.0, "{stage:#}");
        let offered = number(&search["found_pps"]) * number(&stage["share"]);
        match stage["offered_pps"].as_f64() {
            Some(sent) => assert!((sent / offered - 1.0).abs() < 0.3, "{sent} of {offered}"),
            None => assert_eq!(number(&stage["share"]), 0.0),
        }
    }
    let recording = only_recording(ran.directory());
    let (kept, probes) = open(&recording);
    assert_eq!(kept.probe_rows, Some(probes.len() as u64));
    assert_eq!(list(&manifest(&recording)["run"]["search"]["trials"]).len() as f64, number(&search["trials"]));
    // The recorded probes are those of the last stage.
    let measured = probes.iter().filter(|row| row.phase == Phase::Measure).count() as f64;
    assert_eq!(
        Some(&measured.into()),
        json["stages"][shares.len() - 1]["round_trip_delay"]["n"].as_f64().map(Value::from).as_ref()
    );
    let again = Latlab::at(ran.directory()).args(["summary", "--json"]).arg(&recording).success().json();
    assert_eq!((&again["search"], &again["stages"]), (search, &json["stages"]));
    let text = Latlab::at(ran.directory()).arg("summary").arg(&recording);
    ["rates found", "loss up to", "round trip delay during the stream", "search 0,0.5%", "ceiling"]
        .into_iter()
        .fold(text, |text, words| text.stdout(contains(words)))
        .success();
}

/// Payload of 40 Mbit/s: 1,472 of 1,514 bytes of a frame.
const SHAPED_BPS: f64 = 40e6 * 1_472.0 / 1_514.0;

#[test]
fn the_search_finds_the_rate_of_a_shaper() {
    let _precedence = precedence();
    // The bucket holds two packets: a larger one would add capacity to trials of 0.1 s. The queue holds those of a second.
    let Some(_inside) = shaped("tbf rate 40mbit burst 3k latency 1s") else { return };
    // A sender or receiver that waits for a CPU loses packets or time, so that less is found: such a search is repeated once.
    let mut missed = Vec::new();
    while let Some(goals) = missed_goals() {
        missed.push(goals);
        assert!(missed.len() < 2, "two searches missed the rate: {}", missed.join("\n"));
    }
}

/// Words of a summary about a host that did not send in time.
const HOST_WAS_LATE: [&str; 2] = ["no time was left for the stages", "\"rate-unreached\""];

/// Searches for the rate of the shaper; the goals and the caveats if it was not found. Expects exit code 0, and four stages,
/// unless the summary says that the host was late.
fn missed_goals() -> Option<String> {
    let ran = Latlab::new().line("stream --search 0,1% -d 12s -4 --json").start().exits_with_one_of(&[0, 3, 4]);
    let json = ran.json();
    let is_complete = ran.code == 0 && list(&json["stages"]).len() == 4;
    let was_late = HOST_WAS_LATE.iter().any(|words| json["caveats"].to_string().contains(words));
    assert!(is_complete || was_late, "exit code {}, {json:#}\n{}", ran.code, ran.stderr);
    let is_found = finds_the_shaped_rate(&json) && is_complete;
    (!is_found).then(|| format!("{:#}\n{:#}", json["search"]["goals"], json["caveats"]))
}

/// Whether every goal of a search reached the rate of the shaper; expects that no bound exceeded it.
fn finds_the_shaped_rate(json: &Value) -> bool {
    check_schema(json, "summary/1");
    let goals = list(&json["search"]["goals"]).iter().map(|goal| {
        let loss_ratio = number(&goal["loss_ratio"]);
        let [lower, upper, conditional] =
            ["lower_bps", "upper_bps", "conditional_throughput_bps"].map(|key| goal[key].as_f64());
        let Some((lower, conditional)) = lower.zip(conditional) else { return false };
        assert!(upper.is_none_or(|upper| lower < upper), "{goal:#}");
        assert!(lower <= SHAPED_BPS / (1.0 - loss_ratio) && conditional <= lower, "{goal:#}");
        // A shaper with 20 % less carries up to 0.82 of it, with the burst. A trial may lack the packets of 5 ms.
        lower > SHAPED_BPS * 0.9 && conditional >= lower * (1.0 - loss_ratio) * 0.94
    });
    let goals: Vec<bool> = goals.collect();
    let stages = list(&json["stages"]);
    let delivered = stages.iter().filter_map(|stage| stage["delivered_bps"].as_f64());
    assert!(delivered.clone().all(|delivered| delivered < SHAPED_BPS * 1.02), "{stages:#?}");
    assert!(number(&stages[0]["round_trip_delay"]["min"]) > 0.0, "{stages:#?}");
    goals == [true; 2]
}

#[test]
fn no_rate_is_found_on_a_path_that_always_loses() {
    let _precedence = precedence();
    // The path carries fewer than the least of ten packets in a trial, but the small queries pass.
    let shaper = "tbf rate 200kbit burst 4k latency 50ms";
    let Some(_inside) = shaped(shaper) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let lab = Latlab::at(home.path()).line("stream --search -d 10s -4");
    lab.stdout(contains("floor"))
        .stderr(contains("keeps the loss within the goal"))
        .stderr(contains("hint: "))
        .failure(3);
    let json = Latlab::at(home.path()).args(["summary", "--json"]).arg(only_recording(home.path())).success().json();
    check_schema(&json, "summary/1");
    let codes: Vec<&Value> = list(&json["caveats"]).iter().map(|caveat| &caveat["code"]).collect();
    assert!(codes.contains(&&"no-rate-found".into()) && !codes.contains(&&"nothing-measured".into()), "{codes:?}");
    assert_eq!((&json["search"]["found_pps"], list(&json["stages"]).len()), (&Value::Null, 1));
}

#[test]
fn probes_run_concurrently_with_every_kind_of_stream() {
    for line in [
        "--rate 2kpps -s 200,700 --flows 2",
        "--rate 2kpps --direction down",
        "--rate 2kpps --transport tcp",
        "--rate 2kpps --load net=1Mbit/s --cpu 0",
    ] {
        let ran = Latlab::new().line("stream -d 500ms --warmup 100ms --probe 2ms --json").line(line).success();
        let json = ran.json();
        let summaries = json["summaries"].as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
        for summary in &summaries {
            check_schema(summary, "summary/1");
            assert!(summary.get("search").is_none() && summary["condition"]["probe_ns"] == 2_000_000, "{summary:#}");
            let [stage] = list(&summary["stages"]).as_slice() else { panic!("{summary:#}") };
            let n = number(&stage["round_trip_delay"]["n"]);
            assert!(stage["share"].is_null() && n > 100.0 && n <= 260.0, "{line}: {stage:#}");
            assert!(number(&stage["delivered_pps"]) > 500.0, "{line}: {stage:#}");
        }
    }
    Latlab::new().line("stream -d 300ms --warmup 0 --rate 2kpps --probe 1ms").stdout(contains("as asked")).success();
}

#[test]
fn an_interrupted_or_killed_search_keeps_its_trials() {
    for (by, code) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
        let home = tempfile::tempdir().expect("a temporary directory");
        // With trials of one second and one of 50 s that confirms.
        let running = Latlab::at(home.path()).line("stream --search -d 10m --rate 2kpps -s 200").start();
        wait_until("trials were spooled", || spool_bytes(home.path()) > 64 * 40);
        running.signal(by);
        match code {
            Some(code) => _ = running.exits(code),
            None => _ = running.killed_by(by),
        }
        let recording = only_recording(home.path());
        let summary = Latlab::at(home.path()).args(["summary", "--json"]).arg(&recording).success().json();
        check_schema(&summary, "summary/1");
        assert_eq!(summary["ending"], if code.is_some() { "interrupted" } else { "recovered" });
        assert_eq!(summary["search"]["ending"], "cut_short");
        let codes: Vec<&Value> = list(&summary["caveats"]).iter().map(|caveat| &caveat["code"]).collect();
        assert!(!codes.contains(&&"nothing-measured".into()), "{codes:?}");
        assert_eq!(summary["search"]["found_pps"].is_null(), codes.contains(&&"no-rate-found".into()), "{codes:?}");
        if code.is_some() {
            assert!(number(&summary["search"]["trials"]) >= 1.0, "{summary:#}");
        }
    }
}

/// The stages in the manifest of a recording.
fn stages_of(recording: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(recording.join("manifest.json")).unwrap_or_default();
    let kept = serde_json::from_str::<Value>(&text).ok();
    kept.and_then(|kept| kept["run"]["stages"].as_array().cloned()).unwrap_or_default()
}

#[test]
fn the_found_rate_survives_sigkill_in_the_stages() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("stream --search -d 60s --rate 2kpps -s 200").start();
    wait_until("a stage was over", || recordings(home.path()).iter().any(|recording| stages_of(recording).len() > 1));
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    let recording = only_recording(home.path());
    let summary = Latlab::at(home.path()).args(["summary", "--json"]).arg(&recording).success().json();
    check_schema(&summary, "summary/1");
    assert_eq!((&summary["ending"], &summary["search"]["ending"]), (&"recovered".into(), &"settled".into()));
    assert!(number(&summary["search"]["found_pps"]) > 0.0);
    let n = number(&summary["stages"][0]["round_trip_delay"]["n"]);
    assert!(n > 1_000.0 && n <= 2_501.0 && list(&summary["stages"]).len() == 2, "{:#}", summary["stages"]);
}
