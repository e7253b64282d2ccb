//! The watchdog of an agent: a process of its own that restores the settings of the agent's host if the agent is killed. The
//! agent starts it before its first change, and holds the pipe whose end it waits for.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const COMMAND: &str = "watchdog";
/// The time for a watchdog to end, which restores settings before.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The watchdog of this process, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Starts it in a group of its own, so that signals to the agent's group do not reach it.
    pub(super) fn start() -> io::Result<Watchdog> {
        let mut command = Command::new(std::env::current_exe()?);
        // It must not keep the streams of the agent open.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.args([COMMAND, &std::process::id().to_string()]).process_group(0).spawn().map(Watchdog)
    }
}

impl Drop for Watchdog {
    /// Closes its input and waits for its end, for a limited time.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits until the agent that holds the other end of `input` has ended.
///
/// # Errors
/// `input` cannot be read.
pub fn wait_for_end(mut input: impl Read) -> io::Result<()> {
    input.read_to_end(&mut Vec::new()).map(drop)
}
