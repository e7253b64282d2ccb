//! The process of a network load, seen from the one that measures: started, awaited, told to end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use latlab_sys::errno::explain;
use serde::{Deserialize, Serialize};

use crate::facts::StreamReport;
use crate::plan::{PathSpec, StreamSpec};
use crate::platform::ChildProcess;
use crate::units::Nanos;

/// The hidden command that such a process runs.
pub const NET_LOAD_COMMAND: &str = "net-load";

/// Said on its standard input when its figures begin; that it closes says the end.
pub const BEGIN_WORD: &str = "begin";

/// Opening a session, the search and the first window take 15 s at most; a busy host may take longer.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);
/// The last tally and the end of the session take 2 s at most.
const REPORTS_WITHIN: Duration = Duration::from_secs(5);

/// What the process of a network load is told, as one line of JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct NetLoadRequest {
    /// Who counts.
    pub peer: SocketAddr,
    /// How packets leave.
    pub path: PathSpec,
    /// What.
    pub stream: StreamSpec,
    /// The line of the pre-shared key, where there is one (rule R7: the pipe is between parent and child alone).
    pub key: Option<String>,
    /// How long the load may last; none: as long as the reflector allows.
    pub lasting_ns: Option<Nanos>,
    /// The process that gives the order: the child ends with it.
    pub parent: u32,
}

/// What the process says, one line of JSON each on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetLoadEvent {
    /// The load is there.
    Begun {
        /// The rate that the path carries without loss, where that was searched for.
        searched_bps: Option<f64>,
    },
    /// It cannot be, or broke off.
    Refused {
        /// What was attempted, and why it failed.
        message: String,
        /// The cause.
        cause: Option<String>,
        /// What to do.
        hint: Option<String>,
    },
    /// It is over, as it was told.
    Ended {
        /// What was sent and what arrived.
        report: Box<StreamReport>,
    },
}

impl NetLoadEvent {
    /// As one line of JSON; plain data always becomes one.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A network load that is there. Ends when this is dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub struct NetLoad {
    process: ChildProcess,
    spec: StreamSpec,
    searched_bps: Option<f64>,
}

impl NetLoad {
    /// Starts the load in the caller's network namespace and waits until it is there; `heartbeat` is called meanwhile.
    /// None: `stop` was set before. The calling thread must live as long as the load shall.
    ///
    /// # Errors
    /// It did not come up, or refused.
    pub fn start(
        order: &NetLoadRequest,
        stop: &AtomicBool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Option<NetLoad>, NetLoadError> {
        let spawned = ChildProcess::spawn(NET_LOAD_COMMAND, order, REPORTS_WITHIN);
        let mut process = spawned.map_err(NetLoadError::Process)?;
        let heard = process.hear_unless(stop, BEGINS_WITHIN, heartbeat).map_err(NetLoadError::Process)?;
        match heard.map(|line| understood(&line)).transpose()? {
            None => Ok(None),
            Some(NetLoadEvent::Begun { searched_bps }) => {
                Ok(Some(NetLoad { process, spec: order.stream.clone(), searched_bps }))
            }
            Some(other) => Err(unexpected(other)),
        }
    }

    /// The rate that the path carries without loss, in bits a second, where that was searched for.
    pub fn searched_bps(&self) -> Option<f64> {
        self.searched_bps
    }

    /// The rate asked for, as far as it is known before the report; none: as fast as sends go.
    pub fn offered_bps(&self) -> Option<f64> {
        self.spec.offered_bps(self.searched_bps)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// From now on the load's figures count.
    pub fn begin(&mut self) {
        self.process.say(BEGIN_WORD);
    }

    /// Tells the load to end: its figures end here.
    pub fn end(&mut self) {
        self.process.dismiss();
    }

    /// Tells the load to end, where that was not said, and awaits its report.
    ///
    /// # Errors
    /// It broke off before, or says nothing.
    pub fn finish(mut self) -> Result<StreamReport, NetLoadError> {
        self.end();
        let heard = self.process.hear(REPORTS_WITHIN);
        match heard.as_ref().ok().and_then(|line| serde_json::from_str(line).ok()) {
            Some(NetLoadEvent::Ended { report }) => Ok(*report),
            Some(other) => Err(unexpected(other)),
            None => Err(NetLoadError::Process(io::Error::other(self.process.silence(&heard)))),
        }
    }
}

fn understood(line: &str) -> Result<NetLoadEvent, NetLoadError> {
    serde_json::from_str(line).map_err(|_| NetLoadError::Process(io::Error::other("it ended without a word")))
}

fn unexpected(news: NetLoadEvent) -> NetLoadError {
    match news {
        NetLoadEvent::Refused { message, cause, hint } => NetLoadError::Refused { message, cause, hint },
        _ => NetLoadError::Process(io::Error::other("it spoke out of turn")),
    }
}

/// Why there is no network load.
#[derive(Debug, thiserror::Error)]
pub enum NetLoadError {
    /// Its process did not come up, or fell silent.
    #[error("cannot hold the network load")]
    Process(#[source] io::Error),
    /// It refused, or broke off.
    #[error("cannot hold the network load: {message}")]
    Refused {
        /// What it said.
        message: String,
        /// Its cause.
        cause: Option<String>,
        /// Its hint.
        hint: Option<String>,
    },
}

impl NetLoadError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            NetLoadError::Process(source) => Some(explain(source)),
            NetLoadError::Refused { cause, .. } => cause.clone(),
        }
    }

    /// Why a load that was there ended, in one line.
    pub(super) fn reason(&self) -> String {
        match self {
            NetLoadError::Process(source) => explain(source),
            NetLoadError::Refused { message, cause: Some(cause), .. } => format!("{message}: {cause}"),
            NetLoadError::Refused { message, cause: None, .. } => message.clone(),
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            NetLoadError::Process(_) => {
                Some("the latlab binary starts itself again: it must stay where it is and be executable".into())
            }
            NetLoadError::Refused { hint, .. } => hint.clone(),
        }
    }

    /// The exit code: the world refuses.
    pub const fn exit_code(&self) -> u8 {
        3
    }
}
