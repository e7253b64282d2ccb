//! What an agent has done to its host, and how it is undone. One handler for each request.

use super::error::RequestFailure;
use super::far_loads::{AgentLoads, LoadsRequest, LoadsStatus};
use super::far_settings::AgentSettings;
use super::message::{Reply, Request};
use super::sampling::{self, Sampling};
use crate::clock;
use crate::plan::defaults::RUNS_MAX;
use crate::session::{PreSharedKey, ReflectorProcess, ReflectorRequest};

/// Reflectors at a time: one to measure against, one for a net load, each twice.
const REFLECTORS_MAX: usize = 4;

/// The far host, as far as this agent has changed it. What is here is undone by [`RequestHandler::undo`], and where the agent is
/// killed by the kernel, since processes end with it, and by the next latlab on that host, since settings are
/// journalled before they are changed.
#[derive(Debug, Default)]
pub struct RequestHandler {
    settings: AgentSettings,
    reflectors: Vec<ReflectorProcess>,
    loads: Option<AgentLoads>,
    sampling: Sampling,
}

impl RequestHandler {
    /// Does what `request` asks. Arming is the loop's own business and changes nothing here.
    pub(super) fn answer(&mut self, request: Request) -> Result<Reply, RequestFailure> {
        match request {
            Request::StartReflector { bind, end, key, sessions, down_bps, transport } => {
                let order =
                    ReflectorRequest { down_bps, transport, ..ReflectorRequest::new(bind, end, None, sessions) };
                self.start_reflector(order, key.as_deref())
            }
            Request::Disarm => Ok(Reply::Disarmed { reflector_died: self.death() }),
            Request::Settings(order) => self.settings.obey(order).map(Reply::Settings),
            Request::Loads(order) => self.load(order).map(Reply::Loads),
            Request::ReadFacts { address } => Ok(Reply::Facts(Box::new(sampling::facts(address)))),
            Request::ReadClocks => Ok(Reply::Clocks(clock::anchor())),
            Request::StartSampling { avoid_cpus } => {
                let own_processes = self.own_processes();
                self.sampling.start(avoid_cpus, own_processes).map(|()| Reply::Done)
            }
            Request::CollectSamples => Ok(Reply::Samples(self.sampling.next_page())),
            Request::StopAll => self.undo().map(|()| Reply::Done),
            Request::Arm { .. } => {
                // Nothing will be said until the run is over: the figures of its loads begin with it.
                self.loads.iter().for_each(AgentLoads::begin);
                Ok(Reply::Done)
            }
            Request::Heartbeat => Ok(Reply::Done),
        }
    }

    fn start_reflector(&mut self, order: ReflectorRequest, key: Option<&str>) -> Result<Reply, RequestFailure> {
        let (bind, sessions) = (order.bind.ip(), order.sessions);
        let message = format!("cannot start a reflector on `{bind}`");
        if bind.is_unspecified() {
            return Err(RequestFailure::world(message, "a reflector answers on the measured path alone"));
        }
        if self.reflectors.len() >= REFLECTORS_MAX {
            return Err(RequestFailure::world(message, format!("this agent has `{REFLECTORS_MAX}` of them already")));
        }
        if !(1..=RUNS_MAX).contains(&usize::from(sessions)) {
            return Err(RequestFailure::world(
                message,
                format!("a command has 1 to {RUNS_MAX} sessions, not `{sessions}`"),
            ));
        }
        let Some(key) = key else {
            return Err(RequestFailure::world(message, "without a key it would answer strangers"));
        };
        let key = PreSharedKey::from_reader("the agent's channel", key.as_bytes())
            .map_err(|error| RequestFailure::world(message, error.to_string()))?;
        let reflector = ReflectorProcess::start(&ReflectorRequest { key: Some(key.line()), ..order })?;
        let address = reflector.address();
        self.reflectors.push(reflector);
        Ok(Reply::Reflector { address })
    }

    fn load(&mut self, order: LoadsRequest) -> Result<LoadsStatus, RequestFailure> {
        match order {
            LoadsRequest::Start { .. } if self.loads.is_some() => {
                return Err(RequestFailure::world("cannot make the loads", "this agent makes others"));
            }
            LoadsRequest::Start { loads, path } => self.loads = Some(AgentLoads::start(loads, path)?),
            LoadsRequest::Look => {}
            LoadsRequest::End => self.loads.iter().for_each(AgentLoads::end),
        }
        self.loads.as_ref().map_or(Ok(LoadsStatus::None), AgentLoads::state)
    }

    /// What these use of the CPUs is latlab's own.
    fn own_processes(&self) -> Vec<u32> {
        let loads = self.loads.iter().flat_map(AgentLoads::own_processes);
        self.reflectors.iter().map(ReflectorProcess::pid).chain(loads).collect()
    }

    fn death(&mut self) -> Option<String> {
        self.reflectors.iter_mut().find_map(ReflectorProcess::death)
    }

    /// Undoes everything, whatever of it fails.
    ///
    /// # Errors
    /// The first that failed.
    pub fn undo(&mut self) -> Result<(), RequestFailure> {
        self.sampling = Sampling::default();
        // Loads and reflectors may take a second to end, so the settings of the host are restored first.
        self.loads.iter_mut().for_each(AgentLoads::give_up);
        let restored = self.settings.undo();
        while let Some(reflector) = self.reflectors.pop() {
            drop(reflector);
        }
        self.loads = None;
        restored
    }
}

impl Drop for RequestHandler {
    fn drop(&mut self) {
        // The other end has been informed if it is still there.
        let _ = self.undo();
    }
}
