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
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Local => f.write_str("local"),
            Target::Lab => f.write_str("lab"),
            Target::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Target::Host { host, port } => write!(f, "{host}:{port}"),
        }
    }
}
