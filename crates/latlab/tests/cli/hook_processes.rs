//! Hooks of an experiment whose processes are killed or kill others, and experiments that continue after that.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::experiment::{check, journal, only, runs};
use crate::harness::{Latlab, contains, lacks, wait_until};
use crate::hooks::{script, server, two_builds};
use crate::serve::free_port;

/// The processes whose parent is `parent`.
fn children(parent: Pid) -> Vec<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", parent.as_raw_nonzero());
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

#[test]
fn a_hook_without_a_terminal_fails_at_once() {
    let directory = two_builds("local", "before-run = \"./hook '{build}'\"\n");
    script(directory.path(), "hook", "read -r answer </dev/tty || { echo asked for a password >&2; exit 9; }");
    Latlab::at(directory.path()).line("run x.toml").stderr(contains("asked for a password")).failure(3);
}

#[test]
fn the_hook_after_a_run_that_was_cut_off_runs_until_it_has_ended() {
    let directory = two_builds("local", "after-run = \"./after\"\nbefore-run = \"true '{build}'\"\n");
    script(directory.path(), "after", "echo begin >> log; sleep 0.5; echo end >> log; test ! -e broken");
    let log = || fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    let begun = || log().matches("begin").count();
    for kill in 1..=3 {
        let running = Latlab::at(directory.path()).line("run x.toml").start();
        wait_until("the hook began", || begun() == kill);
        running.signal(Signal::KILL);
        running.killed_by(Signal::KILL);
        assert_eq!(runs(&journal(&only(directory.path()))).len(), 1, "the run is over once its hook has ended");
    }
    // The hook fails: the run that it stands behind is not judged.
    fs::write(directory.path().join("broken"), "").expect("written");
    let running = Latlab::at(directory.path()).line("run x.toml").start();
    running.exits(3);
    let all = runs(&journal(&only(directory.path())));
    let Some((_, Some(end))) = all.first() else { panic!("{all:?}") };
    assert_eq!(end["outcome"], "failed", "{end}");
    let recording = only(directory.path()).join("runs").join(end["recording"].as_str().expect("a recording"));
    let manifest: Value =
        serde_json::from_slice(&fs::read(recording.join("manifest.json")).expect("read")).expect("JSON");
    assert_eq!(manifest["ending"], "failed");
}

#[test]
fn a_run_whose_hook_fails_before_it_is_repeated() {
    let directory = two_builds("local", "before-run = \"./deploy '{build}'\"\n");
    script(directory.path(), "deploy", "test ! -e full || { echo no space; exit 7; }");
    fs::write(directory.path().join("full"), "").expect("written");
    for _ in 0..3 {
        Latlab::at(directory.path()).line("run x.toml").stderr(contains("no space")).failure(3);
    }
    fs::remove_file(directory.path().join("full")).expect("removed");
    Latlab::at(directory.path()).line("run x.toml").success();
    let all = runs(&journal(&only(directory.path())));
    let outcomes: Vec<&str> = all.iter().filter_map(|(_, end)| end.as_ref()?["outcome"].as_str()).collect();
    assert_eq!(outcomes[..3], ["refused"; 3]);
    assert!(
        outcomes.len() == 11 && outcomes[3..].iter().all(|own| ["completed", "untrusted"].contains(own)),
        "{all:?}"
    );
}

#[test]
fn a_wait_without_effect_names_the_last_reason() {
    let directory = two_builds(
        "local",
        "before-run = \"true '{build}'\"\nready = \"sh -c 'echo still loading; exit 4'\"\nhook-timeout = \"300ms\"\n",
    );
    let lab = Latlab::at(directory.path()).line("run x.toml").stderr(contains("not ready within 300 ms"));
    lab.stderr(contains("exit status 4")).stderr(contains("still loading")).failure(3);
    // Three such runs, of two conditions, are not the result of one of them.
    let not_ready = runs(&journal(&only(directory.path()))).len();
    assert!((3..=5).contains(&not_ready), "{not_ready}");
}

