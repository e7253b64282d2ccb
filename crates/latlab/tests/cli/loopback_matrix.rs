//! `latlab run udp-loopback-matrix`: the conditions of a publication on targets with and without checksum offload.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::experiment::{BOOT_ID, events, journal, only, until_ended};
use crate::fake_host::FakeHost;
use crate::harness::{Latlab, check_schema, contains};
use crate::lab::privileged;
use crate::recipes::DEADLINE;
use crate::store::{manifest, recordings_in};

/// The conditions in the order of the publication.
const CELLS: [&str; 6] =
    ["v4, no checksum", "v4, no offload, no checksum", "v4", "v4, no offload", "v6", "v6, no offload"];

/// Its text, and the document of a later report.
fn quick(home: &Path, target: &str) -> (String, Value) {
    let at = || Latlab::at(home).deadline(DEADLINE);
    let ran = at().args(["run", "udp-loopback-matrix", target, "--quick"]).measured();
    let document = at().args(["run", &only(home).display().to_string(), "--json", "-q"]).measured();
    check_schema(&document.json(), "compare/1");
    (ran.stdout, document.json())
}

/// The rows of the document about the publication, by condition.
fn published(document: &Value) -> BTreeMap<String, Value> {
    let rows = document["experiment"]["published"]["rows"].as_array().expect("rows");
    let labels: Vec<&str> = rows.iter().map(|row| row["label"].as_str().expect("a label")).collect();
    assert_eq!(labels, CELLS);
    rows.iter().map(|row| (row["label"].as_str().expect("a label").to_owned(), row.clone())).collect()
}

#[test]
fn lab_measures_every_condition_as_its_label_says() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let (printed, document) = quick(home.path(), "lab");
    for words in [
        "delivered rate, one observation a run, 10⁶ bit/s",
        " published",
        " here",
        "5 runs, at most",
        "    N           Min           Max        Median           Avg        Stddev\n",
        "x v4, no checksum\n",
        "@ v6, no offload\n",
        "IQR",
        "One block",
        "v4, no checksum → v6, no offload",
        "permutation test and Welch's t within blocks",
    ] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    for (label, row) in published(&document) {
        let measured = &row["measured"];
        assert_eq!(measured["runs"], 5, "{label}: {row:#}");
        assert!(measured["n"].as_u64() > Some(0) && measured["figures"][2]["value"].as_f64() > Some(0.0), "{row:#}");
        assert_eq!(row["against_first"]["measured"]["proven"].is_boolean(), label != CELLS[0], "{row:#}");
    }
    let spread = &document["experiment"]["spread"];
    let cells = spread["cells"].as_array().expect("cells");
    assert!(cells.iter().zip(CELLS).all(|(cell, label)| cell["label"] == label && cell["n"] == 5), "{spread:#}");
    let asked = document["comparisons"].as_array().expect("rows").iter().filter(|row| row["added"] == false);
    assert_eq!(asked.count(), 5, "{document:#}");
    each_run_was_what_its_cell_says(&only(home.path()));
}

