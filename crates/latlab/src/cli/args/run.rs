//! Options of `latlab run` and `latlab recipes`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{GateArgs, JsonArgs, StoreArgs, VerbosityArgs};
use crate::cli::value;

/// `latlab run`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "latlab run [OPTIONS] FILE|RECIPE|DIR [TARGET]\n       latlab run [OPTIONS] --ab A B -- COMMAND"
)]
pub struct RunArgs {
    /// The file of an experiment, the name of a recipe, or an experiment's directory
    ///
    /// FILE: goes on with the newest unfinished experiment of that file, else begins one.
    /// RECIPE: one of `latlab recipes`, the same way.
    /// DIR: goes on with that one; one that is finished is only reported. Its name in the store, or its short id, will do.
    #[arg(value_name = "FILE|RECIPE|DIR", verbatim_doc_comment, required_unless_present = "ab")]
    pub what: Option<PathBuf>,
    /// Of a recipe: measure against TARGET, as `latlab ping` does [default: local; of udp-loopback-matrix: lab]
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
#[command(next_help_heading = "Of two commands")]
pub struct AbArgs {
    /// Compare command B with command A: each runs while its runs are measured, such as a server in
    /// two builds [default: none]
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "measuring")]
    pub ab: Vec<String>,
    /// A and B run before each run and end by themselves, such as a script that deploys a build
    #[arg(long, requires = "ab", hide_short_help = true)]
    pub ab_deploy: bool,
    /// What a run waits for: `udp HOST:PORT`, `tcp HOST:PORT` or a command [default: HOST:PORT of TARGET]
    #[arg(long, value_name = "WHAT", requires = "ab", hide_short_help = true)]
    pub wait_for: Option<String>,
    /// Runs of each in a block, or `until STATISTIC ±SHARE` [default: 10]
    #[arg(long, value_name = "N|RULE", requires = "ab", hide_short_help = true)]
    pub runs: Option<String>,
    /// Most runs of each, which `until` needs [default: none]
    #[arg(long, value_name = "N", requires = "ab", hide_short_help = true)]
    pub max_runs: Option<u32>,
    /// Blocks, each of which repeats all runs [default: 1]
    #[arg(long, value_name = "N", requires = "ab", hide_short_help = true)]
    pub blocks: Option<u32>,
    /// Differences within ±MARGIN, such as 3%, count as none [default: any difference counts]
    #[arg(
        long, value_name = "MARGIN", requires = "ab", hide_short_help = true, allow_hyphen_values = true,
        value_parser = value::percent_word
    )]
    pub equivalence: Option<String>,
    /// Print the file that `--ab` stands for, and do nothing else
    #[arg(long, requires = "ab", hide_short_help = true)]
    pub print_file: bool,
    /// The command that measures, behind `--`: `ping TARGET …`, `stream …` or `wakeup …`
    #[arg(value_name = "COMMAND", last = true, requires = "ab", hide_short_help = true)]
    pub measuring: Vec<OsString>,
}

/// How much of a recipe is done, and against what.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Of a recipe")]
pub struct AmountArgs {
    /// The same as the second argument [default: local; of udp-loopback-matrix: lab]
    #[arg(long = "target", value_name = "TARGET", hide_short_help = true)]
    pub to_target: Option<String>,
    /// Done within a minute [default: within half an hour]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// At the publication's scale
    #[arg(long)]
    pub full: bool,
    /// A reboot between its blocks: it ends after each, and the same command goes on after the next boot
    #[arg(long, conflicts_with = "quick")]
    pub reboots: bool,
}

/// What to go on with, and how far.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "How it goes on")]
pub struct ResumeArgs {
    /// Only say what would be done, in what order, how long it takes and how much it leaves
    #[arg(long, conflicts_with_all = ["json", "format", "print_unit"])]
    pub dry_run: bool,
    /// Begin another one, whatever is unfinished
    #[arg(long, conflicts_with = "force")]
    pub new: bool,
    /// Go on although the file has changed: the two parts are no longer one experiment
    #[arg(long)]
    pub force: bool,
    /// Go on when a run fails: it is kept, marked, and not judged
    #[arg(long)]
    pub keep_going: bool,
    /// Run the commands of a file (`[hooks]`, `cmd:` targets) although others can write it
    #[arg(long)]
    pub trust_file: bool,
    /// Print a systemd unit that goes on with it at boot, and do nothing else
    #[arg(long, conflicts_with_all = ["json", "format", "gate"])]
    pub print_unit: bool,
}

/// `latlab recipes`.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "latlab recipes [OPTIONS] [[show] NAME]")]
pub struct RecipesArgs {
    /// Show recipe NAME: its file, the published figures, the lesson [default: list all recipes]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The name, if the first word is `show`.
    #[arg(value_name = "NAME", hide = true)]
    pub name_after_show: Option<String>,
    /// Fill in TARGET [default: that of `latlab run`]
    #[arg(long, value_name = "TARGET", help_heading = "Of a recipe")]
    pub target: Option<String>,
    /// Fill in the scale of --quick
    #[arg(long, conflicts_with = "full", help_heading = "Of a recipe")]
    pub quick: bool,
    /// Fill in the scale of --full
    #[arg(long, help_heading = "Of a recipe")]
    pub full: bool,
    /// Fill in a reboot between its blocks
    #[arg(long, conflicts_with = "quick", help_heading = "Of a recipe")]
    pub reboots: bool,
}
