//! The work made beside a run, at both of its ends: this process makes that of this end, an agent that of the peer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{MeasureError, Peer};
use crate::agent::LoadsStatus;
use crate::facts::LoadReport;
use crate::plan::{LoadSpec, RunSpec, Side, defaults};
use crate::session::{Loads, PreSharedKey, lost_loads, wait_until};
use crate::units::Nanos;

/// How often an agent is asked whether its loads are there, or gone.
const LOOK: Duration = Duration::from_millis(50);

/// The loads of a run, running. Those of this end go with this value, those of the peer with its agent.
#[derive(Debug)]
pub(crate) struct BackgroundLoads {
    here: Loads,
    there: Vec<LoadSpec>,
    started: Instant,
}

impl BackgroundLoads {
    /// Starts the loads of `spec`, those of this end first: each search for a rate has the path for itself. Without a
    /// peer there is neither a path nor a far end.
    ///
    /// To be called before the calling thread is pinned: the loads inherit the CPUs that it may use.
    ///
    /// # Errors
    /// One of them cannot be made, here or there; the others are gone again, or go with the peer.
    pub(crate) fn start(
        spec: &RunSpec,
        mut peer: Option<&mut Peer>,
        key: Option<&PreSharedKey>,
        lasting: Option<Nanos>,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<BackgroundLoads, MeasureError> {
        let path = peer.as_mut().map(|peer| peer.loaded_path(spec, key, lasting)).transpose()?.flatten();
        let here = Loads::start(&spec.loads, Side::Local, path, stop, heartbeat)?;
        let there: Vec<LoadSpec> = spec.far_loads().cloned().collect();
        if let (Some(peer), false) = (peer, there.is_empty()) {
            let mut state = peer.start_far_loads(spec, lasting)?;
            while state == LoadsStatus::Starting && !stop.load(Ordering::Relaxed) {
                heartbeat();
                thread::sleep(LOOK);
                state = peer.look_at_far_loads()?;
            }
        }
        Ok(BackgroundLoads { here, there, started: Instant::now() })
    }

    /// Waits until the loads have found their measure, or until `stop`.
    pub(crate) fn settle(&self, stop: &AtomicBool, heartbeat: &mut dyn FnMut()) {
        self.here.settle(stop, heartbeat);
        if !self.there.is_empty() {
            wait_until(self.started + defaults::LOAD_SETTLE.to_duration(), stop, heartbeat);
        }
    }

    /// The processes of this end.
    pub(crate) fn own_processes(&self) -> Vec<u32> {
        self.here.own_processes()
    }

    /// From now on the loads of this end are judged. Those of the peer are since the run was armed: nothing is said to
    /// its agent now.
    pub(crate) fn begin(&self) {
        self.here.begin();
    }

    /// The measuring is over: the loads of this end are judged until now. Those of the peer are until
    /// [`end_there`](Beside::end_there).
    pub(crate) fn end(&self) {
        self.here.end();
    }

    /// The run is disarmed and its agent may be spoken to: its loads end, before anything else is asked of it.
    pub(crate) fn end_there(&self, peer: &mut Peer) {
        if !self.there.is_empty() {
            // An agent that is lost has said so already, and is asked once more for what its loads reached.
            let _ = peer.end_far_loads();
        }
    }

    /// SessionSender all loads that have not, and says what they reached, this end's first. Of those of an agent that is lost
    /// nothing is known but what was asked for.
    pub(crate) fn finish(self, peer: Option<&mut Peer>) -> Vec<LoadReport> {
        let BackgroundLoads { here, there, .. } = self;
        // They end at the same time, as far as two hosts can.
        let asked = peer.filter(|_| !there.is_empty()).map(|peer| (peer.end_far_loads(), peer));
        let mut reports = here.finish();
        if let Some((state, peer)) = asked {
            let far = state.and_then(|state| ended(state, peer));
            let told = far
                .map_or_else(|error| Err(error.to_string()), |far| far.ok_or("its agent knows nothing of it".into()));
            reports.extend(told.unwrap_or_else(|reason| lost_loads(&there, Side::Peer, &reason)));
        }
        reports
    }
}

/// What the loads of an agent reached, as soon as it says so; none where it has none.
fn ended(mut state: LoadsStatus, peer: &mut Peer) -> Result<Option<Vec<LoadReport>>, MeasureError> {
    loop {
        match state {
            LoadsStatus::Ended { reports } => return Ok(Some(reports)),
            LoadsStatus::None => return Ok(None),
            LoadsStatus::Starting | LoadsStatus::Running | LoadsStatus::Ending => {}
        }
        thread::sleep(LOOK);
        state = peer.look_at_far_loads()?;
    }
}
