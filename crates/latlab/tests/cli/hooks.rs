//! Hooks of an experiment and free factors: commands that start, fail, hang, flood, fork away and are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::experiment::{check, directory_with, events, journal, only, runs};
use crate::harness::{Latlab, contains, wait_until};
use crate::serve::free_port;
use crate::skip::skip;

/// An experiment of two builds with four runs each, below which `[hooks]` follows.
pub(crate) fn two_builds(target: &str, hooks: &str) -> TempDir {
    let protocol = if target == "local" { "" } else { "protocol = \"echo\"\n" };
    directory_with(&format!(
        "kind = \"ping\"\ntarget = \"{target}\"\n[base]\n{protocol}count = 20\nwarmup = \"0\"\ntimeout = \"200ms\"\n\
         [factors]\nbuild = [\"old\", \"new one\"]\n[design]\nruns = 4\nsettle = \"0s\"\nseed = 3\n[hooks]\n{hooks}\n"
    ))
}

/// A script in `directory` with this text.
pub(crate) fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

/// The echo server of the example, with a pause of so many nanoseconds.
pub(crate) fn server(directory: &Path, name: &str, pause_ns: u32) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-builds/echo.c");
    let path = directory.join(name);
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-DPAUSE_NS={pause_ns}"))
        .arg("-o")
        .args([&path, &source])
        .status()
        .expect("cc");
    assert!(built.success(), "{built}");
    path
}

/// The processes with `text` in their command line.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_text = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    };
    ids.filter(has_text).collect()
}

#[test]
fn levels_are_filled_in_after_the_words_are_split() {
    let port = free_port();
    let directory = two_builds(
        &format!("127.0.0.1:{port}"),
        &format!(
            "before-block = \"sh -c 'echo block >> log'\"\n\
             before-run = \"sh -c 'echo before $1 {{{{x}}}} >> log' x 'is {{build}}'\"\n\
             service = \"{} {port}\"\nready = \"udp:127.0.0.1:{port}\"\n\
             after-run = \"sh -c 'echo after $1 >> log' x '{{build}}'\"\n",
            server(std::env::temp_dir().as_path(), &format!("latlab-echo-{port}"), 0).display()
        ),
    );
    let ran = Latlab::at(directory.path()).line("run x.toml --json").success();
    let document: Value = serde_json::from_str(&ran.stdout).expect("a document");
    assert_eq!(document["groups"].as_array().map(Vec::len), Some(2), "{document:#}");
    let log = fs::read_to_string(directory.path().join("log")).expect("written");
    let count = |line: &str| log.lines().filter(|own| *own == line).count();
    assert_eq!((count("block"), count("before is old {x}"), count("before is new one {x}")), (1, 4, 4), "{log}");
    assert_eq!((count("after old"), count("after new one")), (4, 4), "{log}");
    check(&only(directory.path()), 8);
    let by_tag = Latlab::at(directory.path()).args(["compare", &only(directory.path()).display().to_string()]);
    by_tag.args(["--by", "tag:build"]).stdout(contains("new one")).success();
    assert!(processes_with(&format!("latlab-echo-{port}")).is_empty());
    fs::remove_file(std::env::temp_dir().join(format!("latlab-echo-{port}"))).expect("removed");
}

#[test]
fn a_factor_that_nothing_names_is_refused_with_a_suggestion() {
    for (factor, hooks, text, hint) in [
        ("biuld", "before-run = \"./deploy {build}\"", "the factor `biuld` is not an option", "did you mean `build`?"),
        ("size", "before-run = \"./deploy {sise}\"", "`{sise}` is not a factor", "did you mean `size`?"),
        ("sizes", "before-run = \"true\"", "the factor `sizes` is not an option", "did you mean `size`?"),
        ("build", "before-block = \"./deploy {build}\"", "runs once for all conditions", "`before-run`"),
        ("build", "before-runs = \"x {build}\"", "no key `before-runs`", "`before-run`"),
        ("build", "before-run = \"x '{build}\"", "a quotation mark is not closed", "a program and its arguments"),
        ("build", "ready = \"udp:h{build}\"", "has no port", "`udp:[HOST:]PORT`"),
        ("build", "before-run = \"x {build}\"\nhook-timeout = \"0s\"", "`hook-timeout` cannot be", "more than 0"),
    ] {
        let file = format!("kind = \"ping\"\n[factors]\n{factor} = [\"24\", \"64\"]\n[hooks]\n{hooks}\n");
        let directory = directory_with(&file);
        let lab = Latlab::at(directory.path()).line("run x.toml --dry-run");
        lab.stderr(contains(text)).stderr(contains(hint)).failure(2);
    }
}

