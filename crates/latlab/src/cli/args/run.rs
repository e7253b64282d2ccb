//! Options of `latlab run` and `latlab recipes`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{GateArgs, JsonArgs, StoreArgs, VerbosityArgs};
use crate::cli::value;
use crate::plan::defaults;
use crate::units::Nanos;

#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "latlab run [OPTIONS] FILE|RECIPE|DIR [TARGET]\n       latlab run [OPTIONS] --ab A B [-- COMMAND]"
)]
pub struct RunArgs {
    /// The file of an experiment, the name of a recipe, or an experiment's directory
    ///
    /// FILE: continues the newest unfinished experiment of that file, else begins a new one.
    /// RECIPE: one of `latlab recipes`; continued or begun in the same way.
    /// DIR: continues that experiment, or reports it if it is finished; also its name in the store, or its short id.
    #[arg(value_name = "FILE|RECIPE|DIR", verbatim_doc_comment, required_unless_present = "ab")]
    pub what: Option<PathBuf>,
    /// With a recipe: measure against TARGET, as `latlab ping` does [default: local; of udp-loopback-matrix: lab]
    #[arg(value_name = "TARGET", conflicts_with = "to_target")]
    pub target: Option<String>,
    #[command(flatten)]
    pub ab: AbArgs,
    #[command(flatten)]
    pub amount: AmountArgs,
    #[command(flatten)]
    pub going_on: ResumeArgs,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    /// Form of the report [default: text]
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    pub format: Option<ReportFormat>,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// The form of the report of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal.
    #[default]
    Text,
    /// For a pull request or a page.
    Markdown,
}

/// Two commands, measured in turns.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A/B comparison")]
pub struct AbArgs {
    /// Compare commands A and B; with COMMAND they are services that it measures [default: none]
    ///
    /// {port} in A, B, --ready, TARGET and a command that measures is a free port, another one for each run.
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub ab: Vec<String>,
    /// Call A and B so in the results [default: the commands]
    #[arg(long, value_name = "A,B", requires = "ab", value_delimiter = ',')]
    pub names: Vec<String>,
    /// A and B are run to their end before each run, such as a script that deploys a build
    #[arg(long, requires = "measuring", hide_short_help = true)]
    pub ab_deploy: bool,
    /// When a run starts, such as tcp:{port}, http:{port}/health or line:REGEX [default: HOST:PORT of TARGET or {port} receives]
    ///
    /// udp:, tcp: and http: take [HOST:]PORT, listen: takes PORT, line: looks at what the service writes, time:2s waits.
    /// Anything else is a command that is repeated until it succeeds.
    #[arg(long, value_name = "WHEN", requires = "ab", hide_short_help = true)]
    pub ready: Option<String>,
    /// Runs of each command in a block, or `until STATISTIC ±SHARE` [default: 16]
    #[arg(long, value_name = "N|RULE", requires = "ab", hide_short_help = true)]
    pub runs: Option<String>,
    /// Maximum number of runs of each command; required with `until` [default: none]
    #[arg(long, value_name = "N", requires = "ab", hide_short_help = true)]
    pub max_runs: Option<u32>,
    /// Number of blocks; each repeats all runs [default: 1]
    #[arg(long, value_name = "N", requires = "ab", hide_short_help = true)]
    pub blocks: Option<u32>,
    /// Equivalence margin: differences within ±MARGIN, such as 3%, count as none [default: no margin]
    #[arg(
        long, value_name = "MARGIN", requires = "ab", hide_short_help = true, allow_hyphen_values = true,
        value_parser = value::percent_word
    )]
    pub equivalence: Option<String>,
    /// Print the experiment file that `--ab` stands for, and exit
    #[arg(long, requires = "ab", hide_short_help = true)]
    pub print_file: bool,
    /// The measuring command, after `--`: `ping TARGET …`, `stream …`, `wakeup …` or `command … -- PROGRAM …`
    ///
    /// Without it, or with `command` and options only, A and B are measured: each run executes its command for a second, at
    /// most 100 times.
    #[arg(value_name = "COMMAND", last = true, requires = "ab", hide_short_help = true)]
    pub measuring: Vec<OsString>,
}

/// How much of a recipe is done, and against what.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Recipe")]
pub struct AmountArgs {
    /// The same as the second argument [default: local; of udp-loopback-matrix: lab]
    #[arg(long = "target", value_name = "TARGET", hide_short_help = true)]
    pub to_target: Option<String>,
    /// Short run, at most a minute [default: at most half an hour]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Run at the scale of the publication
    #[arg(long)]
    pub full: bool,
    /// Reboot between blocks: latlab ends after each block, and the same command continues after the boot
    #[arg(long, conflicts_with = "quick")]
    pub reboots: bool,
}

/// What to go on with, and how far.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Execution")]
pub struct ResumeArgs {
    /// Print the plan only: order of the runs, duration and disk use
    #[arg(long, conflicts_with_all = ["json", "format", "print_unit"])]
    pub dry_run: bool,
    /// Print designs that find CHANGE, such as 'p99 3%', by the spread of the runs that exist [default: none]
    ///
    /// These are the runs of the newest experiment of FILE, or else the recordings of its conditions in the store.
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["json", "format", "print_unit", "dry_run", "gate", "budget"])]
    pub plan: Option<String>,
    /// Begin a new experiment, even if one is unfinished
    #[arg(long, conflicts_with = "force")]
    pub new: bool,
    /// Continue although the file has changed; the two parts are then no longer one experiment
    #[arg(long)]
    pub force: bool,
    /// Continue after a failed run, which is kept and marked, but not compared
    #[arg(long)]
    pub keep_going: bool,
    /// Begin no further run after T once each condition has as many runs as the others, or one more [default: no limit]
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::PAUSE_MAX))]
    pub budget: Option<Nanos>,
    /// Run the commands of a file (`[hooks]`, `cmd:` targets) although others can write it
    #[arg(long)]
    pub trust_file: bool,
    /// Print a systemd unit that continues the experiment after a boot, and exit
    #[arg(long, conflicts_with_all = ["json", "format", "gate"])]
    pub print_unit: bool,
}

#[derive(Clone, Debug, Args)]
#[command(override_usage = "latlab recipes [OPTIONS] [[show] NAME]")]
pub struct RecipesArgs {
    /// Show recipe NAME: its experiment file, the published results, the conclusions [default: list all recipes]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The name, if the first word is `show`.
    #[arg(value_name = "NAME", hide = true)]
    pub name_after_show: Option<String>,
    /// Show the file for TARGET [default: that of `latlab run`]
    #[arg(long, value_name = "TARGET", help_heading = "Recipe")]
    pub target: Option<String>,
    /// Show the file of --quick
    #[arg(long, conflicts_with = "full", help_heading = "Recipe")]
    pub quick: bool,
    /// Show the file of --full
    #[arg(long, help_heading = "Recipe")]
    pub full: bool,
    /// Show the file of --reboots
    #[arg(long, conflicts_with = "quick", help_heading = "Recipe")]
    pub reboots: bool,
}
