//! The peer of a run: a reflector that is already running, or that is started on this host or by an agent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::MeasureError;
use super::remote_host::{PeerSettings, RemoteHost, RemoteResults};
use crate::agent::{Agent, LoadsRequest, LoadsStatus, NetLoadPath};
use crate::diagnostics::{Explain, Failure, refused};
use crate::facts::{SettingFacts, XdpFacts};
use crate::host::placement::{self, AffinityGuard};
use crate::host::{EnteredNamespace, Lab};
use crate::host::{HostError, HostGuard, HostRoot, KnobError, KnobJournal, PathInterfaces};
use crate::plan::{
    Direction, EndSpec, Family, LoadKind, LoadSpec, PathSpec, RunSpec, SettingSpec, Side, Target, TransportKind,
    defaults,
};
use crate::recording::RecordingWriter;
use crate::recording::manifest::AGENT_VERSION;
use crate::session::{LoadedPath, PreSharedKey, ReflectorProcess, ReflectorRequest};
use crate::transport::{TransportError, XdpTransport, local_address_towards, resolve};
use crate::units::Nanos;

/// The peer of the runs of a plan. When this is dropped, the process that latlab started for it ends, then its namespaces;
/// settings of the runs are restored.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    xdp: Option<XdpFacts>,
    process: Option<ReflectorProcess>,
    /// The reflector that counts network loads.
    sink: Option<ReflectorProcess>,
    /// The reflector that answers probes during a stream.
    probe_reflector: Option<ReflectorProcess>,
    probe_address: SocketAddr,
    agent: Option<Agent>,
    remote_host: Option<RemoteHost>,
    /// Measuring CPUs of the agent's host.
    remote_cpus: Vec<u16>,
    _sender_namespace: Option<EnteredNamespace>,
    lab: Option<Lab>,
    guard: HostGuard,
    agent_settings: PeerSettings,
    /// What tracing adds to one wake-up on the agent's host, or why that host is not traced; `None` if it is not asked for.
    tracing: Option<Result<i64, Failure>>,
}

impl Peer {
    /// Reaches or starts the peer of `spec`, for so many sessions. For `lab` the calling thread is in the sender's namespace
    /// until the peer is dropped; with an agent it must outlive the peer, and `stop` is set when the agent is lost.
    ///
    /// # Errors
    /// The peer cannot be reached or started, or a setting is refused.
    pub fn reach(
        spec: &RunSpec,
        key: Option<&PreSharedKey>,
        sessions: u16,
        stop: &Arc<AtomicBool>,
    ) -> Result<Peer, MeasureError> {
        let end = spec.peer.unwrap_or(spec.here);
        let down_bps = down_bps(spec);
        let xdp = spec.path().and_then(|path| path.xdp);
        // Both are UDP on the wire.
        let transport = xdp.map_or(spec.transport().unwrap_or_default(), |xdp| xdp.reflect.transport());
        let queue = xdp.map_or(0, |xdp| xdp.peer_queue);
        let in_driver = spec.answers_in_driver();
        let dds = spec.path().and_then(|path| path.dds).unwrap_or_default();
        let request = |address| {
            let request = ReflectorRequest::new(address, end, key, sessions);
            ReflectorRequest { down_bps, transport, dds, queue, in_driver, ..request }
        };
        match &spec.target {
            Target::Local => Peer::on_loopback(spec, request),
            Target::Lab => Peer::in_lab(spec, request),
            Target::Host { host, port } => {
                let path = spec.expect_path();
                let address = resolve(host, *port, path.family)?;
                let interfaces = || Ok(PathInterfaces::towards(address.ip(), path.bind_interface.as_deref()));
                let guard = apply_settings(&spec.settings, interfaces)?;
                Ok(Peer { guard, ..Peer::at(address) })
            }
            Target::Ssh { .. } | Target::Command { .. } => Peer::through_agent(spec, request, stop),
            Target::Log { .. } => Err(MeasureError::Imported),
        }
    }

    /// Reaches or starts the peer of loads without a measurement. An agent then starts no reflector, and its host is neither
    /// described nor sampled.
    ///
    /// # Errors
    /// As [`Peer::reach`].
    pub fn of_loads(spec: &RunSpec, key: Option<&PreSharedKey>, stop: &Arc<AtomicBool>) -> Result<Peer, MeasureError> {
        if !spec.target.has_agent() {
            return Peer::reach(spec, key, 1, stop);
        }
        let path = spec.expect_path();
        let agent = Agent::start(&spec.target, path, &[], stop)?;
        let sends = spec.loads.iter().any(|load| matches!(load.kind, LoadKind::Net(_)));
        // CPU and memory loads need no path.
        let address = if sends { remote_address(&agent, path)? } else { Ipv4Addr::UNSPECIFIED.into() };
        Ok(Peer { agent: Some(agent), ..Peer::at(SocketAddr::new(address, 0)) })
    }

