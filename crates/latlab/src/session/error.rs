//! Why there is no session.

use std::io;

use crate::transport::refusal::broken_words;
use crate::units::Nanos;
use crate::units::human::typed_span;
use crate::wire::{RefuseReason, VERSION};

/// Why the sender got no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Nothing came back at all.
    #[error("no answer from `{peer}`")]
    NoAnswer {
        /// The peer.
        peer: String,
        /// HELLOs sent.
        hellos: u32,
        /// Within so long.
        within: Nanos,
        /// The last error of a send call, where there was one: an ICMP answer shows up there.
        refused: Option<io::Error>,
    },
    /// Whoever asked did not want to wait any longer.
    #[error("interrupted before `{peer}` opened a session")]
    Interrupted {
        /// The peer.
        peer: String,
    },
    /// A connection was made, but whoever took it speaks another protocol.
    #[error("`{peer}` takes a connection, but opens no session over it")]
    NoGreeting {
        /// The peer.
        peer: String,
        /// What happened instead; none: nothing did.
        instead: Option<io::Error>,
    },
    /// A COOKIE came, but OPEN was not answered.
    #[error("`{peer}` does not open a session")]
    NotOpened {
        /// The peer.
        peer: String,
        /// OPENs sent.
        opens: u32,
        /// Whether both ends use a key.
        keyed: bool,
    },
    /// The reflector has a key, we have none.
    #[error("`{peer}` asks for a pre-shared key")]
    KeyAsked {
        /// The peer.
        peer: String,
    },
    /// We have a key, the reflector has none.
    #[error("`{peer}` has no pre-shared key")]
    KeyUnknown {
        /// The peer.
        peer: String,
    },
    /// The reflector speaks another version.
    #[error("`{peer}` speaks version `{version}` of the protocol")]
    Version {
        /// The peer.
        peer: String,
        /// Its version.
        version: u8,
    },
    /// A cap of the reflector.
    #[error("`{peer}` refuses the session: {}", refusal(*reason, *limit))]
    Refused {
        /// The peer.
        peer: String,
        /// Which cap.
        reason: RefuseReason,
        /// Its value.
        limit: u64,
    },
    /// The transport broke.
    #[error("cannot talk to `{peer}`")]
    Broken {
        /// The peer.
        peer: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl SessionError {
    /// The same, with what the path said of datagrams that found nobody, such as `ECONNREFUSED`.
    pub fn told_by(self, notice: Option<String>) -> SessionError {
        match (self, notice) {
            (SessionError::NoAnswer { peer, hellos, within, refused: None }, Some(notice)) => {
                let refused = Some(io::Error::other(notice));
                SessionError::NoAnswer { peer, hellos, within, refused }
            }
            (error, _) => error,
        }
    }

    /// The same, where there is a connection with the peer: silence then has other reasons.
    pub fn over_a_connection(self) -> SessionError {
        match self {
            SessionError::NoAnswer { peer, refused, .. } => SessionError::NoGreeting { peer, instead: refused },
            SessionError::Broken { peer, source } => SessionError::NoGreeting { peer, instead: Some(source) },
            error => error,
        }
    }

    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            SessionError::NoAnswer { hellos, within, refused, .. } => {
                let seconds = within.as_secs_f64();
                match refused {
                    Some(error) => format!("{hellos} HELLO packets in {seconds} s, the last error was: {error}"),
                    None => format!("{hellos} HELLO packets in {seconds} s, nothing came back"),
                }
            }
            SessionError::Interrupted { .. } => return None,
            SessionError::NoGreeting { instead: Some(error), .. } => broken_words(error),
            SessionError::NoGreeting { instead: None, .. } => "nothing came back within 3 s".into(),
            SessionError::NotOpened { opens, keyed: true, .. } => {
                format!(
                    "it greets, but keeps silent to {opens} OPEN packets: the keys differ, or the path loses packets"
                )
            }
            SessionError::NotOpened { opens, keyed: false, .. } => {
                format!("it greets, but keeps silent to {opens} OPEN packets: the path loses packets")
            }
            SessionError::KeyAsked { .. } => "no key was given here".into(),
            SessionError::KeyUnknown { .. } => {
                "a key was given here, and an unauthenticated session would betray it".into()
            }
            SessionError::Version { .. } => format!("this latlab speaks version {VERSION}"),
            SessionError::Refused { .. } => "a cap of that reflector".into(),
            SessionError::Broken { source, .. } => broken_words(source),
        })
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            SessionError::NoAnswer { .. } => {
                "start `latlab serve --psk-file FILE` there, and see that firewalls let its \
                 UDP port through; `--protocol echo` measures against a plain UDP echo"
                    .into()
            }
            SessionError::NoGreeting { .. } => {
                "see that it is `latlab serve --tcp` that listens there; if it is, its counters tell whether its caps are \
                 reached"
                    .into()
            }
            SessionError::NotOpened { keyed: true, .. } => {
                "compare the key files of both hosts, as with `sha256sum FILE`".into()
            }
            SessionError::NotOpened { keyed: false, .. } => {
                "try again; see the counters of `latlab serve` there".into()
            }
            SessionError::KeyAsked { .. } => "`--psk-file FILE` with the key of that `latlab serve`".into(),
            SessionError::KeyUnknown { .. } => "start it with the same `--psk-file`, or leave that out here too".into(),
            SessionError::Version { .. } => "run the same version of latlab on both hosts".into(),
            SessionError::Refused { reason, .. } => remedy(*reason).into(),
            SessionError::Interrupted { .. } | SessionError::Broken { .. } => return None,
        })
    }

    /// The exit code: the world refuses.
    pub fn exit_code(&self) -> u8 {
        3
    }
}

