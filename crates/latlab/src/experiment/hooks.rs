//! Runs the hooks of an experiment around its runs (docs/experiments.md): starts what stays up, waits until it is ready, and
//! ends whatever a hook has left.

use std::fs::{self, Metadata};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use thiserror::Error;

use super::directory::OUTPUTS;
use super::journal::JOURNAL;
use super::state::ExperimentState;
use crate::diagnostics::{Explain, Failure};
use crate::facts::RunOutcome;
use crate::plan::hooks::{AFTER_RUN, BEFORE_BLOCK, BEFORE_RUN, READY, SERVICE};
use crate::plan::{ExperimentCondition, HookAddress, HookCommand, Hooks, ReadyWhen, Target};
use crate::platform::{CommandEnd, ProcessGroup};
use crate::units::Nanos;
use crate::units::human;

/// The last lines of an output that a message shows, and their bytes.
const LAST_LINES: usize = 5;
const LAST_BYTES: usize = 1_000;
/// The time for a connection, before it is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval at which `ready` looks again.
const READY_INTERVAL: Duration = Duration::from_millis(20);
/// The time for a distant host to refuse a datagram.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(200);
/// The most bytes of a status line that are read.
const STATUS_BYTES: u64 = 1_000;

/// Why a hook fails its run.
#[derive(Debug, Error)]
pub(crate) enum HookError {
    /// Its program cannot be started.
    #[error("cannot start the hook `{hook}`: `{command}`")]
    Start {
        /// Its key in the file.
        hook: &'static str,
        /// As it can be pasted.
        command: String,
        source: io::Error,
    },
    /// It ended with another exit status than 0, or too early.
    #[error("the hook `{hook}` failed: {how}")]
    Failed {
        /// Its key in the file.
        hook: &'static str,
        /// `exit status 3`, `no end within 1 min`.
        how: String,
        last: String,
        /// The file with its output, if one could be written.
        kept: Option<PathBuf>,
    },
    /// What the run waits for did not come.
    #[error("`ready` failed: `{what}` was not ready within {}", human::span(*.timeout))]
    NotReady {
        what: String,
        timeout: Nanos,
        cause: String,
        /// The last lines of the service.
        last: String,
        /// The file with the output of the service, if it wrote any.
        kept: Option<PathBuf>,
    },
    /// Processes that the hook has started run on.
    #[error("processes that the hook `{hook}` has started cannot be ended")]
    Left {
        /// Its key in the file.
        hook: &'static str,
    },
}

impl HookError {
    /// Whether what is measured has ended early or was not ready, which is a result of its condition. A program that cannot
    /// be started is none.
    pub(crate) fn is_of_service(&self) -> bool {
        match self {
            HookError::Failed { hook, .. } => *hook == SERVICE,
            HookError::NotReady { .. } => true,
            HookError::Start { .. } | HookError::Left { .. } => false,
        }
    }
}

impl Explain for HookError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            HookError::Start { source, .. } => failure
                .because(latlab_sys::errno::explain(source))
                .hint("a hook is a program with its arguments, without a shell: `sh -c '…'` runs a line of shell"),
            HookError::Failed { last, kept, .. } => {
                let failure = if last.is_empty() { failure } else { failure.because(last) };
                match kept {
                    Some(path) => failure.hint(format!("its output is in `{}`", path.display())),
                    None => failure,
                }
            }
            HookError::NotReady { cause, last, kept, .. } => {
                let of_service = if last.is_empty() { String::new() } else { format!("`service` wrote: {last}") };
                let kept: String = kept.iter().map(|path| format!("; its output is in `{}`", path.display())).collect();
                let hint = format!("`hook-timeout` sets the time, `ready` what is waited for{kept}");
                failure.because(joined(cause, &of_service)).hint(hint)
            }
            HookError::Left { .. } => failure
                .because("they belong to another user, or wait in the kernel")
                .hint("a hook that becomes another user has to end what it starts: `after-run`"),
        }
    }
}

/// The place of a run, in names of files and variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookedRun<'a> {
    pub(crate) hooks: &'a Hooks,
    pub(crate) block: u32,
    pub(crate) position: u32,
}

