//! The loads of a run: those of this host are children of this process, those of the peer belong to its agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{MeasureError, Peer};
use crate::agent::{LoadsRequest, LoadsStatus};
use crate::facts::LoadReport;
use crate::plan::{LoadSpec, RunSpec, Side, defaults};
use crate::session::{Loads, PreSharedKey, lost_loads, wait_until};
use crate::units::Nanos;

/// The interval at which an agent is asked whether its loads have started or ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The running loads of a run. Those of this host end when this is dropped, those of the peer with its agent.
#[derive(Debug)]
pub struct BackgroundLoads {
    local: Loads,
    remote: Vec<LoadSpec>,
    started: Instant,
}

impl BackgroundLoads {
    /// Starts the loads of `spec`, those of this host first, so that only one rate search uses the path at a time.
    /// `duration` is the longest time for which they are needed.
    ///
    /// To be called before the calling thread is pinned: the loads inherit the CPUs that it may use.
    ///
    /// # Errors
    /// A load cannot be started; those of this host have ended, those of the peer end with its agent.
    pub fn start(
        spec: &RunSpec,
        mut peer: Option<&mut Peer>,
        key: Option<&PreSharedKey>,
        duration: Option<Nanos>,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<BackgroundLoads, MeasureError> {
        let path = peer.as_mut().map(|peer| peer.loaded_path(spec, key, duration)).transpose()?.flatten();
        let local = Loads::start(&spec.loads, Side::Local, path, stop, heartbeat)?;
        let remote: Vec<LoadSpec> = spec.far_loads().cloned().collect();
        if let (Some(peer), false) = (peer, remote.is_empty()) {
            let mut status = peer.start_remote_loads(spec, duration)?;
            while status == LoadsStatus::Starting && !stop.load(Ordering::Relaxed) {
                heartbeat();
                thread::sleep(POLL_INTERVAL);
                status = peer.request_remote_loads(LoadsRequest::Look)?;
            }
        }
        Ok(BackgroundLoads { local, remote, started: Instant::now() })
    }

    /// Waits until the controls of the loads have settled, or until `stop`.
    pub fn settle(&self, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
        self.local.settle(stop, heartbeat);
        if !self.remote.is_empty() {
            wait_until(self.started + defaults::LOAD_SETTLE.to_duration(), stop, heartbeat);
        }
    }

    /// Process ids of the loads of this host, whose CPU time is latlab's own.
    pub fn own_processes(&self) -> Vec<u32> {
        self.local.own_processes()
    }

    /// Begins the reported interval of the loads of this host. That of the peer's loads has begun when the run was armed.
    pub fn begin(&self) {
        self.local.begin();
    }

    /// Ends the loads of this host and their reported interval.
    pub fn end(&self) {
        self.local.end();
    }

    /// Ends the loads of the peer, after the run is disarmed and before any other request to its agent.
    pub(crate) fn end_remote(&self, peer: &mut Peer) {
        if !self.remote.is_empty() {
            // The loss of an agent is reported by the lifecycle, and noticed again by `finish`.
            let _ = peer.request_remote_loads(LoadsRequest::End);
        }
    }

    /// Ends all loads that have not ended, and returns their reports, those of this host first. The reports of a lost
    /// agent's loads have the offered figures only.
    pub fn finish(self, peer: Option<&mut Peer>) -> Vec<LoadReport> {
        let BackgroundLoads { local, remote, .. } = self;
        // Both hosts end their loads at nearly the same time.
        let ending =
            peer.filter(|_| !remote.is_empty()).map(|peer| (peer.request_remote_loads(LoadsRequest::End), peer));
        let mut reports = local.finish();
        if let Some((status, peer)) = ending {
            let received = match status.and_then(|status| ended(status, peer)) {
                Ok(Some(reports)) => Ok(reports),
                Ok(None) => Err("its agent knows nothing of it".into()),
                Err(error) => Err(error.to_string()),
            };
            reports.extend(received.unwrap_or_else(|reason| lost_loads(&remote, Side::Peer, &reason)));
        }
        reports
    }
}

/// Waits for the reports of an agent's loads; `None` if it has no loads.
fn ended(mut status: LoadsStatus, peer: &mut Peer) -> Result<Option<Vec<LoadReport>>, MeasureError> {
    loop {
        match status {
            LoadsStatus::Ended { reports } => return Ok(Some(reports)),
            LoadsStatus::None => return Ok(None),
            LoadsStatus::Starting | LoadsStatus::Running | LoadsStatus::Ending => {}
        }
        thread::sleep(POLL_INTERVAL);
        status = peer.request_remote_loads(LoadsRequest::Look)?;
    }
}
