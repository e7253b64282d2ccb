//! Work made on purpose beside a measurement: CPU time, hashing workers, memory traffic.
//!
//! A load runs in a process of its own, so that the process that measures shares neither locks, nor memory, nor
//! an address space with it, and so that it goes with that process, however that ends. Its workers know nothing
//! of each other; what they do together is read every 100 ms and judged when the load ends. Why processes, why
//! this control and this period: docs/design/0005-loads.md.

mod bursts;
mod cpu;
mod duty;
mod heat;
mod heaters;
mod memory;
mod meter;
mod refusal;
mod stressor;
mod workers;

pub use refusal::LoadError;
pub use stressor::{STRESSOR_COMMAND, Stressor, StressorEvent, StressorRequest};
pub use workers::Workers;
