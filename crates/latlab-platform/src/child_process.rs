//! A child process of latlab's own binary, of a reflector or a load: it reads its request as one line of JSON from standard
//! input, writes events as lines to standard output, and ends when its input closes.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The interval of the heartbeat during a wait for a line.
const HEARTBEAT_NS: i64 = 100_000_000;

/// The time for a process that closed its output to end, on a busy host.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A child process. It ends when this is dropped, or when this process ends, however it ends: its standard input closes, and
/// the kernel signals it.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    end_timeout: Duration,
}

impl ChildProcess {
    /// Starts the hidden `command` in the caller's network namespace and sends it `request`. When this is dropped, a
    /// process that does not end within `end_timeout` is killed.
    pub fn spawn(command: &str, request: &impl Serialize, end_timeout: Duration) -> io::Result<ChildProcess> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let mut child = Command::new(std::env::current_exe()?)
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C signals the terminal's group, and answers in flight are still awaited then.
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("no pipe to the process");
        let (mut input, output) = child.stdin.take().zip(child.stdout.take()).ok_or_else(missing)?;
        // An error if it has ended already, which the next read reports.
        let _ = input.write_all(line.as_bytes());
        Ok(ChildProcess { child, input: Some(input), output: BufReader::new(output), end_timeout })
    }

    /// Asks it to end, and waits; kills it if it does not in time, because it is stopped or waits for its CPU behind
    /// a thread of higher priority.
    fn end(&mut self) {
        self.dismiss();
        let deadline = Instant::now() + self.end_timeout;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line. An error, if it has ended, is reported by the next read.
    pub fn send_line(&mut self, line: &str) {
        let _ = self.input.as_mut().map(|input| writeln!(input, "{line}"));
    }

    /// The next line; empty if the process closed its output.
    ///
    /// # Errors
    /// Of kind `TimedOut` without a line within `timeout`.
    pub fn receive_line(&mut self, timeout: Duration) -> io::Result<String> {
        let line = self.receive_line_unless(&AtomicBool::new(false), timeout, &mut || {})?;
        Ok(line.unwrap_or_default())
    }

    /// As [`receive_line`](ChildProcess::receive_line); `None` if `stop` is set before. Calls `heartbeat` while it waits.
    pub fn receive_line_unless(
        &mut self,
        stop: &AtomicBool,
        timeout: Duration,
        heartbeat: &mut dyn FnMut(),
    ) -> io::Result<Option<String>> {
        let deadline = Instant::now() + timeout;
        while self.output.buffer().is_empty() {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match latlab_sys::readiness::readable_within(self.output.get_ref().as_fd(), HEARTBEAT_NS) {
                Ok(true) => break,
                Ok(false) => heartbeat(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => heartbeat(),
                Err(error) => return Err(error),
            }
        }
        // The process writes each line with one call.
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(Some(line))
    }

    /// Asks the process to end, by closing its input.
    pub fn dismiss(&mut self) {
        drop(self.input.take());
    }

    /// How it ended: `killed by SIGKILL`, `exit status 3`; `None` if it runs.
    pub fn death(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(in_words)
    }

    /// Why [`receive_line`](ChildProcess::receive_line) returned `received` instead of an event.
    pub fn failure_reason(&mut self, received: &io::Result<String>) -> String {
        if let Err(error) = received {
            return format!("its process does not answer: {}", latlab_sys::errno::explain(error));
        }
        let deadline = Instant::now() + EXIT_TIMEOUT;
        loop {
            match self.death() {
                Some(how) => return format!("its process ended: {how}"),
                None if Instant::now() > deadline => return "its process stopped answering".into(),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (None, None) => status.to_string(),
        (code, signal) => exit_words(code, signal),
    }
}

/// How a process ended: `exit status 3`, `killed by SIGKILL`.
pub fn exit_words(status: Option<i32>, signal: Option<i32>) -> String {
    match (status, signal) {
        (Some(status), _) => format!("exit status {status}"),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            format!("killed by {}", name.map_or_else(|| format!("signal {signal}"), str::to_owned))
        }
        (None, None) => "it ended".into(),
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}
