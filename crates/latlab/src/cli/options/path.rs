//! The path of probes: target, addresses and key.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;

use super::{DdsArgs, XdpArgs, dds, xdp};
use crate::cli::value::{self, Bind, TypedTarget, address_in, out_of_place};
use crate::diagnostics::Failure;
use crate::plan::{Family, PathSpec, Protocol, Target, TransportKind};

/// How the datagrams of a measurement leave this host.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Network path")]
pub struct PathArgs {
    #[command(flatten)]
    pub way: AddressArgs,
    /// Source port N; sweep: 16 ports in turn, one session each [default: chosen by the system]
    ///
    /// sweep shows differences between paths (ECMP): one run for each of the ports 30000 to 30015, interleaved.
    #[arg(long, value_name = "N|sweep", allow_hyphen_values = true, hide_short_help = true, value_parser = value::source_ports)]
    pub source_port: Option<RangeInclusive<u16>>,
}

/// How datagrams leave this host.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Network path")]
pub struct AddressArgs {
    #[command(flatten)]
    pub key: KeyFileArgs,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long, hide_short_help = true)]
    pub ipv6: bool,
    /// Source address or interface [default: chosen by the routing table]
    #[arg(long, value_name = "ADDR|INTERFACE", hide_short_help = true, value_parser = value::bind)]
    pub bind: Option<Bind>,
    /// Address of the agent's host that probes are sent to [default: the one that ssh reached]
    ///
    /// For ssh: and cmd:, whose connection may use another path than the probes. The agent answers on this address only.
    #[arg(long, value_name = "ADDR", hide_short_help = true, value_parser = value::peer_address)]
    pub peer_addr: Option<IpAddr>,
    /// DSCP of the datagrams: 0 to 63, CS0 to CS7, AF11 to AF43 or EF [default: the system's]
    #[arg(long, value_name = "DSCP", allow_hyphen_values = true, hide_short_help = true, value_parser = value::code_point)]
    pub dscp: Option<u8>,
    /// Forbid fragmentation (DF): datagrams larger than the path MTU are refused
    #[arg(long, hide_short_help = true)]
    pub df: bool,
}

/// Where the pre-shared key is.
#[derive(Clone, Debug, Default, Args)]
pub struct KeyFileArgs {
    /// Key shared by both ends, from `latlab keygen` [default: none, loopback only]
    #[arg(long, value_name = "FILE")]
    pub psk_file: Option<PathBuf>,
}

/// Source of the pre-shared key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// No key: probes carry no tag.
    None,
    /// A generated key, passed to both ends, which latlab starts itself.
    Fresh,
    File(PathBuf),
    Descriptor(i32),
}

pub(in crate::cli) fn target(typed: Option<&TypedTarget>, protocol: Protocol) -> Target {
    typed.map_or(Target::Local, |typed| typed.over(protocol))
}

/// Resolves the path without its source port, since there may be several.
pub(in crate::cli) fn path(
    typed: &AddressArgs,
    dds: &DdsArgs,
    xdp: &XdpArgs,
    transport: TransportKind,
    target: &Target,
) -> Result<PathSpec, Failure> {
    let AddressArgs { key: _, ipv4, ipv6, bind, peer_addr, dscp, df } = typed;
    let family = match (ipv4, ipv6) {
        (true, _) => Some(Family::Ipv4),
        (_, true) => Some(Family::Ipv6),
        _ => None,
    };
    agree(family, bind.as_ref().and_then(Bind::address), target, *peer_addr)?;
    let bind = bind.as_ref().or(dds.at.interface.as_ref());
    let path = PathSpec {
        family,
        peer_address: *peer_addr,
        bind_address: bind.and_then(Bind::address),
        bind_interface: bind.and_then(Bind::interface).map(str::to_owned),
        source_port: None,
        dscp: *dscp,
        dont_fragment: *df,
        dds: (transport == TransportKind::Dds).then(|| dds::spec(dds)),
        xdp: None,
    };
    if path.dds.is_some() {
        let bind = if dds.at.interface.is_some() { "--interface" } else { "--bind" };
        dds::expect_addresses(target, &path, bind)?;
    }
    Ok(xdp::with_queues(xdp, transport, path, target))
}

/// Resolves the source of the key. Host names are checked after their lookup: see [`key_needed`].
pub(in crate::cli) fn key(typed: &KeyFileArgs, target: &Target, protocol: Protocol) -> Result<KeySource, Failure> {
    match (&typed.psk_file, target) {
        (Some(file), _) => Ok(KeySource::File(file.clone())),
        (None, Target::Lab | Target::Ssh { .. } | Target::Command { .. }) => Ok(KeySource::Fresh),
        (None, Target::Host { host, .. }) if protocol == Protocol::Native => match address_in(host) {
            Some(address) => key_needed(target, address).map(|()| KeySource::None),
            None => Ok(KeySource::None),
        },
        (None, _) => Ok(KeySource::None),
    }
}

/// Refuses an address other than loopback without a key.
///
/// Numeric addresses are checked during resolution; host names are checked by the caller after their lookup.
pub fn key_needed(target: &Target, address: IpAddr) -> Result<(), Failure> {
    if address.to_canonical().is_loopback() {
        return Ok(());
    }
    let hint = "`latlab keygen lab.key`, copy it to that host, then `--psk-file lab.key` at both ends";
    Err(without_key(&target.to_string(), hint))
}

pub(in crate::cli) fn without_key(address: &str, hint: &str) -> Failure {
    let cause = "without a key only loopback is measured and served";
    Failure::request(format!("`{address}` needs a key")).because(cause).hint(hint)
}

/// Refuses `-4`, `-6`, source address, peer address and target of different families.
fn agree(family: Option<Family>, bind: Option<IpAddr>, target: &Target, peer: Option<IpAddr>) -> Result<(), Failure> {
    let of = |address: IpAddr| if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let (option, family) = match (family, bind) {
        (Some(Family::Ipv4), _) => ("-4", Family::Ipv4),
        (Some(Family::Ipv6), _) => ("-6", Family::Ipv6),
        (None, Some(bind)) => ("--bind", of(bind)),
        (None, None) => return Ok(()),
    };
    let host = match target {
        Target::Host { host, .. } => address_in(host).map(|address| (address, target.to_string())),
        _ => None,
    };
    let others = [
        bind.map(|bind| (bind, format!("--bind {bind}"))),
        peer.map(|peer| (peer, format!("--peer-addr {peer}"))),
        host,
    ];
    match others.into_iter().flatten().find(|(address, _)| of(*address) != family) {
        Some((_, with)) => {
            Err(out_of_place(option, with, "they belong to two versions of IP", "leave one of them out"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(source(&host(name), Protocol::Native).is_err(), "{name}");
            assert_eq!(source(&host(name), Protocol::Echo), Ok(KeySource::None), "{name}");
        }
        assert_eq!(source(&Target::Lab, Protocol::Native), Ok(KeySource::Fresh));
        let typed = KeyFileArgs { psk_file: Some("k".into()) };
        assert_eq!(key(&typed, &host("192.0.2.9"), Protocol::Native), Ok(KeySource::File("k".into())));
    }
}
