//! A command of the user in a process group of its own, which ends with latlab, however latlab ends: a guard, which is a child
//! process of latlab's own binary, kills the group once its pipe from latlab has closed. A process that leaves the group is
//! not ended.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process_group, set_child_subreaper, waitid, waitpgid,
};

use super::child_process::exit_words;

/// The hidden command that a guard runs.
const GUARD_COMMAND: &str = "guard";

/// The last bytes of an output, which are kept.
const OUTPUT_KEPT: u64 = 64 << 10;
/// The output is cut to its last bytes when it is so long.
const OUTPUT_MAX: u64 = 16 << 20;
/// The time for processes to end after SIGTERM, before they are killed.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for killed processes to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which a wait looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How the first process of a group ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// `exit status 3`, `killed by SIGSEGV`.
    pub how: String,
    /// Whether it ended with exit status 0.
    pub succeeded: bool,
}

/// The processes of a command. Dropping it [ends](ProcessGroup::finish) them.
#[derive(Debug)]
pub struct ProcessGroup {
    /// The id of its first process, which stays reserved until the group has ended: nothing else waits for that process.
    id: Pid,
    guard: Child,
    end: Option<CommandEnd>,
    is_finished: bool,
    output: File,
    /// The file of the output, until it is kept.
    unkept: Option<PathBuf>,
}

impl ProcessGroup {
    /// Starts the program `words[0]` with the other words and with additional variables of its environment. Its output goes to
    /// the file `output`, which is removed in the end unless it is [kept](ProcessGroup::keep_output).
    pub fn start(words: &[String], environment: &[(&str, String)], output: &Path) -> io::Result<ProcessGroup> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // The kernel passes on to this process what the members of the group leave behind.
        set_child_subreaper(Some(getpid()))?;
        let _ = fs::remove_file(output);
        let file = File::options().read(true).append(true).create_new(true).open(output)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
        latlab_sys::process::in_own_session(&mut command);
        latlab_sys::process::end_with_parent(&mut command);
        let started = command.spawn().inspect_err(|_| _ = fs::remove_file(output))?;
        let id = Pid::from_child(&started);
        let guard = guard(id).inspect_err(|_| _ = end_group(id))?;
        Ok(ProcessGroup { id, guard, end: None, is_finished: false, output: file, unkept: Some(output.to_owned()) })
    }

    /// The id of its first process.
    pub fn id(&self) -> u32 {
        self.id.as_raw_pid().unsigned_abs()
    }

    /// How its first process ended; `None` if it did not within `timeout`, or if `stop` was set. Calls `heartbeat` while it
    /// waits.
    pub fn wait(&mut self, timeout: Duration, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) -> Option<&CommandEnd> {
        let deadline = Instant::now() + timeout;
        while self.end().is_none() && !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            heartbeat();
            thread::sleep(POLL_INTERVAL);
        }
        self.end()
    }

    /// How its first process ended, if it has by itself. Calls in between keep its output short.
    pub fn end(&mut self) -> Option<&CommandEnd> {
        if self.output.metadata().is_ok_and(|facts| facts.len() > OUTPUT_MAX) {
            let _ = self.cut_output();
        }
        if self.end.is_none() && !self.is_finished {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.end = waitid(WaitId::Pid(self.id), options).ok().flatten().map(|status| CommandEnd {
                how: exit_words(status.exit_status(), status.terminating_signal()),
                succeeded: status.exit_status() == Some(0),
            });
        }
        self.end.as_ref()
    }

    /// Ends its processes: SIGTERM, after two seconds SIGKILL. False if the kernel does not end one: of another user, or in
    /// uninterruptible sleep.
    pub fn finish(&mut self) -> bool {
        self.end();
        if self.is_finished {
            return true;
        }
        self.is_finished = true;
        let has_ended = end_group(self.id);
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        has_ended
    }

    /// The last bytes of its output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.last_bytes().unwrap_or_default()).into_owned()
    }

    /// Keeps the last bytes of its output; the file that has them, unless there are none.
    pub fn keep_output(&mut self) -> Option<PathBuf> {
        self.cut_output().ok()?;
        self.unkept.take_if(|_| self.output.metadata().is_ok_and(|facts| facts.len() > 0))
    }

    fn last_bytes(&self) -> io::Result<Vec<u8>> {
        let length = self.output.metadata()?.len();
        let mut bytes = vec![0; length.min(OUTPUT_KEPT) as usize];
        // The position of the file moves as the processes write.
        self.output.read_exact_at(&mut bytes, length.saturating_sub(OUTPUT_KEPT)).map(|()| bytes)
    }

    fn cut_output(&self) -> io::Result<()> {
        let last = self.last_bytes()?;
        self.output.set_len(0)?;
        // Every process appends to the file.
        (&self.output).write_all(&last)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.finish();
        self.unkept.iter().for_each(|path| _ = fs::remove_file(path));
    }
}

fn guard(group: Pid) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    // In a group of its own: Ctrl-C does not reach it.
    command.args([GUARD_COMMAND, &group.as_raw_nonzero().to_string()]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Waits until `input`, the pipe from latlab, closes, and kills `group`.
pub fn guard_group(group: i32, mut input: impl Read) -> io::Result<()> {
    let group = Pid::from_raw(group).ok_or(io::ErrorKind::InvalidInput)?;
    // `pkill latlab` spares it.
    let _ = rustix::thread::set_name(c"hook-guard");
    input.read_to_end(&mut Vec::new())?;
    Ok(kill_process_group(group, Signal::KILL)?)
}

/// Ends the processes of a group. False if some are left.
fn end_group(group: Pid) -> bool {
    let is_gone_after = |signal| {
        while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
        kill_process_group(group, signal) == Err(Errno::SRCH)
    };
    let _ = kill_process_group(group, Signal::TERM);
    // A stopped process gets SIGTERM when it continues.
    is_reached(TERM_TIMEOUT, || is_gone_after(Signal::CONT)) || is_reached(KILL_TIMEOUT, || is_gone_after(Signal::KILL))
}

fn is_reached(timeout: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_of_a_flood_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("output");
        let words = ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo the end; exit 3"];
        let words = words.map(str::to_owned);
        let mut group = ProcessGroup::start(&words, &[], &path).expect("started");
        let end = group.wait(Duration::from_secs(60), &AtomicBool::new(false), &mut || {}).expect("it ends").clone();
        assert_eq!((end.how.as_str(), end.succeeded), ("exit status 3", false));
        assert!(group.finish() && group.output().ends_with("x\nthe end\n"));
        assert_eq!(group.keep_output(), Some(path.clone()));
        drop(group);
        assert_eq!(fs::metadata(&path).expect("kept").len(), OUTPUT_KEPT);
        drop(ProcessGroup::start(&words, &[], &path).expect("started"));
        assert!(!path.exists());
    }
}
