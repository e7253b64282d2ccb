//! `latlab run --ab` and experiments of any program: commands, services at free ports, gates, names and budgets.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use latlab::plan::Target;
use latlab::recording::Recording;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::experiment::{directory_with, events, journal, only, runs};
use crate::harness::{Latlab, contains, lacks};
use crate::hooks::{processes_with, script, server};

/// The recordings of the experiment in `directory`.
fn recordings(directory: &Path) -> Vec<Recording> {
    let runs = fs::read_dir(only(directory).join("runs")).expect("runs").map(|entry| entry.expect("one").path());
    runs.filter(|path| path.is_dir()).map(|path| Recording::open(&path).expect("opens")).collect()
}

fn names_of_groups(document: &Value) -> Vec<&str> {
    document["groups"].as_array().expect("groups").iter().filter_map(|group| group["name"].as_str()).collect()
}

/// `latlab run --ab A B WORDS` with four runs in an empty directory.
fn ab(a: &str, b: &str, words: &[&str]) -> Latlab {
    Latlab::new().args(["run", "--runs", "2", "--ab", a, b]).args(words).deadline(Duration::from_secs(120))
}

/// A server of Python at the port that is its argument: `body` follows its imports.
fn python(body: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("serve.py"), format!("import socket, sys, time\nport = int(sys.argv[1])\n{body}"))
        .expect("written");
    directory
}

const TCP_ECHO: &str = "
server = socket.create_server(('127.0.0.1', port))
print('listening on', port, flush=True)
while True:
    peer = server.accept()[0]
    while data := peer.recv(4096): peer.sendall(data)
";

#[test]
fn two_commands_are_measured_in_turns_under_their_names() {
    let ran = ab("true", "sh -c 'exit 0'", &["--names", "old,new", "--json"]).measured();
    let document = ran.json();
    assert_eq!(names_of_groups(&document), ["old", "new"], "{document:#}");
    assert_eq!(document["comparisons"][0]["metric"], "elapsed_time", "{document:#}");
    for recording in recordings(ran.directory()) {
        let manifest = recording.manifest();
        let tag = &manifest.experiment.as_ref().expect("of one").factors["command"];
        let words = manifest.spec.command().expect("a command").words.join(" ");
        assert_eq!(words, if tag == "old" { "true" } else { "sh -c exit 0" });
        assert_eq!(manifest.spec.stop.count, Some(100));
    }
    let by_name = Latlab::at(ran.directory()).arg("compare").arg(only(ran.directory())).args(["--by", "command"]);
    by_name.stdout(contains("old")).success();
    let same =
        ab("true", "true", &["--names", "x,y", "--json", "--", "command", "-n", "3", "--warmup", "0"]).measured();
    assert_eq!(names_of_groups(&same.json()), ["x", "y"]);
    assert!(recordings(same.directory()).iter().all(|recording| recording.manifest().rows == Some(3)));
}

#[test]
fn a_command_of_a_file_has_factors_and_options() {
    let text = "kind = 'command'\n[base]\ncount = 2\nwarmup = '0'\nshell = true\n\
                command = \"test '{build} {{build}}' = '{build} {'build} && exit 0\"\n\
                [factors]\nbuild = ['a b', 'c']\n[design]\nruns = 2\nsettle = '0s'\n";
    let directory = directory_with(text);
    Latlab::at(directory.path()).line("run x.toml").measured();
    assert_eq!(recordings(directory.path()).len(), 4);
    for (line, message) in [
        ("count = 1", "COMMAND"),
        ("count = 1\ncommand = './{biuld}'", "`{biuld}` is not a factor"),
        ("command = \"x 'y\"", "a quotation mark is not closed"),
        ("command = ''", "it names no command"),
        ("command = 'true'\ntarget = 'local'", "no key `target`"),
    ] {
        let file = format!("kind = 'command'\n[base]\n{line}\n");
        Latlab::new().file("x.toml", file).line("run x.toml --dry-run").stderr(contains(message)).failure(2);
    }
}

