//! The loads of a run: this process makes those of this end, an agent those of the peer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{MeasureError, Peer};
use crate::agent::{LoadsRequest, LoadsStatus};
use crate::facts::LoadReport;
use crate::plan::{LoadSpec, RunSpec, Side, defaults};
use crate::session::{Loads, PreSharedKey, lost_loads, wait_until};
use crate::units::Nanos;

/// How often an agent is asked whether its loads have started or ended.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The running loads of a run. Those of this end end when this is dropped, those of the peer with its agent.
#[derive(Debug)]
pub(crate) struct BackgroundLoads {
    local: Loads,
    remote: Vec<LoadSpec>,
    started: Instant,
}

impl BackgroundLoads {
    /// Starts the loads of `spec`, those of this end first: each search for a rate has the path for itself. `duration` is
    /// the longest that they are needed.
    ///
    /// To be called before the calling thread is pinned: the loads inherit the CPUs that it may use.
    ///
    /// # Errors
    /// A load cannot be made; those of this end have ended, those of the peer end with it.
    pub(crate) fn start(
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
                thread::sleep(ASK_EVERY);
                status = peer.request_remote_loads(LoadsRequest::Look)?;
            }
        }
        Ok(BackgroundLoads { local, remote, started: Instant::now() })
    }

    /// Waits until the controls of the loads have settled, or until `stop`.
    pub(crate) fn settle(&self, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
        self.local.settle(stop, heartbeat);
        if !self.remote.is_empty() {
            wait_until(self.started + defaults::LOAD_SETTLE.to_duration(), stop, heartbeat);
        }
    }

    /// The processes of this end.
    pub(crate) fn own_processes(&self) -> Vec<u32> {
        self.local.own_processes()
    }

    /// From now on the loads of this end are judged. Those of the peer have been since the run was armed, since no message
    /// passes to its agent now.
    pub(crate) fn begin(&self) {
        self.local.begin();
    }

    /// Ends the loads of this end, which are judged until now; those of the peer until
    /// [`end_remote`](BackgroundLoads::end_remote).
    pub(crate) fn end(&self) {
        self.local.end();
    }

    /// Ends the loads of the peer, after the run is disarmed and before any other request to its agent.
    pub(crate) fn end_remote(&self, peer: &mut Peer) {
        if !self.remote.is_empty() {
            // The loss of an agent is reported elsewhere, and found again by `finish`.
            let _ = peer.request_remote_loads(LoadsRequest::End);
        }
    }

    /// Ends all loads that run still, and reports what each has reached, this end's first. Of the loads of a lost agent
    /// only the offered figures are known.
    pub(crate) fn finish(self, peer: Option<&mut Peer>) -> Vec<LoadReport> {
        let BackgroundLoads { local, remote, .. } = self;
        // Both hosts end theirs at the same time, as far as possible.
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

/// What the loads of an agent have reached, as soon as it reports that; `None` if it has no loads.
fn ended(mut status: LoadsStatus, peer: &mut Peer) -> Result<Option<Vec<LoadReport>>, MeasureError> {
    loop {
        match status {
            LoadsStatus::Ended { reports } => return Ok(Some(reports)),
            LoadsStatus::None => return Ok(None),
            LoadsStatus::Starting | LoadsStatus::Running | LoadsStatus::Ending => {}
        }
        thread::sleep(ASK_EVERY);
        status = peer.request_remote_loads(LoadsRequest::Look)?;
    }
}
