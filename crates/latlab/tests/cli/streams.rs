//! Streams: data on stdout, talk on stderr, no colour where nobody looks, a closed pipe ends quietly.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::harness::{BINARY, Latlab, empty, lacks};

#[test]
fn nothing_is_coloured_without_a_terminal() {
    Latlab::new().line("ping -n 0").stdout(empty()).stderr(lacks("\u{1b}")).failure(2);
    Latlab::new().line("--help").environment("TERM", "xterm-256color").stdout(lacks("\u{1b}")).success();
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the binary was built by the test run");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("the binary was built by the test run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("cause: no space left on device") && told.contains("hint: "), "{told}");
}