#[test]
fn a_command_measures_services_each_at_a_port_of_its_own() {
    let directory = python(TCP_ECHO);
    let service = format!("python3 {}/serve.py {{port}}", directory.path().display());
    let client = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.sendall(b'x'); \
                  sys.exit(s.recv(1) != b'x')";
    let words =
        ["--names", "x,y", "--", "command", "-n", "2", "--warmup", "0", "--", "python3", "-c", client, "{port}"];
    let ran = ab(&service, &service, &words).measured();
    let ports: BTreeSet<String> = recordings(ran.directory())
        .iter()
        .filter_map(|recording| recording.manifest().spec.command()?.words.last().cloned())
        .collect();
    assert_eq!(ports.len(), 4, "{ports:?}");
    assert!(ports.iter().all(|port| port.parse::<u16>().is_ok()), "{ports:?}");
    assert!(recordings(ran.directory()).iter().all(|recording| recording.manifest().run.service_counted));
    assert!(processes_with(&format!("{}/serve.py", directory.path().display())).is_empty());
}

#[test]
fn a_ping_over_tcp_measures_a_plain_echo_at_a_free_port() {
    let directory = python(TCP_ECHO);
    let service = format!("python3 {}/serve.py {{port}}", directory.path().display());
    let words =
        ["--", "ping", "127.0.0.1:{port}", "--transport", "tcp", "--protocol", "echo", "-n", "20", "--warmup", "0"];
    let ran = ab(&service, &format!("{service} b"), &words).measured();
    let target = |recording: &Recording| match &recording.manifest().spec.target {
        Target::Host { port, .. } => *port,
        other => panic!("{other}"),
    };
    assert_eq!(recordings(ran.directory()).iter().map(target).collect::<BTreeSet<_>>().len(), 4);
}

/// Two runs beside the Python server in `directory`.
fn with_service(directory: &TempDir, ready: &str, timeout: &str) -> Latlab {
    let text = format!(
        "kind = 'command'\n[base]\ncommand = 'true'\ncount = 1\nwarmup = '0'\n[factors]\nbuild = ['a', 'b']\n\
         [design]\nruns = 1\nsettle = '0s'\n[hooks]\nservice = 'python3 {}/serve.py {{port}} {{build}}'\n\
         ready = '{ready}'\nhook-timeout = '{timeout}'\n",
        directory.path().display()
    );
    Latlab::new().file("x.toml", text).line("run x.toml").deadline(Duration::from_secs(60))
}

#[test]
fn a_service_is_ready_in_each_of_the_forms() {
    let directory = python(
        "
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        Handler.count += self.path == '/health'
        self.send_response(200 if Handler.count > 2 else 503)
        self.end_headers()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', port))
server = HTTPServer(('127.0.0.1', port), Handler)
print('ready on port', port, file=sys.stderr, flush=True)
open('up', 'w').close()
server.serve_forever()
",
    );
    for ready in [
        "listen:{port}",
        "tcp:{port}",
        "tcp:localhost:{port}",
        "udp:{port}",
        "http:{port}/health",
        "line:^ready on .* [0-9]{2,5}$",
        "time:20ms",
        "test -e up",
    ] {
        let ran = with_service(&directory, ready, "60s").measured();
        let ended = journal(&only(ran.directory()));
        let is_measured = |end: &Value| end["outcome"] != "failed";
        assert!(runs(&ended).iter().all(|(_, end)| end.as_ref().is_some_and(is_measured)), "{ready}");
    }
}

#[test]
fn a_service_that_is_never_ready_fails_its_runs_with_the_reason() {
    let directory = python(
        "
from http.server import HTTPServer, SimpleHTTPRequestHandler
HTTPServer(('127.0.0.1', port), SimpleHTTPRequestHandler).serve_forever()
",
    );
    for (ready, message) in [
        ("line:never", "`service` wrote no such line"),
        ("http:{port}/none", "404"),
        ("tcp:1", "connection refused"),
        ("listen:1", "no socket receives at port 1"),
    ] {
        let lab = with_service(&directory, ready, "1s");
        lab.stderr(contains("was not ready within 1 s")).stderr(contains(message)).failure(3);
    }
    for (ready, message) in [
        ("line:(", "is not a regular expression"),
        ("time:soon", "`time:2s`"),
        ("tcp:h", "has no port"),
        ("listen:x", "`x` must be a port"),
        ("tcp:0", "has no port"),
    ] {
        ab("true", "false", &["--ready", ready, "--dry-run", "--", "command", "-n", "1", "--", "true"])
            .stderr(contains(message))
            .failure(2);
    }
}

