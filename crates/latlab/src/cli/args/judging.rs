use clap::Args;

/// What the summary says.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What the summary says")]
pub struct JudgingArgs {
    /// Quantiles between 0 and 1 [default: 0.5,0.9,0.99,0.999,0.9999]
    ///
    /// `latlab summary` takes the run's own choice as its default, for --window and --deadline too.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, hide_short_help = true)]
    pub quantiles: Vec<String>,
    /// Add a row for every T, such as 1s [default: no rows]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true)]
    pub window: Option<String>,
    /// Add the share of probes that took longer than T, such as 500us [default: no deadline]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true)]
    pub deadline: Option<String>,
    /// Add columns headed `round trip / 2`, to stand beside tools that print it
    #[arg(long, hide_short_help = true)]
    pub half: bool,
}
