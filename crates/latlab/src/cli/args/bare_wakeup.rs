use clap::Args;

use super::{SettingArgs, ThreadArgs};

/// `latlab bare-wakeup`: hidden, for the benches.
#[derive(Clone, Debug, Args)]
pub struct BareWakeupArgs {
    /// Wake-ups that count [default: 1000]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub count: Option<String>,
    /// Wake-ups before them [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub warmup: Option<String>,
    /// From one to the next [default: 10ms]
    #[arg(short, long, value_name = "T", allow_hyphen_values = true)]
    pub interval: Option<String>,
    /// How the thread runs.
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// What is set meanwhile.
    #[command(flatten)]
    pub settings: SettingArgs,
}
