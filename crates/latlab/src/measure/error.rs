//! Why a measurement could not happen. Loss and lateness are not among the reasons: they are data.

use std::io;
use std::net::SocketAddr;

use latlab_sys::errno::explain;
use thiserror::Error;

use super::stream::StreamError;
use crate::agent::AgentError;
use crate::diagnostics::Explain;
use crate::host::HostError;
use crate::plan::Via;
use crate::recording::RecordingError;
use crate::session::{KeyError, LoadsError, ReflectorProcessError, SessionError};
use crate::transport::{SendModeError, TransportError, explain_broken};
use crate::units::{Nanos, human};

/// Why a measurement could not happen, or could not go on.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The reflector process of `local` or `lab`.
    #[error(transparent)]
    ReflectorProcess(#[from] ReflectorProcessError),
    /// The agent on the other host.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A load could not be made.
    #[error(transparent)]
    Loads(#[from] LoadsError),
    /// The reflector opens sessions, but counts no streams.
    #[error("`{peer}` does not count streams")]
    StreamUncounted {
        /// The reflector.
        peer: String,
    },
    /// The reflector fell silent.
    #[error("`{peer}` does not say any more what arrives")]
    StreamSilent {
        /// The reflector.
        peer: String,
        /// For so long.
        span: Nanos,
    },
    /// No rate passes without loss.
    #[error("cannot find a rate that reaches `{peer}` without loss")]
    NoCleanRate {
        /// The reflector.
        peer: String,
    },
    /// It opened a session, but not one in which it sends.
    #[error("`{peer}` sends no stream")]
    NoDownStream {
        /// The reflector.
        peer: String,
    },
    /// Every packet would be dropped there.
    #[error("`{peer}` takes no packets without a checksum")]
    ChecksumNeeded {
        /// The reflector.
        peer: String,
    },
    /// Packets cannot leave in the way that was asked for.
    #[error(transparent)]
    SendMode(#[from] SendModeError),
    /// The measuring thread could not be started or died.
    #[error("cannot run the measuring thread")]
    Thread(#[source] io::Error),
    /// The socket broke while measuring.
    #[error("the socket to `{peer}` broke while measuring")]
    Socket {
        /// The other end.
        peer: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A thread that measures cannot sleep.
    #[error("cannot sleep via `{}`", via.word())]
    Sleep {
        /// How it tried.
        via: Via,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A pin, a priority, a namespace.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A socket could not be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// No session with the other end.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// No fresh nonce or key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl MeasureError {
    /// Why a stream to `peer` cannot go on.
    pub(super) fn of_stream(error: StreamError, peer: SocketAddr) -> MeasureError {
        let peer = peer.to_string();
        match error {
            StreamError::Socket(source) => MeasureError::Socket { peer, source },
            StreamError::SendMode(error) => MeasureError::SendMode(error),
            StreamError::Silent { span } => MeasureError::StreamSilent { peer, span },
        }
    }

    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            MeasureError::ReflectorProcess(error) => error.explain().cause,
            MeasureError::Agent(error) => error.cause(),
            MeasureError::Thread(source) | MeasureError::Sleep { source, .. } => Some(explain(source)),
            MeasureError::Socket { source, .. } => Some(explain_broken(source)),
            MeasureError::StreamUncounted { .. } => Some("it opened a session, but answers no POLL".into()),
            MeasureError::StreamSilent { span, .. } => {
                Some(format!("no TALLY came for {}, and what nobody counts is not sent", human::span(*span)))
            }
            MeasureError::NoDownStream { .. } => Some("it grants a session, but no down-stream in it".into()),
            MeasureError::ChecksumNeeded { .. } => Some(
                "over IPv6 its socket must have asked for them (UDP_NO_CHECK6_RX), and it says that it has not".into(),
            ),
            MeasureError::NoCleanRate { .. } => Some("something was lost in every trial".into()),
            MeasureError::SendMode(error) => error.explain().cause,
            MeasureError::Host(error) => error.explain().cause,
            MeasureError::Loads(error) => error.explain().cause,
            MeasureError::Transport(error) => error.explain().cause,
            MeasureError::Session(error) => error.explain().cause,
            MeasureError::Key(error) => error.explain().cause,
            MeasureError::Recording(error) => error.explain().cause,
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            MeasureError::ReflectorProcess(error) => error.explain().hint,
            MeasureError::Agent(error) => error.hint(),
            MeasureError::Thread(_) => Some("free memory, or raise the limit of processes (`ulimit -u`)".into()),
            MeasureError::Sleep { .. } => Some("`--via clock_nanosleep` needs nothing but the clock".into()),
            MeasureError::Socket { .. } => Some("what was measured before is in the recording".into()),
            MeasureError::StreamUncounted { .. } => Some("run the same version of latlab on both hosts".into()),
            MeasureError::StreamSilent { .. } => Some("offer less, or see whether the reflector is still there".into()),
            MeasureError::NoDownStream { .. } => {
                Some("there: the same version of latlab, `serve --allow-down RATE` and a key".into())
            }
            MeasureError::ChecksumNeeded { .. } => {
                Some("run the same version of latlab on both hosts, or leave out `--checksum off`".into())
            }
            MeasureError::NoCleanRate { .. } => Some("`net=RATE` needs no such rate".into()),
            MeasureError::SendMode(error) => error.explain().hint,
            MeasureError::Host(error) => error.explain().hint,
            MeasureError::Loads(error) => error.explain().hint,
            MeasureError::Transport(error) => error.explain().hint,
            MeasureError::Session(error) => error.explain().hint,
            MeasureError::Key(error) => error.explain().hint,
            MeasureError::Recording(error) => error.explain().hint,
        }
    }

    /// The exit code of contract section 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            MeasureError::ReflectorProcess(error) => error.explain().exit_code,
            MeasureError::Agent(error) => error.exit_code(),
            MeasureError::SendMode(error) => error.explain().exit_code,
            MeasureError::Host(error) => error.explain().exit_code,
            MeasureError::Loads(error) => error.explain().exit_code,
            MeasureError::Transport(error) => error.explain().exit_code,
            MeasureError::Session(error) => error.explain().exit_code,
            MeasureError::Key(error) => error.explain().exit_code,
            MeasureError::Recording(error) => error.explain().exit_code,
            _ => 3,
        }
    }
}
