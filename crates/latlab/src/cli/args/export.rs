//! Options of `latlab export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::VerbosityArgs;
use crate::cli::value;
use crate::plan::Kind;
use crate::recording::RecordedTable;
use crate::units::human::TimeUnit;

#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Recordings, stores or experiments: directories, or names or short ids in the store
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub content: ExportContentArgs,
    #[command(flatten)]
    pub writing: ExportWritingArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// What is exported.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Exported data")]
pub struct ExportContentArgs {
    /// Format [default: that of the end of FILE, else csv]
    ///
    /// Every row: csv, jsonl or parquet, with the conditions of its run. Histograms: hlog for HdrHistogram. Statistics of
    /// runs: values for ministat, jitter for mean and standard deviation. Probes of one run: roundtrip-csv or
    /// four-times.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,
    /// Table of csv, jsonl and parquet [default: the main one of the kind]
    #[arg(long, value_name = "TABLE", value_parser = value::one_of(&RecordedTable::ALL, RecordedTable::word))]
    pub table: Option<RecordedTable>,
    /// Metric of other formats and of --histogram, such as response_time [default: the main one of the kind]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Print the bins of the histogram of a summary instead of rows, as csv or jsonl
    #[arg(long, conflicts_with = "table")]
    pub histogram: bool,
    /// Statistic of each run for values, such as p99 or mean [default: p50]
    #[arg(long, value_name = "STATISTIC")]
    pub statistic: Option<String>,
    /// With values: one number for each answered probe, instead of a statistic of each run
    #[arg(long, conflicts_with = "statistic")]
    pub singletons: bool,
    /// Unit of values and jitter [default: ns, of jitter us]
    #[arg(long, value_name = "UNIT", value_parser = value::time_unit())]
    pub unit: Option<TimeUnit>,
    /// Only recordings of this kind [default: all, which must be of one kind]
    #[arg(long, value_name = "KIND", value_parser = value::one_of(&Kind::ALL, Kind::word))]
    pub kind: Option<Kind>,
}

/// Where it is written.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ExportWritingArgs {
    /// Write to FILE, or - for standard output [default: standard output]
    ///
    /// The file appears when all of it is written. An existing file is replaced if it is an earlier export of this format;
    /// files of values cannot be recognised and need --force.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace any file
    #[arg(long)]
    pub force: bool,
}

/// A format of `latlab export`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Rows as comma-separated values.
    #[default]
    Csv,
    /// Rows as JSON objects, one on each line.
    Jsonl,
    /// Rows as one Parquet file.
    Parquet,
    /// An interval log of HdrHistogram.
    Hlog,
    /// Numbers, one on each line, for ministat.
    Values,
    /// Round trips of one run in seconds, with a header line.
    RoundtripCsv,
    /// Sequence number and four time stamps of each answered probe of one run, in ns.
    FourTimes,
    /// Mean and standard deviation of each run, a line for each.
    Jitter,
    /// A trace of one run for ui.perfetto.dev.
    Perfetto,
}
