use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{EndArgs, PeerArgs};
use crate::plan::SendMode;

/// `latlab bare-stream`: hidden, for the benches.
#[derive(Clone, Debug, Args)]
pub struct BareStreamArgs {
    /// Hand packets over by send, sendmmsg or gso [default: send]
    #[arg(long, value_name = "WORD", value_parser = modes(), default_value = "send")]
    pub mode: SendMode,
    /// Payload in bytes [default: 1472]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true)]
    pub size: Option<String>,
    /// Packets between two looks at the clock [default: 64]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub batch: Option<String>,
    /// For how long [default: 1s]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Connect the socket
    #[arg(long)]
    pub connect: bool,
    /// Over IPv6
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// This end.
    #[command(flatten)]
    pub ends: EndArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
}

fn modes() -> impl TypedValueParser<Value = SendMode> {
    PossibleValuesParser::new(SendMode::ALL.map(SendMode::word))
        .map(|word| SendMode::ALL.into_iter().find(|mode| mode.word() == word).unwrap_or(SendMode::Send))
}
