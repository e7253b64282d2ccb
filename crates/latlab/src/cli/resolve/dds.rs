//! Resolution of the options over DDS: domain, policies and interface.

use std::net::IpAddr;

use super::path::bind;
use super::{RequestError, value};
use crate::cli::args::{DdsArgs, DdsDomainArgs};
use crate::plan::{DdsSpec, EndSpec, History, PathSpec, Protocol, Reliability, Target, TransportKind, WaitMode};

const INTERFACE: &str = "--interface";
const OWN_SOCKETS: &str = "the DDS library makes its sockets itself, and has no such option";
/// The most samples that a reader or writer keeps.
const DEPTH_MAX: u16 = 10_000;

/// Adds the domain and the policies to `path`, if `transport` is DDS; refuses options that cannot go with it, or only go
/// with it.
pub(super) fn path(
    typed: &DdsArgs,
    transport: TransportKind,
    path: PathSpec,
    here: EndSpec,
    target: &Target,
) -> Result<PathSpec, RequestError> {
    if transport != TransportKind::Dds {
        return match first_of(typed) {
            Some(option) => Err(only_over_dds(option, transport)),
            None => Ok(path),
        };
    }
    let refused = [("--df", path.dont_fragment), ("--dscp", path.dscp.is_some())];
    if let Some((option, _)) = refused.into_iter().find(|(_, given)| *given) {
        return Err(own_sockets(option));
    }
    refuse_busy_poll(here)?;
    if let Target::Host { host, .. } = target {
        refuse_link_local("TARGET", host)?;
    }
    let dds = spec(typed)?;
    let path = through(typed.at.interface.as_deref(), path)?;
    path.bind_address.map_or(Ok(()), |address| refuse_link_local("--bind", &address.to_string()))?;
    interface_needed(target, literal(target), &path)?;
    Ok(PathSpec { dds: Some(dds), ..path })
}

fn refuse_busy_poll(end: EndSpec) -> Result<(), RequestError> {
    match end.wait {
        WaitMode::BusyPoll => Err(RequestError::OutOfPlace {
            option: "--wait busy-poll",
            with: "--transport dds".into(),
            cause: OWN_SOCKETS,
            hint: "use `--wait block` or `--wait spin`",
        }),
        _ => Ok(()),
    }
}

pub(super) fn no_ports(transport: TransportKind, given: bool) -> Result<(), RequestError> {
    match transport == TransportKind::Dds && given {
        true => Err(own_sockets("--source-port")),
        false => Ok(()),
    }
}

/// The error of an `option` on sockets.
pub(super) fn own_sockets(option: &'static str) -> RequestError {
    RequestError::OutOfPlace { option, with: "--transport dds".into(), cause: OWN_SOCKETS, hint: "leave it out" }
}

fn spec(typed: &DdsArgs) -> Result<DdsSpec, RequestError> {
    Ok(DdsSpec { reliability: typed.reliability.unwrap_or_default(), keyed: typed.keyed, ..domain(&typed.at)? })
}

/// The domain of a reflector, which serves senders of every reliability and type.
pub(super) fn domain(typed: &DdsDomainArgs) -> Result<DdsSpec, RequestError> {
    typed.interface.as_deref().map_or(Ok(()), |typed| refuse_link_local(INTERFACE, typed))?;
    let most = u64::from(DdsSpec::DOMAIN_MAX);
    let domain = typed.domain.as_deref().map(|domain| value::whole("--domain", domain, 0..=most)).transpose()?;
    Ok(DdsSpec {
        domain: domain.unwrap_or(0) as u16,
        history: typed.history.as_deref().map(history).transpose()?.unwrap_or_default(),
        multicast: typed.multicast.unwrap_or(false),
        reliability: Reliability::default(),
        keyed: false,
    })
}

/// Refuses options of a reflector that cannot go with DDS, or only go with it.
pub(super) fn fits_a_reflector(
    typed: &DdsDomainArgs,
    transport: TransportKind,
    end: EndSpec,
    addresses: &[String],
) -> Result<(), RequestError> {
    match first_of_domain(typed) {
        Some(option) if transport != TransportKind::Dds => return Err(only_over_dds(option, transport)),
        _ if transport != TransportKind::Dds => return Ok(()),
        _ => {}
    }
    refuse_busy_poll(end)?;
    addresses.iter().try_for_each(|typed| refuse_link_local("--bind", typed))?;
    let refuse =
        |option, with: &str, cause, hint| Err(RequestError::OutOfPlace { option, with: with.into(), cause, hint });
    match addresses {
        [_, _, ..] => {
            refuse("--bind", "--transport dds", "a process joins a domain on one interface", "give one address")
        }
        [_] if typed.interface.is_some() => {
            refuse(INTERFACE, "--bind", "over DDS both name the interface of the participant", "leave one of them out")
        }
        _ => Ok(()),
    }
}

