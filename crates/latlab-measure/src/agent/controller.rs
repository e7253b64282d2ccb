//! The controller's handle of an agent: one method for each request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::AgentError;
use super::connection::{AgentConnection, AgentStreams, DisconnectReason};
use super::frame::FrameError;
use super::message::{Greeting, LoadsRequest, LoadsStatus, Reply, Request, SettingsRequest};
use super::process::{self, AgentProcess};
use crate::clock::{Clock, Monotonic};
use crate::diagnostics::Failure;
use crate::facts::{ClockAnchor, ClockExchange, HostFacts, HostSample, SettingFacts, XdpFacts};
use crate::plan::{PathSpec, Target, TransportKind};
use crate::recording::trace::span_comment;
use crate::session::ReflectorRequest;
use crate::units::Nanos;

/// The time for the command that connects to end after its streams have ended.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Exit code of a shell for an unknown command (POSIX, section 2.8.2).
const COMMAND_NOT_FOUND: i32 = 127;
/// Exit code of ssh for its own failures (ssh(1)).
const SSH_FAILED: i32 = 255;
/// Readings of the remote clocks; the one with the shortest round trip counts, since half of it bounds the error.
const CLOCK_EXCHANGES: usize = 8;
/// The time to collect samples, or the trace of a run: the user waits for the summary meanwhile.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of each text of an agent's refusal that are shown.
const REFUSAL_CHARS: usize = 2_000;
/// Rows of samples that are collected at most: an agent has no more than 16 MiB of them.
const SAMPLE_ROWS_MAX: usize = 200_000;

/// An agent on another host. Its changes are undone when this is dropped; [`Agent::dismiss`] also reports whether that
/// succeeded.
pub struct Agent {
    // Fields are dropped in this order: the process waits for the end of the streams.
    connection: AgentConnection,
    process: AgentProcess,
    greeting: Greeting,
    peer: String,
}

#[derive(Debug, Default)]
pub(crate) struct RemoteSamples {
    /// In order of time, on the clock of the remote host.
    pub samples: Vec<HostSample>,
    /// The number of samples that did not arrive in time.
    pub given_up: u64,
}

/// The facts of `target`'s host, read twice with `interval` in between. The described interface is the one with `address`;
/// without an address that which ssh reached, or that of the default route.
///
/// # Errors
/// [`AgentError`].
pub fn remote_facts(
    target: &Target,
    address: Option<IpAddr>,
    interval: Duration,
) -> Result<(HostFacts, HostFacts), AgentError> {
    let mut agent = Agent::start(target, &PathSpec::SYSTEM, &[], &Arc::default())?;
    let address = address.or(agent.greeting().reached);
    let earlier = agent.facts(address)?;
    thread::sleep(interval);
    let facts = agent.facts(address)?;
    agent.dismiss()?;
    Ok((earlier, facts))
}

impl Agent {
    /// Starts the agent of `target` and waits for its greeting. The calling thread must outlive the agent. `stop` ends the
    /// wait, and is set if the agent is lost; the threads of the connection avoid the CPUs in `measuring`.
    ///
    /// # Errors
    /// [`AgentError`]: the host cannot be reached, or latlab is not installed there, or has another version.
    pub fn start(
        target: &Target,
        path: &PathSpec,
        measuring: &[u16],
        stop: &Arc<AtomicBool>,
    ) -> Result<Agent, AgentError> {
        let peer = target.to_string();
        // Without a peer address the address that ssh reached is measured: ssh must use the requested family.
        let family = path.family.filter(|_| path.peer_address.is_none());
        let command_line = process::command_line(target, family).unwrap_or_default();
        let program = command_line.first().cloned().unwrap_or_default();
        let (mut process, to, from) = AgentProcess::start(&command_line).map_err(|source| AgentError::Start {
            peer: peer.clone(),
            program,
            source,
        })?;
        let streams = AgentStreams {
            from: Box::new(from),
            to: Box::new(to),
            stop: Arc::clone(stop),
            measuring: measuring.to_vec(),
        };
        match AgentConnection::open(streams) {
            Ok((connection, greeting)) => Ok(Agent { connection, process, greeting, peer }),
            Err(reason) => Err(never_greeted(peer, reason, &mut process)),
        }
    }

