//! latlab's own reflector, for `local`, `lab` and an agent: a process, because a thread would share the sender's
//! locks, caches and address space, and no real peer does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use latlab_sys::errno::explain;

use super::key::PreSharedKey;
use crate::plan::{EndSpec, TransportKind};
use crate::platform::ChildProcess;

/// The hidden command that a reflector process runs.
pub const REFLECTOR_COMMAND: &str = "reflector";

/// How long it may take to end of itself, after which it is killed: it owns nothing that must be put in order, and a stream
/// whose target fell silent after 1.5 s is over within 2 s.
const ENDS_WITHIN: Duration = Duration::from_millis(200);

/// How long it may take to get ready: to bind, to be placed, to lock its memory. A busy host needs tens of
/// milliseconds; an agent must not wait for a stuck one longer than its own end waits for the reply.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// What a reflector process is told, as one line of JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReflectorRequest {
    /// Where to answer; port 0: any free one.
    pub bind: SocketAddr,
    /// How its thread runs.
    pub end: EndSpec,
    /// The line of the pre-shared key, where there is one. The pipe is between parent and child alone (rule R7).
    pub key: Option<String>,
    /// Sessions that the command opens in all; with one alone the socket is connected to its sender.
    pub sessions: u16,
    /// How probes come.
    #[serde(default)]
    pub transport: TransportKind,
    /// Bits a second that a down-stream may have; 0: there is none, nor is there one without a key.
    #[serde(default)]
    pub down_bps: u64,
    /// Return every datagram unseen, for the bare loop, instead of answering sessions.
    pub bare: bool,
    /// The same over TCP, in messages of so many bytes.
    #[serde(default)]
    pub bare_tcp: Option<u32>,
    /// Add up every datagram, so many buffers with one call, for the bare stream.
    #[serde(default)]
    pub bare_stream: Option<u16>,
    /// The process that gives the order: the child ends with it.
    pub parent: u32,
}

impl ReflectorRequest {
    /// Answer `sessions` on a free port of `address`, under `key` where there is one.
    pub(crate) fn new(address: IpAddr, end: EndSpec, key: Option<&PreSharedKey>, sessions: u16) -> ReflectorRequest {
        ReflectorRequest {
            bind: SocketAddr::new(address, 0),
            end,
            key: key.map(PreSharedKey::line),
            sessions,
            transport: TransportKind::Udp,
            down_bps: 0,
            bare: false,
            bare_tcp: None,
            bare_stream: None,
            parent: std::process::id(),
        }
    }

    /// Be the far end of a bare loop on loopback with messages of so many bytes.
    pub(crate) fn bare(transport: TransportKind, size_bytes: u32, end: EndSpec) -> ReflectorRequest {
        let order = ReflectorRequest::new(Ipv4Addr::LOCALHOST.into(), end, None, 0);
        match transport {
            TransportKind::Udp => ReflectorRequest { bare: true, ..order },
            TransportKind::Tcp => ReflectorRequest { bare_tcp: Some(size_bytes), ..order },
        }
    }

    /// Be the far end of a bare stream on the loopback `address`.
    pub(crate) fn bare_stream(address: IpAddr, end: EndSpec, buffers_per_call: u16) -> ReflectorRequest {
        ReflectorRequest { bare_stream: Some(buffers_per_call), ..ReflectorRequest::new(address, end, None, 0) }
    }
}

/// What it says, as one line of JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReflectorEvent {
    /// It answers at this address until its standard input closes.
    Ready {
        /// The address, with the port that it got.
        address: SocketAddr,
        /// The receive buffer that its kernel gave; none where it did not ask.
        #[serde(default)]
        receive_buffer_bytes: Option<u32>,
    },
    /// It cannot.
    Refused {
        /// What was attempted, and why it failed.
        message: String,
        /// The cause.
        cause: Option<String>,
        /// What to do.
        hint: Option<String>,
    },
}

impl ReflectorEvent {
    /// As one line of JSON; plain data always becomes one.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A reflector process; ends when this is dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub(crate) struct ReflectorProcess {
    process: ChildProcess,
    address: SocketAddr,
    receive_buffer_bytes: Option<u32>,
}

impl ReflectorProcess {
    /// Starts one in the caller's network namespace and waits until it answers.
    pub(crate) fn start(order: &ReflectorRequest) -> Result<ReflectorProcess, ReflectorProcessError> {
        let (process, answer) = Self::spawn(order).map_err(ReflectorProcessError::Start)?;
        match serde_json::from_str(&answer) {
            Ok(ReflectorEvent::Ready { address, receive_buffer_bytes }) => {
                Ok(ReflectorProcess { process, address, receive_buffer_bytes })
            }
            Ok(ReflectorEvent::Refused { message, cause, hint }) => {
                Err(ReflectorProcessError::Refused { message, cause, hint })
            }
            Err(_) => Err(ReflectorProcessError::Start(io::Error::other("it ended before it was ready"))),
        }
    }

    fn spawn(order: &ReflectorRequest) -> io::Result<(ChildProcess, String)> {
        let mut process = ChildProcess::spawn(REFLECTOR_COMMAND, order, ENDS_WITHIN)?;
        let answer = process.hear(READY_WITHIN).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => io::Error::other("it was not ready after 5 s"),
            _ => error,
        })?;
        Ok((process, answer))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Where it answers.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The receive buffer that its kernel gave, bookkeeping included, where that is known.
    pub(crate) fn receive_buffer_bytes(&self) -> Option<u32> {
        self.receive_buffer_bytes
    }

    /// How it ended, if it has: by itself it never does.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.process.death()
    }
}

/// Why there is no reflector process.
#[derive(Debug, thiserror::Error)]
pub enum ReflectorProcessError {
    /// It did not come up.
    #[error("cannot start a reflector process")]
    Start(#[source] io::Error),
    /// It came up and refused.
    #[error("the reflector process refused: {message}")]
    Refused {
        /// What it said.
        message: String,
        /// Its cause.
        cause: Option<String>,
        /// Its hint.
        hint: Option<String>,
    },
}

impl ReflectorProcessError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            ReflectorProcessError::Start(source) => Some(explain(source)),
            ReflectorProcessError::Refused { cause, .. } => cause.clone(),
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            ReflectorProcessError::Start(_) => {
                Some("the latlab binary starts itself again: it must stay where it is and be executable".into())
            }
            ReflectorProcessError::Refused { hint, .. } => hint.clone(),
        }
    }

    /// The exit code: the world refuses.
    pub const fn exit_code(&self) -> u8 {
        3
    }
}
