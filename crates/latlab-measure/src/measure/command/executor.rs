//! One execution: spawn, poll, wait, and two clock reads. It does not allocate.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use latlab_sys::scheduler::{set_fifo, set_inherited_fifo};
use latlab_sys::spawn::{self, Ended, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::error::CommandError;
use super::files::{Files, find, last_lines};
use super::printed::OutputPattern;
use crate::clock::{Clock, Monotonic};
use crate::facts::{Execution, in_shell};
use crate::measure::stop_signal::StopSignal;
use crate::plan::{CommandSpec, PrintedSpec, defaults};
use crate::platform::exit_words;
use crate::probe::{ExecutionFate, Phase, Seq};
use crate::units::human::span;
use crate::units::{Nanos, SenderClock, Stamp};

/// The time for an execution to end after SIGTERM, before its group is killed.
const TERM_TIMEOUT: Nanos = Nanos::from_secs(1);

/// A command that is ready to be executed.
pub(super) struct Executor {
    spec: CommandSpec,
    /// Priority under SCHED_FIFO.
    fifo: Option<u8>,
    command: Program,
    prepare: Option<Program>,
    files: Files,
    /// Of each metric that it prints.
    patterns: Vec<OutputPattern>,
}

impl Executor {
    pub(super) fn new(spec: &CommandSpec, fifo: Option<u8>) -> Result<Executor, CommandError> {
        let (files, given) = Files::open(spec)?;
        let prepare = spec.prepare.as_ref().map(|words| {
            let copied = |file: &Option<OwnedFd>| file.as_ref().map(OwnedFd::try_clone).transpose();
            let copies = || -> io::Result<[Option<OwnedFd>; 3]> {
                let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
                let output = if spec.printed.is_empty() { copied(&given[1])? } else { Some(null()?) };
                Ok([Some(null()?), output, copied(&given[2])?])
            };
            program(words, copies().map_err(refused(words))?)
        });
        let (prepare, command) = (prepare.transpose()?, program(&spec.words, given)?);
        let pattern = |it: &PrintedSpec| OutputPattern::parse(&it.pattern).expect("a pattern that was parsed");
        let patterns = spec.printed.iter().map(pattern).collect();
        Ok(Executor { spec: spec.clone(), fifo, command, prepare, files, patterns })
    }

    /// Executes the command once; `None` if `stop` ended that.
    pub(super) fn execute(
        &mut self,
        seq: Seq,
        phase: Phase,
        stop: &StopSignal,
    ) -> Result<Option<Execution>, CommandError> {
        let spec = &self.spec;
        if let Some((prepare, words)) = self.prepare.as_ref().zip(spec.prepare.as_ref()) {
            self.files.rewind();
            let end = run(prepare, None, None, &mut self.files, stop).map_err(refused(words))?;
            let Some(end) = end else { return Ok(None) };
            if end.used.exit_code != Some(0) {
                let output = self.files.last_lines();
                let command = in_shell(words);
                let hint = "the command of `--prepare` must succeed before each execution";
                return Err(CommandError::Failed { command, how: words_of(&end.used), output, hint });
            }
        }
        self.files.rewind();
        let end = run(&self.command, self.fifo, spec.timeout_ns, &mut self.files, stop);
        Ok(end.map_err(refused(&spec.words))?.map(|end| end.execution(seq, phase)))
    }

    pub(super) const fn looks_for_numbers(&self) -> bool {
        !self.spec.printed.is_empty()
    }

    /// The numbers that the last execution printed, of each metric.
    ///
    /// # Errors
    /// If it printed none of one, or so much that not all of it was kept.
    pub(super) fn numbers(&mut self) -> Result<Vec<Vec<f64>>, CommandError> {
        self.files.drain();
        let (output, written) = (&self.files.kept, self.files.written);
        let silent = |metric: &PrintedSpec, cause: String| CommandError::Failed {
            command: self.spec.in_shell(),
            how: format!("no number of `{}`: {cause}", metric.name),
            output: last_lines(output),
            hint: "mend the pattern, or with `--shell` let another program choose what is read: `COMMAND 2>&1 | tail`",
        };
        let numbers = |(pattern, metric): (&OutputPattern, &PrintedSpec)| {
            let found = match written > output.len() as u64 {
                true => Err(format!("its standard output has {written} bytes, more than 16 MiB")),
                false => pattern.numbers(output, metric.factor()),
            };
            found.map_err(|cause| silent(metric, cause))
        };
        self.patterns.iter().zip(&self.spec.printed).map(numbers).collect()
    }

    /// The error of `execution`, the last one, which failed.
    pub(super) fn failure(&mut self, execution: &Execution) -> CommandError {
        let code = i32::from(execution.code);
        let (how, hint) = match execution.fate {
            ExecutionFate::Exited => {
                (exit_words(Some(code), None), "`--ignore-failure` continues, and takes every exit code for a success")
            }
            ExecutionFate::Killed => {
                (exit_words(None, Some(code)), "`--ignore-failure` without `--metric` counts it as infinitely long")
            }
            ExecutionFate::TimedOut => (
                format!("it took longer than {}", span(self.spec.timeout_ns.unwrap_or_default())),
                "use a longer `--timeout`, or `--ignore-failure` without `--metric`",
            ),
        };
        let output = self.files.last_lines();
        CommandError::Failed { command: self.spec.in_shell(), how, output, hint }
    }
}

fn program(words: &[String], files: [Option<OwnedFd>; 3]) -> Result<Program, CommandError> {
    let path = find(words.first().map_or("", String::as_str))?;
    Program::new(&path, words, files).map_err(refused(words))
}

fn refused(words: &[String]) -> impl FnOnce(io::Error) -> CommandError {
    move |source| CommandError::Refused { program: words.first().cloned().unwrap_or_default(), source }
}

fn words_of(used: &Ended) -> String {
    exit_words(used.exit_code.map(i32::from), Some(used.signal.into()))
}

/// How an execution ended by itself, or by a time-out.
struct End {
    started: Stamp<SenderClock>,
    ended: Stamp<SenderClock>,
    used: Ended,
    is_timed_out: bool,
}

/// Why an execution is ended by latlab.
#[derive(Clone, Copy, PartialEq)]
enum Reason {
    TimedOut,
    Stopped,
}

/// Executes `program`; `None` if `stop` ended it. What it leaves behind in its group is killed.
fn run(
    program: &Program,
    fifo: Option<u8>,
    timeout: Option<Nanos>,
    files: &mut Files,
    stop: &StopSignal,
) -> io::Result<Option<End>> {
    // Inherited by the child; this thread then has more priority than a child that spins.
    fifo.map_or(Ok(()), set_inherited_fifo)?;
    let started = Monotonic.now();
    let spawned = program.start();
    fifo.map_or(Ok(()), |priority| set_fifo(defaults::FIFO_MAX.min(priority + 1)))?;
    let pid = spawned?;
    let watched = watch(pid, timeout.map(|timeout| started + timeout), files, stop);
    if watched.is_err() {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let used = spawn::wait(pid)?;
    let ended = Monotonic.now();
    // Its id cannot belong to another group so soon: ids are given in turn.
    let _ = kill_process_group(pid, Signal::KILL);
    let reason = watched?;
    let is_timed_out = reason == Some(Reason::TimedOut);
    Ok((reason != Some(Reason::Stopped)).then_some(End { started, ended, used, is_timed_out }))
}

/// Returns when the process has ended; why latlab ended it, if it did.
fn watch(
    pid: Pid,
    mut deadline: Option<Stamp<SenderClock>>,
    files: &mut Files,
    stop: &StopSignal,
) -> io::Result<Option<Reason>> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let mut reason = None;
    loop {
        if reason.is_none() && (stop.is_sleep_over() || stop.requested().load(Ordering::Relaxed)) {
            (reason, deadline) = (Some(Reason::Stopped), ask_to_end(pid));
        }
        let [errors, output] = [&files.errors, &files.captured];
        let [errors, output] = [errors, output].map(|file| file.as_ref().map_or(process.as_fd(), AsFd::as_fd));
        let mut watched = [process.as_fd(), errors, output].map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
        let count = 2 + usize::from(files.captured.is_some());
        let rest = deadline.map(|deadline| timespec(deadline - Monotonic.now()));
        let polled = poll(&mut watched[..count], rest.as_ref());
        let [has_ended, has_errors, has_output] = watched.map(|one| !one.revents().is_empty());
        // Not by the result of poll: there may always be something to read.
        let is_over = deadline.is_some_and(|deadline| Monotonic.now() >= deadline);
        match polled {
            Ok(_) if has_ended => return Ok(reason),
            Ok(_) if is_over && reason.is_none() => (reason, deadline) = (Some(Reason::TimedOut), ask_to_end(pid)),
            Ok(_) if is_over => {
                let _ = kill_process_group(pid, Signal::KILL);
                deadline = None;
            }
            Ok(_) if has_errors || has_output => files.drain(),
            // A signal says that `stop` may be set.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends SIGTERM to the group; the instant at which it is to be killed.
fn ask_to_end(pid: Pid) -> Option<Stamp<SenderClock>> {
    let _ = kill_process_group(pid, Signal::TERM);
    Some(Monotonic.now() + TERM_TIMEOUT)
}

fn timespec(span: Nanos) -> Timespec {
    let ns = span.0.max(0);
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

impl End {
    fn execution(self, seq: Seq, phase: Phase) -> Execution {
        let End { started, ended, used, is_timed_out } = self;
        let count = |count: i64| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
        let (fate, code) = match used.exit_code {
            _ if is_timed_out => (ExecutionFate::TimedOut, 0),
            Some(code) => (ExecutionFate::Exited, code),
            None => (ExecutionFate::Killed, used.signal),
        };
        Execution {
            seq,
            phase,
            started,
            ended,
            user: Nanos(used.user_ns),
            system: Nanos(used.system_ns),
            resident_kib: count(used.resident_kib),
            voluntary_switches: count(used.voluntary_switches),
            involuntary_switches: count(used.involuntary_switches),
            minor_faults: count(used.minor_faults),
            major_faults: count(used.major_faults),
            fate,
            code,
        }
    }
}
