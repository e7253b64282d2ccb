//! An agent that latlab has started on another host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::AgentError;
use super::conversation::{AgentConnection, AgentStreams, DisconnectReason};
use super::errand::{self, AgentProcess};
use super::far_loads::{LoadsRequest, LoadsStatus};
use super::far_settings::SettingsRequest;
use super::frame::FrameError;
use super::message::{Greeting, Reply, Request};
use crate::facts::SettingFacts;
use crate::plan::{PathSpec, Target};
use crate::session::ReflectorRequest;
use crate::units::Nanos;

/// How long the command that connects may take to end after its streams did.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Exit code of a shell for an unknown command (POSIX, section 2.8.2).
const NO_SUCH_COMMAND: i32 = 127;
/// What ssh answers where it failed itself.
const SSH_FAILED: i32 = 255;

/// An agent on the other host. What it did there is undone when this is dropped; [`Agent::dismiss`] reports whether it was.
pub struct Agent {
    // The order of fields is the order of the end: first the streams, then the command that waits for their end.
    conversation: AgentConnection,
    errand: AgentProcess,
    greeting: Greeting,
    peer: String,
}

impl Agent {
    /// Starts the agent of `target` and waits for its greeting. The calling thread must live as long as the agent
    /// shall. `stop` gives up waiting, and is set when the agent is lost; threads stay off the CPUs in `measuring`.
    ///
    /// # Errors
    /// [`AgentError`]: the host cannot be reached, latlab is not there, or is another version.
    pub fn start(
        target: &Target,
        path: &PathSpec,
        measuring: &[u16],
        stop: &Arc<AtomicBool>,
    ) -> Result<Agent, AgentError> {
        let peer = target.to_string();
        // Over ssh the measured path is the one that ssh took by default: then it has its family.
        let family = path.family.filter(|_| path.peer_address.is_none());
        let words = errand::words(target, family).unwrap_or_default();
        let program = words.first().cloned().unwrap_or_default();
        let (mut errand, to, from) =
            AgentProcess::start(&words).map_err(|source| AgentError::Start { peer: peer.clone(), program, source })?;
        let wires = AgentStreams {
            from: Box::new(from),
            to: Box::new(to),
            stop: Arc::clone(stop),
            measuring: measuring.to_vec(),
        };
        match AgentConnection::begin(wires) {
            Ok((conversation, greeting)) => Ok(Agent { conversation, errand, greeting, peer }),
            Err(quiet) => Err(never_greeted(peer, quiet, &mut errand)),
        }
    }

    /// Where probes go: the address asked for, or the one that ssh reached.
    ///
    /// # Errors
    /// Neither is known.
    pub fn address(&self, path: &PathSpec) -> Result<IpAddr, AgentError> {
        path.peer_address.or(self.greeting.reached).ok_or_else(|| AgentError::NoAddress { peer: self.peer.clone() })
    }

    /// Who it is.
    pub const fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Starts a reflector there, on the address of `order` alone; where it answers.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn start_reflector(&mut self, order: ReflectorRequest) -> Result<SocketAddr, AgentError> {
        let ReflectorRequest { bind, end, key, sessions, down_bps, transport, .. } = order;
        let request = Request::StartReflector { bind: bind.ip(), end, key, sessions, down_bps, transport };
        match self.ask(&request)? {
            Reply::Reflector { address } => Ok(address),
            other => Err(self.unknown(&other)),
        }
    }

    /// Settings of that host: found, turned, put back; what stands there then.
    ///
    /// # Errors
    /// [`AgentError`]: a knob is absent, or refuses.
    pub fn settings(&mut self, order: SettingsRequest) -> Result<Vec<SettingFacts>, AgentError> {
        match self.ask(&Request::Settings(order))? {
            Reply::Settings(facts) => Ok(facts),
            other => Err(self.unknown(&other)),
        }
    }

    /// Loads of that host; how they are then. Their figures count from [`Agent::arm`] on.
    ///
    /// # Errors
    /// [`AgentError`]: a load cannot be made.
    pub fn loads(&mut self, order: LoadsRequest) -> Result<LoadsStatus, AgentError> {
        match self.ask(&Request::Loads(order))? {
            Reply::Loads(state) => Ok(state),
            other => Err(self.unknown(&other)),
        }
    }

