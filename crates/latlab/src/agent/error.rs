//! Errors of reaching an agent and of losing it.

use std::io;
use std::time::Duration;

use latlab_sys::errno::explain;
use serde::{Deserialize, Serialize};

use super::frame::FORMAT;

use crate::diagnostics::{Explain, Failure};
use crate::session::ReflectorProcessError;

/// Why an agent does not do what it should. `peer` is the target as typed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The program that connects cannot be started.
    #[error("cannot start `{program}` to reach `{peer}`")]
    Start {
        /// The target.
        peer: String,
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// ssh did not get there.
    #[error("cannot reach `{peer}` with ssh")]
    NotReached {
        /// The target.
        peer: String,
        /// What ssh said.
        told: Option<String>,
    },
    /// latlab is not installed there.
    #[error("cannot find latlab on `{peer}`")]
    NotFound {
        /// The target.
        peer: String,
        /// What the shell there said.
        told: Option<String>,
    },
    /// It ended, or the connection did.
    #[error("lost the agent of `{peer}`")]
    Ended {
        /// The target.
        peer: String,
        /// How the command that connects ended; none: it runs still.
        status: Option<String>,
        /// What it said last.
        told: Option<String>,
    },
    /// No greeting came.
    #[error("no agent answers on `{peer}`")]
    NoGreeting {
        /// The target.
        peer: String,
        /// How the command that connects ended; none: it runs still.
        status: Option<String>,
        /// What it said last, or what came instead.
        told: Option<String>,
    },
    /// No reply came.
    #[error("no word from the agent of `{peer}`")]
    Silent {
        /// The target.
        peer: String,
        /// For so long.
        within: Duration,
    },
    /// Another version.
    #[error("the agent of `{peer}` speaks format `{format}`")]
    Format {
        /// The target.
        peer: String,
        /// Its format.
        format: u16,
    },
    /// What it says is not in the document.
    #[error("cannot understand the agent of `{peer}`")]
    Unknown {
        /// The target.
        peer: String,
        /// What was wrong with it.
        what: String,
    },
    /// It cannot do what was asked.
    #[error("`{peer}` refuses: {}", refusal.message)]
    Refused {
        /// The target.
        peer: String,
        /// What it said.
        refusal: RequestFailure,
    },
    /// Nobody knows where to send probes.
    #[error("cannot tell at which address to measure `{peer}`")]
    NoAddress {
        /// The target.
        peer: String,
    },
    /// Somebody interrupted.
    #[error("interrupted before the agent of `{peer}` greeted")]
    Interrupted {
        /// The target.
        peer: String,
    },
}

/// The hint after the agent of `peer` was lost: how its host is restored.
fn restoring(peer: &str) -> String {
    let restore = match peer.strip_prefix("ssh:") {
        Some(host) => format!("`ssh {host} latlab doctor --restore`"),
        None => "`latlab doctor --restore` on that host".into(),
    };
    format!(
        "what was measured before is in the recording; the agent puts its host in order by itself, 5 s after the latest \
         end that the run could have; one that was killed cannot: {restore} does it then, and so does the next latlab \
         there"
    )
}

impl Explain for AgentError {
    fn explain(&self) -> Failure {
        const SAME_VERSION: &str = "run the same version of latlab on both hosts";
        let failure = Failure::world(self);
        match self {
            AgentError::Start { source, .. } => {
                failure.because(explain(source)).hint("it must be installed here, and in the path")
            }
            AgentError::NotReached { peer, told } => {
                let host = peer.trim_start_matches("ssh:");
                Failure { cause: told.clone(), ..failure }.hint(format!(
                    "`ssh -o BatchMode=yes {host} true` must work and ask nothing; see ssh-add(1) and ~/.ssh/config"
                ))
            }
            AgentError::NotFound { peer, told } => {
                Failure { cause: told.clone(), ..failure }.hint(match peer.strip_prefix("ssh:") {
                    Some(host) => format!(
                        "install it there, in the path of shells that are not logged in to, or say where it is: \
                         `'cmd:ssh {host} /path/to/latlab agent --stdio' --peer-addr ADDR`"
                    ),
                    None => "the command must end in `latlab agent --stdio` with a latlab that is there".into(),
                })
            }
            AgentError::NoGreeting { status, told, .. } => {
                Failure { cause: told.clone().or_else(|| status.clone()), ..failure }.hint(
                    "the command must connect to `latlab agent --stdio` of the same version, and leave its bytes alone",
                )
            }
            AgentError::Ended { peer, status, told } => {
                Failure { cause: told.clone().or_else(|| status.clone()), ..failure }.hint(restoring(peer))
            }
            AgentError::Silent { peer, within } => {
                failure.because(format!("no reply for {} s", within.as_secs_f64())).hint(restoring(peer))
            }
            AgentError::Format { .. } => failure
                .because(format!("this is latlab {}, format {FORMAT}", env!("CARGO_PKG_VERSION")))
                .hint(SAME_VERSION),
            AgentError::Unknown { what, .. } => failure.because(what).hint(SAME_VERSION),
            AgentError::Refused { refusal, .. } => Failure {
                cause: refusal.cause.clone(),
                hint: refusal.hint.clone(),
                exit_code: refusal.exit_code.clamp(2, 3),
                ..failure
            },
            AgentError::NoAddress { .. } => Failure::request(self)
                .because("its sshd does not tell at which address ssh reached it")
                .hint("add `--peer-addr ADDR`"),
            AgentError::Interrupted { .. } => failure,
        }
    }
}

/// The failure of a request, with the four parts of every failure of latlab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFailure {
    /// What was attempted on what.
    pub message: String,
    /// Why it failed.
    pub cause: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// 2: the request is wrong. 3: the world refuses.
    pub exit_code: u8,
}

impl RequestFailure {
    /// The far host refuses, for `cause`.
    pub(super) fn world(message: impl Into<String>, cause: impl Into<String>) -> RequestFailure {
        RequestFailure { message: message.into(), cause: Some(cause.into()), hint: None, exit_code: 3 }
    }
}

impl From<ReflectorProcessError> for RequestFailure {
    fn from(error: ReflectorProcessError) -> RequestFailure {
        let Failure { message, cause, hint, exit_code } = error.explain();
        let message = match error {
            ReflectorProcessError::Refused(refused) => refused.message,
            ReflectorProcessError::Start(_) => message,
        };
        RequestFailure { message, cause, hint, exit_code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_agent_may_be_dead_and_then_others_restore() {
        for (peer, restore) in [
            ("ssh:pi@far", "`ssh pi@far latlab doctor --restore`"),
            ("cmd:nsenter …", "`latlab doctor --restore` on that host"),
        ] {
            for error in [
                AgentError::Ended { peer: peer.into(), status: None, told: None },
                AgentError::Silent { peer: peer.into(), within: Duration::from_secs(10) },
            ] {
                assert!(error.explain().hint.is_some_and(|hint| hint.contains(restore)), "{error:?}");
            }
        }
    }
}