fn refusal(reason: RefuseReason, limit: u64) -> String {
    match reason {
        RefuseReason::Sessions => format!("it holds `{limit}` already"),
        RefuseReason::SessionsPerPrefix => format!("it holds `{limit}` from this network already"),
        RefuseReason::NewSessions => format!("it opens `{limit}` a second, and those are gone"),
        RefuseReason::Size => format!("probes are larger than `{limit}` bytes"),
        RefuseReason::Duration => format!("it would last longer than `{}`", typed(limit)),
        RefuseReason::Idle => format!("gaps between probes may be longer than `{}`", typed(limit)),
        RefuseReason::Down if limit == 0 => "it allows no down-streams".into(),
        RefuseReason::Down => format!("it sends one down-stream at a time, at `{limit}` bit/s at most"),
    }
}

/// A limit in nanoseconds as it can be typed: `--duration 24h`.
fn typed(limit_ns: u64) -> String {
    typed_span(Nanos(i64::try_from(limit_ns).unwrap_or(i64::MAX)))
}

const fn remedy(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::Sessions | RefuseReason::SessionsPerPrefix => {
            "wait for other measurements to end, or raise the cap of `latlab serve` there"
        }
        RefuseReason::NewSessions => "try again in a second",
        RefuseReason::Size => "choose a smaller `--size`, or raise the cap of `latlab serve` there",
        RefuseReason::Duration => "choose a shorter `--duration`, or raise the cap of `latlab serve` there",
        RefuseReason::Idle => "choose a shorter `--interval`, or raise the cap of `latlab serve` there",
        RefuseReason::Down => "`latlab serve --psk-file FILE --allow-down RATE` there, and one down-stream at a time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_is_told_as_it_is() {
        let error = SessionError::NoAnswer {
            peer: "192.0.2.9:9862".into(),
            hellos: 5,
            within: Nanos::from_secs(3),
            refused: None,
        };
        assert_eq!(error.to_string(), "no answer from `192.0.2.9:9862`");
        assert_eq!(error.cause().as_deref(), Some("5 HELLO packets in 3 s, nothing came back"));
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn a_refusal_shows_the_limit_and_the_way_around_it() {
        for reason in RefuseReason::ALL {
            let error = SessionError::Refused { peer: "peer:1".into(), reason, limit: 90_000_000_000_000 };
            let text = error.to_string();
            let limit = if matches!(reason, RefuseReason::Duration | RefuseReason::Idle) {
                "`25h`"
            } else {
                "`90000000000000`"
            };
            assert!(text.contains(limit), "{text}");
            assert!(error.hint().is_some());
        }
    }
}
