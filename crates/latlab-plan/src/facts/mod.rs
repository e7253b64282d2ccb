//! Facts about hosts, clocks, loads and runs: plain data, as recordings and messages hold them. An unknown fact is null,
//! with a reason where one is known.

mod clock;
mod execution;
mod experiment;
mod host;
mod host_sample;
mod kernel;
pub mod load;
mod log;
mod network;
mod processor;
mod rate_search;
mod run;
mod stream;

pub use clock::{ClockAnchor, ClockDiscipline, ClockExchange, ClockFacts, ClockKeeper, ClockRelation};
pub use execution::{Execution, PrintedNumber};
pub use experiment::{
    ExcludedCondition, ExperimentFacts, ExperimentFormat, RecipeFacts, RunKey, RunOutcome, RunPosition, RunState,
};
pub use host::{Finding, FindingSeverity, HostFacts};
pub use host_sample::{CpuReadings, FIRMWARE_NOW, FIRMWARE_SINCE_BOOT, HostReadings, HostSample, IDLE_STATES};
pub use kernel::{
    Capability, CgroupFacts, CounterFacts, InterruptSource, InterruptUse, KernelFacts, MemoryFacts, RealTimePause,
    Rights,
};
pub use load::{LoadReport, StreamReport, WindowedRate};
pub use log::{ImportFacts, LoggedProbe, LoggedValue, RowNumbers};
pub use network::{
    Channels, Coalescing, ConnectionFacts, DdsFacts, Driver, InterfaceFacts, NetworkFacts, RingSizes, Stamping,
    XdpAbilities, XdpEnds, XdpFacts,
};
pub use processor::{
    Activity, ByCpu, CpuShare, CpuTicks, CpuTopology, FirmwareThrottling, Frequency, HeatFacts, IdleState, IdleUse,
    ProcessorFacts, Ticks,
};
pub use rate_search::{RateSearchFacts, SearchEnding, StageFacts, TrialFacts};
pub use run::{
    BareConditions, BareLoop, CommandLine, Instrument, LateWakeup, ReflectorReport, Restoration, SettingFacts,
    StampFacts, WakeupFacts, in_shell,
};
pub use stream::{IntervalCounts, StreamEnd, StreamFacts, StreamInterval};
