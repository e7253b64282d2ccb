//! Resolution of the path of probes (addresses, ports, key) and of the CPU, priority and wait mode of each end.

use std::net::IpAddr;

use super::{KeySource, RequestError, target, value};
use crate::cli::args::{AddressArgs, EndArgs, KeyFileArgs, PathArgs, PeerArgs};
use crate::plan::{EndSpec, Family, PathSpec, Protocol, Target, WaitMode, defaults};

const BOTH_FAMILIES: &str = "they belong to two versions of IP";
const ONE_FAMILY: &str = "leave one of them out";
const PEER_ADDRESS: &str = "--peer-addr";

/// Resolves the path without its source port, since there may be several.
pub(super) fn path(typed: &AddressArgs, target: &Target) -> Result<PathSpec, RequestError> {
    let AddressArgs { key: _, ipv4, ipv6, bind: local, peer_addr, dscp, df } = typed;
    let family = match (ipv4, ipv6) {
        (true, _) => Some(Family::Ipv4),
        (_, true) => Some(Family::Ipv6),
        _ => None,
    };
    let (bind_address, bind_interface) = bind("--bind", local.as_deref())?;
    let peer_address = peer_address(peer_addr.as_deref(), target)?;
    agree(family, bind_address, target, peer_address)?;
    Ok(PathSpec {
        family,
        peer_address,
        bind_address,
        bind_interface,
        source_port: None,
        dscp: dscp.as_deref().map(code_point).transpose()?,
        dont_fragment: *df,
        dds: None,
        xdp: None,
    })
}

/// Parses a code point: a number, or a name of RFC 2474 (CS), RFC 2597 (AF) or RFC 3246 (EF).
fn code_point(typed: &str) -> Result<u8, RequestError> {
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
        Ok(_) => Err(value::unusable("--dscp", typed, format!("the most is {most}"), hint)),
        Err(_) => Err(value::unusable("--dscp", typed, "it is neither a number nor the name of a code point", hint)),
    }
}

/// The first option in `typed` that applies to packets alone, if one was given.
pub(super) fn packet_option(typed: &AddressArgs) -> Option<&'static str> {
    // The family, the peer's address and the key may be needed without packets too.
    let AddressArgs { key: _, ipv4: _, ipv6: _, bind, peer_addr: _, dscp, df } = typed;
    let given = [("--bind", bind.is_some()), ("--dscp", dscp.is_some()), ("--df", *df)];
    given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

/// Returns one entry per run; `None` if the system chooses the port.
pub(super) fn source_ports(typed: &PathArgs) -> Result<Vec<Option<u16>>, RequestError> {
    let first = defaults::SWEEP_FIRST_PORT;
    Ok(match typed.source_port.as_deref() {
        None => vec![None],
        Some("sweep") => (first..first + defaults::SWEEP_PORTS).map(Some).collect(),
        Some(port) => vec![Some(value::port("--source-port", port)?)],
    })
}

/// Resolves the source of the key. Host names are checked after their lookup: see [`key_needed`].
pub(super) fn key(typed: &KeyFileArgs, target: &Target, protocol: Protocol) -> Result<KeySource, RequestError> {
    if let (Some(_), Protocol::Echo) = (&typed.psk_file, protocol) {
        return Err(RequestError::OutOfPlace {
            option: "--psk-file",
            with: "--protocol echo".into(),
            cause: "a plain echo returns what it gets and knows no key",
            hint: ONE_FAMILY,
        });
    }
    if let (Some(_), true) = (&typed.psk_file, target.has_agent()) {
        return Err(RequestError::OutOfPlace {
            option: "--psk-file",
            with: target.to_string(),
            cause: "latlab makes a new key for the reflector that it starts there",
            hint: "leave it out",
        });
    }
    match (&typed.psk_file, target) {
        (Some(file), _) => Ok(KeySource::File(file.clone())),
        (None, Target::Lab | Target::Ssh { .. } | Target::Command { .. }) => Ok(KeySource::Fresh),
        (None, Target::Host { host, .. }) if protocol == Protocol::Native => match address(host) {
            Some(address) => key_needed(target, address).map(|()| KeySource::None),
            None => Ok(KeySource::None),
        },
        (None, _) => Ok(KeySource::None),
    }
}

/// Refuses an address other than loopback without a key.
///
/// Numeric addresses are checked during resolution; host names are checked by the caller after their lookup.
pub fn key_needed(target: &Target, address: IpAddr) -> Result<(), RequestError> {
    if address.to_canonical().is_loopback() {
        return Ok(());
    }
    let hint = "`latlab keygen lab.key`, copy it to that host, then `--psk-file lab.key` at both ends";
    Err(RequestError::KeyNeeded { target: target.to_string(), hint })
}

/// Parses an address without its zone; `None` if `host` is a name.
fn address(host: &str) -> Option<IpAddr> {
    host.split('%').next().and_then(|address| address.parse().ok())
}