#[test]
fn a_service_whose_port_is_taken_fails_its_runs() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("known").port();
    let directory = python(TCP_ECHO);
    let service = format!("python3 {}/serve.py {port}", directory.path().display());
    let lab = ab(&service, &format!("{service} b"), &["--", "command", "-n", "1", "--", "true"]);
    lab.stderr(contains("the hook `service` failed")).stderr(contains("in use")).failure(3);
}

/// An experiment of two commands, whose first line of Markdown is about its gates.
fn gated(old: &str, new: &str, design: &str) -> TempDir {
    directory_with(&format!(
        "kind = 'command'\n[base]\ncount = 1\nwarmup = '0'\nmetric = 'x=*'\n[factors]\ncommand = ['{old}', '{new}']\n\
         [names]\nold = '{old}'\nnew = '{new}'\n[design]\nsettle = '0s'\n{design}\n"
    ))
}

#[test]
fn gates_on_changes_are_judged_at_the_end_and_again_without_measuring() {
    let directory = gated("echo 10", "echo 20", "runs = 16");
    let run = |line: &str| Latlab::at(directory.path()).line("run").line(line).deadline(Duration::from_secs(120));
    let failed = run("x.toml --format markdown").args(["--gate", "x mean <= +50%", "--gate", "x max <= 20"]).failure(1);
    let first = "**failed** against `old`: gate `x mean <= +50%` failed for `new`: +";
    assert!(failed.stdout.starts_with(first), "{}", failed.stdout);
    assert!(failed.stdout.contains("every gate was decided: the remaining runs"), "{}", failed.stdout);
    let before = journal(&only(directory.path()));
    assert_eq!((runs(&before).len(), events(&before, "looked").count()), (16, 1), "of 32 runs");
    run("x.toml --format markdown").stdout(contains("old")).stderr(contains("is finished")).success();
    let shown = only(directory.path()).display().to_string();
    let passed = run(&format!("{shown} --format markdown")).args(["--gate", "x mean <= +100000%"]).success();
    assert!(
        passed.stdout.starts_with("**passed** against `old`: gate `x mean <= +100000%` met for `new`"),
        "{}",
        passed.stdout
    );
    assert_eq!(journal(&only(directory.path())), before);
    let json = run(&format!("{shown} --json")).args(["--gate", "x mean <= +50%"]).failure(1).json();
    assert_eq!((&json["gates"][0]["state"], &json["experiment"]["decided_early"]), (&"broken".into(), &true.into()));
    run(&shown).args(["--gate", "round_trip_delay p50 <= +5%"]).stderr(contains("cannot judge the gate")).failure(2);
    run(&shown).args(["--gate", "value <= +5%"]).stderr(contains("a run has statistics")).failure(2);
    run("x.toml --new --dry-run").stdout(contains("old")).success();
}

#[test]
fn an_undecided_gate_is_a_no_where_strict() {
    let directory = gated("echo 1", "echo 2", "runs = 2");
    let run = |words: &[&str]| {
        Latlab::at(directory.path())
            .args(["run", "x.toml", "--new", "--format", "markdown", "--gate", "x mean <= +1%"])
            .args(words)
    };
    let warned = run(&[]).stderr(contains("the gate `x mean <= +1%` is undecided")).measured();
    assert!(warned.stdout.starts_with("**undecided**"), "{}", warned.stdout);
    run(&["--gate-strict"]).failure(1);
}

