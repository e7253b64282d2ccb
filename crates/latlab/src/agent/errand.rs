//! The command that connects to an agent: `ssh`, or whatever `cmd:` names.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::plan::{Family, Target};

/// So much of what it said last is kept as the cause of a failure.
const TOLD_BYTES: usize = 2_048;
/// How long it may take to end once its input is closed: the agent restores its host in 2 s.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
/// And then, after SIGTERM, before it is killed.
const TERMINATES_WITHIN: Duration = Duration::from_secs(1);
/// How long its last words may take after its end.
const WORDS_WITHIN: Duration = Duration::from_millis(200);

/// What is typed to reach the agent of `target`; none for targets without one.
pub(super) fn words(target: &Target, family: Option<Family>) -> Option<Vec<String>> {
    match target {
        Target::Ssh { host } => Some(ssh(host, family)),
        Target::Command { words } => Some(words.clone()),
        Target::Local | Target::Lab | Target::Host { .. } => None,
    }
}

/// ssh that asks nothing, leaves nothing behind and is silent while nothing is said through it; all else is the
/// user's configuration.
fn ssh(host: &str, family: Option<Family>) -> Vec<String> {
    let options = [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ControlMaster=no",
        "ServerAliveInterval=0",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
        "ForwardX11=no",
        "RequestTTY=no",
    ];
    let family = family.map(|family| match family {
        Family::Ipv4 => "-4",
        Family::Ipv6 => "-6",
    });
    let options = options.iter().flat_map(|option| ["-o", option]);
    let agent = ["--", host, "latlab", "agent", "--stdio"];
    ["ssh"].into_iter().chain(family).chain(options).chain(agent).map(str::to_owned).collect()
}

/// A running command in a process group of its own, since Ctrl-C means this end alone. It gets SIGTERM when the thread
/// that started it ends, and is ended when this is dropped.
#[derive(Debug)]
pub(super) struct AgentProcess {
    child: Child,
    told: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl AgentProcess {
    /// Starts `words`, with both ends of its streams.
    pub(super) fn start(words: &[String]) -> io::Result<(AgentProcess, ChildStdin, ChildStdout)> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        latlab_sys::child::end_with_parent(&mut command);
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(words)) = streams else { return Err(io::Error::other("no pipe to it")) };
        // Our end of the pipe alone: a process that does not read 64 KiB is lost, and no thread waits for it.
        fcntl_setfl(&to, fcntl_getfl(&to)? | OFlags::NONBLOCK)?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let listener = thread::Builder::new().name("agent-words".into()).spawn(move || hear(words, &hears)).ok();
        Ok((AgentProcess { child, told, listener }, to, from))
    }

    /// How it ended, if it does within `patience`.
    pub(super) fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }

    /// What it said last, in one line.
    pub(super) fn told(&self) -> Option<String> {
        let deadline = Instant::now() + WORDS_WITHIN;
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&told).into_owned();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("error: ")).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        let plain: String = text.chars().filter(|sign| !sign.is_control()).collect();
        (!plain.is_empty()).then_some(plain)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Already gone is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Ends it and everything in its group: its input was closed before.
impl Drop for AgentProcess {
    fn drop(&mut self) {
        if self.ended(ENDS_WITHIN).is_some() {
            return;
        }
        self.signal(Signal::TERM);
        if self.ended(TERMINATES_WITHIN).is_none() {
            // Stopped, or deaf.
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Keeps the last words.
fn hear(mut from: ChildStderr, told: &Mutex<Vec<u8>>) {
    let mut piece = [0; TOLD_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut piece) {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend_from_slice(&piece[..bytes]);
        let old = told.len().saturating_sub(TOLD_BYTES);
        drop(told.drain(..old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_becomes_an_option_and_nothing_is_asked() {
        let words = ssh("pi@pi3", Some(Family::Ipv6));
        assert_eq!(words[..2], ["ssh", "-6"]);
        assert!(words.windows(2).any(|pair| pair == ["-o", "BatchMode=yes"]));
        assert_eq!(words[words.len() - 5..], ["--", "pi@pi3", "latlab", "agent", "--stdio"]);
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let words = ["sh", "-c", "yes | head -c 1000000 >&2; printf '\\nthe\\033[1m end\\n' >&2; exit 7"];
        let (mut errand, to, _from) = AgentProcess::start(&words.map(String::from)).expect("sh(1) is everywhere");
        drop(to);
        assert_eq!(errand.ended(Duration::from_secs(30)).and_then(|status| status.code()), Some(7));
        let told = errand.told().expect("it said something");
        assert!(told.ends_with("; the[1m end") && told.len() < 2 * TOLD_BYTES, "{told}");
        assert!(errand.told.lock().expect("no panic").len() <= TOLD_BYTES);
    }
}
