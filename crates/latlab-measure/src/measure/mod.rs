//! Measuring: the lifecycle of runs of all kinds (`lifecycle.rs`, `run.rs`), the peer (`peer.rs`), and a folder for
//! each kind with its hot loop. `baseline/` has bare loops of the same system calls for comparison.

mod background_loads;
pub mod baseline;
mod command;
mod error;
mod lifecycle;
mod manifest;
mod peer;
pub mod ping;
mod remote_host;
mod run;
mod stop_signal;
pub mod stream;
mod trace_keeper;
pub mod wakeup;

pub use background_loads::BackgroundLoads;
pub use command::OutputPattern;
pub use error::MeasureError;
pub use lifecycle::{PlanOutcome, measure_plan};
pub use peer::{Peer, absence_of, lacking_right, refusal_of};
pub use run::{CpuSource, LiveCounts, LiveProgress, RecordingTarget, Slice, UnansweredProbes};
