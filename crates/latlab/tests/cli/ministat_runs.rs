//! `latlab compare --ministat` of recordings: each run is one observation.

use std::path::Path;

use crate::harness::{Latlab, contains, empty};
use crate::store::recordings_in;

/// Three runs each of two builds, and the mean round trip of each as `summary` says it, lowest first. A store each:
/// names of the same second sort by chance, and the order of the recordings is that of the groups.
fn two_builds(home: &Path) -> (Vec<std::path::PathBuf>, [Vec<f64>; 2]) {
    let means = ["a", "b"].map(|build| {
        let mean = |_| {
            let lab = Latlab::at(home).line("ping -n 20 --warmup 0 --json -q --store").args([
                build,
                "--tag",
                &format!("build={build}"),
            ]);
            lab.success().json()["metrics"]["round_trip_delay"]["mean"].as_f64().expect("a mean")
        };
        let mut means: Vec<f64> = (0..3).map(mean).collect();
        means.sort_by(f64::total_cmp);
        means
    });
    (["a", "b"].iter().flat_map(|store| recordings_in(&home.join(store))).collect(), means)
}

#[test]
fn each_run_is_one_observation() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (recordings, means) = two_builds(home.path());
    let lab = Latlab::at(home.path()).line("compare --ministat -n --by tag:build").args(&recordings);
    let ran = lab.stdout(contains("x a\n+ b\n")).stderr(empty()).success();
    let figures: Vec<Vec<f64>> = ran
        .stdout
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().skip(1).map(|word| word.parse().expect("a number")).collect())
        .collect();
    for (figures, means) in figures.iter().zip(&means) {
        assert_eq!(figures[0], 3.0, "{}", ran.stdout);
        for (figure, mean) in figures[1..4].iter().zip([means[0], means[2], means[1]]) {
            assert!((figure / mean - 1.0).abs() < 1e-6, "min, max, median of {means:?}: {}", ran.stdout);
        }
    }
    let lab = || Latlab::at(home.path()).line("compare --ministat");
    let grouped = lab().line("-n -q --statistic p50 --group all=[ab]/* --group again=[ab]/*").stderr(empty()).success();
    let lines: Vec<&str> = grouped.stdout.lines().map(|line| &line[1..]).collect();
    assert!(lines.len() == 2 && lines[0] == lines[1] && lines[0].starts_with("   6 "), "{}", grouped.stdout);
    for (flags, told) in [
        ("", "`--by`, `--group`"),
        ("--by tag:buidl", "did you mean `tag:build`?"),
        ("--by laod", "did you mean `load`?"),
        ("--by size --statistic medain", "there is no statistic `medain`"),
        ("--by size --metric rond_trip_delay", "round_trip_delay"),
    ] {
        let refused = lab().line(flags).args(&recordings[..2]).stdout(empty()).stderr(contains(told));
        refused.stderr(contains("\n  hint: ")).failure(2);
    }
    let mixed = lab().arg(&recordings[0]).arg("numbers").file("numbers", "1\n2\n3\n").stdout(empty());
    mixed.stderr(contains("cannot compare numbers of files with recordings")).failure(2);
    let named = lab().line("numbers --statistic p99").stdout(empty());
    named.stderr(contains("`--statistic` cannot go with a file of numbers")).failure(2);
}

#[test]
fn an_experiment_has_its_conditions_for_groups() {
    let file = "kind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\nsize = [24, 64]\n\
                [design]\nruns = 3\nwarmup-runs = 1\nsettle = \"0s\"\n";
    let lab = Latlab::new().file("x.toml", file);
    let home = lab.path("");
    let _done = lab.line("run x.toml").start().exits_with_one_of(&[0, 4]);
    let experiment = crate::store::only_recording(&home);
    let shown = Latlab::at(&home).line("compare --ministat -n").arg(&experiment).stdout(contains("x 24\n+ 64\n"));
    let shown = shown.stderr(contains("2 runs that warmed up")).success();
    assert_eq!(shown.stdout.lines().filter(|line| line[1..].starts_with("   3 ")).count(), 2, "{}", shown.stdout);
    // one group is enough for a plot and figures
    let pattern = format!("all={}/runs/*", experiment.display());
    let alone = Latlab::at(&home).line("compare --ministat --group").arg(pattern);
    alone.stdout(contains("\nx   6 ")).success();
}
