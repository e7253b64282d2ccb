//! `latlab run` where files are edited, several are started at once, or a process dies at a bad moment.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use rustix::process::Signal;

use crate::experiment::{SMALL, begin, check, events, experiments, journal, only, place, runs, until_ended};
use crate::harness::{Latlab, contains, lacks};

/// One run towards somebody who says nothing.
fn silent(port: u16) -> String {
    format!(
        "kind = \"ping\"\ntarget = \"127.0.0.1:{port}\"\n[base]\nprotocol = \"echo\"\ncount = 20\nwarmup = \"0\"\n\
         timeout = \"10ms\"\n[design]\nruns = 1\n"
    )
}

/// The journal of `experiment` as a kill before the end of its last run was written would have left it.
fn forget_last_end(experiment: &Path) {
    let path = experiment.join("journal.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let at = text.rfind("{\"event\":\"run_ended\"").expect("a run ended");
    fs::write(path, &text[..at]).expect("written");
}

#[test]
fn killed_before_its_line_a_failed_run_is_no_completed_one() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let directory = place(&silent(deaf.local_addr().expect("bound").port()));
    Latlab::at(directory.path()).line("run x.toml").failure(3);
    let experiment = only(directory.path());
    forget_last_end(&experiment);
    Latlab::at(directory.path()).line("run x.toml").stderr(contains("was answered")).failure(3);
    let [(_, Some(ended))] = &runs(&journal(&experiment))[..] else { panic!("taken once") };
    assert_eq!(ended["outcome"], "failed");
    assert!(ended["reason"].as_str().is_some_and(|why| why.contains("no probe was answered")), "{ended}");
}

#[test]
fn an_edited_copy_is_refused_and_may_be_forced() {
    let directory = place(&SMALL.replace("name = \"small\"\n", ""));
    let running = begin(directory.path());
    until_ended(directory.path(), 1);
    running.signal(Signal::INT);
    running.exits(130);
    let experiment = only(directory.path());
    let copy = experiment.join("experiment.toml");
    let begun = fs::read_to_string(&copy).expect("a copy");
    fs::write(&copy, begun.replace("runs = 3", "runs = 4")).expect("edited");
    let shown = experiment.display().to_string();
    for what in [shown.as_str(), "x.toml"] {
        let told = Latlab::at(directory.path()).args(["run", what]).failure(2).stderr;
        for words in ["the file of the experiment", "was edited", "`--force`"] {
            assert!(told.contains(words), "{words} is not in\n{told}");
        }
    }
    let told = Latlab::at(directory.path()).args(["run", &shown, "--force"]).success().stderr;
    assert!(told.contains("no longer one experiment") && told.contains("x · ping local"), "{told}");
    check(&experiment, 16);
    let changed = events(&journal(&experiment), "changed").next().cloned().expect("noted");
    assert_eq!(changed["file_blake3"].as_str().map(str::len), Some(64));
    // Finished, it is reported as it stands, and an edit is noticed again.
    let lab = || Latlab::at(directory.path());
    let document = lab().args(["run", &shown, "--json", "-q"]).success().json();
    assert_eq!((&document["experiment"]["name"], &document["experiment"]["changed"]), (&"x".into(), &1.into()));
    fs::write(&copy, format!("{begun}\n# a remark\n")).expect("edited");
    lab().args(["run", &shown]).stderr(contains("was edited")).failure(2);
}

#[test]
fn of_several_that_are_started_at_once_one_measures() {
    let directory = place(&SMALL.replace("count = 100", "duration = \"1s\""));
    let all: Vec<_> = (0..4).map(|_| begin(directory.path())).collect();
    until_ended(directory.path(), 1);
    // The one that measures is named by the journal.
    let opened =
        events(&journal(&only(directory.path())), "opened").map(|line| line["pid"].clone()).collect::<Vec<_>>();
    let [owner] = &opened[..] else { panic!("{opened:?}") };
    let mut refused = 0;
    for running in all {
        if *owner == running.pid().as_raw_nonzero().get() {
            Latlab::at(directory.path()).line("run x.toml --new").stderr(contains("is being measured")).failure(3);
            running.signal(Signal::TERM);
            running.exits(143);
        } else {
            let told = running.exits(3).stderr;
            assert!(told.contains("is being measured"), "{told}");
            refused += 1;
        }
    }
    assert_eq!((refused, experiments(directory.path()).len()), (3, 1));
}

#[test]
fn a_directory_never_begins_again_and_a_store_must_be_writable() {
    let directory = place(&SMALL.replace("runs = 3\nblocks = 2", "runs = 1"));
    Latlab::at(directory.path()).line("run x.toml -q").success();
    let shown = only(directory.path()).display().to_string();
    Latlab::at(directory.path()).args(["run", &shown, "--new"]).stderr(contains("cannot begin again")).failure(2);
    let told = Latlab::at(directory.path()).line("run x.toml --store /proc/x").failure(3).stderr;
    assert!(told.contains("cannot make the store `/proc/x`") && told.contains("writable place"), "{told}");
    Latlab::at(directory.path()).line("run x.toml --store /proc/x").stderr(lacks("--no-record")).failure(3);
}
