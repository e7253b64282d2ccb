//! A command of the user below a supervisor: a child process of latlab's own binary that starts the command, keeps the begin
//! and the end of its output, adopts every process that the command leaves behind, and ends them all when its standard input
//! closes, however latlab has ended. Every such process has marks in its environment, by which it is found if the supervisor
//! was killed as well.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, BufRead, PipeReader, Read};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait, waitid,
};
use serde::{Deserialize, Serialize};

use super::ChildProcess;
use super::child_process::exit_words;

/// The hidden command that a supervisor runs.
pub(crate) const SUPERVISE_COMMAND: &str = "supervise";

/// The variable whose value is that of one supervisor, in the environment of its command and of what that starts.
const MARK: &str = "LATLAB_SUPERVISOR";

/// The bytes that are kept of the begin of the output, and as many of its end.
const OUTPUT_PART: usize = 32 << 10;
/// The time for a command to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for processes to end after SIGTERM, before they are killed.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for killed processes to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for the output of an ended command to arrive: a process that it has left may keep the pipe open.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// The time for a supervisor to end after its input was closed.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which a wait looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The line that asks for the output.
const SHOW_OUTPUT: &str = "output";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisedCommand {
    pub words: Vec<String>,
    /// Additional variables of its environment.
    pub environment: BTreeMap<String, String>,
}

/// What a supervisor reports: one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    Started,
    /// It could not be started.
    Refused {
        reason: String,
    },
    /// Its first process ended by itself.
    Ended(CommandEnd),
    /// The begin and the end of its output so far, as asked for.
    Output(String),
    /// Its input has closed, and so many processes could not be ended.
    Left(usize),
}

impl SupervisorEvent {
    /// The event as one line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// How the first process of a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// `exit status 3`, `killed by SIGSEGV`.
    pub how: String,
    /// Whether it ended with exit status 0.
    pub succeeded: bool,
}

/// A command that runs below its supervisor. Dropping it [ends](Supervised::finish) it.
#[derive(Debug)]
pub struct Supervised {
    process: ChildProcess,
    end: Option<CommandEnd>,
    /// That of a command that ended by itself, once it is finished.
    last_output: String,
    /// `NAME=VALUE` in the environment of its processes.
    mark: String,
    is_finished: bool,
}

impl Supervised {
    /// Starts `command`.
    ///
    /// # Errors
    /// The supervisor or the program cannot be started.
    pub fn start(command: &SupervisedCommand) -> io::Result<Supervised> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = format!("{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mark = format!("{MARK}={number}");
        let mut command = command.clone();
        command.environment.insert(MARK.into(), number);
        let process = ChildProcess::spawn(SUPERVISE_COMMAND, &command, END_TIMEOUT)?;
        let mut supervised = Supervised { process, end: None, last_output: String::new(), mark, is_finished: false };
        match serde_json::from_str(&supervised.process.receive_line(START_TIMEOUT)?) {
            Ok(SupervisorEvent::Started) => Ok(supervised),
            Ok(SupervisorEvent::Refused { reason }) => Err(io::Error::other(reason)),
            _ => Err(io::Error::other("its supervisor ended before it began")),
        }
    }

    /// How its first process ended; `None` if it did not within `timeout`, or if `stop` was set. Calls `heartbeat` while it
    /// waits.
    pub fn wait(&mut self, timeout: Duration, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) -> Option<&CommandEnd> {
        let deadline = Instant::now() + timeout;
        while self.end.is_none() {
            let rest = deadline.saturating_duration_since(Instant::now());
            match self.process.receive_line_unless(stop, rest, heartbeat) {
                Ok(Some(line)) => self.note(&line),
                Ok(None) | Err(_) => break,
            }
        }
        self.end.as_ref()
    }

    /// How its first process ended, if it has by itself. After [`finish`](Supervised::finish) no end before that is missed.
    pub fn end(&mut self) -> Option<&CommandEnd> {
        while self.end.is_none() && !self.is_finished && self.process.has_line() {
            let line = self.process.receive_line(START_TIMEOUT).unwrap_or_default();
            self.note(&line);
        }
        self.end.as_ref()
    }

    /// The begin and the end of its output so far; once it is [finished](Supervised::finish), if it had ended by itself.
    pub fn output(&mut self) -> String {
        if self.is_finished {
            return self.last_output.clone();
        }
        self.process.send_line(SHOW_OUTPUT);
        while let Ok(line) = self.process.receive_line(START_TIMEOUT) {
            match serde_json::from_str(&line) {
                Ok(SupervisorEvent::Output(output)) => return output,
                Ok(_) => self.note(&line),
                Err(_) => break,
            }
        }
        String::new()
    }

