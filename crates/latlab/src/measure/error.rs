//! Why a measurement could not happen. Loss and lateness are not among the reasons: they are data.

use std::io;
use std::net::SocketAddr;

use latlab_sys::errno::explain;
use thiserror::Error;

use super::stream::StreamError;
use crate::agent::AgentError;
use crate::diagnostics::{Explain, Failure};
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
}

impl Explain for MeasureError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            MeasureError::Thread(source) => {
                failure.because(explain(source)).hint("free memory, or raise the limit of processes (`ulimit -u`)")
            }
            MeasureError::Sleep { source, .. } => {
                failure.because(explain(source)).hint("`--via clock_nanosleep` needs nothing but the clock")
            }
            MeasureError::Socket { source, .. } => {
                failure.because(explain_broken(source)).hint("what was measured before is in the recording")
            }
            MeasureError::StreamUncounted { .. } => failure
                .because("it opened a session, but answers no POLL")
                .hint("run the same version of latlab on both hosts"),
            MeasureError::StreamSilent { span, .. } => failure
                .because(format!("no TALLY came for {}, and what nobody counts is not sent", human::span(*span)))
                .hint("offer less, or see whether the reflector is still there"),
            MeasureError::NoDownStream { .. } => failure
                .because("it grants a session, but no down-stream in it")
                .hint("there: the same version of latlab, `serve --allow-down RATE` and a key"),
            MeasureError::ChecksumNeeded { .. } => failure
                .because(
                    "over IPv6 its socket must have asked for them (UDP_NO_CHECK6_RX), and it says that it has not",
                )
                .hint("run the same version of latlab on both hosts, or leave out `--checksum off`"),
            MeasureError::NoCleanRate { .. } => {
                failure.because("something was lost in every trial").hint("`net=RATE` needs no such rate")
            }
            MeasureError::ReflectorProcess(error) => error.explain(),
            MeasureError::Agent(error) => error.explain(),
            MeasureError::SendMode(error) => error.explain(),
            MeasureError::Host(error) => error.explain(),
            MeasureError::Loads(error) => error.explain(),
            MeasureError::Transport(error) => error.explain(),
            MeasureError::Session(error) => error.explain(),
            MeasureError::Key(error) => error.explain(),
            MeasureError::Recording(error) => error.explain(),
        }
    }
}
