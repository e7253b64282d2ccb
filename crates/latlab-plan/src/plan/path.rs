//! The target of a run, and the path of its packets.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::dds::DdsSpec;
use super::xdp::XdpSpec;

/// The far end, as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Target {
    /// A reflector process on loopback.
    Local,
    /// Two private network namespaces and a veth pair on this machine.
    Lab,
    /// A running `latlab serve` (or, with `--protocol echo`, any UDP echo).
    Host {
        /// Name or address as typed, without brackets.
        host: String,
        port: u16,
    },
    /// An agent on that host, started by ssh.
    Ssh {
        /// `[USER@]HOST` as ssh takes it.
        host: String,
    },
    /// An agent behind a command that connects standard input and output to it.
    Command {
        /// The program and its arguments; at least one.
        words: Vec<String>,
    },
    /// Unknown: another tool measured, and its log was imported.
    Log { tool: String },
}

impl Target {
    /// Whether both ends are on this host by construction: one clock, one set of CPUs.
    pub const fn is_this_host(&self) -> bool {
        matches!(self, Target::Local | Target::Lab)
    }

    /// Whether an agent at the far end starts the reflector there.
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
            Target::Log { tool } => write!(f, "log of {tool}"),
            // Only words with a NUL cannot be joined, and no command has any.
            Target::Command { words } => {
                write!(f, "cmd:{}", shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default())
            }
        }
    }
}

crate::worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Family: word {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

/// How packets leave this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSpec {
    /// The family asked for with `-4` or `-6`; `None`: that of the first address of the target's name.
    pub family: Option<Family>,
    /// Address of the far end, if packets are to take another path than the connection to its agent; `None`: the address
    /// that ssh reached, or that of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<IpAddr>,
    /// Source address; `None`: that of the route.
    pub bind_address: Option<IpAddr>,
    /// Interface (SO_BINDTODEVICE); `None`: that of the route.
    pub bind_interface: Option<String>,
    /// Source port; `None`: chosen by the kernel.
    pub source_port: Option<u16>,
    /// Differentiated services code point, 0 to 63 (RFC 2474); `None`: that of the system.
    pub dscp: Option<u8>,
    /// Whether fragmentation is forbidden (IP_PMTUDISC_DO).
    pub dont_fragment: bool,
    /// Domain and policies; `None` unless the transport is DDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dds: Option<DdsSpec>,
    /// Queues, and what answers; `None` unless one of the ends passes the network stack by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpSpec>,
}

impl PathSpec {
    pub const SYSTEM: PathSpec = PathSpec {
        family: None,
        peer_address: None,
        bind_address: None,
        bind_interface: None,
        source_port: None,
        dscp: None,
        dont_fragment: false,
        dds: None,
        xdp: None,
    };

    /// The path of packets in the other direction, which leave from `address`: what marks these marks those, and the other
    /// host chooses the rest.
    pub fn reversed(&self, address: IpAddr) -> PathSpec {
        // Without `..`: a new field must be decided on here.
        let PathSpec {
            family: _,
            peer_address: _,
            bind_address: _,
            bind_interface: _,
            source_port: _,
            dscp,
            dont_fragment,
            // Network loads are UDP.
            dds: _,
            xdp: _,
        } = *self;
        PathSpec { bind_address: Some(address), dscp, dont_fragment, ..PathSpec::SYSTEM }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reverse_of_a_path_keeps_the_marks_of_its_packets_alone() {
        let path = PathSpec {
            family: Some(Family::Ipv4),
            peer_address: "192.0.2.7".parse().ok(),
            bind_address: "192.0.2.1".parse().ok(),
            bind_interface: Some("eth0".into()),
            source_port: Some(5_000),
            dscp: Some(46),
            dont_fragment: true,
            dds: Some(DdsSpec::default()),
            xdp: Some(XdpSpec::default()),
        };
        let address = "192.0.2.9".parse().expect("an address");
        let expected =
            PathSpec { bind_address: Some(address), dscp: Some(46), dont_fragment: true, ..PathSpec::SYSTEM };
        assert_eq!(path.reversed(address), expected);
    }
}
