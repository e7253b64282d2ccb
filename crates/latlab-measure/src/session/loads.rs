//! The loads of one end: their start before the warm-up, their reports on the measuring phase, and their end after it.
//! [`NetLoad`] controls the process of a network load.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use latlab_sys::errno::explain;
use serde::{Deserialize, Serialize};

use super::key::PreSharedKey;
use super::opening::SessionParams;
use crate::diagnostics::{Explain, Failure};
use crate::facts::{LoadReport, StreamReport};
use crate::load::{LoadError, Stressor, StressorRequest};
use crate::plan::{LoadKind, LoadSpec, PathSpec, Side, StreamSpec, defaults};
use crate::platform::ChildProcess;
use crate::units::Nanos;

/// The interval at which a wait for loads looks for `stop` and calls the heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Loads that run until they are finished or dropped. The thread that starts them must outlive them: the kernel ends them
/// with it.
#[derive(Debug)]
pub struct Loads {
    /// Shared by the measuring thread, which marks the beginning, and the one that collects the reports.
    running: Mutex<Vec<Running>>,
    started: Instant,
}

/// The path of network loads, which is the measured one.
#[derive(Clone, Copy, Debug)]
pub struct LoadedPath<'a> {
    pub peer: SocketAddr,
    /// Local end and socket options.
    pub path: &'a PathSpec,
    pub key: Option<&'a PreSharedKey>,
    /// The longest duration of the loads; `None` if unknown.
    pub lasting: Option<Nanos>,
}

/// A load in its process.
#[derive(Debug)]
enum Running {
    Stressor(Stressor),
    Network { load: NetLoad, spec: String, at: String },
}

impl Loads {
    /// Starts those of `specs` that belong to the end `here`, where this process runs.
    ///
    /// To be called before the calling thread is pinned: the loads inherit its allowed CPUs.
    ///
    /// # Errors
    /// One of them cannot be started; the others have ended.
    pub fn start(
        specs: &[LoadSpec],
        here: Side,
        path: Option<LoadedPath<'_>>,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Loads, LoadsError> {
        let own = specs.iter().filter(|spec| match here {
            Side::Local => spec.at.is_local(),
            Side::Peer => spec.at.is_peer(),
            Side::Both => true,
        });
        let mut running = Vec::new();
        for spec in own {
            let (at, words) = (here.word().to_owned(), spec.kind.to_string());
            match (&spec.kind, path) {
                (LoadKind::Net(stream), Some(path)) => match NetLoad::start(&path.request(stream), stop, heartbeat)? {
                    Some(load) => running.push(Running::Network { load, spec: words, at }),
                    // Interrupted: nothing will be measured.
                    None => break,
                },
                _ => {
                    let request = StressorRequest { load: spec.kind.clone(), at, parent: process::id() };
                    running.push(Running::Stressor(Stressor::start(request)?));
                }
            }
        }
        Ok(Loads { running: Mutex::new(running), started: Instant::now() })
    }

    /// Waits until the loads have settled, a second after the last of them was started, or until `stop`. Returns at once
    /// without loads.
    pub fn settle(&self, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
        let settled = Duration::from_nanos(defaults::LOAD_SETTLE.0 as u64);
        if !self.with_running(|running| running.is_empty()) {
            wait_until(self.started + settled, stop, heartbeat);
        }
    }

    /// Process ids of the loads, whose CPU time is latlab's own.
    pub fn own_processes(&self) -> Vec<u32> {
        self.with_running(|running| running.iter().map(Running::pid).collect())
    }

    /// Begins the interval that is reported.
    pub fn begin(&self) {
        self.with_running(|running| running.iter_mut().for_each(Running::begin));
    }

    /// Ends the loads and the reported interval.
    pub fn end(&self) {
        self.with_running(|running| running.iter_mut().for_each(Running::end));
    }

    /// Ends all loads that have not ended, and returns their reports since [`begin`](Loads::begin), in the order of their
    /// specifications.
    pub fn finish(self) -> Vec<LoadReport> {
        let running = self.running.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        running.into_iter().map(Running::stop).collect()
    }