    /// The address to send probes to: the requested one, or the one that ssh reached.
    ///
    /// # Errors
    /// Neither is known, it is not the address of one host, or ssh did not connect to it.
    pub fn address(&self, path: &PathSpec) -> Result<IpAddr, AgentError> {
        let address = path.peer_address.map_or_else(|| self.reached(), Ok)?.to_canonical();
        if address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            Err(AgentError::NotOneHost { peer: self.peer.clone(), address })
        } else {
            Ok(address)
        }
    }

    /// The address that ssh reached. The agent names it, and it must be one of the host that ssh connects to: otherwise the
    /// agent could choose who gets the probes.
    fn reached(&self) -> Result<IpAddr, AgentError> {
        let peer = self.peer.clone();
        let Some(reached) = self.greeting.reached else { return Err(AgentError::NoAddress { peer }) };
        let known = process::addresses_of(peer.trim_start_matches("ssh:"));
        // An IPv4-mapped address reaches what its IPv4 address does.
        if known.contains(&reached.to_canonical()) {
            Ok(reached)
        } else {
            Err(AgentError::OtherHost { peer, reached, known })
        }
    }

    /// The agent's greeting: its first message.
    pub const fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Starts a reflector on a free port of the address in `request`, and returns that address with the port, and its AF_XDP
    /// socket or program.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn start_reflector(&mut self, request: ReflectorRequest) -> Result<(SocketAddr, Option<XdpFacts>), AgentError> {
        // Bare loops run on one host, and the agent is the parent of its processes.
        let ReflectorRequest {
            bind,
            end,
            key,
            sessions,
            down_bps,
            transport,
            dds,
            queue,
            in_driver,
            bare: _,
            parent: _,
        } = request;
        let dds = (transport == TransportKind::Dds).then_some(dds);
        let queue = (transport == TransportKind::Xdp).then_some(queue);
        let bind_address = bind.ip();
        let request = Request::StartReflector {
            bind: bind_address,
            end,
            key,
            sessions,
            down_bps,
            transport,
            dds,
            queue,
            in_driver,
        };
        match self.ask(&request)? {
            Reply::Reflector { address, xdp } => Ok((self.expect_asked(bind_address, address)?, xdp)),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The address `asked` for with the port of `named`. Probes to another address would reach a host that has not agreed
    /// to them; the zone of an address means nothing on this host.
    fn expect_asked(&self, asked: IpAddr, named: SocketAddr) -> Result<SocketAddr, AgentError> {
        if named.ip().to_canonical() == asked.to_canonical() && named.port() != 0 {
            Ok(SocketAddr::new(asked, named.port()))
        } else {
            Err(AgentError::OtherAddress { peer: self.peer.clone(), asked, named })
        }
    }

    /// Finds, changes or restores settings of the agent's host, and returns their state.
    ///
    /// # Errors
    /// [`AgentError`]: a knob is absent, or cannot be changed.
    pub fn settings(&mut self, request: SettingsRequest) -> Result<Vec<SettingFacts>, AgentError> {
        match self.ask(&Request::Settings(request))? {
            Reply::Settings(facts) => Ok(facts),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts, queries or ends loads of the agent's host, and returns their state. Their figures count from
    /// [`Agent::arm`] on.
    ///
    /// # Errors
    /// [`AgentError`]: a load cannot be started.
    pub fn loads(&mut self, request: LoadsRequest) -> Result<LoadsStatus, AgentError> {
        match self.ask(&Request::Loads(request))? {
            Reply::Loads(status) => Ok(status),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Announces a run of at most `planned`; `None` if its duration is unknown. Neither end sends until [`Agent::disarm`].
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn arm(&mut self, planned: Option<Nanos>) -> Result<(), AgentError> {
        let reply = self.connection.arm(planned);
        self.done(reply)
    }

    /// Ends the armed run. Returns how a reflector process of this agent died during it, if one did.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn disarm(&mut self) -> Result<Option<String>, AgentError> {
        let reply = self.connection.disarm();
        match self.accept(reply)? {
            Reply::Disarmed { reflector_died } => Ok(reflector_died),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The facts of the agent's host. The described interface is the one with `address`; `None`: that of the default
    /// route.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn facts(&mut self, address: Option<IpAddr>) -> Result<HostFacts, AgentError> {
        match self.ask(&Request::ReadFacts { address })? {
            Reply::Facts(facts) => Ok(*facts),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The clocks of the agent's host, and the offset of its CLOCK_MONOTONIC to that of this host.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn clocks(&mut self) -> Result<(ClockAnchor, ClockExchange), AgentError> {
        let mut best = self.clocks_once()?;
        for _ in 1..CLOCK_EXCHANGES {
            let next = self.clocks_once()?;
            if next.1.bound_ns < best.1.bound_ns {
                best = next;
            }
        }
        Ok(best)
    }

    fn clocks_once(&mut self) -> Result<(ClockAnchor, ClockExchange), AgentError> {
        let asked_ns = Monotonic.now().as_nanos();
        let reply = self.ask(&Request::ReadClocks)?;
        let answered_ns = Monotonic.now().as_nanos();
        match reply {
            Reply::Clocks(anchor) => Ok((anchor, ClockExchange::of(asked_ns, &anchor, answered_ns))),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts to sample the agent's host; the sampler avoids these CPUs.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(crate) fn start_sampling(&mut self, avoid_cpus: Vec<u16>) -> Result<(), AgentError> {
        let reply = self.connection.ask(&Request::StartSampling { avoid_cpus });
        self.done(reply)
    }

    /// Ends the sampling and fetches the samples.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(crate) fn collect_samples(&mut self) -> Result<RemoteSamples, AgentError> {
        let begun = Instant::now();
        let (mut collected, mut rows) = (RemoteSamples::default(), 0);
        loop {
            let page = match self.ask(&Request::CollectSamples)? {
                Reply::Samples(page) => page,
                other => return Err(self.unexpected(&other)),
            };
            let is_empty = page.samples.is_empty();
            rows += page.samples.iter().map(|sample| 1 + sample.cpus.len()).sum::<usize>();
            collected.samples.extend(page.samples);
            if page.left == 0 || is_empty || rows > SAMPLE_ROWS_MAX || begun.elapsed() > COLLECTION_TIMEOUT {
                collected.given_up = page.left;
                return Ok(collected);
            }
        }
    }

    /// Begins to trace the agent's host, and returns what that adds to one wake-up there, or why the agent cannot.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn start_tracing(&mut self) -> Result<Result<i64, Failure>, AgentError> {
        match self.ask(&Request::StartTracing) {
            Ok(Reply::Tracing { cost_ns }) => Ok(Ok(cost_ns)),
            Ok(other) => Err(self.unexpected(&other)),
            Err(AgentError::Refused { refusal, .. }) => Ok(Err(refusal)),
            Err(error) => Err(error),
        }
    }

    /// The text of the trace of these spans of the agent's clock, without those where it is not complete, or too long, and those
    /// that do not come in time.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(crate) fn read_trace(&mut self, spans: &[(Nanos, Nanos)]) -> Result<String, AgentError> {
        let (begun, mut all) = (Instant::now(), String::new());
        for (from_ns, to_ns) in spans.iter().copied() {
            if begun.elapsed() > COLLECTION_TIMEOUT {
                break;
            }
            match self.ask(&Request::ReadTrace { from_ns, to_ns })? {
                Reply::Trace { text } => {
                    let known = text.filter(|text| !text.is_empty());
                    all.extend(known.map(|text| span_comment(from_ns, to_ns) + &text));
                }
                other => return Err(self.unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// Lets the agent undo its changes, and ends it.
    ///
    /// # Errors
    /// [`AgentError`]: a change could not be undone, or the agent is lost.
    pub fn dismiss(mut self) -> Result<(), AgentError> {
        self.connection.expect_end();
        let reply = self.connection.ask(&Request::StopAll);
        self.done(reply)
    }

    /// Why the agent is lost; `None` if it is not. Sends nothing.
    pub fn lost(&mut self) -> Option<AgentError> {
        let reason = self.connection.lost()?;
        self.accept(Err(reason)).err()
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, AgentError> {
        let reply = self.connection.ask(request);
        self.accept(reply)
    }

    fn done(&mut self, reply: Result<Reply, DisconnectReason>) -> Result<(), AgentError> {
        match self.accept(reply)? {
            Reply::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// `reply`, unless the agent refused the request or is lost.
    fn accept(&mut self, reply: Result<Reply, DisconnectReason>) -> Result<Reply, AgentError> {
        let peer = self.peer.clone();
        match reply {
            Ok(Reply::Error(refusal)) => Err(AgentError::Refused { peer, refusal: refusal.shortened(REFUSAL_CHARS) }),
            Ok(reply) => Ok(reply),
            Err(DisconnectReason::Silent(within)) => Err(AgentError::Silent { peer, within }),
            Err(DisconnectReason::Format(format)) => Err(AgentError::Format { peer, format }),
            Err(DisconnectReason::Unknown(what)) => Err(AgentError::Unknown { peer, what }),
            Err(
                DisconnectReason::Malformed(FrameError::Truncated)
                | DisconnectReason::Gone
                | DisconnectReason::Interrupted,
            ) => {
                let (status, stderr) = exit_of(&mut self.process);
                Err(AgentError::Ended { peer, status: status.map(|status| status.to_string()), stderr })
            }
            Err(DisconnectReason::Malformed(error)) => Err(AgentError::Unknown { peer, what: error.to_string() }),
        }
    }

    fn unexpected(&self, reply: &Reply) -> AgentError {
        AgentError::Unknown { peer: self.peer.clone(), what: format!("an unexpected reply: {reply:?}") }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("peer", &self.peer).field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

/// Why no greeting was received, as far as the exit status of the command that connects shows.
fn never_greeted(peer: String, reason: DisconnectReason, process: &mut AgentProcess) -> AgentError {
    let instead = match reason {
        DisconnectReason::Interrupted => return AgentError::Interrupted { peer },
        DisconnectReason::Format(format) => return AgentError::Format { peer, format },
        DisconnectReason::Silent(within) => Some(format!("nothing was received for {} s", within.as_secs_f64())),
        DisconnectReason::Unknown(what) => return AgentError::Unknown { peer, what },
        DisconnectReason::Malformed(FrameError::Foreign { seen }) => Some(format!("instead came `{seen}`")),
        DisconnectReason::Malformed(error) => return AgentError::Unknown { peer, what: error.to_string() },
        DisconnectReason::Gone => None,
    };
    let (status, stderr) = exit_of(process);
    let over_ssh = peer.starts_with("ssh:");
    match status.and_then(|status| status.code()) {
        Some(COMMAND_NOT_FOUND) => AgentError::NotFound { peer, stderr },
        Some(SSH_FAILED) if over_ssh => AgentError::NotReached { peer, stderr },
        _ => {
            AgentError::NoGreeting { peer, status: status.map(|status| status.to_string()), stderr: stderr.or(instead) }
        }
    }
}

/// Exit status and standard error of the command that connects.
fn exit_of(process: &mut AgentProcess) -> (Option<ExitStatus>, Option<String>) {
    (process.wait(END_TIMEOUT), process.stderr())
}
