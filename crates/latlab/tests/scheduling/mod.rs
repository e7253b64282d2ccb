//! The machine is shared by the tests that run at the same time, also those of other test binaries: some need a CPU or the
//! network in time, some take all of it. A run that reports a lack of CPU time is not a failure of the test.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Once;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

/// Words of latlab's messages about a run whose probes left late because of the host.
const LATE: [&str; 2] = ["left more than", "were never sent:"];

/// Locks the machine: a lock of a file, which ends with the returned value.
fn lock_machine(operation: FlockOperation) -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine.lock");
    let file = File::options().create(true).append(true).open(path).expect("cargo has made the directory");
    rustix::io::retry_on_intr(|| flock(&file, operation)).expect("a file of our own");
    file
}

/// The processes that this thread starts while this value lives precede those of other tests and of other programs, and
/// no other test has such a value or floods.
pub(crate) struct Precedence {
    /// The niceness of this thread before; `None` if the user may not lower it (`CAP_SYS_NICE`).
    before: Option<i32>,
    _only: File,
}

/// Waits until no other test has precedence or floods, and lowers the niceness of this thread as far as it goes. Without the
/// right to do so the test runs all the same, and the first one reports that.
pub(crate) fn precedence() -> Precedence {
    static REPORTED: Once = Once::new();
    let only = lock_machine(FlockOperation::LockExclusive);
    // On Linux a niceness is a thread's, and processes inherit it.
    let before = rustix::process::getpriority_process(None).ok();
    let before = before.filter(|_| rustix::process::setpriority_process(None, -20).is_ok());
    if before.is_none() {
        REPORTED.call_once(|| {
            let line =
                "without root, tests that need a CPU in time have no precedence: on a busy machine they may fail";
            writeln!(std::io::stderr(), "{line}").expect("stderr is open");
        });
    }
    Precedence { before, _only: only }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // To raise the niceness is allowed without any right.
            let _ = rustix::process::setpriority_process(None, before);
        }
    }
}

/// Waits until no test has precedence. For tests that send as fast as they can: all packets to this host share one queue for
/// each CPU (net.core.netdev_max_backlog), even those of other network namespaces, and niceness does not apply to it.
#[allow(dead_code, reason = "not every test binary floods")]
pub(crate) fn flooding() -> File {
    lock_machine(FlockOperation::LockShared)
}

/// Whether `line` begins an error, on stderr or among the caveats of a summary.
pub(crate) fn is_error(line: &str) -> bool {
    let line = line.trim_start_matches("caveats").trim_start_matches(|char: char| char == ' ' || char.is_ascii_digit());
    line.starts_with("error: ") || line.starts_with("fatal: ")
}

/// Whether the error `line` says that probes left late.
pub(crate) fn is_late(line: &str) -> bool {
    LATE.iter().any(|words| line.contains(words))
}

/// The errors that the output of a run reports, as lines or as codes of fatal caveats in a JSON document.
#[allow(dead_code, reason = "not every test binary measures on a schedule")]
pub(crate) fn errors(stdout: &str, stderr: &str) -> Vec<String> {
    let lines = stdout.lines().chain(stderr.lines()).filter(|line| is_error(line));
    let mut errors: Vec<String> = lines.map(str::to_owned).collect();
    collect_fatal(&serde_json::from_str(stdout).unwrap_or_default(), &mut errors);
    errors
}

/// Whether the output of a run reports errors, and each is that probes left late.
#[allow(dead_code, reason = "not every test binary measures on a schedule")]
pub(crate) fn only_late(stdout: &str, stderr: &str) -> bool {
    let errors = errors(stdout, stderr);
    !errors.is_empty() && errors.iter().all(|error| is_late(error) || error == "schedule-lost")
}

/// Appends the codes of the fatal caveats anywhere in `document`.
fn collect_fatal(document: &Value, codes: &mut Vec<String>) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| collect_fatal(item, codes)),
        Value::Object(members) if members.get("severity").is_some_and(|severity| severity == "fatal") => {
            codes.push(members.get("code").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        Value::Object(members) => members.values().for_each(|member| collect_fatal(member, codes)),
        _ => {}
    }
}

#[test]
fn an_error_is_only_late_if_no_other_is_reported() {
    let caveats = |codes: &[&str]| {
        let caveats: Vec<_> = codes.iter().map(|code| serde_json::json!({"severity": "fatal", "code": code})).collect();
        serde_json::json!({"summaries": [{"caveats": caveats}]}).to_string()
    };
    assert!(only_late(&caveats(&["schedule-lost"]), "") && !only_late(&caveats(&["schedule-lost", "loss"]), ""));
    assert!(!only_late(&caveats(&[]), "") && !only_late("", ""));
    assert!(only_late("", "fatal: 3 probes left more than 5 ms late"));
    assert!(!only_late("", "fatal: 3 probes left more than 5 ms late\nerror: the clock stepped"));
}