/// Parses the value of `option`, an address or else the name of an interface.
pub(super) fn bind(
    option: &'static str,
    typed: Option<&str>,
) -> Result<(Option<IpAddr>, Option<String>), RequestError> {
    let Some(typed) = typed else { return Ok((None, None)) };
    let plain = typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed);
    if let Ok(address) = plain.parse() {
        return Ok((Some(address), None));
    }
    if !is_interface_name(typed) {
        let cause = "it is neither an address nor an interface name";
        return Err(value::unusable(option, typed, cause, "such as `192.0.2.1`, `2001:db8::1` or `eth0`"));
    }
    Ok((None, Some(typed.to_owned())))
}

/// Same rule as the kernel's `dev_valid_name()`: 1 to 15 bytes, no slash, colon or white space.
pub(super) fn is_interface_name(typed: &str) -> bool {
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    !typed.is_empty() && typed.len() <= 15 && !typed.contains(wrong)
}

/// Resolves the remote address of the measured path, which may differ from the agent's address.
fn peer_address(typed: Option<&str>, target: &Target) -> Result<Option<IpAddr>, RequestError> {
    typed.map(|typed| far_address(typed, target)).transpose()
}

/// Refuses `cmd:` targets without `--peer-addr`, since latlab cannot know their address.
pub(super) fn address_needed(path: &PathSpec, target: &Target) -> Result<(), RequestError> {
    match (path.peer_address, target) {
        (None, Target::Command { .. }) => Err(RequestError::Alone {
            option: "cmd:",
            needed: PEER_ADDRESS,
            cause: "the address of the other host does not follow from the command",
            hint: "add `--peer-addr ADDR`, the address of the other end on the path to measure",
        }),
        _ => Ok(()),
    }
}

/// Parses an address of the agent's host.
pub(super) fn far_address(typed: &str, target: &Target) -> Result<IpAddr, RequestError> {
    if !target.has_agent() {
        return Err(RequestError::OutOfPlace {
            option: PEER_ADDRESS,
            with: target.to_string(),
            cause: "only a target with an agent has a separate measured path",
            hint: "leave it out, or reach the host with `ssh:HOST`",
        });
    }
    let refuse = |cause| Err(value::unusable(PEER_ADDRESS, typed, cause, "such as `192.0.2.1` or `2001:db8::1`"));
    match typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed).parse() {
        Ok(address) if is_whole(address) => Ok(address),
        Ok(_) => refuse("it would mean another interface on the other host"),
        Err(_) => refuse("it is not an address"),
    }
}

/// Returns true unless the address is unspecified, multicast or link-local IPv6.
fn is_whole(address: IpAddr) -> bool {
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !address.is_unspecified() && !address.is_multicast() && !link_local
}

