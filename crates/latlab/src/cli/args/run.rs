//! Options of `latlab run` and `latlab recipes`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{GateArgs, JsonArgs, StoreArgs, VerbosityArgs};

/// `latlab run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The file of an experiment, the name of a recipe, or an experiment's directory
    ///
    /// FILE: goes on with the newest unfinished experiment of that file, else begins one.
    /// RECIPE: one of `latlab recipes`, the same way.
    /// DIR: goes on with that one; one that is finished is only reported. Its name in the store, or its short id, will do.
    #[arg(value_name = "FILE|RECIPE|DIR", verbatim_doc_comment)]
    pub what: PathBuf,
    /// Of a recipe: measure against TARGET, as `latlab ping` does [default: local; of udp-loopback-matrix: lab]
    #[arg(value_name = "TARGET", conflicts_with = "to_target")]
    pub target: Option<String>,
    /// How much of it.
    #[command(flatten)]
    pub amount: AmountArgs,
    /// What to go on with.
    #[command(flatten)]
    pub going_on: ResumeArgs,
    /// What must hold of each run.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Where.
    #[command(flatten)]
    pub store: StoreArgs,
    /// In which form.
    #[command(flatten)]
    pub json: JsonArgs,
    /// Form of the report [default: text]
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    pub format: Option<ReportFormat>,
    /// How much is said.
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
    /// Run the commands of a file (`cmd:` targets) although others can write it
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
