//! Options of `latlab check-published`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ColumnArgs, JsonArgs, VerbosityArgs};
use crate::units::human::TimeUnit;

/// `latlab check-published`.
#[derive(Clone, Debug, Args)]
pub struct CheckPublishedArgs {
    /// The raw data: a recording, a log of another tool, a file of numbers, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "group", conflicts_with = "group")]
    pub path: Option<PathBuf>,
    /// What is published.
    #[command(flatten)]
    pub claims: ClaimArgs,
    /// What the raw data are.
    #[command(flatten)]
    pub sample: RawDataArgs,
    /// What GLOB matches is one group of a claim `a > b`; repeatable [default: PATH is one sample]
    #[arg(long, value_name = "NAME=GLOB", help_heading = "What a group is")]
    pub group: Vec<String>,
    /// Where the numbers of a file are.
    #[command(flatten)]
    pub column: ColumnArgs,
    /// In which form.
    #[command(flatten)]
    pub json: JsonArgs,
    /// How much is said.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// What is published.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What must hold")]
pub struct ClaimArgs {
    /// Published figures, such as 'mean=296us p99.9=11.026ms n=50000'; repeatable [default: those of --claims-file]
    ///
    /// Figures are n, lost, loss, mean, min, max, median, stddev and quantiles such as p99.9, with the digits and the unit as
    /// published. Of groups 'a > b' or 'a < b'.
    #[arg(long, value_name = "CLAIMS", allow_hyphen_values = true, required_unless_present = "claims_file")]
    pub claims: Vec<String>,
    /// A file of such claims; # begins a comment [default: none]
    #[arg(long, value_name = "FILE")]
    pub claims_file: Option<PathBuf>,
}

/// What the raw data are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is looked at")]
pub struct RawDataArgs {
    /// Format of the log, as of `latlab import` [default: found by its content, unless -C, -d or --id-column is given]
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub from: Option<String>,
    /// Column of a CSV file that has the values, by its name [default: the only one]
    #[arg(long = "column", value_name = "NAME", hide_short_help = true, conflicts_with_all = ["column", "delimiters", "id_column"])]
    pub csv_column: Option<String>,
    /// Direction of an fio log: read, write or trim [default: the only one]
    #[arg(long, hide_short_help = true, value_name = "DIRECTION", conflicts_with_all = ["group", "column", "delimiters", "id_column"])]
    pub direction: Option<String>,
    /// Unit of numbers and logs that do not state it, and of claims without one [default: numbers without a unit]
    #[arg(long, value_name = "UNIT", conflicts_with = "group")]
    pub unit: Option<UnitWord>,
    /// Column of a file of numbers that has the packet ids, from 1 [default: none]
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "group")]
    pub id_column: Option<String>,
    /// The file has the lateness of sleeps of T, such as 100ms [default: not of sleeps]
    #[arg(long, value_name = "T", allow_hyphen_values = true, conflicts_with = "group")]
    pub sleep: Option<String>,
    /// Metric of recordings, such as round_trip_delay_less_dwell [default: the main one of their kind]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// The published figures are said to be of half round trips
    #[arg(long, conflicts_with = "group")]
    pub half: bool,
}

/// A unit of time as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitWord {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl UnitWord {
    /// The unit.
    pub const fn unit(self) -> TimeUnit {
        match self {
            UnitWord::Ns => TimeUnit::Nanos,
            UnitWord::Us => TimeUnit::Micros,
            UnitWord::Ms => TimeUnit::Millis,
            UnitWord::S => TimeUnit::Seconds,
        }
    }
}
