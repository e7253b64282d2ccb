//! `latlab run` with the targets `cmd:`, `ssh:` and `lab`: loads at the peer, namespaces, rights.

use std::path::Path;

use serde_json::Value;

use crate::far_end::{Sshd, with_latlab};
use crate::harness::{BINARY, Finished, Latlab, check_schema, contains, wait_until};
use crate::lab::privileged;
use crate::processes::{below, children, is_alive};
use crate::store::{manifest, recordings, recordings_in};

/// An experiment with `target` and `factors`, two runs of each condition.
fn file(target: &str, base: &str, factors: &str) -> String {
    format!(
        "name = \"afar\"\nkind = \"ping\"\n{target}[base]\ncount = 200\ninterval = \"2ms\"\nwarmup = \"0\"\n{base}[factors]\n{factors}\n\
         [design]\nruns = 2\nsettle = \"0s\"\nseed = 7\n"
    )
}

/// The manifests of the runs of the only experiment in the store of `directory`, the oldest first.
fn manifests(directory: &Path) -> Vec<Value> {
    let [experiment] = &recordings(directory)[..] else { panic!("{:?}", recordings(directory)) };
    recordings_in(&experiment.join("runs")).iter().map(|path| manifest(path)).collect()
}

/// The document of a finished experiment without a failed run. On a busy machine a run may be untrusted.
#[track_caller]
fn document(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "compare/1");
    assert_eq!(document["experiment"]["finished"], true, "{}", ran.stderr);
    let outcomes: Vec<_> = document["runs"].as_array().expect("runs").iter().map(|run| &run["outcome"]).collect();
    assert!(
        outcomes.iter().all(|outcome| ["completed", "untrusted"].iter().any(|word| *outcome == word)),
        "{outcomes:?}"
    );
    document
}

#[test]
fn a_load_at_the_peer_can_be_a_factor() {
    let target = format!("target = \"cmd:{BINARY} agent --stdio\"\n");
    let text = file(&target, "peer-addr = \"127.0.0.1\"\n", "load = [\"none\", \"cpu=10%@peer\"]");
    let ran = Latlab::new().file("x.toml", text).line("run x.toml --json -q").measured();
    let document = document(&ran);
    assert_eq!((&document["factor"], document["runs"].as_array().map(Vec::len)), (&"load".into(), Some(4)));
    let names: Vec<_> = document["groups"].as_array().expect("two").iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["none", "cpu=10%@peer"]);
    for manifest in manifests(ran.directory()) {
        let loads = manifest["loads"].as_array().expect("a list");
        match manifest["experiment"]["factors"]["load"].as_str() {
            Some("none") => assert!(loads.is_empty(), "{loads:?}"),
            _ => {
                let [load] = &loads[..] else { panic!("{loads:?}") };
                assert_eq!((&load["kind"], &load["at"]), (&"cpu".into(), &"peer".into()));
                assert!(load["achieved"].as_f64().is_some_and(|share| share > 0.0), "{load}");
            }
        }
    }
}

#[test]
fn a_target_that_lacks_an_address_is_refused_before_the_first_run() {
    let targets = format!("target = [\"local\", \"cmd:{BINARY} agent --stdio\"]");
    let text = file("", "", &targets);
    // The address of an agent that is started by a command is unknown without `peer-addr`.
    let lab = Latlab::new().file("x.toml", &text).line("run x.toml");
    let refused = lab.stderr(contains("--peer-addr")).stderr(contains("hint: ")).start().exits_with_one_of(&[2, 3]);
    assert!(recordings(refused.directory()).iter().all(|path| recordings_in(&path.join("runs")).len() < 2));
    let text = file("", "peer-addr = \"127.0.0.1\"\n", &format!("target = [\"cmd:{BINARY} agent --stdio\"]"));
    let alone = Latlab::new().file("x.toml", text).line("run x.toml --json -q").measured();
    assert!(document(&alone)["comparisons"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn no_agent_outlives_an_experiment_over_ssh() {
    let Some(sshd) = Sshd::start(&with_latlab()) else { return };
    let text = file("target = \"ssh:far\"\n", "", "size = [24, 1000]");
    let lab = Latlab::new().environment("PATH", sshd.path()).file("x.toml", text);
    assert_eq!(document(&lab.line("run x.toml --json -q").measured())["runs"].as_array().map(Vec::len), Some(4));
    assert_eq!(below(sshd.pid(), &["agent"]), None, "the agents end before latlab");
}

#[test]
fn an_experiment_killed_in_a_lab_leaves_no_process_and_continues() {
    if !privileged() {
        return;
    }
    let text = file("target = \"lab\"\n", "", "size = [24, 1000]");
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).file("x.toml", text).line("run x.toml").start();
    let runs = || recordings(home.path()).first().map_or(0, |path| recordings_in(&path.join("runs")).len());
    wait_until("the second run had begun", || runs() >= 2);
    let below = children(running.pid().as_raw_nonzero().get());
    running.signal(rustix::process::Signal::KILL);
    running.killed_by(rustix::process::Signal::KILL);
    wait_until("its processes had ended", || !below.iter().any(|pid| is_alive(*pid)));
    let ran = Latlab::at(home.path()).line("run x.toml --json -q").measured();
    let document = ran.json();
    assert_eq!(
        (&document["experiment"]["finished"], document["groups"].as_array().map(Vec::len)),
        (&true.into(), Some(2))
    );
    assert!(document["groups"].as_array().expect("two").iter().all(|group| group["runs"] == 2), "{document:#}");
}