#[test]
fn a_dry_run_shows_every_command_and_starts_none() {
    let directory = two_builds("127.0.0.1:7000", "before-run = \"touch '{build}'\"\nready = \"tcp:127.0.0.1:9\"\n");
    let lab = Latlab::at(directory.path()).line("run x.toml --dry-run");
    lab.stdout(contains("before-run: touch 'new one'"))
        .stdout(contains("before-run: touch old"))
        .stdout(contains("ready: tcp:127.0.0.1:9"))
        .success();
    assert!(!directory.path().join("old").exists());
}

#[test]
fn a_hook_that_fails_fails_its_run_and_its_output_is_kept() {
    let directory = two_builds("local", "before-run = \"./deploy '{build}'\"\n");
    script(
        directory.path(),
        "deploy",
        "echo deploying $1; if [ \"$1\" = old ]; then exit 0; fi; echo no space >&2; exit 7",
    );
    let ran = Latlab::at(directory.path()).line("run x.toml");
    let ran =
        ran.stderr(contains("the hook `before-run` failed: exit status 7")).stderr(contains("no space")).failure(3);
    let experiment = only(directory.path());
    let all_runs = runs(&journal(&experiment));
    let Some((_, Some(end))) = all_runs.last() else { panic!("{}", ran.stderr) };
    assert_eq!((&end["outcome"], &end["recording"]), (&"refused".into(), &Value::Null), "{end}");
    let kept: Vec<_> =
        fs::read_dir(experiment.join("hooks")).expect("made").map(|entry| entry.expect("one").path()).collect();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    assert!(fs::read_to_string(kept).expect("text").ends_with("no space\n"), "{kept:?}");
    assert!(ran.stderr.contains(&kept.file_name().expect("one").to_string_lossy().into_owned()), "{}", ran.stderr);
    let all = Latlab::at(directory.path()).line("run x.toml --keep-going --gate p50<=1h");
    all.stderr(contains("exit status 7")).failure(1);
    assert_eq!(events(&journal(&experiment), "finished").count(), 1);
}

#[test]
fn a_server_that_crashes_fails_its_run_which_is_never_judged() {
    let port = free_port();
    let directory = two_builds(
        &format!("127.0.0.1:{port}"),
        &format!("service = \"./serve '{{build}}'\"\nready = \"udp:127.0.0.1:{port}\"\n"),
    );
    let file = directory.path().join("x.toml");
    let text = fs::read_to_string(&file).expect("text").replace("count = 20", "count = 100\ninterval = \"10ms\"");
    fs::write(&file, text).expect("written");
    let echo = server(directory.path(), "echo", 0);
    let shown = echo.display();
    script(
        directory.path(),
        "serve",
        &format!(
            "if [ \"$1\" = old ]; then exec {shown} {port}; fi\n\
             exec python3 -c \"import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
             s.bind(('127.0.0.1',{port}))\nfor _ in range(10): s.sendto(*s.recvfrom(2048))\n\
             print('a bug',file=sys.stderr); sys.exit(3)\""
        ),
    );
    let lab = Latlab::at(directory.path()).line("run x.toml --gate p50<=1h");
    let lab = lab.stderr(contains("the hook `service` failed: it ended: exit status 3")).stderr(contains("a bug"));
    lab.stdout(contains("failed without a run of")).failure(1);
    let experiment = only(directory.path());
    let all_runs = runs(&journal(&experiment));
    let with = |outcome: &str| {
        all_runs.iter().filter(|(_, end)| end.as_ref().is_some_and(|end| end["outcome"] == outcome)).count()
    };
    assert_eq!((with("completed") + with("untrusted"), with("failed")), (4, 4));
    // Each has a recording, which no command judges.
    assert!(all_runs.iter().all(|(_, end)| end.as_ref().is_some_and(|end| end["recording"].is_string())));
    let compared = Latlab::at(directory.path()).arg("compare").arg(experiment.join("runs"));
    compared.args(["--by", "tag:build"]).stdout(contains("no run of it can be judged: `new one`")).measured();
}

#[test]
fn a_hook_that_hangs_or_floods_leaves_nothing() {
    let name = format!("latlab-left-{}", std::process::id());
    let directory = two_builds("local", "before-run = \"./hook {build}\"\nhook-timeout = \"2s\"\n");
    fs::copy("/bin/sleep", directory.path().join(&name)).expect("copied");
    for (text, expected) in [
        (format!("trap '' TERM; ./{name} 300; ./{name} 300"), "no end within 2 s"),
        ("yes a very long flood of output".to_owned(), "no end within 2 s"),
        (format!("./{name} 300 & exit 4"), "exit status 4"),
        (format!("(sh -c './{name} 300 & ./{name} 301 &' &) ; sleep 0.1; exit 5"), "exit status 5"),
    ] {
        script(directory.path(), "hook", &text);
        Latlab::at(directory.path()).line("run x.toml --new").stderr(contains(expected)).failure(3);
        assert_eq!(processes_with(&name), [0; 0], "{text}");
    }
    let experiments = crate::experiment::experiments(directory.path());
    let kept = experiments.iter().filter_map(|path| fs::read_dir(path.join("hooks")).ok()).flatten();
    let sizes = kept.map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len());
    let longest = sizes.max().expect("output of the flood");
    assert_eq!(longest, 64 << 10);
    // A daemon that `before-run` leaves serves the run, and ends after it.
    script(directory.path(), "hook", &format!("./{name} 300 & exit 0"));
    Latlab::at(directory.path()).line("run x.toml --new").success();
    assert_eq!(processes_with(&name), [0; 0]);
}

