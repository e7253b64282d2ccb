use std::path::PathBuf;

use clap::Args;

use super::{CompatOutputArgs, JsonArgs, JudgingArgs, VerbosityArgs};

/// `latlab summary`.
#[derive(Clone, Debug, Args)]
pub struct SummaryArgs {
    /// Recordings: directories that measuring commands have written
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// What to say.
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Which other tool's lines stand beside it.
    #[command(flatten)]
    pub like: CompatOutputArgs,
    /// Leave the intervals out: they take longer than everything else
    #[arg(long)]
    pub no_intervals: bool,
    /// Exit with 1 if this holds: '[METRIC] STATISTIC OP VALUE'; repeatable [default: none]
    ///
    /// Such as 'p99 > 200us', 'loss_ratio > 0.1%' or 'response_time p99.9 >= 1ms'. The default
    /// metric is the recording's main one. A quantile lost to infinity counts as infinite.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// In which form.
    #[command(flatten)]
    pub json: JsonArgs,
    /// How much is said.
    #[command(flatten)]
    pub talk: VerbosityArgs,
}
