//! The host: facts, findings of the doctor, settings, placement of threads, samples during a run, and the network
//! namespaces of the target `lab`.

pub mod calibration;
pub mod doctor;
mod error;
pub mod facts;
pub mod knobs;
mod namespaces;
pub mod placement;
pub mod process;
mod root;
pub mod sampler;
#[cfg(test)]
mod test_hosts;
pub mod trace_thread;
pub mod tracing;

pub use error::{HostError, KnobError};
pub use knobs::{HostGuard, KnobJournal};
pub use namespaces::{EnteredNamespace, Lab, PathInterfaces};
pub use root::HostRoot;