/// A wait that a signal ends.
pub(crate) struct HookWait<'a> {
    pub(crate) stop: &'a AtomicBool,
    pub(crate) heartbeat: &'a mut dyn FnMut(),
}

/// The hooks of an experiment, and what they have left running.
#[derive(Debug)]
pub(crate) struct HookRunner {
    outputs: PathBuf,
    experiment: String,
    /// The block whose `before-block` was run, and what it has left.
    block: Option<(u32, ProcessGroup)>,
    before_run: Option<ProcessGroup>,
    service: Option<ProcessGroup>,
}

impl HookRunner {
    /// For the experiment with this id in `directory`.
    pub(crate) fn of(directory: &Path, experiment: &str) -> HookRunner {
        HookRunner {
            outputs: directory.join(OUTPUTS),
            experiment: experiment.to_owned(),
            block: None,
            before_run: None,
            service: None,
        }
    }

    /// Runs the hooks before `run` and waits until all is ready; false if a signal ended that.
    pub(crate) fn before(&mut self, run: &HookedRun<'_>, wait: &mut HookWait<'_>) -> Result<bool, HookError> {
        let hooks = run.hooks;
        if wait.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if self.block.as_ref().is_some_and(|(block, _)| *block != run.block) {
            self.end_block()?;
        }
        if let (Some(command), None) = (&hooks.before_block, &self.block) {
            let Some(left) = self.carry_out(BEFORE_BLOCK, command, run, wait)? else { return Ok(false) };
            self.block = Some((run.block, left));
        }
        if let Some(command) = &hooks.before_run {
            self.before_run = self.carry_out(BEFORE_RUN, command, run, wait)?;
            if self.before_run.is_none() {
                return Ok(false);
            }
        }
        if let Some(command) = &hooks.service {
            self.service = Some(self.start(SERVICE, command, run)?);
        }
        match &hooks.ready {
            Some(what) => self.ready(what, run, wait),
            None => self.expect_service().map(|()| !wait.stop.load(Ordering::Relaxed)),
        }
    }

    /// Ends what `before-block` has left.
    pub(crate) fn end_block(&mut self) -> Result<(), HookError> {
        finish(BEFORE_BLOCK, self.block.take().map(|(_, left)| left))
    }

    /// Whether the service has ended, although a run is measured.
    pub(crate) fn has_lost_service(&mut self) -> bool {
        let left = self.block.iter_mut().map(|(_, left)| left).chain(&mut self.before_run);
        left.for_each(|process| _ = process.end());
        self.service.as_mut().is_some_and(|service| service.end().is_some())
    }

    /// The first process of the service, if there is one.
    pub(crate) fn service_process(&self) -> Option<u32> {
        self.service.as_ref().map(ProcessGroup::id)
    }

    /// The failure of a service that has ended by itself.
    pub(crate) fn expect_service(&mut self) -> Result<(), HookError> {
        let Some(service) = &mut self.service else { return Ok(()) };
        match service.end() {
            None => Ok(()),
            Some(end) => Err(failed(SERVICE, format!("it ended: {}", end.how), service)),
        }
    }

    /// Ends the service. Its errors are that it had ended by itself before, and that processes of it are left.
    pub(crate) fn end_service(&mut self) -> Vec<HookError> {
        let has_ended = self.service.as_mut().is_none_or(ProcessGroup::finish);
        let errors = [self.expect_service(), nothing_left(SERVICE, has_ended)];
        self.service = None;
        errors.into_iter().filter_map(Result::err).collect()
    }

    /// Runs the hook after `run`, and ends what `before-run` has left. A signal does not end the hook.
    pub(crate) fn after(&mut self, run: &HookedRun<'_>, heartbeat: &mut dyn FnMut()) -> Result<(), HookError> {
        let never = AtomicBool::new(false);
        let mut wait = HookWait { stop: &never, heartbeat };
        let ended = match &run.hooks.after_run {
            Some(command) => {
                self.carry_out(AFTER_RUN, command, run, &mut wait).and_then(|left| finish(AFTER_RUN, left))
            }
            None => Ok(()),
        };
        ended.and(finish(BEFORE_RUN, self.before_run.take()))
    }

