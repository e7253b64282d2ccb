//! Options of `latlab check-published`.

use std::path::PathBuf;

use clap::Args;

use super::{ColumnArgs, JsonArgs, VerbosityArgs};
use crate::cli::value;
use crate::formats::import::LogFormat;
use crate::plan::defaults;
use crate::units::human::TimeUnit;

#[derive(Clone, Debug, Args)]
pub struct CheckPublishedArgs {
    /// The raw data: a recording, a log of another tool, a file of numbers, or - for standard input
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    #[command(flatten)]
    pub claims: ClaimArgs,
    #[command(flatten)]
    pub sample: RawDataArgs,
    #[command(flatten)]
    pub column: ColumnArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// What is published.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Claims")]
pub struct ClaimArgs {
    /// Published values, such as 'mean=296us p99.9=11.026ms n=50000'; repeatable [default: those of --claims-file]
    ///
    /// Names are n, lost, loss, mean, min, max, median, stddev and quantiles such as p99.9, with the digits and the unit as
    /// published.
    #[arg(long, value_name = "CLAIMS", allow_hyphen_values = true, required_unless_present = "claims_file")]
    pub claims: Vec<String>,
    /// A file of such claims; # begins a comment [default: none]
    #[arg(long, value_name = "FILE")]
    pub claims_file: Option<PathBuf>,
}

/// What the raw data are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct RawDataArgs {
    /// Format of the log, as of `latlab import` [default: found by its content, unless -C, -d or --id-column is given]
    #[arg(long, value_name = "FORMAT", value_parser = value::log_format, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub from: Option<&'static LogFormat>,
    /// Column of a CSV file that has the values, by its name or number [default: the only one]
    #[arg(long = "column", value_name = "COLUMN", hide_short_help = true, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub csv_column: Option<String>,
    /// Column that says how often each value occurred, for histograms: its name or number [default: each value is one]
    #[arg(long, value_name = "COLUMN", hide_short_help = true, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub count_column: Option<String>,
    /// What stands for a lost probe in place of its value [default: ',timeout,*,nan,negative']
    #[arg(long, value_name = "WORDS", hide_short_help = true, allow_hyphen_values = true, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub lost: Option<String>,
    /// Direction of an fio log: read, write or trim [default: the only one]
    #[arg(long, hide_short_help = true, value_name = "DIRECTION", value_parser = value::direction, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub direction: Option<String>,
    /// Unit of numbers and logs that do not state it, and of claims without one [default: numbers without a unit]
    #[arg(long, value_name = "UNIT", value_parser = value::time_unit())]
    pub unit: Option<TimeUnit>,
    /// Column of the packet ids in a file of numbers, from 1 [default: none]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<usize>(1..=defaults::TEXT_COLUMN_MAX))]
    pub id_column: Option<usize>,
    /// Metric of recordings, such as round_trip_delay_less_dwell [default: the main one of their kind]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// The published values are half round trips
    #[arg(long)]
    pub half: bool,
}
