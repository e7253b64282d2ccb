//! The loads of one end of a measurement: started before its warm-up, judged while it measures, ended with it.

use std::net::SocketAddr;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::key::PreSharedKey;
use super::net_load::{NetLoad, NetLoadError, NetLoadRequest};
use super::opening::SessionParams;
use crate::diagnostics::{Explain, Failure};
use crate::facts::{LoadReport, StreamReport};
use crate::load::{LoadError, Stressor, StressorRequest};
use crate::plan::{LoadKind, LoadSpec, PathSpec, Side, StreamSpec, defaults};
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
    /// The reflector that counts.
    pub peer: SocketAddr,
    /// Local end and socket options.
    pub path: &'a PathSpec,
    /// The key shared with the peer.
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
    /// CPU or memory.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Network.
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
