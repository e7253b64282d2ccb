//! A process of latlab's own binary beside this one: it gets its order as one line of JSON on its standard input, and
//! ends when that closes.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Ends when this is dropped, or when this process ends, however it ends: its standard input closes, and the kernel
/// signals it.
#[derive(Debug)]
pub(super) struct OwnProcess {
    child: Child,
    orders: Option<ChildStdin>,
    ends_within: Duration,
}

impl OwnProcess {
    /// Starts the hidden `command` in the caller's network namespace and hands it `order`; what it says is the answer.
    /// One that has not ended `ends_within` after its standard input closed is killed.
    pub(super) fn spawn(
        command: &str,
        order: &impl Serialize,
        ends_within: Duration,
    ) -> io::Result<(OwnProcess, ChildStdout)> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let mut child = Command::new(std::env::current_exe()?)
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C goes to the whole group of the terminal, and what is in flight is still
            // awaited then.
            .process_group(0)
            .spawn()?;
        let (orders, news) = (child.stdin.take(), child.stdout.take());
        let mut process = OwnProcess { child, orders, ends_within };
        let missing = || io::Error::other("no pipe to the process");
        process.orders.as_mut().ok_or_else(missing)?.write_all(line.as_bytes())?;
        Ok((process, news.ok_or_else(missing)?))
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says `word` to it. One that is gone shows when it does not answer.
    pub(super) fn say(&mut self, word: &str) {
        let _ = self.orders.as_mut().map(|orders| writeln!(orders, "{word}"));
    }

    /// Tells it to end.
    pub(super) fn dismiss(&mut self) {
        drop(self.orders.take());
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        self.dismiss();
        let deadline = Instant::now() + self.ends_within;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                // Stopped, or kept from its CPU by somebody with a higher priority.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
