use clap::Args;

use super::{AddressArgs, JsonArgs, VerbosityArgs};

/// What the run is loaded with.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Under what conditions")]
pub struct LoadArgs {
    /// Make a load meanwhile, such as cpu=80%; repeatable [default: none]
    ///
    /// KIND=VALUE[@local|@peer|@both][:key=value,…]
    /// cpu=80%      share of every CPU's time; :cpus=0-1, :period=10ms
    /// heaters=30   workers that hash without end; :cpus=0-1
    /// mem=2GB/s    bytes read and written; :cpus=, :period=, :buffer=
    /// net=10Mbit/s  UDP on the measured path; net=90% of its no-loss rate;
    ///              net=max; :size=, :wire, :cpu=, :spin
    /// none         no load
    /// With local and lab all three places mean this one host.
    #[arg(long, value_name = "SPEC", verbatim_doc_comment, allow_hyphen_values = true, hide_short_help = true)]
    pub load: Vec<String>,
}

/// `latlab load`.
#[derive(Clone, Debug, Args)]
pub struct HoldArgs {
    /// The path of a network load; the others need none [default: local]
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// The loads.
    #[command(flatten)]
    pub loads: LoadArgs,
    /// Hold them for a time of T, such as 10s or 2m [default: 10s]
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true, help_heading = "How long")]
    pub duration: Option<String>,
    /// Which way the packets of a network load take.
    #[command(flatten)]
    pub way: AddressArgs,
    /// What is printed.
    #[command(flatten)]
    pub json: JsonArgs,
    /// How much is said.
    #[command(flatten)]
    pub talk: VerbosityArgs,
}
