//! `latlab run`: order, journal, interruption and continuation of an experiment.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::fake_host::FakeHost;
use crate::harness::{Latlab, Running, check_schema, contains, empty, lacks, wait_until};
use crate::serve::free_port;
use crate::settings::with_governors;

/// Twelve runs of 100 probes.
pub(crate) const SMALL: &str = "name = \"small\"\nkind = \"ping\"\n[base]\ncount = 100\nwarmup = \"0\"\n\
                     [factors]\nsize = [24, 64]\n[design]\nruns = 3\nblocks = 2\nsettle = \"0s\"\nseed = 7\n";

/// Identifies the boot, on a fake host too.
pub(crate) const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// A directory with the experiment file `x.toml`.
pub(crate) fn directory_with(file: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("x.toml"), file).expect("written");
    directory
}

/// The experiments in the store of `directory`, in the order of their names.
pub(crate) fn experiments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("latlab-runs")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    paths
}

pub(crate) fn only(directory: &Path) -> PathBuf {
    let [one] = &experiments(directory)[..] else { panic!("{:?}", experiments(directory)) };
    one.clone()
}

/// The complete lines of a journal, none if it does not exist.
pub(crate) fn journal(experiment: &Path) -> Vec<Value> {
    let text = fs::read_to_string(experiment.join("journal.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

pub(crate) fn events<'a>(journal: &'a [Value], event: &'a str) -> impl Iterator<Item = &'a Value> {
    journal.iter().filter(move |line| line["event"] == event)
}

/// The start of each run with its end, in order.
pub(crate) fn runs(journal: &[Value]) -> Vec<(Value, Option<Value>)> {
    let mut runs: Vec<(Value, Option<Value>)> = Vec::new();
    for line in journal {
        match line["event"].as_str() {
            Some("run_began") => runs.push((line.clone(), None)),
            Some("run_ended") => runs.last_mut().expect("it began").1 = Some(line.clone()),
            _ => {}
        }
    }
    runs
}

fn manifest(recording: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(recording.join("manifest.json")).expect("a manifest")).expect("JSON")
}

/// Expects that `expected` runs are finished, each exactly once, and that the journal names each recording exactly once, with
/// the block, position and condition of its manifest.
pub(crate) fn check(experiment: &Path, expected: usize) {
    let journal = journal(experiment);
    let mut over = BTreeMap::<String, u32>::new();
    let mut named = BTreeMap::<String, u32>::new();
    for (began, ended) in runs(&journal) {
        let ended = ended.unwrap_or_else(|| panic!("no end: {began}"));
        if ["completed", "untrusted", "failed"].contains(&ended["outcome"].as_str().expect("a word")) {
            let key = format!("{} {} {} {}", began["block"], began["factors"], began["repetition"], began["warmup"]);
            *over.entry(key).or_default() += 1;
        }
        let Some(name) = ended["recording"].as_str() else { continue };
        *named.entry(name.to_owned()).or_default() += 1;
        let manifest = manifest(&experiment.join("runs").join(name));
        for key in ["block", "position", "factors", "condition", "warmup"] {
            assert_eq!(manifest["experiment"][key], began[key], "{name}");
        }
        assert!(manifest.get("command").is_none(), "{name}: its file makes it");
        if ended["outcome"] == "completed" {
            assert_eq!(manifest["ending"], "completed", "{name}");
        }
    }
    assert_eq!(over.len(), expected, "{over:?}");
    assert!(over.values().chain(named.values()).all(|times| *times == 1), "{over:?} {named:?}");
    // A kill between the creation of a directory and of its first manifest leaves an empty directory: it is not a recording.
    let kept: Vec<_> = fs::read_dir(experiment.join("runs"))
        .expect("runs")
        .map(|run| run.expect("entry").path())
        .filter(|run| run.join("manifest.json").exists())
        .collect();
    assert_eq!(kept.len(), named.len(), "{kept:?}");
}

pub(crate) fn begin(directory: &Path) -> Running {
    Latlab::at(directory).line("run x.toml").start()
}

/// Waits until `count` runs have ended.
pub(crate) fn until_ended(directory: &Path, count: usize) {
    wait_until("a run ended", || {
        experiments(directory).last().is_some_and(|path| events(&journal(path), "run_ended").count() >= count)
    });
}

#[test]
fn the_runs_follow_the_order_that_a_dry_run_shows() {
    let directory = directory_with(SMALL);
    let printed = Latlab::at(directory.path()).line("run x.toml --dry-run").success().stdout;
    for words in
        ["small · ping local", "1  size=24", "3 runs per condition; 2 blocks: 12 runs in all", "expected     about"]
    {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    assert!(experiments(directory.path()).is_empty(), "a dry run leaves nothing behind");
    let order = |block: &str| -> Vec<u64> {
        let line = printed.lines().find_map(|line| line.strip_prefix(block)).unwrap_or_else(|| panic!("{printed}"));
        line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    };
    let other = Latlab::at(directory.path()).file("y.toml", SMALL.replace("seed = 7", "seed = 8"));
    let other = other.line("run y.toml --dry-run").success().stdout;
    assert_ne!(printed, other, "another seed, another order");
    Latlab::at(directory.path()).line("run x.toml").stderr(contains("12 runs in all")).success();
    let experiment = only(directory.path());
    let taken: Vec<(u64, u64)> = runs(&journal(&experiment))
        .iter()
        .map(|(began, _)| (began["block"].as_u64().expect("block"), began["condition"].as_u64().expect("condition")))
        .collect();
    let expected: Vec<(u64, u64)> = [1, 2]
        .into_iter()
        .flat_map(|block| order(&format!("block {block}")).into_iter().map(move |c| (block, c)))
        .collect();
    assert_eq!(taken, expected);
    check(&experiment, 12);
    // A finished experiment: its directory is only reported, its file begins a new one.
    let shown = experiment.display().to_string();
    Latlab::at(directory.path()).args(["run", &shown]).stderr(contains("is finished")).success();
    assert_eq!(runs(&journal(&experiment)).len(), 12);
    Latlab::at(directory.path()).line("run x.toml --dry-run").stdout(lacks("of them done")).success();
}

#[test]
fn designs_follow_from_the_runs_that_exist() {
    let directory = directory_with(&SMALL.replace("runs = 3\nblocks = 2", "runs = 4\nblocks = 1"));
    let at = || Latlab::at(directory.path());
    let plan = |file: &'static str| at().args(["run", file, "--plan", "p50 20%"]);
    plan("x.toml").stderr(contains("it has no run")).stderr(contains("measure a pilot first")).failure(2);
    assert!(experiments(directory.path()).is_empty(), "a plan measures nothing");
    at().line("run x.toml").success();
    // A file with other numbers of runs is still planned by its pilot.
    fs::write(directory.path().join("x.toml"), SMALL).expect("written");
    let printed = plan("x.toml").success().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["of each condition", "a change of 20 % in p50", "spread of the pilot: 8 runs in 1 block of 1 boot"] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    // The experiment of another file has not begun: the recordings of the store are its pilot.
    fs::write(directory.path().join("y.toml"), SMALL).expect("written");
    for _ in 0..4 {
        at().line("ping -n 100 --warmup 0").success();
    }
    plan("y.toml").stdout(contains("spread of the pilot: 4 runs in 1 block of 1 boot")).success();
}

#[test]
fn an_experiment_killed_at_any_time_continues_without_losing_or_repeating_a_run() {
    let directory = directory_with(&SMALL.replace("blocks = 2", "blocks = 2\nwarmup-runs = 1"));
    // Delays from before the first line of the journal to the middle of a later run.
    for delay_ms in [3, 40, 90, 160, 230, 310, 420, 510, 640, 770, 910, 1_100] {
        let running = begin(directory.path());
        thread::sleep(Duration::from_millis(delay_ms));
        running.signal(Signal::KILL);
        drop(running);
    }
    // A kill before the first line of the journal leaves a directory without an experiment.
    Latlab::at(directory.path()).line("run x.toml").success();
    let begun: Vec<PathBuf> =
        experiments(directory.path()).into_iter().filter(|path| !journal(path).is_empty()).collect();
    let [.., last] = &begun[..] else { panic!("nothing was begun") };
    check(last, 16);
    assert!(begun.iter().rev().skip(1).all(|earlier| events(&journal(earlier), "finished").count() == 1), "{begun:?}");
}

#[test]
fn an_interrupted_experiment_continues_with_the_same_command() {
    let directory = directory_with(&SMALL.replace("count = 100", "duration = \"200ms\""));
    let running = begin(directory.path());
    until_ended(directory.path(), 2);
    running.signal(Signal::INT);
    let printed = running.exits(130).stderr;
    assert!(printed.contains("` continues"), "{printed}");
    let experiment = only(directory.path());
    let before = runs(&journal(&experiment));
    assert!(before.last().is_some_and(|(_, ended)| ended.is_some()), "the last run was closed");
    assert!(events(&journal(&experiment), "finished").next().is_none());
    Latlab::at(directory.path())
        .line("run x.toml")
        .stderr(contains("continuing"))
        .stderr(contains("of them done"))
        .success();
    assert_eq!(runs(&journal(&experiment))[..before.len()], before[..]);
    check(&experiment, 12);
}

#[test]
fn an_experiment_is_measured_by_one_process_at_a_time() {
    let directory = directory_with(&SMALL.replace("count = 100", "duration = \"2s\""));
    let running = begin(directory.path());
    until_ended(directory.path(), 1);
    let pid = running.pid().as_raw_nonzero().to_string();
    let printed = Latlab::at(directory.path()).line("run x.toml").failure(3).stderr;
    assert!(printed.contains("is being measured") && printed.contains(&format!("by process {pid}")), "{printed}");
    let shown = only(directory.path()).display().to_string();
    Latlab::at(directory.path()).args(["run", &shown]).stderr(contains(format!("by process {pid}"))).failure(3);
    running.signal(Signal::TERM);
    running.exits(143);
}

#[test]
fn a_changed_file_is_refused_without_force() {
    let directory = directory_with(SMALL);
    let running = begin(directory.path());
    until_ended(directory.path(), 1);
    running.signal(Signal::INT);
    running.exits(130);
    fs::write(directory.path().join("x.toml"), SMALL.replace("runs = 3", "runs = 4")).expect("written");
    let printed = Latlab::at(directory.path()).line("run x.toml").failure(2).stderr;
    for words in ["has changed since", "line 9 is `runs = 4`, it was `runs = 3`", "`--force`", "`--new`"] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    Latlab::at(directory.path()).line("run x.toml --force").stderr(contains("no longer one experiment")).success();
    let experiment = only(directory.path());
    check(&experiment, 16);
    assert_eq!(fs::read_to_string(experiment.join("experiment.1.toml")).expect("kept"), SMALL);
}

#[test]
fn a_reboot_between_blocks_is_required() {
    let directory = directory_with(&SMALL.replace("blocks = 2", "blocks = 2\nbetween-blocks = \"reboot\""));
    let host = FakeHost::with(&[(BOOT_ID, "first\n")]);
    let run = || Latlab::at(directory.path()).on(&host);
    run().line("run x.toml").stderr(contains("block 1 is done. Reboot, then continue with")).success();
    run().line("run x.toml").stderr(contains("needs a reboot first")).failure(3);
    let shown = only(directory.path()).display().to_string();
    let unit = run().args(["run", &shown, "--print-unit"]).success().stdout;
    assert!(unit.contains("Type=oneshot") && unit.contains(&format!(" run \"{shown}\"\n")), "{unit}");
    let lines = directory.path().join("a\nExecStart=x");
    fs::create_dir(&lines).expect("made");
    let printed = Latlab::at(&lines).on(&host).args(["run", &shown, "--print-unit"]);
    printed.stdout(empty()).stderr(contains("cannot hold this path")).failure(2);
    host.write(BOOT_ID, "second\n");
    run().line("run x.toml").success();
    check(Path::new(&shown), 12);
    let boots: Vec<_> = fs::read_dir(Path::new(&shown).join("runs"))
        .expect("runs")
        .map(|run| manifest(&run.expect("entry").path())["experiment"].clone())
        .map(|place| (place["block"].clone(), place["boot_id"].clone()))
        .collect();
    assert!(boots.iter().all(|(block, boot)| (block == 1) == (boot == "first")), "{boots:?}");
}

/// The port of an echo that answers until the test process ends.
pub(crate) fn echo() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("bound").port();
    thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    port
}

/// The outcomes of the runs of `experiment`, in their order.
fn outcomes(experiment: &Path) -> Vec<Value> {
    runs(&journal(experiment)).into_iter().map(|(_, ended)| ended.expect("ended")["outcome"].clone()).collect()
}

/// An experiment over `targets`, with so many runs of each.
fn pings(targets: &str, runs: u32) -> String {
    format!(
        "kind = \"ping\"\n[base]\nprotocol = \"echo\"\ncount = 20\nwarmup = \"0\"\ntimeout = \"10ms\"\n[factors]\n\
         target = [{targets}]\n[design]\nruns = {runs}\norder = \"listed\"\nsettle = \"0s\"\n"
    )
}

#[test]
fn a_run_without_an_answer_is_judged_and_the_experiment_continues() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent_port = silent.local_addr().expect("bound").port();
    for (port, cause) in [(silent_port, "no valid answer came in time"), (free_port(), "the port is closed")] {
        let directory = directory_with(&pings(&format!("\"127.0.0.1:{}\", \"127.0.0.1:{port}\"", echo()), 2));
        let printed = Latlab::at(directory.path()).line("run x.toml").failure(4).stderr;
        for words in ["is judged with loss 1: no probe was answered", cause, "2 runs without an answer"] {
            assert!(printed.contains(words), "{words} is not in\n{printed}");
        }
        let experiment = only(directory.path());
        check(&experiment, 4);
        assert_eq!(outcomes(&experiment), ["completed", "failed", "completed", "failed"]);
    }
}

#[test]
fn an_experiment_without_any_answer_from_the_start_ends_after_three_runs() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent_port = silent.local_addr().expect("bound").port();
    for port in [silent_port, free_port()] {
        let directory = directory_with(&pings(&format!("\"127.0.0.1:{port}\""), 6));
        let printed = Latlab::at(directory.path()).line("run x.toml").failure(3).stderr;
        for words in
            ["no probe was answered", "none of the first 3 runs has an answer", "`--keep-going`", "x.toml` begins"]
        {
            assert!(printed.contains(words), "{words} is not in\n{printed}");
        }
        let experiment = only(directory.path());
        assert_eq!(outcomes(&experiment), ["failed"; 3]);
        let printed = Latlab::at(directory.path()).line("run x.toml --keep-going").failure(3).stderr;
        assert!(printed.contains("no run of the experiment was answered"), "{printed}");
        check(&experiment, 6);
    }
}