#[test]
fn an_interrupt_ends_hooks_and_the_hook_after_the_run_still_runs() {
    let name = format!("latlab-wait-{}", std::process::id());
    let directory = two_builds("local", "before-run = \"./hook {build}\"\nafter-run = \"sh -c 'echo after >> log'\"\n");
    fs::copy("/bin/sleep", directory.path().join(&name)).expect("copied");
    script(directory.path(), "hook", &format!("touch began; ./{name} 300"));
    let running = Latlab::at(directory.path()).line("run x.toml").start();
    wait_until("the hook began", || directory.path().join("began").exists());
    running.signal(Signal::INT);
    running.exits(130);
    assert_eq!(processes_with(&name), [0; 0]);
    assert_eq!(fs::read_to_string(directory.path().join("log")).expect("it ran"), "after\n");
}

#[test]
fn after_kill_9_nothing_is_left_and_no_run_is_repeated() {
    let port = free_port();
    let directory = two_builds(
        &format!("127.0.0.1:{port}"),
        &format!(
            "before-run = \"./slow {{build}}\"\nservice = \"./echo {port}\"\nready = \"udp:127.0.0.1:{port}\"\nafter-run = \"./slow after\"\n"
        ),
    );
    server(directory.path(), "echo", 0);
    script(directory.path(), "slow", "echo $1 >> log; sleep 0.1");
    for kills in 1..=6 {
        let running = Latlab::at(directory.path()).line("run x.toml").start();
        let lines = || fs::read_to_string(directory.path().join("log")).unwrap_or_default().lines().count();
        let before = lines();
        wait_until("a hook ran", || lines() > before);
        std::thread::sleep(Duration::from_millis(40 * kills));
        running.signal(Signal::KILL);
        running.killed_by(Signal::KILL);
        wait_until("the server ended", || processes_with(&format!("./echo {port}")).is_empty());
    }
    Latlab::at(directory.path()).line("run x.toml").success();
    check(&only(directory.path()), 8);
    assert!(processes_with(&format!("./echo {port}")).is_empty());
}

/// A 95 % interval misses the truth once in 20 times: three in a row are a defect.
fn within_three(mut holds: impl FnMut() -> bool) -> bool {
    (0..3).any(|_| holds())
}

/// The worked example of the README and of docs/experiments.md: the lines that build, and the line that measures.
fn worked_example(port: u16) -> (Vec<String>, String) {
    let lines = |document: &str| -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(document)).expect("a document");
        let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
        let lines = lines.filter(|line| line.starts_with("cc ") || line.starts_with("latlab run --ab 'taskset"));
        let placed = |line: &str| line.replace("examples/", &format!("{}/examples/", root.display()));
        lines.map(|line| placed(line).replace("7000", &port.to_string())).collect()
    };
    let mut example = lines("README.md");
    assert_eq!(example, lines("docs/experiments.md"));
    let measuring = example.pop().expect("a line that measures");
    assert!(example.len() == 2 && measuring.starts_with("latlab run "), "{example:?}");
    (example, measuring)
}

#[test]
fn the_pause_of_the_worked_example_is_found_with_its_size() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("there is one CPU only");
    }
    let directory = tempfile::tempdir().expect("a directory");
    // Ten times the pause in a quarter of the probes: noise of a busy machine hides 20 us, but not 200.
    let (mut building, measuring) = worked_example(free_port());
    let measuring = measuring.replace("-n 2000", "-n 500");
    building[1] = building[1].replace("=20000", "=200000");
    for line in &building {
        let built = Command::new("sh").args(["-c", line]).current_dir(directory.path()).status().expect("sh(1)");
        assert!(built.success(), "{line}");
    }
    let compared = || -> Value {
        let words = shlex::split(&measuring).expect("words");
        let lab = Latlab::at(directory.path()).args(["run", "--new", "--json"]).args(&words[2..]);
        let document = lab.deadline(Duration::from_secs(120)).measured().json();
        let rows = document["comparisons"].as_array().expect("rows");
        rows.iter().find(|row| row["statistic"] == "p50").expect("a row").clone()
    };
    let mut last = Value::Null;
    let is_right = within_three(|| {
        last = compared();
        let [low, high] = ["low", "high"].map(|end| last["difference"][end].as_f64().unwrap_or_default());
        // No less than the pause, and not another unit: a longer wait also lets the sender sleep deeper.
        last["verdict"] == "higher" && low <= 2_000_000.0 && high >= 200_000.0
    });
    assert!(is_right, "{last:#}");
}
