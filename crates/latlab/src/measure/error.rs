//! Why a measurement could not happen. Loss and lateness are not among the reasons: they are data.

use std::io;

use latlab_sys::errno::explain;
use thiserror::Error;

use crate::agent::AgentError;
use crate::host::HostError;
use crate::recording::RecordingError;
use crate::session::{KeyError, ReflectorProcessError, SessionError};
use crate::transport::refusal::TransportError;

/// Why a measurement could not happen, or could not go on.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The reflector process of `local` or `lab`.
    #[error(transparent)]
    ReflectorProcess(#[from] ReflectorProcessError),
    /// The agent on the other host.
    #[error(transparent)]
    Agent(#[from] AgentError),
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
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            MeasureError::Thread(source) | MeasureError::Socket { source, .. } => Some(explain(source)),
            MeasureError::ReflectorProcess(error) => error.cause(),
            MeasureError::Agent(error) => error.cause(),
            MeasureError::Host(error) => error.cause(),
            MeasureError::Transport(error) => error.cause(),
            MeasureError::Session(error) => error.cause(),
            MeasureError::Key(error) => error.cause(),
            MeasureError::Recording(error) => error.cause(),
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            MeasureError::ReflectorProcess(error) => error.hint(),
            MeasureError::Agent(error) => error.hint(),
            MeasureError::Thread(_) => Some("free memory, or raise the limit of processes (`ulimit -u`)".into()),
            MeasureError::Socket { .. } => Some("what was measured before is in the recording".into()),
            MeasureError::Host(error) => error.hint(),
            MeasureError::Transport(error) => error.hint(),
            MeasureError::Session(error) => error.hint(),
            MeasureError::Key(error) => error.hint(),
            MeasureError::Recording(error) => error.hint(),
        }
    }

    /// The exit code of contract section 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            MeasureError::ReflectorProcess(error) => error.exit_code(),
            MeasureError::Agent(error) => error.exit_code(),
            MeasureError::Host(error) => error.exit_code(),
            MeasureError::Transport(error) => error.exit_code(),
            MeasureError::Session(error) => error.exit_code(),
            MeasureError::Key(error) => error.exit_code(),
            MeasureError::Recording(error) => error.exit_code(),
            _ => 3,
        }
    }
}
