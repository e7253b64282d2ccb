//! Runs the job for continuous integration that docs/comparing.md shows: every step as it stands there, in the shell that
//! GitHub takes, against a UDP echo on loopback. Only the limits, which are variables of the job, are those of the test.

use std::env;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::scheduling::precedence;

/// Limits that every run of the echo holds.
const HELD: Limits<'static> = Limits { p99: "10s", change: "+1000000%" };

/// Values of the variables of the job.
#[derive(Clone, Copy)]
struct Limits<'a> {
    p99: &'a str,
    change: &'a str,
}

/// A step of the job that runs commands.
struct Step {
    name: String,
    script: String,
}

/// The lines of the only `yaml` block of `page`.
fn job(page: &str) -> Vec<&str> {
    let fenced = page.split("```yaml\n").nth(1).expect("a job");
    assert_eq!(page.matches("```yaml").count(), 1, "one job");
    fenced.split("```").next().unwrap_or_default().lines().collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The steps of a job with a `name` and a `run: |`, in their order.
fn steps(job: &[&str]) -> Vec<Step> {
    let starts = job.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("- name: "));
    let step = |(place, line): (usize, &&str)| {
        let run = job[place + 1];
        assert_eq!(run.trim(), "run: |", "the line below `{line}`");
        let inside = job[place + 2..].iter().take_while(|line| line.trim().is_empty() || indent(line) > indent(run));
        let script = inside.map(|line| line.get(indent(run) + 2..).unwrap_or_default()).collect::<Vec<_>>().join("\n");
        Step { name: line.trim_start().trim_start_matches("- name: ").into(), script }
    };
    starts.map(step).collect()
}

/// The value of the variable `name` in the `env` of a job.
fn variable(job: &[&str], name: &str) -> String {
    let start = format!("{name}: ");
    let line = job.iter().find_map(|line| line.trim_start().strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no variable `{name}`")).to_owned()
}

/// A UDP echo in a thread that lasts as long as the tests.
fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("bound");
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // A probe that is not returned is lost, which latlab reports.
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    address
}

/// The scripts of a project, beside which the job runs.
fn project(echo: SocketAddr) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let scripts = [
        ("build", "echo \"$1 as $2\" >> built".to_owned()),
        ("start-service", format!("mkdir running && echo {echo}")),
        ("stop-service", "rmdir running".to_owned()),
    ];
    for (name, text) in scripts {
        let path = directory.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    directory
}

/// Runs `step` beside the scripts of `project`; the exit code, and what it printed.
fn run(step: &Step, project: &Path, limits: Limits<'_>) -> (Option<i32>, String) {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_latlab"));
    let folder = binary.parent().expect("the binary lies in a folder").to_path_buf();
    let old = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder].into_iter().chain(env::split_paths(&old))).expect("a path without colons");
    let ran = Command::new("bash")
        .args(["-e", "-c", &step.script])
        .current_dir(project)
        .env("PATH", path)
        .env("GITHUB_BASE_REF", "main")
        .env("GITHUB_STEP_SUMMARY", project.join("summary.md"))
        .env("P99", limits.p99)
        .env("P99_CHANGE", limits.change)
        .env_remove("LATLAB_STORE")
        .output()
        .unwrap_or_else(|error| panic!("cannot start bash: {error}"));
    let printed = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(!project.join("running").exists(), "{} left the service running: {printed:?}", step.name);
    (ran.status.code(), format!("{}: {}", step.name, printed.concat()))
}

#[test]
fn the_job_for_continuous_integration_passes_and_fails_by_its_limits() {
    let _precedence = precedence();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/comparing.md");
    let page = fs::read_to_string(page).expect("the page");
    let job = job(&page);
    let steps = steps(&job);
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["Build both", "Hold to the limits", "Measure in turns", "Judge the change"]);

    let project = project(echo());
    for step in &steps {
        let (code, printed) = run(step, project.path(), HELD);
        assert_eq!(code, Some(0), "{printed}");
    }
    let built = fs::read_to_string(project.path().join("built")).expect("both were built");
    assert_eq!(built, "origin/main as base\nHEAD as head\n");
    let summary = fs::read_to_string(project.path().join("summary.md")).expect("the report");
    assert!(summary.contains(&format!("gate `p99 <= {}` met", HELD.change)), "{summary}");

    for (step, limits) in
        [(&steps[1], Limits { p99: "1ns", ..HELD }), (&steps[3], Limits { change: "-99.99%", ..HELD })]
    {
        let (code, printed) = run(step, project.path(), limits);
        assert_eq!(code, Some(1), "{printed}");
    }
    let (p99, change) = (variable(&job, "P99"), variable(&job, "P99_CHANGE"));
    for step in [&steps[1], &steps[3]] {
        let (code, printed) = run(step, project.path(), Limits { p99: &p99, change: &change });
        assert!(matches!(code, Some(0 | 1)), "the limits of the page can be read: {printed}");
    }
}
