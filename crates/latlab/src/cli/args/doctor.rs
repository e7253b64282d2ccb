//! Options of `latlab doctor` and `latlab bare`.

use clap::Args;

use super::measuring::reliability_words;
use super::{EndArgs, JsonArgs, PeerArgs, VerbosityArgs};
use crate::plan::Reliability;

/// `latlab doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// The host to look at: local, ssh:HOST or cmd:COMMAND [default: local]
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Look at the interface of an agent's host with this address [default: the one that ssh reached]
    #[arg(long, value_name = "ADDR", help_heading = "What is looked at")]
    pub peer_addr: Option<String>,
    /// Measure the bare loop on the chosen pins: the floor under every figure
    #[arg(long, help_heading = "What is looked at")]
    pub calibrate: bool,
    /// Only restore the settings that a killed latlab left changed on this host
    #[arg(long, conflicts_with = "calibrate", help_heading = "What is looked at")]
    pub restore: bool,
    /// Payload of the bare loop in bytes, 24 to 65507 [default: 64]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, help_heading = "What is looked at")]
    pub size: Option<String>,
    /// This end.
    #[command(flatten)]
    pub ends: EndArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
    /// In which form.
    #[command(flatten)]
    pub json: JsonArgs,
    /// How much is said.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `latlab bare`: hidden, for `latlab doctor --calibrate` and the benches.
#[derive(Clone, Debug, Args)]
pub struct BareArgs {
    /// Round trips [default: 50000]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub count: Option<String>,
    /// Payload in bytes [default: 64]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true)]
    pub size: Option<String>,
    /// Send one every T, not each after the answer to the last
    #[arg(short, long, value_name = "T", conflicts_with = "tcp")]
    pub interval: Option<String>,
    /// Over one TCP connection
    #[arg(long)]
    pub tcp: bool,
    /// Past the network stack (AF_XDP), between two private network namespaces
    #[arg(long, conflicts_with_all = ["tcp", "interval", "dds"])]
    pub xdp: bool,
    /// Over DDS, best-effort or reliable
    #[arg(long, value_name = "WORD", value_parser = reliability_words(), conflicts_with_all = ["tcp", "interval"])]
    pub dds: Option<Reliability>,
    /// HISTORY over DDS: keep-last:N or keep-all [default: keep-last:16]
    #[arg(long, value_name = "POLICY", requires = "dds")]
    pub history: Option<String>,
    /// This end.
    #[command(flatten)]
    pub ends: EndArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
}
