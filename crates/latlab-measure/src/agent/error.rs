//! Errors of starting, using and losing an agent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use latlab_sys::errno::explain;

use super::frame::FORMAT;
use crate::diagnostics::{Explain, Failure};

/// An error of an agent. In every variant `peer` is the target as typed, `stderr` the end of the standard error of the
/// command that connects, and `status` its exit status (`None` if it still runs).
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The program that connects cannot be started.
    #[error("cannot start `{program}` to reach `{peer}`")]
    Start {
        peer: String,
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    #[error("cannot reach `{peer}` with ssh")]
    NotReached { peer: String, stderr: Option<String> },
    /// The command ended with exit code 127: latlab is not installed on the remote host, or not in the path.
    #[error("cannot find latlab on `{peer}`")]
    NotFound {
        peer: String,
        /// Standard error of the shell on the remote host.
        stderr: Option<String>,
    },
    /// The agent or the connection ended.
    #[error("lost the agent of `{peer}`")]
    Ended {
        peer: String,
        /// Exit status of the command that connects.
        status: Option<String>,
        /// Standard error of the command that connects.
        stderr: Option<String>,
    },
    #[error("no agent answers on `{peer}`")]
    NoGreeting {
        peer: String,
        /// Exit status of the command that connects.
        status: Option<String>,
        /// Standard error of the command that connects; if it is empty, what was received instead of a greeting.
        stderr: Option<String>,
    },
    /// No reply was received in time.
    #[error("the agent of `{peer}` does not answer")]
    Silent { peer: String, within: Duration },
    /// The agent has another version of the protocol.
    #[error("the agent of `{peer}` speaks format `{format}`")]
    Format {
        peer: String,
        /// The format version of the agent.
        format: u16,
    },
    /// A message that the protocol does not permit.
    #[error("unknown message from the agent of `{peer}`")]
    Unknown { peer: String, what: String },
    /// The agent refused the request.
    #[error("`{peer}` refuses: {}", refusal.message)]
    Refused { peer: String, refusal: Failure },
    /// The address to send probes to is unknown.
    #[error("the address at which to measure `{peer}` is not known")]
    NoAddress { peer: String },
    /// The address to send probes to is not that of one host.
    #[error("cannot measure `{peer}` at `{address}`")]
    NotOneHost {
        peer: String,
        /// The requested address, or the one that the agent reported.
        address: IpAddr,
    },
    /// The host that ssh connects to does not have the address at which, by the agent's report, ssh reached it.
    #[error("`{peer}` says that ssh reached it at `{reached}`")]
    OtherHost {
        peer: String,
        /// The address that the agent reported.
        reached: IpAddr,
        /// The addresses of the host that ssh connects to.
        known: Vec<IpAddr>,
    },
    /// The reflector of the agent has another address than the requested one.
    #[error("`{peer}` was asked for a reflector at `{asked}`, but answered with `{named}`")]
    OtherAddress {
        peer: String,
        asked: IpAddr,
        /// The address that the agent reported.
        named: SocketAddr,
    },
    /// A signal interrupted the wait for the greeting.
    #[error("interrupted before the agent of `{peer}` answered")]
    Interrupted { peer: String },
}

/// The end of the command that connects, with the words of its exit status: `exit status: 0`, `signal: 9 (SIGKILL)`.
fn ended_with(status: &str) -> String {
    format!("the command ended with {}", status.replacen(": ", " ", 1))
}

/// The hint on how the host of a lost agent is restored.
fn restoration_hint(peer: &str) -> String {
    let restore = match peer.strip_prefix("ssh:") {
        Some(host) => format!("`ssh {host} latlab doctor --restore`"),
        None => "`latlab doctor --restore` on that host".into(),
    };
    format!(
        "the recording up to then is kept; the agent restores its host by itself, 5 s after the latest possible \
         end of the run, and its watchdog if the agent was killed; if both were killed, use {restore}, or any next \
         latlab command there"
    )
}

fn other_host_cause(peer: &str, known: &[IpAddr]) -> String {
    let host = peer.trim_start_matches("ssh:");
    match known {
        [] => format!("the addresses of the host that `ssh -G {host}` names are not known here"),
        _ => {
            let known: Vec<String> = known.iter().map(|address| format!("`{address}`")).collect();
            format!("the host that `ssh -G {host}` names has {}", known.join(", "))
        }
    }
}

impl Explain for AgentError {
    fn explain(&self) -> Failure {
        const SAME_VERSION: &str = "run the same version of latlab on both hosts";
        let failure = Failure::world(self);
        match self {
            AgentError::Start { source, .. } => {
                failure.because(explain(source)).hint("it must be installed here, and in the path")
            }
            AgentError::NotReached { peer, stderr } => {
                let host = peer.trim_start_matches("ssh:");
                Failure { cause: stderr.clone(), ..failure }.hint(format!(
                    "`ssh -o BatchMode=yes {host} true` must work without a question; see ssh-add(1) and ~/.ssh/config"
                ))
            }
            AgentError::NotFound { peer, stderr } => {
                Failure { cause: stderr.clone(), ..failure }.hint(match peer.strip_prefix("ssh:") {
                    Some(host) => format!(
                        "install it there, in the path of shells that are not logged in to, or say where it is: \
                         `'cmd:ssh {host} /path/to/latlab agent --stdio' --peer-addr ADDR`"
                    ),
                    None => "the command must end in `latlab agent --stdio` with a latlab that is there".into(),
                })
            }
            AgentError::NoGreeting { status, stderr, .. } => Failure {
                cause: stderr.clone().or_else(|| Some(ended_with(status.as_deref()?) + " before an agent answered")),
                ..failure
            }
            .hint("the command must connect to `latlab agent --stdio` of the same version, without changing its bytes"),
            AgentError::Ended { peer, status, stderr } => {
                let cause = stderr.clone().or_else(|| status.as_deref().map(ended_with));
                Failure { cause, ..failure }.hint(restoration_hint(peer))
            }
            AgentError::Silent { peer, within } => {
                failure.because(format!("no reply for {} s", within.as_secs_f64())).hint(restoration_hint(peer))
            }
            AgentError::Format { .. } => failure
                .because(format!("this is latlab {}, format {FORMAT}", env!("CARGO_PKG_VERSION")))
                .hint(SAME_VERSION),
            AgentError::Unknown { what, .. } => failure.because(what).hint(SAME_VERSION),
            AgentError::Refused { refusal, .. } => {
                Failure { message: failure.message, exit_code: refusal.exit_code.clamp(2, 3), ..refusal.clone() }
            }
            AgentError::NoAddress { .. } => Failure::request(self)
                .because("its sshd does not report the address that ssh reached")
                .hint("add `--peer-addr ADDR`"),
            AgentError::NotOneHost { .. } => failure
                .because("it is not the address of one host")
                .hint("`--peer-addr ADDR` names the address to measure"),
            AgentError::OtherHost { peer, known, .. } => failure
                .because(other_host_cause(peer, known))
                .hint("`--peer-addr ADDR` names the address to measure, as is needed behind a jump host or NAT"),
            AgentError::OtherAddress { .. } => failure
                .because("probes would go to a host that has not agreed to them; none was sent")
                .hint("latlab never answers like this: check what runs there, and what relays its bytes"),
            AgentError::Interrupted { .. } => failure,
        }
    }
}