    /// Runs `command` to its end. `None` if a signal ended it; else what it has left runs until the result is dropped.
    fn carry_out(
        &self,
        hook: &'static str,
        command: &HookCommand,
        run: &HookedRun<'_>,
        wait: &mut HookWait<'_>,
    ) -> Result<Option<ProcessGroup>, HookError> {
        let mut process = self.start(hook, command, run)?;
        let timeout = Duration::from_nanos(run.hooks.timeout.0.unsigned_abs());
        let how = match process.wait(timeout, wait.stop, wait.heartbeat) {
            Some(CommandEnd { succeeded: true, .. }) => return Ok(Some(process)),
            Some(CommandEnd { how, .. }) => how.clone(),
            None if wait.stop.load(Ordering::Relaxed) => return finish(hook, Some(process)).map(|()| None),
            None => format!("no end within {}", human::span(run.hooks.timeout)),
        };
        let how = if process.finish() { how } else { format!("{how}; it cannot be ended") };
        Err(failed(hook, how, &mut process))
    }

    fn start(&self, hook: &'static str, command: &HookCommand, run: &HookedRun<'_>) -> Result<ProcessGroup, HookError> {
        let environment = [
            ("LATLAB_EXPERIMENT", self.experiment.clone()),
            ("LATLAB_BLOCK", run.block.to_string()),
            ("LATLAB_POSITION", run.position.to_string()),
        ];
        let output = self.outputs.join(format!("block-{}-run-{}-{hook}.txt", run.block, run.position));
        let refused = |source| HookError::Start { hook, command: command.to_string(), source };
        match fs::create_dir(&self.outputs) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refused(error)),
            _ => ProcessGroup::start(&command.0, &environment, &output).map_err(refused),
        }
    }

    fn ready(&mut self, what: &ReadyWhen, run: &HookedRun<'_>, wait: &mut HookWait<'_>) -> Result<bool, HookError> {
        let timeout = if let ReadyWhen::Time(span) = what { *span } else { run.hooks.timeout };
        let deadline = Instant::now() + Duration::from_nanos(timeout.0.unsigned_abs());
        let mut cause = "it did not end".to_owned();
        loop {
            self.expect_service()?;
            if wait.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() && matches!(what, ReadyWhen::Time(_)) {
                return Ok(true);
            }
            if rest.is_zero() {
                let last = self.service.as_ref().map_or_else(String::new, |service| last_lines(&service.output()));
                let kept = self.service.as_mut().and_then(ProcessGroup::keep_output);
                return Err(HookError::NotReady { what: what.to_string(), timeout, cause, last, kept });
            }
            match self.readiness(what, run, rest, wait)? {
                Readiness::Ready => return self.expect_service().map(|()| true),
                Readiness::NotYet(why) => cause = why,
                Readiness::CutOff => {}
            }
            (wait.heartbeat)();
            thread::sleep(READY_INTERVAL.min(rest));
        }
    }

    fn readiness(
        &self,
        what: &ReadyWhen,
        run: &HookedRun<'_>,
        rest: Duration,
        wait: &mut HookWait<'_>,
    ) -> Result<Readiness, HookError> {
        let connect = |to| TcpStream::connect_timeout(&to, rest.clamp(READY_INTERVAL, CONNECT_TIMEOUT));
        let tried = match what {
            ReadyWhen::Udp(address) => resolve(address).and_then(|to| expect_udp(to, address)),
            ReadyWhen::Tcp(address) => resolve(address).and_then(connect).map(drop),
            ReadyWhen::Listen(port) => expect_socket(*port),
            ReadyWhen::Http(address, path) => {
                resolve(address).and_then(connect).and_then(|stream| get(stream, address, path))
            }
            ReadyWhen::Line(pattern) => self.expect_line(pattern),
            ReadyWhen::Time(_) => return Ok(Readiness::CutOff),
            ReadyWhen::Command(command) => {
                let mut process = self.start(READY, command, run)?;
                let readiness = match process.wait(rest, wait.stop, wait.heartbeat).cloned() {
                    Some(CommandEnd { succeeded: true, .. }) => Readiness::Ready,
                    Some(CommandEnd { how, .. }) => Readiness::NotYet(joined(&how, &last_lines(&process.output()))),
                    None => Readiness::CutOff,
                };
                return finish(READY, Some(process)).map(|()| readiness);
            }
        };
        let not_yet = |error| Readiness::NotYet(latlab_sys::errno::explain(&error));
        Ok(tried.map_or_else(not_yet, |()| Readiness::Ready))
    }

    fn expect_line(&self, pattern: &str) -> io::Result<()> {
        let pattern = Regex::new(pattern).map_err(io::Error::other)?;
        let output = self.service.as_ref().map(ProcessGroup::output).unwrap_or_default();
        let found = output.lines().any(|line| pattern.is_match(line));
        if found { Ok(()) } else { Err(io::Error::other("`service` wrote no such line")) }
    }
}

