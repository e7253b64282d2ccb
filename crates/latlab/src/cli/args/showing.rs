use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::plan::CompatOutput;

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
pub struct VerbosityArgs {
    /// No progress, notes or warnings on stderr; results and errors stay
    #[arg(short, long, conflicts_with = "verbose", hide_short_help = true)]
    pub quiet: bool,
    /// More notes on stderr: addresses, pins, where files are
    #[arg(short, long, hide_short_help = true)]
    pub verbose: bool,
}

/// Whose lines are printed besides.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What the summary says")]
pub struct CompatOutputArgs {
    /// Add the lines of another tool: netperf-udp-stream [default: none]
    #[arg(long, value_name = "TOOL", value_parser = tools(), hide_possible_values = true, hide_short_help = true)]
    pub like: Option<CompatOutput>,
}

fn tools() -> impl TypedValueParser<Value = CompatOutput> {
    PossibleValuesParser::new([CompatOutput::NetperfUdpStream.word()]).map(|_| CompatOutput::NetperfUdpStream)
}
