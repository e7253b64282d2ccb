//! Runs the job for continuous integration that docs/comparing.md shows: every step as it stands there, in the shell that
//! GitHub takes, against a UDP echo on loopback. Only the limits, which are variables of the job, are those of the test.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::{fs, thread};

use crate::scheduling::precedence;
use crate::{documents, search_path};

#[test]
fn the_job_for_continuous_integration_passes_and_fails_by_its_limits() {
    let _precedence = precedence();
    let page = &documents()["comparing.md"];
    let job = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a job");
    let inside = |rest: &str| {
        rest.lines()
            .map_while(|line| line.strip_prefix("          "))
            .fold(String::new(), |script, line| script + line + "\n")
    };
    let steps: Vec<String> = job.split("run: |\n").skip(1).map(inside).collect();
    let [_build, limits, _measure, judge] = &steps[..] else { panic!("{steps:?}") };

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let echo = socket.local_addr().expect("bound");
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // A probe that is not returned is lost, which latlab reports.
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    let project = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [
        ("build", "echo \"$1 as $2\" >> built".to_owned()),
        ("start-service", format!("mkdir running && echo {echo}")),
        ("stop-service", "rmdir running".to_owned()),
    ] {
        let path = project.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    let run = |step: &str, p99: &str, change: &str| {
        let ran = Command::new("bash")
            .args(["-e", "-c", step])
            .current_dir(&project)
            .envs([
                ("GITHUB_BASE_REF", "main"),
                ("GITHUB_STEP_SUMMARY", "summary.md"),
                ("P99", p99),
                ("P99_CHANGE", change),
            ])
            .env("PATH", search_path())
            .env_remove("LATLAB_STORE")
            .output()
            .expect("bash is installed");
        assert!(!project.path().join("running").exists(), "{step} left the service running: {ran:?}");
        (ran.status.code(), format!("{ran:?}"))
    };
    for step in &steps {
        let (code, printed) = run(step, "10s", "+1000000%");
        assert_eq!(code, Some(0), "{step}: {printed}");
    }
    let text = |name: &str| fs::read_to_string(project.path().join(name)).expect("a step wrote it");
    assert_eq!(text("built"), "origin/main as base\nHEAD as head\n");
    assert!(text("summary.md").contains("gate `p99 <= +1000000%` met"), "{}", text("summary.md"));
    assert_eq!([run(limits, "1ns", "+5%").0, run(judge, "5ms", "-99.99%").0], [Some(1); 2]);
    // The limits of the page can be read.
    let variable =
        |name: &str| job.split(&format!(" {name}: ")).nth(1).and_then(|rest| rest.lines().next()).expect("in `env`");
    for step in [limits, judge] {
        let (code, printed) = run(step, variable("P99"), variable("P99_CHANGE"));
        assert!(matches!(code, Some(0 | 1)), "{printed}");
    }
}
