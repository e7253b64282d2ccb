//! The process that connects to an agent: `ssh`, or the command of `cmd:`.

use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::plan::{Family, Target};

/// The last bytes of standard error that are kept as the cause of a failure.
const STDERR_BYTES: usize = 2_048;
/// The time for the process to end after its input was closed: the agent restores its host in 2 s.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for the process to end after SIGTERM, before it is killed.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(1);
/// The most of a program's output that is read: `ssh -G` prints some 10 kB.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// The time for a program to name the addresses of a host.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for the rest of the output to arrive after the end of that program.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for the rest of standard error to arrive after the end of the process.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// The command line that reaches the agent of `target`; `None` for targets without an agent.
pub(super) fn command_line(target: &Target, family: Option<Family>) -> Option<Vec<String>> {
    match target {
        Target::Ssh { host } => Some(ssh_command_line(host, family)),
        Target::Command { words } => Some(words.clone()),
        Target::Local | Target::Lab | Target::Host { .. } | Target::Log { .. } => None,
    }
}

/// ssh with 10 s to connect, and no prompt, terminal, forwarding, keep-alive or new master; all else as configured.
fn ssh_command_line(host: &str, family: Option<Family>) -> Vec<String> {
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

/// The addresses of the host that ssh connects to for `host`: those of the name in ssh's configuration, as this program and as
/// the C library resolve it (getent(1): hosts of mDNS and of directories). Empty if there are none, or if ssh does not answer.
pub(super) fn addresses_of(host: &str) -> Vec<IpAddr> {
    let Some(configured) = output_of(&["ssh", "-G", "--", host]) else { return Vec::new() };
    let Some(name) = configured.lines().find_map(|line| line.strip_prefix("hostname ")) else { return Vec::new() };
    let listed = output_of(&["getent", "ahosts", "--", name]).unwrap_or_default();
    // An address of the link has its zone behind a percent sign.
    let listed = listed.lines().filter_map(|line| line.split([' ', '%']).next()?.parse().ok());
    let mut known: Vec<_> = resolve(name).into_iter().chain(listed).map(|address| address.to_canonical()).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The addresses of `name` that this program resolves within [`LOOKUP_TIMEOUT`].
fn resolve(name: &str) -> Vec<IpAddr> {
    let (name, (sender, resolved)) = (name.to_owned(), mpsc::channel());
    // Not joined: the resolver has no limit.
    thread::spawn(move || {
        let addresses = (name.as_str(), 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip());
        let _ = sender.send(addresses.collect());
    });
    resolved.recv_timeout(LOOKUP_TIMEOUT).unwrap_or_default()
}

/// The standard output of a program; `None` if it cannot be started, fails, or does not end within [`LOOKUP_TIMEOUT`].
fn output_of(words: &[&str]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    let (mut process, to, from) = AgentProcess::start(&words).ok()?;
    drop(to);
    let (sender, read) = mpsc::channel();
    // Not joined: another process may keep the pipe open.
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = from.take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
        let _ = sender.send(text);
    });
    let status = process.wait(LOOKUP_TIMEOUT);
    // A process that the program has started may keep the pipe open.
    process.signal(Signal::KILL);
    let text = read.recv_timeout(OUTPUT_TIMEOUT).ok()?;
    status.filter(ExitStatus::success).map(|_| String::from_utf8_lossy(&text).into_owned())
}

/// A process in a group of its own, so that Ctrl-C does not reach it. It gets SIGTERM when the thread that started it
/// ends, and is ended when this is dropped.
#[derive(Debug)]
pub(super) struct AgentProcess {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: Option<JoinHandle<()>>,
}

impl AgentProcess {
    /// Starts `command_line`; also returns its standard input and output.
    pub(super) fn start(command_line: &[String]) -> io::Result<(AgentProcess, ChildStdin, ChildStdout)> {
        let (program, arguments) = command_line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        latlab_sys::process::end_with_parent(&mut command);
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(errors)) = streams else { return Err(io::Error::other("no pipe to it")) };
        // This end of the pipe does not block: a process that leaves 64 KiB unread counts as lost.
        fcntl_setfl(&to, fcntl_getfl(&to)? | OFlags::NONBLOCK)?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&stderr);
        let read = move || keep_last_bytes(errors, &shared);
        let stderr_reader = thread::Builder::new().name("agent-words".into()).spawn(read).ok();
        Ok((AgentProcess { child, stderr, stderr_reader }, to, from))
    }

    /// Its exit status; `None` if it does not end within `timeout`.
    pub(super) fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }

    /// The end of its standard error, as one line; `None` if it wrote nothing.
    pub(super) fn stderr(&self) -> Option<String> {
        let deadline = Instant::now() + STDERR_TIMEOUT;
        while self.stderr_reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&stderr).into_owned();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("error: ")).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        (!text.is_empty()).then_some(text)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Fails if the group has ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Ends the process and its group. Its input must have been closed before.
impl Drop for AgentProcess {
    fn drop(&mut self) {
        if self.wait(END_TIMEOUT).is_some() {
            return;
        }
        self.signal(Signal::TERM);
        if self.wait(TERMINATION_TIMEOUT).is_none() {
            // It is stopped, or ignores the signal.
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn keep_last_bytes(mut from: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; STDERR_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..bytes]);
        let old = kept.len().saturating_sub(STDERR_BYTES);
        drop(kept.drain(..old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_follows_the_options_and_ssh_never_prompts() {
        let words = ssh_command_line("pi@pi3", Some(Family::Ipv6));
        assert_eq!(words[..2], ["ssh", "-6"]);
        assert!(words.windows(2).any(|pair| pair == ["-o", "BatchMode=yes"]));
        assert_eq!(words[words.len() - 5..], ["--", "pi@pi3", "latlab", "agent", "--stdio"]);
    }

    #[test]
    fn the_last_bytes_of_standard_error_are_kept_in_one_line() {
        let words = ["sh", "-c", "yes | head -c 1000000 >&2; printf '\\nthe\\033[1m end\\n' >&2; exit 7"];
        let (mut process, to, _from) = AgentProcess::start(&words.map(String::from)).expect("sh(1) is everywhere");
        drop(to);
        assert_eq!(process.wait(Duration::from_secs(30)).and_then(|status| status.code()), Some(7));
        let stderr = process.stderr().expect("it wrote something");
        assert!(stderr.ends_with("; the\x1b[1m end") && stderr.len() < 2 * STDERR_BYTES, "{stderr}");
        assert!(process.stderr.lock().expect("no panic").len() <= STDERR_BYTES);
    }
}
