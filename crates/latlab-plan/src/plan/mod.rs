//! Settled requests: every default is filled in, and every limit is checked. An `Option` in a plan never stands for a
//! default.

mod command;
mod dds;
pub mod defaults;
mod experiment;
mod factors;
pub mod hooks;
mod import;
mod kind;
mod load;
mod path;
mod ping;
mod rate_search;
mod remedy;
mod run;
mod setting;
mod stream;
mod transport;
mod wakeup;
mod xdp;

pub use command::{CommandOutput, CommandSpec, PrintedSpec};
pub use dds::{DdsSpec, History, Reliability};
pub use experiment::{
    BetweenBlocks, Contrast, Design, Experiment, ExperimentCondition, Factors, RunOrder, RunsRule, ScheduledRun,
    common_levels, condition_words, conditions_in_words, level_order, level_words, levels_words,
};
pub use factors::{distinct_names, heading_order};
pub use hooks::{HookAddress, HookCommand, Hooks, ReadyWhen};
pub use import::ImportSpec;
pub use kind::Kind;
pub use load::{LoadKind, LoadSpec};
pub use path::{Family, PathSpec, Target};
pub use ping::{DueTimes, PingSpec, Protocol, Schedule, StampLayer};
pub use rate_search::RateSearchSpec;
pub use remedy::Remedy;
pub use run::{EndSpec, NoBareLoop, Plan, RunSpec, StopWhen, SummaryDefaults, WaitMode, Warmup, Work};
pub use setting::{IdleStates, IrqCpus, KNOBS, Setting, SettingSpec, Side};
pub use stream::{Direction, Pace, PaceError, PacketSize, SendMode, SenderSocketOptions, StreamRunSpec, StreamSpec};
pub use transport::{TransportKind, TransportProperties};
pub use wakeup::{ConcurrentWakeups, Via, WakeupCpus, WakeupSpec};
pub use xdp::{Reflect, XdpSpec};
