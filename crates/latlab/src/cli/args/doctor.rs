//! Options of `latlab doctor`.

use std::net::IpAddr;

use clap::Args;

use super::{EndArgs, JsonArgs, PeerArgs, VerbosityArgs};
use crate::cli::value::{self, TypedTarget};

#[derive(Clone, Debug, Args)]
#[command(mut_arg("cpu", |cpu| cpu.help("Pin the measuring thread to CPU N [default: any]")))]
pub struct DoctorArgs {
    /// The host to check: local, ssh:HOST or cmd:COMMAND [default: local]
    #[arg(value_name = "TARGET", value_parser = value::target)]
    pub target: Option<TypedTarget>,
    /// Check the interface with this address on the host of an agent [default: the one that ssh reached]
    #[arg(long, value_name = "ADDR", help_heading = "Checks", value_parser = value::peer_address)]
    pub peer_addr: Option<IpAddr>,
    /// Measure the bare loop (send and receive, nothing else) on the chosen CPUs: the lower limit of delays there
    #[arg(long, help_heading = "Checks")]
    pub calibrate: bool,
    /// Only restore the settings that a killed latlab left changed on this host
    #[arg(long, conflicts_with = "calibrate", help_heading = "Checks")]
    pub restore: bool,
    /// Payload of the bare loop in bytes, 24 to 65507 [default: 64]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, help_heading = "Checks", value_parser = value::size)]
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