#[test]
fn conditions_that_this_host_cannot_measure_are_left_out_before_the_first_run() {
    let host = with_governors(1, "ondemand powersave", "powersave");
    let file = |levels: &str| {
        format!(
            "kind = \"wakeup\"\n[base]\ncount = 20\ninterval = \"1ms\"\nwarmup = \"0\"\n[factors]\nset = [{levels}]\n\
             [design]\nruns = 2\nsettle = \"0s\"\n"
        )
    };
    let directory = directory_with(&file("\"governor=performance\", \"governor=as-found\", \"timer-slack=1ns\""));
    let lab = || Latlab::at(directory.path()).on(&host);
    let planned = lab().line("run x.toml --dry-run").success().stdout;
    for words in ["left out     `governor=performance`", "`policy0` offers", "4 runs in all"] {
        assert!(planned.contains(words), "{words} is not in\n{planned}");
    }
    let ran = lab().line("run x.toml").measured();
    assert!(ran.stdout.contains("as-found → timer-slack=1ns"), "{}", ran.stdout);
    let lines = journal(&only(directory.path()));
    let dropped: Vec<_> = events(&lines, "condition_dropped").map(|line| line["factors"]["set"].clone()).collect();
    assert_eq!((dropped, runs(&lines).len()), (vec!["governor=performance".into()], 4));
    let nothing = directory_with(&file("\"governor=performance\""));
    for line in ["run x.toml --dry-run", "run x.toml"] {
        let printed = Latlab::at(nothing.path()).on(&host).line(line).failure(3).stderr;
        for words in ["no condition of the experiment `x`", "change `set` in `x.toml`"] {
            assert!(printed.contains(words), "{words} is not in\n{printed}");
        }
    }
    assert!(experiments(nothing.path()).is_empty(), "nothing was begun");
}

