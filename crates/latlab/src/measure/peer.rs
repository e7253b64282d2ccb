//! The other end of a run: reached, or made.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::MeasureError;
use super::remote_host::{PeerSettings, RemoteHost, RemoteResults};
use crate::agent::{Agent, LoadsRequest, LoadsStatus, NetLoadPath};
use crate::facts::SettingFacts;
use crate::host::lab::{EnteredNamespace, Lab};
use crate::host::{HostError, HostGuard, HostRoot, KnobJournal, PathInterfaces};
use crate::plan::{Direction, EndSpec, Family, LoadKind, LoadSpec, PathSpec, RunSpec, Target, defaults};
use crate::session::{LoadedPath, PreSharedKey, ReflectorProcess, ReflectorRequest};
use crate::transport::{TransportError, local_address_towards, resolve};
use crate::units::Nanos;

/// Somebody who answers. What latlab made for it goes when this is dropped: first the process, then
/// the namespaces it lived in. What was set for the run is put back with it.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    process: Option<ReflectorProcess>,
    sink: Option<ReflectorProcess>,
    /// Answers the probes beside a stream.
    probed: Option<ReflectorProcess>,
    probed_at: SocketAddr,
    agent: Option<Agent>,
    far: Option<RemoteHost>,
    /// CPUs that measure at the far end.
    far_cpus: Vec<u16>,
    _inside: Option<EnteredNamespace>,
    lab: Option<Lab>,
    guard: HostGuard,
    far_settings: PeerSettings,
}

impl Peer {
    /// Reaches or makes the peer that `spec` names, for so many sessions. For `lab` the calling thread moves into the
    /// sender's namespace and stays there until the peer is dropped; for an agent it must live as long as the peer,
    /// and `stop` is set when the agent is lost.
    pub fn reach(
        spec: &RunSpec,
        key: Option<&PreSharedKey>,
        sessions: u16,
        stop: &Arc<AtomicBool>,
    ) -> Result<Peer, MeasureError> {
        let end = spec.peer.unwrap_or(spec.here);
        let (down_bps, transport) = (down_bps(spec), spec.transport().unwrap_or_default());
        let order =
            |address| ReflectorRequest { down_bps, transport, ..ReflectorRequest::new(address, end, key, sessions) };
        match &spec.target {
            Target::Local => Peer::on_loopback(spec, order),
            Target::Lab => Peer::in_lab(spec, order),
            Target::Host { host, port } => {
                let path = spec.expect_path();
                let address = resolve(host, *port, path.family)?;
                let guard = hold(spec, || Ok(PathInterfaces::towards(address.ip(), path.bind_interface.as_deref())))?;
                Ok(Peer { guard, ..Peer::at(address) })
            }
            Target::Ssh { .. } | Target::Command { .. } => Peer::through_agent(spec, order, stop),
        }
    }