impl Drop for HookRunner {
    /// Removes the directory of the outputs if it has none.
    fn drop(&mut self) {
        (self.block, self.before_run, self.service) = (None, None, None);
        let _ = fs::remove_dir(&self.outputs);
    }
}

/// The result of one try of `ready`.
enum Readiness {
    Ready,
    NotYet(String),
    /// The time was up, or a signal came, before the command had ended.
    CutOff,
}

/// The failure of `hook`, whose output is kept.
fn failed(hook: &'static str, how: String, process: &mut ProcessGroup) -> HookError {
    let last = last_lines(&process.output());
    HookError::Failed { hook, how, last, kept: process.keep_output() }
}

/// Ends what `hook` has left.
fn finish(hook: &'static str, process: Option<ProcessGroup>) -> Result<(), HookError> {
    nothing_left(hook, process.is_none_or(|mut process| process.finish()))
}

fn nothing_left(hook: &'static str, has_ended: bool) -> Result<(), HookError> {
    if has_ended { Ok(()) } else { Err(HookError::Left { hook }) }
}

/// A program of `conditions` that was changed since the last entry of the journal in `directory`. None is after a run that
/// was refused: it may have been mended.
pub(crate) fn changed_program<'a>(
    directory: &Path,
    state: &ExperimentState,
    conditions: &'a [ExperimentCondition],
) -> Option<&'a str> {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    let journal = file(&directory.join(JOURNAL))?;
    let is_changed = |program: &Metadata| {
        let is_later = (program.ctime(), program.ctime_nsec()) > (journal.mtime(), journal.mtime_nsec());
        is_later && program.mode() & 0o111 != 0
    };
    state.runs.last().filter(|run| run.outcome != Some(RunOutcome::Refused))?;
    let mut words = conditions.iter().flat_map(words_of).filter(|word| word.contains('/'));
    words.find(|word| file(Path::new(word)).is_some_and(|program| is_changed(&program)))
}

/// The words of the service, of the target and of the command of a condition, unless `before-block` or `before-run` may build
/// their programs.
fn words_of(condition: &ExperimentCondition) -> impl Iterator<Item = &str> {
    let Hooks { before_block, before_run, service, .. } = &condition.hooks;
    let targets = condition.plan.runs.iter().filter_map(|run| match &run.target {
        Target::Command { words } => Some(words),
        _ => run.command().map(|command| &command.words),
    });
    let words = service.iter().map(|hook| &hook.0).chain(targets).flatten().map(String::as_str);
    words.filter(move |_| before_block.is_none() && before_run.is_none())
}

/// The last lines of `output` that are not empty, and of these at most so many last bytes.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let from = (last.len().saturating_sub(LAST_BYTES)..=last.len()).find(|at| last.is_char_boundary(*at));
    let cut = if last.len() > LAST_BYTES { "…" } else { "" };
    format!("{cut}{}", &last[from.unwrap_or_default()..])
}

fn joined(how: &str, last: &str) -> String {
    if last.is_empty() { how.to_owned() } else { format!("{how}\n{last}") }
}

fn resolve(address: &HookAddress) -> io::Result<SocketAddr> {
    let mut found = (address.host.as_str(), address.port).to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::other("the name has no address"))
}