#[test]
fn a_precision_rule_stops_at_its_width_or_at_the_maximum() {
    let pinned = SMALL.replace("count = 100", "count = 200\ncpu = 0\npeer-cpu = 0");
    // On one CPU fast probes are stable on a busy machine too.
    for (width, runs_of_each) in [("p50 ±0.0001%", 14), ("p10 ±99%", 10)] {
        let rule = format!("runs = \"until {width}\"\nmax-runs = 14\nblocks = 2");
        let directory = directory_with(&pinned.replace("runs = 3\nblocks = 2", &rule));
        let printed = Latlab::at(directory.path()).line("run x.toml").success().stderr;
        let experiment = only(directory.path());
        check(&experiment, 2 * runs_of_each);
        let narrow = events(&journal(&experiment), "narrow_enough").count();
        assert_eq!(narrow, usize::from(runs_of_each == 10), "{printed}");
        assert!(printed.contains("the intervals are"), "{printed}");
    }
}

#[test]
fn every_judged_run_of_an_experiment_must_hold_each_gate() {
    let directory = directory_with(SMALL);
    let kept = Latlab::at(directory.path()).line("run x.toml --gate").arg("max <= 10s");
    kept.stdout(contains("gate `max <= 10s` met in each of 2 conditions; the worst,")).success();
    let name = only(directory.path()).display().to_string();
    let again = |condition: &str| Latlab::at(directory.path()).args(["run", &name, "--gate", condition]);
    let ran = again("min <= 1ns").arg("--json").failure(1).json();
    check_schema(&ran, "compare/1");
    let gate = &ran["experiment"]["gates"][0];
    assert_eq!((&gate["state"], &gate["runs"], &gate["broken"]), (&"broken".into(), &12.into(), &2.into()), "{gate}");
    assert!(gate["value"].is_number() && gate["worst"].is_string(), "{gate}");
    let undecided = || again("p99.9 <= 10s").stdout(contains("gate `p99.9 <= 10s` undecided in 2 of 2 conditions; "));
    undecided().stderr(contains("warning: the gate `p99.9 <= 10s` is undecided")).success();
    undecided().arg("--gate-strict").failure(1);
    again("max <= 10s").line("--format markdown").stdout(contains("gate `max <= 10s` met")).success();
}

