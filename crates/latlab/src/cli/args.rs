//! What was typed, and nothing of what it means: values are text until [`super::resolve`] reads them.
#![allow(rustdoc::broken_intra_doc_links, reason = "these comments are help texts, and `[V6]:PORT` is no link")]

mod bare_stream;
mod bare_wakeup;
mod compare;
mod doctor;
mod ends;
mod judging;
mod keeping;
mod load;
mod path;
mod ping;
mod probes;
mod run;
mod search;
mod serve;
mod setting;
mod showing;
mod small;
mod stream;
mod summary;
mod wakeup;

use clap::{Parser, Subcommand};

pub use bare_stream::BareStreamArgs;
pub use bare_wakeup::BareWakeupArgs;
pub use compare::{CompareArgs, ComparingArgs, ComparisonArgs, FormatWord, GroupingArgs, MinistatArgs, OverWord};
pub use doctor::{BareArgs, DoctorArgs};
pub use ends::{EndArgs, PeerArgs};
pub use judging::JudgingArgs;
pub use keeping::{OutputArgs, StoreArgs};
pub use load::{HoldArgs, LoadArgs};
pub use path::{AddressArgs, KeyFileArgs, PathArgs};
pub use ping::PingArgs;
pub use probes::{ProbeArgs, ScheduleArgs, StopArgs};
pub use run::{AmountArgs, RecipesArgs, ResumeArgs, RunArgs};
pub use search::SearchArgs;
pub use serve::{CapArgs, ServeArgs};
pub use setting::SettingArgs;
pub use showing::{CompatOutputArgs, JsonArgs, VerbosityArgs};
pub use small::{AgentArgs, CompletionsArgs, KeygenArgs, ListArgs, ManArgs};
pub use stream::{PacketArgs, StreamArgs, StreamStopArgs};
pub use summary::SummaryArgs;
pub use wakeup::{SleepArgs, ThreadArgs, WakeupArgs, in_its_words as wakeup_in_its_words};

/// A latency laboratory: how long does a message take, why, and did my change make it better?
#[derive(Clone, Debug, Parser)]
#[command(name = "latlab", version, max_term_width = 80, disable_help_subcommand = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure round trips, keep every probe, print a summary
    Ping(Box<PingArgs>),
    /// Measure one-way rates: offered, delivered, lost
    Stream(Box<StreamArgs>),
    /// Measure how late a timer wakes this host's user code, and why
    Wakeup(Box<WakeupArgs>),
    /// Answer authenticated sessions; changes nothing on this host
    Serve(ServeArgs),
    /// Write a fresh pre-shared key to a new file, mode 0600
    Keygen(KeygenArgs),
    /// Print the statistics of recordings
    Summary(SummaryArgs),
    /// Say whether there is a difference, how big, how sure
    Compare(Box<CompareArgs>),
    /// Make loads, hold them, and say what was reached
    Load(HoldArgs),
    /// Conduct an experiment: factors, runs in random order, blocks; resumable
    Run(Box<RunArgs>),
    /// List the built-in experiments, or show one as a file
    Recipes(RecipesArgs),
    /// List the recordings in the store
    List(ListArgs),
    /// Say what on this host would spoil a measurement, and how to mend it
    Doctor(DoctorArgs),
    /// Be the far end of ssh: and cmd: targets, started by latlab itself
    Agent(AgentArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the man page, or write all of them
    Man(ManArgs),
    /// Reflect for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    Reflector,
    /// Load the network for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    NetLoad,
    /// Make one load for the latlab that started this process; settings come on stdin
    #[command(hide = true)]
    Stressor,
    /// Run the bare loop: the floor that a measurement stands on
    #[command(hide = true)]
    Bare(BareArgs),
    /// Run the bare stream: what a measured stream is compared with
    #[command(hide = true)]
    BareStream(BareStreamArgs),
    /// Run the bare loop of wake-ups
    #[command(hide = true)]
    BareWakeup(BareWakeupArgs),
}
