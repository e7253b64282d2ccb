//! A process of latlab's own binary beside this one, a reflector's or a load's: it gets its order as one line of JSON on
//! its standard input, answers in lines on its standard output, and ends when its input closes.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How often the caller is heard while it waits for a line.
const HEARTBEAT_NS: i64 = 100_000_000;

/// One that fell silent is on its way out; a busy host may need so long for it.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// Ends when this is dropped, or when this process ends, however it ends: its standard input closes, and the kernel
/// signals it.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    orders: Option<ChildStdin>,
    news: BufReader<ChildStdout>,
    ends_within: Duration,
}

impl ChildProcess {
    /// Starts the hidden `command` in the caller's network namespace and hands it `order`. One that has not ended
    /// `ends_within` after its standard input closed is killed.
    pub(crate) fn spawn(command: &str, order: &impl Serialize, ends_within: Duration) -> io::Result<ChildProcess> {
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
        let missing = || io::Error::other("no pipe to the process");
        let (mut orders, news) = child.stdin.take().zip(child.stdout.take()).ok_or_else(missing)?;
        // One that has ended already says so by its silence.
        let _ = orders.write_all(line.as_bytes());
        Ok(ChildProcess { child, orders: Some(orders), news: BufReader::new(news), ends_within })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says `word` to it. One that is gone shows when it does not answer.
    pub(crate) fn say(&mut self, word: &str) {
        let _ = self.orders.as_mut().map(|orders| writeln!(orders, "{word}"));
    }

    /// The next line that it says within `patience`; empty where it has ended without a word.
    ///
    /// # Errors
    /// Of kind `TimedOut` where nothing came.
    pub(crate) fn hear(&mut self, patience: Duration) -> io::Result<String> {
        let line = self.hear_unless(&AtomicBool::new(false), patience, &mut || {})?;
        Ok(line.unwrap_or_default())
    }

    /// The next line; `None` if `stop` was set before one came. Calls `heartbeat` while it waits.
    pub(crate) fn hear_unless(
        &mut self,
        stop: &AtomicBool,
        patience: Duration,
        heartbeat: &mut dyn FnMut(),
    ) -> io::Result<Option<String>> {
        let deadline = Instant::now() + patience;
        while self.news.buffer().is_empty() {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match latlab_sys::readiness::readable_within(self.news.get_ref().as_fd(), HEARTBEAT_NS) {
                Ok(true) => break,
                Ok(false) => heartbeat(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => heartbeat(),
                Err(error) => return Err(error),
            }
        }
        // Lines are written in one piece.
        let mut line = String::new();
        self.news.read_line(&mut line)?;
        Ok(Some(line))
    }

    /// Asks the process to end.
    pub(crate) fn dismiss(&mut self) {
        drop(self.orders.take());
    }

    /// How it ended, if it has: `killed by SIGKILL`, `exit status 3`.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(in_words)
    }

    /// Why it has not answered, where [`hear`](OwnProcess::hear) gave `heard`.
    pub(crate) fn silence(&mut self, heard: &io::Result<String>) -> String {
        if let Err(error) = heard {
            return format!("its process does not answer: {}", latlab_sys::errno::explain(error));
        }
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            match self.death() {
                Some(how) => return format!("its process ended: {how}"),
                None if Instant::now() > deadline => return "its process fell silent".into(),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            format!("killed by {}", name.map_or_else(|| format!("signal {signal}"), str::to_owned))
        }
        (None, None) => status.to_string(),
    }
}

impl Drop for ChildProcess {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_told_by_code_or_signal() {
        // wait(2): the code stands in the second byte, the signal in the first.
        for (raw, told) in [(0, "exit status 0"), (3 << 8, "exit status 3"), (9, "killed by SIGKILL"), (11, "SIGSEGV")]
        {
            let words = in_words(ExitStatus::from_raw(raw));
            assert!(words.ends_with(told), "{words}");
        }
        assert_eq!(in_words(ExitStatus::from_raw(40)), "killed by signal 40");
    }
}