/// Succeeds if a socket receives at `to`: of an address of this host, without a datagram; else if a datagram of one byte is not
/// refused.
fn expect_udp(to: SocketAddr, typed: &HookAddress) -> io::Result<()> {
    if UdpSocket::bind((to.ip(), 0)).is_ok() {
        let is_bound = |table| fs::read_to_string(table).is_ok_and(|text| has_socket(&text, to));
        return if ["/proc/net/udp", "/proc/net/udp6"].into_iter().any(is_bound) {
            Ok(())
        } else {
            Err(io::Error::other(format!("no socket receives at {typed}")))
        };
    }
    let unspecified: IpAddr = if to.is_ipv4() { [0_u8; 4].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((unspecified, 0))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(REFUSAL_TIMEOUT))?;
    socket.send(&[0])?;
    match socket.recv(&mut [0; 64]) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

/// Whether `table`, in the form of `/proc/net/udp`, has a socket that receives what is sent to `to`.
fn has_socket(table: &str, to: SocketAddr) -> bool {
    sockets(table).any(|(ip, port, _)| port == to.port() && receives(ip, to.ip()))
}

/// Address, port and state of each socket of `table`, in the form of `/proc/net/udp`.
fn sockets(table: &str) -> impl Iterator<Item = (&str, u16, &str)> {
    table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (ip, port) = words.next()?.split_once(':')?;
        Some((ip, u16::from_str_radix(port, 16).ok()?, words.nth(1)?))
    })
}

/// Succeeds if a socket of this host listens at `port`, or receives datagrams there from anywhere.
fn expect_socket(port: u16) -> io::Result<()> {
    let listens = |(table, state): (&str, &str)| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        sockets(&text).any(|socket| (socket.1, socket.2) == (port, state))
    };
    let is_bound = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")].into_iter().any(listens);
    if is_bound { Ok(()) } else { Err(io::Error::other(format!("no socket receives at port {port}"))) }
}

/// Succeeds if the answer to GET `path` has a status of 200 to 299.
fn get(mut stream: TcpStream, address: &HookAddress, path: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = Vec::new();
    BufReader::new(stream.take(STATUS_BYTES)).read_until(b'\n', &mut status)?;
    let status = String::from_utf8_lossy(&status);
    match status.split_whitespace().nth(1) {
        Some(code) if status.starts_with("HTTP/1.") && code.len() == 3 && code.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!("it answered `{}`", status.trim_end()))),
    }
}

/// Whether the hexadecimal `bound` of `/proc/net/udp` is `ip`, or every address: words of 32 bits in the order of this host.
fn receives(bound: &str, ip: IpAddr) -> bool {
    let words: Option<Vec<u8>> = bound
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok())
        .map(|word| word.map(u32::to_ne_bytes))
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat());
    let Some(bytes) = words else { return false };
    let own: Vec<u8> = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    // A socket bound to every address of IPv6 usually receives IPv4 too, but not the reverse.
    bytes.len() >= own.len() && bytes.iter().all(|byte| *byte == 0)
        || bytes == own
        || bytes.ends_with(&own) && bytes[..bytes.len() - own.len()].ends_with(&[0xff, 0xff])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "   sl  local_address rem_address   st\n  10: 0100007F:1B58 00000000:0000 07\n  11: 00000000:1B59 00000000:0000 07\n";

    #[test]
    fn a_bound_socket_is_found_by_address_and_port() {
        for (to, expected) in
            [("127.0.0.1:7000", true), ("127.0.0.2:7000", false), ("127.0.0.1:7001", true), ("127.0.0.1:7002", false)]
        {
            assert_eq!(has_socket(TABLE, to.parse().expect("an address")), expected, "{to}");
        }
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let to = socket.local_addr().expect("known");
        let typed = HookAddress { host: "127.0.0.1".into(), port: to.port() };
        assert!(expect_udp(to, &typed).is_ok());
        drop(socket);
        assert!(expect_udp(to, &typed).is_err());
        assert!(!receives("00000000", "::1".parse().expect("an address")), "IPv4 does not receive IPv6");
        assert!(receives(&"0".repeat(32), "127.0.0.1".parse().expect("an address")));
    }
}
