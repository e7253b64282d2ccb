//! `latlab run udp-loopback-matrix`: the conditions of a publication on targets with and without checksum offload.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::experiment::{events, journal, only};
use crate::harness::{Latlab, check_schema};
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
        "`--quick` is a rehearsal",
    ] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    assert!(!["undecided", " → ", "One block", "confidence"].iter().any(|words| printed.contains(words)), "{printed}");
    for (label, row) in published(&document) {
        let measured = &row["measured"];
        assert_eq!(measured["runs"], 5, "{label}: {row:#}");
        assert!(measured["n"].as_u64() > Some(0) && measured["figures"][2]["value"].as_f64() > Some(0.0), "{row:#}");
        assert!(row["against_first"]["measured"].is_null(), "a rehearsal tests nothing: {row:#}");
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
fn a_target_that_supports_no_condition_is_refused() {
    // Nothing listens on that port, and a host without an agent has no settings.
    let printed =
        Latlab::new().line("run udp-loopback-matrix 127.0.0.1:9 --quick").deadline(DEADLINE).failure(3).stderr;
    assert!(printed.contains("the experiment has no run that can be used"), "{printed}");
}
