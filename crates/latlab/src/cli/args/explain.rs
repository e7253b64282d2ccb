//! Options of `latlab explain`.

use std::path::PathBuf;

use clap::Args;

use super::{JsonArgs, VerbosityArgs};

#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Recordings of `ping` or `wakeup`: directories, or names or short ids in the store
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// The slowest episodes to list; text shows 10, with -v all [default: 20]
    #[arg(long, value_name = "N", help_heading = "Selection", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub worst: Option<u16>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}