    /// Ends the command and every process that it has started: SIGTERM, after two seconds SIGKILL. Returns the number of
    /// processes that are left: the kernel refuses to end those of another user, and does not end one in uninterruptible
    /// sleep.
    pub fn finish(&mut self) -> usize {
        if self.is_finished {
            return 0;
        }
        // Also that of its supervisor.
        self.end();
        self.is_finished = true;
        self.process.dismiss();
        let mut left = 0;
        while let Ok(line) = self.process.receive_line(END_TIMEOUT) {
            match serde_json::from_str(&line) {
                Ok(SupervisorEvent::Left(processes)) => left = processes,
                Ok(SupervisorEvent::Output(output)) => {
                    self.last_output = output;
                    continue;
                }
                Ok(_) => {
                    self.note(&line);
                    continue;
                }
                Err(_) => {}
            }
            break;
        }
        // It waits for what it could not end.
        let has_ended = self.process.end(if left == 0 { END_TIMEOUT } else { Duration::ZERO });
        if left == 0 && !has_ended { end_marked(&self.mark).left } else { left }
    }

    fn note(&mut self, line: &str) {
        self.end = match serde_json::from_str(line) {
            Ok(SupervisorEvent::Ended(end)) => Some(end),
            Ok(_) => return,
            Err(_) => Some(CommandEnd { how: self.process.failure_reason(&Ok(line.to_owned())), succeeded: false }),
        };
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Supervises `command`, in a process of its own, until `input` ends; sends what happens to `report`.
pub fn supervise(command: &SupervisedCommand, input: impl BufRead + Send, report: &(dyn Fn(&SupervisorEvent) + Sync)) {
    let (pid, output) = match start(command) {
        Ok(started) => started,
        Err(error) => return report(&SupervisorEvent::Refused { reason: latlab_sys::errno::explain(&error) }),
    };
    let kept = Arc::new(KeptOutput::default());
    // Not joined: a process that cannot be killed may keep the pipe open.
    let reader = Arc::clone(&kept);
    thread::spawn(move || reader.read(output));
    report(&SupervisorEvent::Started);
    let show_output = || {
        wait_until(OUTPUT_TIMEOUT, || !has_ended(pid) || kept.is_complete.load(Ordering::Acquire));
        report(&SupervisorEvent::Output(kept.text()));
    };
    let is_ended_by_signal = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            input.lines().map_while(Result::ok).filter(|line| line == SHOW_OUTPUT).for_each(|_| show_output());
            match has_ended(pid) {
                true => show_output(),
                false => is_ended_by_signal.store(true, Ordering::Release),
            }
            match end_processes(descendants, is_descendant) {
                0 => {}
                left => report(&SupervisorEvent::Left(left)),
            }
        });
        reap(pid, |end| {
            if !is_ended_by_signal.load(Ordering::Acquire) {
                report(&SupervisorEvent::Ended(end));
            }
        });
    });
}

/// Whether the child `pid` has ended, whether or not it was waited for.
fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Starts `command`; returns its process id and its output.
fn start(command: &SupervisedCommand) -> io::Result<(Pid, PipeReader)> {
    let (program, arguments) = command.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // Whatever the command leaves behind becomes a child of this process.
    set_child_subreaper(Some(getpid()))?;
    let (from, to) = io::pipe()?;
    let mut child = Command::new(program);
    child.args(arguments).envs(&command.environment).stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to);
    latlab_sys::process::in_own_session(&mut child);
    latlab_sys::process::end_with_parent(&mut child);
    let pid = child.spawn()?.id();
    // The writing end of this process closes with `child`.
    Pid::from_raw(pid.cast_signed()).map(|pid| (pid, from)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Waits until this process has no child left; reports how the one with this `pid` ended.
fn reap(pid: Pid, report: impl Fn(CommandEnd)) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == pid => {
                report(CommandEnd { how: in_words(status), succeeded: status.exit_status() == Some(0) });
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No child is left.
            Err(_) => return,
        }
    }
}

fn in_words(status: WaitStatus) -> String {
    exit_words(status.exit_status(), status.terminating_signal())
}

