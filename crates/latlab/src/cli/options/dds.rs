//! DDS: domain, policies and interface.

use std::net::{IpAddr, SocketAddr};

use clap::Args;

use crate::cli::value::{self, Bind, address_in, alone, out_of_place, unusable};
use crate::diagnostics::Failure;
use crate::plan::{DdsSpec, History, PathSpec, Protocol, Reliability, Target, TransportKind};

/// How samples travel over DDS.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "DDS")]
pub struct DdsArgs {
    /// RELIABILITY of readers and writers: best-effort or reliable [default: best-effort]
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&Reliability::ALL, Reliability::word), hide_short_help = true,
        hide_possible_values = true
    )]
    pub reliability: Option<Reliability>,
    /// Use topics whose type has a key
    #[arg(long, hide_short_help = true)]
    pub keyed: bool,
    #[command(flatten)]
    pub at: DdsDomainArgs,
}

/// The domain, and what is kept there.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "DDS")]
pub struct DdsDomainArgs {
    /// Join DDS domain N, 0 to 230 [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u16>(0..=DdsSpec::DOMAIN_MAX))]
    pub domain: Option<u16>,
    /// HISTORY of readers and writers: keep-last:N or keep-all [default: keep-last:16]
    #[arg(long, value_name = "POLICY", hide_short_help = true, value_parser = value::history)]
    pub history: Option<History>,
    /// Largest datagram in bytes, 1232 to 65500 [default: 14720]
    #[arg(long, value_name = "BYTES", hide_short_help = true, value_parser = value::whole::<u16>(DdsSpec::MESSAGE_BYTES))]
    pub dds_message_size: Option<u16>,
    /// Discovery by multicast, on or off [default: off]
    ///
    /// off: only the addressed host is asked.
    #[arg(
        long, value_name = "WORD", value_parser = value::switch(), hide_short_help = true,
        hide_possible_values = true
    )]
    pub multicast: Option<bool>,
    /// Interface of the participant [default: loopback, or that of the route to an agent]
    #[arg(long, value_name = "INTERFACE|ADDR", hide_short_help = true, value_parser = value::bind)]
    pub interface: Option<Bind>,
}

pub(in crate::cli) fn spec(typed: &DdsArgs) -> DdsSpec {
    DdsSpec { reliability: typed.reliability.unwrap_or_default(), keyed: typed.keyed, ..domain(&typed.at) }
}

/// The domain of a reflector, which serves senders of every reliability and type.
pub(in crate::cli) fn domain(typed: &DdsDomainArgs) -> DdsSpec {
    DdsSpec {
        domain: typed.domain.unwrap_or(0),
        history: typed.history.unwrap_or_default(),
        multicast: typed.multicast.unwrap_or(false),
        message_bytes: typed.dds_message_size,
        reliability: Reliability::default(),
        keyed: false,
    }
}

/// Refuses a path whose addresses DDS cannot have, or that would expose a participant. `bind` names the interface.
pub(in crate::cli) fn expect_addresses(target: &Target, path: &PathSpec, bind: &str) -> Result<(), Failure> {
    let host = if let Target::Host { host, .. } = target { Some(host.as_str()) } else { None };
    host.map_or(Ok(()), |host| refuse_link_local("TARGET", host))?;
    path.bind_address.map_or(Ok(()), |address| refuse_link_local(bind, &address.to_string()))?;
    interface_needed(target, host.and_then(address_in), path)
}

/// Refuses addresses of a reflector that DDS cannot have.
pub(in crate::cli) fn expect_addresses_of_reflector(
    addresses: &[SocketAddr],
    at: &DdsDomainArgs,
) -> Result<(), Failure> {
    addresses.iter().try_for_each(|address| refuse_link_local("--bind", &address.to_string()))?;
    at.interface.as_ref().map_or(Ok(()), |interface| refuse_link_local("--interface", &interface.to_string()))?;
    match addresses {
        [_, _, ..] => {
            let cause = "a process joins a domain on one interface";
            Err(out_of_place("--bind", "--transport dds", cause, "give one address"))
        }
        _ => Ok(()),
    }
}

/// Refuses a host at `address`, unless it is loopback or the interface is named: a participant answers strangers there.
pub fn interface_needed(target: &Target, address: Option<IpAddr>, path: &PathSpec) -> Result<(), Failure> {
    let is_named = path.bind_address.is_some() || path.bind_interface.is_some();
    match (target, address) {
        (Target::Host { .. }, Some(address)) if !is_named && !address.to_canonical().is_loopback() => Err(alone(
            "--transport dds",
            "--interface",
            "a DDS participant answers every host that reaches its interface, so latlab chooses none by itself",
            "add `--interface eth0`, or the address of this host on the path; docs/dds.md says what is exposed",
        )),
        _ => Ok(()),
    }
}

/// The library's own sockets and discovery name addresses without a zone.
fn refuse_link_local(option: &str, typed: &str) -> Result<(), Failure> {
    match address_in(typed) {
        Some(IpAddr::V6(address)) if address.is_unicast_link_local() => Err(unusable(
            option,
            typed,
            "the DDS library takes no link-local address over IPv6",
            "use an IPv4 address or another IPv6 address of that host: `ip address` lists them there",
        )),
        _ => Ok(()),
    }
}

/// `target` as DDS knows it: a plain echo has no port, and is in the default partition.
pub(in crate::cli) fn target(target: Target, transport: TransportKind, protocol: Protocol) -> Target {
    match target {
        Target::Host { host, .. } if transport == TransportKind::Dds && protocol == Protocol::Echo => {
            Target::Host { host, port: 0 }
        }
        other => other,
    }
}
