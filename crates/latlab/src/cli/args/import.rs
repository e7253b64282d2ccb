//! Options of `latlab import`.

use std::path::PathBuf;

use clap::Args;

use super::{JsonArgs, StoreArgs, VerbosityArgs};
use crate::cli::value::{self, Tag};
use crate::formats::import::LogFormat;
use crate::metric::Metric;
use crate::units::human::TimeUnit;

#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// Log of another tool, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Write the recording to this new directory instead [default: a new one in the store]
    #[arg(short, long, value_name = "DIR", conflicts_with = "store", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Add the tag KEY=VALUE to the recording; repeatable [default: none]
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Output", value_parser = value::tag)]
    pub tag: Vec<Tag>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// What a log is, as far as it does not say so itself.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Log format")]
pub struct LogArgs {
    /// Format of the log [default: found by its content]
    ///
    /// docs/import.md describes each of them.
    #[arg(long, value_name = "FORMAT", value_parser = value::log_format)]
    pub from: Option<&'static LogFormat>,
    /// Unit of its values: ns, us, ms or s [default: the one that the log states]
    #[arg(long, value_name = "UNIT", value_parser = value::time_unit(), hide_possible_values = true)]
    pub unit: Option<TimeUnit>,
    /// Column that has the values: its name, or its number from 1; the log is taken for CSV [default: the only one]
    #[arg(long, value_name = "COLUMN")]
    pub column: Option<String>,
    /// Column that says how often each value occurred, for histograms: its name or number [default: each value is one]
    #[arg(long, value_name = "COLUMN")]
    pub count_column: Option<String>,
    /// What stands for a lost probe in place of its value [default: ',timeout,*,nan,negative']
    ///
    /// Words are separated by commas. An empty one is an empty cell, and `negative` any number below 0.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub lost: Option<String>,
    /// Metric of the values: delay, round_trip_delay or wakeup_latency [default: what the format says, else delay]
    #[arg(long, value_name = "METRIC", value_parser = value::logged_metric)]
    pub metric: Option<Metric>,
    /// Direction of an fio log: read, write or trim [default: the only one]
    #[arg(long, value_name = "DIRECTION", value_parser = value::direction)]
    pub direction: Option<String>,
    /// Skip malformed rows, and count them [default: a malformed row is an error]
    ///
    /// Lines without a row are always skipped and counted.
    #[arg(long)]
    pub skip_bad: bool,
}
