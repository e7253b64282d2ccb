//! The watchdog of an agent: a process of its own that restores the settings of the agent's host if the agent dies or
//! makes no progress, such as one that SIGSTOP has stopped. It kills that agent first, so that nothing is set afterwards and
//! loads end with the agent. The agent starts it before its first change.
//!
//! The agent writes to its standard input how long it will be silent at most, in milliseconds and in a line, whenever it
//! makes progress. Nothing is written while a run is armed: the line before covers all of it.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Signal, kill_process};

use crate::host::process::as_parent;

const COMMAND: &str = "watchdog";
/// How long a request may take: longer than the controller waits for the reply.
pub(super) const REQUEST_SILENCE: Duration = Duration::from_secs(15);
/// The agent notices silence itself; its watchdog acts so much later.
pub(super) const MARGIN: Duration = Duration::from_secs(1);
/// A watchdog that is so late was stopped as well, with the whole host: the agent gets another [`MARGIN`].
const OVERSLEPT: Duration = Duration::from_millis(500);
/// The time for a process to end: an agent that is killed, and a watchdog, which restores settings before.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a read: many lines.
const READ_BYTES: usize = 4_096;

/// The watchdog of this process, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
    to: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts it in a group of its own, so that signals to the agent's group do not reach it.
    pub(super) fn start() -> io::Result<Watchdog> {
        let mut command = Command::new(std::env::current_exe()?);
        // It must not keep the streams of the agent open.
        let agent = std::process::id().to_string();
        command
            .args([COMMAND, &agent])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = command.spawn()?;
        let to = child.stdin.take().ok_or_else(|| io::Error::other("no pipe to the process"))?;
        // A stopped watchdog must not stop the agent.
        fcntl_setfl(&to, OFlags::NONBLOCK)?;
        let mut watchdog = Watchdog { child, to: Some(to) };
        watchdog.announce(REQUEST_SILENCE);
        Ok(watchdog)
    }

    /// Announces that nothing may follow for as long as `silence`.
    pub(super) fn announce(&mut self, silence: Duration) {
        // An error if it has ended, which `is_running` reports.
        let _ = self.to.as_mut().map(|to| to.write_all(format!("{}\n", silence.as_millis()).as_bytes()));
    }

    /// Whether it has not ended.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Watchdog {
    /// Closes its input and waits for its end, for a limited time.
    fn drop(&mut self) {
        drop(self.to.take());
        let deadline = Instant::now() + END_TIMEOUT;
        while self.is_running() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits until `agent`, the process that writes to `input`, has ended. It is killed if it is silent for longer than it
/// announced.
///
/// # Errors
/// `input` cannot be read.
pub fn wait_for_end(agent: u32, input: BorrowedFd<'_>) -> io::Result<()> {
    let silence = wait_for_silence(input);
    if matches!(silence, Ok(Silence::Ended)) {
        return Ok(());
    }
    // The parent of this process as long as it is alive: its number cannot be that of another process.
    if let Some(parent) = as_parent(agent) {
        // Fails if it ends now.
        let _ = kill_process(parent, Signal::KILL);
    }
    let deadline = Instant::now() + END_TIMEOUT;
    // A process that waits for a device does not end at once. What can be read is read, up to the end.
    while is_readable(input, deadline.saturating_duration_since(Instant::now()))? {
        match rustix::io::read(input, &mut [0; READ_BYTES][..]) {
            Ok(1..) | Err(Errno::INTR) if Instant::now() < deadline => {}
            _ => break,
        }
    }
    silence.map(drop)
}

/// Why nothing more is expected of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    Ended,
    Stopped,
}

/// Waits until the agent that writes to `input` has ended, or is silent for longer than it announced.
fn wait_for_silence(input: BorrowedFd<'_>) -> io::Result<Silence> {
    let (mut lines, mut buffer) = (Vec::new(), [0; READ_BYTES]);
    let (mut deadline, mut is_extended) = (Instant::now() + REQUEST_SILENCE, false);
    loop {
        let now = Instant::now();
        if !is_readable(input, deadline.saturating_duration_since(now))? {
            if is_extended || Instant::now() < deadline + OVERSLEPT {
                return Ok(Silence::Stopped);
            }
            (deadline, is_extended) = (Instant::now() + MARGIN, true);
            continue;
        }
        match rustix::io::read(input, &mut buffer[..]) {
            Ok(0) => return Ok(Silence::Ended),
            Ok(bytes) => lines.extend_from_slice(&buffer[..bytes]),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        }
        if let Some(silence) = last_line(&mut lines) {
            (deadline, is_extended) = (Instant::now() + silence, false);
        }
    }
}

/// Whether `input` has data or has ended within `time`.
fn is_readable(input: BorrowedFd<'_>, time: Duration) -> io::Result<bool> {
    let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut waiting = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    // Not readable after a signal: a read would sleep.
    Ok(retry_on_intr(|| poll(&mut waiting, Some(&time)))? > 0)
}

/// The silence in the last complete line, which is removed with those before it; `None` without one.
fn last_line(lines: &mut Vec<u8>) -> Option<Duration> {
    let end = lines.iter().rposition(|byte| *byte == b'\n')?;
    let rest = lines.split_off(end + 1);
    let whole = std::mem::replace(lines, rest);
    let line = whole[..end].rsplit(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_last_complete_line_counts() {
        for (read, silence, rest) in [
            ("1500\n", Some(1_500), ""),
            ("1\n2\n30", Some(2), "30"),
            ("30", None, "30"),
            ("x\n", None, ""),
            ("", None, ""),
        ] {
            let mut lines = read.as_bytes().to_vec();
            assert_eq!(last_line(&mut lines), silence.map(Duration::from_millis), "{read:?}");
            assert_eq!(lines, rest.as_bytes(), "{read:?}");
        }
    }

    #[test]
    fn the_wait_ends_with_the_announced_silence_or_with_the_pipe() {
        for (announced, silence) in [(Some("1\n"), Silence::Stopped), (None, Silence::Ended)] {
            let (from, mut to) = io::pipe().expect("a pipe");
            let waiting = thread::spawn(move || wait_for_silence(from.as_fd()));
            let held = announced.map(|line| to.write_all(line.as_bytes()).map(|()| to).expect("written"));
            assert_eq!(waiting.join().expect("no panic").expect("readable"), silence);
            drop(held);
        }
    }
}
