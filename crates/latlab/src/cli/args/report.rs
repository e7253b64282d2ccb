//! Options of `latlab report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{GroupingArgs, JudgingArgs, VerbosityArgs};

#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Recordings, an experiment or stores: directories, or names or short ids in the store
    ///
    /// Runs are compared if they are of an experiment, if `--by` or `--group` says what a group is, or if one of several
    /// PATHs has several runs.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub grouping: GroupingArgs,
    /// Metric that is compared, such as response_time [default: the main one of the kind]
    #[arg(long, value_name = "METRIC", help_heading = "Comparison")]
    pub metric: Option<String>,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Show the delays there and back with a bound
    #[arg(long, conflicts_with = "figure")]
    pub one_way: bool,
    #[command(flatten)]
    pub writing: WritingArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// What is written, and where.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct WritingArgs {
    /// Write to FILE, or - for standard output [default: NAME.html of what is reported, here]
    ///
    /// A file that exists is replaced if latlab wrote it. Several PATHs make latlab-report.html, a plot makes a file with
    /// its name. The path is printed.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace any file
    #[arg(long)]
    pub force: bool,
    /// Write this plot only; `list` prints the names of the plots [default: the whole page]
    #[arg(long, value_name = "NAME")]
    pub figure: Option<String>,
    /// Format of the plot [default: by the extension of FILE, else svg]
    #[arg(long, value_name = "FORM", requires = "figure")]
    pub format: Option<FigureFormat>,
}

/// The form of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    /// Lines and text, for papers; `rsvg-convert -z 3 FILE` makes pixels of it.
    #[default]
    Svg,
    /// Its data.
    Csv,
}

impl FigureFormat {
    /// The end of the names of its files, without a point.
    pub const fn extension(self) -> &'static str {
        match self {
            FigureFormat::Svg => "svg",
            FigureFormat::Csv => "csv",
        }
    }
}
