//! Asking a program, with a deadline.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program is asked whether it has ended. Its answer is a few hundred bytes: they fit into the
/// pipe, so that it never waits for us.
const NAP: Duration = Duration::from_millis(1);

/// What became of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgramOutput {
    /// It is not installed.
    Absent,
    /// What it printed.
    Said(String),
    /// It did not end in time, or ended in failure: why.
    Failed(String),
}

/// What `name` prints with `arguments` before `patience` is over; after that it is killed.
pub(super) fn ask(name: &str, arguments: &[&str], patience: Duration) -> ProgramOutput {
    let deadline = Instant::now() + patience;
    let spawned = Command::new(name)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match spawned {
        Ok(child) => conclude(name, ChildGuard { child }, deadline),
        Err(error) if error.kind() == io::ErrorKind::NotFound => ProgramOutput::Absent,
        Err(error) => ProgramOutput::Failed(format!("`{name}`: {}", latlab_sys::errno::explain(&error))),
    }
}

/// A program that ends when this is dropped.
struct ChildGuard {
    child: Child,
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Ended already, in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn conclude(name: &str, mut running: ChildGuard, deadline: Instant) -> ProgramOutput {
    let status = loop {
        match running.child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(NAP),
            Ok(None) => return ProgramOutput::Failed(format!("`{name}` did not answer in time")),
            Err(error) => return ProgramOutput::Failed(format!("`{name}`: {}", latlab_sys::errno::explain(&error))),
        }
    };
    let mut text = String::new();
    let read = running.child.stdout.take().map(|output| output.take(1 << 16).read_to_string(&mut text));
    match read {
        Some(Ok(_)) if status.success() => ProgramOutput::Said(text),
        Some(Ok(_)) => {
            ProgramOutput::Failed(format!("`{name}` failed: {}", text.lines().next().unwrap_or("it said nothing")))
        }
        _ => ProgramOutput::Failed(format!("`{name}` printed no text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn programs_answer_fail_hang_or_are_not_there() {
        assert_eq!(ask("sh", &["-c", "echo yes"], LONG), ProgramOutput::Said("yes\n".into()));
        assert_eq!(ask("sh", &["-c", "echo why; exit 1"], LONG), ProgramOutput::Failed("`sh` failed: why".into()));
        assert_eq!(ask("no-such-program-anywhere", &[], LONG), ProgramOutput::Absent);
        let hanging = ask("sh", &["-c", "exec sleep 1000"], Duration::from_millis(20));
        assert_eq!(hanging, ProgramOutput::Failed("`sh` did not answer in time".into()));
    }
}