    fn with_running<T>(&self, act: impl FnOnce(&mut Vec<Running>) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// Reports of `specs` at an end `at` that was lost for `reason`: only what was requested.
pub(crate) fn lost_loads<'a>(specs: impl IntoIterator<Item = &'a LoadSpec>, at: Side, reason: &str) -> Vec<LoadReport> {
    let lost = |spec: &LoadSpec| {
        let at = at.word().to_owned();
        match &spec.kind {
            LoadKind::Net(stream) => StreamReport::lost(spec.kind.to_string(), at, stream.offered_bps(None)),
            load => StressorRequest { load: load.clone(), at, parent: process::id() }.blank_report(),
        }
    };
    specs.into_iter().map(|spec| lost(spec).that_ended_early(reason)).collect()
}

impl LoadedPath<'_> {
    fn request(&self, stream: &StreamSpec) -> NetLoadRequest {
        NetLoadRequest {
            peer: self.peer,
            path: self.path.clone(),
            stream: stream.clone(),
            key: self.key.map(PreSharedKey::line),
            // The rate search precedes it, and other loads settle.
            lasting_ns: self.lasting.map(|lasting| lasting + defaults::RATE_SEARCH + SessionParams::MARGIN),
            parent: process::id(),
        }
    }
}

impl Running {
    fn pid(&self) -> u32 {
        match self {
            Running::Stressor(stressor) => stressor.pid(),
            Running::Network { load, .. } => load.pid(),
        }
    }

    fn begin(&mut self) {
        match self {
            Running::Stressor(stressor) => stressor.begin(),
            Running::Network { load, .. } => load.begin(),
        }
    }

    fn end(&mut self) {
        match self {
            Running::Stressor(stressor) => stressor.end(),
            Running::Network { load, .. } => load.end(),
        }
    }

    /// A load that has died has no figures, only a reason.
    fn stop(self) -> LoadReport {
        match self {
            Running::Stressor(stressor) => stressor.stop(),
            Running::Network { load, spec, at } => {
                let offered_bps = load.offered_bps();
                match load.finish() {
                    Ok(report) => report.as_load(spec, at),
                    Err(error) => StreamReport::lost(spec, at, offered_bps).that_ended_early(error.reason()),
                }
            }
        }
    }
}

/// Waits until `then` or until `stop`, and calls `heartbeat` ten times a second.
pub fn wait_until(then: Instant, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        heartbeat();
        thread::sleep(left.min(HEARTBEAT));
    }
}

/// Why a load could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LoadsError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Network(#[from] NetLoadError),
}

impl Explain for LoadsError {
    fn explain(&self) -> Failure {
        match self {
            LoadsError::Load(error) => error.explain(),
            LoadsError::Network(error) => error.explain(),
        }
    }
}

/// The hidden command that such a process runs.
pub(crate) const NET_LOAD_COMMAND: &str = "net-load";

/// The line on its standard input with which its figures begin; they end when standard input closes.
pub const BEGIN_LINE: &str = "begin";

/// Opening a session, the search and the first window take 15 s at most; a busy host may take longer.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// The last tally and the end of the session take 2 s at most.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The request to the process of a network load: one line of JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct NetLoadRequest {
    pub peer: SocketAddr,
    /// Local end and socket options.
    pub path: PathSpec,
    pub stream: StreamSpec,
    /// The line of the pre-shared key, if there is one (rule R7: only parent and child have the pipe).
    pub key: Option<String>,
    /// The longest duration of the load; `None`: as long as the reflector permits.
    pub lasting_ns: Option<Nanos>,
    /// The requesting process: the child ends with it.
    pub parent: u32,
}

/// An event of the process: one line of JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetLoadEvent {
    /// The load has reached its rate.
    Begun {
        /// The rate without loss, in bits a second, if it was searched for.
        searched_bps: Option<f64>,
    },
    /// The load cannot be started, or broke off.
    Refused(Failure),
    Ended {
        report: Box<StreamReport>,
    },
}