    /// Reaches or makes the peer of loads without a measurement: where an agent stands there, nobody answers probes and
    /// nothing is told about its host.
    pub(crate) fn of_loads(
        spec: &RunSpec,
        key: Option<&PreSharedKey>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Peer, MeasureError> {
        if !spec.target.has_agent() {
            return Peer::reach(spec, key, 1, stop);
        }
        let path = spec.expect_path();
        let agent = Agent::start(&spec.target, path, &[], stop)?;
        let sends = spec.loads.iter().any(|load| matches!(load.kind, LoadKind::Net(_)));
        // The loads of CPUs and memory take no way.
        let address = if sends { far_address(&agent, path)? } else { Ipv4Addr::UNSPECIFIED.into() };
        Ok(Peer { agent: Some(agent), ..Peer::at(SocketAddr::new(address, 0)) })
    }

    fn on_loopback(spec: &RunSpec, order: impl Fn(IpAddr) -> ReflectorRequest) -> Result<Peer, MeasureError> {
        let loopback: IpAddr = match spec.expect_path().family {
            Some(Family::Ipv6) => Ipv6Addr::LOCALHOST.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let mut guard = hold(spec, || Ok(PathInterfaces::loopback()))?;
        let process = ReflectorProcess::start(&order(loopback))?;
        guard.reflector_started().map_err(HostError::from)?;
        let address = process.address();
        Ok(Peer { process: Some(process), guard, ..Peer::at(address) })
    }

    fn through_agent(
        spec: &RunSpec,
        order: impl Fn(IpAddr) -> ReflectorRequest,
        stop: &Arc<AtomicBool>,
    ) -> Result<Peer, MeasureError> {
        let path = spec.expect_path();
        let mut agent = Agent::start(&spec.target, path, &measuring_cpus(spec), stop)?;
        let bind = far_address(&agent, path)?;
        let (mut guard, mut far_settings) = (HostGuard::none(), PeerSettings::default());
        if !spec.settings.is_empty() {
            // Both hosts are read before either is changed.
            let ground = PathInterfaces::towards(bind, path.bind_interface.as_deref());
            guard = HostGuard::find(&spec.settings, &ground, HostRoot::of_knobs()).map_err(HostError::from)?;
            far_settings = PeerSettings::find(&mut agent, &spec.settings, local_address_towards(path, bind)?)?;
            guard.turn(KnobJournal::of_user().as_ref()).map_err(HostError::from)?;
            far_settings.turn(&mut agent)?;
        }
        let address = agent.start_reflector(order(bind))?;
        // After everything is set there: facts are those of the run.
        let far = RemoteHost::meet(&mut agent, bind)?;
        let far_cpus = spec.peer.and_then(|end| end.cpu).into_iter().collect();
        Ok(Peer { agent: Some(agent), far: Some(far), far_cpus, guard, far_settings, ..Peer::at(address) })
    }

    /// Somebody who needs nothing of us.
    fn at(address: SocketAddr) -> Peer {
        Peer {
            address,
            process: None,
            sink: None,
            probed: None,
            probed_at: address,
            agent: None,
            far: None,
            far_cpus: Vec::new(),
            _inside: None,
            lab: None,
            guard: HostGuard::none(),
            far_settings: PeerSettings::default(),
        }
    }

    fn in_lab(spec: &RunSpec, order: impl Fn(IpAddr) -> ReflectorRequest) -> Result<Peer, MeasureError> {
        let mut lab = Lab::set_up()?;
        let address = match spec.expect_path().family {
            Some(Family::Ipv6) => lab.reflector_ipv6().ok_or(HostError::LabLacksIpv6)?,
            _ => lab.reflector_ipv4(),
        };
        let mut guard = hold(spec, || lab.ground(address.is_ipv6()))?;
        lab.look_again()?;
        let process = {
            let _there = lab.enter_reflector()?;
            ReflectorProcess::start(&order(address))?
        };
        guard.reflector_started().map_err(HostError::from)?;
        let inside = lab.enter_sender()?;
        let address = process.address();
        Ok(Peer { process: Some(process), _inside: Some(inside), lab: Some(lab), guard, ..Peer::at(address) })
    }

    /// The path that the network loads of `spec` take to whoever counts them; none where there are none. Where
    /// latlab starts the reflector, that is another process than the one that answers probes: in one socket they
    /// would wait behind the load, and that queue is no part of the path.
    pub(crate) fn loaded_path<'a>(
        &mut self,
        spec: &'a RunSpec,
        key: Option<&'a PreSharedKey>,
        lasting: Option<Nanos>,
    ) -> Result<Option<LoadedPath<'a>>, MeasureError> {
        let sessions = spec.network_loads() as u16;
        if sessions == 0 {
            return Ok(None);
        }
        let (peer, sink) = self.another_reflector(&spec.target, key, sessions)?;
        self.sink = sink;
        Ok(Some(LoadedPath { peer, path: spec.expect_path(), key, lasting }))
    }

