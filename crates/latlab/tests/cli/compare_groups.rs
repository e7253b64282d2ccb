//! `latlab compare` of recordings: groups, blocks and baselines.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::compare::{copy, document};
use crate::harness::{Finished, Latlab, contains, empty, lacks};

/// A run of the experiment `id`: its load, its block and its ending.
fn run_of(store: &Path, id: &str, (number, load, block): (u32, &str, u32), ending: &str) {
    copy(store, &format!("20261122T0000{number:02}Z-ping-{id}{number:02}"), |manifest| {
        manifest["experiment"] = json!({
            "experiment": format!("00000000000000{id}"), "condition": if load == "none" { 1 } else { 2 },
            "factors": { "load": load }, "block": block, "position": number, "boot_id": "b", "warmup": false,
        });
        manifest["ending"] = json!(ending);
        manifest["started_at"] = json!(format!("2026-11-22T00:00:{number:02}Z"));
    });
}

fn codes(document: &Value) -> Vec<&str> {
    let caveats = document["caveats"].as_array().expect("caveats");
    caveats.iter().filter_map(|caveat| caveat["code"].as_str()).collect()
}

fn names(ran: &Finished) -> Vec<String> {
    let document = document(ran);
    let groups = document["groups"].as_array().expect("groups").clone();
    groups.iter().map(|group| group["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_group_without_a_judged_run_leaves_the_others_compared() {
    let store = |failed: &str| {
        let lab = Latlab::new();
        for run in 0..18 {
            let load = ["none", "cpu=80%", "mem=1GB/s"][run as usize % 3];
            let ending = if load == failed { "failed" } else { "completed" };
            run_of(&lab.path("e"), "e1", (run, load, 1), ending);
        }
        lab
    };
    let reasons = |ran: &Finished| -> Vec<Value> {
        let document = document(ran);
        let rows = document["comparisons"].as_array().expect("rows");
        rows.iter().filter(|row| row["statistic"] == "p50").map(|row| row["reason"].clone()).collect()
    };
    let ran = store("cpu=80%").line("compare e --by load --json").stderr(contains("no run is left of `cpu=80%`"));
    let ran = ran.success();
    assert_eq!(reasons(&ran), ["no-run", "unsure"]);
    assert!(codes(&document(&ran)).contains(&"runs-left-out"));
    let shown = Latlab::at(ran.directory()).line("compare e --by load").success().stdout;
    assert!(shown.contains("no row, since no run of it can be judged: `cpu=80%`\n"), "{shown}");
    assert!(!shown.contains("→ cpu=80%"), "{shown}");
    let bare = store("none").line("compare e --by load --json -q").success();
    assert_eq!(reasons(&bare), ["no-run", "no-run"]);
    let words = "no row, since no run of it can be judged: `none`";
    Latlab::at(bare.directory()).line("compare e --by load").stdout(contains(words)).success();
    let other =
        Latlab::at(bare.directory()).args(["compare", "e", "--by", "load", "--baseline", "cpu=80%", "--json", "-q"]);
    assert_eq!(reasons(&other.success()), ["no-run", "unsure"]);
    let all = Latlab::new();
    (0..6).for_each(|run| run_of(&all.path("e"), "e1", (run, ["none", "cpu=80%"][run as usize % 2], 1), "failed"));
    let refused = all.line("compare e --by load").stdout(empty());
    let refused = refused.stderr(contains("no run of `none`, `cpu=80%` can be judged: each failed\n"));
    refused.stderr(contains("hint: ")).failure(2);
}

#[test]
fn the_baseline_is_the_first_level_of_the_factor_not_the_first_run() {
    let lab = Latlab::new();
    for (number, (build, size)) in [("v10", 1024), ("v9", 64), ("v10", 128), ("v9", 1024)].into_iter().enumerate() {
        copy(&lab.path("runs"), &format!("20261122T00000{number}Z-ping-{number:04}"), |manifest| {
            manifest["spec"]["tags"] = json!({ "build": build });
            manifest["spec"]["work"]["size_bytes"] = json!(size);
        });
    }
    let by = |by: &str| {
        lab.path("runs").parent().map(Latlab::at).expect("home").line("compare runs --json -q --by").line(by)
    };
    assert_eq!(names(&by("size").success()), ["64", "128", "1024"]);
    assert_eq!(names(&by("tag:build").success()), ["v9", "v10"]);
    assert_eq!(names(&by("tag:build --baseline v10").success()), ["v10", "v9"]);
    for (args, printed) in
        [("tag:build --baseline v11", "the groups are v9, v10"), ("size --baseline 65", "the groups are 64, 128, 1024")]
    {
        by(args).stdout(empty()).stderr(contains(printed)).stderr(contains("hint: ")).failure(2);
    }
    let alone = lab.line("compare runs --baseline v9").stdout(empty()).stderr(contains("--by"));
    alone.failure(2);
    // The levels of an experiment have the order of its file.
    let experiment = Latlab::new();
    for run in 0..8 {
        run_of(&experiment.path("e"), "e1", (run, if run % 2 == 0 { "cpu=80%" } else { "none" }, 1), "completed");
    }
    assert_eq!(names(&experiment.line("compare e --by load --json -q").success()), ["none", "cpu=80%"]);
}

#[test]
fn a_row_shows_the_statistic_that_its_label_names() {
    let lab = Latlab::new();
    (0..8)
        .for_each(|run| run_of(&lab.path("e"), "e1", (run, if run < 4 { "none" } else { "cpu=80%" }, 1), "completed"));
    let ran = lab.line("compare e --by load --shift --gate").arg("p90 <= +5%").line("--json -q").success();
    let printed = document(&ran);
    let (gate, row) = (&printed["gates"][0], &printed["comparisons"].as_array().expect("rows").iter());
    let row = row.clone().find(|row| row["statistic"] == "p90").expect("the gate's row");
    for key in ["metric", "statistic", "baseline", "candidate"] {
        assert_eq!(gate[key], row[key], "{key}");
    }
    for key in ["value", "low", "high"] {
        assert!(gate[key].is_number() && gate[key] == row["relative"][key], "{key} of {gate}");
    }
    let value = |rows: &str, statistic: &str| {
        let row = printed[rows].as_array().expect("rows").iter().find(|row| row["statistic"] == statistic);
        row.unwrap_or_else(|| panic!("no {statistic}"))["baseline_value"].as_f64().expect("a figure")
    };
    assert_eq!(value("comparisons", "p90"), value("shifts", "p90"));
    let shares =
        Latlab::at(ran.directory()).line("compare e --by load --statistic 0.9 --json -q --gate").arg("0.9 <= +5%");
    let shares = document(&shares.success());
    assert_eq!(shares["comparisons"][0]["statistic"], "p90");
    assert_eq!(shares["comparisons"][0]["baseline_value"], value("comparisons", "p90"));
    assert_eq!(shares["gates"][0]["statistic"], "p90");
    let summary = Latlab::at(ran.directory())
        .line("summary --json -q --quantiles 0.9,p10")
        .arg(fs::read_dir(ran.directory().join("e")).expect("runs").next().expect("one").expect("readable").path());
    let summary = summary.success().json();
    for quantile in summary["metrics"]["round_trip_delay"]["quantiles"].as_array().expect("two") {
        let name = format!("p{}", quantile["q"].as_f64().expect("a place") * 100.0);
        let (shown, own) = (value("shifts", &name), quantile["value"].as_f64().expect("a figure"));
        assert!((shown / own - 1.0).abs() < 1e-9, "{name}: {shown} and {own}");
    }
    let home = ran.directory();
    let mixed =
        Latlab::at(home).line("compare e --by load --shift").args(["--gate", "value <= +5%", "--gate", "p90 <= +5%"]);
    mixed.stdout(empty()).stderr(contains("`value` is for files of numbers")).stderr(lacks("panic")).failure(2);
}
