//! Loads during a measurement: CPU time, hashing workers, memory traffic.
//!
//! A load runs in a process of its own: it shares no locks and no address space with the measuring process, and ends
//! with that process however it ends. Its workers are independent. The sum of their work is read every 100 ms, and
//! evaluated when the load ends. Reasons for processes, control and period: docs/design/0005-loads.md.

mod error;
mod kinds;
mod pacing;
mod stressor;
mod workers;

pub use error::LoadError;
pub use stressor::{Stressor, StressorEvent, StressorRequest};
pub use workers::Workers;
