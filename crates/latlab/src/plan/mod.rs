//! What shall be measured, settled: no option here means "default" any more.

pub mod defaults;
mod experiment;
mod factors;
mod kind;
mod like;
mod load;
mod ping;
mod rate_search;
mod remedy;
mod run;
mod schedule;
mod send_mode;
mod setting;
mod side;
mod stream;
mod stream_run;
mod target;
mod wakeup;

pub use experiment::{
    BetweenBlocks, Contrast, Design, Experiment, ExperimentCondition, Factors, RunOrder, RunsRule, ScheduledRun,
    condition_words,
};
pub use factors::Condition;
pub use kind::Kind;
pub use like::CompatOutput;
pub use load::{LoadKind, LoadSpec};
pub use ping::{Family, PathSpec, PingSpec, Protocol, TransportKind};
pub use rate_search::{RateSearchSpec, loss_words};
pub use remedy::Remedy;
pub use run::{EndSpec, Judging, RunSpec, StopWhen, WaitMode, Warmup, Work};
pub use schedule::{DueTimes, Schedule};
pub use send_mode::{SendMode, SenderSocketOptions};
pub use setting::{IdleStates, IrqCpus, KNOBS, Setting, SettingSpec};
pub use side::Side;
pub use stream::{Pace, PaceError, StreamSpec};
pub use stream_run::{Direction, PacketSize, StreamRunSpec};
pub use target::Target;
pub use wakeup::{ConcurrentWakeups, Via, WakeupCpus, WakeupSpec};

use crate::units::Nanos;

/// The runs of one command, and in how many interleaved rounds they take turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One run per size and source port.
    pub runs: Vec<RunSpec>,
    /// Each run is cut into this many slices; round k measures slice k of every run in turn, so
    /// that drift of the host spreads over all of them. 1 where there is a single run.
    pub rounds: u32,
}

impl Plan {
    /// How long all runs take together, warm-up and the settling of loads included, if nothing is lost; none where only a count limits one.
    pub fn duration(&self) -> Option<Nanos> {
        let settling = match self.runs.iter().any(|run| !run.loads.is_empty()) {
            true => defaults::LOAD_SETTLE,
            false => Nanos::ZERO,
        };
        self.runs.iter().map(RunSpec::duration).try_fold(settling, |sum, run| Some(sum + run?))
    }

    /// How long all runs take together at most; none where nobody knows.
    pub fn longest(&self) -> Option<Nanos> {
        self.runs.iter().map(|run| run.longest(self.rounds)).try_fold(Nanos::ZERO, |sum, run| Some(sum + run?))
    }
}