    /// A run of `planned` at most begins: from now on both ends are silent. `None` if the duration is unknown.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn arm(&mut self, planned: Option<Nanos>) -> Result<(), AgentError> {
        let reply = self.conversation.arm(planned);
        self.done(reply)
    }

    /// The run is over. How a reflector process of this agent died meanwhile, if one did.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn disarm(&mut self) -> Result<Option<String>, AgentError> {
        let reply = self.conversation.disarm();
        match self.told(reply)? {
            Reply::Disarmed { reflector_died } => Ok(reflector_died),
            other => Err(self.unknown(&other)),
        }
    }

    /// Has everything undone there and lets the agent go.
    ///
    /// # Errors
    /// [`AgentError`]: something could not be undone, or the agent is lost.
    pub fn dismiss(mut self) -> Result<(), AgentError> {
        self.conversation.leave();
        let reply = self.conversation.ask(&Request::StopAll);
        self.done(reply)
    }

    /// Why it is lost, if it is. Asks nothing.
    pub fn lost(&mut self) -> Option<AgentError> {
        let quiet = self.conversation.lost()?;
        self.told(Err(quiet)).err()
    }

    /// Asks; what the agent refuses is an error.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Reply, AgentError> {
        let reply = self.conversation.ask(request);
        self.told(reply)
    }

    fn done(&mut self, reply: Result<Reply, DisconnectReason>) -> Result<(), AgentError> {
        match self.told(reply)? {
            Reply::Done => Ok(()),
            other => Err(self.unknown(&other)),
        }
    }

    fn told(&mut self, reply: Result<Reply, DisconnectReason>) -> Result<Reply, AgentError> {
        let peer = || self.peer.clone();
        match reply {
            Ok(Reply::Error(refusal)) => Err(AgentError::Refused { peer: peer(), refusal }),
            Ok(reply) => Ok(reply),
            Err(DisconnectReason::Silent(within)) => Err(AgentError::Silent { peer: peer(), within }),
            Err(DisconnectReason::Format(format)) => Err(AgentError::Format { peer: peer(), format }),
            Err(DisconnectReason::Unknown(what)) => Err(AgentError::Unknown { peer: peer(), what }),
            Err(
                DisconnectReason::Malformed(FrameError::Half) | DisconnectReason::Gone | DisconnectReason::Interrupted,
            ) => {
                let (status, told) = last_words(&mut self.errand);
                Err(AgentError::Ended { peer: peer(), status: status.map(|status| status.to_string()), told })
            }
            Err(DisconnectReason::Malformed(error)) => {
                Err(AgentError::Unknown { peer: peer(), what: error.to_string() })
            }
        }
    }

    pub(super) fn unknown(&self, reply: &Reply) -> AgentError {
        AgentError::Unknown { peer: self.peer.clone(), what: format!("a reply to nothing: {reply:?}") }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("peer", &self.peer).field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

/// Why no greeting came, as far as the command that connects reports.
fn never_greeted(peer: String, quiet: DisconnectReason, errand: &mut AgentProcess) -> AgentError {
    let seen = match quiet {
        DisconnectReason::Interrupted => return AgentError::Interrupted { peer },
        DisconnectReason::Format(format) => return AgentError::Format { peer, format },
        DisconnectReason::Silent(within) => Some(format!("nothing came for {} s", within.as_secs_f64())),
        DisconnectReason::Unknown(what) => return AgentError::Unknown { peer, what },
        DisconnectReason::Malformed(FrameError::Foreign { seen }) => Some(format!("instead came `{seen}`")),
        DisconnectReason::Malformed(error) => return AgentError::Unknown { peer, what: error.to_string() },
        DisconnectReason::Gone => None,
    };
    let (status, told) = last_words(errand);
    let over_ssh = peer.starts_with("ssh:");
    match status.and_then(|status| status.code()) {
        Some(NO_SUCH_COMMAND) => AgentError::NotFound { peer, told },
        Some(SSH_FAILED) if over_ssh => AgentError::NotReached { peer, told },
        _ => AgentError::NoGreeting { peer, status: status.map(|status| status.to_string()), told: told.or(seen) },
    }
}

fn last_words(errand: &mut AgentProcess) -> (Option<std::process::ExitStatus>, Option<String>) {
    let status = errand.ended(ENDS_WITHIN);
    (status, errand.told())
}