impl NetLoadEvent {
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A running network load. It ends when this is dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub struct NetLoad {
    process: ChildProcess,
    spec: StreamSpec,
    searched_bps: Option<f64>,
}

impl NetLoad {
    /// Starts the load in the caller's network namespace and waits until it has reached its rate; `heartbeat` is called
    /// meanwhile. `None`: `stop` was set before. The calling thread must outlive the load.
    ///
    /// # Errors
    /// Its process did not start, or refused.
    pub fn start(
        request: &NetLoadRequest,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Option<NetLoad>, NetLoadError> {
        let spawned = ChildProcess::spawn(NET_LOAD_COMMAND, request, REPORT_TIMEOUT);
        let mut process = spawned.map_err(NetLoadError::Process)?;
        let line = process.receive_line_unless(stop, BEGIN_TIMEOUT, heartbeat).map_err(NetLoadError::Process)?;
        match line.map(|line| parse(&line)).transpose()? {
            None => Ok(None),
            Some(NetLoadEvent::Begun { searched_bps }) => {
                Ok(Some(NetLoad { process, spec: request.stream.clone(), searched_bps }))
            }
            Some(other) => Err(unexpected(other)),
        }
    }

    /// The rate without loss, in bits a second, if it was searched for.
    pub fn searched_bps(&self) -> Option<f64> {
        self.searched_bps
    }

    /// The requested rate in bits a second, as far as it is known before the report; `None`: as fast as possible.
    pub fn offered_bps(&self) -> Option<f64> {
        self.spec.offered_bps(self.searched_bps)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Begins the interval that is reported.
    pub fn begin(&mut self) {
        self.process.send_line(BEGIN_LINE);
    }

    /// Ends the load and the reported interval.
    pub fn end(&mut self) {
        self.process.dismiss();
    }

    /// Ends the load, if [`end`](NetLoad::end) has not, and waits for its report.
    ///
    /// # Errors
    /// It broke off before, or does not report.
    pub fn finish(mut self) -> Result<StreamReport, NetLoadError> {
        self.end();
        let line = self.process.receive_line(REPORT_TIMEOUT);
        match line.as_ref().ok().and_then(|line| serde_json::from_str(line).ok()) {
            Some(NetLoadEvent::Ended { report }) => Ok(*report),
            Some(other) => Err(unexpected(other)),
            None => Err(NetLoadError::Process(io::Error::other(self.process.failure_reason(&line)))),
        }
    }
}

fn parse(line: &str) -> Result<NetLoadEvent, NetLoadError> {
    serde_json::from_str(line).map_err(|_| NetLoadError::Process(io::Error::other("it ended without a message")))
}

fn unexpected(event: NetLoadEvent) -> NetLoadError {
    match event {
        NetLoadEvent::Refused(failure) => NetLoadError::Refused(failure),
        _ => NetLoadError::Process(io::Error::other("it sent an unexpected message")),
    }
}

/// Why a network load cannot be started, or has ended early.
#[derive(Debug, thiserror::Error)]
pub enum NetLoadError {
    /// Its process did not start, or does not answer.
    #[error("cannot keep up the network load")]
    Process(#[source] io::Error),
    /// Its process refused, or broke off.
    #[error("cannot keep up the network load: {0}")]
    Refused(Failure),
}

impl NetLoadError {
    /// Why a running load has ended, in one line.
    pub(super) fn reason(&self) -> String {
        match self {
            NetLoadError::Process(source) => explain(source),
            NetLoadError::Refused(Failure { message, cause: Some(cause), .. }) => format!("{message}: {cause}"),
            NetLoadError::Refused(Failure { message, cause: None, .. }) => message.clone(),
        }
    }
}

impl Explain for NetLoadError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            NetLoadError::Process(source) => failure
                .because(explain(source))
                .hint("the latlab binary starts itself again: it must stay where it is and be executable"),
            NetLoadError::Refused(Failure { cause, hint, .. }) => {
                Failure { cause: cause.clone(), hint: hint.clone(), ..failure }
            }
        }
    }
}
