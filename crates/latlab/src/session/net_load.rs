//! The process of a network load, as the measuring process uses it: its request, its events, its end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use latlab_sys::errno::explain;
use serde::{Deserialize, Serialize};

use crate::diagnostics::{Explain, Failure};
use crate::facts::StreamReport;
use crate::plan::{PathSpec, StreamSpec};
use crate::platform::ChildProcess;
use crate::units::Nanos;

/// The hidden command that such a process runs.
pub const NET_LOAD_COMMAND: &str = "net-load";

/// The line on its standard input with which its figures begin; they end when standard input closes.
pub const BEGIN_LINE: &str = "begin";

/// Opening a session, the search and the first window take 15 s at most; a busy host may take longer.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// The last tally and the end of the session take 2 s at most.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The request to the process of a network load: one line of JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct NetLoadRequest {
    /// The reflector that counts.
    pub peer: SocketAddr,
    /// Local end and socket options.
    pub path: PathSpec,
    /// The load.
    pub stream: StreamSpec,
    /// The line of the pre-shared key, if there is one (rule R7: only parent and child have the pipe).
    pub key: Option<String>,
    /// The longest duration of the load; `None`: as long as the reflector permits.
    pub lasting_ns: Option<Nanos>,
    /// The requesting process: the child ends with it.
    pub parent: u32,
}

/// An event of the process: one line of JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetLoadEvent {
    /// The load has reached its rate.
    Begun {
        /// The rate without loss, in bits a second, if it was searched for.
        searched_bps: Option<f64>,
    },
    /// The load cannot be started, or broke off.
    Refused(Failure),
    /// The load has ended as requested.
    Ended {
        /// Its figures.
        report: Box<StreamReport>,
    },
}

impl NetLoadEvent {
    /// The event as one line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A running network load. It ends when this is dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub struct NetLoad {
    process: ChildProcess,
    spec: StreamSpec,
    searched_bps: Option<f64>,
}

impl NetLoad {
    /// Starts the load in the caller's network namespace and waits until it has reached its rate; `heartbeat` is called
    /// meanwhile. `None`: `stop` was set before. The calling thread must outlive the load.
    ///
    /// # Errors
    /// Its process did not start, or refused.
    pub fn start(
        request: &NetLoadRequest,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Option<NetLoad>, NetLoadError> {
        let spawned = ChildProcess::spawn(NET_LOAD_COMMAND, request, REPORT_TIMEOUT);
        let mut process = spawned.map_err(NetLoadError::Process)?;
        let line = process.hear_unless(stop, BEGIN_TIMEOUT, heartbeat).map_err(NetLoadError::Process)?;
        match line.map(|line| parse(&line)).transpose()? {
            None => Ok(None),
            Some(NetLoadEvent::Begun { searched_bps }) => {
                Ok(Some(NetLoad { process, spec: request.stream.clone(), searched_bps }))
            }
            Some(other) => Err(unexpected(other)),
        }
    }

    /// The rate without loss, in bits a second, if it was searched for.
    pub fn searched_bps(&self) -> Option<f64> {
        self.searched_bps
    }

    /// The requested rate in bits a second, as far as it is known before the report; `None`: as fast as possible.
    pub fn offered_bps(&self) -> Option<f64> {
        self.spec.offered_bps(self.searched_bps)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Begins the interval that is reported.
    pub fn begin(&mut self) {
        self.process.say(BEGIN_LINE);
    }

    /// Ends the load and the reported interval.
    pub fn end(&mut self) {
        self.process.dismiss();
    }

    /// Ends the load, if [`end`](NetLoad::end) has not, and waits for its report.
    ///
    /// # Errors
    /// It broke off before, or does not report.
    pub fn finish(mut self) -> Result<StreamReport, NetLoadError> {
        self.end();
        let line = self.process.hear(REPORT_TIMEOUT);
        match line.as_ref().ok().and_then(|line| serde_json::from_str(line).ok()) {
            Some(NetLoadEvent::Ended { report }) => Ok(*report),
            Some(other) => Err(unexpected(other)),
            None => Err(NetLoadError::Process(io::Error::other(self.process.silence(&line)))),
        }
    }
}

fn parse(line: &str) -> Result<NetLoadEvent, NetLoadError> {
    serde_json::from_str(line).map_err(|_| NetLoadError::Process(io::Error::other("it ended without a word")))
}

fn unexpected(event: NetLoadEvent) -> NetLoadError {
    match event {
        NetLoadEvent::Refused(failure) => NetLoadError::Refused(failure),
        _ => NetLoadError::Process(io::Error::other("it spoke out of turn")),
    }
}

/// Why a network load cannot be started, or has ended early.
#[derive(Debug, thiserror::Error)]
pub enum NetLoadError {
    /// Its process did not start, or does not answer.
    #[error("cannot hold the network load")]
    Process(#[source] io::Error),
    /// Its process refused, or broke off.
    #[error("cannot hold the network load: {0}")]
    Refused(Failure),
}

impl NetLoadError {
    /// Why a running load has ended, in one line.
    pub(super) fn reason(&self) -> String {
        match self {
            NetLoadError::Process(source) => explain(source),
            NetLoadError::Refused(Failure { message, cause: Some(cause), .. }) => format!("{message}: {cause}"),
            NetLoadError::Refused(Failure { message, cause: None, .. }) => message.clone(),
        }
    }
}

impl Explain for NetLoadError {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            NetLoadError::Process(source) => failure
                .because(explain(source))
                .hint("the latlab binary starts itself again: it must stay where it is and be executable"),
            NetLoadError::Refused(Failure { cause, hint, .. }) => {
                Failure { cause: cause.clone(), hint: hint.clone(), ..failure }
            }
        }
    }
}
