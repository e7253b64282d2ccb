//! Arguments as typed.
#![allow(rustdoc::broken_intra_doc_links, reason = "these comments are help texts, and `[V6]:PORT` is no link")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::Timestamp;

pub use check_published::{CheckPublishedArgs, ClaimArgs, RawDataArgs};
pub use command::{CommandArgs, in_its_words as command_in_its_words};
pub use compare::{
    ColumnArgs, CompareArgs, ComparingArgs, ComparisonArgs, FormatWord, GroupingArgs, MinistatArgs, OverWord, PlotArgs,
    SummaryArgs,
};
pub use doctor::DoctorArgs;
pub use explain::ExplainArgs;
pub use export::{ExportArgs, ExportContentArgs, ExportFormat, ExportWritingArgs};
pub use import::{ImportArgs, LogArgs};
pub use measuring::{
    EndArgs, GateArgs, HoldArgs, JsonArgs, JudgingArgs, LiveArgs, LoadArgs, MeasuringArgs, OutputArgs, PeerArgs,
    ProbeArgs, RemedyArgs, ScheduleArgs, SettingArgs, StopArgs, StoreArgs, TraceArgs, VerbosityArgs,
};
pub use ping::PingArgs;
pub use report::{FigureFormat, ReportArgs, WritingArgs};
pub use run::{AbArgs, AmountArgs, RecipesArgs, ReportFormat, ResumeArgs, RunArgs};
pub use serve::{CapArgs, ServeArgs};
pub use stream::{PacketArgs, SearchArgs, StreamArgs, StreamStopArgs};
pub use wakeup::{SleepArgs, ThreadArgs, WakeupArgs, in_its_words as wakeup_in_its_words};

mod check_published;
mod command;
mod compare;
mod doctor;
mod explain;
mod export;
mod import;
mod measuring;
mod ping;
mod report;
mod run;
mod serve;
mod stream;
mod wakeup;

use crate::cli::value::{self, Tag};

/// A latency laboratory: how long does a message take, why, and did my change make it better?
#[derive(Clone, Debug, Parser)]
#[command(name = "latlab", bin_name = "latlab", version, disable_help_subcommand = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure round trips, record every probe, print a summary
    Ping(Box<PingArgs>),
    /// Measure one-way rates: offered, delivered, lost
    Stream(Box<StreamArgs>),
    /// Measure how long a program takes, and what it uses
    Command(Box<CommandArgs>),
    /// Measure how late a timer wakes this host's user code, and why
    Wakeup(Box<WakeupArgs>),
    /// Run a reflector: answer authenticated sessions; changes nothing on this host
    Serve(Box<ServeArgs>),
    /// Write a new pre-shared key to a new file, mode 0600
    Keygen(KeygenArgs),
    /// Print the statistics of recordings
    Summary(SummaryArgs),
    /// Show why probes were slow: where the time went, and what the worst have in common
    Explain(ExplainArgs),
    /// Test whether groups of runs differ: change, interval, verdict
    Compare(Box<CompareArgs>),
    /// Write one HTML page with tables and plots, or a single plot
    Report(Box<ReportArgs>),
    /// Convert a log of another tool into a recording
    Import(ImportArgs),
    /// Export recordings to other tools: CSV, JSON lines, Parquet, histograms, statistics of runs
    Export(Box<ExportArgs>),
    /// Check published results against the raw data, and find the mistakes that explain wrong ones
    CheckPublished(Box<CheckPublishedArgs>),
    /// Generate CPU, memory or network load, and report what was reached
    Load(HoldArgs),
    /// Run an experiment: factors, runs in random order, blocks; resumable
    Run(Box<RunArgs>),
    /// List the built-in experiments, or show one as a file
    Recipes(RecipesArgs),
    /// List the recordings in the store
    List(ListArgs),
    /// List what on this host would disturb a measurement, and how to fix it
    Doctor(DoctorArgs),
    /// Run the remote end of ssh: and cmd: targets; started by latlab itself
    Agent(AgentArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print a man page, or write all of them
    Man(ManArgs),
    /// Print the help of latlab, or of a command
    Help(HelpArgs),
    /// Reflect for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    Reflector,
    /// Load the network for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    NetLoad,
    /// Restore what the agent that started this process has set, if it is killed
    #[command(hide = true)]
    Watchdog {
        /// Process ID of the agent
        agent: u32,
    },
    /// Make one load for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    Stressor,
    /// Kill a process group once the latlab that started this process has ended
    #[command(hide = true)]
    Guard {
        /// ID of the group
        #[arg(value_parser = clap::value_parser!(i32).range(2..))]
        group: i32,
    },
}

#[derive(Clone, Debug, Args)]
pub struct KeygenArgs {
    /// New file; an existing one is not changed
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Clone, Copy, Debug, Args)]
pub struct AgentArgs {
    /// Use standard input and output; required
    #[arg(long, help_heading = "Connection")]
    pub stdio: bool,
}

#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub filter: ListFilterArgs,
    #[command(flatten)]
    pub prune: PruneArgs,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// Which recordings and experiments are listed, and in which order.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct ListFilterArgs {
    /// Recordings of this kind, or experiments; repeatable [default: all]
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<ListedKind>,
    /// Recordings with this tag; repeatable: those with all of them [default: with any or none]
    ///
    /// An experiment has a tag if all of its runs have it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = value::tag)]
    pub tag: Vec<Tag>,
    /// Started at most AGE ago or since DATE, such as 12h, 2d, 3w or 2026-11-20 (UTC) [default: at any time]
    #[arg(long, value_name = "AGE|DATE", allow_hyphen_values = true, value_parser = value::instant)]
    pub since: Option<Timestamp>,
    /// Started more than AGE ago or before DATE [default: at any time]
    #[arg(long, value_name = "AGE|DATE", allow_hyphen_values = true, value_parser = value::instant)]
    pub before: Option<Timestamp>,
    /// Sort order [default: time]
    #[arg(long, value_name = "KEY")]
    pub sort: Option<SortKey>,
}

/// What is removed.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Removal")]
pub struct PruneArgs {
    /// List which of the selected would be removed; removes only with --yes; needs --tag or --before
    ///
    /// Only finished recordings and finished experiments are removed, experiments as a whole. A directory with any file
    /// that latlab did not write is kept.
    #[arg(long)]
    pub prune: bool,
    /// Remove what --prune lists
    #[arg(long)]
    pub yes: bool,
}

/// What a row of `latlab list` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListedKind {
    /// Round trips.
    Ping,
    /// One-way rates.
    Stream,
    /// Executions of commands.
    Command,
    /// Wake-ups.
    Wakeup,
    /// Values of imported logs.
    Values,
    /// An experiment.
    Experiment,
}

/// The order of `latlab list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// The newest first, the runs of an experiment below it.
    #[default]
    Time,
    /// By kind.
    Kind,
    /// The most rows first.
    Rows,
    /// The largest first.
    Size,
    /// By state.
    State,
}

#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed [default: the page of latlab]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,
    /// Write latlab.1 and a page for each command to DIR [default: print one page]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct HelpArgs {
    /// The command to explain [default: latlab as a whole]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}
