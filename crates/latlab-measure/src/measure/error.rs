//! Errors of measuring. Lost and late probes are data, not errors.

use std::io;
use std::net::SocketAddr;

use latlab_sys::errno::explain;
use thiserror::Error;

use super::command::CommandError;
use super::stream::StreamError;
use crate::agent::AgentError;
use crate::diagnostics::{Explain, Failure};
use crate::host::HostError;
use crate::plan::{StampLayer, Via};
use crate::recording::RecordingError;
use crate::session::{KeyError, LoadsError, ReflectorProcessError, SessionError};
use crate::transport::{SendModeError, TransportError, explain_broken};
use crate::units::{Nanos, human};

/// Why a measurement failed to start, or broke off.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The reflector process of `local` or `lab`.
    #[error(transparent)]
    ReflectorProcess(#[from] ReflectorProcessError),
    /// The agent on the other host.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A load could not be started.
    #[error(transparent)]
    Loads(#[from] LoadsError),
    /// The reflector opened a session but answers no POLL.
    #[error("`{peer}` does not count streams")]
    StreamUncounted { peer: String },
    /// The reflector no longer answers POLLs.
    #[error("`{peer}` no longer reports what arrives")]
    StreamSilent {
        peer: String,
        /// The time without an answer.
        span: Nanos,
    },
    /// The run is of another tool, whose log was imported.
    #[error("cannot measure a run whose log was imported")]
    Imported,
    /// No rate without loss was found.
    #[error("cannot find a rate that reaches `{peer}` without loss")]
    NoCleanRate { peer: String },
    /// The reflector opened a session without a down-stream.
    #[error("`{peer}` sends no stream")]
    NoDownStream { peer: String },
    /// The reflector would drop packets without a checksum.
    #[error("`{peer}` takes no packets without a checksum")]
    ChecksumNeeded { peer: String },
    /// Packets cannot be sent in the requested mode.
    #[error(transparent)]
    SendMode(#[from] SendModeError),
    /// The measuring thread could not be started or died.
    #[error("cannot run the measuring thread")]
    Thread(#[source] io::Error),
    /// The socket failed during the measurement.
    #[error("the socket to `{peer}` broke while measuring")]
    Socket {
        peer: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The kernel does not stamp, or latlab cannot read the stamps.
    #[error("cannot take stamps of the {}", layer.word())]
    Stamps { layer: StampLayer, source: io::Error },
    /// The scheduler cannot be traced, or nothing keeps the trace.
    #[error("cannot trace what the CPUs run")]
    Trace(#[source] io::Error),
    /// A thread of `latlab wakeup` cannot sleep.
    #[error("cannot sleep via `{}`", via.word())]
    Sleep {
        via: Via,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A command cannot be executed, or failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Placement, a setting, or a namespace.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A socket could not be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// No session could be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// No random bytes for a nonce or key, or an invalid key file.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The recording could not be created or written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl MeasureError {
    /// The error of a stream to `peer`.
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
            MeasureError::Stamps { layer: StampLayer::Nic, .. } => failure
                .because("this version of latlab reads the stamps of kernels only")
                .hint("`--stamps kernel` divides the delay up to the drivers"),
            MeasureError::Stamps { source, .. } => failure.because(explain(source)).hint("leave out `--stamps`"),
            MeasureError::Trace(source) => failure.because(explain(source)).hint(match source.kind() {
                io::ErrorKind::InvalidInput => "leave out `--no-record`: the trace is a part of the recording",
                _ => "as root, or with `cap_sys_admin`, on a kernel with tracefs and its scheduler events",
            }),
            MeasureError::Sleep { source, .. } => {
                failure.because(explain(source)).hint("`--via clock_nanosleep` needs no file descriptor")
            }
            MeasureError::Socket { source, .. } => {
                failure.because(explain_broken(source)).hint("what was measured before is in the recording")
            }
            MeasureError::StreamUncounted { .. } => failure
                .because("it opened a session, but answers no POLL")
                .hint("run the same version of latlab on both hosts"),
            MeasureError::StreamSilent { span, .. } => failure
                .because(format!("no TALLY came for {}; packets that are not counted are not sent", human::span(*span)))
                .hint("use a lower `--rate`, or check that the reflector still runs"),
            MeasureError::NoDownStream { .. } => failure
                .because("it grants a session, but no down-stream in it")
                .hint("there: the same version of latlab, `serve --allow-down RATE` and a key"),
            MeasureError::ChecksumNeeded { .. } => failure
                .because(
                    "over IPv6 its socket must have asked for them (UDP_NO_CHECK6_RX), and it says that it has not",
                )
                .hint("run the same version of latlab on both hosts, or leave out `--checksum off`"),
            MeasureError::Imported => failure.hint("measure that target with `latlab ping`, `stream` or `wakeup`"),
            MeasureError::NoCleanRate { .. } => {
                failure.because("something was lost in every trial").hint("`net=RATE` needs no such rate")
            }
            MeasureError::ReflectorProcess(error) => error.explain(),
            MeasureError::Agent(error) => error.explain(),
            MeasureError::SendMode(error) => error.explain(),
            MeasureError::Command(error) => error.explain(),
            MeasureError::Host(error) => error.explain(),
            MeasureError::Loads(error) => error.explain(),
            MeasureError::Transport(error) => error.explain(),
            MeasureError::Session(error) => error.explain(),
            MeasureError::Key(error) => error.explain(),
            MeasureError::Recording(error) => error.explain(),
        }
    }
}