    /// Sees to it that the probes beside the streams of `spec` are answered, in so many sessions: as with loads, where
    /// latlab starts the reflector, by a process of their own.
    pub(crate) fn answer_probes(
        &mut self,
        spec: &RunSpec,
        key: Option<&PreSharedKey>,
        sessions: u16,
    ) -> Result<(), MeasureError> {
        if spec.concurrent_probes().is_some() {
            (self.probed_at, self.probed) = self.another_reflector(&spec.target, key, sessions)?;
        }
        Ok(())
    }

    /// Where they are answered.
    pub(crate) fn probed_at(&self) -> SocketAddr {
        self.probed_at
    }

    /// A second reflector where this one stands, with its process where that is on this host; the same at a `HOST`.
    fn another_reflector(
        &mut self,
        target: &Target,
        key: Option<&PreSharedKey>,
        sessions: u16,
    ) -> Result<(SocketAddr, Option<ReflectorProcess>), MeasureError> {
        let order = ReflectorRequest::new(self.address.ip(), EndSpec::SYSTEM, key, sessions);
        Ok(match (target, &mut self.agent) {
            (Target::Host { .. }, _) => (self.address, None),
            (_, Some(agent)) => (agent.start_reflector(order)?, None),
            (_, None) => {
                let _there = self.lab.as_ref().map(Lab::enter_reflector).transpose()?;
                let process = ReflectorProcess::start(&order)?;
                (process.address(), Some(process))
            }
        })
    }

    /// Has the agent start its loads of `spec`. Network loads go to a reflector of ours that only counts them, on this
    /// end's address of the path and under a key of its own.
    pub(super) fn start_far_loads(
        &mut self,
        spec: &RunSpec,
        lasting: Option<Nanos>,
    ) -> Result<LoadsStatus, MeasureError> {
        let there = self.address.ip();
        let Some(agent) = &mut self.agent else { return Ok(LoadsStatus::None) };
        let loads: Vec<LoadSpec> = spec.far_loads().cloned().collect();
        let streams = loads.iter().filter(|load| matches!(load.kind, LoadKind::Net(_))).count() as u16;
        let path = if streams == 0 {
            None
        } else {
            let (ours, key) = (spec.expect_path(), PreSharedKey::generate()?);
            let order =
                ReflectorRequest::new(local_address_towards(ours, there)?, EndSpec::SYSTEM, Some(&key), streams);
            let sink = self.sink.insert(ReflectorProcess::start(&order)?).address();
            let (dscp, dont_fragment) = (ours.dscp, ours.dont_fragment);
            let path = PathSpec { bind_address: Some(there), dscp, dont_fragment, ..PathSpec::SYSTEM };
            Some(NetLoadPath { sink, path, key: key.line(), lasting_ns: lasting })
        };
        Ok(agent.loads(LoadsRequest::Start { loads, path })?)
    }

    /// How the loads of the agent are.
    pub(super) fn look_at_far_loads(&mut self) -> Result<LoadsStatus, MeasureError> {
        self.ask_of_far_loads(LoadsRequest::Look)
    }

    /// Has the agent begin to end its loads.
    pub(super) fn end_far_loads(&mut self) -> Result<LoadsStatus, MeasureError> {
        self.ask_of_far_loads(LoadsRequest::End)
    }

    fn ask_of_far_loads(&mut self, order: LoadsRequest) -> Result<LoadsStatus, MeasureError> {
        Ok(self.agent.as_mut().map_or(Ok(LoadsStatus::None), |agent| agent.loads(order))?)
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The receive buffer of its socket in bytes, where this end started it.
    pub fn receive_buffer_bytes(&self) -> Option<u32> {
        self.process.as_ref().and_then(ReflectorProcess::receive_buffer_bytes)
    }

    /// The processes on this host that were made for it: what they use of the CPUs is latlab's own.
    pub fn own_processes(&self) -> Vec<u32> {
        self.process.iter().chain(&self.sink).chain(&self.probed).map(ReflectorProcess::pid).collect()
    }

    /// What was set for the run.
    pub(crate) fn settings(&self) -> Vec<SettingFacts> {
        [self.guard.facts().as_slice(), self.far_settings.facts()].concat()
    }

    /// Puts back what was set for the run, and says what came of it. An agent that is lost puts its host in order by
    /// itself, and nobody hears of it.
    pub(crate) fn restore_settings(&mut self) -> Vec<SettingFacts> {
        let here = self.guard.restore();
        if let Some(agent) = &mut self.agent {
            // The end of the run has told that it is lost.
            let _ = self.far_settings.restore(agent);
        }
        [here.as_slice(), self.far_settings.facts()].concat()
    }

    /// How the process that latlab made for it died, if it did.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.process.iter_mut().chain(&mut self.probed).find_map(ReflectorProcess::death)
    }

