//! The process of latlab's own reflector, for the targets `local` and `lab` and for an agent. A thread would share
//! locks, caches and address space with the sender, which no real peer does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use latlab_sys::errno::explain;

use crate::diagnostics::{Explain, Failure};
use crate::facts::XdpFacts;
use crate::plan::{DdsSpec, EndSpec, TransportKind};
use crate::platform::ChildProcess;
use crate::session::key::PreSharedKey;

/// The hidden command that a reflector process runs.
pub(crate) const REFLECTOR_COMMAND: &str = "reflector";

/// The time to end by itself, after which it is killed: it has nothing to restore, and a stream whose target is silent after
/// 1.5 s must end within 2 s.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// The time to bind, to set its scheduling and to lock its memory. A busy host needs tens of milliseconds; an agent must not
/// wait for a stuck process longer than the other end waits for its reply.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// The request to a reflector process: one line of JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReflectorRequest {
    /// The address to answer at; port 0: the kernel's choice.
    pub bind: SocketAddr,
    pub end: EndSpec,
    /// The line of the pre-shared key, if there is one (rule R7: only parent and child have the pipe).
    pub key: Option<String>,
    /// Sessions that the command opens in all; with one session the socket is dedicated to its sender.
    pub sessions: u16,
    #[serde(default)]
    pub transport: TransportKind,
    /// Domain and policies over DDS.
    #[serde(default)]
    pub dds: DdsSpec,
    /// The queue of an AF_XDP socket.
    #[serde(default)]
    pub queue: u32,
    /// A program in the network driver answers, in front of the socket.
    #[serde(default)]
    pub in_driver: bool,
    /// The permitted rate of a down-stream, in bits a second; 0: no down-streams.
    #[serde(default)]
    pub down_bps: u64,
    /// Return every datagram unchanged, for the bare loop, instead of answering sessions.
    #[serde(default)]
    pub bare: bool,
    /// The requesting process: the child ends with it.
    pub parent: u32,
}

impl ReflectorRequest {
    /// Answer `sessions` on a free port of `address`, under `key` if there is one.
    pub fn new(address: IpAddr, end: EndSpec, key: Option<&PreSharedKey>, sessions: u16) -> ReflectorRequest {
        ReflectorRequest {
            bind: SocketAddr::new(address, 0),
            end,
            key: key.map(PreSharedKey::line),
            sessions,
            transport: TransportKind::default(),
            dds: DdsSpec::default(),
            queue: 0,
            in_driver: false,
            down_bps: 0,
            bare: false,
            parent: std::process::id(),
        }
    }

    /// Be the far end of a bare loop on loopback.
    pub(crate) fn bare(end: EndSpec) -> ReflectorRequest {
        ReflectorRequest { bare: true, ..ReflectorRequest::new(Ipv4Addr::LOCALHOST.into(), end, None, 0) }
    }
}

/// An event of the process: one line of JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReflectorEvent {
    /// It answers until its standard input closes.
    Ready {
        address: SocketAddr,
        /// The granted receive buffer in bytes; `None` if none was requested.
        #[serde(default)]
        receive_buffer_bytes: Option<u32>,
        /// Its AF_XDP socket or its program; `None` without either.
        #[serde(default)]
        xdp: Option<XdpFacts>,
    },
    Refused(Failure),
}

impl ReflectorEvent {
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A reflector process. It ends when this is dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub(crate) struct ReflectorProcess {
    process: ChildProcess,
    address: SocketAddr,
    receive_buffer_bytes: Option<u32>,
    xdp: Option<XdpFacts>,
}

impl ReflectorProcess {
    /// Starts a reflector in the caller's network namespace and waits until it is ready.
    pub(crate) fn start(request: &ReflectorRequest) -> Result<ReflectorProcess, ReflectorProcessError> {
        let (process, event) = Self::spawn(request).map_err(ReflectorProcessError::Start)?;
        match serde_json::from_str(&event) {
            Ok(ReflectorEvent::Ready { address, receive_buffer_bytes, xdp }) => {
                Ok(ReflectorProcess { process, address, receive_buffer_bytes, xdp })
            }
            Ok(ReflectorEvent::Refused(failure)) => Err(ReflectorProcessError::Refused(failure)),
            Err(_) => Err(ReflectorProcessError::Start(io::Error::other("it ended before it was ready"))),
        }
    }

    fn spawn(request: &ReflectorRequest) -> io::Result<(ChildProcess, String)> {
        let mut process = ChildProcess::spawn(REFLECTOR_COMMAND, request, END_TIMEOUT)?;
        let event = process.receive_line(READY_TIMEOUT).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => io::Error::other("it was not ready after 5 s: the CPUs may be busy"),
            _ => error,
        })?;
        Ok((process, event))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The granted receive buffer in bytes, the kernel's bookkeeping included; `None` if unknown.
    pub(crate) fn receive_buffer_bytes(&self) -> Option<u32> {
        self.receive_buffer_bytes
    }

    /// Its AF_XDP socket, or its program in the network driver; `None` without either.
    pub(crate) fn xdp(&self) -> Option<&XdpFacts> {
        self.xdp.as_ref()
    }

    /// How it ended, if it has ended without a request.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.process.death()
    }
}

/// Why a reflector process cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ReflectorProcessError {
    #[error("cannot start a reflector process")]
    Start(#[source] io::Error),
    #[error("the reflector process refused: {0}")]
    Refused(Failure),
}

impl Explain for ReflectorProcessError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            ReflectorProcessError::Start(source) => failure
                .because(explain(source))
                .hint("the latlab binary starts itself again: it must stay where it is and be executable"),
            ReflectorProcessError::Refused(Failure { cause, hint, exit_code, .. }) => {
                Failure { cause: cause.clone(), hint: hint.clone(), exit_code: *exit_code, ..failure }
            }
        }
    }
}
