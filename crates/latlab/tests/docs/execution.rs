//! Runs the commands of a block in a fresh directory, with the freshly built binary first in the path.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::blocks::Block;
use crate::pattern;
use crate::scheduling::{is_error, is_late, precedence};

/// A command that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// The most runs of a block that fails on a busy host.
const ATTEMPTS: usize = 5;

/// Words of the caveat `foreign-load` if it is a warning.
const FOREIGN_LOAD: &str = "warning: other processes on this host used";

/// A process group that is killed when the value is dropped.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            // It may have ended already.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// The failures of `block`: one text for each command whose exit code or output differs from what is shown. A failed block is
/// repeated if its output says that the host was busy: a run may then end with another exit code, and figures of late probes,
/// which have more digits, change the layout.
pub(crate) fn run(block: &Block) -> Vec<String> {
    let _precedence = precedence();
    let mut last = attempt(block);
    for _ in 1..ATTEMPTS {
        if last.failures.is_empty() || !last.was_busy {
            break;
        }
        last = attempt(block);
    }
    last.failures
}

/// One run of a block.
#[derive(Default)]
struct Attempt {
    failures: Vec<String>,
    /// Whether the output of a failed command says that probes left late or that other processes used the CPUs.
    was_busy: bool,
}

fn attempt(block: &Block) -> Attempt {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut background = Vec::new();
    let mut attempt = Attempt::default();
    let last = block.commands.len() - 1;
    for (index, command) in block.commands.iter().enumerate() {
        let log = directory.path().join(format!(".output-{index}"));
        let typed = command.typed.trim_end().trim_end_matches('&');
        let mut group = Group(start(typed, directory.path(), &log));
        if typed.len() < command.typed.trim_end().len() {
            if !eventually(|| pattern::matches(&command.output, &lines(&log))) {
                attempt.failures.push(mismatch(&command.typed, &command.output, &lines(&log)));
            }
            background.push(group);
            continue;
        }
        let (code, output) = (finish(&mut group.0), lines(&log));
        let wanted = if index == last { block.exit } else { 0 };
        if code != Some(wanted) {
            attempt.failures.push(format!("`{typed}` ended with {code:?}, not {wanted}:\n{}", output.join("\n")));
            attempt.was_busy |= match code {
                Some(4) => left_late(&output),
                // A search finds no rate.
                Some(3) => output.iter().any(|line| line.contains(FOREIGN_LOAD)),
                _ => false,
            };
        } else if !pattern::matches(&command.output, &output) {
            attempt.failures.push(mismatch(typed, &command.output, &output));
            attempt.was_busy |= output.iter().any(|line| is_late(line));
        }
    }
    attempt
}

/// Whether the only errors in the output are that probes left late.
fn left_late(output: &[String]) -> bool {
    let mut errors = output.iter().filter(|line| is_error(line)).peekable();
    errors.peek().is_some() && errors.all(|line| is_late(line))
}

/// Starts `typed` in a shell in its own process group; stdout and stderr go to `log`.
fn start(typed: &str, directory: &Path, log: &Path) -> Child {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_latlab"));
    let folder = binary.parent().expect("the binary lies in a folder").to_path_buf();
    let old = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder].into_iter().chain(env::split_paths(&old))).expect("a path without colons");
    let output = File::create(log).expect("a log file");
    Command::new("sh")
        .args(["-c", typed])
        .current_dir(directory)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("LATLAB_STORE")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a second handle"))
        .stderr(output)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start sh: {error}"))
}

/// The exit code; `None` after a signal or the deadline.
fn finish(child: &mut Child) -> Option<i32> {
    let mut code = None;
    eventually(|| {
        let status = child.try_wait().expect("our own child");
        code = status.and_then(|status| status.code());
        status.is_some()
    });
    code
}

/// Calls `holds` until it returns true; false after [`DEADLINE`].
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        if holds() {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

fn lines(log: &Path) -> Vec<String> {
    fs::read_to_string(log).unwrap_or_default().lines().map(String::from).collect()
}

fn mismatch(typed: &str, shown: &[String], printed: &[String]) -> String {
    format!(
        "`{typed}` does not print what is shown\n--- shown\n{}\n--- printed\n{}",
        shown.join("\n"),
        printed.join("\n")
    )
}

#[cfg(test)]
fn outcome(output: &[&str], exit: i32, typed: &[&str]) -> Vec<String> {
    let command = |typed: &&str| crate::blocks::Command {
        typed: typed.to_string(),
        output: output.iter().map(|line| line.to_string()).collect(),
    };
    run(&Block { exit, commands: typed.iter().map(command).collect(), ..Block::default() })
}

#[test]
fn a_wrong_output_or_exit_code_is_a_failure() {
    assert!(outcome(&["said 7"], 0, &["echo said 5"]).is_empty());
    assert!(outcome(&["said 7"], 3, &["echo said 5; exit 3"]).is_empty());
    assert_eq!(outcome(&["said 7"], 0, &["echo meant 5"]).len(), 1);
    assert_eq!(outcome(&["said 7"], 0, &["echo said 5; exit 1"]).len(), 1);
    assert_eq!(outcome(&["said 7"], 0, &["false", "echo said 5"]).len(), 1);
    assert!(outcome(&["ready"], 0, &["echo ready; sleep 50 &"]).is_empty());
}

#[test]
fn a_block_is_repeated_if_its_output_says_that_the_host_was_busy() {
    let late = "echo 'caveats 1  fatal: 9 of 9 probes left more than 10 ms after'";
    let counted = |rest: &str| format!("echo x >>{{}}; {late}; {rest}");
    let count = |rest: &str| {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let failures = outcome(&["…"], 0, &[&counted(rest).replace("{}", &file.path().display().to_string())]);
        (fs::read_to_string(file.path()).expect("text").lines().count(), failures.len())
    };
    assert_eq!(count("exit 4"), (ATTEMPTS, 1));
    assert_eq!(count("echo 'error: no answer'; exit 4"), (1, 1));
    assert_eq!(count("exit 3"), (1, 1));
    let busy = "echo '1  warning: other processes on this host used 90 % of all CPUs'";
    assert_eq!(count(&format!("{busy}; exit 3")), (ATTEMPTS, 1));
    assert_eq!(count(&format!("{busy}; exit 1")), (1, 1));
    assert_eq!(count("exit 0"), (1, 0));
}