#[test]
fn an_experiment_is_not_continued_with_another_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    server(directory.path(), "old", 0);
    server(directory.path(), "new", 0);
    let line = |more: &[&str]| {
        let (a, b) = (format!("./old {port}"), format!("./new {port}"));
        let lab = Latlab::at(directory.path()).args(["run", "--runs", "3"]).args(more).args(["--ab", &a, &b, "--"]);
        lab.args(["ping", &format!("127.0.0.1:{port}"), "--protocol", "echo", "-n", "20", "--warmup", "0"])
    };
    let running = line(&[]).start();
    // Of three runs of each, so many are of both.
    crate::experiment::until_ended(directory.path(), 4);
    running.signal(Signal::INT);
    running.exits(130);
    server(directory.path(), "new", 1_000);
    line(&[]).stderr(contains("`./new` was changed after the last run")).failure(2);
    line(&["--force"]).stderr(contains("warning: the experiment in")).measured();
    check(&only(directory.path()), 6);
}

#[test]
fn a_build_that_crashes_at_its_start_is_a_result_and_breaks_each_gate() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    server(directory.path(), "old", 0);
    script(directory.path(), "crash", "echo reads its config; echo 'assertion failed: x > 0' >&2; exit 3");
    let (a, b) = (format!("./old {port}"), format!("./crash {port}"));
    let lab = Latlab::at(directory.path()).args(["run", "--runs", "3", "--format", "markdown", "--gate", "p50 <= 1h"]);
    let lab = lab.args(["--ab", &a, &b, "--", "ping", &format!("127.0.0.1:{port}")]);
    let lab = lab.args(["--protocol", "echo", "-n", "200", "--warmup", "0"]);
    let lab = lab.stderr(contains("the hook `service` failed: it ended: exit status 3"));
    // Each failure is one warning, that of its run.
    let lab = lab.stderr(lacks("warning: the hook `service`"));
    lab.stderr(contains("assertion failed: x > 0")).stdout(contains("gate `p50 <= 1h` failed")).failure(1);
    let experiment = only(directory.path());
    let ended = runs(&journal(&experiment));
    assert_eq!(ended.len(), 6, "the experiment went on");
    let compared = Latlab::at(directory.path()).args(["compare", &experiment.display().to_string()]);
    compared.args(["--gate", "p50 <= +5%"]).stdout(contains("gate `p50 <= +5%` failed")).failure(1);
    // A program that cannot be started is a mistake of the command line.
    let lab = Latlab::at(directory.path()).args(["run", "--ab", "./nwe", "./absent", "--", "ping", "127.0.0.1:9"]);
    lab.stderr(contains("cannot start the hook `service`")).failure(3);
}

#[test]
fn an_experiment_whose_hook_writes_a_program_can_be_continued() {
    let directory = two_builds("local", "before-run = \"cp './of {build}' ./server\"\nservice = \"./server 300\"\n");
    for name in ["of old", "of new one"] {
        fs::copy("/bin/sleep", directory.path().join(name)).expect("copied");
    }
    let running = crate::experiment::begin(directory.path());
    crate::experiment::until_ended(directory.path(), 2);
    running.signal(Signal::INT);
    running.exits(130);
    Latlab::at(directory.path()).line("run x.toml").success();
}

#[test]
fn after_an_interrupt_no_hook_of_the_next_run_begins_and_a_failed_hook_marks_its_run() {
    let directory =
        two_builds("local", "before-run = \"sh -c 'echo begin >> log' '{build}'\"\nafter-run = \"./after\"\n");
    script(directory.path(), "after", "echo after >> log; sleep 1; exit 9");
    let log = || fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    let running = Latlab::at(directory.path()).line("run x.toml").start();
    wait_until("the hook began", || log().contains("after"));
    running.signal(Signal::INT);
    let ended = running.exits(130);
    assert!(ended.stderr.contains("the hook `after-run` failed: exit status 9"), "{}", ended.stderr);
    assert_eq!(log(), "begin\nafter\n");
    let all = runs(&journal(&only(directory.path())));
    let [(_, Some(end))] = &all[..] else { panic!("{all:?}") };
    assert_eq!(end["outcome"], "failed", "measured, and its hook failed: {end}");
}

#[test]
fn signals_to_every_process_at_once_are_an_interrupt() {
    let directory =
        two_builds("local", "before-run = \"true '{build}'\"\nservice = \"./serve\"\nready = \"test -e never\"\n");
    script(directory.path(), "serve", "touch began; exec sleep 300");
    let running = Latlab::at(directory.path()).line("run x.toml").start();
    wait_until("the service began", || directory.path().join("began").exists());
    let all = children(running.pid());
    running.signal(Signal::TERM);
    all.into_iter().for_each(|pid| _ = kill_process(pid, Signal::TERM));
    running.exits_with_one_of(&[130, 143]);
    let ended = runs(&journal(&only(directory.path())));
    assert!(ended.iter().all(|(_, end)| end.as_ref().is_some_and(|end| end["outcome"] == "interrupted")), "{ended:?}");
}

