//! Measuring: the lifecycle that all kinds of runs share (`lifecycle.rs`, `run.rs`), the other end (`peer.rs`), and a
//! folder for each kind with its hot loop. `baseline/` has the same loops without anything else, to compare with.

mod background_loads;
pub mod baseline;
mod error;
mod lifecycle;
mod manifest;
mod peer;
pub mod ping;
mod remote_host;
mod run;
mod session_opening;
mod stop_signal;
pub mod stream;
pub mod wakeup;

pub(crate) use background_loads::BackgroundLoads;
pub use error::MeasureError;
pub use lifecycle::{PlanOutcome, measure_plan, rehearse_run};
pub use peer::Peer;
pub use run::{CpuSource, LiveCounts, LiveRates, RecordingTarget, Slice};