    fn on_loopback(spec: &RunSpec, request: impl Fn(IpAddr) -> ReflectorRequest) -> Result<Peer, MeasureError> {
        let loopback: IpAddr = match spec.expect_path().family {
            Some(Family::Ipv6) => Ipv6Addr::LOCALHOST.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let mut guard = apply_settings(&spec.settings, || Ok(PathInterfaces::loopback()))?;
        let process = ReflectorProcess::start(&request(loopback))?;
        guard.reflector_started().map_err(HostError::from)?;
        let (address, xdp) = (process.address(), process.xdp().cloned());
        Ok(Peer { xdp, process: Some(process), guard, ..Peer::at(address) })
    }

    fn through_agent(
        spec: &RunSpec,
        request: impl Fn(IpAddr) -> ReflectorRequest,
        stop: &Arc<AtomicBool>,
    ) -> Result<Peer, MeasureError> {
        let path = spec.expect_path();
        let mut agent = Agent::start(&spec.target, path, &measuring_cpus(spec), stop)?;
        let bind = remote_address(&agent, path)?;
        let (mut guard, mut agent_settings) = (HostGuard::none(), PeerSettings::default());
        if !spec.settings.is_empty() {
            // Both hosts are read before either is changed.
            let interfaces = PathInterfaces::towards(bind, path.bind_interface.as_deref());
            guard = HostGuard::find(&spec.settings, &interfaces, HostRoot::for_knobs()).map_err(HostError::from)?;
            agent_settings = PeerSettings::find(&mut agent, &spec.settings, local_address_towards(path, bind)?)?;
            guard.apply(KnobJournal::for_user().as_ref()).map_err(HostError::from)?;
            agent_settings.apply(&mut agent)?;
        }
        // Before a reflector may spin on the CPU on which its cost is measured.
        let tracing = spec.trace.then(|| agent.start_tracing()).transpose()?;
        let (address, xdp) = agent.start_reflector(request(bind))?;
        // After the settings, so that the facts are those of the run.
        let remote_host = Some(RemoteHost::before_run(&mut agent, bind)?);
        let remote_cpus = spec.peer.and_then(|end| end.cpu).into_iter().collect();
        let agent = Some(agent);
        Ok(Peer { xdp, agent, remote_host, remote_cpus, guard, agent_settings, tracing, ..Peer::at(address) })
    }

    /// A reflector at `address`, without a process, an agent or settings.
    fn at(address: SocketAddr) -> Peer {
        Peer {
            address,
            xdp: None,
            process: None,
            sink: None,
            probe_reflector: None,
            probe_address: address,
            agent: None,
            remote_host: None,
            remote_cpus: Vec::new(),
            _sender_namespace: None,
            lab: None,
            guard: HostGuard::none(),
            agent_settings: PeerSettings::default(),
            tracing: None,
        }
    }

    fn in_lab(spec: &RunSpec, request: impl Fn(IpAddr) -> ReflectorRequest) -> Result<Peer, MeasureError> {
        let mut lab = Lab::set_up()?;
        if spec.path().is_some_and(|path| path.xdp.is_some()) {
            lab.finish_checksums()?;
        }
        let address = match spec.expect_path().family {
            Some(Family::Ipv6) => lab.reflector_ipv6().ok_or(HostError::LabLacksIpv6)?,
            _ => lab.reflector_ipv4(),
        };
        let mut guard = apply_settings(&spec.settings, || lab.path(address.is_ipv6()))?;
        lab.update_conditions()?;
        let process = {
            let _namespace = lab.enter_reflector()?;
            ReflectorProcess::start(&request(address))?
        };
        guard.reflector_started().map_err(HostError::from)?;
        let _sender_namespace = Some(lab.enter_sender()?);
        let (address, xdp) = (process.address(), process.xdp().cloned());
        Ok(Peer { xdp, process: Some(process), _sender_namespace, lab: Some(lab), guard, ..Peer::at(address) })
    }

    /// The path of this end's network loads to the reflector that counts them; `None` without network loads. A reflector
    /// that latlab starts for them is a process of its own: in a common socket probes would queue behind the load, and that
    /// queue is not part of the path.
    ///
    /// # Errors
    /// That process cannot be started.
    pub(crate) fn loaded_path<'a>(
        &mut self,
        spec: &'a RunSpec,
        key: Option<&'a PreSharedKey>,
        duration: Option<Nanos>,
    ) -> Result<Option<LoadedPath<'a>>, MeasureError> {
        let sessions = spec.network_loads() as u16;
        if sessions == 0 {
            return Ok(None);
        }
        let (peer, sink) = self.another_reflector(&spec.target, key, sessions)?;
        self.sink = sink;
        Ok(Some(LoadedPath { peer, path: spec.expect_path(), key, lasting: duration }))
    }

    /// Prepares a reflector for the probes during the streams of `spec`, in so many sessions: one that latlab starts is a
    /// process of its own, as for loads.
    ///
    /// # Errors
    /// That process cannot be started.
    pub(crate) fn answer_probes(
        &mut self,
        spec: &RunSpec,
        key: Option<&PreSharedKey>,
        sessions: u16,
    ) -> Result<(), MeasureError> {
        if spec.concurrent_probes().is_some() {
            (self.probe_address, self.probe_reflector) = self.another_reflector(&spec.target, key, sessions)?;
        }
        Ok(())
    }

    /// The address of the reflector for probes during a stream.
    pub(crate) fn probe_address(&self) -> SocketAddr {
        self.probe_address
    }

    /// The address of a second reflector on the peer's host, and its process if that is this host. For a `HOST`, which has
    /// one reflector, that of the first.
    fn another_reflector(
        &mut self,
        target: &Target,
        key: Option<&PreSharedKey>,
        sessions: u16,
    ) -> Result<(SocketAddr, Option<ReflectorProcess>), MeasureError> {
        let request = ReflectorRequest::new(self.address.ip(), EndSpec::SYSTEM, key, sessions);
        Ok(match (target, &mut self.agent) {
            (Target::Host { .. }, _) => (self.address, None),
            (_, Some(agent)) => (agent.start_reflector(request)?.0, None),
            (_, None) => {
                let _namespace = self.lab.as_ref().map(Lab::enter_reflector).transpose()?;
                let process = ReflectorProcess::start(&request)?;
                (process.address(), Some(process))
            }
        })
    }

    /// Starts those loads of `spec` that the agent holds. Network loads go to a reflector on this host that only counts
    /// them, at this end's address of the path and with a key of its own.
    ///
    /// # Errors
    /// The agent refuses, or that reflector cannot be started.
    pub(super) fn start_remote_loads(
        &mut self,
        spec: &RunSpec,
        duration: Option<Nanos>,
    ) -> Result<LoadsStatus, MeasureError> {
        let remote = self.address.ip();
        let Some(agent) = &mut self.agent else { return Ok(LoadsStatus::None) };
        let loads: Vec<LoadSpec> = spec.far_loads().cloned().collect();
        let streams = loads.iter().filter(|load| matches!(load.kind, LoadKind::Net(_))).count() as u16;
        let path = if streams == 0 {
            None
        } else {
            let (path, key) = (spec.expect_path(), PreSharedKey::generate()?);
            let local = local_address_towards(path, remote)?;
            let request = ReflectorRequest::new(local, EndSpec::SYSTEM, Some(&key), streams);
            let sink = self.sink.insert(ReflectorProcess::start(&request)?).address();
            Some(NetLoadPath { sink, path: path.reversed(remote), key: key.line(), lasting_ns: duration })
        };
        Ok(agent.loads(LoadsRequest::Start { loads, path })?)
    }

    /// Sends `request` about its loads to the agent.
    ///
    /// # Errors
    /// The agent is lost, or a load could not be started.
    pub(super) fn request_remote_loads(&mut self, request: LoadsRequest) -> Result<LoadsStatus, MeasureError> {
        Ok(self.agent.as_mut().map_or(Ok(LoadsStatus::None), |agent| agent.loads(request))?)
    }

    /// The address of its reflector.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The AF_XDP socket or the program of its reflector; `None` without either, or if latlab did not start it.
    pub fn xdp(&self) -> Option<&XdpFacts> {
        self.xdp.as_ref()
    }

    /// The receive buffer of its socket in bytes; `None` if this process did not start it.
    pub fn receive_buffer_bytes(&self) -> Option<u32> {
        self.process.as_ref().and_then(ReflectorProcess::receive_buffer_bytes)
    }

    /// Process ids of the reflectors on this host, whose CPU time is latlab's own.
    pub fn own_processes(&self) -> Vec<u32> {
        self.process.iter().chain(&self.sink).chain(&self.probe_reflector).map(ReflectorProcess::pid).collect()
    }

    /// The settings of the run, with the values before and after.
    pub fn settings(&self) -> Vec<SettingFacts> {
        [self.guard.facts().as_slice(), self.agent_settings.facts()].concat()
    }

    /// Restores the settings of the run; the facts report how. A lost agent restores its host by itself, which its facts do
    /// not report.
    pub(crate) fn restore_settings(&mut self) -> Vec<SettingFacts> {
        let here = self.guard.restore();
        if let Some(agent) = &mut self.agent {
            // The loss of the agent was reported at the end of the run.
            let _ = self.agent_settings.restore(agent);
        }
        [here.as_slice(), self.agent_settings.facts()].concat()
    }

    /// How a reflector process on this host died; `None` if all run.
    pub fn death(&mut self) -> Option<String> {
        self.process.iter_mut().chain(&mut self.probe_reflector).find_map(ReflectorProcess::death)
    }

    /// Prepares the agent for runs that take `planned` at most (`None`: without a bound). Until [`Peer::disarm`] no message
    /// is exchanged with it.
    ///
    /// # Errors
    /// The agent is lost or refuses.
    pub fn arm(&mut self, planned: Option<Nanos>) -> Result<(), MeasureError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        if self.remote_host.is_some() {
            agent.start_sampling(self.remote_cpus.clone())?;
        }
        Ok(agent.arm(planned)?)
    }

    /// Collects samples and facts of the agent's host after the runs; empty without an agent.
    ///
    /// # Errors
    /// The agent is lost.
    pub fn collect(&mut self) -> Result<RemoteResults, MeasureError> {
        match (&mut self.agent, &mut self.remote_host) {
            (Some(agent), Some(remote_host)) => Ok(remote_host.after_run(agent)?),
            _ => Ok(RemoteResults::default()),
        }
    }

    /// Gives a run what the agent's host ran while it had the slowest probes, or a caveat.
    pub(super) fn keep_trace(&mut self, run: &mut RecordingWriter) {
        let Some((agent, tracing)) = self.agent.as_mut().zip(self.tracing.as_ref()) else { return };
        run.manifest_mut().run.peer_trace_cost_ns = tracing.as_ref().ok().copied();
        let spans = run.progress().slowest_at_peer();
        let text = tracing.clone().and_then(|_| agent.read_trace(&spans).map_err(|error| error.explain()));
        match text {
            Ok(text) if !text.is_empty() => run.keep_trace(Side::Peer, &text),
            Ok(_) => run.note_peer_trace_missing(&Failure::world("of no slow probe all events were kept")),
            Err(failure) => run.note_peer_trace_missing(&failure),
        }
    }

    /// The host of the agent; `None` without one.
    pub(crate) fn remote_host(&self) -> Option<&RemoteHost> {
        self.remote_host.as_ref()
    }

    /// The loss of the agent; `None` if it is not lost.
    pub(super) fn lost(&mut self) -> Option<MeasureError> {
        self.agent.as_mut().and_then(Agent::lost).map(MeasureError::from)
    }

    /// The loss of the agent if it is lost, since that causes other errors; else `error`.
    pub fn explained(&mut self, error: MeasureError) -> MeasureError {
        self.lost().unwrap_or(error)
    }

    /// Ends the armed state after the runs. Returns how a reflector process of the agent died, if one did.
    ///
    /// # Errors
    /// The agent is lost.
    pub fn disarm(&mut self) -> Result<Option<String>, MeasureError> {
        Ok(self.agent.as_mut().map_or(Ok(None), Agent::disarm)?)
    }

    /// Ends the agent and the reflectors.
    ///
    /// # Errors
    /// The agent could not undo a change, or is lost.
    pub fn dismiss(mut self) -> Result<(), MeasureError> {
        Ok(self.agent.take().map_or(Ok(()), Agent::dismiss)?)
    }

    /// The conditions of a lab's path, and another version of the agent, for the manifest.
    pub fn conditions(&self) -> BTreeMap<String, String> {
        let mut conditions = self.lab.as_ref().map(|lab| lab.conditions().clone()).unwrap_or_default();
        let version = self.agent.as_ref().map(|agent| agent.greeting().software.chars().take(40).collect::<String>());
        let other = version.filter(|version| version != env!("CARGO_PKG_VERSION"));
        conditions.extend(other.map(|version| (AGENT_VERSION.to_owned(), version)));
        conditions
    }
}