/// The experiment of [`two_builds`] with an echo server, the conditions in turn.
fn served(hooks: impl FnOnce(u16) -> String) -> tempfile::TempDir {
    let port = free_port();
    let wait = format!("ready = \"udp:127.0.0.1:{port}\"\n{}", hooks(port));
    let directory = two_builds(&format!("127.0.0.1:{port}"), &wait);
    server(directory.path(), "echo", 0);
    let file = directory.path().join("x.toml");
    let text = fs::read_to_string(&file).expect("text").replace("seed = 3", "order = \"listed\"");
    fs::write(&file, text.replace("count = 20", "count = 40\ninterval = \"10ms\"")).expect("written");
    directory
}

/// The outcomes of the runs of the only experiment in `directory`.
fn outcomes(directory: &Path) -> Vec<String> {
    let all = runs(&journal(&only(directory)));
    all.iter().filter_map(|(_, end)| Some(end.as_ref()?["outcome"].as_str()?.to_owned())).collect()
}

#[test]
fn a_service_that_ends_by_itself_fails_its_run_however_it_ends() {
    for (ending, expected) in [("exit 0", "it ended: exit status 0"), ("kill -SEGV $$", "it ended: killed by SIGSEGV")]
    {
        // Its child answers on.
        let directory = served(|port| format!("service = \"./serve '{{build}}' {port}\"\n"));
        script(directory.path(), "serve", &format!("./echo $2 & sleep 0.35; {ending}"));
        let lab = Latlab::at(directory.path()).line("run x.toml").stderr(contains(expected));
        lab.stderr(contains("stopped: each of the first 3 runs failed")).failure(3);
        assert_eq!(outcomes(directory.path()), ["failed"; 3], "{ending}");
    }
    // Its answer to the end of the run is another matter.
    let directory = served(|port| format!("service = \"./serve '{{build}}' {port}\"\n"));
    script(directory.path(), "serve", "./echo $2 & served=$!\ntrap 'kill $served; exit 9' TERM\nwait");
    Latlab::at(directory.path()).line("run x.toml").measured();
    check(&only(directory.path()), 8);
}

#[test]
fn the_output_of_a_service_that_is_never_ready_is_kept() {
    let directory = served(|_| "service = \"./serve '{build}'\"\nhook-timeout = \"300ms\"\n".to_owned());
    script(directory.path(), "serve", "echo cannot open the licence file; exec sleep 300");
    let lab = Latlab::at(directory.path()).line("run x.toml").stderr(contains("`service` wrote: cannot open"));
    lab.stderr(contains("its output is in")).failure(3);
    let kept = fs::read_dir(only(directory.path()).join("hooks")).expect("kept");
    let names: Vec<_> = kept.map(|entry| entry.expect("one").file_name().into_string().expect("UTF-8")).collect();
    assert!(names.len() == 3 && names.iter().all(|name| name.ends_with("-service.txt")), "{names:?}");
}

#[test]
fn a_run_whose_service_failed_does_not_count_after_a_kill_during_the_next_hook() {
    let hooks = "after-run = \"./after\"\n";
    let directory = served(|port| format!("service = \"./serve '{{build}}' {port}\"\n{hooks}"));
    script(directory.path(), "serve", "[ \"$1\" = old ] && exec ./echo $2; ./echo $2 & sleep 0.2; exit 5");
    script(directory.path(), "after", "echo run >> log; [ $(wc -l < log) -ne 2 ] || sleep 300");
    let running = Latlab::at(directory.path()).line("run x.toml").start();
    let hooks_run = || fs::read_to_string(directory.path().join("log")).unwrap_or_default().lines().count();
    wait_until("the hook of the second run began", || hooks_run() == 2);
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    assert_eq!(outcomes(directory.path()), ["completed"]);
    Latlab::at(directory.path()).line("run x.toml").failure(4);
    assert_eq!(outcomes(directory.path()), ["completed", "failed"].repeat(4));
}