    /// A run of `planned` at most begins: from now on nothing is said beside the measured path. None: nobody knows
    /// how long it takes.
    pub(crate) fn arm(&mut self, planned: Option<Nanos>) -> Result<(), MeasureError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        if self.far.is_some() {
            agent.start_sampling(self.far_cpus.clone())?;
        }
        Ok(agent.arm(planned)?)
    }

    /// What the far host did meanwhile, and what it is now; nothing where no agent stands there.
    pub(crate) fn look_back(&mut self) -> Result<RemoteResults, MeasureError> {
        match (&mut self.agent, &mut self.far) {
            (Some(agent), Some(far)) => Ok(far.part(agent)?),
            _ => Ok(RemoteResults::default()),
        }
    }

    /// What an agent told about the far host.
    pub(crate) fn far(&self) -> Option<&RemoteHost> {
        self.far.as_ref()
    }

    /// `error`, or that the agent is lost, which stops whatever was under way.
    pub(crate) fn why(&mut self, error: MeasureError) -> MeasureError {
        self.agent.as_mut().and_then(Agent::lost).map_or(error, MeasureError::from)
    }

    /// The run is over; how the far reflector died meanwhile, if it did.
    pub(crate) fn disarm(&mut self) -> Result<Option<String>, MeasureError> {
        Ok(self.agent.as_mut().map_or(Ok(None), Agent::disarm)?)
    }

    /// Lets it go, and says if something could not be undone.
    pub(crate) fn dismiss(mut self) -> Result<(), MeasureError> {
        Ok(self.agent.take().map_or(Ok(()), Agent::dismiss)?)
    }

    /// Conditions of the path that were made or found on the way.
    pub fn conditions(&self) -> BTreeMap<String, String> {
        self.lab.as_ref().map(|lab| lab.conditions().clone()).unwrap_or_default()
    }
}

/// What a reflector of ours may send on its own: whoever starts it is the one who asks for it.
fn down_bps(spec: &RunSpec) -> u64 {
    let is_down = spec.stream().is_some_and(|stream| stream.direction == Direction::Down);
    if is_down { defaults::STREAM_RATE_MAX_BPS } else { 0 }
}

/// The far end of the path, of the family that was asked for.
fn far_address(agent: &Agent, path: &PathSpec) -> Result<IpAddr, MeasureError> {
    let address = agent.address(path)?;
    match path.family.filter(|family| (*family == Family::Ipv4) != address.is_ipv4()) {
        Some(family) => Err(TransportError::NoAddressOfFamily { host: address.to_string(), family }.into()),
        None => Ok(address),
    }
}

/// Sets what `spec` asks to be set on this host; what is asked of a host of the peer's own is for its agent.
fn hold(spec: &RunSpec, ground: impl FnOnce() -> Result<PathInterfaces, HostError>) -> Result<HostGuard, HostError> {
    if spec.settings.is_empty() {
        return Ok(HostGuard::none());
    }
    let guard = HostGuard::hold(&spec.settings, &ground()?, HostRoot::of_knobs(), KnobJournal::of_user().as_ref());
    Ok(guard?)
}

/// The CPUs that measure on this host, the sender's first.
pub(crate) fn measuring_cpus(spec: &RunSpec) -> Vec<u16> {
    let neighbour = spec.peer.filter(|_| spec.target.is_this_host());
    [spec.here.cpu, neighbour.and_then(|end| end.cpu)].into_iter().flatten().collect()
}