/// Expects that sockets, address family, size and settings of both ends are those of the label.
fn each_run_was_what_its_cell_says(experiment: &Path) {
    let manifests: Vec<Value> = recordings_in(&experiment.join("runs")).iter().map(|run| manifest(run)).collect();
    assert_eq!(manifests.len(), 6 * 6, "five runs of each cell and one to warm up");
    for manifest in &manifests {
        let (factors, condition) = (&manifest["experiment"]["factors"], &manifest["condition"]);
        assert_eq!(
            (&condition["checksum"], &condition["size_bytes"]),
            (&(factors["checksum"] == "on").into(), &9216.into())
        );
        let is_v6 = manifest["run"]["local_address"].as_str().is_some_and(|address| address.starts_with('['));
        assert_eq!(is_v6, factors["ipv6"] == "true", "{condition:#}");
        let settings = manifest["settings"].as_array().expect("settings");
        let off = |end: &str| {
            let has = |text: &Value, word: &str| text.as_str().is_some_and(|text| text.contains(word));
            let is_it = |fact: &Value| fact["at"] == end && has(&fact["read_back"], "tx-checksum-ip-generic:off");
            settings.iter().any(|fact| is_it(fact) && has(&fact["before"], "tx-checksum-ip-generic:on"))
        };
        let is_off = factors["set"].as_str().is_some_and(|set| set.contains("tx-checksum:off"));
        assert_eq!([off("local"), off("peer")], [is_off; 2], "{settings:#?}");
    }
    // The order is random: neighbours have different conditions most of the time.
    let journal = journal(experiment);
    let order: Vec<&Value> = events(&journal, "run_began").map(|began| &began["condition"]).collect();
    assert!(order.windows(2).filter(|pair| pair[0] != pair[1]).count() > 15, "{order:?}");
}

#[test]
fn conditions_that_loopback_does_not_support_are_reported_as_not_possible() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (printed, document) = quick(home.path(), "local");
    assert_eq!(printed.matches("not possible here (1)").count(), 3, "{printed}");
    assert_eq!(printed.matches("not possible here: ").count(), 1, "{printed}");
    for (label, row) in published(&document) {
        match label.contains("no offload") {
            true => {
                let reason = row["reason"].as_str().expect("a reason");
                assert!(reason.contains("the driver of `lo` does not let `tx-checksum` be changed"), "{reason}");
                assert_eq!(row["measured"], Value::Null);
            }
            false => assert_eq!(row["measured"]["runs"], 5, "{row:#}"),
        }
    }
    assert_eq!(document["experiment"]["spread"]["cells"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["groups"].as_array().map(Vec::len), Some(3), "{document:#}");
}

#[test]
fn a_target_that_supports_no_condition_is_refused() {
    // Nothing listens on that port, and a host without an agent has no settings.
    let printed =
        Latlab::new().line("run udp-loopback-matrix 127.0.0.1:9 --quick").deadline(DEADLINE).failure(3).stderr;
    assert!(printed.contains("the experiment has no run that can be used"), "{printed}");
}

#[test]
fn with_reboots_each_block_is_a_boot() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let host = FakeHost::with(&[(BOOT_ID, "first\n")]);
    let at = || Latlab::at(home.path()).on(&host).deadline(DEADLINE);
    // The file is shortened after the start: the behaviour at a reboot does not depend on the length of runs.
    let running = at().line("run udp-loopback-matrix local --reboots").start();
    until_ended(home.path(), 1);
    running.signal(Signal::INT);
    running.exits(130);
    let experiment = only(home.path());
    let file = fs::read_to_string(experiment.join("experiment.toml")).expect("its file");
    let short =
        [("\"5s\"", "\"300ms\""), ("\"500ms\"", "\"0\""), ("runs = 10", "runs = 2"), ("blocks = 3", "blocks = 2")];
    let file = short.iter().fold(file, |file, (usual, short)| file.replace(usual, short));
    fs::write(experiment.join("experiment.toml"), file).expect("written");
    let shown = experiment.display().to_string();
    let go_on = || at().args(["run", &shown, "--force"]);
    go_on().stderr(contains("block 1 is done. Reboot, then continue with")).success();
    go_on().stderr(contains("needs a reboot first")).failure(3);
    host.write(BOOT_ID, "second\n");
    let printed = go_on().measured().stdout;
    for words in ["2 blocks in 2 boots", "it takes 6 boots", "block 1   block 2  between blocks\n"] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    let document = at().args(["run", &shown, "--json", "-q"]).measured().json();
    check_schema(&document, "compare/1");
    let spread = &document["experiment"]["spread"];
    let blocks = spread["cells"][0]["blocks"].as_array().map(Vec::len);
    assert_eq!((&spread["boots"], blocks), (&2.into(), Some(2)), "{spread:#}");
}
