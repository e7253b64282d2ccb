//! The loads of a measurement: made before it is warm, judged while it measures, gone when it ends.

use std::net::SocketAddr;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{NetLoad, NetLoadError, NetLoadRequest, PreSharedKey, SessionParams};
use crate::facts::{LoadReport, StreamReport};
use crate::load::{LoadError, Stressor, StressorRequest};
use crate::plan::{LoadKind, LoadSpec, PathSpec, Side, StreamSpec, defaults};
use crate::units::Nanos;

/// How often somebody who waits for loads is asked whether to stop: often enough for a person.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Loads that run until they are finished or dropped. The thread that starts them must live as long as they
/// shall: the kernel ends them with it.
#[derive(Debug)]
pub struct Loads {
    /// The measuring thread says when measuring begins, and the one that conducts collects the reports.
    running: Mutex<Vec<Running>>,
    started: Instant,
}

/// The path that network loads take: the measured one.
#[derive(Clone, Copy, Debug)]
pub struct LoadedPath<'a> {
    /// Who counts what arrives.
    pub peer: SocketAddr,
    /// How packets leave.
    pub path: &'a PathSpec,
    /// Shared with the peer.
    pub key: Option<&'a PreSharedKey>,
    /// How long the loads may last; none where nobody knows.
    pub lasting: Option<Nanos>,
}

/// A load that runs, in a process of its own.
#[derive(Debug)]
enum Running {
    Stressor(Stressor),
    Network { load: NetLoad, words: String, at: String },
}

impl Loads {
    /// Starts `specs` as far as they are made at the end `here`, where this process runs. Those of the other end
    /// are made by whoever is there.
    ///
    /// To be called before the calling thread is pinned: the loads inherit the CPUs that it may use.
    ///
    /// # Errors
    /// One of them cannot be made; the others are gone again.
    pub fn start(
        specs: &[LoadSpec],
        here: Side,
        path: Option<LoadedPath<'_>>,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Loads, LoadsError> {
        let ours = specs.iter().filter(|spec| match here {
            Side::Local => spec.at.is_local(),
            Side::Peer => spec.at.is_peer(),
            Side::Both => true,
        });
        let mut running = Vec::new();
        for spec in ours {
            let (at, words) = (here.word().to_owned(), spec.kind.to_string());
            match (&spec.kind, path) {
                (LoadKind::Net(stream), Some(path)) => match NetLoad::start(&path.order(stream), stop, heartbeat)? {
                    Some(load) => running.push(Running::Network { load, words, at }),
                    // Interrupted: nothing will be measured, and the others end with the value that is dropped.
                    None => break,
                },
                _ => {
                    let order = StressorRequest { load: spec.kind.clone(), at, parent: process::id() };
                    running.push(Running::Stressor(Stressor::start(order)?));
                }
            }
        }
        Ok(Loads { running: Mutex::new(running), started: Instant::now() })
    }

    /// Waits until the loads have found their measure, a second after the last of them was started, or until
    /// `stop`. Without loads there is nothing to wait for.
    pub fn settle(&self, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
        let settled = Duration::from_nanos(defaults::LOAD_SETTLE.0 as u64);
        if !self.each(|running| running.is_empty()) {
            wait_until(self.started + settled, stop, heartbeat);
        }
    }

    /// Their processes: what those use of the CPUs is latlab's own.
    pub fn own_processes(&self) -> Vec<u32> {
        self.each(|running| running.iter().map(Running::pid).collect())
    }

    /// From now on the loads are judged.
    pub fn begin(&self) {
        self.each(|running| running.iter_mut().for_each(Running::begin));
    }

    /// The loads end, and are judged until now.
    pub fn end(&self) {
        self.each(|running| running.iter_mut().for_each(Running::end));
    }

    /// Ends all loads, where [`end`](Loads::end) has not, and says what they reached since [`begin`](Loads::begin), in
    /// the order in which they were asked for.
    pub fn finish(self) -> Vec<LoadReport> {
        let running = self.running.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        running.into_iter().map(Running::stop).collect()
    }

    fn each<T>(&self, act: impl FnOnce(&mut Vec<Running>) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// What is known of `specs` where whoever makes them at `at` is lost, for that `reason`: what was asked for.
pub fn lost_loads<'a>(specs: impl IntoIterator<Item = &'a LoadSpec>, at: Side, reason: &str) -> Vec<LoadReport> {
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
    fn order(&self, stream: &StreamSpec) -> NetLoadRequest {
        NetLoadRequest {
            peer: self.peer,
            path: self.path.clone(),
            stream: stream.clone(),
            key: self.key.map(PreSharedKey::line),
            // The search comes before, and other loads settle.
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

    /// A load that died before has no figures but a reason.
    fn stop(self) -> LoadReport {
        match self {
            Running::Stressor(stressor) => stressor.stop(),
            Running::Network { load, words, at } => {
                let offered_bps = load.offered_bps();
                match load.finish() {
                    Ok(report) => report.as_load(words, at),
                    Err(error) => StreamReport::lost(words, at, offered_bps).that_ended_early(error.reason()),
                }
            }
        }
    }
}

/// Waits until then, or until `stop`.
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

/// Why a load of any kind could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadsError {
    /// Of CPUs or memory.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Of the path.
    #[error(transparent)]
    Network(#[from] NetLoadError),
}

impl LoadsError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            LoadsError::Load(error) => error.cause(),
            LoadsError::Network(error) => error.cause(),
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            LoadsError::Load(error) => error.hint(),
            LoadsError::Network(error) => error.hint(),
        }
    }

    /// The exit code of contract section 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            LoadsError::Load(error) => error.exit_code(),
            LoadsError::Network(error) => error.exit_code(),
        }
    }
}
