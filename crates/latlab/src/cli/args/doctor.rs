//! Options of `latlab doctor` and `latlab bare`.

use std::net::IpAddr;

use clap::Args;

use super::{EndArgs, JsonArgs, PeerArgs, VerbosityArgs};
use crate::cli::value::{self, TypedTarget};
use crate::plan::{History, Reliability, defaults};
use crate::units::Nanos;

/// The loop keeps its round trips in memory: 200 MB at the limit.
const BARE_COUNT_MAX: u64 = 50_000_000;

/// `latlab doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// The host to look at: local, ssh:HOST or cmd:COMMAND [default: local]
    #[arg(value_name = "TARGET", value_parser = value::target)]
    pub target: Option<TypedTarget>,
    /// Look at the interface of an agent's host with this address [default: the one that ssh reached]
    #[arg(long, value_name = "ADDR", help_heading = "What is looked at", value_parser = value::peer_address)]
    pub peer_addr: Option<IpAddr>,
    /// Measure the bare loop on the chosen pins: the floor under every figure
    #[arg(long, help_heading = "What is looked at")]
    pub calibrate: bool,
    /// Only restore the settings that a killed latlab left changed on this host
    #[arg(long, conflicts_with = "calibrate", help_heading = "What is looked at")]
    pub restore: bool,
    /// Payload of the bare loop in bytes, 24 to 65507 [default: 64]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, help_heading = "What is looked at", value_parser = value::size)]
    pub size: Option<u32>,
    #[command(flatten)]
    pub ends: EndArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `latlab bare`: hidden, for `latlab doctor --calibrate` and the benches.
#[derive(Clone, Debug, Default, Args)]
pub struct BareArgs {
    /// Round trips [default: 50000]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u64>(1..=BARE_COUNT_MAX))]
    pub count: Option<u64>,
    /// Payload in bytes [default: 64]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = value::size)]
    pub size: Option<u32>,
    /// Send one every T, not each after the answer to the last
    #[arg(short, long, value_name = "T", conflicts_with = "tcp", value_parser = value::span(defaults::INTERVAL_MAX))]
    pub interval: Option<Nanos>,
    /// Over one TCP connection
    #[arg(long)]
    pub tcp: bool,
    /// Past the network stack (AF_XDP), between two private network namespaces
    #[arg(long, conflicts_with_all = ["tcp", "interval", "dds"])]
    pub xdp: bool,
    /// Over DDS, best-effort or reliable
    #[arg(long, value_name = "WORD", value_parser = value::one_of(&Reliability::ALL, Reliability::word), conflicts_with_all = ["tcp", "interval"])]
    pub dds: Option<Reliability>,
    /// HISTORY over DDS: keep-last:N or keep-all [default: keep-last:16]
    #[arg(long, value_name = "POLICY", requires = "dds", value_parser = value::history)]
    pub history: Option<History>,
    #[command(flatten)]
    pub ends: EndArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
}