pub(super) fn history(typed: &str) -> Result<History, RequestError> {
    let hint = "`keep-all`, or a number of samples such as `keep-last:16`";
    let unusable = |cause| value::unusable("--history", typed, cause, hint);
    match typed.split_once(':') {
        None if typed == "keep-all" => Ok(History::KeepAll),
        Some(("keep-last", depth)) => match depth.parse() {
            Ok(depth) if (1..=DEPTH_MAX).contains(&depth) => Ok(History::KeepLast(depth)),
            _ => Err(unusable("its depth is a whole number from 1 to 10000")),
        },
        _ => Err(unusable("it is not a HISTORY policy")),
    }
}

/// `path` through `interface`, which is an address or a name as of `--bind`.
fn through(interface: Option<&str>, path: PathSpec) -> Result<PathSpec, RequestError> {
    let Some(typed) = interface else { return Ok(path) };
    if path.bind_address.is_some() || path.bind_interface.is_some() {
        return Err(RequestError::OutOfPlace {
            option: INTERFACE,
            with: "--bind".into(),
            cause: "over DDS both name the interface of the participant",
            hint: "leave one of them out",
        });
    }
    let (bind_address, bind_interface) = bind(INTERFACE, Some(typed))?;
    Ok(PathSpec { bind_address, bind_interface, ..path })
}

/// Refuses a host at `address`, unless it is loopback or the interface is named: a participant answers strangers there.
pub fn interface_needed(target: &Target, address: Option<IpAddr>, path: &PathSpec) -> Result<(), RequestError> {
    let is_named = path.bind_address.is_some() || path.bind_interface.is_some();
    match (target, address) {
        (Target::Host { .. }, Some(address)) if !is_named && !address.to_canonical().is_loopback() => {
            Err(RequestError::Alone {
                option: "--transport dds",
                needed: INTERFACE,
                cause: "a DDS participant answers every host that reaches its interface, so latlab chooses none by itself",
                hint: "add `--interface eth0`, or the address of this host on the path; docs/dds.md says what is exposed",
            })
        }
        _ => Ok(()),
    }
}

/// The address of `target`, if it is not a name.
fn literal(target: &Target) -> Option<IpAddr> {
    let Target::Host { host, .. } = target else { return None };
    literal_address(host)
}

/// The address that `typed` is, with or without a zone, alone or in `[ADDR]:PORT`.
fn literal_address(typed: &str) -> Option<IpAddr> {
    let alone = typed.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(typed);
    alone.split('%').next().and_then(|address| address.parse().ok())
}

/// The library's own sockets and discovery name addresses without a zone.
fn refuse_link_local(option: &'static str, typed: &str) -> Result<(), RequestError> {
    match literal_address(typed) {
        Some(IpAddr::V6(address)) if address.is_unicast_link_local() => Err(value::unusable(
            option,
            typed,
            "the DDS library takes no link-local address over IPv6",
            "use an IPv4 address or another IPv6 address of that host: `ip address` lists them there",
        )),
        _ => Ok(()),
    }
}

/// `target` as DDS knows it: a plain echo has no port, and is in the default partition.
pub(super) fn target(target: Target, transport: TransportKind, protocol: Protocol) -> Target {
    match target {
        Target::Host { host, .. } if transport == TransportKind::Dds && protocol == Protocol::Echo => {
            Target::Host { host, port: 0 }
        }
        other => other,
    }
}

/// The first option in `typed` that was given.
fn first_of(typed: &DdsArgs) -> Option<&'static str> {
    let given = [("--reliability", typed.reliability.is_some()), ("--keyed", typed.keyed)];
    given.into_iter().find(|(_, given)| *given).map(|(option, _)| option).or_else(|| first_of_domain(&typed.at))
}

/// The first option in `typed` that was given.
pub(super) fn first_of_domain(typed: &DdsDomainArgs) -> Option<&'static str> {
    let DdsDomainArgs { domain, history, multicast, interface } = typed;
    let given = [
        ("--domain", domain.is_some()),
        ("--history", history.is_some()),
        ("--multicast", multicast.is_some()),
        (INTERFACE, interface.is_some()),
    ];
    given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

/// The error of an option over another transport.
pub(super) fn only_over_dds(option: &'static str, transport: TransportKind) -> RequestError {
    RequestError::OutOfPlace {
        option,
        with: format!("--transport {}", transport.word()),
        cause: "it applies to DDS only",
        hint: "add `--transport dds`, or leave it out",
    }
}
