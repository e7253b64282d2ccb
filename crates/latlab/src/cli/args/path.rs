use std::path::PathBuf;

use clap::Args;

/// How the datagrams of a measurement leave this host.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which way")]
pub struct PathArgs {
    /// As those of any traffic.
    #[command(flatten)]
    pub way: AddressArgs,
    /// Send from UDP port N; sweep: 16 ports, a session each [default: the system's choice]
    ///
    /// sweep shows multipath: the ports 30000 to 30015 become interleaved runs, one each.
    #[arg(long, value_name = "N|sweep", allow_hyphen_values = true, hide_short_help = true)]
    pub source_port: Option<String>,
}

/// How datagrams leave this host.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which way")]
pub struct AddressArgs {
    /// The key of a reflector that is not on loopback.
    #[command(flatten)]
    pub key: KeyFileArgs,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long, hide_short_help = true)]
    pub ipv6: bool,
    /// Send from this address, or through this interface [default: the route's]
    #[arg(long, value_name = "ADDR|INTERFACE", hide_short_help = true)]
    pub bind: Option<String>,
    /// Measure to this address of an agent's host [default: the one that ssh reached]
    ///
    /// For ssh: and cmd:, whose connection may take another way than the
    /// probes. The agent answers on this address only.
    #[arg(long, value_name = "ADDR", verbatim_doc_comment, hide_short_help = true)]
    pub peer_addr: Option<String>,
    /// Mark datagrams with code point N, 0 to 63 (RFC 2474) [default: the system's]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true)]
    pub dscp: Option<String>,
    /// Forbid fragmentation: what does not fit the path is refused
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