/// Refuses `-4`, `-6`, source address, peer address and target of different families.
fn agree(
    family: Option<Family>,
    bind: Option<IpAddr>,
    target: &Target,
    peer: Option<IpAddr>,
) -> Result<(), RequestError> {
    let of = |address: IpAddr| if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let option = match family {
        Some(Family::Ipv4) => "-4",
        Some(Family::Ipv6) => "-6",
        None => "--bind",
    };
    let refuse = |option, with| Err(RequestError::OutOfPlace { option, with, cause: BOTH_FAMILIES, hint: ONE_FAMILY });
    let family = family.or(bind.map(of));
    match (bind, target) {
        (Some(bind), _) if family != Some(of(bind)) => refuse(option, format!("--bind {bind}")),
        _ if peer.is_some_and(|peer| family.is_some_and(|family| family != of(peer))) => {
            refuse(option, peer.map(|peer| peer.to_string()).unwrap_or_default())
        }
        (_, Target::Host { host, .. }) => match address(host) {
            Some(peer) if family.is_some_and(|family| family != of(peer)) => refuse(option, target.to_string()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Parses an address to listen on.
pub(super) fn listening(typed: &str) -> Result<std::net::SocketAddr, RequestError> {
    let (host, port) = target::host_and_port("--bind", typed)?;
    let cause = "only an address can be listened on";
    let hint = "such as `0.0.0.0`, `192.0.2.1:9862` or `[::]:9862`";
    let address: IpAddr = host.parse().map_err(|_| value::unusable("--bind", typed, cause, hint))?;
    Ok((address, port.unwrap_or(defaults::PORT)).into())
}

pub(super) fn local_end(typed: &EndArgs) -> Result<EndSpec, RequestError> {
    let fifo = typed.fifo.as_deref().map(|fifo| value::whole("--fifo", fifo, 1..=u64::from(defaults::FIFO_MAX)));
    Ok(EndSpec {
        wait: typed.wait.unwrap_or(WaitMode::Block),
        cpu: typed.cpu.as_deref().map(|cpu| value::cpu("--cpu", cpu)).transpose()?,
        fifo: fifo.transpose()?.map(|priority| priority as u8),
        mlock: typed.mlock,
    })
}

/// Resolves the peer end that latlab starts: like the local end, but on its own CPU.
pub(super) fn peer_end(typed: &PeerArgs, here: EndSpec) -> Result<EndSpec, RequestError> {
    let cpu = typed.peer_cpu.as_deref().map(|cpu| value::cpu("--peer-cpu", cpu)).transpose()?;
    Ok(EndSpec { cpu, ..here })
}

/// Resolves the peer end; `None` if latlab does not start it.
pub(super) fn peer_end_of(target: &Target, typed: &PeerArgs, here: EndSpec) -> Result<Option<EndSpec>, RequestError> {
    match target {
        Target::Local | Target::Lab | Target::Ssh { .. } | Target::Command { .. } => peer_end(typed, here).map(Some),
        Target::Host { .. } if typed.peer_cpu.is_some() => Err(RequestError::OutOfPlace {
            option: "--peer-cpu",
            with: target.to_string(),
            cause: "latlab does not start the reflector on that host",
            hint: "`latlab serve --cpu N` pins it there",
        }),
        Target::Host { .. } | Target::Log { .. } => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Explain;

    fn host(name: &str) -> Target {
        Target::Host { host: name.into(), port: 9862 }
    }

    #[test]
    fn only_loopback_needs_no_key() {
        let source = |target: &Target, protocol| key(&KeyFileArgs::default(), target, protocol);
        for name in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost", "pi3"] {
            assert_eq!(source(&host(name), Protocol::Native), Ok(KeySource::None), "{name}");
        }
        for name in ["192.0.2.9", "2001:db8::9", "fe80::1%eth0", "0.0.0.0"] {
            let error = source(&host(name), Protocol::Native).expect_err(name);
            assert!(error.explain().hint.is_some_and(|hint| hint.contains("keygen")), "{error}");
            assert_eq!(source(&host(name), Protocol::Echo), Ok(KeySource::None), "{name}");
        }
        assert_eq!(source(&Target::Lab, Protocol::Native), Ok(KeySource::Fresh));
        let typed = KeyFileArgs { psk_file: Some("k".into()) };
        assert_eq!(key(&typed, &host("192.0.2.9"), Protocol::Native), Ok(KeySource::File("k".into())));
        assert!(key(&typed, &host("192.0.2.9"), Protocol::Echo).is_err());
    }

    #[test]
    fn code_points_are_numbers_or_names() {
        for (typed, expected) in
            [("0", 0), ("63", 63), ("EF", 46), ("ef", 46), ("CS0", 0), ("CS7", 56), ("AF11", 10), ("af43", 38)]
        {
            assert_eq!(code_point(typed), Ok(expected), "{typed}");
        }
        for typed in ["64", "-1", "CS8", "AF10", "AF14", "AF51", "EF1", "voice", ""] {
            let refused = code_point(typed).expect_err(typed);
            assert!(refused.explain().hint.is_some_and(|hint| hint.contains("`AF11` to `AF43`")), "{refused:?}");
        }
    }

    #[test]
    fn mixed_address_families_are_refused() {
        let typed = |ipv4, ipv6, bind: Option<&str>| AddressArgs {
            ipv4,
            ipv6,
            bind: bind.map(Into::into),
            ..AddressArgs::default()
        };
        for (way, target, fits) in [
            (typed(true, false, None), host("10.0.0.1"), true),
            (typed(true, false, None), host("::1"), false),
            (typed(false, true, None), host("127.0.0.1"), false),
            (typed(false, true, Some("::1")), Target::Local, true),
            (typed(false, true, Some("127.0.0.1")), Target::Local, false),
            (typed(false, false, Some("127.0.0.1")), host("::1"), false),
            (typed(false, false, Some("eth0")), host("::1"), true),
            (typed(false, true, None), host("pi3"), true),
        ] {
            assert_eq!(path(&way, &target).is_ok(), fits, "{way:?} {target}");
        }
    }

    #[test]
    fn bind_accepts_an_address_or_an_interface() {
        let address = |text: &str| Ok((text.parse().ok(), None));
        let bind = |typed| bind("--bind", Some(typed));
        assert_eq!(bind("192.0.2.1"), address("192.0.2.1"));
        assert_eq!(bind("[2001:db8::1]"), address("2001:db8::1"));
        assert_eq!(bind("eth0.7"), Ok((None, Some("eth0.7".into()))));
        for typed in ["", "sixteen-letters-", "a/b", "a b", "192.0.2.1:5"] {
            assert!(bind(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_source_port_sweep_has_sixteen_ports() {
        let ports = |typed: &str| source_ports(&PathArgs { source_port: Some(typed.into()), ..PathArgs::default() });
        let swept = ports("sweep").expect("a word of the contract");
        assert_eq!((swept.len(), swept[0], swept[15]), (16, Some(30_000), Some(30_015)));
        assert_eq!(ports("5000"), Ok(vec![Some(5_000)]));
        assert!(ports("0").is_err() && ports("-1").is_err() && ports("all").is_err());
    }
}