#[test]
fn failed_runs_leave_gates_undecided_in_the_experiment_and_in_comparisons() {
    let directory = gated("echo 10", "sh failing", "runs = 6");
    fs::write(directory.path().join("failing"), "mkdir first 2>/dev/null && exit 3; echo 5").expect("written");
    let gate = ["--gate", "x mean <= +5%"];
    let ran = Latlab::at(directory.path()).line("run x.toml --keep-going --format markdown").args(gate);
    let ran = ran.start().exits_with_one_of(&[4]);
    assert!(ran.stdout.starts_with("**undecided**") && ran.stdout.contains("runs failed"), "{}", ran.stdout);
    let compared = Latlab::at(directory.path()).arg("compare").arg(only(directory.path())).args(gate);
    compared.args(["--metric", "x"]).stderr(contains("runs failed: find out why")).measured();
}

#[test]
fn no_run_begins_after_the_budget() {
    let directory = gated("echo 1", "echo 2", "runs = 5000");
    let lab = Latlab::at(directory.path()).line("run x.toml --budget 2s").deadline(Duration::from_secs(120));
    lab.stdout(contains("the budget was used up")).measured();
    let lines = journal(&only(directory.path()));
    assert_eq!(events(&lines, "finished").next().expect("an end")["over_budget"], true);
    let of = |name: &str| runs(&lines).iter().filter(|(began, _)| began["factors"]["command"] == name).count();
    assert!(of("old") > 0 && of("old").abs_diff(of("new")) < 2, "{} {}", of("old"), of("new"));
}

#[test]
fn foreign_load_is_found_beside_a_service() {
    let directory = tempfile::tempdir().expect("a directory");
    let echo = server(directory.path(), "echo", 0);
    let _busy = Latlab::new().line("load --load heaters=4 -d 60s").start();
    let service = format!("{} {{port}}", echo.display());
    let words = ["--names", "a,b", "--", "ping", "127.0.0.1:{port}", "--protocol", "echo", "-d", "2s"];
    let ran = ab(&service, &service, &words).measured();
    let runs = only(ran.directory()).join("runs");
    let summary = Latlab::at(ran.directory()).args(["summary", "--json"]).arg(runs).measured().json();
    let caveats = |summary: &Value| summary["caveats"].to_string();
    let found =
        summary["summaries"].as_array().expect("several").iter().filter(|one| caveats(one).contains("foreign-load"));
    assert!(found.count() > 0, "{summary:#}");
}

#[test]
fn an_interrupt_ends_the_measured_command() {
    let name = format!("latlab-ab-{}", std::process::id());
    let directory = tempfile::tempdir().expect("a directory");
    let path = script(directory.path(), &name, "touch began; sleep 300");
    let line = ["run", "--ab"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("{} a", path.display()), format!("{} b", path.display())]);
    let running = Latlab::at(directory.path()).args(line).start();
    crate::harness::wait_until("it began", || directory.path().join("began").exists());
    running.signal(Signal::INT);
    running.exits(130);
    assert_eq!(processes_with(&name), [0; 0]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (words, message) in [
        (&["--ab", "x", "y", "--ab-deploy", "--", "command", "-n", "2"][..], "each run executes them"),
        (&["--ab", "x", "y", "--ready", "time:1s"], "each run executes them"),
        (&["--ab", "x", "y", "--names", "a"], "A and B need a name each"),
        (&["--ab", "x", "y", "--names", "a,a"], "A and B need a name each"),
        (&["--ab", "x", "y", "--names", "a,b,c"], "A and B need a name each"),
        (&["--ab", "x", "y", "--", "command", "--nonsense"], "--nonsense"),
        (&["--ab", "x", "y", "--", "list"], "does not measure"),
    ] {
        Latlab::new().arg("run").args(words).stderr(contains(message)).stderr(lacks("panicked")).failure(2);
    }
    for (names, message) in [("z = 'c'", "no factor has the level `c`"), ("b = 'a'", "two levels have the name `b`")] {
        let file = format!("kind = 'command'\n[factors]\ncommand = ['a', 'b']\n[names]\n{names}\n");
        Latlab::new().file("x.toml", file).line("run x.toml --dry-run").stderr(contains(message)).failure(2);
    }
}