/// Ends the processes that `left` finds, of which `is_left` knows each: SIGTERM, and SIGKILL to those that do not end in time.
/// Returns the number of those that are left.
fn end_processes(left: impl Fn() -> Vec<Pid>, is_left: impl Fn(Pid) -> bool) -> usize {
    let signal = |signal| {
        let processes = left();
        processes.iter().for_each(|pid| _ = send(*pid, signal, &is_left));
        processes.len()
    };
    signal(Signal::TERM);
    // A stopped process gets SIGTERM when it continues.
    signal(Signal::CONT);
    wait_until(TERM_TIMEOUT, || left().is_empty());
    wait_until(KILL_TIMEOUT, || signal(Signal::KILL) == 0);
    left().len()
}

/// Sends `signal` to `pid` if it `is_left` once the process cannot be exchanged for another one with the same id.
fn send(pid: Pid, signal: Signal, is_left: impl Fn(Pid) -> bool) -> rustix::io::Result<()> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) if is_left(pid) => pidfd_send_signal(process, signal),
        Ok(_) => Ok(()),
        // Before Linux 5.3.
        Err(Errno::NOSYS) => kill_process(pid, signal),
        Err(error) => Err(error),
    }
}

/// The processes below this one.
fn descendants() -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> = processes().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![getpid()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Whether `pid` is below this process.
fn is_descendant(pid: Pid) -> bool {
    std::iter::successors(parent_of(pid), |parent| parent_of(*parent)).any(|parent| parent == getpid())
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The parent of `pid`: the second field behind the name, which may have spaces and brackets, in `/proc/PID/stat`.
fn parent_of(pid: Pid) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Pid::from_raw(text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?)
}

/// Processes that a supervisor which was killed has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedProcesses {
    pub found: usize,
    /// Of these, those that could not be ended.
    pub left: usize,
}

/// Ends the processes with `variable`, as `NAME=VALUE`, in their environment.
pub fn end_marked(variable: &str) -> MarkedProcesses {
    let is_marked = |pid: Pid| pid != getpid() && has_variable(pid, variable);
    let marked = || -> Vec<Pid> { processes().filter(|pid| is_marked(*pid)).collect() };
    let found = marked().len();
    MarkedProcesses { found, left: if found == 0 { 0 } else { end_processes(marked, is_marked) } }
}

fn has_variable(pid: Pid, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
}

fn wait_until(timeout: Duration, is_reached: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout;
    while !is_reached() && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
}

/// The first and the last bytes of an output.
#[derive(Debug, Default)]
struct KeptOutput {
    parts: Mutex<OutputParts>,
    /// Whether every process has closed it.
    is_complete: AtomicBool,
}

#[derive(Debug, Default)]
struct OutputParts {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl KeptOutput {
    fn read(&self, mut from: PipeReader) {
        let mut buffer = [0; 16 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.is_complete.store(true, Ordering::Release);
    }

    fn text(&self) -> String {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl OutputParts {
    fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(OUTPUT_PART - self.begin.len()));
        self.begin.extend(first);
        self.end.extend(rest);
        let surplus = self.end.len().saturating_sub(OUTPUT_PART);
        self.end.drain(..surplus);
        self.left_out += surplus as u64;
    }

    fn text(&self) -> String {
        let end: Vec<u8> = self.end.iter().copied().collect();
        let [begin, end] = [&self.begin, &end].map(|bytes| String::from_utf8_lossy(bytes));
        match self.left_out {
            0 => format!("{begin}{end}"),
            bytes => format!("{begin}\n[{bytes} bytes left out]\n{end}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_begin_and_the_end_of_a_flood_are_kept() {
        let mut parts = OutputParts::default();
        parts.push(b"first\n");
        (0..100).for_each(|_| parts.push(&[b'x'; 16 << 10]));
        parts.push(b"last\n");
        let text = parts.text();
        assert!(text.starts_with("first\nx") && text.ends_with("xlast\n"), "{}", text.len());
        assert!(text.contains(" bytes left out]\n") && text.len() < 2 * OUTPUT_PART + 64, "{}", text.len());
        let mut few = OutputParts::default();
        few.push(b"all of it");
        assert_eq!(few.text(), "all of it");
    }

    #[test]
    fn the_parent_of_a_process_is_found() {
        let parent = rustix::process::getppid().expect("one");
        assert_eq!(parent_of(getpid()), Some(parent));
        assert!(processes().any(|pid| pid == getpid()));
        assert!(!is_descendant(parent) && !is_descendant(getpid()));
    }
}