/// The permitted down-stream rate of a reflector that latlab starts: the largest of all, since it serves this run only.
fn down_bps(spec: &RunSpec) -> u64 {
    let is_down = spec.stream().is_some_and(|stream| stream.direction == Direction::Down);
    if is_down { defaults::STREAM_RATE_MAX_BPS } else { 0 }
}

/// The agent's address of the path, of the requested family.
fn remote_address(agent: &Agent, path: &PathSpec) -> Result<IpAddr, MeasureError> {
    let address = agent.address(path)?;
    match path.family.filter(|family| (*family == Family::Ipv4) != address.is_ipv4()) {
        Some(family) => Err(TransportError::NoAddressOfFamily { host: address.to_string(), family }.into()),
        None => Ok(address),
    }
}

/// Applies those of `settings` that concern this host; the agent applies those of its host.
fn apply_settings(
    settings: &[SettingSpec],
    interfaces: impl FnOnce() -> Result<PathInterfaces, HostError>,
) -> Result<HostGuard, HostError> {
    if settings.is_empty() {
        return Ok(HostGuard::none());
    }
    Ok(HostGuard::hold(settings, &interfaces()?, HostRoot::for_knobs(), KnobJournal::for_user().as_ref())?)
}

/// Applies the settings of a run without a path.
///
/// # Errors
/// A setting is refused.
pub(super) fn local_settings(settings: &[SettingSpec]) -> Result<HostGuard, MeasureError> {
    let mut guard = apply_settings(settings, || Ok(PathInterfaces::loopback()))?;
    guard.reflector_started().map_err(HostError::from)?;
    Ok(guard)
}

