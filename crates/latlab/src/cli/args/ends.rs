use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::plan::WaitMode;

/// How the process of an end runs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How it runs")]
pub struct EndArgs {
    /// Wait for datagrams by block, spin or busy-poll [default: block]
    ///
    /// block: sleep in the kernel.
    /// spin: ask again and again, at the cost of a core.
    /// busy-poll: sleep in a kernel that polls the driver first.
    /// Both ends do so where latlab starts both (local, lab, ssh:, cmd:).
    #[arg(
        long, value_name = "WORD", value_parser = wait_words(), verbatim_doc_comment,
        hide_possible_values = true
    )]
    pub wait: Option<WaitMode>,
    /// Pin the measuring thread to CPU N [default: not pinned]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub cpu: Option<String>,
    /// Run under SCHED_FIFO with priority PRIO, 1 to 99 [default: the system's scheduler]
    #[arg(long, value_name = "PRIO", allow_hyphen_values = true, hide_short_help = true)]
    pub fifo: Option<String>,
    /// Lock all memory
    #[arg(long, hide_short_help = true)]
    pub mlock: bool,
}

/// The end that latlab starts for itself.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How it runs")]
pub struct PeerArgs {
    /// Pin the other end to CPU N, where latlab starts it [default: not pinned]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub peer_cpu: Option<String>,
}

fn wait_words() -> impl TypedValueParser<Value = WaitMode> {
    PossibleValuesParser::new(["block", "spin", "busy-poll"]).map(|word| match word.as_str() {
        "spin" => WaitMode::Spin,
        "busy-poll" => WaitMode::BusyPoll,
        _ => WaitMode::Block,
    })
}
