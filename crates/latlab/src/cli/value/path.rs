//! Parsers of what a path consists of: addresses, interfaces, ports, code points, and the policies of DDS.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use super::target::host_and_port;
use super::{Refusal, refusal, whole};
use crate::plan::{History, defaults};

/// Where packets leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    Address(IpAddr),
    Interface(String),
}

impl Bind {
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Bind::Address(address) => Some(*address),
            Bind::Interface(_) => None,
        }
    }

    pub fn interface(&self) -> Option<&str> {
        match self {
            Bind::Address(_) => None,
            Bind::Interface(name) => Some(name),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Address(address) => address.fmt(to),
            Bind::Interface(name) => name.fmt(to),
        }
    }
}

/// Parses an address, or else the name of an interface.
pub fn bind(typed: &str) -> Result<Bind, Refusal> {
    match without_brackets(typed).parse() {
        Ok(address) => Ok(Bind::Address(address)),
        Err(_) if is_interface_name(typed) => Ok(Bind::Interface(typed.to_owned())),
        Err(_) => Err(refusal(
            "it is neither an address nor an interface name",
            "such as `192.0.2.1`, `2001:db8::1` or `eth0`",
        )),
    }
}

fn without_brackets(typed: &str) -> &str {
    typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed)
}

/// Same rule as the kernel's `dev_valid_name()`: 1 to 15 bytes, no slash, colon or white space.
pub fn is_interface_name(typed: &str) -> bool {
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    !typed.is_empty() && typed.len() <= 15 && !typed.contains(wrong)
}

/// The address that `typed` is, with or without a zone, alone or in `[ADDR]:PORT`; `None` of a name.
pub fn address_in(typed: &str) -> Option<IpAddr> {
    let alone = typed.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(typed);
    alone.split('%').next().and_then(|address| address.parse().ok())
}

/// Parses an address of the agent's host: unspecified, multicast and link-local IPv6 ones name no host there.
pub fn peer_address(typed: &str) -> Result<IpAddr, Refusal> {
    let refuse = |cause| refusal(cause, "such as `192.0.2.1` or `2001:db8::1`");
    let address: IpAddr = without_brackets(typed).parse().map_err(|_| refuse("it is not an address"))?;
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if address.is_unspecified() || address.is_multicast() || link_local {
        return Err(refuse("it would mean another interface on the other host"));
    }
    Ok(address)
}

/// Parses an address to listen on.
pub fn listening(typed: &str) -> Result<SocketAddr, Refusal> {
    let (host, port) = host_and_port(typed)?;
    let hint = "such as `0.0.0.0`, `192.0.2.1:9862` or `[::]:9862`";
    let place = || (host, port.unwrap_or(defaults::PORT)).to_socket_addrs().ok()?.next();
    address_in(host).and_then(|_| place()).ok_or_else(|| refusal("only an address can be listened on", hint))
}

/// Parses the source ports of the runs: one, or those of a sweep.
pub fn source_ports(typed: &str) -> Result<RangeInclusive<u16>, Refusal> {
    let first = defaults::SWEEP_FIRST_PORT;
    match typed {
        "sweep" => Ok(first..=first + defaults::SWEEP_PORTS - 1),
        typed => whole::<u16>(1..=u16::MAX)(typed).map(|port| port..=port),
    }
}

/// Parses a code point: a number, or a name of RFC 2474 (CS), RFC 2597 (AF) or RFC 3246 (EF).
pub fn code_point(typed: &str) -> Result<u8, Refusal> {
    let named = match typed.to_ascii_uppercase().as_bytes() {
        b"EF" => Some(46),
        [b'C', b'S', class @ b'0'..=b'7'] => Some(8 * (class - b'0')),
        [b'A', b'F', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => Some(8 * (class - b'0') + 2 * (drop - b'0')),
        _ => None,
    };
    let most = defaults::DSCP_MAX;
    let hint = format!("a number from 0 to {most}, or a name: `CS0` to `CS7`, `AF11` to `AF43`, `EF`");
    match named.map_or_else(|| typed.parse::<u64>(), |named| Ok(named.into())) {
        Ok(number) if number <= most.into() => Ok(number as u8),
        Ok(_) => Err(refusal(format!("the maximum is {most}"), hint)),
        Err(_) => Err(refusal("it is neither a number nor the name of a code point", hint)),
    }
}

/// The most samples that a reader or writer keeps.
const DEPTH_MAX: u16 = 10_000;

pub fn history(typed: &str) -> Result<History, Refusal> {
    let hint = "`keep-all`, or a number of samples such as `keep-last:16`";
    match typed.split_once(':') {
        None if typed == "keep-all" => Ok(History::KeepAll),
        Some(("keep-last", depth)) => match depth.parse() {
            Ok(depth) if (1..=DEPTH_MAX).contains(&depth) => Ok(History::KeepLast(depth)),
            _ => Err(refusal("its depth is a whole number from 1 to 10000", hint)),
        },
        _ => Err(refusal("it is not a HISTORY policy", hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_numbers_or_names() {
        for (typed, expected) in
            [("0", 0), ("63", 63), ("EF", 46), ("ef", 46), ("CS0", 0), ("CS7", 56), ("AF11", 10), ("af43", 38)]
        {
            assert_eq!(code_point(typed), Ok(expected), "{typed}");
        }
        for typed in ["64", "-1", "CS8", "AF10", "AF14", "AF51", "EF1", "voice", ""] {
            assert!(code_point(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn bind_accepts_an_address_or_an_interface() {
        let address = |text: &str| Ok(Bind::Address(text.parse().expect(text)));
        assert_eq!(bind("192.0.2.1"), address("192.0.2.1"));
        assert_eq!(bind("[2001:db8::1]"), address("2001:db8::1"));
        assert_eq!(bind("eth0.7"), Ok(Bind::Interface("eth0.7".into())));
        for typed in ["", "sixteen-letters-", "a/b", "a b", "192.0.2.1:5"] {
            assert!(bind(typed).is_err(), "{typed}");
        }
    }
}
