//! How `latlab run` ends: what is judged of runs that failed, and one document in every case.

use std::fs;
use std::net::UdpSocket;

use serde_json::Value;

use crate::documents;
use crate::experiment::{SMALL, echo, only, place};
use crate::harness::{Latlab, contains};

fn rows(document: &Value) -> &Vec<Value> {
    document["comparisons"].as_array().expect("rows")
}

#[test]
fn what_lost_everything_is_a_loss_whoever_judges_it() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let file = format!(
        "kind = \"ping\"\n[base]\nprotocol = \"echo\"\ncount = 20\nwarmup = \"0\"\ntimeout = \"10ms\"\n[factors]\n\
         target = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\n[design]\nruns = 4\nsettle = \"0s\"\n[[compare]]\n\
         statistic = \"p50\"\n[[compare]]\nstatistic = \"loss_ratio\"\n",
        echo(),
        deaf.local_addr().expect("bound").port()
    );
    let directory = place(&file);
    let ran = Latlab::at(directory.path()).line("run x.toml --keep-going --json").failure(4);
    let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
    documents::check(&document, "compare/1");
    assert!(ran.stderr.contains("4 runs without an answer, judged as lost"), "{}", ran.stderr);
    let [p50, loss] = &rows(&document)[..] else { panic!("{document:#}") };
    assert_eq!((&p50["verdict"], &p50["reason"]), (&"undecided".into(), &"lost".into()), "{p50:#}");
    assert_eq!((&loss["candidate_value"], &loss["candidate_runs"]), (&1.0.into(), &4.into()), "{loss:#}");
    let shown = only(directory.path()).display().to_string();
    let compared = Latlab::at(directory.path()).args(["compare", &shown, "--json", "-q"]).success().json();
    assert_eq!(rows(&compared), rows(&document));
    let again = Latlab::at(directory.path()).args(["run", &shown, "--json", "-q"]).failure(4).stdout;
    assert_eq!(rows(&serde_json::from_str(&again).expect("one document")), rows(&document));
}

#[test]
fn a_condition_without_a_run_hides_no_other() {
    // Nothing listens there, so that no session is opened and nothing is recorded.
    let file = "kind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\ntarget = [\"127.0.0.1:9\", \"local\"]\n\
                size = [24, 64]\n[design]\nruns = 4\nsettle = \"0s\"\n[[compare]]\nstatistic = \"p50\"\n\
                [[compare]]\nstatistic = \"p50\"\nbaseline = { size = 24 }\n";
    let directory = place(file);
    let ran = Latlab::at(directory.path()).line("run x.toml --keep-going --json").failure(4);
    let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
    documents::check(&document, "compare/1");
    let undecided = |row: &&Value| row["reason"] == "no-run";
    assert_eq!(rows(&document).iter().filter(undecided).count(), 4, "{document:#}");
    let decided: Vec<_> = rows(&document).iter().filter(|row| !undecided(row)).collect();
    let [row] = &decided[..] else { panic!("{document:#}") };
    assert!(row["difference"]["value"].is_number() && row["baseline_runs"] == 4, "{row:#}");
    let shown = only(directory.path()).display().to_string();
    let text = Latlab::at(directory.path()).args(["run", &shown]).failure(4).stdout;
    assert!(text.contains("the baseline has no run that can be judged"), "{text}");
}

#[test]
fn there_is_one_document_however_it_ends() {
    let boot = |directory: &std::path::Path| {
        let path = directory.join("host/proc/sys/kernel/random/boot_id");
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, "first\n").expect("written");
    };
    let directory = place(&SMALL.replace("blocks = 2", "blocks = 2\nbetween-blocks = \"reboot\""));
    boot(directory.path());
    let run = || {
        let lab = Latlab::at(directory.path()).environment("LATLAB_HOST_ROOT", directory.path().join("host"));
        lab.environment("LATLAB_STATE_DIR", directory.path().join("state")).line("run x.toml --json -q")
    };
    let first = run().success().stdout;
    let again = run().failure(3).stdout;
    for text in [&first, &again] {
        let document: Value = serde_json::from_str(text).expect("one document");
        documents::check(&document, "compare/1");
        assert_eq!(
            (&document["experiment"]["finished"], &document["experiment"]["blocks"]),
            (&false.into(), &1.into())
        );
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(6));
    }
    let refused = place("kind = \"ping\"\ntarget = \"127.0.0.1:9\"\n[base]\ncount = 5\n[design]\nruns = 2\n");
    for (line, code) in [("run x.toml --json -q", 3), ("run x.toml --json -q --keep-going", 3)] {
        let told = Latlab::at(refused.path()).line(line).failure(code).stdout;
        let document: Value = serde_json::from_str(&told).expect("one document");
        documents::check(&document, "compare/1");
        assert_eq!(document["comparisons"], serde_json::json!([]));
        assert!(document["runs"][0]["reason"].is_string(), "{document:#}");
    }
}

#[test]
fn one_condition_shows_the_interval_that_was_asked_for() {
    // On one CPU a median of many probes hardly moves, whatever else the machine does.
    let file = "name = \"alone\"\nkind = \"ping\"\n[base]\ncount = 400\nwarmup = \"0\"\ncpu = 0\npeer-cpu = 0\n\
                [design]\nruns = \"until p50 ±99%\"\nmax-runs = 26\nblocks = 12\nsettle = \"0s\"\n";
    let directory = place(file);
    let ran = Latlab::at(directory.path()).line("run x.toml").success();
    assert!(ran.stderr.contains("after block 12 the intervals are narrow enough"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("round_trip_delay p50") && ran.stdout.contains("24 runs in 12 blocks"),
        "{}",
        ran.stdout
    );
    let shown = only(directory.path()).display().to_string();
    let document = Latlab::at(directory.path()).args(["run", &shown, "--json", "-q"]).success().json();
    documents::check(&document, "compare/1");
    let [p50, p99] = &document["experiment"]["alone"].as_array().expect("rows")[..] else { panic!("{document:#}") };
    assert_eq!((&p50["statistic"], &p50["runs"], &p99["statistic"]), (&"p50".into(), &24.into(), &"p99".into()));
    let [low, mean, high] = ["low", "mean", "high"].map(|key| p50[key].as_f64().expect("a number"));
    assert!(low < mean && mean < high && high < 4.0 * low, "{p50:#}");
    Latlab::at(directory.path()).args(["run", &shown]).stdout(contains("one condition, compared with none")).success();
}
