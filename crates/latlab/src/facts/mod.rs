//! What is known about hosts, clocks and instruments, as plain data. Unknown is null with a reason.

mod activity;
mod by_cpu;
mod clock;
mod counters;
mod finding;
mod heat;
mod host;
mod host_sample;
mod instrument;
mod kernel;
pub mod load;
mod memory;
mod network;
mod processor;
mod reflector;
mod rights;
mod setting;
mod stream;

pub use activity::{Activity, CpuTicks, Share, Ticks};
pub use by_cpu::ByCpu;
pub use clock::{ClockAnchor, ClockDiscipline, ClockExchange, ClockFacts, ClockKeeper, ClockRelation};
pub use counters::{CounterFacts, Interrupt, InterruptUse};
pub use finding::{Finding, FindingSeverity};
pub use heat::{FirmwareThrottling, HeatFacts};
pub use host::HostFacts;
pub use host_sample::{CpuReadings, FIRMWARE_NOW, FIRMWARE_SINCE_BOOT, HostReadings, HostSample, IDLE_STATES};
pub use instrument::{BareLoop, Instrument};
pub use kernel::KernelFacts;
pub use load::LoadReport;
pub use memory::MemoryFacts;
pub use network::{Channels, Coalescing, Driver, InterfaceFacts, NetworkFacts, Ring, Stamping};
pub use processor::{CpuPlace, Frequency, IdleState, IdleUse, ProcessorFacts};
pub use reflector::ReflectorReport;
pub use rights::{Capability, Rights};
pub use setting::{Restoration, SettingFacts};
pub use stream::{StreamReport, WindowedRate};
