//! The built-in experiments: their files, and their results with `--quick`.

use std::time::Duration;

use latlab::facts::Capability;
use latlab::host::HostRoot;
use latlab::host::facts::rights;
use serde_json::Value;

use crate::experiment::only;
use crate::harness::{Latlab, check_schema};
use crate::lab::loopback_queue;
use crate::settings::with_governors;

/// An experiment at `--quick` that takes longer hangs: it is planned for a minute, and may get a fifth of a CPU only.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

/// Runs `recipe` with `--quick`. Returns the printed text, and the JSON document of a report made afterwards.
fn quick(recipe: &str) -> (String, Value) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = || Latlab::at(directory.path()).deadline(DEADLINE);
    let ran = at().args(["run", recipe, "--quick"]).measured();
    let shown = only(directory.path()).display().to_string();
    let printed = at().args(["run", &shown, "--json", "-q"]).measured().stdout;
    let document = serde_json::from_str(&printed).expect("one document");
    check_schema(&document, "compare/1");
    (ran.stdout, document)
}

#[test]
fn pi_udp_load_is_reported_with_its_publication() {
    let _loopback = loopback_queue();
    let (printed, document) = quick("pi-udp-load");
    for words in [
        "round trip without reflector dwell, halved, ms",
        "p99.99",
        "UDP, no load",
        "CPU load 80 %",
        "14.723",
        "median of 2 runs",
    ] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    assert!(printed.contains("500 probes each, ") && printed.contains(" lost in all"), "{printed}");
    let published = &document["experiment"]["published"];
    assert_eq!(published["rows"][0]["published"][4], 11.026, "{published:#}");
    let measured = &published["rows"][0]["measured"];
    assert_eq!((&measured["n"], &measured["runs"]), (&500.into(), &2.into()));
    // Of 500 probes, only half a probe lies above p99.9.
    let tail = &measured["figures"][4];
    assert_eq!((&tail["supported"], &tail["reason"]), (&false.into(), &"not-supported".into()));
    assert!(tail["value"].is_number(), "{measured:#}");
    assert_eq!(
        measured["figures"][0]["supported"], true,
        "a minimum is supported by any number of probes: {measured:#}"
    );
    // Over loopback one end has an AF_XDP socket, and no program answers.
    let past = &published["rows"][4];
    let rights = rights(&HostRoot::live()).expect("this process has rights");
    let is_root = rights.has(Capability::NetAdmin);
    assert_eq!(past["label"], "AF_XDP, no load");
    assert_eq!(past["measured"]["xdp"][0]["sender"]["interface"].as_str(), is_root.then_some("lo"), "{past:#}");
    assert_eq!(printed.contains("sender: AF_XDP, generic, queue 0 of lo"), is_root, "{printed}");
    assert_eq!(past["reason"].is_string(), !is_root, "{past:#}");
    let in_driver = published["rows"][8]["reason"].as_str().expect("a reason");
    assert!(in_driver.starts_with("not possible here: "), "{in_driver}");
    let mut below = printed.lines().skip_while(|line| !line.starts_with(" here"));
    assert!(below.next().is_some_and(|line| line.contains('(')), "{printed}");
    assert!(below.next().is_some_and(|line| line.contains("≥ ") || line.contains("n/a")), "{printed}");
}

#[test]
fn aa_reports_false_positives_and_drift() {
    let (printed, document) = quick("aa");
    let same = &document["experiment"]["same"];
    assert_eq!((&same["runs"], &same["exchange_test"]["of"]), (&24.into(), &9.into()), "{same:#}");
    assert_eq!(same["drift"].as_array().map(Vec::len), Some(3));
    assert!(same["mann_whitney"]["share"].is_number() && same["drift"][1]["per_hour"].is_number(), "{same:#}");
    for words in ["every difference found is false", "of 9 tests", "Mann-Whitney", "drift of p99 per minute"] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
}