/// Why this host cannot have `setting` in a run to `target`: it lacks the knob, or the value. `None` if it has both, and if
/// that depends on another host or on an interface that is not known before the run. Changes nothing.
pub fn absence_of(setting: &SettingSpec, target: &Target) -> Option<Failure> {
    found_here(setting, target)?.err().filter(|error| matches!(error, KnobError::Absent { .. })).map(Failure::from)
}

fn found_here(setting: &SettingSpec, target: &Target) -> Option<Result<HostGuard, KnobError>> {
    let is_known = *target == Target::Local || !setting.setting.is_of_an_interface();
    let path = PathInterfaces { one_host: target.is_this_host(), ..PathInterfaces::loopback() };
    is_known.then(|| HostGuard::find(std::slice::from_ref(setting), &path, HostRoot::for_knobs()))
}

/// What this process may not do that `run` needs on this host, as far as that can be tried without an effect: places of its
/// ends, namespaces, files of settings.
pub fn refusal_of(run: &RunSpec) -> Option<Failure> {
    let mut ends = [Some(run.here), run.peer.filter(|_| run.target.is_this_host())].into_iter().flatten();
    let place = |end: EndSpec| {
        let _restored = AffinityGuard::save(end.mlock);
        let refused = placement::place(&end).err();
        let _ = placement::leave_real_time();
        refused
    };
    let lab = || (run.target == Target::Lab).then(|| Lab::set_up().err()).flatten();
    ends.find_map(place).or_else(lab).map(Failure::from).or_else(|| lacking_right(run))
}

/// What this process may not do on this host that `run` needs beside its target and its places: files of settings, AF_XDP.
pub fn lacking_right(run: &RunSpec) -> Option<Failure> {
    let writable = |setting| found_here(setting, &run.target)?.ok()?.expect_writable().err();
    let settings = run.settings.iter().find_map(writable).map(HostError::Knob).map(Failure::from);
    let is_past_the_stack = run.transport() == Some(TransportKind::Xdp);
    let socket = || XdpTransport::refusal().filter(|_| is_past_the_stack).map(refused("open an AF_XDP socket"));
    settings.or_else(socket)
}

/// The CPUs of this host on which `spec` pins its measurement: the sender's, the reflector's, those of wake-ups.
pub(super) fn measuring_cpus(spec: &RunSpec) -> Vec<u16> {
    let reflector = spec.peer.filter(|_| spec.target.is_this_host());
    let pinned = [spec.here.cpu, reflector.and_then(|end| end.cpu)];
    let wakeups = spec.wakeup().map_or(&[][..], |wakeup| wakeup.cpus.known());
    pinned.into_iter().flatten().chain(wakeups.iter().copied()).collect()
}
