//! `latlab run` of wake-ups: the runs of every condition in turn, judged by their own metric.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::documents;
use crate::harness::{Latlab, contains};
use crate::store::recordings;

/// Eight runs of a fiftieth of a second.
const SMALL: &str = "kind = \"wakeup\"\n[base]\ncount = 10\nwarmup = \"0\"\nrelative = true\n\
                     [factors]\nvia = [\"clock_nanosleep\", \"poll\"]\ninterval = [\"1ms\", \"3ms\"]\n\
                     [design]\nruns = 2\nsettle = \"0s\"\n";

fn lab(file: &str) -> Latlab {
    Latlab::new().file("x.toml", file)
}

/// The manifests of the runs of the one experiment in the store of `directory`.
fn manifests(directory: &Path) -> Vec<Value> {
    let experiments: Vec<PathBuf> = recordings(directory);
    let [experiment] = &experiments[..] else { panic!("{experiments:?}") };
    let runs = fs::read_dir(experiment.join("runs")).expect("runs").map(|run| run.expect("entry").path());
    let read = |run: PathBuf| {
        let text = fs::read_to_string(run.join("manifest.json")).expect("a manifest");
        serde_json::from_str(&text).expect("JSON")
    };
    runs.map(read).collect()
}

#[test]
fn every_condition_has_its_runs_and_its_own_metric() {
    let planned = lab(SMALL).line("run x.toml --dry-run").success().stdout;
    for words in ["x · wakeup · 10 wake-ups", "interval=1ms via=clock_nanosleep", "8 runs in all"] {
        assert!(planned.contains(words), "{words} is not in\n{planned}");
    }
    let ran = lab(SMALL).line("run x.toml --json -q").success();
    let document = ran.json();
    documents::check(&document, "compare/1");
    let rows = document["comparisons"].as_array().expect("rows");
    assert_eq!(rows.len(), 6, "p50 and p99 of three conditions against the first");
    assert!(rows.iter().all(|row| row["metric"] == "wakeup_latency"), "{document:#}");
    let manifests = manifests(ran.directory());
    assert_eq!(manifests.len(), 8);
    for manifest in &manifests {
        let (factors, condition) = (&manifest["experiment"]["factors"], &manifest["condition"]);
        assert_eq!((&factors["via"], manifest["wakeup_rows"].as_u64()), (&condition["via"], Some(10)));
        let interval = if factors["interval"] == "1ms" { 1_000_000 } else { 3_000_000 };
        assert_eq!((condition["interval_ns"].as_u64(), condition["relative"].as_bool()), (Some(interval), Some(true)));
    }
}

#[test]
fn a_run_on_all_cpus_is_one_observation_and_the_next_one_finds_them_all_again() {
    let file = "kind = \"wakeup\"\n[base]\ncount = 10\nwarmup = \"0\"\ninterval = \"1ms\"\n\
                [factors]\ncpu = [\"0\", \"all\"]\nmlock = [true, false]\n\
                [design]\nruns = 2\norder = \"listed\"\nsettle = \"0s\"\n";
    let ran = lab(file).line("run x.toml --json -q").success();
    let groups = ran.json()["groups"].as_array().expect("groups").clone();
    assert_eq!(groups.iter().map(|group| group["runs"].as_u64()).collect::<Vec<_>>(), [Some(2); 4], "{groups:#?}");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for manifest in manifests(ran.directory()) {
        // Runs that were pinned to CPU 0 came before each of those that ask for all.
        let threads = if manifest["experiment"]["factors"]["cpu"] == "all" { cpus } else { 1 };
        assert_eq!(manifest["wakeup_rows"].as_u64(), Some(10 * threads), "{}", manifest["experiment"]);
    }
}

#[test]
fn a_knob_that_this_host_lacks_is_named_with_its_reason() {
    // A host of files without any cpufreq.
    let host = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir_all(host.path().join("proc")).expect("a directory");
    let file =
        SMALL.replace("interval = [\"1ms\", \"3ms\"]", "set = [\"governor=as-found\", \"governor=performance\"]");
    let elsewhere = || {
        lab(&file)
            .environment("LATLAB_HOST_ROOT", host.path().join(""))
            .environment("LATLAB_STATE_DIR", host.path().join("state"))
    };
    elsewhere().line("run x.toml").stderr(contains("cannot set `governor=performance`")).failure(3);
    let kept =
        elsewhere().line("run x.toml --keep-going --json").stderr(contains("4 runs failed and not judged")).failure(4);
    let failed: Vec<Value> = kept.json()["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter(|run| run["outcome"] == "failed")
        .cloned()
        .collect();
    assert_eq!(failed.len(), 4);
    assert!(
        failed.iter().all(|run| run["reason"].as_str().is_some_and(|why| why.contains("performance`: "))),
        "{failed:#?}"
    );
}
