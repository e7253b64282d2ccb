use std::path::PathBuf;

use clap::Args;

/// Where the recording goes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is kept")]
pub struct OutputArgs {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Write the recording to this new directory instead [default: a new one in the store]
    ///
    /// Several runs make one recording each inside it. A directory that exists is refused.
    #[arg(short, long, value_name = "DIR", conflicts_with_all = ["store", "no_record"], hide_short_help = true)]
    pub output: Option<PathBuf>,
    /// Keep nothing but the summary
    #[arg(long, conflicts_with = "store", hide_short_help = true)]
    pub no_record: bool,
    /// Note KEY=VALUE with the run; repeatable [default: none]
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    pub tag: Vec<String>,
}

/// Where recordings are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is kept")]
pub struct StoreArgs {
    /// Directory of all recordings [default: ./latlab-runs, or $LATLAB_STORE]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
}
