//! Round trips: the hot loops, and the run that prepares and records them.

mod probe_loop;
mod run;
mod sent_probes;
mod sequence;

pub use probe_loop::{SessionSender, run_slice};
pub(super) use run::PingRun;
pub use sequence::ProbeSequence;
