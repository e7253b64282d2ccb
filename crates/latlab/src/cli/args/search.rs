use clap::Args;

/// The search for a rate, and probes beside the stream.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is sent")]
pub struct SearchArgs {
    /// Find the highest rate that loses no more than LOSS [default: 0,0.5%]
    ///
    /// Several goals are searched for at once, in the manner of MLRsearch (RFC 9971); --rate is the most that is tried.
    /// Then the first found rate is held, and 0, 50 and 90 % of it before that, beside probes. With -d, or within 60 s,
    /// all of it is over.
    #[arg(
        long, value_name = "LOSS[,…]", value_delimiter = ',', num_args = 0..=1, default_missing_value = "0,0.5%"
    )]
    pub search: Vec<String>,
    /// Send a probe every T beside the stream [default: off, with --search 1ms]
    ///
    /// In a session of its own, answered by a process of its own where latlab starts it.
    #[arg(long, value_name = "T|off", allow_hyphen_values = true, hide_short_help = true)]
    pub probe: Option<String>,
}