#[test]
fn an_experiment_with_a_condition_without_a_judged_run_breaks_its_gates() {
    // Nothing listens on that port: no session is opened and nothing is recorded.
    let file = "kind = \"ping\"\n[base]\ncount = 5\nwarmup = \"0\"\n[factors]\ntarget = [TARGETS]\n\
                [design]\nruns = 1\nblocks = 1\nsettle = \"0s\"\n";
    // No run that can be judged at all comes before the gates.
    for (targets, count, code) in [("\"127.0.0.1:9\"", 0, 3), ("\"127.0.0.1:9\", \"local\"", 1, 1)] {
        let directory = directory_with(&file.replace("TARGETS", targets));
        let run = |options: &str| {
            Latlab::at(directory.path()).line("run x.toml --keep-going --new --gate").arg("max <= 10s").line(options)
        };
        run("").stdout(contains("gate `max <= 10s` failed without a run of 1 condition")).failure(code);
        let document = run("--json").failure(code).json();
        check_schema(&document, "compare/1");
        let gate = &document["experiment"]["gates"][0];
        assert_eq!((&gate["metric"], &gate["statistic"]), (&"round_trip_delay".into(), &"max".into()), "{gate}");
        assert_eq!((&gate["state"], &gate["reason"]), (&"broken".into(), &"nothing-to-judge".into()), "{gate}");
        assert_eq!((&gate["runs"], &gate["missing"]), (&count.into(), &1.into()), "{gate}");
    }
}
