//! The loads of a measurement: made before it is warm, judged while it measures, gone when it ends.

use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::MeasureError;
use crate::facts::LoadReport;
use crate::load::{Stressor, StressorOrder};
use crate::plan::{LoadSpec, Side, defaults};

/// How often somebody who waits for loads is asked whether to stop: often enough for a person.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Loads that run until they are finished or dropped. The thread that starts them must live as long as they
/// shall: the kernel ends them with it.
#[derive(Debug)]
pub struct Loads {
    /// The measuring thread says when measuring begins, and the one that conducts collects the reports.
    running: Mutex<Vec<Stressor>>,
    started: Instant,
}

impl Loads {
    /// Starts `specs` as far as they are made at the end `here`, where this process runs. Those of the other end
    /// are made by whoever is there.
    ///
    /// To be called before the calling thread is pinned: the loads inherit the CPUs that it may use.
    ///
    /// # Errors
    /// One of them cannot be made; the others are gone again.
    pub fn start(specs: &[LoadSpec], here: Side) -> Result<Loads, MeasureError> {
        let ours = specs.iter().filter(|spec| match here {
            Side::Local => spec.at.is_local(),
            Side::Peer => spec.at.is_peer(),
            Side::Both => true,
        });
        let started = ours.map(|spec| {
            let at = here.word().to_owned();
            Stressor::start(StressorOrder { load: spec.kind.clone(), at, parent: process::id() })
        });
        let running: Result<Vec<_>, _> = started.collect();
        Ok(Loads { running: Mutex::new(running?), started: Instant::now() })
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
        self.each(|running| running.iter().map(Stressor::pid).collect())
    }

    /// From now on the loads are judged.
    pub fn begin(&self) {
        self.each(|running| running.iter_mut().for_each(Stressor::begin));
    }

    /// Ends all loads, and says what they reached since [`begin`](Loads::begin), in the order in which they were
    /// asked for.
    pub fn finish(self) -> Vec<LoadReport> {
        let running = self.running.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        running.into_iter().map(Stressor::stop).collect()
    }

    fn each<T>(&self, act: impl FnOnce(&mut Vec<Stressor>) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
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
