use clap::Args;

/// In which form results are printed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is printed")]
pub struct JsonArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// How much is said on stderr.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is printed")]
pub struct TalkArgs {
    /// No progress, notes or warnings on stderr; results and errors stay
    #[arg(short, long, conflicts_with = "verbose", hide_short_help = true)]
    pub quiet: bool,
    /// More notes on stderr: addresses, pins, where files are
    #[arg(short, long, hide_short_help = true)]
    pub verbose: bool,
}
