//! Why there is no agent, or none any more.

use std::io;
use std::time::Duration;

use latlab_sys::errno::explain;

use super::frame::FORMAT;
use super::message::RequestFailure;

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
    /// There is no latlab.
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

impl AgentError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        match self {
            AgentError::Start { source, .. } => Some(explain(source)),
            AgentError::NotReached { told, .. } | AgentError::NotFound { told, .. } => told.clone(),
            AgentError::Ended { status, told, .. } | AgentError::NoGreeting { status, told, .. } => {
                told.clone().or_else(|| status.clone())
            }
            AgentError::Silent { within, .. } => Some(format!("no reply for {} s", within.as_secs_f64())),
            AgentError::Format { .. } => Some(format!("this is latlab {}, format {FORMAT}", env!("CARGO_PKG_VERSION"))),
            AgentError::Unknown { what, .. } => Some(what.clone()),
            AgentError::Refused { refusal, .. } => refusal.cause.clone(),
            AgentError::NoAddress { .. } => Some("its sshd does not tell at which address ssh reached it".into()),
            AgentError::Interrupted { .. } => None,
        }
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        const SAME_VERSION: &str = "run the same version of latlab on both hosts";
        Some(match self {
            AgentError::Start { .. } => "it must be installed here, and in the path".into(),
            AgentError::NotReached { peer, .. } => {
                let host = peer.trim_start_matches("ssh:");
                format!(
                    "`ssh -o BatchMode=yes {host} true` must work and ask nothing; see ssh-add(1) and ~/.ssh/config"
                )
            }
            AgentError::NotFound { peer, .. } => match peer.strip_prefix("ssh:") {
                Some(host) => format!(
                    "install it there, in the path of shells that are not logged in to, or say where it is: \
                     `'cmd:ssh {host} /path/to/latlab agent --stdio' --peer-addr ADDR`"
                ),
                None => "the command must end in `latlab agent --stdio` with a latlab that is there".into(),
            },
            AgentError::NoGreeting { .. } => {
                "the command must connect to `latlab agent --stdio` of the same version, and leave its bytes alone"
                    .into()
            }
            AgentError::Ended { peer, .. } | AgentError::Silent { peer, .. } => {
                let restore = match peer.strip_prefix("ssh:") {
                    Some(host) => format!("`ssh {host} latlab doctor --restore`"),
                    None => "`latlab doctor --restore` on that host".into(),
                };
                format!(
                    "what was measured before is in the recording; the agent puts its host in order by itself, 5 s \
                     after the latest end that the run could have; one that was killed cannot: {restore} does it then, \
                     and so does the next latlab there"
                )
            }
            AgentError::Format { .. } | AgentError::Unknown { .. } => SAME_VERSION.into(),
            AgentError::Refused { refusal, .. } => return refusal.hint.clone(),
            AgentError::NoAddress { .. } => "add `--peer-addr ADDR`".into(),
            AgentError::Interrupted { .. } => return None,
        })
    }

    /// The exit code: 2 where the request was wrong, 3 where the world refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            AgentError::Refused { refusal, .. } => refusal.exit_code.clamp(2, 3),
            AgentError::NoAddress { .. } => 2,
            _ => 3,
        }
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
                assert!(error.hint().is_some_and(|hint| hint.contains(restore)), "{error:?}");
            }
        }
    }
}
