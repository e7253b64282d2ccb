//! Whom to measure against.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The other end, as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Target {
    /// A reflector process of latlab's own on loopback.
    Local,
    /// Two private network namespaces and a veth pair on this machine.
    Lab,
    /// A running `latlab serve` (or, with `--protocol echo`, any UDP echo).
    Host {
        /// Name or address as typed, without brackets.
        host: String,
        /// UDP port.
        port: u16,
    },
    /// latlab's agent on that host, started over ssh.
    Ssh {
        /// `[USER@]HOST` as ssh takes it.
        host: String,
    },
    /// latlab's agent behind a command that connects standard input and output to it.
    Command {
        /// The program and its arguments; at least one.
        words: Vec<String>,
    },
}

impl Target {
    /// Whether both ends are on this host by construction: one clock, one set of CPUs.
    pub const fn is_this_host(&self) -> bool {
        matches!(self, Target::Local | Target::Lab)
    }

    /// Whether an agent stands at the far end, which starts the reflector there.
    pub const fn has_agent(&self) -> bool {
        matches!(self, Target::Ssh { .. } | Target::Command { .. })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Local => f.write_str("local"),
            Target::Lab => f.write_str("lab"),
            Target::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Target::Host { host, port } => write!(f, "{host}:{port}"),
            Target::Ssh { host } => write!(f, "ssh:{host}"),
            // Words with a NUL cannot be typed, nor started.
            Target::Command { words } => {
                write!(f, "cmd:{}", shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_reads_as_it_was_typed() {
        let command = |words: &[&str]| Target::Command { words: words.iter().map(ToString::to_string).collect() };
        for (target, text) in [
            (Target::Lab, "lab"),
            (Target::Host { host: "::1".into(), port: 7 }, "[::1]:7"),
            (Target::Ssh { host: "pi@pi3".into() }, "ssh:pi@pi3"),
            (command(&["ip", "netns", "exec", "b", "latlab"]), "cmd:ip netns exec b latlab"),
            (command(&["a b", "c"]), "cmd:'a b' c"),
        ] {
            assert_eq!(target.to_string(), text);
        }
    }
}
