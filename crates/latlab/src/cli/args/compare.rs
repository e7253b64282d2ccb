//! Options of `latlab compare` and `latlab summary`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{GateArgs, JsonArgs, JudgingArgs, VerbosityArgs};
use crate::analysis::comparison::Lines;
use crate::cli::value::{self, Confidence, Delimiters, NamedGlob};
use crate::plan::{Kind, defaults};

#[derive(Clone, Debug, Default, Args)]
pub struct CompareArgs {
    /// An experiment's directory, recordings, files of numbers, or - for standard input
    ///
    /// Experiments and recordings of the usual store can be named as `latlab list` shows them, or by their short ids.
    /// A file of numbers has one observation on each line. Of recordings each run is one observation, so that a group
    /// is several recordings: `--by` or `--group` say which. The first group is the baseline.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub grouping: GroupingArgs,
    #[command(flatten)]
    pub column: ColumnArgs,
    /// What a line of a file of numbers is [default: runs, up to 100 lines]
    ///
    /// A run is an observation. Probes are of one run, which is their file; so are, by default, more than 100 lines.
    #[arg(long, value_name = "WHAT", help_heading = "Files of numbers", value_parser = value::one_of(&Lines::ALL, Lines::word), hide_short_help = true, conflicts_with = "ministat")]
    pub lines: Option<Lines>,
    #[command(flatten)]
    pub comparing: ComparingArgs,
    #[command(flatten)]
    pub showing: ComparisonArgs,
    #[command(flatten)]
    pub plots: PlotArgs,
    #[command(flatten)]
    pub ministat: MinistatArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Which observations belong together.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Grouping")]
pub struct GroupingArgs {
    /// Group recordings by a factor: load, size, target, tag:KEY … [default: each PATH]
    ///
    /// One of target, transport, protocol, size, schedule, interval, wait, source-port, load, setting:KNOB and tag:KEY.
    /// The runs of an experiment are grouped by all of its factors.
    #[arg(long, value_name = "FACTOR", conflicts_with = "group")]
    pub by: Option<String>,
    /// The level of `--by` that the others are compared with [default: the first]
    ///
    /// Levels stand in the order of the experiment's file; elsewhere `none` is first, then numbers by size, then the
    /// alphabet.
    #[arg(long, value_name = "LEVEL", requires = "by", allow_hyphen_values = true)]
    pub baseline: Option<String>,
    /// Paths that match GLOB form group NAME; repeatable, the first is the baseline [default: each PATH]
    #[arg(long, value_name = "NAME=GLOB", value_parser = value::named_glob)]
    pub group: Vec<NamedGlob>,
    /// Only recordings of this kind [default: all, which must be of one kind]
    #[arg(long, value_name = "KIND", value_parser = value::one_of(&Kind::ALL, Kind::word), hide_short_help = true)]
    pub kind: Option<Kind>,
}

/// Where the numbers of a file are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Files of numbers")]
pub struct ColumnArgs {
    /// Column of a file of numbers, from 1 [default: 1]
    #[arg(short = 'C', value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<usize>(1..=defaults::TEXT_COLUMN_MAX))]
    pub column: Option<usize>,
    /// The characters between columns of a file of numbers [default: space and tab]
    #[arg(short = 'd', value_name = "DELIMS", allow_hyphen_values = true, hide_short_help = true, value_parser = value::delimiters)]
    pub delimiters: Option<Delimiters>,
}

/// What is compared, and how sure the answer has to be.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Comparison")]
pub struct ComparingArgs {
    /// Metric of recordings, such as response_time [default: the main one of their kind]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Statistic of each run: mean, p50, p99.9, loss_ratio …; repeatable [default: mean, p50, p99]
    ///
    /// With --ministat one: the mean unless another is named.
    #[arg(long, value_name = "STATISTIC")]
    pub statistic: Vec<String>,
    /// Confidence of intervals and tests, in per cent [default: 95]
    ///
    /// With --ministat one of 80, 90, 95, 98, 99 and 99.5.
    #[arg(short, long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = value::confidence)]
    pub confidence: Option<Confidence>,
    /// Equivalence margin: differences within ±MARGIN, such as 3%, count as none [default: no margin]
    #[arg(long, value_name = "MARGIN", allow_hyphen_values = true, value_parser = value::percent)]
    pub equivalence: Option<f64>,
    /// Population that the verdict applies to [default: blocks]
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    pub over: Option<OverWord>,
    /// Exit with 1 unless '[METRIC] STATISTIC <= CHANGE' holds; repeatable [default: none]
    ///
    /// Such as 'p99 <= +5%'. It does not hold if the whole interval of the change lies beyond the limit.
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub gate: Vec<String>,
    /// Exit with 1 also if a gate cannot be decided
    #[arg(long, requires = "gate", hide_short_help = true)]
    pub gate_strict: bool,
}

/// How comparisons are shown.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct ComparisonArgs {
    /// Add the differences at the deciles and in the tails
    #[arg(long)]
    pub shift: bool,
    /// Explain the method and the assumptions of each verdict
    #[arg(long)]
    pub explain: bool,
    /// Form of the table [default: text]
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    pub format: Option<FormatWord>,
}

/// Plots in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Display")]
pub struct PlotArgs {
    /// Add plots: histograms on one axis, and of a comparison box plots and ministat's plot
    #[arg(long, conflicts_with = "json")]
    pub plot: bool,
    /// Draw them in ASCII [default: unless the locale has UTF-8]
    #[arg(long, requires = "plot", hide_short_help = true)]
    pub ascii: bool,
}

/// ministat's own flags. `-C`, `-c`, `-d` and `-q` are shared with the other form.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "ministat compatibility")]
pub struct MinistatArgs {
    /// Print the output of FreeBSD's ministat: plot, statistics, Student's t against the first group
    ///
    /// Takes 1 to 7 groups of at least 3 observations each; standard input if no PATH is given. With it `-q` also
    /// leaves out the names of the groups and the heading of the table.
    #[arg(long)]
    pub ministat: bool,
    /// No plot
    #[arg(short = 'A', hide_short_help = true)]
    pub no_plot: bool,
    /// The statistics only: no plot, no test
    #[arg(short = 'n', hide_short_help = true)]
    pub figures_only: bool,
    /// A separate line in the plot for the bar of each group
    #[arg(short = 's', hide_short_help = true)]
    pub separate_bars: bool,
    /// Width of the plot in characters [default: the terminal's, else 74]
    #[arg(short = 'w', value_name = "WIDTH", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<usize>(defaults::PLOT_WIDTHS))]
    pub width: Option<usize>,
}

/// What a comparison generalises over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OverWord {
    /// The blocks that were measured.
    #[default]
    Blocks,
    /// Other boots of the host.
    Boots,
}

/// The form of a table of comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatWord {
    /// For a terminal.
    #[default]
    Text,
    /// For a pull request.
    Markdown,
    /// For a paper or a spreadsheet.
    Csv,
}

#[derive(Clone, Debug, Args)]
pub struct SummaryArgs {
    /// Recordings, stores or experiments: directories, or names or short ids in the store
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Show the delays there and back with a bound
    #[arg(long)]
    pub one_way: bool,
    /// Leave the intervals out: they take longer than everything else
    #[arg(long)]
    pub no_intervals: bool,
    /// How bad can it get: p99.99 and beyond, and what is reached once a minute, hour or day, with 95 % bounds
    #[arg(long)]
    pub extremes: bool,
    #[command(flatten)]
    pub plots: PlotArgs,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}