#[test]
fn wakeup_governor_is_reported_with_its_publication_and_the_growth_with_the_interval() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let host = with_governors(1, "ondemand powersave", "powersave");
    let at = || Latlab::at(home.path()).on(&host).deadline(DEADLINE);
    let printed = at().line("run wakeup-governor --quick").measured().stdout;
    for words in [
        "wake-up latency through select, µs",
        "stdev",
        "1 s, idle, performance",
        "1042.4",
        "1 s, idle, governor as found",
        "10 ms, 30 × sha1sum, governor as found",
        "median of 4 runs, 1 wake-up each\n",
        "clock_nanosleep → select",
        "10ms →",
        "How one sleeps is a factor",
    ] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    // Wake-ups have no loss, and each row is measured or not possible at every scale.
    assert!(!printed.contains("lost") && !printed.contains("not measured"), "{printed}");
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("`policy0` offers `ondemand powersave`").count(), 2, "{printed}");
    let experiment = crate::store::only_recording(home.path()).display().to_string();
    let document = at().args(["run", &experiment, "--json", "-q"]).measured().json();
    check_schema(&document, "compare/1");
}

#[test]
fn governors_that_the_host_does_not_offer_are_left_out_of_a_file_with_the_reason() {
    // A host without the publication's governor.
    let host = with_governors(1, "performance powersave", "powersave");
    let shown = Latlab::new().line("recipes show wakeup-governor").success().stdout;
    let short = shown.replace("count = 100", "count = 2").replace("\"100ms\", \"1s\"", "\"11ms\"");
    let short =
        short.replace("heaters=30", "heaters=1").replace("runs = 4", "runs = 1").replace("blocks = 2", "blocks = 1");
    let lab = Latlab::new().file("x.toml", short).on(&host);
    let ran = lab.deadline(DEADLINE).line("run x.toml --json").measured();
    let document = ran.json();
    let runs = document["runs"].as_array().expect("runs");
    let of = |governor: &str| runs.iter().filter(|run| run["factors"]["set"] == governor).count();
    assert!(of("governor=as-found") > 0 && of("governor=performance") > 0, "{runs:#?}");
    assert!(runs.iter().all(|run| run["outcome"] == "completed"), "{runs:#?}");
    let dropped = document["experiment"]["dropped"].as_array().expect("conditions");
    assert_eq!((of("governor=ondemand"), dropped.len()), (0, 8), "{dropped:#?}");
    let reason = dropped[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("`policy0` offers `performance powersave`"), "{reason}");
    assert_eq!(host.governor(0), "powersave");
}

#[test]
fn dds_stands_beside_its_publication_and_beside_udp() {
    let (printed, document) = quick("dds-pingpong");
    for words in
        ["round trip / 2, µs", "Xeon, 1 GbE", "Pi 4, 1 GbE", "round trip, µs", "UDP, 32 B", "reliable, keyed, 63,000 B"]
    {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    let published = &document["experiment"]["published"];
    assert_eq!(published["sources"], serde_json::json!(["Xeon, 1 GbE", "Pi 4, 1 GbE"]));
    let rows = published["rows"].as_array().expect("rows");
    // UDP and four cells, of two sizes.
    let measured: Vec<&Value> = rows.iter().filter(|row| !row["measured"].is_null()).collect();
    assert_eq!((rows.len(), measured.len()), (45, 10), "{published:#}");
    assert!(measured.iter().all(|row| row["measured"]["n"] == 1_000 && row["measured"]["lost"] == 0), "{measured:#?}");
    let compared = document["comparisons"].as_array().expect("comparisons");
    assert_eq!(compared.len(), 8, "{compared:#?}");
    assert!(
        compared.iter().all(|row| row["baseline"].as_str().is_some_and(|name| name.contains("udp"))),
        "{compared:#?}"
    );
}

#[test]
fn a_target_that_supports_no_row_is_refused() {
    // Nothing listens on that port, and a host without an agent has no loads.
    let printed = Latlab::new().line("run pi-roundtrip 127.0.0.1:9 --quick").failure(3).stderr;
    assert!(printed.contains("left out     `cpu=80%@both`"), "{printed}");
    assert!(
        printed.contains("`load=none` is skipped") && printed.contains("the experiment has no run that can be used"),
        "{printed}"
    );
}
